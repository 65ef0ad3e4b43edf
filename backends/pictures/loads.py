"""The loads of links by two ways, the simulator's and the sum of the transfers, and the trees of a schedule."""

from __future__ import annotations

import numpy as np

from collc.ir.account import Algorithm
from collc.ir.costs.cost import link_loads
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from ..simulator import Simulation
from .arrivals import arrival_forest
from .networks import LinkLoads

__all__ = ["added_up", "forest_of", "has_trees", "link_loads_of"]

#: schedules of more transfers are not written out to add up their loads once more
_MOST_ROWS = 4_000_000


def forest_of(algorithm: Algorithm) -> tuple[Forest, int] | None:
    """Return the trees to draw, and how many there are in all; None if nothing moves.

    Of a symmetric forest they are those of its template. Of a schedule in steps they are those of one root, by which
    its data arrive: :func:`.arrivals.arrival_forest`.
    """
    level = algorithm.schedule if algorithm.forest is None else algorithm.forest
    if isinstance(level, SymmetricForest):
        return level.seed, level.num_trees
    if isinstance(level, SymmetricSchedule):
        level = level.seed
    forest = arrival_forest(level) if isinstance(level, Schedule) else level
    return None if forest is None else (forest, forest.num_trees)


def has_trees(algorithm: Algorithm) -> bool:
    """Return whether a schedule is made of trees, so that they say all about it."""
    level = algorithm.schedule if algorithm.forest is None else algorithm.forest
    return isinstance(level, Forest | SymmetricForest)


def link_loads_of(simulation: Simulation) -> LinkLoads:
    """Return what every link carries in all steps together."""
    total, whole = np.zeros(simulation.topology.num_links, dtype=object), 1
    for number, step in enumerate(simulation.steps):
        load, whole = simulation.loads(number)
        total = total + load.astype(object) * step.times
    return LinkLoads.of(simulation.topology, total, whole)


def added_up(level: Scheduled) -> LinkLoads | None:
    """Return the same, added up from the transfers; None if they are too many, or share links in switches."""
    if getattr(level, "in_network", False):
        return None
    if isinstance(level, SymmetricSchedule):
        if len(level) * level.topology.num_ranks > _MOST_ROWS:
            return None
        level = level.unfold()
    if isinstance(level, SymmetricForest):
        level = level.unfold()
    steps = level.to_steps(1) if isinstance(level, Forest) else level  # loads do not depend on pieces
    if not isinstance(steps, Schedule):
        return None
    load = link_loads(steps.topology, steps.routes, steps.route, steps.amount)
    return LinkLoads.of(steps.topology, load, steps.vector)
