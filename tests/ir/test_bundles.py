"""Transfers that share links: the loads are those of an account of every data that cross a link, one by one."""

from __future__ import annotations

import random
from collections import defaultdict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.simulator.model import simulate
from collc.ir.bundles import loading
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost, link_loads
from collc.ir.costs.messages import Messages
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.text.parser import parse_ir
from collc.ir.text.printer import print_ir
from collc.ir.topology import Topology
from collc.passes.synthesis.forest.scheduler import ForestScheduler

TRY = settings(max_examples=examples(60), deadline=None)
Loads = dict[tuple[int, int], int]


# ---- the account: every bundle as a tree of routes, from the end that its transfers share


def account(schedule: Schedule) -> Loads:
    """Return what crosses every link in every step."""
    groups = defaultdict[tuple[int, ...], list[list[int]]](list)
    for row in range(len(schedule)):
        reducing = int(schedule.action[row])
        end = schedule.dst[row] if reducing else schedule.src[row]
        route = schedule.routes.links_of(int(schedule.route[row]))
        key = (schedule.step[row], reducing, schedule.shard[row], schedule.lo[row], schedule.hi[row], end)
        groups[tuple(map(int, key))].append(route[::-1] if reducing else route)
    found: Loads = defaultdict(int)
    for (step, reducing, _, low, high, _), routes in groups.items():
        _branches(schedule.topology, routes, bool(reducing), found, step, high - low)
    return dict(found)


def _branches(topology: Topology, routes: list[list[int]], reducing: bool, found: Loads, step: int, amount: int) -> int:
    """Count what crosses the links of a tree of routes; return how many data its root needs."""
    behind = defaultdict[int, list[list[int]]](list)
    for route in routes:
        if route:
            behind[route[0]].append(route[1:])
    needed = sum(not route for route in routes)
    for link, rest in behind.items():
        inner = _branches(topology, rest, reducing, found, step, amount)
        node, able = (topology.src, topology.reduces) if reducing else (topology.dst, topology.multicast)
        copies = 1 if int(node[link]) in able else inner
        found[step, link] += copies * amount
        needed += copies
    return needed


# ---- random schedules on random networks


def _network(rng: random.Random) -> Topology:
    ranks, switches = rng.randint(2, 4), rng.randint(1, 4)
    nodes = range(ranks, ranks + switches)
    links = [end for a in range(ranks) for b in nodes if rng.random() < 0.7 for end in ((a, b), (b, a))]
    links += [(a, b) for a in nodes for b in nodes if a != b and rng.random() < 0.6]
    able = [tuple(node for node in nodes if rng.random() < 0.6) for _ in range(2)]
    return attrs.evolve(Topology.from_links("t", ranks, links, switches), multicast=able[0], reduces=able[1])


def _routes(topology: Topology, rng: random.Random) -> list[list[int]]:
    found = []
    start, links = topology.out_links
    for _ in range(40):
        at = rng.randrange(topology.num_ranks)
        route, seen = list[int](), {at}
        while len(route) < 5 and start[at + 1] > start[at] and (not route or at >= topology.num_ranks):
            route.append(int(links[rng.randrange(start[at], start[at + 1])]))
            at = int(topology.dst[route[-1]])
            seen.add(at)
        if route and at < topology.num_ranks and len(seen) > len(route):
            found.append(route)
    return found


def schedules(seed: int) -> Schedule | None:
    rng = random.Random(seed)
    topology = _network(rng)
    routes = _routes(topology, rng)
    if not routes or not topology.is_connected:
        return None
    ranks, rows = topology.num_ranks, []
    for _ in range(30):
        low = rng.randrange(2)
        place = rng.randrange(2), rng.randrange(2), rng.randrange(ranks), low, low + rng.randint(1, 2)
        rows.append((*place, rng.randrange(len(routes))))
    columns = zip(*sorted(rows), strict=True)
    return Schedule(topology, Collective("allreduce", ranks), 4, *columns, routes=Routes.of(routes), in_network=True)


@TRY
@given(st.integers(0, 1 << 32))
def test_loads_are_those_of_the_account(seed: int) -> None:
    schedule = schedules(seed)
    if schedule is None:
        return
    expected = account(schedule)
    route, routes = loading(schedule)
    steps = list(zip(schedule.step_start[:-1].tolist(), schedule.step_start[1:].tolist(), strict=True))
    loads = [link_loads(schedule.topology, routes, route[a:b], schedule.amount[a:b]).tolist() for a, b in steps]
    assert expected == {(step, link): load for step, row in enumerate(loads) for link, load in enumerate(row) if load}
    assert loads == [load.tolist() for _, load in Messages.of(schedule).loads()]
    assert cost(schedule).time_per_byte == simulate(schedule).per_unit == Messages.of(schedule).time_per_byte
    assert parse_ir(print_ir(schedule)) == schedule


def test_some_schedules_share_links() -> None:
    found = [schedule for seed in range(40) if (schedule := schedules(seed)) is not None]
    plain = [sum(account(attrs.evolve(one, topology=attrs.evolve(one.topology, multicast=(), reduces=()))).values())
             for one in found]  # fmt: skip
    assert sum(sum(account(one).values()) < less for one, less in zip(found, plain, strict=True)) > 10


# ---- forests: the rounds are those of the steps


@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
@pytest.mark.parametrize("network", ["dgx_h100(1, 0, 1)", "in_network(leaf_spine(2, 2, 1), {leaf[0], leaf[1]})"])
def test_a_forest_costs_what_its_steps_cost(network: str, kind: str, pieces: int) -> None:
    topology = collc.topology(network)
    forest = ForestScheduler(pieces=pieces).run(Problem(topology, Collective(kind, topology.num_ranks)))
    assert isinstance(forest, Forest) and forest.in_network
    steps = forest.to_steps()
    rounds, listed = cost(forest), cost(steps)
    assert rounds.forest is not None and rounds.forest.rounds is not None
    per = sum(count * max((time for _, time in pairs), default=0) for count, pairs in rounds.forest.rounds)
    assert per == listed.time_per_byte == simulate(forest).per_unit == simulate(steps).per_unit
    assert rounds.reduced == listed.reduced
    assert sum(account(steps).values()) < sum(account(attrs.evolve(steps, topology=_plain(topology))).values())
    assert parse_ir(print_ir(forest)) == forest


def _plain(topology: Topology) -> Topology:
    return attrs.evolve(topology, multicast=(), reduces=())
