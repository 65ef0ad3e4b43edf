"""The simulator: link loads against a slow reference, closed forms as equalities, the figures of the Swing paper."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import pairwise
from math import log2, prod

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collc.backends import simulator
from collc.backends.simulator import LATENCIES, Latency, Traffic, crossovers, simulate, traffic_of
from collc.backends.simulator import torus as torus_module
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.cost import cost, predicted_time
from collc.ir.diagnostic import CollcError
from collc.ir.messages import Messages
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.passes import PASSES
from collc.passes.synthesis.bfb import BFB

from . import strategies
from .nets import complete, one_way_ring

NS = Fraction(1, 10**9)


def sent(topology, rows, whole, *, times=(), kind="allreduce", routes=None):
    """Return traffic of rows (step, src, dst, amount) or, with routes, (step, src, dst, amount, route)."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    steps = max([row[0] for row in rows], default=-1) + 1
    collective = Collective(kind, topology.num_ranks)
    route = columns[4] if routes is not None else ()
    return Traffic(topology, collective, whole, *columns[:4], list(times) or [1] * steps, route, routes)


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


def loads(simulation, step=0):
    """Return link -> exact share of the vector that it carries in a step."""
    numbers, whole = simulation.loads(step)
    return {link: Fraction(int(number), whole) for link, number in enumerate(numbers) if number}


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
@settings(max_examples=60)
def test_minimal_loads_are_those_of_hop_by_hop_division(data, topology):
    messages = data.draw(messages_between(topology.num_ranks))
    simulation = simulate(sent(topology, [(0, *m) for m in messages], 97), routing="minimal")
    shares = cache(lambda a, b: slow_shares(topology, a, b))
    assert summed(messages, 97, shares) == loads(simulation)
    assert simulation.steps[0].hops == max(slow_distance(topology, b, lambda _: 1)[a] for a, b, _ in messages)


@given(st.data(), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=25)
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
@settings(max_examples=80)
def test_ranges_on_rings_are_hops_one_by_one(data, shape):
    topology = strategies.torus(*shape) if prod(shape) > 1 else strategies.torus(2)
    topology = coll.topology(f"torus({', '.join(map(str, shape if prod(shape) > 1 else [2]))})")
    shape = shape if prod(shape) > 1 else [2]
    messages = data.draw(messages_between(topology.num_ranks))
    simulation = simulate(sent(topology, [(0, *m) for m in messages], 5))
    assert isinstance(simulation.ways, torus_module.TorusWays)
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    link = lambda key: key[0] * 2 * len(axes) + 2 * axes.index(key[1]) + (key[2] < 0)  # noqa: E731
    shares = cache(lambda a, b: {link(key): x for key, x in slow_torus_shares(shape, a, b).items()})
    assert summed(messages, 5, shares) == loads(simulation)
    # the same, link by link
    rows = np.arange(len(messages))
    of, links, part = simulation.ways.incidence(rows)
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
@settings(max_examples=40)
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
@settings(max_examples=40)
def test_links_of_their_own_latency_and_bandwidth_take_what_cost_predicts(topology, classes, size):
    topology = slower(topology, classes)
    schedule = BFB().run(Problem(topology, Collective("allgather", topology.num_ranks)))
    assert predicted_time(cost(schedule), size) == simulate(schedule).time(size)


@given(st.data(), st.integers(2, 5))
@settings(max_examples=25)
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


@given(st.data())
@settings(max_examples=20)
def test_a_forest_is_simulated_in_its_pipelined_steps(data):
    forest = data.draw(strategies.forests())
    assert isinstance(forest, Forest)
    assert simulate(forest).steps == simulate(forest.to_steps()).steps
    for pieces in (1, 2, 9):
        in_pieces = simulator.forest_traffic(forest, pieces)
        assert simulate(in_pieces).time(10**6) == simulate(forest.to_steps(pieces)).time(10**6)
        assert in_pieces.num_steps == forest.to_steps(pieces).num_steps


# ---- closed forms


def ring(ranks, topology=None):
    """Traffic of the ring allreduce, both ways round, each step once with how often it is done."""
    rows = [(0, r, (r + way) % ranks, 1) for way in (1, -1) for r in range(ranks)]
    return sent(topology or coll.topology(f"biring({ranks})"), rows, 2 * ranks, times=[2 * (ranks - 1)])


@pytest.mark.parametrize("ranks", [3, 4, 7, 16, 64])
def test_ring(ranks):
    simulation = simulate(ring(ranks), latency=LATENCIES["swing"], bandwidth=100 * Fraction(10**9))
    assert Fraction(ranks - 1, ranks) == simulation.congestion == simulation.bandwidth_deficiency
    assert 2 * (ranks - 1) == simulation.num_steps
    assert Fraction(2 * (ranks - 1), ranks) == simulation.sent
    alpha = Fraction(9141, 10) * NS  # alpha(1): 500 + 400 + 4.7 * 3
    assert 2 * (ranks - 1) * (alpha + Fraction(10**6, 2 * ranks) / (50 * 10**9)) == simulation.time(10**6)


def bucket(shape):
    """Traffic of the synchronized bucket allreduce: 2D chunks, each with its first dimension and direction."""
    D, p = len(shape), prod(shape)
    rows, times, step = [], [], 0
    whole = 2 * D * p
    for turn in [*range(D), *reversed(range(D))]:
        most = max(shape)
        for s in range(most - 1):
            for first in range(D):
                axis = (first + turn) % D
                if s >= shape[axis] - 1:
                    continue
                left = prod(shape[(first + i) % D] for i in range(turn + 1))
                for way in (1, -1):
                    for rank in range(p):
                        at = list(map(int, np.unravel_index(rank, shape)))
                        at[axis] = (at[axis] + way) % shape[axis]
                        rows.append((step, rank, int(np.ravel_multi_index(at, shape)), p // left))
            times.append(1)
            step += 1
    return sent(coll.topology(f"torus({', '.join(map(str, shape))})"), rows, whole)


@pytest.mark.parametrize(("shape", "steps"), [((4, 4), 12), ((3, 3), 8), ((8, 4), 28), ((3, 3, 3), 12)])
def test_bucket(shape, steps):
    simulation = simulate(bucket(shape))
    p = prod(shape)
    assert steps == simulation.num_steps
    assert Fraction(2 * (p - 1), p) == simulation.sent
    if len(set(shape)) == 1:
        assert Fraction(p - 1, p) == simulation.congestion
    assert 1 == simulation.congestion_deficiency


# ---- Swing and recursive doubling, from their definitions


def rho(k):
    return (1 - (-2) ** (k + 1)) // 3


def turns(shape, start):
    """Return (dimension, substep) in the order in which a chunk takes them: dimensions in turn, finished ones not."""
    left, found, axis = [int(log2(size)) for size in shape], [], start
    done = [0] * len(shape)
    while done != left:
        if done[axis] < left[axis]:
            found.append((axis, done[axis]))
            done[axis] += 1
        axis = (axis + 1) % len(shape)
    return found


def exchanges(shape, offset, chunks, latency=False, topology=None):
    """Traffic of an allreduce by exchanges on a torus whose sizes are powers of two.

    ``chunks`` are (first dimension, mirrored): equal parts of the vector; ``offset(k, at)`` is how far the peer is.
    """
    p, steps = prod(shape), int(log2(prod(shape)))
    order = list(range(steps)) + ([] if latency else list(reversed(range(steps))))
    columns = [[], [], [], []]
    rank = np.arange(p)
    for step, s in enumerate(order):
        for start, mirrored in chunks:
            axis, k = turns(shape, start)[s]
            stride, size = prod(shape[axis + 1 :]), shape[axis]
            at = rank // stride % size
            way = offset(k, at)
            peer = rank + ((at + (-way if mirrored else way)) % size - at) * stride
            amount = p if latency else p >> (s + 1)
            for column, values in zip(columns, (step, rank, peer, amount), strict=True):
                column.append(np.broadcast_to(values, p))
    topology = topology or coll.topology(f"torus({', '.join(map(str, shape))})")
    return Traffic(
        topology, Collective("allreduce", p), len(chunks) * p, *map(np.concatenate, columns), times=[1] * len(order)
    )


def swing(shape, latency=False, topology=None):
    chunks = [(axis, mirrored) for mirrored in (False, True) for axis in range(len(shape))]
    return exchanges(shape, lambda k, at: np.where(at % 2 == 0, rho(k), -rho(k)), chunks, latency, topology)


def doubling(shape, latency=False):
    return exchanges(shape, lambda k, at: np.where(at >> k & 1, -(1 << k), 1 << k), [(0, False)], latency)


def closed_form(d, dimensions):
    """Xi of the bandwidth variant on a square torus whose side d is a power of two."""
    terms = (Fraction(abs(rho(k)), 2 ** (k * dimensions)) for k in range(int(log2(d))))
    return (1 - Fraction(1, 2**dimensions)) * sum(terms)


@pytest.mark.parametrize(("d", "dimensions"), [(8, 2), (16, 2), (32, 2), (64, 2), (8, 3), (4, 4), (16, 1), (64, 1)])
def test_swing_on_square_tori(d, dimensions):
    shape = (d,) * dimensions
    simulation = simulate(swing(shape))
    p = d**dimensions
    assert closed_form(d, dimensions) == simulation.congestion
    assert Fraction(p - 1, p) == simulation.bandwidth_deficiency
    assert 2 == simulation.exact_latency_deficiency
    assert Fraction(2 * (p - 1), p) == simulation.sent


@pytest.mark.parametrize(
    ("shape", "bandwidth", "latency"),
    [((8, 8), "1.0781", "5"), ((16, 16), "1.1367", "10"), ((32, 32), "1.1689", "21"), ((64, 64), "1.1843", "42"),
     ((8, 8, 8), "1.0254", "7.5"), ((64, 16), "1.2207", "42"), ((128, 8), "1.4082", "85"), ((256, 4), "1.9512", "170"),
     ((2, 4), "1.0000", "2"), ((16,), "1.4375", "5"), ((64,), "2.1094", "21")],
)  # fmt: skip
def test_congestion_of_swing_is_the_tabled_one(shape, bandwidth, latency):
    assert bandwidth == f"{float(simulate(swing(shape)).congestion):.4f}"
    assert Fraction(latency) == simulate(swing(shape, latency=True)).congestion


@pytest.mark.parametrize(
    ("shape", "bandwidth", "latency"),
    [((8, 8), "4.875", "20"), ((16, 16), "5.4375", "44"), ((64, 16), "5.75", "116"), ((2, 4), "2.5", "5"),
     ((16,), "3.5", "11")],
)  # fmt: skip
def test_congestion_of_recursive_doubling_is_the_tabled_one(shape, bandwidth, latency):
    short, long = simulate(doubling(shape, latency=True)), simulate(doubling(shape))
    assert (Fraction(bandwidth), Fraction(latency)) == (long.congestion, short.congestion)
    p, dimensions = prod(shape), len(shape)
    if 2 not in shape:  # where both of two parallel links serve
        assert dimensions * int(log2(p)) == short.bandwidth_deficiency
        assert 2 * dimensions * Fraction(p - 1, p) == long.bandwidth_deficiency
    assert (1, 2) == (short.exact_latency_deficiency, long.exact_latency_deficiency)


@pytest.mark.parametrize(
    ("shape", "label"),
    [((8, 8), 7), ((64, 64), 40), ((64, 16), 26), ((128, 8), 41), ((256, 4), 74), ((8, 8, 8), 10), ((8, 8, 8, 8), 14)],
)
def test_times_of_32_bytes_are_the_paper_s_labels(shape, label):
    """Within 3 % or a microsecond: 400 Gb/s a link, the paper's latencies."""
    bandwidth = 2 * len(shape) * Fraction(400 * 10**9, 8)
    time = simulate(swing(shape, latency=True), latency=LATENCIES["swing"], bandwidth=bandwidth).time(32)
    assert abs(time * 10**6 - label) <= max(1, label * 3 / 100)


@pytest.mark.parametrize(
    ("expression", "congestion"),
    [("hammingmesh(2, 2, 32, 32)", "1.0620"), ("hammingmesh(4, 4, 16, 16)", "1.1396"), ("hyperx(64, 64)", "0.9998")],
)
def test_swing_on_networks_that_extend_the_torus(expression, congestion):
    """The plateaus of the paper's figures for Hx2Mesh, Hx4Mesh and HyperX: 800 Gb/s over these."""
    latency = LATENCIES["hammingmesh" if "mesh" in expression else "swing"]
    simulation = simulate(swing((64, 64), topology=coll.topology(expression)), latency=latency)
    assert congestion == f"{float(simulation.congestion):.4f}"
    assert Fraction(4095, 4096) == simulation.bandwidth_deficiency


def test_lines_of_two_levels_carry_what_one_switch_does():
    """HammingMesh of lines with more ends than a switch has ports: not blocking, two links farther between leaves."""
    one, two = (coll.topology(f"hammingmesh(2, 2, 8, 8, {ports})") for ports in (16, 8))
    assert (32, 32 * 4 + 32 * 4) == (one.num_switches, two.num_switches)
    traffic = swing((16, 16))
    flat, deep = (simulate(traffic, network=net, latency=LATENCIES["hammingmesh"]) for net in (one, two))
    assert flat.congestion == deep.congestion
    far = 2 * (150 + 125) * NS  # two more routers and cables
    assert [a.slowest[0][0] + far for a in flat.steps[4:12]] == [b.slowest[0][0] for b in deep.steps[4:12]]


def test_a_torus_of_16384_ranks():
    simulation = simulate(swing((128, 128)))
    assert "1.1922" == f"{float(simulation.congestion):.4f}"
    assert closed_form(128, 2) == simulation.congestion


def test_switches_of_full_bandwidth_do_not_congest():
    """Exchanges on a fat tree meet nowhere but at the ranks' own links, where minimal ways divide evenly."""
    network = coll.topology("fat_tree(4)")
    simulation = simulate(doubling((4, 4), latency=True), network=network)
    assert 1 == simulation.congestion_deficiency
    assert [2, 4, 6, 6] == sorted(step.hops for step in simulation.steps)


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


# ---- forms of messages


def test_messages_keep_their_routes_and_repetitions():
    topology = coll.topology("biring(6)")
    routes = Routes.of([(0, 2), (1, 11)])
    collective = Collective("allreduce", 6)
    messages = Messages(
        topology, collective, 4, step=[0, 0, 1], route=[0, 1, 0], amount=[1, 2, 3], times=[5, 1], routes=routes
    )
    simulation = simulate(messages)
    assert 6 == simulation.num_steps and "as-scheduled" == simulation.routing
    assert {0: Fraction(1, 4), 2: Fraction(1, 4), 1: Fraction(1, 2), 11: Fraction(1, 2)} == loads(simulation)
    assert 5 * Fraction(1, 2) + Fraction(3, 4) == simulation.per_unit
    assert "minimal" == simulate(messages, routing="minimal").routing


@pytest.mark.parametrize("shape", ["4, 4", "3, 5", "6, 2", "8"])
@pytest.mark.parametrize("name", ["swing", "recursive-doubling", "rabenseifner", "bucket", "ring", "bine", "trivance"])
def test_messages_take_as_long_as_the_schedule_they_are_of(shape, name):
    """A scheduler's messages and its transfers, one by one, load every link alike."""
    module, kind, _ = PASSES[name]
    scheduler = getattr(import_module(module), kind)()
    topology = coll.topology(f"torus({shape}) with {{ bandwidth: 400 Gbps, latency: 1 us }}")
    problem = Problem(topology, Collective("allreduce", topology.num_ranks, size=1 << 20))
    messages, schedule = simulate(scheduler.messages(problem)), simulate(scheduler.run(problem))
    for size in (0, 1 << 20):
        assert messages.time(size) == schedule.time(size)
    assert (messages.num_steps, messages.congestion, messages.bandwidth_deficiency, messages.sent) == (
        schedule.num_steps, schedule.congestion, schedule.bandwidth_deficiency, schedule.sent,
    )  # fmt: skip
    assert predicted_time(cost(scheduler.run(problem)), 1 << 20) == schedule.time(1 << 20)


def test_a_network_of_other_links_takes_shortest_ways():
    schedule = BFB().run(Problem(complete(8), Collective("allgather", 8)))
    simulation = simulate(schedule, network=coll.topology("uniring(8)"))
    # every rank to every other round the ring: 28 messages over every link
    assert Fraction(28, 8) == simulation.max_link_load
    with pytest.raises(ValueError, match="9 ranks, not 8"):
        simulate(schedule, network=coll.topology("uniring(9)"))


def test_a_message_without_a_way_is_told():
    topology = Topology.from_links("pair", 2, [(0, 1)])
    with pytest.raises(CollcError, match="C0301"):
        simulate(sent(topology, [(0, 1, 0, 1)], 1))


def test_traffic_that_does_not_fit_is_refused():
    topology = complete(3)
    with pytest.raises(ValueError, match="itself"):
        sent(topology, [(0, 1, 1, 1)], 1)
    with pytest.raises(ValueError, match="decrease"):
        sent(topology, [(1, 0, 1, 1), (0, 0, 1, 1)], 1)
    with pytest.raises(ValueError, match="routing"):
        simulate(sent(topology, [(0, 0, 1, 1)], 1), routing="fast")
    with pytest.raises(TypeError):
        traffic_of(3)


def test_nothing_is_sent_in_no_time():
    simulation = simulate(sent(complete(2), [], 1))
    assert (0, 0, None) == (simulation.time(100), simulation.congestion, simulation.congestion_deficiency)
    assert 0.0 == simulation.points([5])[0].bandwidth


def test_amounts_beyond_64_bits_stay_exact():
    """Loads are sums of numbers near 2^62."""
    topology, whole = one_way_ring(4), (1 << 62) + 1
    simulation = simulate(sent(topology, [(0, r, (r + 3) % 4, (1 << 62) - r) for r in range(4)], whole))
    assert Fraction(3 * (1 << 62) - 3 - 2, whole) <= simulation.max_link_load < 3
    assert sum(loads(simulation).values()) == Fraction(3 * (4 * (1 << 62) - 6), whole)


# ---- steps that repeat


@pytest.mark.parametrize("name", ["ring", "bucket", "double-binary-tree"])
def test_steps_alike_are_repetitions(name):
    """Written out or as messages alone, a schedule has the same different steps, times and loads."""
    topology = coll.topology("torus(4, 4)")
    module, kind, _ = PASSES[name]
    algorithm = getattr(import_module(module), kind)(**({"pipeline": 40} if name == "double-binary-tree" else {}))
    problem = Problem(topology, Collective("allreduce", 16))
    written, alone = simulate(algorithm.run(problem)), simulate(algorithm.messages(problem))
    assert written.num_steps == alone.num_steps > len(written.steps)
    assert [(s.times, s.load, s.hops) for s in written.steps] == [(s.times, s.load, s.hops) for s in alone.steps]
    assert written.time(10**6) == alone.time(10**6)


def test_ranks_of_a_ring_run_ahead():
    """Against a ring in which every rank sends on what it has received as soon as it has it: max-plus, rank by rank."""
    classes = [LinkClass(Fraction(1), Fraction(late, 10**6)) for late in (3, 1, 7, 2, 5)]
    ends = [(r, (r + 1) % 5, classes[r]) for r in range(5)]
    topology = Topology.from_links("uneven", 5, ends)
    rounds = 11  # twice round, and one more, as the last repetition waits for all
    traffic = sent(topology, [(0, r, (r + 1) % 5, 1) for r in range(5)], 5, times=[rounds])
    ahead = simulate(traffic, run_ahead=True, latency=Latency("own", None))
    there = [Fraction(0)] * 5
    for number in range(rounds):
        there = [there[r - 1] + topology.latency(r - 1 if r else 4) for r in range(5)]
        if number == rounds - 2:
            mean = Fraction(18, 5 * 10**6)
            assert {10 * mean} == set(there)
    assert max(there) == ahead.time(0) == 10 * mean + Fraction(7, 10**6)
    assert Fraction(77, 10**6) == attrs.evolve(ahead, run_ahead=False).time(0)


def test_running_ahead_is_never_slower_and_nothing_without_repetitions():
    latency = LATENCIES["hammingmesh"]
    for traffic in (swing((8, 8)), attrs.evolve(bucket((8, 8)))):
        network = coll.topology("hammingmesh(2, 2, 4, 4)")
        ahead = simulate(traffic, network=network, latency=latency, run_ahead=True)
        in_step = simulate(traffic, network=network, latency=latency)
        assert in_step.time(1 << 20) == ahead.time(1 << 20)


# ---- crossovers


def test_crossovers_are_to_the_byte():
    topology = coll.topology("biring(16) with { bandwidth: 400 Gbps }")
    latency = LATENCIES["swing"]
    one, two = simulate(swing((16,), topology=topology), latency=latency), simulate(ring(16, topology), latency=latency)
    (change,) = crossovers([one, two], [32, 1 << 29])
    assert (0, 1) == (change.before, change.to)
    assert one.time(change.size - 1) <= two.time(change.size - 1) and two.time(change.size) < one.time(change.size)
    assert () == crossovers([one, one], [32, 1 << 29]) == crossovers([one, two], [32])


# ---- the trace


def trace_of(traffic, size=1 << 20, ranks=None, **options):
    simulation = simulate(traffic, **options)
    text = simulator.trace_json(simulation, size, ranks)
    assert text == simulator.trace_json(simulation, size, ranks)
    document = json.loads(text)
    assert {"displayTimeUnit", "traceEvents"} == set(document)
    return simulation, document["traceEvents"]


@pytest.mark.parametrize("traffic", [swing((4, 4)), ring(5), bucket((3, 4)), doubling((4, 2))])
def test_slices_of_a_track_do_not_overlap(traffic):
    simulation, events = trace_of(traffic, latency=LATENCIES["swing"])
    slices = [event for event in events if event["ph"] == "X"]
    assert int((traffic.times.astype(int) * np.bincount(traffic.step)).sum()) == len(slices)
    tracks = {}
    for event in slices:
        tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(sorted(spans)))
    end = max(event["ts"] + event["dur"] for event in slices)
    assert abs(end - float(simulation.time(1 << 20)) * 1e6) < 1e-5
    assert {event["pid"] for event in slices} == set(range(traffic.topology.num_ranks))


def test_counters_are_loads_and_end_at_nothing():
    traffic = swing((4, 2))
    simulation, events = trace_of(traffic, 1 << 10)
    last = {}
    peak = 0.0
    for event in events:
        if event["ph"] == "C":
            assert last.get(event["name"]) != event["args"]["bytes"]
            last[event["name"]] = event["args"]["bytes"]
            peak = max(peak, event["args"]["bytes"])
    assert set(last.values()) == {0.0}
    assert traffic.topology.num_links == len(last)
    assert float(simulation.max_link_load * 1024) == peak
    assert len([e for e in events if e["ph"] in "XC"]) <= simulator.count_events(simulation)


def test_a_trace_of_some_ranks_has_only_these():
    _, events = trace_of(swing((4, 4)), ranks=[1, 6])
    assert {1, 6, 16} == {event["pid"] for event in events}
    assert {"1", "6"} == {event["name"].split(" ")[0] for event in events if event["ph"] == "C"}
