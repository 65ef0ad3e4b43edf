"""Goodput by size: a curve for every schedule, and rules where the fastest one changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import attrs

from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Rule, Series
from collc.backends.pictures.style import Look, look
from collc.backends.pictures.units import BYTES, BYTES_PER_SECOND

from ..messages.quantities import show_bandwidth, show_size, show_size_about, show_time

if TYPE_CHECKING:
    from collc.backends.simulator import Traffic
    from collc.ir.costs.cost import Point

__all__ = ["Curve", "goodput_svg"]

_CHANGE = Look("ink", "2 4")


class Simulated(Protocol):
    """A simulation, or the simulations of one collective at different sizes."""

    @property
    def traffic(self) -> Traffic:
        """What the collective sends."""

    def time(self, size: int) -> Fraction:
        """Return the exact seconds for M of ``size`` bytes."""

    def points(self, sizes: Iterable[int]) -> tuple[Point, ...]:
        """Return time (seconds) and M over time (bytes per second) at each size (bytes)."""


@attrs.frozen(eq=False)
class Curve:
    """A line of the picture: a collective's name, its scheduler, and its simulation."""

    name: str
    scheduler: str
    simulation: Simulated

    @property
    def label(self) -> str:
        """The entry in the legend."""
        return f"{self.name} ({self.scheduler})"


def goodput_svg(curves: Sequence[Curve], sizes: Sequence[int], bound: Fraction | None = None) -> str:
    """Return goodput (M over the time) against M in bytes, on an axis of powers of two, at ``sizes`` above 0.

    A dashed line marks a size at which another curve becomes the highest (:func:`collc.backends.simulator.crossovers`),
    and a level one the ``bound`` on the goodput (bytes a second), if given.
    """
    shown = sorted({size for size in sizes if size > 0})
    changes = list(_changes(curves, shown))
    if bound is not None:
        changes.append(Rule(bound, f"bound: {show_bandwidth(float(bound))}", upright=False))
    chart = Chart(
        _title(curves), Axis("size of the vector", 2, BYTES),
        Axis("goodput", units=BYTES_PER_SECOND, zero=True, margin=Fraction(1, 10)),
        [_series(i, curve, shown) for i, curve in enumerate(curves)], changes,
        "simulated on the links: the whole vector over the time it takes",
        f"Curves of {', '.join(curve.label for curve in curves) or 'nothing'}."
        + "".join(f" {change.label}." for change in changes),
    )  # fmt: skip
    return chart.picture().file()


def _title(curves: Sequence[Curve]) -> str:
    kinds = dict.fromkeys(c.simulation.traffic.collective.kind for c in curves)
    places = dict.fromkeys(
        f"{c.simulation.traffic.topology.name} of {c.simulation.traffic.topology.num_ranks} ranks" for c in curves
    )
    return f"Goodput of {', '.join(kinds)} on {', '.join(places)}" if curves else "Goodput"


def _series(index: int, curve: Curve, sizes: Sequence[int]) -> Series:
    points = curve.simulation.points(sizes)
    tips = [f"{show_size(p.size)}: {show_bandwidth(p.bandwidth)}, {show_time(p.time)}" for p in points]
    return Series(curve.label, [(p.size, p.bandwidth) for p in points], look(index), dots=True, tips=tips)


def _changes(curves: Sequence[Curve], sizes: Sequence[int]) -> Iterator[Rule]:
    from collc.backends.simulator import crossovers

    for change in crossovers([curve.simulation for curve in curves], sizes) if curves else ():
        yield Rule(change.size, f"{curves[change.to].name} from {show_size_about(change.size)}", look=_CHANGE)
