"""Several groups at once on one network: each gets a part of every link, and is scheduled on its parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import link_loads
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.graph.members import Inside, inside
from collc.ir.levels import Scheduled
from collc.ir.program import Program
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology

from ...base import Pass
from .applied import scheduled
from .classes import Classes, classes_of
from .division import MOST_EXACT, JointCuts, Parts, divided, in_proportion, joint_bound

__all__ = ["Together", "image", "image_maps", "planned", "time_together", "together"]


@attrs.frozen(eq=False)
class Together:
    """Groups that run at the same time on one network.

    ``problems`` have the shares of the links that each group may use. ``times`` are the times (seconds, or bytes a unit
    of bandwidth) in which trees of each group finish on its shares, None if a group shares no link with another and has
    all. ``bound`` is a lower bound on the time until all have finished, of any schedules without coding.

    ``same`` is for each group the first that an automorphism maps to it; ``maps`` are its maps of nodes and of links.
    """

    problems: tuple[Problem, ...]
    times: tuple[Fraction | None, ...]
    bound: JointCuts
    same: tuple[int, ...]
    maps: tuple[tuple[Array, Array], ...]


@attrs.frozen(eq=False)
class _Division:
    """Networks of groups, the orbits of their links, and the parts that the groups get."""

    networks: Sequence[Inside]
    classes: Classes
    parts: Parts

    @property
    def slowest(self) -> Fraction:
        return 1 / min(self.parts.rates)


def together(problems: Sequence[Problem]) -> Together:
    """Return groups with fair shares of the links: the multi-commodity optimum of their trees.

    All problems are on one network. A collective without a size counts as one of the usual size. Relays are used if
    they make the slowest group faster.

    Raises C0301 if members are not connected, C0568 if the program of the shares cannot be solved exactly.
    """
    moving = [number for number, problem in enumerate(problems) if problem.collective.num_members > 1]
    found, times = list(problems), list[Fraction | None]([None] * len(problems))
    same, bound = list(range(len(problems))), JointCuts((), Fraction(0), Fraction(1))
    maps = [(np.arange(0), np.arange(0))] * len(problems)
    if moving:
        some = [problems[number] for number in moving]
        bound, best = _best(some)
        bound = attrs.evolve(bound, cuts=tuple(attrs.evolve(cut, group=moving[cut.group]) for cut in bound.cuts))
        images = image_maps(best.classes)
        for place, (number, problem, time) in enumerate(zip(moving, *_shared(some, best), strict=True)):
            found[number], times[number], maps[number] = problem, time, images[place]
            same[number] = moving[best.classes.first[best.classes.group[place]]]
    return Together(tuple(found), tuple(times), bound, tuple(same), tuple(maps))


def _best(problems: Sequence[Problem]) -> tuple[JointCuts, _Division]:
    """Return the bound of groups, and the division without relays, or with them if that is faster."""
    topology = problems[0].topology
    collectives = [problem.collective for problem in problems]
    sizes = [Fraction(USUAL_SIZE if one.size is None else one.size) for one in collectives]
    relayed = [inside(topology, one) for one in collectives]
    alone = [_alone(problem, network) for problem, network in zip(problems, relayed, strict=True)]
    of_relayed = classes_of(topology, relayed, collectives)
    proved = joint_bound(topology, relayed, sizes, of_relayed)
    classes = classes_of(topology, alone, collectives)
    best = _Division(alone, classes, _parts(topology, alone, sizes, classes))
    if _is_small(of_relayed) and best.slowest > proved.value and all(problem.relays == "auto" for problem in problems):
        other = _Division(relayed, of_relayed, divided(topology, relayed, sizes, of_relayed))
        best = min(best, other, key=lambda one: one.slowest)
    return proved, best


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
    for problem, network, share, rate in zip(problems, best.networks, best.parts.shares, best.parts.rates, strict=True):
        free = bool((users[network.links] == 1).all())
        found.append(_free(problem, network) if free else _sharing(problem, network, share))
        times.append(None if free else 1 / rate)
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
            assert not isinstance(level, Program), "a scheduler returns a schedule"
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
    if isinstance(level, SymmetricSchedule):
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
    if isinstance(level, SymmetricSchedule):
        level = level.unfold()
    if isinstance(level, Forest):
        return link_loads(level, level.route, level.amount[level.tree])
    return link_loads(level, level.route, level.amount)
