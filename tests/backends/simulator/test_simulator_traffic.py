"""What the simulator takes and gives: forms of messages, steps that repeat, crossovers, the trace."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import attrs
import numpy as np
import pytest
from nets import complete, one_way_ring
from traffics import bucket, doubling, loads, ring, sent, swing

from collc.backends import simulator
from collc.backends.simulator import LATENCIES, Latency, crossovers, simulate, traffic_of
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost, predicted_time
from collc.ir.costs.messages import Messages
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Routes
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.passes import PASSES
from collc.passes.synthesis.breadth_first.bfb import BFB

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


@pytest.mark.slow
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
    assert abs(end - float(simulation.time(1 << 20)) * 1e6) < 1e-3
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
