"""Simulating the schedule of a result on the links of a network."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import attrs

from collc.backends.simulator import LATENCIES, ROUTINGS, Simulation, forest_traffic, simulate
from collc.ir.costs.cost import Point
from collc.ir.diagnostic import error
from collc.ir.levels import Scheduled
from collc.ir.quantities import in_bytes, sizes_in_bytes
from collc.ir.schedule import Forest
from collc.ir.shown import clipped, counted, shown
from collc.ir.topology import Topology

from ..messages import quantities
from ..tables.columns import Table, require_table

if TYPE_CHECKING:
    import pandas

__all__ = ["Simulated", "simulated"]

#: sizes (bytes) if neither the caller nor the collective has one
_SIZES = (1 << 10, 1 << 20, 1 << 30)


@attrs.frozen(eq=False)
class Simulated:
    """The simulated times of a schedule; ``points`` have time (seconds) and bandwidth (bytes per second) by size.

    ``simulation`` is the whole result of the simulator, exact.

    >>> import collc
    >>> found = collc.compile_source("collective sums = allreduce on biring(4);").simulate("1MiB")
    >>> found.time("1MiB") == found.time(1 << 20), found.steps, str(found.congestion)
    (True, 4, '3/4')
    """

    name: str
    simulation: Simulation
    points: tuple[Point, ...]

    @property
    def steps(self) -> int:
        """Steps of the schedule, with every repetition."""
        return self.simulation.num_steps

    @property
    def max_link_load(self) -> Fraction:
        """The largest share of the vector that a link carries in a step."""
        return self.simulation.max_link_load

    @property
    def congestion(self) -> Fraction:
        """Psi times Xi of the Swing paper: the bandwidth term over n/D beta."""
        return self.simulation.congestion

    def time(self, size: int | str) -> Fraction:
        """Return the exact seconds at a size: bytes, or a text such as ``"64MiB"``."""
        return self.simulation.time(in_bytes(size))

    def __repr__(self) -> str:
        congestion = f"congestion {self.congestion}"
        return shown(self, f"{self.title}, {self.steps} steps, {congestion}, {counted(len(self.points), 'point')}")

    def _repr_html_(self) -> str:
        """Return the points as a table, for notebooks."""
        return self.table()._repr_html_()

    def table(self, name: str = "points") -> Table:
        """Return the ``points``, or the ``steps`` with the loads of their busiest links, as a table."""
        from ..tables.listed import POINTS

        require_table(name, ("points", "steps"))
        if name == "steps":
            from ..tables.further import STEPS
            from .simulation_rows import step_rows

            return Table(STEPS[1:], list(step_rows("", self.simulation)), self.title)
        columns = [column for column in POINTS if column.key in ("size_bytes", "time_us", "algbw_GBps")]
        rows = [
            {"size_bytes": p.size, "time_us": p.time * 1e6, "algbw_GBps": p.bandwidth / 1e9} for p in self.points
        ]  # fmt: skip
        return Table(columns, rows, self.title)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the points as a data frame of pandas: microseconds and GB/s by size; raise C0028 without pandas."""
        return self.table().to_dataframe()

    @property
    def title(self) -> str:
        """The collective, its topology and scheduler."""
        traffic = self.simulation.traffic
        return f"{traffic.collective.name} on {clipped(self.name)} by {clipped(traffic.scheduler)}"


def simulated(
    level: Scheduled,
    size: int | str | Iterable[int | str] | None = None,
    *,
    network: Topology | None = None,
    routing: Literal["as-scheduled", "minimal"] = "as-scheduled",
    latency: Literal["links", "swing", "hammingmesh"] = "links",
    alpha: Fraction | str | None = None,
    bandwidth: Fraction | str | None = None,
    run_ahead: bool = False,
    pieces: int | None = None,
) -> Simulated:
    """Simulate a schedule at one size or several (bytes, or text such as ``"64MiB"``; default: the collective's own).

    ``network`` is another network of as many ranks, on which messages take shortest routes. ``alpha`` (seconds, or
    ``"10us"``) replaces the latency of a message, ``bandwidth`` (bytes per second, or ``"100Gbps"``) the total
    bandwidth out of a rank. ``latency``, ``routing``, ``run_ahead`` and ``pieces`` (of a forest) are as in ``collc
    simulate``. Raises C0020 for wrong quantities, C0040 for a network of another size, C0301 if a message has no route.
    """
    _require_known("routing", routing, ROUTINGS)
    _require_known("latency", latency, LATENCIES)
    if network is not None and network.num_ranks != level.topology.num_ranks:
        found = f"found a network of {counted(network.num_ranks, 'rank')}"
        raise error("C0040", f"{found}, needed one of {level.topology.num_ranks}", exit_status=2)
    model = LATENCIES[latency]
    if alpha is not None:
        model = attrs.evolve(model, base=_seconds(alpha))
    own = level.collective.size
    sizes = sizes_in_bytes(size) if size is not None else _SIZES if own is None else (own,)
    traffic = forest_traffic(level, pieces) if isinstance(level, Forest) and pieces is not None else level
    simulation = simulate(
        traffic, network=network, routing=routing, latency=model, bandwidth=_bandwidth(bandwidth), run_ahead=run_ahead
    )
    return Simulated(simulation.topology.name, simulation, simulation.points(sizes))


def _require_known(name: str, found: str, known: Iterable[str]) -> None:
    if found not in known:
        message = f"found {name} `{clipped(str(found))}`, needed one of {', '.join(known)}"
        raise error("C0001", message, exit_status=2)


def _seconds(value: Fraction | str) -> Fraction:
    return quantities.time(value, "alpha") if isinstance(value, str) else Fraction(value)


def _bandwidth(value: Fraction | str | None) -> Fraction | None:
    return quantities.bandwidth(value, "bandwidth") if isinstance(value, str) else value
