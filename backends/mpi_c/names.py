"""Names for C: valid identifiers, and text that is safe in a comment."""

from __future__ import annotations

import re

from collc.ir.diagnostic import error
from collc.ir.node_names import split_name

from .reserved import HEADERS, KEYWORDS, LIBRARY, PREDEFINED

__all__ = ["REQUEST_FORMS", "chosen", "comment", "forms", "identifier", "require_stem"]

_RESERVED = {
    **dict.fromkeys(LIBRARY, "a name of the C library"),
    **dict.fromkeys(PREDEFINED, "a macro that compilers define"),
    **dict.fromkeys(KEYWORDS, "a keyword of C or C++"),
}

#: suffixes of the names that follow from the name of a function, and of a file
_FUNCTION_FORMS = ("c", "begin", "begin_c", "init", "init_c", "algorithm")
REQUEST_FORMS = ("request", "operation", "attach", "start", "test", "wait", "waitall", "free")

#: the longest name, in characters; file names contain it
_LONGEST = 100

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _refusal(name: str, taken: frozenset[str]) -> str | None:
    """Return why a C function cannot have this name, or None if it can."""
    if not _IDENTIFIER.fullmatch(name):
        return "not a C identifier"
    if name.startswith("_"):
        return "reserved for the C implementation, as all names that begin with an underscore are"
    if name.upper() in ("MPI", "PMPI", "MPIX") or name.upper().startswith(("MPI_", "PMPI_", "MPIX_")):
        return "a name of MPI"
    if name in _RESERVED:
        return _RESERVED[name]
    if name.casefold() in HEADERS:
        return f"the name of the header <{name.casefold()}.h>"
    if name in taken:
        return "a name that the generated C uses itself"
    for form in sorted((forms(name) | {f"{name}_{form}" for form in REQUEST_FORMS}) - {name}):
        if form in _RESERVED or form in taken:
            return f"a name that gives `{form}`, {_RESERVED.get(form, 'which the generated C uses itself')}"
    return None


def forms(name: str) -> set[str]:
    """Return the names of all functions of a collective."""
    return {name, *(f"{name}_{form}" for form in _FUNCTION_FORMS)}


def require_stem(stem: str) -> None:
    """Raise C0721 if a header of this name would hide one of the system's."""
    if stem.casefold() in HEADERS:
        raise error(
            "C0721",
            f"`{stem}.h` would hide the header <{stem.casefold()}.h> from programs that look for headers in its folder",
            hint=f"rename the file: -o collc_{stem}.c",
            exit_status=2,
        )


def identifier(name: str, taken: frozenset[str]) -> str:
    """Return the nearest C identifier to ``name``; ``taken`` are names that the generated file uses.

    >>> identifier("reduce-scatter", frozenset()), identifier("free", frozenset()), identifier("3d", frozenset())
    ('reduce_scatter', 'collc_free', 'collc_3d')
    >>> identifier("tp[0, 3]", frozenset())
    'tp_0_3'
    """
    family, indices = split_name(name)
    name = re.sub(r"[^A-Za-z0-9_]", "_", "_".join([family, *map(str, indices)]))[:_LONGEST]
    while _refusal(name, taken):
        name = "collc_" + name.lstrip("_")
    return name


def chosen(name: str, taken: frozenset[str]) -> str:
    """Return a name that the user chose for the function; raise C0705 if C cannot use it."""
    refusal = _refusal(name, taken)
    if refusal:
        near = identifier(name, taken)
        raise error("C0705", f"`{name}` is {refusal}", hint=f"use another name, e.g. `{near}`", option="function")
    return name


def comment(text: str) -> str:
    """Return ``text`` made safe for a comment of C: printable, one line, without the end of a comment.

    >>> comment("x */ #include")
    'x .. #include'
    """
    return re.sub(r"[^A-Za-z0-9 _.,:;=+<>(){}\[\]#-]", ".", text)
