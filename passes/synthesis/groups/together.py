"""Several groups at once on one network: each gets a part of every link, and is scheduled on its parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import link_loads
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.graph.members import Inside, inside, shared
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from ...base import Pass
from .applied import scheduled
from .classes import Classes, classes_of
from .commodities import commodities_of
from .division import MOST_EXACT, JointCuts, Parts, divided, in_proportion, joint_bound
from .forests import forest_of
from .mixture import Mixture, Priced, mixture

__all__ = ["Together", "image", "image_maps", "planned", "time_together", "together"]

#: a division that is slower than its bound by more than this is compared with a mix of trees
_NEAR = 1 + Fraction(1, 200)
#: members of all groups times links times rounds in which cuts are found beside a mix of trees
_CUTS = 100_000


@attrs.frozen(eq=False)
class Together:
    """Groups that run at the same time on one network.

    ``problems`` have the shares of the links that each group may use. ``times`` are the times (seconds, or bytes a unit
    of bandwidth) in which trees of each group finish on its shares, None if a group shares no link with another and has
    all. ``bound`` is a lower bound on the time until all have finished, of any schedules without coding. ``tree_bound``
    is one of schedules by trees, in which an allreduce reduces to roots, and relays are those that the problems allow;
    None if it was not computed.

    ``same`` is for each group the first that an automorphism maps to it; ``maps`` are its maps of nodes and of links.
    """

    problems: tuple[Problem, ...]
    times: tuple[Fraction | None, ...]
    bound: JointCuts | Priced
    same: tuple[int, ...]
    maps: tuple[tuple[Array, Array], ...]
    tree_bound: Priced | None = None


@attrs.frozen(eq=False)
class _Division:
    """Networks of groups, the orbits of their links, the parts that the groups get, and the times that these allow."""

    networks: Sequence[Inside]
    classes: Classes
    parts: Parts
    times: Sequence[Fraction]

    @classmethod
    def of(cls, networks: Sequence[Inside], classes: Classes, parts: Parts, sizes: Sequence[Fraction]) -> _Division:
        """Return a division; cuts give the times of trees, flows those of an alltoall."""
        first, times = classes.first, dict[int, Fraction]()
        for number in first:
            rate, network = parts.rates[number], networks[number]
            flows = _flow_time(network, parts.shares[number]) if network.collective.kind == "alltoall" else None
            times[number] = 1 / rate if flows is None else max(flows * sizes[number], 1 / rate)
        return cls(networks, classes, parts, [times[first[kind]] for kind in classes.group.tolist()])

    @property
    def slowest(self) -> Fraction:
        return max(self.times)


def _flow_time(network: Inside, share: Sequence[Fraction]) -> Fraction | None:
    """Return the time per byte that flows of an alltoall reach on parts of the links; None if it is not known."""
    from ..flow.rate import alltoall_bound
    from ..flow.uneven import uneven_bound

    part = shared(network.topology, network.collective, share)
    even = part.collective.weights is None
    found = alltoall_bound(part.topology) if even else uneven_bound(part.topology, part.collective)
    return None if found is None else found.above


def together(problems: Sequence[Problem]) -> Together:
    """Return groups with fair shares of the links: the multi-commodity optimum of their trees.

    All problems are on one network. A collective without a size counts as one of the usual size. Relays are used if
    they make the slowest group faster.

    Raises C0301 if members are not connected, C0568 if the program of the shares cannot be solved exactly.
    """
    moving = [number for number, problem in enumerate(problems) if problem.collective.num_members > 1]
    found, times = list(problems), list[Fraction | None]([None] * len(problems))
    same = list(range(len(problems)))
    bound: JointCuts | Priced = JointCuts((), Fraction(0), Fraction(1))
    maps = [(np.arange(0), np.arange(0))] * len(problems)
    tree_bound = None
    if moving:
        some = [problems[number] for number in moving]
        plan = _plan(some)
        bound, tree_bound = _renumbered(plan.bound, moving), plan.tree_bound
        images = image_maps(plan.classes)
        for place, (number, problem, time) in enumerate(zip(moving, plan.problems, plan.times, strict=True)):
            found[number], times[number], maps[number] = problem, time, images[place]
            same[number] = moving[plan.classes.first[plan.classes.group[place]]]
    return Together(tuple(found), tuple(times), bound, tuple(same), tuple(maps), tree_bound)


def _renumbered(bound: JointCuts | Priced, moving: Sequence[int]) -> JointCuts | Priced:
    if isinstance(bound, Priced):
        return bound
    return attrs.evolve(bound, cuts=tuple(attrs.evolve(cut, group=moving[cut.group]) for cut in bound.cuts))


@attrs.frozen(eq=False)
class _Plan:
    """Problems with their shares and times, the bounds of all together, and which groups are equivalent."""

    problems: Sequence[Problem]
    times: Sequence[Fraction | None]
    bound: JointCuts | Priced
    tree_bound: Priced | None
    classes: Classes


def _plan(problems: Sequence[Problem]) -> _Plan:
    """Return the best plan: a division by cuts, or a mix of trees if cuts leave a gap or are too many."""
    groups = _Groups.of(problems)
    if not groups.is_small and not _is_small(groups.of_alone):
        mix = groups.mixed()
        if mix is not None:
            return groups.of_mixture(mix, groups.general(mix) or groups.cuts(_few_rounds(groups, mix), mix.proved))
    bound, best = groups.best()
    mix = groups.mixed() if best.slowest > bound.value * _NEAR else None
    if mix is None:
        return _Plan(*_shared(problems, best), bound, None, best.classes)
    other = groups.general(mix) or (groups.cuts(None, mix.proved) if mix.proved is not None else bound)
    larger = max(bound, other, key=lambda one: one.value)
    if mix.time < best.slowest:
        return groups.of_mixture(mix, larger)
    return _Plan(*_shared(problems, best), larger, _beside(larger, mix), best.classes)


def _beside(bound: JointCuts | Priced, mix: Mixture) -> Priced | None:
    """Return the bound of trees if it is above that of all schedules."""
    return None if mix.proved is None or mix.proved.value <= bound.value else mix.proved


def _few_rounds(groups: _Groups, mix: Mixture) -> int | None:
    """Return in how many rounds cuts may be found beside a mix with a bound: flows to all members take long."""
    if mix.proved is None:
        return None
    flows = sum(one.num_members for one in groups.collectives)
    return max(_CUTS // (flows * groups.topology.num_links), 1)


@attrs.frozen(eq=False)
class _Groups:
    """Groups that send anything: their sizes, their networks with all relays and without needless ones."""

    problems: Sequence[Problem]
    collectives: Sequence[Collective]
    sizes: Sequence[Fraction]
    relayed: Sequence[Inside]
    alone: Sequence[Inside]
    of_relayed: Classes
    of_alone: Classes

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> _Groups:
        """Return the groups of these problems."""
        topology = problems[0].topology
        collectives = [problem.collective for problem in problems]
        sizes = [Fraction(USUAL_SIZE if one.size is None else one.size) for one in collectives]
        relayed = [inside(topology, one) for one in collectives]
        alone = [_alone(problem, network) for problem, network in zip(problems, relayed, strict=True)]
        return cls(
            problems, collectives, sizes, relayed, alone, classes_of(topology, relayed, collectives),
            classes_of(topology, alone, collectives),
        )  # fmt: skip

    @property
    def topology(self) -> Topology:
        """The network of all."""
        return self.problems[0].topology

    @property
    def is_small(self) -> bool:
        """Whether the division with relays is solved exactly."""
        return _is_small(self.of_relayed)

    @property
    def usable(self) -> list[Inside]:
        """The networks with the relays that the problems allow."""
        return [alone if problem.relays == "never" else relayed
                for problem, alone, relayed in zip(self.problems, self.alone, self.relayed, strict=True)]  # fmt: skip

    def general(self, mix: Mixture) -> Priced | None:
        """Return a mix's bound of all schedules; None if it has none, or if some group may not use all relays."""
        free = all(one.relays == "auto" or not len(relayed.relays)
                   for one, relayed in zip(self.problems, self.relayed, strict=True))  # fmt: skip
        return mix.general if free else None

    def cuts(self, rounds: int | None = None, trees: Priced | None = None) -> JointCuts:
        """Return the bound by cuts, and by partitions that the prices of a bound of trees suggest."""
        prices = None if trees is None else trees.prices
        return joint_bound(self.topology, self.relayed, self.sizes, self.of_relayed, rounds, prices)

    def best(self) -> tuple[JointCuts, _Division]:
        """Return the bound of groups, and the division without relays, or with them if that is faster."""
        topology, sizes, bound = self.topology, self.sizes, self.cuts()
        best = _Division.of(self.alone, self.of_alone, _parts(topology, self.alone, sizes, self.of_alone), sizes)
        if self.is_small and best.slowest > bound.value and all(problem.relays == "auto" for problem in self.problems):
            parts = divided(topology, self.relayed, sizes, self.of_relayed)
            other = _Division.of(self.relayed, self.of_relayed, parts, sizes)
            best = min(best, other, key=lambda one: one.slowest)
        return bound, best

    def mixed(self) -> Mixture | None:
        """Return a mix of trees and routes; None if it takes too much work, or some group is not connected.

        Its switches only forward, so there is none if some do more.
        """
        if self.topology.in_network or not all(network.topology.is_connected for network in self.usable):
            return None
        commodities = [
            commodity for group, (one, size) in enumerate(zip(self.collectives, self.sizes, strict=True))
            for commodity in commodities_of(group, one, size)
        ]  # fmt: skip
        return mixture(self.topology, self.usable, commodities)

    def of_mixture(self, mix: Mixture, bound: JointCuts | Priced) -> _Plan:
        """Return the plan of a mix: every group has the shares that its trees and routes fill."""
        topology, found, times = self.topology, list[Problem](), list[Fraction | None]()
        loads = [mix.loads(group, topology.num_links) for group in range(len(self.problems))]
        total = [sum(one, Fraction(0)) for one in zip(*loads, strict=True)]
        busy = [load / topology.bandwidth(link) for link, load in enumerate(total)]
        for group, (problem, load) in enumerate(zip(self.problems, loads, strict=True)):
            time = max(busy[link] for link, amount in enumerate(load) if amount)
            trees = forest_of(topology, problem.collective, mix, group)
            found.append(attrs.evolve(problem, shares=tuple(amount / time for amount in load), trees=trees))
            times.append(time)
        every = np.arange(len(self.problems))
        alone = attrs.evolve(self.of_relayed, group=every, maps=())
        return _Plan(found, times, bound, _beside(bound, mix), alone)


def _is_small(classes: Classes) -> bool:
    return max(int(share.max(initial=0)) for share in classes.share) < MOST_EXACT


def _parts(topology: Topology, networks: Sequence[Inside], sizes: Sequence[Fraction], classes: Classes) -> Parts:
    """Return fair parts; for groups with too many different links, parts in proportion to their times alone."""
    if _is_small(classes):
        return divided(topology, networks, sizes, classes)
    times = [
        bound(network.topology, network.collective).value * size
        for network, size in zip(networks, sizes, strict=True)
    ]  # fmt: skip
    return in_proportion(networks, times)


def _shared(problems: Sequence[Problem], best: _Division) -> tuple[list[Problem], list[Fraction | None]]:
    """Return the problems with their shares and times; those that share no link are unchanged."""
    topology = problems[0].topology
    users = np.zeros(topology.num_links, dtype=np.int64)
    for network in best.networks:
        users[network.links] += 1
    found, times = list[Problem](), list[Fraction | None]()
    for problem, network, share, time in zip(problems, best.networks, best.parts.shares, best.times, strict=True):
        free = bool((users[network.links] == 1).all())
        found.append(_free(problem, network) if free else _sharing(problem, network, share))
        times.append(None if free else time)
    return found, times


def _free(problem: Problem, network: Inside) -> Problem:
    """Return the problem of a group that has all links of its network, and no others."""
    if problem.collective.members is None or len(network.relays):
        return problem
    return attrs.evolve(problem, relays="never")


def _sharing(problem: Problem, network: Inside, share: Sequence[Fraction]) -> Problem:
    return attrs.evolve(problem, shares=_of_links(problem.topology, network, share))


def _alone(problem: Problem, relayed: Inside) -> Inside:
    """Return the network of a group without relays if it is connected or the group may have none."""
    found = inside(problem.topology, problem.collective, relays=False)
    return found if found.topology.is_connected or problem.relays == "never" else relayed


def _of_links(topology: Topology, network: Inside, share: Sequence[Fraction]) -> tuple[Fraction, ...]:
    found = [Fraction(0)] * topology.num_links
    for link, width in zip(network.links.tolist(), share, strict=True):
        found[link] = width
    return tuple(found)


# ---- schedules


def planned(groups: Together, schedulers: Sequence[Pass]) -> tuple[Scheduled, ...]:
    """Return the schedule of every group by its scheduler; groups that are images of another get its image."""
    found: dict[tuple[int, Pass], Scheduled] = {}
    levels = list[Scheduled]()
    for number, (problem, scheduler, first) in enumerate(zip(groups.problems, schedulers, groups.same, strict=True)):
        if (first, scheduler) not in found:
            level = scheduled(scheduler, groups.problems[first])
            assert isinstance(level, Scheduled), "a scheduler returns a schedule"
            found[first, scheduler] = level
        level = found[first, scheduler]
        levels.append(level if number == first else image(level, problem, *groups.maps[number]))
    return tuple(levels)


def image_maps(classes: Classes) -> dict[int, tuple[Array, Array]]:
    """Return for each group the maps of nodes and links that take the first group of its kind to it."""
    found: dict[int, tuple[Array, Array]] = {}
    for first in classes.first:
        nodes, links = (len(part) for part in classes.maps[0][:2]) if classes.maps else (0, 0)
        found[first] = np.arange(nodes), np.arange(links)
        front = [first]
        while front:
            group = front.pop()
            for nodes_to, links_to, groups_to in classes.maps:
                other = int(groups_to[group])
                if other not in found:
                    before = found[group]
                    found[other] = nodes_to[before[0]], links_to[before[1]]
                    front.append(other)
    return found


def image(level: Scheduled, problem: Problem, nodes: Array, links: Array) -> Scheduled:
    """Return a schedule's image under an automorphism, which takes its collective to that of ``problem``."""
    if isinstance(level, (SymmetricSchedule, SymmetricForest)):
        level = level.unfold()
    collective = problem.collective
    routes = Routes(level.routes.start, links[level.routes.links])
    if isinstance(level, Forest):
        columns = {name: nodes[getattr(level, name)] for name in ("root", "parent", "child")}
        return attrs.evolve(level, topology=problem.topology, collective=collective, routes=routes, **columns)
    shard = _shards(level, problem, nodes)[level.shard]
    return attrs.evolve(level, topology=problem.topology, collective=collective, routes=routes, shard=shard)


def _shards(level: Schedule, problem: Problem, nodes: Array) -> Array:
    """Return the number of each shard's image: shard v is that of member v, or of a pair of members."""
    place = problem.collective.places[nodes[level.collective.ranks]]
    if level.collective.kind != "alltoall":
        return place
    pairs: Array = place[:, None] * level.collective.num_members + place[None, :]
    return pairs.ravel()


# ---- cost of the whole


def time_together(levels: Sequence[Scheduled], sizes: Sequence[int | Fraction]) -> tuple[Fraction, int]:
    """Return the time in which the busiest link carries the data of all groups, and that link; sizes are bytes.

    It is exact for many pieces; latencies are left out. Time is in seconds, or in bytes a unit of bandwidth.
    """
    topology = levels[0].topology
    total = [Fraction(0)] * topology.num_links
    for level, size in zip(levels, sizes, strict=True):
        unit, load = Fraction(size) / level.vector, _loads(level)
        for link in np.flatnonzero(load).tolist():
            total[link] += int(load[link]) * unit
    times = [amount / topology.bandwidth(link) for link, amount in enumerate(total)]
    most = max(times, default=Fraction(0))
    return most, times.index(most) if times else -1


def _loads(level: Scheduled) -> Array:
    if isinstance(level, (SymmetricSchedule, SymmetricForest)):
        level = level.unfold()
    if isinstance(level, Forest):
        return link_loads(level.topology, level.routes, level.route, level.amount[level.tree])
    return link_loads(level.topology, level.routes, level.route, level.amount)
