"""The formats of files: one entry each says how to recognize a text, and which verbs read it.

This table decides which files a verb reads and refuses, which options of ``collc verify`` judge a file, by which target
``collc run`` runs it, and which formats messages list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from collc.ir.registry import Registry

if TYPE_CHECKING:
    from collc.ir.diagnostic import CollcError
    from collc.ir.levels import Executable
    from collc.ir.spec import Spec

    from .base import Reader, ReadOptions

__all__ = [
    "FORMATS",
    "Format",
    "judged",
    "load",
    "reader",
    "reader_of",
    "refused",
    "require_format",
    "require_known",
    "sniff",
]

_PRINTED = ("compile", "check", "verify", "cost", "simulate", "convert", "run", "launch", "replan", "topologies")
_PUBLISHED = ("verify", "convert", "run", "simulate")


class Format(NamedTuple):
    """A format: its :class:`~collc.reading.base.Reader`, a summary, and the verbs that read its files.

    Messages call the format ``title`` and one of its files ``noun``. The reader sees only texts that begin with
    ``begins`` (after blanks); ``otherwise`` makes such a text this format if no reader recognizes it. ``verbs`` are in
    the order of messages. ``judged`` are the options of ``collc verify`` that judge the format, each with its files.
    ``collc run`` runs a file by the target ``runs``.

    >>> Format("my_package.csv", "CsvReader", "a table", "transfers CSV", "a table of transfers", begins="step,").runs
    'mpi-c'
    """

    module: str
    attribute: str
    summary: str
    title: str
    noun: str
    begins: str = ""
    otherwise: bool = False
    verbs: tuple[str, ...] = _PRINTED
    judged: tuple[tuple[str, str], ...] = ()
    runs: str = "mpi-c"


#: format -> how its files are recognized and read
FORMATS: Registry[Format] = Registry("format", ("formats",), {
    "coll": Format(
        "collc.reading.coll", "CollReader", "the language: topologies, collectives, schedules, targets",
        "`.coll`", "a `.coll` file", otherwise=True,
        verbs=("compile", "check", "verify", "cost", "simulate", "run", "launch", "replan", "topologies"),
    ),
    "ir": Format(
        "collc.reading.printed", "IrReader", "a printed schedule, forest or program",
        "a printed IR", "a printed IR", "collc-ir", judged=(("multiprocessors", "programs"),),
    ),
    "msccl-xml": Format(
        "collc.reading.msccl", "MscclReader", "an algorithm for MSCCL runtimes, from any tool",
        "MSCCL-XML", "XML", "<", True, _PUBLISHED,
        (("runtime", "MSCCL-XML files"), ("multiprocessors", "MSCCL-XML files")),
    ),
    "oneccl-xml": Format(
        "collc.reading.oneccl", "OneCclReader", "an algorithm for CPU ranks over oneCCL",
        "oneCCL-XML", "XML", "<", False, _PUBLISHED, runs="oneccl-xml",
    ),
    "mscclpp-json": Format(
        "collc.reading.mscclpp", "MscclppReader", "an execution plan of MSCCL++, from any tool",
        "MSCCL++ plan", "a plan of MSCCL++", "{", False, _PUBLISHED,
        (("runtime", "plans of MSCCL++"), ("multiprocessors", "plans of MSCCL++")),
    ),
    "mpi-c": Format(
        "collc.reading.mpi_c", "MpiCReader", "C sources that collc wrote", "mpi-c source", "C source", "", False,
        ("verify",),
    ),
}, of=Format)  # fmt: skip


def sniff(text: str) -> str:
    """Return the format of a text. Plugins are consulted only if no reader of collc recognizes it.

    >>> sniff("collc-ir 1"), sniff("<algo/>"), sniff("topology t = torus(3);"), sniff("")
    ('ir', 'msccl-xml', 'coll', 'coll')
    """
    head = text[:65536].lstrip("\ufeff").lstrip()
    for name in _names():
        if head.startswith(FORMATS[name].begins) and _recognizes(name, text):
            return name
    usual = [name for name, one in FORMATS.own.items() if one.otherwise and head.startswith(one.begins)]
    return max(usual, key=lambda name: len(FORMATS[name].begins))


def _names() -> Iterator[str]:
    """Yield collc's own formats, then those of plugins, which are loaded only then."""
    yield from FORMATS.own
    yield from FORMATS.brought()


def _recognizes(name: str, text: str) -> bool:
    """Return whether a reader recognizes a text; False if a plugin's reader fails."""
    if name in FORMATS.own:
        return reader(name).sniff(text)
    try:
        return bool(reader(name).sniff(text))
    except MemoryError:
        raise
    except Exception as problem:
        FORMATS.complain(name, problem)
        return False


def reader(name: str) -> Reader:
    """Return the reader of a format."""
    if name in FORMATS.own:
        found: Reader = FORMATS.load(name)()
        return found
    from ..registry.classes import plugin_class
    from .base import Reader

    brought: Reader = plugin_class(FORMATS, name, Reader)()
    return brought


def reader_of(text: str, path: str, verb: str) -> Reader:
    """Return the reader of a text; raise C0018 if the verb does not read its format."""
    require_known(text, path, verb)
    name = sniff(text)
    if verb not in FORMATS[name].verbs:
        raise refused(name, path, verb)
    return reader(name)


def require_known(text: str, path: str, verb: str) -> None:
    """Raise C0018 for a text of another program. A `.coll` file is refused only if it is XML, and standard input if it
    is XML or can be imported: the language says what is wrong with other texts.
    """
    from ..files.kinds import Other, kind_of_text

    is_xml = text.lstrip("\ufeff \t\r\n").startswith("<")
    if (path.endswith(".coll") and not is_xml) or (not text.strip() and verb != "verify") or not _is_unknown(text):
        return
    noun = _imported_noun(text)
    other = Other(noun, imported=True) if noun else kind_of_text(text) if is_xml or path != "<stdin>" else None
    if other is None:
        return
    from collc.ir.diagnostic import error
    from collc.ir.shown import listed

    titles = [one.title.removeprefix("a ") for one in FORMATS.values() if verb in one.verbs] or ["`.coll`"]
    reads = f"`collc {verb}` reads {listed(titles)} files"
    instead = _importing(path) if other.imported else other.instead
    raise error("C0018", f"`{path}` is {other.noun}", notes=[reads] if instead else [], hint=instead or reads)


def _imported_noun(text: str) -> str | None:
    """Return what messages call a text that `collc import` reads; None for another text."""
    from collc.frontends.importing import IMPORTS
    from collc.frontends.importing import sniff as imported_as

    name = imported_as(text)
    return IMPORTS[name].noun if name else None


def _importing(path: str) -> str:
    """Return the hint to import a file."""
    import shlex

    from ..files.naming import stem_of

    given = ("-", "network.coll") if path == "<stdin>" else (path, f"{stem_of(path)}.coll")
    return f"`collc import {shlex.quote(given[0])} -o {shlex.quote(given[1])}` reads it"


def _is_unknown(text: str) -> bool:
    """Return whether no reader recognizes a text for certain."""
    head = text[:65536].lstrip("\ufeff").lstrip()
    if not head:
        return True
    return not any(head.startswith(FORMATS[name].begins) and _recognizes(name, text) for name in _names())


def load(text: str, path: str, verb: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
    """Return the specification of a text, and its IR or None; raise C0018 as :func:`reader_of`."""
    return reader_of(text, path, verb).load(text, path, options)


def refused(name: str, path: str, verb: str) -> CollcError:
    """Return the error for a file of a format that a verb does not read."""
    from collc.ir.diagnostic import error
    from collc.ir.shown import listed

    one = FORMATS[name]
    if "compile" in one.verbs:
        titles = [other.title for other in FORMATS.values() if verb in other.verbs]
        hint = f"`collc compile` takes {one.title} files"
        return error("C0018", f"`{path}` is neither {listed(titles, 'nor')}", hint=hint)
    verbs = [f"`{'' if number else 'collc '}{v}`" for number, v in enumerate(one.verbs)]
    hint = f"{listed(verbs)} {'read' if len(verbs) > 1 else 'reads'} {one.title} files"
    return error("C0018", f"`{path}` is {one.noun}, not a `.coll` file", hint=hint)


def require_format(name: str, text: str, path: str) -> None:
    """Raise C0018 for a text that is not of the format ``name``."""
    from collc.ir.diagnostic import error

    found, one = sniff(text), FORMATS[name]
    if found == name:
        return
    verbs = f"compile it to one: `collc {path} -t {name}`" if found == "coll" else f"give {one.title} files"
    raise error("C0018", f"`{path}` is {FORMATS[found].noun}, not {one.title}", hint=verbs)


def judged(option: str, path: str) -> CollcError:
    """Return the error for an option of ``collc verify`` that does not judge a file's format."""
    from collc.ir.diagnostic import error
    from collc.ir.shown import listed

    kinds = {what for one in FORMATS.values() for given, what in one.judged if given == option}
    return error("C0018", f"--{option} applies to {listed(sorted(kinds))}, which `{path}` is not",
                 hint=f"leave --{option} out, or verify the file that a runtime loads", exit_status=2)  # fmt: skip
