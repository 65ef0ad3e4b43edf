"""What several verbs do alike: read the input, make settings of options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from collc.ir.program import Program
from collc.ir.spec import Spec

from ..compilation import Level, Loading, load_spec, read_ir, sniff
from ..driver import Settings
from ..elements import Element, parse_elements
from ..files import STDIN, read_text
from ..pipeline import Recipe
from .console import Console

__all__ = ["load", "load_text", "loading", "read", "settings", "targets"]


def read(path: str, console: Console) -> tuple[str, str]:
    """Return the text of the input and its name in messages."""
    name = "<stdin>" if path == STDIN else path
    console.progress(f"reading {name}")
    text = read_text(path)
    console.inputs[name] = text
    return text, name


def loading(options: SimpleNamespace) -> Loading:
    """Return how ``.coll`` files are to be read: ``-D``, ``-I``, ``--node-limit``."""
    return Loading(dict(options.D), tuple(options.I), options.node_limit)


def load(options: SimpleNamespace, console: Console, *, published: bool = False) -> tuple[Spec, Level | None]:
    """Return the specification in the one input file, and the IR it holds if it is a printed one.

    With ``published`` an MSCCL-XML file may be given too; its program is right in place and out of place, and
    ``--collective`` says what it performs where it does not itself.
    """
    text, name = read(options.files[0], console)
    return load_text(text, name, options, published=published)


def load_text(text: str, name: str, options: SimpleNamespace, *, published: bool = False) -> tuple[Spec, Level | None]:
    """Return what :func:`load` does of a text that was read."""
    if published and sniff(text) == "xml":
        from ..conversion import load_published

        told, options.collective = next(iter(options.collective), None), []
        return load_published(text, name, told)
    if sniff(text) == "ir":
        return read_ir(text, name)
    return load_spec(text, name, loading(options)), None


def settings(options: SimpleNamespace, until: type = Program) -> Settings:
    """Return what the options say of passes and verification."""
    elements = None if options.passes is None else parse_elements(options.passes, "-p")
    return Settings(Recipe(options.O, elements, tuple(options.disable_pass)), options.verify, until)


def targets(options: SimpleNamespace) -> tuple[Element, ...]:
    """Return the targets that ``-t`` names."""
    found: list[Any] = [element for text in options.target for element in parse_elements(text, "-t")]
    return tuple(found)
