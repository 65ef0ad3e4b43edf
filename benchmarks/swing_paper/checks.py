"""Statements of the paper about its figures, and whether the simulated curves agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import attrs

from .networks import Curve, Network
from .published import GOODPUT, LABELS

__all__ = [
    "MIB",
    "Check",
    "best_gain",
    "fastest",
    "gain",
    "labels",
    "megabytes",
    "plateau",
    "powers",
    "rises",
    "wins_up_to",
]

Curves = Mapping[str, Curve]
MIB = 1 << 20


@attrs.frozen
class Check:
    """``what`` is ``published`` there and ``found`` here. ``needed``: a difference is a failure.

    Others are statements that a model of flows cannot always share, since it has no packets; a difference is printed.
    """

    what: str
    published: str
    found: str
    agrees: bool
    needed: bool = True


# ---- figures of curves


def rivals(curves: Curves) -> list[Curve]:
    """Return what the paper compares Swing with: all but its own mirrored doubling."""
    return [curve for letter, curve in curves.items() if letter not in "SM"]


def fastest(curves: Curves, size: int) -> str:
    """Return the letter of the fastest curve, the first of equals."""
    return min(curves, key=lambda letter: curves[letter].time(size))


def gain(curves: Curves, size: int) -> Fraction:
    """Return how much more goodput Swing has than the best rival, over that: 1 where it is twice as fast."""
    return min(curve.time(size) for curve in rivals(curves)) / curves["S"].time(size) - 1


def best_gain(curves: Curves, sizes: Sequence[int]) -> tuple[Fraction, int]:
    """Return the greatest gain, and at which size."""
    return max((gain(curves, size), size) for size in sizes)


# ---- checks


def labels(network: Network, curves: Curves) -> Iterator[Check]:
    """Yield the times of 32 bytes beside those printed: within 3 %, a microsecond, or half the unit printed."""
    for letter, printed in LABELS.get(network.name, {}).items():
        if letter in curves:
            time = curves[letter].microseconds(32)
            off = max(1.0, 0.03 * printed, 500.0 if printed >= 3000 else 0.0)
            yield Check(
                f"{network.name}, 32 B, {curves[letter].algorithm.name}", f"{printed:g} us", f"{time:.4g} us",
                abs(time - printed) <= off, needed="Mesh" not in network.name,
            )  # fmt: skip


def wins_up_to(network: Network, curves: Curves, last: int, needed: bool = True) -> Check:
    """Return whether Swing is fastest from 32 B to ``last`` bytes; else, up to where."""
    shown = {letter: curve for letter, curve in curves.items() if letter != "M"}
    lost = next((size for size in powers(32, last) if fastest(shown, size) != "S"), None)
    found = "as said" if lost is None else f"{shown[fastest(shown, lost)].algorithm.name} from {megabytes(lost)}"
    what = f"{network.name}: Swing is fastest up to"
    return Check(what, megabytes(last), found, lost is None, needed)


def plateau(network: Network, curves: Curves) -> Check:
    """Return whether Swing's goodput tends to what the paper's curve does: its peak over the congestion."""
    limit = network.peak / float(min(one.congestion for one in curves["S"].variants))
    printed = GOODPUT[network.name]
    what = f"{network.name}: Swing tends to"
    return Check(what, f"{printed} Gb/s", f"{limit:.1f} Gb/s", abs(limit - printed) < 1)


def rises(values: Sequence[Fraction]) -> bool:
    return all(a < b for a, b in pairwise(values))


def powers(first: int, last: int) -> list[int]:
    """Return the powers of two from one to another."""
    return [1 << k for k in range(first.bit_length() - 1, last.bit_length())]


def megabytes(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
