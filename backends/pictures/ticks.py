"""Round values along an axis: multiples of 1, 2 and 5, and powers. Exact."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, log2

__all__ = ["floor_log", "linear_ticks", "log", "log_ticks"]

Ticks = list[Fraction]
#: the largest number of ticks of an axis
MOST = 41


def log(value: Fraction, base: int) -> float:
    """Return the logarithm of a positive number that may be larger or smaller than any float."""
    return (log2(value.numerator) - log2(value.denominator)) / log2(base)


def floor_log(value: Fraction, base: int) -> int:
    """Return the largest power of the base that is not more than a positive number, exactly.

    >>> floor_log(Fraction(1000), 10), floor_log(Fraction(999, 1000), 10)
    (3, -1)
    """
    power = floor(log(value, base)) + 1
    while _power(base, power) > value:
        power -= 1
    return power


def _power(base: int, power: int) -> Fraction:
    return Fraction(base) ** power


def linear_ticks(low: Fraction, high: Fraction, whole: bool = False) -> Iterator[Ticks]:
    """Yield multiples of 1, 2 or 5 times a power of ten from low to high, low < high: 11 or fewer, then always fewer.

    With ``whole`` they are integers.

    >>> [len(ticks) for ticks in linear_ticks(Fraction(0), Fraction(1))]
    [11, 6, 3, 2, 1]
    """
    power = floor_log((high - low) / 10, 10)
    power = max(power, 0) if whole else power
    steps = (base * _power(10, power + i // 3) for i, base in enumerate((1, 2, 5) * 4))
    for step in steps:
        first, last = ceil(low / step), floor(high / step)
        if last - first <= 10:
            yield [k * step for k in range(first, last + 1)]
            if last <= first:
                return


def log_ticks(low: Fraction, high: Fraction, base: int) -> Iterator[Ticks]:
    """Yield powers of the base from low to high, 0 < low < high, then every second of them, every third, and so on.

    Base 10 begins with 1, 2 and 5 times the powers. Where there are not two of any, ticks are those of
    :func:`linear_ticks`.

    >>> [len(ticks) for ticks in log_ticks(Fraction(1), Fraction(16), 2)]
    [5, 3, 2, 2, 1]
    """
    first, last = -floor_log(1 / low, base), floor_log(high, base)
    choices = [*_in_between(low, high, base), *_every(range(first, last + 1), base)]
    if any(len(ticks) > 1 for ticks in choices):
        yield from choices
    else:
        yield from linear_ticks(low, high)


def _in_between(low: Fraction, high: Fraction, base: int) -> Iterator[Ticks]:
    if base == 10:
        powers = range(floor_log(low, 10), floor_log(high, 10) + 1)
        if len(powers) <= MOST // 3:
            ticks = [digit * _power(10, power) for power in powers for digit in (1, 2, 5)]
            yield [tick for tick in ticks if low <= tick <= high]


def _every(powers: range, base: int) -> Iterator[Ticks]:
    for step in range(max(1, len(powers) // MOST), len(powers) + 1):
        yield [_power(base, power) for power in powers[::step]]
