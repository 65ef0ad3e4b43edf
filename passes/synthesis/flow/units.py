"""Whole units of flows on an unrolled network, and the timed path of every unit.

Places are taken from the last step to the first. The units that a place needs come by its slots in the flow's
proportions, each rounded down or up. Two errors decide which are rounded up: what the link has got beyond its share
from other sources, and what the place before has to give beyond its share. So links carry what the flow says, up to
about a unit in each step. The errors can be weighed in several ways, and no way is always the best.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array

from .unrolled import Unrolled, row_sums

__all__ = ["WEIGHTS", "UnitPaths", "unit_paths", "whole_units"]

#: weights of the errors: of the place before, and of what differs from the flow already
WEIGHTS = ((0.5, 0.5), (0.5, 1.0), (0.0, 1.0))


@attrs.frozen(eq=False)
class UnitPaths:
    """Timed paths: ``source`` (a column), ``target`` (a node), and how many ``units`` each carries.

    ``slots``, shape (paths, steps), are those by which it enters its places; ``nodes``, shape (paths, steps + 1), are
    where it is.
    """

    source: Array
    target: Array
    slots: Array
    nodes: Array
    units: Array


def whole_units(unrolled: Unrolled, flow: Array, parts: int, weights: tuple[float, float] = WEIGHTS[0]) -> Array:
    """Return a flow of whole units, ``parts`` for each unit that is wanted, near ``parts`` times ``flow``."""
    need = np.rint(unrolled.wanted * parts).astype(np.int64)
    found = np.empty(flow.shape, dtype=np.int64)
    for step in reversed(range(unrolled.steps)):
        found[step] = _Rounding(unrolled, step, flow[step] * parts, need).units(*weights)
        need = unrolled.before(found[step])
    return found


class _Rounding:
    """One step: ``planned`` is the flow, ``need`` the units of every place, shape (nodes, sources)."""

    def __init__(self, unrolled: Unrolled, step: int, planned: Array, need: Array) -> None:
        self.unrolled, self.planned = unrolled, planned
        self.exact = _among(planned, need, unrolled.open[step]) * need
        self.down = np.floor(self.exact).astype(np.int64)
        self.left = need - self.down.sum(axis=0)
        nodes = np.arange(len(need))
        self.tails = np.concatenate([unrolled.tails, nodes[None]]).T

    def units(self, before: float, already: float) -> Array:
        """Round; ``before`` and ``already`` are the weights of the errors.

        Every round takes pairs of a node and a source, each node and each source once.
        """
        nodes, sources = self.left.shape
        owed = already * row_sums(self.planned - self.exact).T.copy()
        owed[:, -1] = 0  # nodes may keep as much as they like
        drift = already * (self.unrolled.before(self.exact) - self.unrolled.before(self.planned))
        part = np.ascontiguousarray((self.exact - self.down).transpose(1, 2, 0))
        up = np.zeros(part.shape, dtype=np.int64)
        node, most = np.arange(max(nodes, sources)), np.arange(part.shape[2])
        for turn in range(len(node)):
            source = (node + turn) % len(node)
            pairs = (node < nodes) & (source < sources)
            at, of = node[pairs], source[pairs]
            mine, tails = part[at, of], self.tails[at]
            key = np.where(mine > 0, mine + owed[at] - before * drift[tails, of[:, None]], -np.inf)
            order = np.argsort(-key, axis=1, kind="stable")
            chosen = np.zeros(mine.shape, dtype=np.int64)
            np.put_along_axis(chosen, order, (most < self.left[at, of][:, None]).astype(np.int64), axis=1)
            up[at, of] = chosen
            error = chosen - mine
            owed[at, :-1] -= error[:, :-1]
            np.add.at(drift, (tails, of[:, None]), error)
        rounded: Array = self.down + up.transpose(2, 0, 1)
        return rounded


def _among(planned: Array, need: Array, usable: Array) -> Array:
    """Return the share of every slot in what a place needs; where the flow does not come, a stay, or the first slot."""
    share = np.where(usable, planned, 0.0)
    total = share[0].copy()
    for row in share[1:]:
        total += row
    among = share / np.where(total > 0, total, 1.0)
    place = np.nonzero((need > 0) & (total <= 0))
    slot = np.where(usable[-1], len(usable) - 1, usable.argmax(axis=0))
    among[(slot[place], *place)] = 1.0
    return among


def unit_paths(unrolled: Unrolled, units: Array, parts: int) -> UnitPaths:
    """Return paths that together are the flow ``units``, without those of their loops that come back to a node."""
    nodes, columns = unrolled.wanted.shape
    tails = np.concatenate([unrolled.tails, np.arange(nodes)[None]])
    target, source = np.nonzero(unrolled.wanted > 0)
    rows = np.stack([target, source, target], axis=1)  # and later the nodes and slots of the steps before
    amount = np.rint(unrolled.wanted[target, source] * parts).astype(np.int64)
    for step in reversed(range(unrolled.steps)):
        place = rows[:, -1] * columns + rows[:, 1]
        order = np.lexsort((rows[:, 0], place))
        # all places in a line, in each its units in order: paths and slots both divide that line
        offered = units[step].transpose(1, 2, 0).reshape(nodes * columns, -1)[np.unique(place)]
        ends, cuts = np.cumsum(amount[order]), np.cumsum(offered.ravel())
        both = np.unique(np.concatenate([ends, cuts[cuts > 0]]))
        rows = rows[order][np.searchsorted(ends, both)]
        slot = np.searchsorted(cuts, both) % offered.shape[1]
        amount = np.diff(both, prepend=0)
        rows = np.concatenate([rows, np.stack([slot, tails[slot, rows[:, -1]]], axis=1)], axis=1)
    visited, slots = _without_loops(rows[:, 2::2][:, ::-1].copy(), rows[:, 3::2][:, ::-1].copy(), unrolled.slots)
    return UnitPaths(rows[:, 1], rows[:, 0], slots, visited, amount)


def _without_loops(nodes: Array, slots: Array, stay: int) -> tuple[Array, Array]:
    """Return paths that wait where they would leave a node and come back."""
    steps = slots.shape[1]
    for first in range(steps):
        for last in range(steps, first, -1):
            loop = (nodes[:, first] == nodes[:, last]) & (slots[:, first:last] != stay).any(axis=1)
            if loop.any():
                slots[loop, first:last] = stay
                nodes[loop, first:last] = nodes[loop, first, None]
    return nodes, slots
