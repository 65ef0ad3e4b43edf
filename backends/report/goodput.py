"""Goodput by size: a curve for every algorithm that was compared, the least time as a line, and the crossovers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from collc.ir.account import Account
from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.cost import predicted_time
from collc.ir.costs.least import least_time

from .numbers import Json, decimal

__all__ = ["goodput_of", "seconds_at"]


def goodput_of(account: Account) -> dict[str, Json]:
    """Return the curves in bytes of M per second at the sizes of the account; ``bus`` is the factor of busbw.

    ``crossings`` are the first sizes at which another algorithm is the fastest.
    """
    sizes, first = account.sizes, account.algorithms[0]
    curves = account.contenders
    factor = bus_factor_of(first.schedule.collective)
    least = [least_time(account.at(size).cost, account.topology, size) for size in sizes]
    return {
        "sizes": list(sizes), "bus": None if factor is None else decimal(factor),
        "curves": [
            {"name": one.name, "text": one.text, "chosen": one.chosen, "rate": _rates(sizes, one.seconds)}
            for one in curves
        ],
        "bound": _rates(sizes, least), "crossings": _crossings(sizes, [one.seconds for one in curves]),
        "skipped": [[name, reason] for name, reason in account.skipped],
    }  # fmt: skip


def seconds_at(account: Account, size: int) -> Fraction:
    """Return the exact seconds of the schedule that serves a size."""
    return predicted_time(account.at(size).cost, size)


def _rates(sizes: Sequence[int], seconds: Sequence[Fraction]) -> list[Json]:
    return [decimal(size / time) if time else None for size, time in zip(sizes, seconds, strict=True)]


def _crossings(sizes: Sequence[int], times: Sequence[Sequence[Fraction]]) -> list[Json]:
    """Return pairs: a size, and the number of the curve that is the fastest from there on."""
    found: list[Json] = []
    before = None
    for at, size in enumerate(sizes):
        best = min(range(len(times)), key=lambda one: times[one][at])
        if before is not None and times[best][at] < times[before][at]:
            found.append([size, best])
            before = best
        before = best if before is None else before
    return found
