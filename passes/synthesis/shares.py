"""One denominator for intervals of shards that differ in size."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

from ..base import remark

__all__ = ["common_parts", "rounded"]

#: the most parts of exact ends: 64 bits count each of up to 4096 pieces in these
_MOST_EXACT = 1 << 40
#: parts of ends that are rounded: 64 bits count them in chunks
_ROUNDED = 1 << 30


def common_parts(scheduler: str, denominators: Iterable[int]) -> int:
    """Return the least common multiple of denominators; if that is more than 2^40, return 2^30 with a remark.

    The caller rounds ends down to these parts: by one rule for all intervals of a shard, so they still cover it.
    """
    exact = lcm(1, *denominators)
    if exact <= _MOST_EXACT:
        return exact
    remark(f"{scheduler}: ends of parts are rounded to 1/{_ROUNDED} of a shard; exact ends need too many parts")
    return _ROUNDED


def rounded(end: Fraction, parts: int) -> int:
    """Return an end in [0, 1] in whole parts, rounded down."""
    return end.numerator * parts // end.denominator
