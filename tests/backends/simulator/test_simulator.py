"""The simulator: link loads against a slow reference, closed forms as equalities, the figures of the Swing paper."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import prod

import attrs
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import complete, one_way_ring
from sampling import examples
from traffics import NS, loads, sent

from collc.backends import simulator
from collc.backends.simulator import LATENCIES, Latency, simulate, traffic_of
from collc.backends.simulator import torus as torus_module
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost, predicted_time
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass
from collc.passes.synthesis.breadth_first.bfb import BFB

# ---- a reference that goes hop by hop


def slow_distance(topology, target, length):
    """Return how far every node is from the target: Bellman and Ford."""
    far = {target: 0}
    for _ in range(topology.num_nodes):
        for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
            if b in far and far[b] + length(link) < far.get(a, 10**9):
                far[a] = far[b] + length(link)
    return far


def slow_shares(topology, source, target, length=lambda link: 1):
    """Return link -> share of a message, divided evenly at every node among the links onward."""
    far = slow_distance(topology, target, length)
    here, shares = {source: Fraction(1)}, {}
    while set(here) != {target}:
        node = max((n for n in here if n != target), key=lambda n: far[n])
        onward = [
            link for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
            if a == node and b in far and far[b] + length(link) == far[node]
        ]  # fmt: skip
        part = here.pop(node) / len(onward)
        for link in onward:
            shares[link] = shares.get(link, 0) + part
            head = int(topology.dst[link])
            here[head] = here.get(head, 0) + part
    return shares


def slow_torus_shares(shape, source, target):
    """Return (rank, dimension, way) -> share: dimension after dimension, half each way where both are as near."""
    at, to = (list(map(int, np.unravel_index(rank, shape))) for rank in (source, target))
    shares = {}
    for axis, size in enumerate(shape):
        forward = (to[axis] - at[axis]) % size
        back = size - forward
        ways = [] if not forward else [(1, forward)] * (forward <= back) + [(-1, back)] * (back <= forward)
        for way, hops in ways:
            here = list(at)
            for _ in range(hops):
                key = (int(np.ravel_multi_index(here, shape)), axis, way)
                shares[key] = shares.get(key, 0) + Fraction(1, len(ways))
                here[axis] = (here[axis] + way) % size
        at[axis] = to[axis]
    return shares


def summed(messages, whole, shares_of):
    """Return link -> share of the vector of messages (src, dst, amount)."""
    found = {}
    for source, target, amount in messages:
        for link, share in shares_of(source, target).items():
            found[link] = found.get(link, 0) + share * Fraction(amount, whole)
    return found


@st.composite
def messages_between(draw, ranks, most=6):
    pairs = st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1)).filter(lambda pair: pair[0] != pair[1])
    return [(*draw(pairs), draw(st.integers(1, 9))) for _ in range(draw(st.integers(1, most)))]


@given(st.data(), strategies.connected(min_ranks=2, max_ranks=7, extra=10))
@settings(max_examples=examples(60))
def test_minimal_loads_are_those_of_hop_by_hop_division(data, topology):
    messages = data.draw(messages_between(topology.num_ranks))
    simulation = simulate(sent(topology, [(0, *m) for m in messages], 97), routing="minimal")
    shares = cache(lambda a, b: slow_shares(topology, a, b))
    assert summed(messages, 97, shares) == loads(simulation)
    assert simulation.steps[0].hops == max(slow_distance(topology, b, lambda _: 1)[a] for a, b, _ in messages)


@given(st.data(), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=examples(25))
def test_links_at_switches_may_be_longer(data, near, far):
    """Cables that cost latency make the least late way the shortest one."""
    topology = coll.topology("hammingmesh(2, 3, 2, 1)")
    messages = data.draw(messages_between(topology.num_ranks, 3))
    latency = Latency("x", Fraction(0), near * NS, Fraction(0), far * NS)
    simulation = simulate(sent(topology, [(0, *m) for m in messages], 7), latency=latency)
    ranks, ends = topology.num_ranks, list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    shares = cache(lambda a, b: slow_shares(topology, a, b, lambda link: near + far * (max(ends[link]) >= ranks)))
    assert summed(messages, 7, shares) == loads(simulation)


@given(st.data(), st.lists(st.integers(1, 6), min_size=1, max_size=3))
@settings(max_examples=examples(80))
def test_ranges_on_rings_are_hops_one_by_one(data, shape):
    topology = strategies.torus(*shape) if prod(shape) > 1 else strategies.torus(2)
    topology = coll.topology(f"torus({', '.join(map(str, shape if prod(shape) > 1 else [2]))})")
    shape = shape if prod(shape) > 1 else [2]
    messages = data.draw(messages_between(topology.num_ranks))
    simulation = simulate(sent(topology, [(0, *m) for m in messages], 5))
    assert isinstance(simulation.routed, torus_module.TorusRoutes)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    link = lambda key: key[0] * 2 * len(axes) + 2 * axes.index(key[1]) + (key[2] < 0)  # noqa: E731
    shares = cache(lambda a, b: {link(key): x for key, x in slow_torus_shares(shape, a, b).items()})
    assert summed(messages, 5, shares) == loads(simulation)
    # the same, link by link
    rows = np.arange(len(messages))
    of, links, part = simulation.routed.incidence(rows)
    written = {}
    for row, at, share in zip(of.tolist(), links.tolist(), part.tolist(), strict=True):
        written[at] = written.get(at, 0) + Fraction(share * messages[row][2], 2 * 5)
    assert written == loads(simulation)


def test_a_planted_error_in_a_range_is_caught(monkeypatch):
    """The reference is a check: one hop less is seen."""
    right = torus_module._ranges_added
    monkeypatch.setattr(
        torus_module, "_ranges_added", lambda line, begin, count, *rest: right(line, begin, count - (count > 1), *rest)
    )
    topology = coll.topology("torus(5, 3)")
    simulation = simulate(sent(topology, [(0, 0, 7, 1)], 1))
    assert 2 == sum(loads(simulation).values()) and 3 == sum(slow_torus_shares((5, 3), 0, 7).values())


def test_tori_are_recognized_by_their_links():
    assert (3, 1, 4) == torus_module.torus_shape(coll.topology("torus(3, 1, 4)"))
    assert (8,) == torus_module.torus_shape(coll.topology("biring(8)"))
    for expression in ("uniring(5)", "hypercube(3)", "mesh(3, 3)", "circulant(8, {1, 3})", "hammingmesh(2, 2, 1, 1)"):
        assert torus_module.torus_shape(coll.topology(expression)) is None


def test_halves_of_many_ways_stay_exact():
    """On a mesh a message divides at 58 nodes: denominators leave 64 bits, sums stay whole."""
    topology = coll.topology("mesh(30, 30)")
    simulation = simulate(sent(topology, [(0, 0, 899, 1), (0, 899, 0, 1)], 1))
    carried = loads(simulation)
    at = topology.dst
    assert 2 == sum(x for link, x in carried.items() if at[link] in (0, 899))
    assert carried[0] == Fraction(1, 2) and 58 == simulation.steps[0].hops


# ---- agreement with the cost model


def schedules():
    """Schedules, templates and hand-made ones over single links, on links that differ too."""
    kinds = st.sampled_from(["allgather", "reduce-scatter", "allreduce"])
    return st.builds(lambda t, kind: BFB().run(Problem(t, Collective(kind, t.num_ranks))), strategies.regular(), kinds)


def slower(topology, draw):
    """Return the topology with links of up to three classes."""
    classes = tuple(LinkClass(Fraction(a, b), Fraction(c, 10**6)) for a, b, c in draw)
    number = np.arange(topology.num_links) % len(classes)
    return attrs.evolve(topology, classes=classes, link_class=number, unit="B/s", symmetry=None)


@given(schedules(), st.integers(0, 1 << 40), st.sampled_from([None, Fraction(1, 1000)]))
@settings(max_examples=examples(40))
def test_schedules_over_single_links_take_what_cost_predicts(schedule, size, alpha):
    simulation = simulate(schedule, latency=Latency(base=alpha))
    found = cost(schedule)
    assert found.T_B == 2 * simulation.congestion
    assert found.T_L == simulation.num_steps
    assert 1 == simulation.congestion_deficiency
    for bandwidth in (None, Fraction(10**9, 7)):
        simulation = simulate(schedule, latency=Latency(base=alpha), bandwidth=bandwidth)
        assert predicted_time(found, size, alpha, bandwidth) == simulation.time(size)


@given(
    strategies.connected(min_ranks=2, max_ranks=6),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=3),
    st.integers(0, 10**9),
)
@settings(max_examples=examples(40))
def test_links_of_their_own_latency_and_bandwidth_take_what_cost_predicts(topology, classes, size):
    topology = slower(topology, classes)
    schedule = BFB().run(Problem(topology, Collective("allgather", topology.num_ranks)))
    assert predicted_time(cost(schedule), size) == simulate(schedule).time(size)


@given(st.data(), st.integers(2, 5))
@settings(max_examples=examples(25))
def test_ways_through_switches_take_what_cost_predicts(data, ranks):
    topology = strategies.star(ranks)
    classes = (LinkClass(Fraction(2), Fraction(3, 10**6)), LinkClass(Fraction(5), Fraction(1, 10**6)))
    topology = attrs.evolve(topology, classes=classes, link_class=np.arange(topology.num_links) % 2, unit="B/s")
    routes = Routes.of([(a, ranks + b) for a in range(ranks) for b in range(ranks) if a != b])
    route = data.draw(st.lists(st.integers(0, len(routes) - 1), min_size=1, max_size=6))
    schedule = Schedule(
        topology, Collective("allgather", ranks), 4, step=sorted(i // 2 for i in range(len(route))),
        action=[0] * len(route), shard=[0] * len(route), lo=[0] * len(route), hi=[1 + r % 4 for r in route],
        route=route, routes=routes,
    )  # fmt: skip
    for size in (0, 1000, 10**8):
        assert predicted_time(cost(schedule), size) == simulate(schedule).time(size)


@pytest.mark.parametrize("expression", ["torus(6, 6)", "hypercube(4)", "torus(3, 3, 2)"])
def test_a_template_is_simulated_as_what_it_stands_for(expression):
    topology = coll.topology(expression)
    schedule = BFB().run(Problem(topology, Collective("allgather", topology.num_ranks)))
    template = strategies_template(schedule)
    one, all_of_it = simulate(template), simulate(schedule)
    assert one.steps == all_of_it.steps and one.sent == all_of_it.sent
    assert traffic_of(template) == traffic_of(template.unfold())


def strategies_template(schedule):
    seed = schedule.rows(np.flatnonzero(schedule.shard == 0))
    return SymmetricSchedule(seed)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(20))
def test_a_forest_is_simulated_in_its_pipelined_steps(data):
    forest = data.draw(strategies.forests())
    assert isinstance(forest, Forest)
    assert simulate(forest).steps == simulate(forest.to_steps()).steps
    for pieces in (1, 2, 9):
        in_pieces = simulator.forest_traffic(forest, pieces)
        assert simulate(in_pieces).time(10**6) == simulate(forest.to_steps(pieces)).time(10**6)
        assert in_pieces.num_steps == forest.to_steps(pieces).num_steps


# ---- latency


@pytest.mark.parametrize(
    ("expression", "links", "nanoseconds"),
    [("torus(9)", 1, "914.1"), ("torus(9)", 4, "2128.2"), ("fat_tree(4)", 6, "2128.2"), ("fat_tree(4)", 2, "509.4")],
)
def test_latency_counts_routers_and_links(expression, links, nanoseconds):
    """alpha(h) = 500 + 400 h + 4.7 (h + 2); hosts of switches are no routers, their links no hops."""
    late = LATENCIES["swing"].of(coll.topology(expression), links, 0, Fraction(0))
    assert Fraction(nanoseconds) * NS == late


def test_hammingmesh_counts_cables():
    """On the board 2 routers and 15 ns; across a switch 3 routers, 2 cables and 15 ns."""
    latency, topology = LATENCIES["hammingmesh"], coll.topology("hammingmesh(2, 2, 2, 2)")
    simulation = simulate(sent(topology, [(0, 0, 1, 1), (1, 0, 3, 1), (2, 0, 2, 1)], 1), latency=latency)
    assert [315 * NS, 715 * NS, 715 * NS] == [step.time(Fraction(0)) for step in simulation.steps]


def test_without_latencies_a_message_takes_what_cost_assumes():
    topology = complete(3)
    assert Fraction(1, 10**5) == simulate(sent(topology, [(0, 0, 1, 1)], 3)).time(0)
    timed = topology.with_links(None, Fraction(1, 10**6))
    assert Fraction(1, 10**6) == simulate(sent(timed, [(0, 0, 1, 1)], 3)).time(0)


def test_a_step_waits_for_its_slowest_message():
    """A late message with little and a near one with much: each has its own time, the later counts."""
    topology = attrs.evolve(one_way_ring(6), classes=(LinkClass(Fraction(1), Fraction(1)),), unit="B/s")
    traffic = sent(topology, [(0, 0, 3, 1), (0, 4, 5, 2)], 3)
    (step,) = simulate(traffic).steps
    assert ((Fraction(3), Fraction(1, 3)), (Fraction(1), Fraction(2, 3))) == step.slowest
    assert [Fraction(4), Fraction(7)] == [simulate(traffic).time(size) for size in (3, 9)]
