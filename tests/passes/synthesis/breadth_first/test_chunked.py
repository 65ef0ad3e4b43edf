"""Shards in a fixed number of chunks: integer program (13) and Theorem 20 of the direct-connect paper."""

from __future__ import annotations

import json
from fractions import Fraction
from math import ceil, floor, gcd

import attrs
import highspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import circulant, complete, torus
from sampling import every, examples
from strategies import connected, regular

import collc.passes.synthesis.breadth_first.chunked as chunked
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.balance import balance
from collc.passes.synthesis.breadth_first.bfb import BFB

SLOTS = 5
histograms = st.dictionaries(st.integers(1, 2**SLOTS - 1), st.integers(1, 6), min_size=1, max_size=6).map(
    lambda counts: tuple(sorted(counts.items()))
)


def bfb(topology, kind="allgather", root=None, **options):
    return BFB(**options).run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))


# ---- one node, one step


def integer_bound(histogram, chunks):
    """The chunks confined to some links, divided among them and rounded up: no division does better."""
    sets = range(1, 2**SLOTS)
    confined = {s: sum(count for mask, count in histogram if mask & ~s == 0) for s in sets}
    return max(ceil(Fraction(confined[s] * chunks, s.bit_count())) for s in sets)


@given(histograms, st.integers(1, 7))
def test_the_division_is_optimal_and_complete(histogram, chunks):
    """Every job is covered once, by whole chunks on links of its mask, and the busiest link meets the bound."""
    found = chunked.balance_chunks(histogram, chunks)
    assert Fraction(integer_bound(histogram, chunks), chunks) == found.load
    assert chunks % found.parts == 0
    masks = [mask for mask, count in histogram for _ in range(count)]
    moved, covered = [0] * SLOTS, [[] for _ in masks]
    for job, slot, lo, hi in zip(*(x.tolist() for x in (found.job, found.slot, found.lo, found.hi)), strict=True):
        assert masks[job] >> slot & 1 and lo < hi
        moved[slot] += hi - lo
        covered[job].append((lo, hi))
    assert Fraction(max(moved), found.parts) == found.load
    for pieces in covered:
        ends = [0, *(hi for _, hi in sorted(pieces))]
        assert [lo for lo, _ in sorted(pieces)] == ends[:-1] and ends[-1] == found.parts


def by_integer_program(masks, chunks):
    """Integer program (13) on HiGHS."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    most = model.addVariable(lb=0, obj=1)
    share = {
        (j, i): model.addIntegral(lb=0, ub=chunks)
        for j, mask in enumerate(masks) for i in range(SLOTS) if mask >> i & 1
    }  # fmt: skip
    for i in range(SLOTS):
        model.addConstr(sum((x for (_, k), x in share.items() if k == i), 0 * most) <= most)
    for j in range(len(masks)):
        model.addConstr(sum((x for (k, _), x in share.items() if k == j), 0 * most) == chunks)
    model.run()
    return round(model.getObjectiveValue())


@given(histograms, st.integers(1, 5))
@settings(max_examples=examples(25))
def test_the_division_agrees_with_the_integer_program(histogram, chunks):
    """HiGHS on (13) finds the same number of chunks on the busiest link."""
    masks = [mask for mask, count in histogram for _ in range(count)]
    assert by_integer_program(masks, chunks) == chunked.balance_chunks(histogram, chunks).load * chunks


@given(histograms, st.integers(1, 4))
def test_enough_chunks_lose_nothing(histogram, times):
    """A multiple of the exact division's parts gives the load of LP (1)."""
    exact = balance(histogram)
    assert exact.load == chunked.balance_chunks(histogram, exact.parts * times).load


@given(histograms, st.integers(1, 5), st.integers(1, 4))
def test_finer_chunks_never_lose(histogram, chunks, times):
    fine, coarse = (chunked.balance_chunks(histogram, c).load for c in (chunks * times, chunks))
    assert balance(histogram).load <= fine <= coarse < balance(histogram).load + Fraction(1, chunks)


def rounded(histogram, chunks):
    """The most chunks on a link after rounding the LP's solution as section E.2 does: down, then up where short."""
    exact = balance(histogram)
    jobs = sum(count for _, count in histogram)
    share = [[Fraction(0)] * SLOTS for _ in range(jobs)]
    for job, slot, lo, hi in zip(*(x.tolist() for x in (exact.job, exact.slot, exact.lo, exact.hi)), strict=True):
        share[job][slot] += Fraction((hi - lo) * chunks, exact.parts)
    moved = [0] * SLOTS
    for row in share:
        counts = [floor(x) for x in row]
        for slot in sorted(range(SLOTS), key=lambda k: counts[k] - row[k])[: chunks - sum(counts)]:
            counts[slot] += 1
        assert sum(counts) == chunks and all(y < x + 1 for x, y in zip(row, counts, strict=True))
        moved = [a + b for a, b in zip(moved, counts, strict=True)]
    return max(moved)


@given(histograms, st.integers(1, 6))
def test_rounding_costs_at_most_a_chunk_a_job(histogram, chunks):
    """The step of Theorem 20's proof: W <= W(LP) + jobs; the exact optimum is between them."""
    exact, best = balance(histogram).load * chunks, chunked.balance_chunks(histogram, chunks).load * chunks
    assert exact <= best <= rounded(histogram, chunks) <= exact + sum(count for _, count in histogram)


# ---- whole schedules


@given(connected(max_ranks=6, extra=10), st.integers(1, 5), st.data())
def test_schedules_are_correct_on_any_connected_network(topology, chunks, data):
    """Executed symbolically, in chunks as many as asked for (or a divisor), every collective ends as it should."""
    kind = data.draw(st.sampled_from(["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"]))
    root = data.draw(st.integers(0, topology.num_ranks - 1)) if kind in ("broadcast", "reduce") else None
    schedule = bfb(topology, kind, root, chunks=chunks)
    assert verify_schedule(schedule).failed == ()
    assert chunks % schedule.parts == 0
    cut = Discretize(max_chunks=chunks).run(schedule)
    assert cost(cut).time_per_byte == cost(schedule).time_per_byte


@given(regular(max_ranks=7, max_degree=3), st.integers(1, 6))
def test_theorem_20(topology, chunks):
    """T_B in chunks exceeds T_B of LP (1) by less than d D / (P N), which Theorem 20's bound is never below."""
    exact, found = cost(bfb(topology, relax=False)), cost(bfb(topology, relax=False, chunks=chunks))
    n, d, diameter = topology.num_ranks, topology.degree, topology.diameter
    ours, theirs = Fraction(d * diameter, chunks * n), chunked.theorem_20(d, diameter, chunks, n)
    assert exact.T_B <= found.T_B < exact.T_B + ours <= exact.T_B + theirs
    if found.moore_optimal:
        assert theirs < Fraction(d, chunks)


@pytest.mark.parametrize(
    ("topology", "chunks", "expected"),
    [
        # K_5 has nothing to divide; of the torus the second step divides in halves, the last in quarters
        (complete(5), 1, Fraction(4, 5)),
        (torus(4, 4), 1, Fraction(5, 4)), (torus(4, 4), 2, Fraction(1)), (torus(4, 4), 4, Fraction(15, 16)),
        (circulant(7, 2, 3), 1, Fraction(8, 7)), (circulant(7, 2, 3), 2, Fraction(6, 7)),
    ],
    ids=lambda x: x.name if isinstance(x, Topology) else str(x),
)  # fmt: skip
def test_known_values(topology, chunks, expected):
    assert expected == cost(bfb(topology, relax=False, chunks=chunks)).T_B


def test_multiples_of_the_exact_parts_give_the_exact_schedule():
    exact = bfb(torus(5, 4))
    assert cost(exact).T_B == cost(bfb(torus(5, 4), chunks=exact.parts * 3)).T_B == Fraction(19, 20)


def test_relaxed_schedules_are_rounded_where_that_is_better():
    """Late arrivals win in whole chunks too: as many as their types, a multiple, or rounded."""
    import collc as api

    net = api.topology("torus(3, 3, 2)")
    relaxed, eager = bfb(net), bfb(net, relax=False)
    assert cost(relaxed).T_B < cost(eager).T_B
    assert cost(relaxed).T_B == cost(bfb(net, chunks=relaxed.parts * 2)).T_B
    for chunks in range(1, 7):
        found = bfb(net, chunks=chunks)
        assert verify_schedule(found).ok and chunks % found.parts == 0
        assert cost(found).T_B <= cost(bfb(net, relax=False, chunks=chunks)).T_B
    assert cost(bfb(net, chunks=4)).T_B < cost(bfb(net, relax=False, chunks=4)).T_B


NETS = [
    *(f"circulant({n}, {{{a}, {b}}})" for n in range(5, 21) for a in (1, 2) for b in range(3, (n + 1) // 2)
      if gcd(n, a, b) == 1),
    *(f"torus({n}, 2)" for n in range(3, 11)), "torus(3, 2, 2)", "torus(4, 2, 2)", "torus(3, 3, 2)", "biring(7, 4)",
    "kautz(2, 2)", "kautz(3, 1)", "debruijn(3, 2)", "generalized_kautz(2, 7)", "mesh(3, 4)", "diamond()", "mi250(1)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("expression", every(24, NETS, 14))
def test_no_number_of_chunks_beats_any_parts(expression):
    """The default is the optimum of LP (1), or late arrivals that are better still."""
    import collc as api

    net = api.topology(expression)
    for kind in ("allgather", "reduce-scatter", "allreduce"):
        chosen = cost(bfb(net, kind))
        for chunks in range(1, 13):
            given = cost(bfb(net, kind, chunks=chunks))
            assert chosen.T_L <= given.T_L and chosen.time_per_byte <= given.time_per_byte, (kind, chunks)


@pytest.mark.parametrize("expression", ["circulant(12, {2, 3})", "torus(4, 3)", "directed_circulant(4)"])
def test_templates_are_cut_alike(expression):
    """On a topology that knows its symmetry the chunks come out as on one that does not."""
    import collc as api

    net = api.topology(expression)
    plain = attrs.evolve(net, symmetry=None)
    for kind in ("allgather", "reduce-scatter", "allreduce"):
        for chunks in (1, 2, 3):
            found = bfb(net, kind, chunks=chunks, relax=False)
            assert verify_schedule(found).ok and chunks % found.parts == 0
            assert cost(found).T_B == cost(bfb(plain, kind, chunks=chunks, relax=False)).T_B


# ---- what is said of it

CHUNKED = """
topology t = torus(4, 4);
collective c = allreduce on t;
schedule c using bfb { chunks: 1 };
"""
UNLIKE = """
topology t { rank a[2]; link a[0] <-> a[1] : 3 GB/s; link a[0] <-> a[1] : 1 GB/s; link a[0] -> a[1] : 1 GB/s; }
collective c = allgather on t { size: 1 MiB };
schedule c using bfb { chunks: 2, size: 4 KiB };
"""


def test_the_cost_says_both(collc):
    """Beside T_B in chunks stand that of any parts and what Theorem 20 allows."""
    ran = collc("cost", "-", "--json", stdin=CHUNKED)
    found = json.loads(ran.out)
    assert ("5/2", "15/8") == (found["T_B"], found["T_B_fluid"])
    assert Fraction(15, 8) + 2 * chunked.theorem_20(4, 4, 1, 16) == Fraction(found["T_B_theorem_20"])
    text = collc("cost", "-", stdin=CHUNKED).out
    assert "fluid" in text and "15/8 M/B (1.8750)" in text and "Theorem 20 allows" in text
    plain = collc("cost", "-", "--json", stdin=CHUNKED.replace("{ chunks: 1 }", ""))
    assert "T_B_fluid" not in json.loads(plain.out)


def test_the_cost_says_both_where_links_differ(collc):
    """Without a common B there are times per byte; Theorem 20 is about equal links."""
    found = json.loads(collc("cost", "-", "--json", stdin=UNLIKE).out)
    assert (None, None, None) == (found["T_B"], found["T_B_fluid"], found["T_B_theorem_20"])
    assert Fraction(found["time_per_byte_fluid"]) == Fraction(1, 2 * 4 * 10**9)
    assert Fraction(found["time_per_byte"]) == Fraction(1, 2 * 3 * 10**9)
    assert "in any parts" in collc("cost", "-", stdin=UNLIKE).out


def test_an_impossible_number_of_chunks(collc):
    ran = collc("cost", "-", stdin=CHUNKED.replace("chunks: 1", "chunks: 0"))
    assert ran.status == 1 and "C0550" in ran.err and "chunks: 0" in ran.err


def test_odd_parts_become_a_sensible_number_of_chunks():
    """Links that differ can divide shards in millions of parts; what is lowered has at most 4096 chunks."""
    late = [LinkClass(Fraction(25 * 10**9), Fraction(7, 10**7)), LinkClass(Fraction(16 * 10**9), Fraction(5, 10**6))]
    net = Topology.from_links("rails", 5, [(r, (r + 1) % 5, kind) for r in range(5) for kind in late], unit="B/s")
    exact = BFB().run(Problem(net, Collective("allgather", 5, size=2**26)))
    assert isinstance(exact, Schedule) and exact.parts > 10**6
    cut = Discretize().run(exact)
    assert cut.parts <= 4096 and verify_schedule(cut).ok
    assert cost(cut).time_per_byte <= cost(exact).time_per_byte * Fraction(1001, 1000)
    with pytest.raises(CollcError, match="C0507"):
        Discretize(max_chunks=0).run(exact)
