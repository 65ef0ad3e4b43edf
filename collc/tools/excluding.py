"""The names that patterns of ``--exclude`` match: families, operators, groups, and graphs of the literature."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from collc.frontends.coll import FAMILIES, OPERATORS, brought
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.group import GROUPS
from collc.ir.shown import listed
from collc.passes.finder.bases import DISTANCE_REGULAR
from collc.passes.finder.exclude import Excluded

__all__ = ["excluded"]


def excluded(patterns: Sequence[str]) -> Excluded:
    """Return the names that the patterns match, with the wildcards of a shell; raise C0035 for those without a match.

    >>> sorted(excluded(["*kautz", "cyclic"]).names)
    ['cyclic', 'generalized_kautz', 'kautz']
    """
    known = sorted({*FAMILIES, *brought(), *OPERATORS, *GROUPS, *DISTANCE_REGULAR})
    names: set[str] = set()
    wrong: list[Diagnostic] = []
    for pattern in patterns:
        matched = [name for name in known if fnmatchcase(name, pattern)]
        names.update(matched)
        if not matched:
            near = get_close_matches(pattern.strip("*?"), known, n=3, cutoff=0.6) if len(pattern) < 100 else []
            hint = f"the nearest: {listed([f'`{name}`' for name in near])}" if near else None
            wrong += error(
                "C0035",
                f"nothing to exclude is called `{pattern[:100]}`",
                notes=["needed: a family, operator, group or graph; `*`, `?` and `[..]` are wildcards"],
                hint=hint or "`collc topologies` lists the families and operators",
                exit_status=2,
            ).diagnostics
    if wrong:
        raise CollcError(wrong, exit_status=2)
    return Excluded(frozenset(names))
