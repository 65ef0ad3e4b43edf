"""The rows of predicted times by size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import attrs

from collc.ir.costs.busbw import bus_factor_of
from collc.ir.costs.cost import Cost, predicted_time
from collc.ir.progress import counting

from ..driver.result import CollectiveResult
from ..driver.sizes import algorithm_name, at_size, cost_at_size, num_pieces, own_size
from ..tables.columns import Cell

__all__ = ["Plan", "Pricing", "Row", "overheads", "point_cells", "priced", "sizes_of"]

#: sizes (bytes) of the predictions if neither the caller nor the file names one
DEFAULT_SIZES = (1 << 10, 1 << 20, 1 << 30)
#: returns the result of a collective for M of some bytes
Plan: TypeAlias = Callable[[CollectiveResult, int], CollectiveResult]


@attrs.frozen
class Pricing:
    """The sizes (bytes; none: each collective's own) and the numbers of the cost model; None: those of the topology.

    ``alpha`` and ``epsilon`` are seconds, ``bandwidth`` bytes per second out of a node, ``gamma`` seconds a byte.
    """

    sizes: tuple[int, ...] = ()
    alpha: Fraction | None = None
    bandwidth: Fraction | None = None
    gamma: Fraction | None = None
    epsilon: Fraction | None = None


@attrs.frozen
class Row:
    """One size (bytes of M): the exact time (seconds), and the steps, pieces and T_C of the schedule for this size.

    ``reduced`` is T_C in units of M gamma, None if unknown; it has a column if ``gamma`` (seconds a byte) is not 0.
    ``bus_factor`` is busbw over algbw, None for collectives that nccl-tests do not have. ``algorithm`` is what `auto`
    chose for the size, empty for other schedulers.
    """

    size: int
    time: Fraction
    steps: int
    pieces: int
    bus_factor: Fraction | None
    reduced: Fraction | None = None
    gamma: Fraction = Fraction(0)
    algorithm: str = ""
    in_step: Fraction | None = None
    run_ahead: Fraction | None = None

    @property
    def other_model(self) -> str:
        """The key of the time with or without global steps that ``time`` is not; empty if both are equal or unknown."""
        if self.in_step == self.run_ahead:
            return ""
        return "in_step_us" if self.time == self.run_ahead else "run_ahead_us"

    @property
    def algbw(self) -> float:
        """M over the time, in bytes per second; 0 if it takes no time."""
        return float(self.size / self.time) if self.time else 0.0

    @property
    def busbw(self) -> float | None:
        """The bus bandwidth of nccl-tests, in bytes per second."""
        if self.bus_factor is None:
            return None
        return float(self.bus_factor * self.size / self.time) if self.time else 0.0


def point_cells(rows: Sequence[Row]) -> list[dict[str, Cell]]:
    """Return the rows by the keys of their columns: times in microseconds, bandwidths in GB/s."""
    return [
        {
            "size_bytes": row.size, "time_us": float(row.time) * 1e6, "algbw_GBps": row.algbw / 1e9,
            "busbw_GBps": None if row.busbw is None else row.busbw / 1e9, "steps": row.steps, "pieces": row.pieces,
            "T_C": row.reduced, "algorithm": row.algorithm, "in_step_us": _microseconds(row.in_step),
            "run_ahead_us": _microseconds(row.run_ahead),
        }
        for row in rows
    ]  # fmt: skip


def _microseconds(seconds: Fraction | None) -> float | None:
    return None if seconds is None else float(seconds) * 1e6


def overheads(c: Cost, pricing: Pricing) -> tuple[Fraction, Fraction]:
    """Return gamma and epsilon, as given or of the topology."""
    gamma = c.gamma if pricing.gamma is None else pricing.gamma
    return gamma, c.epsilon if pricing.epsilon is None else pricing.epsilon


def sizes_of(result: CollectiveResult, pricing: Pricing) -> Sequence[int]:
    """Return the sizes (bytes) of the predictions: those that are given, else the collective's own."""
    own = own_size(result)
    return pricing.sizes or ((own,) if own is not None else DEFAULT_SIZES)


def priced(result: CollectiveResult, pricing: Pricing, plan: Plan = at_size) -> tuple[Row, ...]:
    """Return the predicted time at every size, of the schedule that ``plan`` gives for this size."""
    return tuple(_row(result, size, pricing, plan) for size in counting(sizes_of(result, pricing), "sizes"))


def _row(base: CollectiveResult, size: int, pricing: Pricing, plan: Plan) -> Row:
    planned = plan(base, size)
    c, (gamma, epsilon) = cost_at_size(planned, base), overheads(base.plain_cost, pricing)
    assert base.schedule is not None, "only schedules have a cost"
    return Row(
        size, predicted_time(c, size, pricing.alpha, pricing.bandwidth, gamma, epsilon), c.steps, num_pieces(planned),
        bus_factor_of(base.schedule.collective), c.reduced, gamma, algorithm_name(planned),
    )  # fmt: skip
