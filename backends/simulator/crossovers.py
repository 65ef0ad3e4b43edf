"""Which of several schedules is fastest at which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from .model import Simulation

__all__ = ["Crossover", "crossovers"]


@attrs.frozen
class Crossover:
    """From ``size`` bytes on, schedule number ``to`` takes the least time, where ``before`` took it until then."""

    size: int
    before: int
    to: int


def crossovers(simulations: Sequence[Simulation], sizes: Sequence[int]) -> tuple[Crossover, ...]:
    """Return where the fastest schedule changes between the least and the greatest of ``sizes``, to the byte.

    Between two neighbouring sizes with different fastest schedules the change is found by halving; one that is fastest
    only somewhere between two sizes may be missed. Of equally fast schedules the first counts. Schedules of different
    collectives, or of different numbers of ranks, are not compared: there are no crossovers then.
    """
    if len({(one.traffic.collective.kind, one.traffic.collective.num_ranks) for one in simulations}) > 1:
        return ()
    found, ends = list[Crossover](), sorted(set(sizes))
    for low, high in pairwise(ends):
        at, last = low, _fastest(simulations, high)
        while (now := _fastest(simulations, at)) != last:
            end = high
            while end - at > 1:
                middle = (at + end) // 2
                at, end = (middle, end) if _fastest(simulations, middle) == now else (at, middle)
            at = end
            found.append(Crossover(at, now, _fastest(simulations, at)))
    return tuple(found)


def _fastest(simulations: Sequence[Simulation], size: int) -> int:
    times = [one.time(size) for one in simulations]
    return times.index(min(times))
