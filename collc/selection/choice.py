"""The choice of ``auto`` with its reasons, as plain data for reports."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.ir.shown import brief_fields

from ..tables.columns import Cell, Table, require_table, with_floats
from .algorithm import Algorithm
from .times import Times

if TYPE_CHECKING:
    import pandas

__all__ = ["Choice", "Interval", "Measured", "Skipped", "candidate_rows", "range_rows", "skipped_rows"]


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

    def table(self, name: str = "auto") -> Table:
        """Return the ranges of sizes (``auto``), the ``candidates`` at their ends, or what was ``skipped``."""
        from ..tables import further

        known = {
            "auto": (further.RANGES, range_rows), "candidates": (further.CANDIDATES, candidate_rows),
            "skipped": (further.SKIPPED, skipped_rows),
        }  # fmt: skip
        columns, rows = known[require_table(name, known)]
        return Table([column for column in columns if column.key != "name"], list(rows("", self)))

    def _repr_html_(self) -> str:
        """Return the ranges of sizes as a table, for notebooks."""
        return self.table()._repr_html_()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the ranges of sizes as a data frame of pandas; raise C0028 without pandas."""
        return self.table().to_dataframe()

    def at(self, size: int) -> Fraction:
        """Return the seconds of the algorithm that is chosen at a size of the range."""
        return next(one for one in self.intervals if one.high is None or size <= one.high).best.times.at(size)


def range_rows(name: str, choice: Choice) -> Iterator[dict[str, Cell]]:
    """Yield the ranges of sizes (bytes, both ends included) with the fastest algorithm; times are in microseconds."""
    for one in choice.intervals:
        first, last = one.best.times.at(one.low), None if one.high is None else one.best.times.at(one.high)
        yield with_floats({
            "name": name, "min_bytes": one.low, "max_bytes": one.high, "algorithm": one.algorithm.name,
            "using": one.algorithm.text, "first_us": float(first * 10**6),
            "last_us": None if last is None else float(last * 10**6), "crossing": one.crossing,
        })  # fmt: skip


def candidate_rows(name: str, choice: Choice) -> Iterator[dict[str, Cell]]:
    """Yield every candidate at every end of a range."""
    best = {one.best for one in choice.intervals}
    for one in choice.candidates:
        for size in choice.ends:
            time = one.times.at(size)
            yield {
                "name": name, "algorithm": one.algorithm.name, "using": one.algorithm.text, "steps": one.steps,
                "chosen": one in best, "size_bytes": size, "time_us": float(time * 10**6), "time_s": time,
            }  # fmt: skip


def skipped_rows(name: str, choice: Choice) -> Iterator[dict[str, Cell]]:
    """Yield what was not compared, and why."""
    for one in choice.skipped:
        yield {"name": name, "algorithm": one.name, "reason": one.reason}


def show(size: int) -> str:
    """Return a size for a name: in the largest binary unit that divides it.

    >>> show(65536), show(38261)
    ('64KiB', '38261B')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{unit}"
    return f"{size}B"
