"""The routes that trees of a cluster with odd boxes may use, by number."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import starts
from collc.ir.schedule import Routes

from .odd_boxes import OddBoxes
from .odd_parts import OddParts

__all__ = ["OddRoutes"]


class OddRoutes:
    """Numbers of all routes that trees may use, and their links.

    First the routes inside alike boxes, box by box. Then those from the ranks of the first alike box and the odd ranks
    to every rank of the alike boxes, those from the first alike box to odd ranks, and those within the odd parts.
    """

    def __init__(self, odd: OddBoxes, inside: Routes, packed: OddParts) -> None:
        self.odd, self.inner, self.packed = odd, inside, packed
        self.alike, self.number = odd.alike, {rank: place for place, rank in enumerate(odd.ranks)}
        self.size, self.count, self.odd_ranks = odd.alike.num_ranks, odd.alike.count, len(odd.ranks)
        self.up = np.array([one[odd.fabric][0] for one in self.alike.up])
        self.down = np.array([one[odd.fabric][0] for one in self.alike.down])
        counts = [
            self.count * len(inside), (self.size + self.odd_ranks) * self.count * self.size,
            self.size * self.odd_ranks, len(packed.entering.routes),
        ]  # fmt: skip
        self.base = starts(counts).tolist()

    def inside(self, box: Array, route: Array) -> Array:
        """Return the keys of routes inside alike boxes."""
        keys: Array = box * len(self.inner) + route
        return keys

    def crossing(self, rank: int, boxes: Array, place: int) -> Array:
        """Return the keys of routes from a rank to a place of alike boxes."""
        row = self.size + self.number[rank] if rank in self.number else rank
        keys: Array = self.base[1] + (row * self.count + boxes) * self.size + place
        return keys

    def entering(self, place: int, child: Array, route: Array, outside: Array) -> Array:
        """Return the keys of the edges of a tree that enters: from a place of the first box, or within odd parts."""
        keys: Array = np.where(outside, self.base[2] + place * self.odd_ranks + child, self.base[3] + route)
        return keys

    def own(self, route: Array) -> Array:
        """Return the keys of routes of odd ranks' own trees."""
        keys: Array = self.base[4] + route
        return keys

    def routes(self, used: Array) -> Routes:
        """Return the routes with these keys, ascending."""
        bounds = np.searchsorted(used, self.base[1:])
        inside, crossing, entering, odd, own = np.split(used, bounds)
        lists = [self._inside_links(inside), self._crossing_links(crossing - self.base[1])]
        place, child = np.divmod(entering - self.base[2], self.odd_ranks)
        down = np.array([self.odd.down.get(rank, -1) for rank in self.odd.ranks])
        lists.append(np.stack([self.up[place], down[child]], axis=1))
        lists += [_padded(self.packed.entering.routes, odd - self.base[3])]
        if self.packed.own is not None:
            lists.append(_padded(self.packed.own.routes, own - self.base[4]))
        width = max(rows.shape[1] for rows in lists)
        table = np.concatenate([
            np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=-1) for rows in lists
        ])  # fmt: skip
        lengths = (table >= 0).sum(axis=1)
        return Routes(starts(lengths), table[table >= 0])

    def _inside_links(self, keys: Array) -> Array:
        box, route = np.divmod(keys, max(len(self.inner), 1))
        links = _padded(self.inner, route)
        moved = self.alike.rotation.links(box[:, None], np.where(links < 0, 0, links))
        return np.where(links < 0, -1, moved)

    def _crossing_links(self, keys: Array) -> Array:
        row, target = np.divmod(keys, self.count * self.size)
        box, place = np.divmod(target, self.size)
        odd_up = [self.odd.up.get(rank, -1) for rank in self.odd.ranks]
        up = np.concatenate([self.up, np.array(odd_up, dtype=np.int64)])[row]
        return np.stack([up, self.alike.rotation.links(box, self.down[place])], axis=1)


def _padded(routes: Routes, chosen: Array) -> Array:
    """Return the links of some routes as rows, filled with -1."""
    lengths = routes.lengths[chosen]
    table = np.full((len(chosen), int(lengths.max(initial=1))), -1, dtype=np.int64)
    table[np.arange(table.shape[1])[None, :] < lengths[:, None]] = routes.links[routes.places(chosen)]
    return table
