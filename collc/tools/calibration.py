"""Measured times -> alpha and bandwidth of the cost model, by regression, and the quality of the fit.

Section A.2 of the direct-connect paper fits T_L = alpha x + epsilon to calls of 1 KB and T_B = M y / B to calls of
1 GB, x the steps and y the bandwidth factor. Here one fit takes all sizes:

    seconds = epsilon + alpha * steps + load * bytes / bandwidth (+ gamma * reduced * bytes)

The fit minimizes the sum of relative deviations, so small calls count as much as large ones. It uses amounts instead
of squares: times of a busy machine have outliers, all of them too long, and least squares would follow them. A linear
program over nonnegative values finds the minimum. Gamma is fitted if it is asked for: schedules of least bandwidth time
add the same share of what their links carry (Corollary 6.1), so only others tell gamma from bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.passes.solver import run

from .measurements import Measured

__all__ = ["AUTO", "Calibration", "Fitted", "calibrate"]

AUTO = "auto"

#: a boundary between classes must lower the deviations to this share
_MAX_SHARE = 0.7
#: outliers: deviations of more than this multiple of the typical one, and this share of the time
_FAR, _CLOSE = 5.0, 0.05
#: the smallest share of the variance that a good fit explains
_MIN_R2 = 0.8


@attrs.frozen
class Fitted:
    """A measurement (the median of equal cases) and the seconds of the model."""

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
    """A fit, in seconds and bytes per second.

    ``alphas`` are (limit, alpha): the latency of a step whose messages have at most ``limit`` bytes, limits rising, the
    last without one (None). ``overhead`` is epsilon, the seconds of every call besides; it is None if all schedules
    have the same number of steps, which cannot separate it from alpha. ``bandwidth`` is that of a link of bandwidth 1.
    ``gamma`` is the seconds in which a rank adds a byte; None if it was not fitted. ``notes`` list what the
    measurements did not show.
    """

    alphas: tuple[tuple[float | None, float], ...]
    overhead: float | None
    bandwidth: float
    points: tuple[Fitted, ...]
    notes: tuple[str, ...] = ()
    gamma: float | None = None

    def time(self, one: Measured) -> float:
        """Return the seconds of the model for a call."""
        alpha = next(alpha for limit, alpha in self.alphas if limit is None or one.message <= limit)
        adding = (self.gamma or 0.0) * (one.reduced or 0.0) * one.bytes
        return (self.overhead or 0.0) + alpha * one.steps + one.load * one.bytes / self.bandwidth + adding

    @property
    def mean_deviation(self) -> float:
        """The mean of the relative deviations' amounts."""
        return float(np.mean([abs(point.deviation) for point in self.points]))

    @property
    def largest_deviation(self) -> float:
        """The largest deviation of a point from the model, as a part of its time, without sign."""
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
        """The points whose deviation is far beyond the typical one."""
        return tuple(point for point in self.points if point.outlier)


def calibrate(measured: Sequence[Measured], boundaries: Sequence[int] | str = (), gamma: bool = False) -> Calibration:
    """Return the fit of measurements.

    ``boundaries`` are message sizes (bytes) at which alpha changes, for example from eager messages to a rendezvous;
    ``auto`` finds at most one, if it improves the fit. ``gamma`` is whether to fit the time of additions. Raises C0077
    if the measurements do not determine a fit.
    """
    points = _medians(measured)
    _require_enough([point for point, _ in points])
    if gamma:
        _require_additions([point for point, _ in points])
    if isinstance(boundaries, str):
        limits = tuple(_boundary(points, gamma))
    else:
        limits = tuple(float(limit) for limit in sorted(set(boundaries)))
    return _with_points(_fit(points, limits, gamma), points)


def _medians(measured: Sequence[Measured]) -> list[tuple[Measured, int]]:
    """Return the median of the measurements of each case, and their number."""
    same: dict[tuple[str, int, int, float, float], list[float]] = {}
    for one in measured:
        reduced = -1.0 if one.reduced is None else one.reduced
        same.setdefault((one.name, one.bytes, one.steps, one.load, reduced), []).append(one.seconds)
    return [
        (Measured(size, steps, load, median(seconds), name, None if reduced < 0 else reduced), len(seconds))
        for (name, size, steps, load, reduced), seconds in sorted(same.items())
    ]


_Points = list[tuple[Measured, int]]


def _require_enough(points: Sequence[Measured]) -> None:
    hint = "measure several sizes, small and large: --size 1KiB,64KiB,1MiB,4MiB"
    if len(points) < 3:
        raise error("C0077", f"{len(points)} different measurements are too few: a fit needs at least 3", hint=hint)
    sizes = {one.load * one.bytes for one in points}
    if len(sizes) < 2:
        raise error("C0077", "all measurements have one size, which cannot separate alpha from bandwidth", hint=hint)


def _require_additions(points: Sequence[Measured]) -> None:
    """Raise C0077 unless all points say what ranks add, and it is not the same share of the load everywhere."""
    if any(one.reduced is None for one in points):
        hint = "add a column `reduced` (`T_C` of `collc cost --json`), or name the file: --schedules FILE.coll"
        raise error("C0077", "gamma needs to know what the ranks add", hint=hint)
    if len({round((one.reduced or 0.0) / one.load, 9) for one in points if one.load}) < 2:
        message = "in all measurements ranks add the same share of what links carry"
        hint = "measure an allgather too, which adds nothing, or leave out --gamma: bandwidth then contains it"
        raise error("C0077", f"{message}, which cannot separate gamma from bandwidth", hint=hint)


def _boundary(points: _Points, gamma: bool) -> list[float]:
    """Return the best boundary between two classes, if it explains much more than one class."""
    sizes = sorted({point.message for point, _ in points})
    best, found = _MAX_SHARE * _amount(_fit(points, (), gamma), points), list[float]()
    for low, high in pairwise(sizes):
        limit = (low * high) ** 0.5 if low else high / 2
        if min(sum(p.message <= limit for p, _ in points), sum(p.message > limit for p, _ in points)) < 3:
            continue
        amount = _amount(_fit(points, (limit,), gamma), points)
        if amount < best:
            best, found = amount, [limit]
    return found


def _amount(fit: Calibration, points: _Points) -> float:
    return sum(abs(fit.time(point) / point.seconds - 1) for point, _ in points)


def _fit(points: _Points, limits: tuple[float, ...], gamma: bool) -> Calibration:
    """Return the fit with least relative deviations, without notes and outliers."""
    limits = _measured_limits(points, limits)
    classes = [int(np.searchsorted(np.array(limits), point.message)) for point, _ in points]
    steps = {point.steps for point, _ in points}
    columns = np.zeros((len(points), len(limits) + 3 + gamma))
    first = len(limits) + 1  # the latencies' columns come first
    for row, ((point, _), number) in enumerate(zip(points, classes, strict=True)):
        columns[row, number] = point.steps
        columns[row, first : first + 2] = 1.0, point.load * point.bytes
        columns[row, first + 2 :] = (point.reduced or 0.0) * point.bytes
    with_overhead = len(steps) > 1
    if not with_overhead:
        columns[:, first] = 0
    seconds = np.array([point.seconds for point, _ in points])
    found = _least_deviations(columns / seconds[:, None])
    slope = float(found[first + 1])
    if slope <= 0:
        raise error(
            "C0077", "times do not grow with bytes: the measurements show no bandwidth",
            notes=["a fit of least deviations has a bandwidth term that is 0 or less"],
            hint="measure larger sizes, more repeats, or leave out what disturbed them",
        )  # fmt: skip
    alphas = tuple(zip((*limits, None), map(float, found[:first]), strict=True))
    overhead = float(found[first]) if with_overhead else None
    return Calibration(alphas, overhead, 1 / slope, (), gamma=float(found[-1]) if gamma else None)


def _measured_limits(points: _Points, limits: tuple[float, ...]) -> tuple[float, ...]:
    """Drop limits without a message below or above them: such an alpha is unknown."""
    kept = list[float]()
    sizes = sorted(point.message for point, _ in points)
    for limit in limits:
        if any((not kept or size > kept[-1]) and size <= limit for size in sizes) and sizes[-1] > limit:
            kept.append(limit)
    return tuple(kept)


def _least_deviations(table: Array) -> Array:
    """Return the x >= 0 that minimizes the sum of ``|table @ x - 1|``, by linear programming.

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
        raise error("C0077", "the measurements cannot be fitted: their values differ too much")
    return np.array(solver.getSolution().col_value[:columns]) / scale


def _with_points(fit: Calibration, points: _Points) -> Calibration:
    """Add the points with the times of the model and their outliers, and the notes."""
    fitted = [Fitted(point, fit.time(point), repeats) for point, repeats in points]
    typical = 1.4826 * median(abs(point.deviation) for point in fitted)
    far = max(_FAR * typical, _CLOSE)
    fitted = [attrs.evolve(point, outlier=abs(point.deviation) > far) for point in fitted]
    result = attrs.evolve(fit, points=tuple(fitted))
    return attrs.evolve(result, notes=tuple(_notes(result)))


def _notes(fit: Calibration) -> list[str]:
    notes = []
    if any(alpha == 0 for _, alpha in fit.alphas):
        notes.append("alpha is 0: bandwidth alone explains the times at the smallest sizes")
    if fit.gamma == 0:
        notes.append("gamma is 0: bandwidth and latency alone explain the times")
    if fit.r_squared < _MIN_R2:
        notes.append(f"the model explains little of the measured times: R^2 is {fit.r_squared:.2f}")
    if len(fit.outliers) * 4 > len(fit.points):
        notes.append(f"{len(fit.outliers)} of {len(fit.points)} measurements are outliers")
    return notes
