"""Predictions of the cost model for the calls of a run, for links with bandwidths."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs

from collc.backends.measured import Row
from collc.ir.costs.cost import Cost, predicted_time, seconds_per_unit
from collc.ir.topology import Topology

from ..driver.result import CollectiveResult

__all__ = ["Model", "with_model"]


@attrs.frozen
class _Part:
    """One algorithm: its cost, for sizes (bytes) from ``low`` on."""

    low: int
    cost: Cost


@attrs.frozen
class Model:
    """The predictions for one collective: the algorithm of each size, and its links.

    ``alpha`` is the latency of a step (seconds; nothing: the links' own, which are 0 where they have none), ``rate``
    the bytes per second of a unit of the topology's bandwidth (for links in B/s: how fast they are here).
    """

    parts: tuple[_Part, ...]
    alpha: Fraction | None
    rate: Fraction | None

    @classmethod
    def of(
        cls,
        result: CollectiveResult,
        alpha: Fraction | None = None,
        bandwidth: Fraction | None = None,
        widest: Fraction | None = None,
    ) -> Model | None:
        """Return the model for a result; None without a schedule or without bandwidths of links.

        ``bandwidth`` is B, the total bandwidth out of a node, as predictions take it (bytes per second; of a link unit
        where nodes differ); ``widest`` that of the widest link, to which others are scaled.
        """
        parts = [
            _Part(0 if one.window is None else one.window.low, one.cost)
            for one in result.each
            if one.schedule is not None
        ]
        if not parts:
            return None
        cost = parts[0].cost
        rate: Fraction | None = Fraction(1) if cost.unit == "B/s" else None
        if widest is not None:
            rate = Fraction(widest) / _widest(result.request.problem.topology)
        elif bandwidth is not None:
            rate = 1 / seconds_per_unit(cost.unit, cost.node_bandwidth, bandwidth)
        if rate is None:
            return None
        return cls(tuple(parts), alpha, rate)

    def at(self, size: int) -> tuple[float, float]:
        """Return the predicted seconds of a call of ``size`` bytes and the least bandwidth time of any schedule."""
        cost = next((part.cost for part in reversed(self.parts) if part.low <= size), self.parts[0].cost)
        alpha = Fraction(0) if self.alpha is None and not cost.timed else self.alpha
        assert self.rate is not None
        # The model counts in units of bandwidth: one second at one byte a second and unit is 1 / rate here.
        scaled = Fraction(size) / self.rate
        gamma = cost.gamma * self.rate
        time = predicted_time(cost, scaled, alpha, _unit(cost), gamma)  # type: ignore[arg-type]
        return float(time), float(cost.bound.value * scaled)


def _unit(cost: Cost) -> Fraction | None:
    """Return the bandwidth out of a node for links of one byte a second and unit."""
    return None if cost.unit == "B/s" else Fraction(cost.node_bandwidth or 1)


def _widest(topology: Topology) -> Fraction:
    return max((Fraction(one.bandwidth) for one in topology.classes), default=Fraction(1))


def with_model(rows: Sequence[Row], model: Model | None) -> tuple[Row, ...]:
    """Return rows with the prediction for each."""
    if model is None:
        return tuple(rows)
    predicted = []
    for row in rows:
        time, bound = model.at(row.bytes)
        predicted.append(attrs.evolve(row, model=time, bound=bound))
    return tuple(predicted)
