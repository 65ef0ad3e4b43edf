"""What the simulator found of one collective, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..tables.columns import Cell, with_floats

if TYPE_CHECKING:
    from collc.backends.simulator import Simulation

__all__ = ["link_of", "simulation_row", "step_rows"]


def link_of(simulation: Simulation, link: int) -> str:
    """Return a link by the names of its ends."""
    topology = simulation.topology
    return f"{topology.names[int(topology.src[link])]} -> {topology.names[int(topology.dst[link])]}"


def step_rows(name: str, simulation: Simulation) -> Iterator[dict[str, Cell]]:
    """Yield every step; equal steps that follow each other share a row."""
    first = 0
    for step in simulation.steps:
        link = link_of(simulation, step.link) if step.messages else None
        yield with_floats({
            "name": name, "step": first, "times": step.times, "messages": step.messages, "hops": step.hops,
            "max_link_load": step.load, "link": link,
        })  # fmt: skip
        first += step.times


def simulation_row(name: str, found: Simulation) -> dict[str, Cell]:
    """Return the figures of the whole simulation."""
    collective, latency = found.traffic.collective, found.latency_deficiency
    return with_floats({
        "name": name, "collective": collective.name, "ranks": collective.num_ranks,
        "scheduler": found.traffic.scheduler, "topology": found.topology.name, "routing": found.routing,
        "steps": found.num_steps, "latency_deficiency": None if latency is None else round(latency, 12),
        "congestion": found.congestion, "bandwidth_deficiency": found.bandwidth_deficiency,
        "congestion_deficiency": found.congestion_deficiency, "max_link_load": found.max_link_load,
    })  # fmt: skip
