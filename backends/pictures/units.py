"""Units of axes: bytes, seconds, bandwidth. Values are in the first power: bytes, seconds, bytes per second."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.quantities import SIZES

from .ticks import floor_log

__all__ = ["BYTES", "BYTES_PER_SECOND", "NUMBERS", "SECONDS", "Units", "decimal"]

#: a range beyond the powers of ten of floats
_MOST_POWER = 300


@attrs.frozen
class Units:
    """Units of one quantity, the smallest first: (name, how much it is)."""

    steps: tuple[tuple[str, Fraction], ...]

    def of(self, value: Fraction) -> tuple[str, Fraction]:
        """Return the largest unit that is at most the value; else the smallest."""
        return next((step for step in reversed(self.steps) if step[1] <= abs(value)), self.steps[0])

    def show(self, value: Fraction, step: Fraction | None = None) -> str:
        """Return a value with its unit, and enough digits to differ from its neighbors ``step`` away.

        >>> BYTES.show(Fraction(98304)), SECONDS.show(Fraction(1, 10**5)), NUMBERS.show(Fraction(1, 8))
        ('96 KiB', '10 us', '0.125')
        """
        name, unit = self.of(value)
        digits = 4 if len(self.steps) > 1 else 7
        return f"{decimal(value / unit, None if step is None else step / unit, digits)} {name}".rstrip()


NUMBERS = Units((("", Fraction(1)),))
BYTES = Units(tuple((name, Fraction(SIZES[name])) for name in ("B", "KiB", "MiB", "GiB", "TiB")))
SECONDS = Units(tuple((name, Fraction(1, 1000**k)) for k, name in ((3, "ns"), (2, "us"), (1, "ms"), (0, "s"))))
BYTES_PER_SECOND = Units(tuple((f"{name}/s", Fraction(SIZES[name])) for name in ("B", "KB", "MB", "GB", "TB")))


def decimal(value: Fraction, step: Fraction | None = None, least: int = 7) -> str:
    """Return a number in ``least`` digits, or in more to differ from its neighbors ``step`` away.

    >>> decimal(Fraction(3, 10)), decimal(Fraction(10**7 + 1), Fraction(1)), decimal(Fraction(10**20))
    ('0.3', '10000001', '1e+20')
    """
    power = floor_log(abs(value), 10) if value else 0
    digits = max(least, power - floor_log(step, 10) + 1) if step else least
    if abs(power) < _MOST_POWER:
        return f"{float(value):.{digits}g}"
    return f"{float(value / Fraction(10) ** power):.{digits}g}e{power:+}"
