"""The choice of ``auto`` with its reasons, as plain data for reports."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.shown import brief_fields

from .algorithm import Algorithm
from .times import Times

__all__ = ["Choice", "Interval", "Measured", "Skipped"]


@attrs.frozen
class Measured:
    """A candidate, its time for every size, and its number of steps."""

    algorithm: Algorithm
    times: Times
    steps: int

    __repr__ = brief_fields


@attrs.frozen
class Skipped:
    """A candidate that was not compared or cannot be used, with the reason."""

    name: str
    reason: str

    __repr__ = brief_fields


@attrs.frozen
class Interval:
    """From ``low`` to ``high`` bytes (both included; None: no limit) an algorithm is the fastest.

    ``crossing`` is the exact size, between ``low - 1`` and ``low``, at which it takes as long as the algorithm before.
    """

    low: int
    high: int | None
    best: Measured
    crossing: Fraction | None = None

    __repr__ = brief_fields

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm that is the fastest in the interval."""
        return self.best.algorithm

    @property
    def label(self) -> str:
        """Its part of the names of files: the algorithm and its sizes."""
        high = "up" if self.high is None else show(self.high)
        return f"{self.algorithm.name}-{show(self.low)}-{high}"


@attrs.frozen
class Choice:
    """The fastest of ``candidates`` at each size of ``intervals``, which follow each other.

    ``reason`` names the source of the sizes. With ``ranged``, the user gave a range, and every interval gets a file.
    """

    ranged: bool
    reason: str
    intervals: tuple[Interval, ...]
    candidates: tuple[Measured, ...]
    skipped: tuple[Skipped, ...]
    assumed: tuple[str, ...] = ()

    __repr__ = brief_fields

    @property
    def ends(self) -> tuple[int, ...]:
        """The sizes at which candidates are compared in reports: both ends of every interval, ascending."""
        found = {one.low for one in self.intervals} | {one.high for one in self.intervals if one.high is not None}
        return tuple(sorted(found))

    def at(self, size: int) -> Fraction:
        """Return the seconds of the algorithm that is chosen at a size of the range."""
        return next(one for one in self.intervals if one.high is None or size <= one.high).best.times.at(size)


def show(size: int) -> str:
    """Return a size for a name: in the largest binary unit that divides it.

    >>> show(65536), show(38261)
    ('64KiB', '38261B')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{unit}"
    return f"{size}B"
