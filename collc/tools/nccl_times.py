"""A line for each of NCCL's algorithms, fitted exactly to measured times, and which is the fastest at which size.

The fit minimizes the sum of the squares of relative deviations, (alpha + beta s) / t - 1, over alpha >= 0. Its solution
is rational: two linear equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from collc.ir.diagnostic import error
from collc.ir.frozen import frozen

from ..selection.fitted import FittedTime
from ..selection.times import Change, least
from .nccl_logs import Timed

__all__ = ["Choices", "choices", "fit_algorithms", "line_of"]

_USUAL_PROTOCOL = "simple"


@frozen
class Choices:
    """The fastest of the lines of one collective on one communicator, from size to size."""

    lines: tuple[FittedTime, ...]
    changes: tuple[Change, ...]


def fit_algorithms(measured: Sequence[Timed]) -> tuple[list[FittedTime], list[str]]:
    """Return a line for each collective, communicator, algorithm and protocol, and what was assumed.

    Raises C0077 if the times of an algorithm determine no line.
    """
    groups: dict[tuple[str, int, int, str, str], list[Timed]] = {}
    unknown = dict[str, None]()
    for one in measured:
        if one.protocol is None:
            unknown[one.algorithm] = None
        protocol = one.protocol or _USUAL_PROTOCOL
        groups.setdefault((one.collective, one.nodes, one.ranks, one.algorithm, protocol), []).append(one)
    notes = [
        f"the logs do not name the protocol of {name}, taken as {_USUAL_PROTOCOL}: set NCCL_PROTO, or write "
        f"--algorithm {name}/ll128=LOG" for name in unknown
    ]  # fmt: skip
    return [_fitted(key, group) for key, group in sorted(groups.items())], notes


def _fitted(key: tuple[str, int, int, str, str], group: Sequence[Timed]) -> FittedTime:
    collective, nodes, ranks, algorithm, protocol = key
    points = [(one.bytes, one.seconds) for one in group]
    line = line_of(points)
    if line is None:
        hint = "measure several sizes, small and large: `-b 8 -e 1G -f 2`"
        message = f"the times of {algorithm} {protocol} for {collective} do not grow with the size, or have one size"
        raise error("C0077", message, hint=hint)
    alpha, beta = line
    deviation = max(abs((alpha + beta * size) / seconds - 1) for size, seconds in points)
    sizes = [size for size, _ in points]
    return FittedTime(
        collective, nodes, ranks, algorithm, protocol, alpha, beta, min(sizes), max(sizes), len(points),
        float(deviation),
    )  # fmt: skip


def line_of(points: Sequence[tuple[int, Fraction]]) -> tuple[Fraction, Fraction] | None:
    """Return alpha and beta of the line nearest to (bytes, seconds); None if it does not rise.

    >>> line_of([(0, Fraction(2)), (10, Fraction(7))])
    (Fraction(2, 1), Fraction(1, 2))
    """
    ones = [1 / seconds for _, seconds in points]
    sizes = [size / seconds for size, seconds in points]
    uu, uv, vv = (_dot(a, b) for a, b in ((ones, ones), (ones, sizes), (sizes, sizes)))
    u, v, whole = sum(ones, Fraction(0)), sum(sizes, Fraction(0)), _dot(ones, ones) * _dot(sizes, sizes)
    if whole == uv * uv or not vv:
        return None
    alpha, beta = (u * vv - v * uv) / (uu * vv - uv * uv), (v * uu - u * uv) / (uu * vv - uv * uv)
    if alpha < 0:
        alpha, beta = Fraction(0), v / vv
    return (alpha, beta) if beta > 0 else None


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def choices(lines: Sequence[FittedTime]) -> list[Choices]:
    """Return the fastest line at every size, exact to the byte, of each collective and communicator."""
    groups: dict[tuple[str, int, int], list[FittedTime]] = {}
    for one in lines:
        groups.setdefault((one.collective, one.nodes, one.ranks), []).append(one)
    return [Choices(tuple(group), least([one.times for one in group], 0, None)) for group in groups.values()]
