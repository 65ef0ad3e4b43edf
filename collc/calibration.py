"""Measured times -> alpha and bandwidth of the cost model, by regression, and how well they explain what was measured.

Section A.2 of the direct-connect paper fits T_L = alpha x + epsilon to calls of 1 KB and T_B = M y / B to calls of
1 GB, x the steps and y the bandwidth factor. Here one fit takes all sizes:

    seconds = epsilon + alpha * steps + load * bytes / bandwidth

Deviations count in proportion to the time (small calls matter as large ones do), and by their amount, not its square:
times of a busy machine have outliers, all of them late, and least squares would follow them. The sum is least by a
linear program, in which nothing is negative; it does not matter how late the late ones are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.passes.solver import run

from .measurements import Measured

__all__ = ["AUTO", "Calibration", "Fitted", "calibrate"]

Array = np.ndarray[Any, np.dtype[Any]]

AUTO = "auto"

#: a boundary between classes must lower the deviations to this share of what they were
_WORTH = 0.7
#: deviations beyond so many typical ones, and beyond this share of the time, are outliers
_FAR, _CLOSE = 5.0, 0.05
#: what is explained by less than this share of the variance is no straight line
_LEAST_R2 = 0.8


@attrs.frozen
class Fitted:
    """A measurement (the median of those alike) and the seconds that the model has for it."""

    measured: Measured
    model: float
    repeats: int = 1
    outlier: bool = False

    @property
    def deviation(self) -> float:
        """Measured over modelled, less 1."""
        return self.measured.seconds / self.model - 1 if self.model else 0.0


@attrs.frozen
class Calibration:
    """What a fit found: seconds and bytes per second.

    ``alphas`` are (limit, alpha): the latency of a step whose messages have at most ``limit`` bytes, limits rising, the
    last without one (nothing). ``overhead`` is epsilon, what every call takes besides; where all schedules have
    as many steps it cannot be told from alpha and is nothing. ``bandwidth`` is that of a link of bandwidth 1.
    ``notes`` say what the measurements did not show.
    """

    alphas: tuple[tuple[float | None, float], ...]
    overhead: float | None
    bandwidth: float
    points: tuple[Fitted, ...]
    notes: tuple[str, ...] = ()

    def time(self, one: Measured) -> float:
        """Return the seconds that the model has for a call."""
        alpha = next(alpha for limit, alpha in self.alphas if limit is None or one.message <= limit)
        return (self.overhead or 0.0) + alpha * one.steps + one.load * one.bytes / self.bandwidth

    @property
    def mean_deviation(self) -> float:
        """The mean of the relative deviations' amounts."""
        return float(np.mean([abs(point.deviation) for point in self.points]))

    @property
    def largest_deviation(self) -> float:
        return max(abs(point.deviation) for point in self.points)

    @property
    def r_squared(self) -> float:
        """The share of the variance of times that the model explains."""
        seconds = np.array([point.measured.seconds for point in self.points])
        rest = seconds - np.array([point.model for point in self.points])
        total = float(((seconds - seconds.mean()) ** 2).sum())
        return 1 - float((rest**2).sum()) / total if total else 0.0

    @property
    def outliers(self) -> tuple[Fitted, ...]:
        return tuple(point for point in self.points if point.outlier)


def calibrate(measured: Sequence[Measured], boundaries: Sequence[int] | str = ()) -> Calibration:
    """Return the fit of measurements.

    ``boundaries`` are message sizes (bytes) that part classes with an alpha of their own, as where an MPI goes from
    eager messages to a rendezvous; ``auto`` finds one, where it is worth it. Raises C0077 where the
    measurements determine nothing.
    """
    points = _alike(measured)
    _require_enough([point for point, _ in points])
    if isinstance(boundaries, str):
        limits = tuple(_boundary(points))
    else:
        limits = tuple(float(limit) for limit in sorted(set(boundaries)))
    return _judged(_fit(points, limits), points)


def _alike(measured: Sequence[Measured]) -> list[tuple[Measured, int]]:
    """Return the median of measurements of the same, and how many they were."""
    same: dict[tuple[str, int, int, float], list[float]] = {}
    for one in measured:
        same.setdefault((one.name, one.bytes, one.steps, one.load), []).append(one.seconds)
    return [
        (Measured(size, steps, load, median(seconds), name), len(seconds))
        for (name, size, steps, load), seconds in sorted(same.items())
    ]


_Points = list[tuple[Measured, int]]


def _require_enough(points: Sequence[Measured]) -> None:
    hint = "measure several sizes, from some bytes to where bandwidth rules: --size 1KiB,64KiB,1MiB,4MiB"
    if len(points) < 3:
        raise error("C0077", f"{len(points)} different measurements are too few: a fit needs at least 3", hint=hint)
    sizes = {one.load * one.bytes for one in points}
    if len(sizes) < 2:
        raise error("C0077", "all measurements are of one size, which cannot tell alpha from bandwidth", hint=hint)


def _boundary(points: _Points) -> list[float]:
    """Return the message size that parts two classes best, if that explains much more than one class does."""
    sizes = sorted({point.message for point, _ in points})
    best, found = _WORTH * _amount(_fit(points, ()), points), list[float]()
    for low, high in pairwise(sizes):
        limit = (low * high) ** 0.5 if low else high / 2
        if min(sum(p.message <= limit for p, _ in points), sum(p.message > limit for p, _ in points)) < 3:
            continue
        amount = _amount(_fit(points, (limit,)), points)
        if amount < best:
            best, found = amount, [limit]
    return found


def _amount(fit: Calibration, points: _Points) -> float:
    return sum(abs(fit.time(point) / point.seconds - 1) for point, _ in points)


def _fit(points: _Points, limits: tuple[float, ...]) -> Calibration:
    """Return the fit with least relative deviations, not judged yet."""
    limits = _inhabited(points, limits)
    classes = [int(np.searchsorted(np.array(limits), point.message)) for point, _ in points]
    steps = {point.steps for point, _ in points}
    columns = np.zeros((len(points), len(limits) + 3))
    for row, ((point, _), number) in enumerate(zip(points, classes, strict=True)):
        columns[row, number] = point.steps
        columns[row, -2:] = 1.0, point.load * point.bytes
    with_overhead = len(steps) > 1
    if not with_overhead:
        columns[:, -2] = 0
    seconds = np.array([point.seconds for point, _ in points])
    found = _least_deviations(columns / seconds[:, None])
    slope = float(found[-1])
    if slope <= 0:
        raise error(
            "C0077", "times do not grow with bytes: the measurements show no bandwidth",
            notes=["a fit of least deviations has a bandwidth term that is 0 or less"],
            hint="measure larger sizes, more repeats, or leave out what disturbed them",
        )  # fmt: skip
    alphas = tuple(zip((*limits, None), map(float, found[:-2]), strict=True))
    return Calibration(alphas, float(found[-2]) if with_overhead else None, 1 / slope, ())


def _inhabited(points: _Points, limits: tuple[float, ...]) -> tuple[float, ...]:
    """Leave out limits without a message below them or above: an alpha that nothing was measured of is unknown."""
    kept = list[float]()
    sizes = sorted(point.message for point, _ in points)
    for limit in limits:
        if any((not kept or size > kept[-1]) and size <= limit for size in sizes) and sizes[-1] > limit:
            kept.append(limit)
    return tuple(kept)


def _least_deviations(table: Array) -> Array:
    """Return the x >= 0 for which the entries of ``table @ x - 1`` have least amounts in sum, by linear programming.

    Columns are scaled to 1 first: bytes per second and seconds a step are many powers of ten apart.
    """
    import highspy

    rows, columns = table.shape
    scale = np.where(table.max(axis=0) > 0, table.max(axis=0), 1.0)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    none, inf = np.zeros(0, dtype=np.int32), highspy.kHighsInf
    cost = np.concatenate([np.zeros(columns), np.ones(2 * rows)])
    size = columns + 2 * rows
    solver.addCols(size, cost, np.zeros(size), np.full(size, inf), 0, none, none, np.zeros(0))
    for row in range(rows):
        index = np.concatenate([np.arange(columns), [columns + 2 * row, columns + 2 * row + 1]]).astype(np.int32)
        values = np.concatenate([table[row] / scale, [1.0, -1.0]])
        solver.addRow(1.0, 1.0, len(index), index, values)
    run(solver, "fit of latency and bandwidth")
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise error("C0077", "the measurements cannot be fitted: their values are too far apart")
    return np.array(solver.getSolution().col_value[:columns]) / scale


def _judged(fit: Calibration, points: _Points) -> Calibration:
    """Add every point with what the model has for it, which are outliers, and what was not seen."""
    fitted = [Fitted(point, fit.time(point), repeats) for point, repeats in points]
    typical = 1.4826 * median(abs(point.deviation) for point in fitted)
    far = max(_FAR * typical, _CLOSE)
    fitted = [attrs.evolve(point, outlier=abs(point.deviation) > far) for point in fitted]
    result = attrs.evolve(fit, points=tuple(fitted))
    return attrs.evolve(result, notes=tuple(_notes(result)))


def _notes(fit: Calibration) -> list[str]:
    notes = []
    if any(alpha == 0 for _, alpha in fit.alphas):
        notes.append("latency cannot be seen: times at the smallest sizes are what bandwidth takes; alpha is 0")
    if fit.r_squared < _LEAST_R2:
        notes.append(f"the model explains little of what was measured: R^2 is {fit.r_squared:.2f}")
    if len(fit.outliers) * 4 > len(fit.points):
        notes.append(f"{len(fit.outliers)} of {len(fit.points)} measurements are outliers")
    return notes
