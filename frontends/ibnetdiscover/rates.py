"""Bandwidths of InfiniBand ports: lanes times the data rate of a lane."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from ..importing.figures import gigabits

__all__ = ["LANES", "RATES", "bandwidth"]

#: data rate of one lane in Gb/s, after the encoding: 8b/10b up to QDR, 64b/66b from FDR10 on (InfiniBand
#: Architecture Specification, volume 2; 14.0625 Gb/s of FDR carry 13.6)
RATES: Mapping[str, Fraction] = {
    "SDR": Fraction(2), "DDR": Fraction(4), "QDR": Fraction(8), "FDR10": Fraction(10), "FDR": Fraction("13.6"),
    "EDR": Fraction(25), "HDR": Fraction(50), "NDR": Fraction(100), "XDR": Fraction(200),
}  # fmt: skip
LANES: Mapping[str, int] = {"1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}


@cache
def bandwidth(width: str, rate: str) -> Fraction | None:
    """Return bytes/s in each direction of a port; None if the tool did not know its width or rate (`??`).

    >>> bandwidth("4x", "EDR"), bandwidth("4x", "???")
    (Fraction(12500000000, 1), None)
    """
    if width not in LANES or rate not in RATES:
        return None
    return gigabits(LANES[width] * RATES[rate])
