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
LEAST_EDGES = 1 << 14
#: the same for clusters with odd boxes, whose boxes can be packed one by one with fewer trees
_LEAST_ODD = 1 << 17
#: more edges are rarely written out
_MANY_EDGES = 1 << 22


def template(scheduler: ForestScheduler, ir: Problem, least: int | None = None) -> SymmetricForest | None:
    """Return the forest of a large network as a template, or None.

    None for small networks (their forests have fewer than ``least`` edges a direction, by default 2^14), without a
    symmetry of most ranks, for collectives in which ranks differ, and if the symmetric trees found do not reach the
    optimum of their number. The option ``template`` of the scheduler permits all networks. Raises what the scheduler
    does for problems that it cannot schedule.
    """
    topology, collective = ir.topology, ir.collective
    if not collective.is_plain or collective.kind not in SYMMETRIC_KINDS or not scheduler.moves_trees:
        return None
    check_inputs(topology, collective, scheduler.unbalanced)
    if topology.in_network or topology.num_ranks < 2:
        return None
    if topology.reverse_links is None and collective.kind != "allgather":
        return None
    edges = topology.num_ranks * (topology.num_ranks - 1)
    if least is None:
        least = 0 if scheduler.template else None
    if edges < (LEAST_EDGES if least is None else least):
        return None
    return _moved(scheduler, ir, odd=edges >= (_LEAST_ODD if least is None else least))


def _moved(scheduler: ForestScheduler, ir: Problem, odd: bool) -> SymmetricForest | None:
    """Return the trees of one rank of each orbit and the group that moves them, or None; ``odd`` boxes may stay."""
    topology = ir.topology
    if topology.symmetry is not None:
        return _of_group(scheduler, ir)
    if not topology.num_switches:
        return None
    from .alike import box_seed

    found = box_seed(topology)
    if found is not None and scheduler.k in ("optimal", "fewest", found[0].parts):
        return _joined(ir, *found, False)
    fed = _fed(scheduler, ir)
    if fed is not None or found is not None or scheduler.k != "optimal" or not odd:
        return fed
    seed = _odd_seed(topology, ir.collective.kind, scheduler.template is True)
    return None if seed is None else _joined(ir, *seed)


def _joined(ir: Problem, outward: Half, group: Symmetries, whole: bool) -> SymmetricForest:
    halves = [outward]
    if ir.collective.kind != "allgather":
        back = backwards(outward, ir.topology.reverse_links)
        halves = [back, outward] if ir.collective.kind == "allreduce" else [back]
    return SymmetricForest(joined_halves(ir, halves, whole), group)


def _of_group(scheduler: ForestScheduler, ir: Problem) -> SymmetricForest | None:
    """Return the trees of one rank of a Cayley digraph."""
    from .orbits import orbit_trees

    topology, k = ir.topology, scheduler.k
    orbits = orbit_trees(topology, None if isinstance(k, str) else k)
    if orbits is None or (k == "fewest" and orbits.trees > max(choice.k for choice in scheduler.choices(ir))):
        return None
    return _proven(scheduler, _joined(ir, symmetric(topology, orbits), Regular(topology), False))


def _fed(scheduler: ForestScheduler, ir: Problem) -> SymmetricForest | None:
    """Return the trees of boxes that are alike, and that data may enter more than once."""
    from .fed_boxes import fed_seed

    found = fed_seed(ir.topology, None if isinstance(scheduler.k, str) else scheduler.k)
    return None if found is None else _proven(scheduler, _joined(ir, *found, False))


def _proven(scheduler: ForestScheduler, forest: SymmetricForest) -> SymmetricForest | None:
    """Return a forest; None for an allreduce that may be faster with other shares of the vector than equal ones."""
    from collc.ir.costs.cost import cost

    return forest if forest.collective.kind != "allreduce" or cost(forest).bound_met else None


def _odd_seed(topology: Topology, kind: str, template: bool) -> tuple[Half, Symmetries, bool] | None:
    """Return the trees of a cluster with a few odd boxes.

    :mod:`.box_trees` finds fewer trees on clusters that are small enough to be written out. But unless the collective
    is an allreduce, the rotation also moves the steps of the trees, so programs of few ranks are those of all: that is
    worth more on large clusters, or if ``template`` asks for it.
    """
    from .boxes import cluster
    from .odd_trees import odd_seed

    edges = topology.num_ranks * (topology.num_ranks - 1)
    most = _MANY_EDGES if kind == "allreduce" else -1 if template else _LEAST_ODD - 1
    if edges <= most and cluster(topology) is not None:
        return None
    return odd_seed(topology, both=kind == "allreduce")
