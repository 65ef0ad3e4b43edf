"""Climbs to networks with a node or two in the middle of cables of a smaller one."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from collc.frontends import coll
from collc.passes.finder.database import Row

from .compiled import LINKS, STEPS, library
from .search import SLACK, Search

__all__ = ["Inserted", "bases"]

_INSERTED = 3  # times that nodes are inserted into one base, one after another


class Inserted(Search):
    """The search among networks with inserted nodes."""

    def inserted(self, base: Row, more: int) -> None:
        """Insert nodes into a base of ``more`` nodes less, in few cables: for fewer steps, then for less T_B."""
        heads = coll.topology(base.expression).dst.reshape(base.nodes, -1).astype(np.int32)
        first = max(base.T_L, self.bound)
        for target in range(first, self.least):
            if self._insert(base, heads, more, target):
                break
        for target in range(first, first + SLACK):
            self._insert(base, heads, more, target)

    def _insert(self, base: Row, heads: np.ndarray, more: int, target: int) -> bool:
        """Insert nodes such that there are at most ``target`` steps; return whether that is better than known."""
        steps, cables = ctypes.c_int(), (ctypes.c_int * LINKS**2)()
        load = int(library().insert(
            self.nodes, more, self.degree, np.ascontiguousarray(heads).ctypes.data, target, self.evaluations,
            self.evaluations // 10 + 1, self.seed(), ctypes.byref(steps), cables,
        ))  # fmt: skip
        if load >= self.loads()[target]:
            return False
        ends = cables[: more * (self.degree - more + 1)]
        shown = ", ".join(f"{one} <-> {two}" for one, two in zip(ends[::2], ends[1::2], strict=True))
        number = f", {more}" if more > 1 else ""
        self.add(steps.value, load, f"inserted({base.expression}, {{{shown}}}{number})")
        return True


def bases(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that nodes are inserted into: the one of the fewest steps, and the one of the least T_B.

    Rows with inserted nodes are among them only if they take fewer steps than all others.
    """
    plain = [row for row in rows if "inserted" not in row.expression]
    least = min((row.T_L for row in plain), default=STEPS)
    nested = [row for row in rows if row.T_L < least and row.expression.count("inserted") < _INSERTED]
    found: list[Row] = []
    for some in (nested, plain):
        found += [min(some, key=lambda row: (row.T_L, row.T_B, row.expression))] if some else []
    lightest = [min(plain, key=lambda row: (row.T_B, row.T_L, row.expression))] if plain else []
    return found + [row for row in lightest if row not in found]
