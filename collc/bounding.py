"""What the cost model's bounds gain from what synthesis can prove: LP (3) of an all-to-all, the program over trees."""

from __future__ import annotations

import attrs

from collc.ir.certificate import Bound, Program
from collc.ir.cost import Cost
from collc.ir.topology import Topology
from collc.passes.synthesis.forest.allreduce_program import AllreduceBound

__all__ = ["bounded"]


def bounded(cost: Cost, topology: Topology, trees: AllreduceBound | None) -> Cost:
    """Return a cost with the best bounds there are; ``trees`` is what a program says of allreduces by trees.

    A bound that the schedule meets needs no better one.
    """
    if cost.bound_met:
        above = cost.time_per_byte if cost.collective == "alltoall" else None
        return attrs.evolve(cost, bound=attrs.evolve(cost.bound, above=above))
    if cost.collective == "alltoall":
        return attrs.evolve(cost, bound=_of_flows(cost, topology))
    if trees is not None:
        proof = Program(trees.columns, trees.rows)
        name = "a linear program over trees"
        return attrs.evolve(cost, tree_bound=Bound(1 / trees.value, "tree-schedules", name, proof))
    return cost


def _of_flows(cost: Cost, topology: Topology) -> Bound:
    """Return LP (3)'s value or a bracket around it: the schedule itself is a routing, cuts are prices."""
    from collc.passes.synthesis.rate import alltoall_bound

    found, reached = alltoall_bound(topology), cost.time_per_byte
    if found is None:
        return attrs.evolve(cost.bound, above=reached)
    above = reached if found.above is None else min(found.above, reached)
    return attrs.evolve(max(found, cost.bound, key=lambda one: one.value), above=above)
