"""BFB where links differ: LP (14) of the direct-connect paper exactly, and what such schedules cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import attrs
import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import jobs
from nets import complete, one_way_ring, torus
from sampling import examples
from strategies import connected

from collc.ir.collective import Collective
from collc.ir.costs.cost import cost, link_loads, predict, predicted_time
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.balance import balance
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.breadth_first.heterogeneous import Pace, balance_unlike, least_time

pytestmark = pytest.mark.slow

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
SLOTS = 5

histograms = st.dictionaries(st.integers(1, 2**SLOTS - 1), st.integers(1, 6), min_size=1, max_size=6).map(
    lambda counts: tuple(sorted(counts.items()))
)
paces = st.builds(
    Pace, st.fractions(0, 6, max_denominator=4), st.fractions(Fraction(1, 4), 5, max_denominator=4)
)  # fmt: skip
rows_of_paces = st.lists(paces, min_size=SLOTS, max_size=SLOTS).map(tuple)


def confined(histogram, links):
    return sum(count for mask, count in histogram if mask & ~links == 0)


def carried(paces, links, time):
    """Jobs that the links of a mask can carry by ``time``."""
    chosen = (pace for i, pace in enumerate(paces) if links >> i & 1)
    return sum((max(Fraction(0), time - pace.alpha) * pace.rate for pace in chosen), Fraction(0))


def least_time_by_search(chosen, jobs):
    """The earliest time by trying every set of links that could be the ones in use."""
    best = None
    for use in product((False, True), repeat=len(chosen)):
        in_use = [pace for pace, used in zip(chosen, use, strict=True) if used]
        if in_use:
            time = (jobs + sum(p.alpha * p.rate for p in in_use)) / sum((p.rate for p in in_use), Fraction(0))
            if time >= max(p.alpha for p in in_use):
                best = time if best is None else min(best, time)
    return best


# ---- one node, one step


@given(st.lists(paces, min_size=1, max_size=5), st.integers(1, 9))
def test_links_that_may_carry_everything(chosen, jobs):
    """Filled like vessels: links join as time passes their alpha."""
    assert least_time_by_search(chosen, jobs) == least_time(chosen, jobs)


@given(st.lists(paces, min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 6))
def test_whole_chunks_on_links_that_may_carry_everything(chosen, jobs, chunks):
    """The time is that of some chunk's arrival, enough for all chunks, and any earlier arrival is not."""

    def through(time):
        return sum(max(0, (time - pace.alpha) * pace.rate * chunks // 1) for pace in chosen)

    found = least_time(chosen, jobs, chunks)
    arrivals = sorted({p.alpha + k / (p.rate * chunks) for p in chosen for k in range(1, jobs * chunks + 1)})
    assert next(time for time in arrivals if through(time) >= jobs * chunks) == found


@given(histograms, rows_of_paces, st.none() | st.integers(1, 5))
def test_the_division_is_complete_and_takes_the_time_it_says(histogram, paces, chunks):
    """Every job is covered once by links of its mask; the last link is done exactly at the time found."""
    found = balance_unlike(histogram, paces, chunks)
    masks = [mask for mask, count in histogram for _ in range(count)]
    moved, covered = [0] * SLOTS, [[] for _ in masks]
    for job, slot, lo, hi in zip(*(x.tolist() for x in (found.job, found.slot, found.lo, found.hi)), strict=True):
        assert masks[job] >> slot & 1 and lo < hi
        moved[slot] += hi - lo
        covered[job].append((lo, hi))
    for pieces in covered:
        ends = [0, *(hi for _, hi in sorted(pieces))]
        assert [lo for lo, _ in sorted(pieces)] == ends[:-1] and ends[-1] == found.parts
    ends = [pace.alpha + Fraction(m, found.parts) / pace.rate for pace, m in zip(paces, moved, strict=True) if m]
    assert max(ends) == found.load
    assert chunks is None or chunks % found.parts == 0


@given(histograms, rows_of_paces)
def test_some_set_of_jobs_proves_the_time_optimal(histogram, paces):
    """The jobs confined to some links need all of these links to the end: no division is faster (duality)."""
    time = balance_unlike(histogram, paces).load
    room = [(confined(histogram, links), carried(paces, links, time)) for links in range(1, 2**SLOTS)]
    assert all(count <= most for count, most in room)
    assert any(count == most > 0 for count, most in room)


@given(histograms, rows_of_paces, st.integers(1, 5))
def test_some_set_of_jobs_proves_whole_chunks_optimal(histogram, paces, chunks):
    """A moment earlier, the chunks confined to some links were more than these links could have carried."""
    time = balance_unlike(histogram, paces, chunks).load
    arrivals = {p.alpha + k / (p.rate * chunks) for p in paces for k in range(40 * chunks)}
    before = max(a for a in arrivals if a < time)

    def whole(links):
        chosen = (p for i, p in enumerate(paces) if links >> i & 1)
        return sum(max(0, (before - p.alpha) * p.rate * chunks // 1) for p in chosen)

    assert any(confined(histogram, links) * chunks > whole(links) for links in range(1, 2**SLOTS))
    assert time >= balance_unlike(histogram, paces).load


def by_linear_program(masks, paces):
    """LP (14) on HiGHS for every set of links that starts earliest, since those that start late may not pay."""
    best = float("inf")
    for latest in sorted({pace.alpha for pace in paces}):
        slots = [i for i, pace in enumerate(paces) if pace.alpha <= latest]
        if all(any(mask >> i & 1 for i in slots) for mask in masks):
            best = min(best, _solved(masks, paces, slots))
    return best


def _solved(masks, paces, slots):
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for setting in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        model.setOptionValue(setting, 1e-10)
    time = model.addVariable(lb=0, obj=1)
    share = {
        (j, i): model.addVariable(lb=0, ub=1) for j, mask in enumerate(masks) for i in slots if mask >> i & 1
    }  # fmt: skip
    for i in slots:
        moved = sum((x for (_, k), x in share.items() if k == i), 0 * time)
        model.addConstr(float(paces[i].alpha) + moved * float(1 / paces[i].rate) <= time)
    for j in range(len(masks)):
        model.addConstr(sum((x for (k, _), x in share.items() if k == j), 0 * time) == 1)
    model.run()
    return model.getObjectiveValue()


@given(histograms, rows_of_paces)
@settings(max_examples=examples(25))
def test_the_time_agrees_with_the_linear_program(histogram, paces):
    """LP (14), links whose alpha does not pay removed, solved by HiGHS."""
    masks = [mask for mask, count in histogram for _ in range(count)]
    assert float(balance_unlike(histogram, paces).load) == pytest.approx(by_linear_program(masks, paces), rel=1e-9)


@given(histograms, st.fractions(Fraction(1, 3), 3, max_denominator=5), st.fractions(0, 3, max_denominator=5))
def test_equal_links_are_the_special_case(histogram, rate, alpha):
    """With one pace for all links the time is alpha and the least load of LP (1) at that rate."""
    found = balance_unlike(histogram, (Pace(alpha, rate),) * SLOTS)
    assert alpha + balance(histogram).load / rate == found.load


@given(histograms, rows_of_paces, st.integers(0, SLOTS - 1), st.fractions(1, 4), st.none() | st.integers(1, 4))
def test_a_better_link_never_costs_time(histogram, paces, slot, factor, chunks):
    """More bandwidth, or less latency, on one link: the time does not rise."""
    before, old = balance_unlike(histogram, paces, chunks).load, paces[slot]
    for new in (Pace(old.alpha, old.rate * factor), Pace(old.alpha / factor, old.rate)):
        assert balance_unlike(histogram, (*paces[:slot], new, *paces[slot + 1 :]), chunks).load <= before


@given(histograms, rows_of_paces, st.fractions(Fraction(1, 4), 4, max_denominator=7))
def test_the_unit_of_time_does_not_matter(histogram, paces, scale):
    """All alphas times s and all rates over s: the time times s, the division the same."""
    plain = balance_unlike(histogram, paces)
    scaled = balance_unlike(histogram, tuple(Pace(p.alpha * scale, p.rate / scale) for p in paces))
    assert plain.load * scale == scaled.load and plain.parts == scaled.parts
    assert all((getattr(plain, c) == getattr(scaled, c)).all() for c in ("job", "slot", "lo", "hi"))


def test_a_link_that_does_not_pay_is_left_out():
    """One job, one link at once and one that starts after the first could be done: the second is not used."""
    found = balance_unlike(((0b11, 1),), (Pace(Fraction(0), Fraction(2)), Pace(Fraction(1), Fraction(100))))
    assert Fraction(1, 2) == found.load and [0] == found.slot.tolist()


def test_parts_that_cannot_be_counted():
    """C0504: bandwidths of large coprime numerators cut jobs in more than 2^62 parts; whole chunks do not."""
    odd = tuple(Pace(Fraction(0), Fraction(10**20 + k)) for k in (1, 3))
    with pytest.raises(CollcError, match="C0504"):
        balance_unlike(((0b11, 1),), odd)
    assert 2 == balance_unlike(((0b11, 1),), odd, 2).parts


# ---- whole schedules

classes = st.builds(
    LinkClass, st.fractions(Fraction(1, 2), 4, max_denominator=3), st.fractions(0, 3, max_denominator=2)
)  # fmt: skip


@st.composite
def unlike(draw, max_ranks=6):
    """A strongly connected network whose links are of up to three kinds, bandwidths in B/s of a very slow net."""
    net = draw(connected(min_ranks=2, max_ranks=max_ranks, extra=10))
    kinds = draw(st.lists(classes, min_size=1, max_size=3))
    number = [draw(st.integers(0, len(kinds) - 1)) for _ in range(net.num_links)]
    return attrs.evolve(net, classes=tuple(kinds), link_class=number, unit="B/s")


def bfb(topology, kind="allgather", root=0, size=None, **options):
    rooted = kind in ("broadcast", "reduce")
    collective = Collective(kind, topology.num_ranks, root=root if rooted else None, size=size)
    return BFB(**options).run(Problem(topology, collective))


@given(unlike(), st.sampled_from(KINDS), st.sampled_from([None, 1, 7, 60]), st.none() | st.integers(1, 4), st.data())
def test_schedules_are_correct_whatever_the_links(topology, kind, size, chunks, data):
    """Executed symbolically, every collective ends with what it promises; steps are still the diameter's."""
    root = data.draw(st.integers(0, topology.num_ranks - 1))
    schedule = bfb(topology, kind, root, size, chunks=chunks)
    assert verify_schedule(schedule).failed == ()
    assert chunks is None or chunks % schedule.parts == 0
    if kind in ("allgather", "reduce-scatter", "allreduce"):
        assert schedule.num_steps == topology.diameter * (2 if kind == "allreduce" else 1)


def step_time(topology, step, size):
    """LP (14) for every node at one step (from 1), in seconds; without a size latencies do not count."""
    worst = Fraction(0)
    for node in range(topology.num_ranks):
        masks, slots = jobs(topology, node, step)
        start, links = topology.in_links
        inward = [k for k in links[start[node] : start[node + 1]].tolist() if topology.src[k] != node]
        shards = Fraction(topology.num_ranks, size or 1)
        row = [topology.classes[topology.link_class[k]] for k in inward]
        paces = [Pace(c.latency if size else Fraction(0), c.bandwidth * shards) for c in row]
        for links_ in range(1, 2**slots if masks else 0):
            count = sum(1 for mask in masks if mask & ~links_ == 0)
            if count:
                chosen = [pace for i, pace in enumerate(paces) if links_ >> i & 1]
                worst = max(worst, least_time_by_search(chosen, count))
    return worst


@given(unlike(5), st.sampled_from([None, 3, 40]), st.sampled_from(["allgather", "reduce-scatter"]))
@settings(max_examples=examples(40))
def test_every_step_takes_what_the_program_says(topology, size, kind):
    """Predicted seconds at the size planned for are the sum over steps of LP (14)'s optimum, exactly."""
    schedule = bfb(topology, kind, size=size)
    found, net = cost(schedule), topology if kind == "allgather" else topology.transpose()
    expected = sum((step_time(net, step, size) for step in range(1, net.diameter + 1)), Fraction(0))
    if size is None:
        assert expected == found.time_per_byte
    elif found.timed:
        assert expected == predicted_time(found, size)


@given(unlike(5), st.sampled_from([None, 40]))
def test_predictions_are_what_executing_the_steps_takes(topology, size):
    """A step lasts until its slowest link is done, at sizes other than the planned one too."""
    schedule = bfb(topology, "allreduce", size=size)
    found = cost(schedule)
    for asked in (1, 10, 1000):
        total = Fraction(0)
        for a, b in zip(schedule.step_start[:-1], schedule.step_start[1:], strict=True):
            load = link_loads(
                topology, schedule.routes, schedule.route[a:b], schedule.hi[a:b].astype(int) - schedule.lo[a:b]
            )
            share = Fraction(asked, topology.num_ranks * schedule.parts)
            busy = [topology.latency(k) + int(n) * share / topology.bandwidth(k) for k, n in enumerate(load) if n]
            total += max(busy)
        if found.timed:
            assert total == predicted_time(found, asked)
            assert float(total) == predict(found, [asked])[0].time
            assert total <= found.latency + found.time_per_byte * asked
        else:
            assert total == predicted_time(found, asked, Fraction(0))


@pytest.mark.slow
@given(unlike(5), st.sampled_from([1, 5, 100]), st.data())
@settings(max_examples=examples(40))
def test_planning_for_a_size_pays_at_that_size(topology, size, data):
    """No other size planned for gives a faster schedule at this one."""
    other = data.draw(st.sampled_from([None, 2, 30]))
    mine, theirs = cost(bfb(topology, size=size)), cost(bfb(topology, size=other))
    if mine.timed:
        assert predicted_time(mine, size) <= predicted_time(theirs, size)


@given(unlike(5), st.data())
@settings(max_examples=examples(40))
def test_more_bandwidth_never_costs_time(topology, data):
    """Doubling the bandwidth of one kind of links, for data of any size."""
    kind = data.draw(st.integers(0, len(topology.classes) - 1))
    faster = list(topology.classes)
    faster[kind] = attrs.evolve(faster[kind], bandwidth=faster[kind].bandwidth * 2)
    other = attrs.evolve(topology, classes=tuple(faster))
    assert cost(bfb(other)).time_per_byte <= cost(bfb(topology)).time_per_byte


@given(unlike(5), st.fractions(Fraction(1, 3), 3, max_denominator=4))
@settings(max_examples=examples(40))
def test_the_unit_of_bandwidth_does_not_matter(topology, scale):
    """All bandwidths times s, all latencies and so all times over s: the same schedule."""
    kinds = tuple(LinkClass(c.bandwidth * scale, c.latency / scale) for c in topology.classes)
    assert bfb(topology, size=10) == attrs.evolve(
        bfb(attrs.evolve(topology, classes=kinds), size=10), topology=topology
    )


@given(connected(min_ranks=2, max_ranks=6, extra=8))
@settings(max_examples=examples(30))
def test_equal_classes_under_two_numbers_are_equal_links(topology):
    """What counts is what links are, not how their classes are numbered."""
    number = np.arange(topology.num_links) % 2
    twice = attrs.evolve(topology, classes=(LinkClass(), LinkClass()), link_class=number)
    assert bfb(topology) == attrs.evolve(bfb(twice), topology=topology)


# ---- examples


def test_a_wide_and_a_narrow_rail():
    """Two ranks, rails of 3 and 1: the shard is cut 3 to 1 and all bandwidth is used."""
    wide, narrow = LinkClass(Fraction(3)), LinkClass(Fraction(1))
    links = [(a, 1 - a, kind) for a in (0, 1) for kind in (wide, narrow)]
    found = cost(bfb(Topology.from_links("rails", 2, links)))
    assert (Fraction(1, 2), 4) == (found.T_B, found.parts) and found.bw_optimal


def test_the_size_decides_whether_a_slow_start_pays():
    """A rail of ten times the bandwidth, a millisecond late: unused for a small message, used for a large one."""
    near, far = LinkClass(Fraction(10**9)), LinkClass(Fraction(10**10), Fraction(1, 1000))
    net = Topology.from_links("rails", 2, [(a, 1 - a, kind) for a in (0, 1) for kind in (near, far)], unit="B/s")
    small, large = bfb(net, size=10**5), bfb(net, size=10**9)
    assert {0, 2} == set(small.route.tolist()) and {0, 1, 2, 3} == set(large.route.tolist())
    assert Fraction(5 * 10**4, 10**9) == predicted_time(cost(small), 10**5)
    assert Fraction(1, 1000) > predicted_time(cost(small), 10**5) < predicted_time(cost(large), 10**5)
    assert predicted_time(cost(small), 10**9) > predicted_time(cost(large), 10**9)


def test_the_option_overrides_the_size_of_the_collective():
    near, far = LinkClass(Fraction(10**9)), LinkClass(Fraction(10**10), Fraction(1, 1000))
    net = Topology.from_links("rails", 2, [(a, 1 - a, kind) for a in (0, 1) for kind in (near, far)], unit="B/s")
    planned = BFB(size=10**5).run(Problem(net, Collective("allgather", 2, size=10**9)))
    assert {0, 2} == set(planned.route.tolist())
    for wrong in ({"size": 0}, {"chunks": 0}):
        with pytest.raises(CollcError, match="C0550"):
            BFB(**wrong).run(Problem(net, Collective("allgather", 2)))


def test_link_units_are_taken_as_predictions_take_them():
    """Latencies in seconds beside bandwidths in link units: 100 Gbps out of a node where nodes are alike."""
    late = LinkClass(Fraction(1), Fraction(1, 1000))
    net = Topology.from_links("rails", 2, [(a, 1 - a, kind) for a in (0, 1) for kind in (LinkClass(), late)])
    absolute = net.with_links(Fraction(10**11, 16), None)
    for size in (10**5, 10**7, 10**8):
        relative = bfb(net, size=size)
        assert relative == attrs.evolve(bfb(absolute, size=size), topology=net)
        assert predicted_time(cost(relative), size) == predicted_time(cost(bfb(absolute, size=size)), size)


@pytest.mark.parametrize("topology", [torus(3, 3), complete(4), one_way_ring(4)], ids=lambda t: t.name)
def test_equal_latencies_leave_the_schedule_alone(topology):
    """A latency that all links have changes the prediction, not the plan."""
    late = topology.with_links(None, Fraction(1, 1000))
    assert bfb(topology, size=5) == attrs.evolve(bfb(late, size=5), topology=topology)


# ---- cost through switches


def test_routes_through_switches_are_as_late_as_all_their_links():
    """Rank to rank over a late switch, and directly: each link waits for its own route only."""
    late, near = LinkClass(Fraction(10), Fraction(1)), LinkClass(Fraction(1), Fraction(1, 2))
    net = Topology.from_links(
        "both", 2, [(0, 2, late), (2, 1, late), (0, 1, near), (1, 0, near)], num_switches=1, unit="B/s"
    )
    routes = Routes.of([[0, 1], [2], [3]])
    # rank 0's shard half by the switch (2 s late, 10 B/s), half directly; rank 1's directly
    rows = [(0, 0, 0, 0, 1, 0), (0, 0, 0, 1, 2, 1), (0, 0, 1, 0, 2, 2)]
    found = cost(Schedule(net, Collective("allgather", 2), 2, *zip(*rows, strict=True), routes=routes))
    assert (Fraction(2), Fraction(1, 2)) == (found.latency, found.time_per_byte)
    assert Fraction(2) + Fraction(1, 40) == predicted_time(found, 1)
    assert Fraction(1, 2) + 50 == predicted_time(found, 100)
