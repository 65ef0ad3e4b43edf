"""Better bounds on cost by linear programs of synthesis: LP (3) for an all-to-all, the program over trees."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.cost import Cost, cost
from collc.ir.frozen import frozen
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest
from collc.ir.topology import Topology
from collc.ir.verify.agreement import same_everywhere

if TYPE_CHECKING:
    from collc.ir.costs.certificate import Bound
    from collc.passes.synthesis.forest.allreduce_program import AllreduceBound

__all__ = ["ScheduleCosts", "bounded"]


@frozen(eq=False)
class ScheduleCosts:
    """The costs of a schedule, and of the forest it came from if there is one, each computed on first use."""

    schedule: Scheduled
    forest: Forest | None = None

    @cached_property
    def cost(self) -> Cost:
        """The cost with the best bounds that collc can prove."""
        return bounded(self.plain_cost, self.schedule.topology, self.allreduce_bound)

    @cached_property
    def allreduce_bound(self) -> AllreduceBound | None:
        """The bound on allreduces by trees; None for other collectives and if the linear program is too large."""
        if self.forest is None or self.forest.collective.kind != "allreduce":
            return None
        from collc.passes.synthesis.forest.allreduce_program import allreduce_program

        return allreduce_program(self.forest.topology)

    @cached_property
    def plain_cost(self) -> Cost:
        """The cost with the bounds that need no linear program."""
        found = attrs.evolve(cost(self.schedule), same_everywhere=same_everywhere(self.schedule))
        if self.forest is None or found.forest is not None:
            return found
        detail = cost(self.forest).forest
        return found if detail is None else attrs.evolve(found, forest=attrs.evolve(detail, rounds=None))


def bounded(cost: Cost, topology: Topology, trees: AllreduceBound | None) -> Cost:
    """Return a cost with the best bounds that collc can prove; ``trees`` bounds allreduces by trees.

    A bound that the schedule meets is kept.
    """
    if cost.bound_met:
        above = cost.time_per_byte if cost.collective == "alltoall" else None
        return attrs.evolve(cost, bound=attrs.evolve(cost.bound, above=above))
    if cost.collective == "alltoall":
        return attrs.evolve(cost, bound=_flow_bound(cost, topology))
    if trees is not None:
        from collc.ir.costs.certificate import Bound, Program

        proof = Program(trees.columns, trees.rows)
        name = "a linear program over trees"
        return attrs.evolve(cost, tree_bound=Bound(1 / trees.value, "tree-schedules", name, proof))
    return cost


def _flow_bound(cost: Cost, topology: Topology) -> Bound:
    """Return the value of LP (3), or bounds on it from both sides: the schedule from above, cuts from below."""
    from collc.passes.synthesis.flow.rate import alltoall_bound

    found, reached = alltoall_bound(topology), cost.time_per_byte
    if found is None:
        return attrs.evolve(cost.bound, above=reached)
    above = reached if found.above is None else min(found.above, reached)
    return attrs.evolve(max(found, cost.bound, key=lambda one: one.value), above=above)
