"""BFB: exact, optimal, correct on every strongly connected network (appendix E of the direct-connect paper)."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import jobs, least_load, step_loads
from nets import circulant, complete, de_bruijn, generalized_kautz, hypercube, one_way_ring, torus
from sampling import examples
from strategies import connected

from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Action
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.balance import balance
from collc.passes.synthesis.breadth_first.bfb import BFB

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def bfb(topology, kind="allgather", root=0):
    rooted = kind in ("broadcast", "reduce")
    return BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root if rooted else None)))


# ---- dividing jobs


histograms = st.integers(1, 6).flatmap(
    lambda slots: st.dictionaries(st.integers(1, 2**slots - 1), st.integers(1, 9), min_size=1, max_size=8)
)


def by_theorem_19(histogram):
    """The optimum as a formula: the largest ratio, over sets of links, of jobs confined to the set to its links."""
    union = 0
    for mask in histogram:
        union |= mask
    subsets = [s for s in range(1, union + 1) if s & ~union == 0]
    return max(Fraction(sum(c for m, c in histogram.items() if m & ~s == 0), s.bit_count()) for s in subsets)


@given(histograms)
def test_the_division_is_optimal_and_complete(histogram):
    """The busiest link carries what Theorem 19 allows and no more; every job is covered once, by links of its mask."""
    table = tuple(sorted(histogram.items()))
    found = balance(table)
    assert by_theorem_19(histogram) == found.load
    masks = [mask for mask, count in table for _ in range(count)]
    load = np.zeros(8, dtype=np.int64)
    covered = [[] for _ in masks]
    for job, slot, lo, hi in zip(found.job, found.slot, found.lo, found.hi, strict=True):
        assert masks[job] >> slot & 1
        load[slot] += hi - lo
        covered[job].append((lo, hi))
    assert found.load == Fraction(int(load.max()), found.parts)
    for pieces in covered:
        ends = [0, *(hi for _, hi in sorted(pieces))]
        assert [lo for lo, _ in sorted(pieces)] == ends[:-1] and ends[-1] == found.parts


@given(histograms)
@settings(max_examples=examples(25))
def test_the_division_agrees_with_the_linear_program(histogram):
    """HiGHS on LP (1) finds the same optimum, up to its tolerance."""
    masks = [mask for mask, count in sorted(histogram.items()) for _ in range(count)]
    assert float(balance(tuple(sorted(histogram.items()))).load) == pytest.approx(least_load(masks, 6), abs=1e-7)


# ---- whole schedules


@given(connected(max_ranks=7, extra=12), st.sampled_from(KINDS), st.data())
def test_schedules_are_correct_on_any_connected_network(topology, kind, data):
    """Executed symbolically, every collective ends with what it promises; in as many steps as the diameter
    (Theorem 15)."""
    root = data.draw(st.integers(0, topology.num_ranks - 1))
    schedule = bfb(topology, kind, root)
    assert verify_schedule(schedule).failed == ()
    if kind in ("allgather", "reduce-scatter", "allreduce"):
        assert schedule.num_steps == topology.diameter * (2 if kind == "allreduce" else 1)


@given(connected(max_ranks=7, extra=12))
@settings(max_examples=examples(30))
def test_every_step_costs_what_the_linear_program_says(topology):
    """Theorem 16: LP (1), solved by HiGHS for every node and step, gives the optimal BFB schedule; ours is as
    good, exactly."""
    schedule = bfb(topology)
    for step, expected in enumerate(step_loads(topology)):
        rows = slice(schedule.step_start[step], schedule.step_start[step + 1])
        load = np.bincount(schedule.route[rows], weights=schedule.hi[rows].astype(int) - schedule.lo[rows])
        assert load.max() / schedule.parts == pytest.approx(expected, abs=1e-7)


@given(connected(max_ranks=6, extra=10))
def test_transfers_follow_shortest_paths_eagerly(topology):
    """Definition 15: shard v goes from w to u at step t only where d(v, u) = d(v, w) + 1 = t."""
    s, hops = bfb(topology), topology.distances
    assert (hops[s.shard, s.dst] == s.step.astype(int) + 1).all()
    assert (hops[s.shard, s.src] == s.step).all()


@pytest.mark.parametrize(
    "topology",
    [
        torus(5, 7), torus(3, 3), torus(4, 4, 4), torus(3, 3, 3), torus(2, 2, 2), torus(1, 6), hypercube(6),
        circulant(12, 2, 3), circulant(25, 3, 4), complete(9), one_way_ring(7), torus(2),
        Topology.from_links("K44", 8, [(a, b) for a in range(8) for b in range(8) if (a < 4) != (b < 4)]),
    ],
    ids=lambda t: f"{t.name}{t.num_ranks}",
)  # fmt: skip
@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_symmetric_networks_are_optimal_in_both_terms(topology, kind):
    """T_B is (N-1)/N exactly and T_L the diameter (Theorems 13 and 18, section F), for both phases of allreduce."""
    found = cost(bfb(topology, kind))
    phases = 2 if kind == "allreduce" else 1
    n = topology.num_ranks
    assert (phases * Fraction(n - 1, n), phases * topology.diameter) == (found.T_B, found.T_L)
    assert found.bw_optimal


@pytest.mark.parametrize(
    ("topology", "steps", "bandwidth"),
    [
        (generalized_kautz(4, 64), 3, Fraction(21, 16)),
        (generalized_kautz(4, 1024), 5, Fraction(341, 256)),
        (de_bruijn(4, 4), 4, Fraction(85, 64)),
    ],
    ids=["Pi(4,64)", "Pi(4,1024)", "DBJ(4,4)"],
)
def test_values_of_the_papers_tables(topology, steps, bandwidth):
    """Tables 4 and 7 print 1.312, 1.332 and 1.328; these are the rationals behind them."""
    found = cost(bfb(topology))
    assert (steps, bandwidth) == (found.T_L, found.T_B)
    assert not found.bw_optimal and found.moore_optimal


def test_more_than_63_links_a_node():
    """Masks then no longer fit a machine word."""
    schedule = bfb(complete(70))
    assert verify_schedule(schedule).ok
    assert (1, Fraction(69, 70)) == (cost(schedule).T_L, cost(schedule).T_B)


def test_a_single_rank_has_nothing_to_do():
    """One rank, no links: an empty schedule that is right."""
    schedule = bfb(Topology.from_links("one", 1, []), "allreduce")
    assert (0, 0) == (len(schedule), schedule.num_steps)
    assert verify_schedule(schedule).ok


def test_one_way_links_reduce_on_the_transpose():
    """Corollary 1.1: a one-way ring cannot run its allgather backwards, but has a reduce-scatter of its own."""
    schedule = bfb(one_way_ring(5), "reduce-scatter")
    assert (schedule.action == Action.REDUCE).all()
    assert verify_schedule(schedule).ok


def test_only_half_of_an_allreduce_on_request():
    problem = Problem(torus(3, 3), Collective("allreduce", 9))
    assert "allgather" == BFB(collective="allgather").run(problem).collective.kind
    with pytest.raises(CollcError, match="C0511"):
        BFB(collective="broadcast").run(problem)


# ---- what BFB refuses


def _code(topology, kind="allgather", root=None):
    with pytest.raises(CollcError) as caught:
        BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))
    return caught.value.diagnostics[0]


def test_refusals_name_the_reason():
    """Switches, missing paths, unknown collectives: one clear message each."""
    switched = Topology.from_links("s", 2, [(0, 2), (2, 1), (1, 2), (2, 0)], num_switches=1)
    assert "C0501" == _code(switched).code
    broken = Topology.from_links("b", 3, [(0, 1), (1, 0), (1, 2)])
    found = _code(broken)
    assert "C0301" == found.code and "there is no route from rank 2 to rank 0" in found.message
    assert "C0503" == _code(complete(3), "gather", root=0).code


def test_loops_of_another_kind_do_not_matter():
    """A link of a rank to itself carries nothing, whatever its bandwidth."""
    loop = LinkClass(Fraction(9))
    net = Topology.from_links("l", 2, [(0, 1), (1, 0), (0, 0, loop)])
    assert verify_schedule(bfb(net)).ok


def test_jobs_of_the_lp_are_those_of_the_schedule():
    """The check itself: on a path of three, the end receives the other end's shard over its only link."""
    path = Topology.from_links("path", 3, [(0, 1), (1, 0), (1, 2), (2, 1)])
    assert ([1], 1) == jobs(path, 2, 2)
    assert attrs.evolve(bfb(path)).num_steps == 2


def test_shares_too_fine_to_count(monkeypatch):
    """C0504: no network of sane size gets there, so the limit is lowered to see it."""
    monkeypatch.setattr("collc.passes.synthesis.breadth_first.bfb._MOST_PARTS", 3)
    assert _code(torus(4, 4)).code == "C0504"
