"""What every link carries in every step, and how long a step takes: the data of the slider and of the timeline.

Links with the same load in all steps have one row. On a torus of 1,024 ranks that are four rows of 32 numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.levels import Scheduled

from ..simulator import Simulation, simulate
from .numbers import Json, decimal

__all__ = ["MOST_LOADS", "flow_of", "simulation_of"]

#: more numbers than these are given as one sum for each link
MOST_LOADS = 200_000
_EXACT = 1 << 53  # integers up to here are exact in scripts


def simulation_of(level: Scheduled) -> Simulation:
    """Return the simulation of a schedule on its own links."""
    return simulate(level)


def flow_of(simulation: Simulation, drawn: bool) -> dict[str, Json]:
    """Return the steps and, for a network that is ``drawn``, the loads of its links.

    Equal consecutive steps are one, done ``times`` times. ``pairs`` are seconds and seconds per byte of M of messages
    that may be the last of a step. Row ``link[k]`` of ``loads`` is that of link k, in shares of M over ``whole``;
    without ``each``, a row is the sum of all steps.
    """
    steps = simulation.steps
    found: dict[str, Json] = {
        "times": [step.times for step in steps],
        "messages": [step.messages for step in steps],
        "largest": [str(step.load) for step in steps],
        "busiest": [_link_text(simulation, step.link) if step.messages else "" for step in steps],
        "pairs": [
            [[decimal(latency), decimal(share * simulation.seconds_per_unit)] for latency, share in step.slowest]
            for step in steps
        ],
    }  # fmt: skip
    return found | _loads(simulation) if drawn else found


def _link_text(simulation: Simulation, link: int) -> str:
    topology = simulation.topology
    return f"{topology.names[int(topology.src[link])]} to {topology.names[int(topology.dst[link])]}"


def _loads(simulation: Simulation) -> dict[str, Json]:
    columns, whole = [], 1
    for number in range(len(simulation.steps)):
        load, whole = simulation.loads(number)
        columns.append(load)
    table = np.stack(columns, axis=1) if columns else np.zeros((simulation.topology.num_links, 0), dtype=np.int64)
    rows, link = _distinct(table)
    each = rows.size <= MOST_LOADS
    if not each:
        times = np.array([step.times for step in simulation.steps])
        rows, link = _distinct((table * times).sum(axis=1, keepdims=True))
    return {"each": each, "link": link.tolist(), **_exact(rows, whole)}


def _distinct(table: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a table and the number of each row among them."""
    first: dict[bytes, int] = {}
    if table.dtype == object:
        keys = [repr(row.tolist()).encode() for row in table]
    else:
        keys = [row.tobytes() for row in np.ascontiguousarray(table)]
    link = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.int64)
    number, place = np.unique(link, return_index=True)
    assert len(number) == len(first)
    return table[place], link


def _exact(rows: Array, whole: int) -> dict[str, Json]:
    """Return the rows as the smallest whole numbers, or as decimals if those are too large for scripts."""
    common = int(np.gcd.reduce(rows, axis=None, initial=whole)) or 1
    largest = max(whole, int(rows.max(initial=0))) // common
    if largest < _EXACT:
        return {"whole": whole // common, "loads": (rows // common).tolist()}
    return {"whole": 1, "loads": [[decimal(Fraction(int(one), whole)) for one in row] for row in rows.tolist()]}
