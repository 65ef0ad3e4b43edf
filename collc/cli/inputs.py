"""Shared by verbs: reading the input, settings from options."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from collc.ir.diagnostic import error
from collc.ir.levels import Executable
from collc.ir.program import Program
from collc.ir.spec import Spec

from ..driver.plan import Recipe
from ..driver.result import Settings
from ..driver.spans import span
from ..files.texts import STDIN, check_writable, read_text
from ..reading import reader_of
from ..reading.base import ReadOptions
from ..reading.loading import Loading
from ..registry.elements import Element, parse_elements
from .console import Console

__all__ = [
    "load", "load_text", "loading", "read", "require_own_places", "require_ranks", "settings", "targets",
]  # fmt: skip


def read(path: str, console: Console) -> tuple[str, str]:
    """Return the text of the input and its name in messages."""
    name = "<stdin>" if path == STDIN else path
    console.progress(f"reading {name}")
    text = read_text(path)
    console.inputs[name] = text
    return text, name


def loading(options: SimpleNamespace) -> Loading:
    """Return the options for reading ``.coll`` files: ``-D``, ``-I``, ``--node-limit``."""
    return Loading(dict(options.D), tuple(options.I), options.node_limit)


def load(
    options: SimpleNamespace, console: Console, verb: str = "compile", path: str | None = None
) -> tuple[Spec, Executable | None]:
    """Return the specification in an input file, by default the first, and the IR it holds if it holds one.

    The IR of a published file is correct in place and out of place, and ``--collective`` says what it performs where it
    does not itself. Raises C0018 for a format that the verb does not take.
    """
    text, name = read(options.files[0] if path is None else path, console)
    with span(f"read {name}", "input"):
        spec, start = load_text(text, name, options, verb)
    require_own_places(options, spec.files)
    return spec, start


def require_own_places(options: SimpleNamespace, used: Sequence[str], places: Sequence[str] = ()) -> None:
    """Raise C0005 or C0021 if a profile or a table would replace a file that was read or another output.

    ``places`` are the outputs beside them. What is written after a failure is not written after this one.
    """
    profile, times = getattr(options, "profile", None), getattr(options, "time_passes", None)
    tables = [path for name in ("csv", "markdown") for path in getattr(options, name, None) or ()]
    beside = [path for path in (profile, *(times or ()), *tables) if path]
    if beside:
        options.profile = options.time_passes = None
        check_writable([*places, *beside], used, getattr(options, "o", None))
        options.profile, options.time_passes = profile, times


def load_text(text: str, name: str, options: SimpleNamespace, verb: str = "compile") -> tuple[Spec, Executable | None]:
    """Return what :func:`load` does of a text that was read."""
    reader = reader_of(text, name, verb)
    read_options = ReadOptions(loading(options), tuple(options.collective))
    if not reader.names_collective:
        options.collective = []
    return reader.load(text, name, read_options)


def settings(options: SimpleNamespace, until: type = Program) -> Settings:
    """Return the settings of passes and verification."""
    elements = None if options.passes is None else parse_elements(options.passes, "-p")
    return Settings(Recipe(options.O, elements, tuple(options.disable_pass)), options.verify, until)


def require_ranks(options: SimpleNamespace, name: str, ranks: int) -> None:
    """Raise C0765 if ``--ranks`` differs from the number of ranks of a collective."""
    if options.ranks is not None and options.ranks != ranks:
        hint = "compile it for that many ranks, or leave `--ranks` out"
        raise error("C0765", f"`{name}` is for {ranks} ranks, --ranks needs {options.ranks}", hint=hint)


def targets(options: SimpleNamespace) -> tuple[Element, ...]:
    """Return the targets of ``-t``."""
    return tuple(element for text in options.target for element in parse_elements(text, "-t"))
