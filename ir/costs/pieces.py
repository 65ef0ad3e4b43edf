"""The best number of pieces of pipelined trees: many pieces cost latency, few leave links idle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np

from ..schedule import Forest
from ..symmetric_forest import SymmetricForest
from .cost import DEFAULT_ALPHA, time_of_rounds, unit_seconds
from .rounds import Loads, loads

__all__ = ["MOST_PIECES", "USUAL_SIZE", "best_pieces", "fastest_pieces", "pieces_that_fit"]

#: default of the most pieces: schedules grow with them, and runtimes divide large messages anyway
MOST_PIECES = 1024
#: assumed size of a collective without a size, in bytes; at this size both steps and bandwidth matter
USUAL_SIZE = 1 << 20
#: chunks of a shard that the pass discretize makes by default
_MOST_CHUNKS = 1 << 12
#: chunks of a tree's share of a piece that are enough if shards differ in size
_CHUNKS_OF_A_SHARE = 2
#: a denominator is large if it is this many times the chunks that are enough
_LARGE = 8


def best_pieces(
    forest: Forest | SymmetricForest,
    size: int | None = None,
    alpha: Fraction | None = None,
    bandwidth: Fraction | None = None,
    most: int = MOST_PIECES,
    gamma: Fraction | None = None,
    amount: Loads | None = None,
) -> int:
    """Return the number of pieces (1 to ``most``) with the least predicted time of a well-formed forest.

    ``size`` is M in bytes (default: the collective's own, otherwise 1 MiB); ``alpha`` (seconds), ``bandwidth`` and
    ``gamma`` are as in :func:`~.cost.predict`. With D = ``sum(heights)``, alpha a round, L the time of the busiest link
    and F that of the 2 (D - 1) rounds in which the pipe fills and drains, were pieces whole, P >= D pieces take

        (D + P - 1) alpha + ((P - D + 1) L + F) / P = (D - 1 + P) alpha + L + (F - (D - 1) L) / P,

    least at P = sqrt((F - (D - 1) L) / alpha); F is between (D - 1) L, if every step loads the busiest link equally and
    pieces gain nothing, and 2 (D - 1) L, if one step carries all its load: then P = sqrt((D - 1) L / alpha). This and
    numbers all over the range are tried, then all those next to the best of them; the fewest of equals are taken.
    ``amount`` are the forest's loads, if they are known.
    """
    return fastest_pieces(forest, size, alpha, bandwidth, most, gamma, amount=amount)[1]


def fastest_pieces(
    forest: Forest | SymmetricForest,
    size: int | None = None,
    alpha: Fraction | None = None,
    bandwidth: Fraction | None = None,
    most: int = MOST_PIECES,
    gamma: Fraction | None = None,
    among: Sequence[int] | None = None,
    amount: Loads | None = None,
) -> tuple[Fraction, int]:
    """Return the least seconds of the rounds of a forest, and the number of pieces of :func:`best_pieces` for them.

    ``among`` are the numbers to compare, if not all; ``amount`` are the forest's loads, if they are known.
    """
    amount = amount or loads(forest)
    topology = forest.topology
    vector = forest.collective.size if size is None else size
    share = Fraction(USUAL_SIZE if vector is None else vector, forest.vector)
    scale = share * unit_seconds(topology, bandwidth)
    if alpha is None and not any(kind.latency for kind in topology.classes):
        alpha = DEFAULT_ALPHA
    adding = share * (topology.gamma if gamma is None else gamma)

    @cache
    def time(pieces: int) -> Fraction:
        steps = time_of_rounds(amount.rounds(pieces), scale / pieces, alpha)
        return steps + (adding * amount.reduced(pieces) / pieces if adding else 0)

    def best(among: Iterable[int]) -> int:
        return min(among, key=lambda pieces: (time(pieces), pieces))

    if among is None and (amount.steps <= 1 or most <= 1):
        among = (1,)
    if among is None:
        tried = sorted({*_ladder(most), *(p for p in _least(amount, scale, alpha) if p <= most)})
        place = tried.index(best(tried))
        among = range(tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)] + 1)
    found = best(among)
    return time(found), found


def pieces_that_fit(forest: Forest | SymmetricForest) -> int:
    """Return the most pieces of a forest whose chunks the pass discretize makes by default.

    Shares of shards that differ in size have large denominators, and so have a few shares of links that fail: they are
    rounded to chunks. There most shares of a piece keep some chunks.
    """
    few = _trees_of_a_shard(forest) * _CHUNKS_OF_A_SHARE
    if forest.collective.weights is None and forest.parts <= _LARGE * few:
        return max(_MOST_CHUNKS // forest.parts, 1)
    return max(_MOST_CHUNKS // min(forest.parts, few), 1)


def _trees_of_a_shard(forest: Forest | SymmetricForest) -> int:
    """Return the most trees that carry a shard; of the whole vector, the trees that carry a shard on average."""
    if forest.whole and forest.collective.kind == "allreduce":
        return forest.num_trees // forest.collective.num_ranks + 1
    root = forest.root if isinstance(forest, Forest) else forest.seed.root
    return int(np.bincount(root).max(initial=1))


def _ladder(most: int) -> list[int]:
    """Return numbers from 1 to ``most``, each about an eighth more than the one before."""
    found = [1]
    while found[-1] < most:
        found.append(min(found[-1] + max(found[-1] // 8, 1), most))
    return found


def _least(amount: Loads, scale: Fraction, alpha: Fraction | None) -> tuple[int, int]:
    """Return the integers next to the formula's minimum, with the largest latency of any round."""
    rounds = amount.rounds(amount.steps)
    middle = amount.steps - 1
    per = [pairs[-1][1] if pairs else Fraction(0) for _, pairs in rounds]
    gain = sum(per, Fraction(0)) - (middle + 1) * per[middle]
    latency = alpha if alpha is not None else max((pairs[0][0] for _, pairs in rounds if pairs), default=Fraction(0))
    if latency <= 0:
        return 1, MOST_PIECES
    root = isqrt(max(int(gain * scale / latency), 0))
    return max(root, 1), root + 1
