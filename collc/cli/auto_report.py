"""The report on a choice of ``auto``, for ``cost`` and ``compile``, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ..messages.quantities import show_size, show_time
from .table import table

if TYPE_CHECKING:
    from ..selection import Choice, Interval, Measured

__all__ = ["choice_object", "choice_text"]


def choice_object(choice: Choice | None) -> dict[str, object]:
    """Return ``{"auto": ..}``: the ranges, the candidates' times at their ends, the skipped schedulers; empty for None.

    Sizes are bytes, both ends included; ``max_bytes`` is null if there is no end. ``crossing`` is the exact size, a
    rational string, at which a range's algorithm takes as long as the one before.
    """
    if choice is None:
        return {}
    best = {one.best for one in choice.intervals}
    return {
        "auto": {
            "sizes_from": choice.reason,
            "ranges": [_interval_object(one) for one in choice.intervals],
            "candidates": [
                {
                    "algorithm": one.algorithm.name, "using": one.algorithm.text, "steps": one.steps,
                    "chosen": one in best, "points": [_point(one, size) for size in choice.ends],
                }
                for one in choice.candidates
            ],
            "skipped": [{"algorithm": one.name, "reason": one.reason} for one in choice.skipped],
            "assumed": list(choice.assumed),
        }
    }  # fmt: skip


def _interval_object(one: Interval) -> dict[str, object]:
    return {
        "min_bytes": one.low, "max_bytes": one.high, "algorithm": one.algorithm.name, "using": one.algorithm.text,
        "crossing": None if one.crossing is None else str(one.crossing),
        "crossing_float": None if one.crossing is None else float(one.crossing),
        "points": [_point(one.best, size) for size in (one.low, one.high) if size is not None],
    }  # fmt: skip


def _point(one: Measured, size: int) -> dict[str, object]:
    time = one.times.at(size)
    return {"size_bytes": size, "time_us": float(time * 10**6), "time_s": str(time)}


def choice_text(choice: Choice, detailed: bool) -> str:
    """Return the report as text: the choice for each size and, if ``detailed``, the times of the others."""
    text = _ranges(choice) if choice.ranged else _one(choice)
    if detailed:
        text += _candidates(choice)
        text += "".join(f"    skipped {one.name}: {one.reason}\n" for one in choice.skipped)
    return text


def _one(choice: Choice) -> str:
    interval = choice.intervals[0]
    size = f"{show_size(interval.low)} ({choice.reason})"
    count = len(choice.candidates)
    if count == 1:
        return f"  auto: {interval.algorithm.name}, the only candidate, for {size}\n"
    beaten, ratio = min(_slower(choice), key=lambda pair: pair[1])
    return (
        f"  auto: {interval.algorithm.name}, the fastest of {count} at {size}; "
        f"{beaten.algorithm.name} takes {_times(ratio)}\n"
    )


def _slower(choice: Choice) -> Iterator[tuple[Measured, Fraction]]:
    """Yield the candidates chosen for no size, each with its smallest time relative to the best."""
    best = {one.best for one in choice.intervals}
    for one in choice.candidates:
        if one not in best:
            yield one, _least_ratio(choice, one)


def _least_ratio(choice: Choice, one: Measured) -> Fraction:
    found = []
    for interval in choice.intervals:
        for size in (interval.low, interval.high):
            if size is not None and (base := interval.best.times.at(size)):
                found.append(one.times.at(size) / base)
    return min(found, default=Fraction(1))


def _times(ratio: Fraction) -> str:
    return "as long" if ratio == 1 else f"{max(float(ratio), 1.001):.3f} times as long"


def _ranges(choice: Choice) -> str:
    rows: list[Sequence[str]] = []
    for one in choice.intervals:
        high = "" if one.high is None else show_size(one.high)
        last = "" if one.high is None else show_time(float(one.best.times.at(one.high)))
        crossing = "" if one.crossing is None else f"meet at {_exact(one.crossing)}"
        first = show_time(float(one.best.times.at(one.low)))
        rows.append((show_size(one.low), high, one.algorithm.name, first, last, crossing))
    head = ("from", "to", "algorithm", "takes", "to", "")
    count = len(choice.candidates)
    return f"  auto: the fastest of {count} by size\n" + table(rows, head=head, right=(0, 1, 3, 4), indent="    ")


def _exact(size: Fraction) -> str:
    return f"{size} B" if size.denominator == 1 else f"{size} B ({float(size):.1f})"


def _candidates(choice: Choice) -> str:
    """Return the relative time of the best candidate of every other scheduler; JSON has all."""
    seen, rows = {one.best.algorithm.scheduler for one in choice.intervals}, list[Sequence[str]]()
    for one, ratio in sorted(_slower(choice), key=lambda pair: pair[1]):
        if one.algorithm.scheduler not in seen:
            seen.add(one.algorithm.scheduler)
            at_best = f"{_times(ratio)}{' at best' if choice.ranged else ''}"
            rows.append((one.algorithm.text, f"{one.steps} steps", at_best))
    return table(rows, indent="    ")
