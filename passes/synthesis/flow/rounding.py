"""From a mix of timed paths to whole chunks: every shard in ``parts`` equal chunks, each on one path.

The bound. A vertex of the linear program has at most steps * (classes - 1) shares beyond one per shard. Rounding a
shard's shares down to whole chunks leaves fewer chunks than it has shares, and each goes to one of its paths. So at
most that many chunks are on a path beyond its share, and one more chunk on a path is at most one more at each step:

    time <= time of the program + steps^2 * (classes - 1) / parts

The remaining chunks go where they load the busiest links least, and move while that helps. An integer program on HiGHS
finds the best for small networks. Often no time is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil

import attrs
import numpy as np

from collc.ir.arrays import Array

from .expanded import Expanded
from .integers import choose_chunks
from .mixing import Mix

__all__ = ["MOST_PARTS", "ChunkedPaths", "excess", "round_freely", "round_mix"]

_FEW, _USUAL, MOST_PARTS = 4, 12, 64  # chunks per shard: tried first, tried by default, and the limit
_WHOLE = 1e-6
_TOLERANCE = Fraction(1, 10**6)  # of the program's time, which is a float
_PROGRAM = 1000  # paths of a mix up to which an integer program takes about a second
#: for every length of paths, the paths' numbers within their shard, and their cells as rows
_Cells = list[tuple[Array, Array]]
_STEEPNESS = (1.0, 3.0)  # of the penalty on links above their share
_SWEEPS = 20


@attrs.frozen(eq=False)
class ChunkedPaths:
    """Timed paths with the number of chunks on each, of ``parts`` per shard; ``time`` is exact."""

    expanded: Expanded
    commodity: Array
    paths: Array
    units: Array
    parts: int
    time: Fraction


def excess(expanded: Expanded, parts: int) -> Fraction:
    """Return the most by which rounding to chunks can lengthen the program's time."""
    return Fraction(expanded.steps**2 * (expanded.classes - 1), parts)


def round_mix(mix: Mix, most_parts: int, target: Fraction, thorough: bool = False) -> ChunkedPaths:
    """Return the chunks of least time, and of those the fewest per shard; ``target`` is a time that no schedule beats.

    Integer programs are solved for small networks, and with ``thorough`` for all.
    """
    return _Search(mix, target, thorough).best_of(range(1, most_parts + 1))


def round_freely(mix: Mix, target: Fraction, thorough: bool = False) -> ChunkedPaths:
    """Return the result of :func:`round_mix` for the best of at most :data:`_USUAL` chunks per shard.

    If links are equal, the busiest one carries whole chunks at every step, so only multiples of the denominator of the
    program's time can reach that time. :data:`_FEW` chunks are mostly enough; more are tried only if they are not. More
    than :data:`_USUAL` are tried only if they make the program's own shares whole chunks.
    """
    search = _Search(mix, target, thorough)
    best = search.best_of(range(1, _FEW + 1))
    return search.best_of([*range(_FEW + 1, _USUAL + 1), *_whole(mix)], best)


def _whole(mix: Mix) -> list[int]:
    """Return the least number of chunks above :data:`_USUAL` that makes every share whole, if there is one."""
    for parts in range(_USUAL + 1, MOST_PARTS + 1):
        chunks = mix.shares * parts
        if np.abs(chunks - np.rint(chunks)).max(initial=0) < _WHOLE:
            return [parts]
    return []


@attrs.frozen(eq=False)
class _Search:
    """The search for the chunks of least time, and of those the fewest per shard."""

    mix: Mix
    target: Fraction
    thorough: bool

    def best_of(self, numbers: Iterable[int], best: ChunkedPaths | None = None) -> ChunkedPaths:
        """Return the best for these numbers of chunks per shard, or ``best`` if none is better."""
        floors = sorted((self._floor(parts), parts) for parts in numbers)
        for make in self._methods():
            for floor, parts in floors:
                if best is not None and (best.time, best.parts) <= (floor, parts):
                    break
                found = make(parts)
                best = found if best is None else min(best, found, key=lambda chunks: (chunks.time, chunks.parts))
        assert best is not None
        return best

    def _methods(self) -> list[Callable[[int], ChunkedPaths]]:
        methods: list[Callable[[int], ChunkedPaths]] = [lambda parts: _guided(self.mix, parts)]
        if self.thorough or len(self.mix.shares) <= _PROGRAM:
            split, everything = (_free(self.mix, every) for every in (False, True))
            methods.append(lambda parts: _programmed(self.mix, parts, split))
            methods.append(lambda parts: _programmed(self.mix, parts, everything))
        return methods

    def _floor(self, parts: int) -> Fraction:
        """Return a lower bound on the time with ``parts`` chunks per shard: whole chunks if links are equal."""
        least = max(self.target, Fraction(self.mix.time) * (1 - _TOLERANCE))
        if set(self.mix.expanded.capacity) != {1}:
            return least
        return Fraction(ceil(least * parts), parts)


def _free(mix: Mix, everything: bool) -> Array:
    """Return the paths of shards that are split, or all."""
    split = np.ones(len(mix.expanded.commodities), dtype=bool)
    if not everything:
        split[mix.commodity[mix.shares > 1 - _WHOLE]] = False
    return np.flatnonzero(split[mix.commodity])


def _chunked_paths(mix: Mix, units: Array, parts: int) -> ChunkedPaths:
    used = np.flatnonzero(units)
    order = used[np.argsort(mix.commodity[used], kind="stable")]
    paths, units = mix.paths[order], units[order]
    time = mix.expanded.time(mix.expanded.loads(paths, units)) / parts
    return ChunkedPaths(mix.expanded, mix.commodity[order], paths, units, parts, time)


def _programmed(mix: Mix, parts: int, free: Array) -> ChunkedPaths:
    """Choose chunks for the ``free`` paths' shards by an integer program; if it fails, by :func:`_guided`."""
    units = np.where(mix.shares > 1 - _WHOLE, parts, 0)
    units[free] = 0
    found = choose_chunks(mix, free, mix.expanded.loads(mix.paths, units), parts)
    if found is None:
        return _guided(mix, parts)
    units[free] = found
    return _chunked_paths(mix, units, parts)


def _guided(mix: Mix, parts: int) -> ChunkedPaths:
    """Round split shards down and place the remaining chunks, then move chunks while the penalty falls."""
    guides = [_Guide(mix, parts, steepness) for steepness in _STEEPNESS]
    best = min((guide.run() for guide in guides), key=lambda chunks: chunks.time)
    return best


class _Guide:
    """Whole chunks of split shards, and the load of every cell with the other shares still split.

    Cells above the program's largest load of their step are penalized exponentially.
    """

    def __init__(self, mix: Mix, parts: int, steepness: float) -> None:
        self.mix, self.parts, self.steepness = mix, parts, steepness
        expanded = mix.expanded
        path, cell = expanded.uses(mix.paths)
        self.load = np.bincount(cell, weights=mix.shares[path] * parts, minlength=expanded.cells)
        capacity = np.tile([float(c) for c in expanded.capacity], expanded.steps)
        busiest = (self.load / capacity).reshape(expanded.steps, -1).max(axis=1)
        share = np.repeat(busiest, expanded.classes) * capacity
        self.penalty = self._penalty(self.load, share)
        self.units = np.where(mix.shares > 1 - _WHOLE, parts, 0)
        cells = np.split(cell, np.searchsorted(path, np.arange(1, len(mix.paths))))
        free = _free(mix, everything=False).tolist()
        self.cells = {i: (cells[i], share[cells[i]]) for i in free}
        shards: dict[int, list[int]] = {}
        for i in free:
            shards.setdefault(int(mix.commodity[i]), []).append(i)
        self.shards = [(paths, _by_length([cells[i] for i in paths])) for paths in shards.values()]

    def run(self) -> ChunkedPaths:
        for paths, cells in self.shards:
            self._round(paths, cells)
        best = _chunked_paths(self.mix, self.units, self.parts)
        for _ in range(_SWEEPS):
            if not sum(self._move(nth, *shard) for shard in self.shards for nth in range(len(shard[0]))):
                break
            chunks = _chunked_paths(self.mix, self.units, self.parts)
            best = min(best, chunks, key=lambda p: p.time)
        return best

    def _round(self, paths: list[int], cells: _Cells) -> None:
        for i in paths:
            amount = float(self.mix.shares[i]) * self.parts
            self.units[i] = int(amount + _WHOLE)
            self._load(i, self.units[i] - amount)
        for _ in range(self.parts - int(self.units[paths].sum())):
            self._add(paths[int(self._penalties(cells).argmin())], 1)

    def _move(self, nth: int, paths: list[int], cells: _Cells) -> bool:
        """Move one chunk of a path to the best path; return whether that is another one."""
        if not self.units[paths[nth]]:
            return False
        self._add(paths[nth], -1)
        penalties = self._penalties(cells)
        best = int(penalties.argmin())
        if penalties[nth] == penalties[best]:
            best = nth
        self._add(paths[best], 1)
        return best != nth

    def _add(self, path: int, chunks: int) -> None:
        self.units[path] += chunks
        self._load(path, chunks)

    def _load(self, path: int, amount: float) -> None:
        cells, share = self.cells[path]
        load = self.load.take(cells) + amount
        self.load[cells] = load
        self.penalty[cells] = self._penalty(load, share)

    def _penalty(self, load: Array, share: Array) -> Array:
        """Return the penalty of one more chunk on cells with this load."""
        above = (load - share) * self.steepness
        np.minimum(above, 50, out=above)
        return np.exp(above, out=above)

    def _penalties(self, cells: _Cells) -> Array:
        """Return the penalty of one more chunk on each path of a shard."""
        costs: list[Array] = [np.add.reduce(self.penalty.take(table), axis=1) for _, table in cells]
        if len(costs) == 1:
            return costs[0]
        found = np.empty(sum(len(nth) for nth, _ in cells))
        for (nth, _), cost in zip(cells, costs, strict=True):
            found[nth] = cost
        return found


def _by_length(cells: list[Array]) -> _Cells:
    """Return the cells of paths as a table for every length, with the paths' numbers."""
    lengths = np.array([len(row) for row in cells])
    listed = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [(nth, np.stack([cells[i] for i in nth])) for nth in listed]
