"""Choosing one path for every ring, so that no pair of neighbours carries more rings than its links.

A path is a row of a table: how often it uses each pair. The search takes the ring with the fewest paths left, tries its
paths in the order of their prices, and goes back when a ring has none. The price of a pair is the number of rings that
want it, over the number that still fits. Every ring passes each rank once. So the pairs into a rank must fit all rings
that are left, and if they fit no more, each of them must be used.

All numbers are integers, and the search counts its steps: it finds the same rings on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collc.ir.arrays import Array

__all__ = ["Packing"]

_SCALE = 1 << 10
#: numbers of a table that are read in the time of a step
_STEP = 50_000


class Packing:
    """Finds a path for each ring; ``tables[ring]`` lists its paths, (paths, pairs).

    ``room[pair]`` is the number of rings that fit. ``groups`` are the pairs into, or out of, one rank. After ``most``
    steps the search no longer goes back; a step on large tables counts as several. After :meth:`solve`, ``exhausted``
    says whether all choices were tried.
    """

    def __init__(self, tables: Sequence[Array], room: Array, groups: Sequence[Array], most: int) -> None:
        self.tables, self.room, self.groups, self.most = tables, room, groups, most
        self.alike = all(table is tables[0] for table in tables)
        self.steps, self.exhausted = 0, True

    def solve(self) -> list[int] | None:
        """Return the row of the path of every ring; None if none was found."""
        left = tuple(range(len(self.tables)))
        kept = {ring: np.arange(len(self.tables[ring])) for ring in (left[:1] if self.alike else left)}
        found = self._choose(left, kept, self.room.astype(np.int64))
        return None if found is None else [found[ring] for ring in range(len(self.tables))]

    def _choose(self, left: tuple[int, ...], kept: dict[int, Array], room: Array) -> dict[int, int] | None:
        if not left:
            return {}
        self.steps += 1 + sum(len(rows) for rows in kept.values()) * len(room) // _STEP
        fitting = self._fitting(left, kept, room)
        if fitting is None:
            return None
        ring, rows = self._next(left, fitting, room)
        rest = tuple(other for other in left if other != ring)
        table = self.tables[ring]
        for row in rows.tolist():
            found = self._choose(rest, fitting, room - table[row])
            if found is not None:
                return {**found, ring: row}
            if self.steps > self.most:
                self.exhausted = False
                return None
        return None

    def _fitting(self, left: tuple[int, ...], kept: dict[int, Array], room: Array) -> dict[int, Array] | None:
        """Return the paths that still fit, by ring; None if a ring has none, or a rank lacks room for all rings."""
        fitting, usable = dict[int, Array](), np.zeros(len(room), dtype=bool)
        for ring in kept if self.alike else left:
            table = self.tables[ring][kept[ring]]
            fits = (table <= room).all(axis=1)
            if not fits.any():
                return None
            fitting[ring] = kept[ring][fits]
            usable |= table[fits].any(axis=0)
        most = np.where(usable, np.minimum(room, len(left)), 0)
        return None if any(most[group].sum() < len(left) for group in self.groups) else fitting

    def _next(self, left: tuple[int, ...], fitting: dict[int, Array], room: Array) -> tuple[int, Array]:
        """Return the ring to decide next, and its paths, the cheapest first."""
        if self.alike:
            (rows,) = fitting.values()
            price = self._price(rows, self.tables[0], room) * len(left)
            rows = self._through_scarcest(rows, len(left), room)
            return left[0], self._cheapest(rows, self.tables[0], price)
        ring = min(left, key=lambda one: len(fitting[one]))
        price = sum((self._price(fitting[one], self.tables[one], room) for one in left), np.zeros(len(room), np.int64))
        return ring, self._cheapest(fitting[ring], self.tables[ring], price)

    def _price(self, rows: Array, table: Array, room: Array) -> Array:
        uses = table[rows].sum(axis=0, dtype=np.int64) * _SCALE // len(rows)
        price: Array = uses * _SCALE // np.maximum(room, 1)
        return price

    def _cheapest(self, rows: Array, table: Array, price: Array) -> Array:
        price = np.minimum(price, 1 << 24)
        return rows[np.argsort(table[rows].astype(np.int64) @ (price * price), kind="stable")]

    def _through_scarcest(self, rows: Array, left: int, room: Array) -> Array:
        """Return the paths through the pair with the fewest paths, of those pairs that must all be used."""
        table = self.tables[0][rows]
        uses = np.count_nonzero(table, axis=0)
        tight = [group for group in self.groups if np.minimum(room[group], left)[uses[group] > 0].sum() == left]
        if not tight:
            return rows
        needed = np.unique(np.concatenate(tight))
        needed = needed[(room[needed] > 0) & (uses[needed] > 0)]
        return rows[table[:, needed[np.argmin(uses[needed])]] > 0]
