"""Classes of links."""

from __future__ import annotations

from fractions import Fraction

import attrs

__all__ = ["LinkClass"]


@attrs.frozen
class LinkClass:
    """The bandwidth (in the topology's unit) and latency (seconds) that links of a class have, exact."""

    bandwidth: Fraction = Fraction(1)
    latency: Fraction = Fraction(0)
