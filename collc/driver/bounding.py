"""Better bounds on cost by linear programs of synthesis: LP (3) for an all-to-all, trees of any copies or sums."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from collc.ir.collective import CUSTOM, UNEVEN, Collective
from collc.ir.costs.cost import Cost, cost
from collc.ir.frozen import frozen
from collc.ir.graph.members import inside, without_members
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology
from collc.ir.verify.agreement import same_everywhere

if TYPE_CHECKING:
    from collc.ir.costs.certificate import Bound
    from collc.ir.costs.partitions import Partition
    from collc.ir.costs.tree_cuts import TreeCuts
    from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, ReachedBound

__all__ = ["ScheduleCosts", "bounded", "tree_cuts"]

#: ranks up to which the optimum of allreduces by trees is computed, even if a schedule is known to reach it
_MOST_RANKS = 512


@frozen(eq=False)
class ScheduleCosts:
    """The costs of a schedule, and of the forest it came from if there is one, each computed on first use."""

    schedule: Scheduled
    forest: Forest | SymmetricForest | None = None

    @cached_property
    def cost(self) -> Cost:
        """The cost with the best bounds that collc can prove."""
        collective = self.schedule.collective
        if collective.members is not None:
            return bounded(self.plain_cost, self._network, None, without_members(collective))
        trees = None if self.plain_cost.bound_met else self._program or self._in_network
        found = bounded(self.plain_cost, self.schedule.topology, trees, collective)
        by_prices = collective.kind == CUSTOM and not collective.reduces
        return _by_prices(found, self.schedule) if by_prices else found

    @property
    def _network(self) -> Topology:
        """The network of the members, in which other ranks are switches."""
        return inside(self.schedule.topology, self.schedule.collective).topology

    @cached_property
    def allreduce_bound(self) -> AllreduceBound | ReachedBound | None:
        """The bound on allreduces by trees; None for other collectives and if the linear program is too large."""
        from collc.passes.synthesis.forest.allreduce_program import reached_bound

        reached = self._reached()
        return self._program if reached is None else reached_bound(*reached)

    @cached_property
    def _program(self) -> AllreduceBound | None:
        """The bound of the linear program of trees; None as :attr:`allreduce_bound`."""
        if self.forest is None or self.forest.collective.kind != "allreduce":
            return None
        if self.forest.collective.members is not None:
            return None  # relays may copy and add, switches of the program do neither
        if self.forest.topology.in_network:
            return None  # halves of an allreduce may use different links: there is no sum of both to compare with
        from collc.passes.synthesis.forest.allreduce_program import allreduce_program

        return allreduce_program(self.forest.topology)

    def _reached(self) -> tuple[Topology, Fraction, int] | None:
        """Return network, bandwidth and trees of a large forest that no schedule beats, so that no other trees do."""
        if self.forest is None or self.forest.collective.kind != "allreduce":
            return None
        if self.forest.collective.num_ranks <= _MOST_RANKS:
            return None
        found = self.plain_cost
        if not found.bound_met or found.forest is None or not found.forest.whole:
            return None
        return self.forest.topology, 1 / found.time_per_byte, found.forest.k

    @cached_property
    def _in_network(self) -> AllreduceBound | None:
        """The optimum of trees that branch and meet in switches, if some switch multicasts or reduces."""
        topology, kind = self.schedule.topology, self.schedule.collective.kind
        if self.forest is None or not topology.in_network or kind != "allreduce" or self.plain_cost.bound_met:
            return None
        from collc.passes.synthesis.forest.allreduce_program import allreduce_program

        return allreduce_program(topology)

    @cached_property
    def plain_cost(self) -> Cost:
        """The cost with the bounds that need no linear program."""
        found = attrs.evolve(cost(self.schedule), same_everywhere=same_everywhere(self.schedule))
        if self.forest is None or found.forest is not None:
            return found
        detail = cost(self.forest).forest
        return found if detail is None else attrs.evolve(found, forest=attrs.evolve(detail, rounds=None))


def bounded(
    cost: Cost, topology: Topology, trees: AllreduceBound | None, collective: Collective | None = None
) -> Cost:  # fmt: skip
    """Return a cost with the best bounds that collc can prove; ``trees`` bounds allreduces by trees.

    ``collective`` has the weights of shards that differ in size. A bound that the schedule meets is kept.
    """
    by_flows = cost.collective in ("alltoall", UNEVEN["alltoall"])
    if cost.bound_met:
        above = cost.time_per_byte if by_flows else None
        return attrs.evolve(cost, bound=attrs.evolve(cost.bound, above=above))
    if by_flows:
        return attrs.evolve(cost, bound=_flow_bound(cost, topology, collective))
    if trees is not None:
        return _with_trees(cost, topology, trees)
    return cost


def _with_trees(cost: Cost, topology: Topology, trees: AllreduceBound) -> Cost:
    """Return a cost with the bound of allreduces by trees. A partition that proves it bounds all schedules."""
    from collc.ir.costs.certificate import Bound
    from collc.ir.costs.readable import named_partition, named_tree_cuts

    value, partition = 1 / trees.value, trees.optimum.partition
    if cost.bound.value == value:
        return attrs.evolve(cost, tree_bound=attrs.evolve(cost.bound, kind="tree-schedules"))
    if partition is not None and partition.ratio == value and _has_all_that_copy(topology, partition):
        parts = named_partition(topology, partition)
        least = Bound(value, "all-schedules", parts.text, parts)
        best = max(cost.bound, least, key=lambda one: one.value)
        return attrs.evolve(cost, bound=best, tree_bound=attrs.evolve(least, kind="tree-schedules"))
    found = named_tree_cuts(topology, tree_cuts(topology, trees))
    assert found.carries == found.bandwidth * value, "the program's certificate adds up"
    return attrs.evolve(cost, tree_bound=Bound(value, "tree-schedules", found.text, found))


def _has_all_that_copy(topology: Topology, partition: Partition) -> bool:
    """Return whether a partition bounds all schedules: nodes that copy or add are in some part."""
    inside = {node for part in partition.parts for node in part}
    return inside.issuperset(topology.multicast) and inside.issuperset(topology.reduces)


def tree_cuts(topology: Topology, trees: AllreduceBound) -> TreeCuts:
    """Return the program's certificate as that of a bound; its rows are added up again."""
    from collc.ir.costs.tree_cuts import SwitchBalance, TreeCuts, WeightedCut

    rows = trees.optimum.certificate
    found = TreeCuts(
        tuple(WeightedCut(one.multiplier, one.nodes, one.inward, one.rooted) for one in rows.cuts),
        tuple(SwitchBalance(one.multiplier, one.switch, one.inward) for one in rows.balances),
        tuple(tuple(each.tolist()) for each in rows.maps), rows.mirrored, Fraction(0), Fraction(0),
        rows.multicast, rows.reduces,
    )  # fmt: skip
    sums = found.proved(topology)
    assert sums is not None, "the program's rows hold"
    return attrs.evolve(found, carries=sums[0], bandwidth=sums[1])


def _by_prices(cost: Cost, schedule: Scheduled) -> Cost:
    """Return the cost of a custom collective with the bound that prices of links prove, if it is not met already."""
    if cost.bound_met:
        return cost
    from collc.passes.synthesis.general.bound import general_bound

    return attrs.evolve(cost, bound=general_bound(schedule.topology, schedule.collective))


def _flow_bound(cost: Cost, topology: Topology, collective: Collective | None) -> Bound:
    """Return the value of LP (3), or bounds on it from both sides: the schedule from above, cuts from below."""
    from collc.passes.synthesis.flow.rate import alltoall_bound
    from collc.passes.synthesis.flow.uneven import uneven_bound

    is_uneven = collective is not None and collective.weights is not None
    found = uneven_bound(topology, collective) if collective is not None and is_uneven else alltoall_bound(topology)
    reached = cost.time_per_byte
    if found is None:
        return attrs.evolve(cost.bound, above=reached)
    above = reached if found.above is None else min(found.above, reached)
    return attrs.evolve(max(found, cost.bound, key=lambda one: one.value), above=above)
