"""One version of a file: its diagnostics, as ``collc check`` reports them, and its specification if it has one."""

from __future__ import annotations

import attrs

from collc.frontends.coll import ast
from collc.frontends.coll.parser import parse_file
from collc.ir.diagnostic import CollcError, Diagnostic, Source
from collc.ir.frozen import frozen
from collc.ir.registry import consulting
from collc.ir.spec import Spec

from ..driver.checking import mistakes
from ..files.naming import stem_of
from ..messages.internal import INTERNAL_STATUS, InternalError
from ..reading import load
from ..reading.base import ReadOptions
from ..reading.loading import Loading

__all__ = ["Checked", "check", "tree_of"]


@frozen(eq=False)
class Checked:
    """The findings in one version of a text. ``spec`` is None if the text has errors of the language."""

    source: Source
    diagnostics: tuple[Diagnostic, ...] = ()
    spec: Spec | None = None


def check(text: str, path: str, loading: Loading) -> Checked:
    """Check a text as ``collc check`` does; raise InternalError for a fault of collc. Nothing is scheduled.

    >>> found = check("collective c = allreduce on biring(4) { sice: 1 };", "a.coll", Loading())
    >>> [one.code for one in found.diagnostics], found.spec
    (['C0127'], None)
    """
    source = Source(path, text)
    found: list[Spec] = []
    with consulting() as of_plugins:
        try:
            diagnostics = _diagnostics(text, path, loading, found)
        except CollcError as mistake:
            if mistake.exit_status == INTERNAL_STATUS:
                raise
            diagnostics = mistake.diagnostics
        except Exception as fault:
            raise InternalError(f"check failed: {type(fault).__name__}: {fault}") from fault
    return Checked(source, (*diagnostics, *of_plugins), found[0] if found else None)


def _diagnostics(text: str, path: str, loading: Loading, found: list[Spec]) -> tuple[Diagnostic, ...]:
    """Return what is wrong with the collectives of a text, and warnings; add its specification to ``found``."""
    spec, start = load(text, path, "check", ReadOptions(loading))
    found.append(spec)
    wrong = mistakes(spec, stem_of(path)) if start is None else None
    if wrong is not None and wrong.exit_status == INTERNAL_STATUS:
        raise wrong
    return (*(wrong.diagnostics if wrong else ()), *spec.warnings)


def tree_of(source: Source) -> ast.File:
    """Return the declarations of a text; those with errors of syntax are missing, the others are there.

    >>> [type(one).__name__ for one in tree_of(Source("a.coll", "param n = ; let m = 2;")).declarations]
    ['Define']
    """
    return parse_file(attrs.evolve(source, text=source.text.removeprefix("\ufeff"))).file
