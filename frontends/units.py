"""The units of the language, exact: sizes in bytes, bandwidths in bytes per second, times in seconds."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["BANDWIDTH", "MEASURES", "SIZE", "TIME", "UNITS"]

MEASURES = SIZE, BANDWIDTH, TIME = "size", "bandwidth", "time"


def _units() -> dict[str, tuple[str, Fraction]]:
    table = {"B": (SIZE, Fraction(1)), "bps": (BANDWIDTH, Fraction(1, 8)), "B/s": (BANDWIDTH, Fraction(1))}
    for power, letter in enumerate("KMGT", start=1):
        decimal, binary = Fraction(1000) ** power, Fraction(1024) ** power
        table[f"{letter}B"] = SIZE, decimal
        table[f"{letter}iB"] = SIZE, binary
        table[f"{letter}bps"] = BANDWIDTH, decimal / 8
        table[f"{letter}B/s"] = BANDWIDTH, decimal
        table[f"{letter}iB/s"] = BANDWIDTH, binary
    for power, name in enumerate(("s", "ms", "us", "ns")):
        table[name] = TIME, Fraction(1, 1000**power)
    return table


#: unit -> (measure, multiple of the base unit)
UNITS = _units()
