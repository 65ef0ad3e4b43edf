"""All-to-all on networks without a group: flows that learn on the unrolled network, then whole chunks of them.

One flow for each source, in place of a path for each shard: so an all-to-all on 128 ranks takes seconds, and comes
within a hundredth of the least time of LP (3).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array, fit

from .expanded import Expanded
from .learning import Learned, learn_flows
from .rounding import MOST_PARTS, ChunkedPaths
from .units import WEIGHTS, UnitPaths, unit_paths, whole_units
from .unrolled import Unrolled

__all__ = ["learned_chunks"]

#: rounds, and the most of their number times the entries of a flow; larger networks have too few rounds
_ROUNDS, _MOST_WORK, _LEAST_ROUNDS = 600, 1 << 30, 128
_DONE, _HOPELESS = Fraction(1, 400), Fraction(1, 100)  # above the target: near enough, and too far for so few steps
_CLOSE = Fraction(1, 200)  # fewer steps, and only shortest routes, are worth so much time
_LOSS = Fraction(9, 1000)  # fewer chunks are worth so much time
_PARTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, MOST_PARTS)
_MANY = 33  # chunks from which all numbers are tried where those lose more


def learned_chunks(expanded: Expanded, steps: Iterable[int], target: Fraction, most_parts: int) -> ChunkedPaths | None:
    """Return the chunks of the best flows in one of these numbers of ``steps``, ascending, or None if it is too large.

    ``expanded`` has every rank as a source. ``target``: a time that none beats, or nearly so.
    """
    best: tuple[Unrolled, Learned] | None = None
    for number in steps:
        unrolled = _unrolled(expanded, number)
        if unrolled is None:
            break
        for one in (unrolled.on_shortest_routes(), unrolled):
            learned = learn_flows(one, _rounds(one), _Goal(float(target)), by_step=True)
            if best is None or learned.time * (1 + _CLOSE) < best[1].time:
                best = one, learned
            if learned.time <= target * (1 + _CLOSE):
                return _rounded(expanded, *best, most_parts)
        if learned.least <= target * (1 + _CLOSE):
            break  # no proof that more steps would be faster
    return None if best is None else _rounded(expanded, *best, most_parts)


def _unrolled(expanded: Expanded, steps: int) -> Unrolled | None:
    sources = expanded.sources
    if Unrolled.size_of(expanded.network, len(sources), steps) * _LEAST_ROUNDS > _MOST_WORK:
        return None
    capacity = np.array([float(c) for c in expanded.capacity])
    return Unrolled.of(
        expanded.network, sources, expanded.count, np.ones((1, 1)), expanded.link_class, capacity,
        expanded.hops[sources].T, steps,
    )  # fmt: skip


def _rounds(unrolled: Unrolled) -> int:
    return min(_ROUNDS, _MOST_WORK // unrolled.open.size)


@attrs.frozen
class _Goal:
    """Whether learning may end, given the proved least time and the reached one."""

    target: float

    def __call__(self, least: float, time: float) -> bool:
        return time <= self.target * (1 + float(_DONE)) or least > self.target * (1 + float(_HOPELESS))


def _rounded(expanded: Expanded, unrolled: Unrolled, learned: Learned, most_parts: int) -> ChunkedPaths:
    """Return the chunks of fewest parts that lose little; if all lose more, those of least time."""
    many = [parts for parts in range(_MANY, MOST_PARTS) if parts not in _PARTS]
    best: tuple[Fraction, int, Array] | None = None
    for parts in (parts for parts in (*_PARTS, *many) if parts <= most_parts):
        for weights in WEIGHTS:
            units = whole_units(unrolled, learned.flow, parts, weights)
            time = _time(expanded, unrolled, units) / parts
            if best is None or time < best[0]:
                best = time, parts, units
        if best is not None and best[0] <= learned.time * (1 + _LOSS):
            break
    assert best is not None, "one part is always tried"
    _, parts, units = best
    return _chunked(attrs.evolve(expanded, steps=unrolled.steps), unit_paths(unrolled, units, parts), parts)


def _time(expanded: Expanded, unrolled: Unrolled, units: Array) -> Fraction:
    loads = unrolled.loads(units.astype(np.float64)).astype(np.int64)
    return attrs.evolve(expanded, steps=unrolled.steps).time(loads)


def _chunked(expanded: Expanded, found: UnitPaths, parts: int) -> ChunkedPaths:
    """Return the paths by shard, equal ones joined."""
    links = np.concatenate([expanded.network.links, np.full((len(expanded.network.links), 1), -1)], axis=1)
    paths = links[found.nodes[:, 1:], found.slots].astype(fit(-1, expanded.num_links))
    shard = found.source * expanded.network.num_nodes + found.target
    rows, which = np.unique(np.concatenate([shard[:, None], paths], axis=1), axis=0, return_inverse=True)
    units = np.bincount(which.ravel(), weights=found.units, minlength=len(rows)).astype(np.int64)
    commodity = np.unique(rows[:, 0], return_inverse=True)[1]
    paths = rows[:, 1:].astype(paths.dtype)
    time = expanded.time(expanded.loads(paths, units)) / parts
    return ChunkedPaths(expanded, commodity, paths, units, parts, time)
