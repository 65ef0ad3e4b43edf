"""Which of several schedules is fastest at which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import attrs

from .traffic import Traffic

__all__ = ["Crossover", "Timed", "crossovers"]


class Timed(Protocol):
    """A simulation, or several of one collective at different sizes."""

    @property
    def traffic(self) -> Traffic:
        """The messages, for their collective."""

    def time(self, size: int) -> Fraction:
        """Return the exact seconds for M of ``size`` bytes."""


@attrs.frozen
class Crossover:
    """From ``size`` bytes on, schedule number ``to`` is the fastest; below, schedule number ``before`` is."""

    size: int
    before: int
    to: int


def crossovers(simulations: Sequence[Timed], sizes: Sequence[int]) -> tuple[Crossover, ...]:
    """Return where the fastest schedule changes between the least and the greatest of ``sizes``, to the byte.

    Bisection finds the change between two neighbouring sizes with different fastest schedules. It can miss a schedule
    that is fastest only somewhere between two sizes. Of equally fast schedules the first counts. Schedules of different
    collectives or numbers of ranks have no crossovers.
    """
    if len({(one.traffic.collective.name, one.traffic.collective.num_ranks) for one in simulations}) > 1:
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


def _fastest(simulations: Sequence[Timed], size: int) -> int:
    times = [one.time(size) for one in simulations]
    return times.index(min(times))
