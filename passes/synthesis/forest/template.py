"""Forests of large networks with a symmetry as templates: the trees of one root, or of one box's roots, and a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.spec import Problem
from collc.ir.symmetric import SYMMETRIC_KINDS
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetries import Regular, Symmetries
from collc.ir.topology import Topology

from .halves import Half, backwards, joined_halves, symmetric
from .inputs import check_inputs

if TYPE_CHECKING:
    from .scheduler import ForestScheduler

__all__ = ["LEAST_EDGES", "template"]

#: edges of all trees of one direction from which on a template replaces them
LEAST_EDGES = 1 << 19
#: more edges are rarely written out
_MANY_EDGES = 1 << 22


def template(scheduler: ForestScheduler, ir: Problem, least: int | None = None) -> SymmetricForest | None:
    """Return the optimal forest of a large network as a template, or None.

    None for small networks (their forests have fewer than ``least`` edges a direction, by default 2^19), without a
    symmetry of most ranks, for collectives in which ranks differ, and if the symmetric trees found do not reach the
    optimum. Raises what the scheduler does for problems that it cannot schedule.
    """
    topology, collective = ir.topology, ir.collective
    if not collective.is_plain or collective.kind not in SYMMETRIC_KINDS or not scheduler.takes_trees:
        return None
    check_inputs(topology, collective, scheduler.unbalanced)
    edges = topology.num_ranks * (topology.num_ranks - 1)
    if topology.in_network or edges < (LEAST_EDGES if least is None else least):
        return None
    partner = topology.reverse_links
    if partner is None and collective.kind != "allgather":
        return None
    found = _seed(topology, collective.kind)
    if found is None:
        return None
    outward, group, whole = found
    halves = [outward]
    if collective.kind != "allgather":
        back = backwards(outward, partner)
        halves = [back, outward] if collective.kind == "allreduce" else [back]
    return SymmetricForest(joined_halves(ir, halves, whole), group)


def _seed(topology: Topology, kind: str) -> tuple[Half, Symmetries, bool] | None:
    """Return the trees of one rank of each orbit, the group that moves them, and whether they share the vector."""
    if topology.symmetry is not None:
        from .orbits import orbit_trees

        orbits = orbit_trees(topology)
        return None if orbits is None else (symmetric(topology, orbits), Regular(topology), False)
    if not topology.num_switches:
        return None
    from .alike import box_seed

    found = box_seed(topology)
    return _odd_seed(topology, kind) if found is None else (*found, False)


def _odd_seed(topology: Topology, kind: str) -> tuple[Half, Symmetries, bool] | None:
    """Return the trees of a cluster with a few odd boxes.

    :mod:`.box_trees` finds fewer trees on clusters that are small enough to be written out.
    """
    from .boxes import cluster
    from .odd_trees import odd_seed

    edges = topology.num_ranks * (topology.num_ranks - 1)
    if edges <= _MANY_EDGES and cluster(topology) is not None:
        return None
    return odd_seed(topology, both=kind == "allreduce")
