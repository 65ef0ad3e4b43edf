"""Times as exact functions of the size, and which of several is the least at every whole size.

The time of a step is that of its slowest message: a maximum of affine functions. A schedule is a sum of steps. So its
time is piecewise affine and convex, and all comparisons are between lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor

import attrs

from collc.ir.shown import brief_fields

__all__ = ["Change", "Times", "least"]

#: (seconds at size 0, seconds a byte)
Line = tuple[Fraction, Fraction]


@attrs.frozen
class Times:
    """Seconds by size in bytes: from ``start[i]`` on, ``base[i] + slope[i] * size``; ``start[0]`` is 0."""

    start: tuple[Fraction, ...]
    base: tuple[Fraction, ...]
    slope: tuple[Fraction, ...]

    __repr__ = brief_fields

    def at(self, size: Fraction | int) -> Fraction:
        """Return the seconds at a size."""
        base, slope = self.line(size)
        return base + slope * size

    def line(self, size: Fraction | int) -> Line:
        """Return the line that holds from a size on, up to the next breakpoint."""
        piece = bisect_right(self.start, size) - 1
        return self.base[piece], self.slope[piece]

    def after(self, size: Fraction | int) -> Fraction | None:
        """Return the first breakpoint beyond a size, if there is one."""
        piece = bisect_right(self.start, size)
        return self.start[piece] if piece < len(self.start) else None

    @classmethod
    def of_steps(cls, steps: Iterable[tuple[int, Sequence[Line]]]) -> Times:
        """Return the time of steps: (repetitions, (latency, seconds a byte) of each message that may be the slowest).

        >>> Times.of_steps([(2, [(Fraction(3), Fraction(1)), (Fraction(1), Fraction(2))])]).at(5)
        Fraction(22, 1)
        """
        base, slope = Fraction(0), Fraction(0)
        changes: dict[Fraction, list[Fraction]] = {}
        for times, pairs in steps:
            upper = _upper(pairs)
            if not upper:
                continue
            (_, (a, b)), *rest = upper
            base, slope = base + times * a, slope + times * b
            for where, (next_a, next_b) in rest:
                change = changes.setdefault(where, [Fraction(0), Fraction(0)])
                change[0] += times * (next_a - a)
                change[1] += times * (next_b - b)
                a, b = next_a, next_b
        starts, bases, slopes = [Fraction(0)], [base], [slope]
        for where in sorted(changes):
            starts.append(where)
            bases.append(bases[-1] + changes[where][0])
            slopes.append(slopes[-1] + changes[where][1])
        return cls(tuple(starts), tuple(bases), tuple(slopes))


def _upper(lines: Sequence[Line]) -> list[tuple[Fraction, Line]]:
    """Return the greatest of the lines for sizes from 0 on: (from where on, line), ascending."""
    found: list[tuple[Fraction, Line]] = []
    for base, slope in sorted(lines, key=lambda line: (line[1], line[0])):
        begin = Fraction(0)
        while found:
            where, (a, b) = found[-1]
            if slope == b:  # not less at 0, by the order
                found.pop()
                continue
            begin = max((a - base) / (slope - b), Fraction(0))
            if begin > where:
                break
            found.pop()
            begin = Fraction(0)
        found.append((begin, (base, slope)))
    return found


@attrs.frozen
class Change:
    """From ``size`` on ``winner`` is the least; ``crossing`` is where it meets the winner before, if there was one."""

    size: int
    winner: int
    crossing: Fraction | None = None


def least(times: Sequence[Times], low: int, high: int | None) -> tuple[Change, ...]:
    """Return which function is the least at every whole size of ``low`` to ``high`` (None: no limit).

    The first of equal functions wins. Between two changes the winner stays the same; the first change is at ``low``.
    """
    winner = _winner(times, low)
    found = [Change(low, winner)]
    at = low
    while True:
        end = _stretch(times, at)
        limit = floor(end) if end is not None else None  # lines hold up to here, the end included
        last = limit if high is None else high if limit is None else min(limit, high)
        size = _first_better(times, winner, at, last)
        if size is None and (last is None or last == high):
            return tuple(found)
        at = last + 1 if size is None else size  # type: ignore[operator]  # there is a last where no size was found
        if (now := _winner(times, at)) != winner:
            found.append(Change(at, now, _meeting(times[winner], times[now], at - 1, at)))
            winner = now


def _winner(times: Sequence[Times], size: int) -> int:
    values = [one.at(size) for one in times]
    return values.index(min(values))


def _stretch(times: Sequence[Times], size: int) -> Fraction | None:
    """Return the end of the lines that all functions have at a size; None: no end."""
    ends = [end for one in times if (end := one.after(size)) is not None]
    return min(ends, default=None)


def _first_better(times: Sequence[Times], winner: int, at: int, last: int | None) -> int | None:
    """Return the first whole size after ``at``, up to ``last``, at which the winner is another, if there is one."""
    base, slope = times[winner].line(at)
    best: int | None = None
    for number, one in enumerate(times):
        other_base, other_slope = one.line(at)
        if other_slope >= slope:
            continue
        meeting = (other_base - base) / (slope - other_slope)
        # The winner keeps what it shares with those after it, and loses it to those before it.
        size = max(ceil(meeting) if number < winner else floor(meeting) + 1, at + 1)
        if (last is None or size <= last) and (best is None or size < best):
            best = size
    return best


def _meeting(old: Times, new: Times, before: int, after: int) -> Fraction:
    """Return where two functions meet between two whole sizes that follow each other, across a breakpoint."""
    at: Fraction | int = before
    while True:
        end = min((e for e in (old.after(at), new.after(at)) if e is not None), default=Fraction(after))
        end = min(end, Fraction(after))
        (a, b), (c, d) = old.line(at), new.line(at)
        if new.at(end) <= old.at(end):
            return min(max((c - a) / (b - d), Fraction(at)), end) if b > d else Fraction(at)
        at = end
