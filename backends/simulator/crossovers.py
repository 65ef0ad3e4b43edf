"""Which of several schedules is fastest at which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from .model import Simulation

__all__ = ["Crossover", "crossovers"]


@attrs.frozen
class Crossover:
    """From ``size`` bytes on, schedule number ``to`` is the fastest; below, schedule number ``before`` is."""

    size: int
    before: int
    to: int


def crossovers(simulations: Sequence[Simulation], sizes: Sequence[int]) -> tuple[Crossover, ...]:
    """Return where the fastest schedule changes between the least and the greatest of ``sizes``, to the byte.

    Bisection finds the change between two neighbouring sizes with different fastest schedules. It can miss a schedule
    that is fastest only somewhere between two sizes. Of equally fast schedules the first counts. Schedules of different
    collectives or numbers of ranks have no crossovers.
    """
    if len({(one.traffic.collective.kind, one.traffic.collective.num_ranks) for one in simulations}) > 1:
        return ()
    found, ends = list[Crossover](), sorted(set(sizes))
    for low, high in pairwise(ends):
        size, last = low, _fastest(simulations, high)
        while (fastest := _fastest(simulations, size)) != last:
            end = high
            while end - size > 1:
                middle = (size + end) // 2
                size, end = (middle, end) if _fastest(simulations, middle) == fastest else (size, middle)
            size = end
            found.append(Crossover(size, fastest, _fastest(simulations, size)))
    return tuple(found)


def _fastest(simulations: Sequence[Simulation], size: int) -> int:
    times = [one.time(size) for one in simulations]
    return times.index(min(times))
