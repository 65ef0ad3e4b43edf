"""How fast forests can be: the optimum, k, fixed k and its search, against trying every cut, and known figures."""

from __future__ import annotations

import time
from fractions import Fraction
from math import floor

import attrs
import pytest
from cut_nets import all_sets, out_of, sent, slow_ratio, supplies, switched
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll.families.cayley import biring, hypercube, torus
from collc.frontends.coll.families.machines import dgx1_v100, dgx_a100, dgx_h100, mi250
from collc.frontends.coll.families.operators import subset
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.forest.capacities import link_capacities
from collc.passes.synthesis.forest.optimum import (
    Optimum,
    bundled,
    certified,
    choose,
    fixed,
    is_balanced,
    optimum,
)

GB = 10**9
EIGHT = (*range(8), *range(16, 24))  # dies 0 to 7 of both boxes


def everyone(topology: Topology) -> list[int]:
    return [1] * topology.num_ranks


# ---- against trying everything


@pytest.mark.slow
@given(st.data(), switched())
@settings(max_examples=examples(60))
def test_the_optimum_is_the_worst_cut_and_k_the_fewest_whole_trees(data, topology):
    """Theorem 1 and Proposition 3, the latter by trying k = 1, 2, .."""
    supply = data.draw(supplies(topology))
    found = optimum(topology, supply)
    assert found.one_over_x == slow_ratio(topology, supply, range(topology.num_ranks))
    assert found.per_unit == found.k * found.one_over_x and certified(topology, supply, found)
    widths = [
        topology.bandwidth(link) for link in range(topology.num_links) if topology.src[link] != topology.dst[link]
    ]
    if found.one_over_x:
        units = (found.one_over_x * k for k in range(1, found.k + 1))
        assert [all((unit * w).denominator == 1 for w in widths) for unit in units] == [False] * (found.k - 1) + [True]
    else:
        assert found == Optimum(Fraction(0), (), 1, Fraction(0))


def slow_fixed(topology: Topology, supply: list[int], k: int) -> Fraction:
    """The least of all fractions j/b at which every set of nodes lets its trees out, whole trees on every link."""
    ranks = range(topology.num_ranks)
    sets = [(k * sent(topology, supply, s), out_of(topology, s)) for s in all_sets(topology.num_nodes, ranks)]
    most = k * slow_ratio(topology, supply, ranks) + 1 / min(c.bandwidth for c in topology.classes)
    widths = {kind.bandwidth for kind in topology.classes}
    units = sorted({j / w for w in widths for j in range(floor(most * w) + 1)} | {Fraction(0)})
    return next(u for u in units if all(sum(floor(u * w) for w in out) >= trees for trees, out in sets))


@pytest.mark.slow
@given(st.data(), switched(max_ranks=4), st.integers(1, 5))
@settings(max_examples=examples(120))
def test_a_fixed_k_is_the_first_of_all_candidates(data, topology, k):
    """Theorems 13 and 14: the least U of the kind j/b; Theorem 15 bounds it."""
    supply = data.draw(supplies(topology))
    found, best = fixed(topology, supply, k), optimum(topology, supply)
    assert found.per_unit == slow_fixed(topology, supply, k) == found.one_over_x * k
    assert certified(topology, supply, found)
    if best.one_over_x:
        narrowest = min(kind.bandwidth for kind in topology.classes)
        assert best.one_over_x <= found.one_over_x <= best.one_over_x + 1 / (k * narrowest)


@pytest.mark.slow
@given(st.data(), switched(), st.integers(1, 4), st.integers(2, 3))
@settings(max_examples=examples(100))
def test_what_more_trees_do(data, topology, k, times):
    """U rises with k, k trees can be sent several times over, the optimum's k (and its multiples) is optimal."""
    supply = data.draw(supplies(topology))
    best, some = optimum(topology, supply), fixed(topology, supply, k)
    assert some.per_unit <= fixed(topology, supply, k + 1).per_unit
    assert fixed(topology, supply, k * times).one_over_x <= some.one_over_x
    assert fixed(topology, supply, best.k * times).one_over_x == best.one_over_x
    assert fixed(topology, supply, k, [best.cut, some.cut] if best.cut else []).per_unit == some.per_unit


@pytest.mark.slow
@given(st.data(), switched(max_ranks=4))
@settings(max_examples=examples(60))
def test_the_fewest_trees_of_optimal_bandwidth(data, topology):
    supply = data.draw(supplies(topology))
    chosen = choose(topology, supply, "fewest")
    assert chosen.lost_bandwidth == 0
    if chosen.optimum.k <= 40:
        one_over_x = chosen.optimum.one_over_x
        wanted = next(k for k in range(1, 41) if fixed(topology, supply, k).one_over_x == one_over_x)
        assert chosen.k == wanted and chosen.per_unit == one_over_x * wanted


@given(st.data(), switched(max_ranks=4), st.integers(1, 4))
@settings(max_examples=examples(60))
def test_links_that_are_bundled_are_no_worse(data, topology, k):
    supply = data.draw(supplies(topology))
    joined, bundle = bundled(topology)
    pairs = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    assert list(zip(joined.src.tolist(), joined.dst.tolist(), strict=True)) == list(dict.fromkeys(pairs))
    width = [Fraction(0)] * joined.num_links
    for link, number in enumerate(bundle.tolist()):
        assert pairs[link] == (joined.src[number], joined.dst[number])
        width[number] += topology.bandwidth(link)
    assert width == [joined.bandwidth(link) for link in range(joined.num_links)]
    assert optimum(joined, supply).one_over_x == optimum(topology, supply).one_over_x
    assert fixed(joined, supply, k).one_over_x <= fixed(topology, supply, k).one_over_x


# ---- the certificate


@pytest.mark.slow
@given(st.data(), switched())
@settings(max_examples=examples(150))
def test_a_wrong_claim_is_caught(data, topology):
    """Any other ratio, or any set that is not a bottleneck, fails; no flow is asked."""
    supply = everyone(topology)
    best = optimum(topology, supply)
    nodes = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_nodes - 1), min_size=1))))
    valid = not set(nodes) >= set(range(topology.num_ranks))
    worst = (
        valid
        and bool(supplied := sent(topology, supply, nodes))
        and (best.one_over_x == supplied / sum(out_of(topology, nodes), Fraction(0)))
    )
    assert certified(topology, supply, attrs.evolve(best, cut=nodes)) == worst
    for wrong in (
        attrs.evolve(best, one_over_x=best.one_over_x * Fraction(999, 1000)),
        attrs.evolve(best, k=best.k * 2, per_unit=best.per_unit * 2),
        attrs.evolve(best, per_unit=best.per_unit + 1),
        attrs.evolve(best, cut=()),
        attrs.evolve(best, cut=tuple(range(topology.num_nodes))),
    ):
        assert not certified(topology, supply, wrong)


@pytest.mark.slow
@given(switched(max_ranks=4), st.integers(1, 4))
@settings(max_examples=examples(40))
def test_a_fixed_k_that_could_do_with_less_is_caught(topology, k):
    supply = everyone(topology)
    found = fixed(topology, supply, k)
    for share in (Fraction(1, 1000), Fraction(1, 3)):
        assert not certified(topology, supply, attrs.evolve(found, per_unit=found.per_unit * (1 + share)))
    assert not certified(topology, supply, attrs.evolve(found, cut=tuple(range(topology.num_nodes))))


# ---- figures

OPTIMA = [
    *[(dgx_a100(boxes), one, k, algbw) for boxes, one, k, algbw in (
        (1, "7/300", 1, 342.86), (2, "3/65", 13, 346.67), (4, "3/25", 1, 266.67), (8, "7/25", 1, 228.57),
        (16, "3/5", 1, 213.33), (32, "31/25", 1, 206.45), (64, "63/25", 1, 203.17), (128, "127/25", 1, 201.57),
    )],
    *[(dgx_h100(boxes), one, k, algbw) for boxes, one, k, algbw in (
        (1, "7/450", 1, 514.29), (2, "3/100", 2, 533.33), (4, "31/500", 10, 516.13), (8, "7/50", 1, 457.14),
        (128, "127/50", 1, 403.15),
    )],
    *[(mi250(boxes), one, k, algbw) for boxes, one, k, algbw in (
        (1, "7/150", 3, 342.86), (2, "15/166", 83, 354.13), (4, "3/16", 8, 341.33), (8, "7/16", 8, 292.57),
        (16, "15/16", 8, 273.07), (64, "63/16", 8, 260.06),
    )],
    (subset(mi250(2), EIGHT), "1/13", 13, 208.0),
    (dgx1_v100(), "7/150", 6, 171.43),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "one", "k", "algbw"), OPTIMA, ids=lambda x: getattr(x, "name", None))
def test_machines(topology, one, k, algbw):
    """ForestColl's testbeds in GB/s."""
    found = optimum(topology, everyone(topology))
    assert (found.one_over_x * GB, found.k) == (Fraction(one), k)
    assert round(float(topology.num_ranks / found.one_over_x / GB), 2) == algbw
    assert certified(topology, everyone(topology), found) and is_balanced(topology, found.per_unit)


@pytest.mark.parametrize(
    ("topology", "one", "k"),
    [
        (hypercube(3), "7/3", 3), (hypercube(4), "15/4", 4), (hypercube(5), "31/5", 5), (hypercube(6), "21/2", 2),
        (hypercube(10), "1023/10", 10),
        (torus(4, 4), "15/4", 4), (torus(6, 6), "35/4", 4), (torus(8, 8), "63/4", 4), (torus(3, 3, 2), "17/6", 6),
        (torus(16, 16), "255/4", 4), (torus(32, 32), "1023/4", 4),
        (biring(8), "7/2", 2), (biring(16), "15/2", 2), (biring(32), "31/2", 2),
    ],
)  # fmt: skip
def test_direct_networks(topology, one, k):
    """Links of bandwidth 1; a torus's side of 2 is a double link."""
    found = optimum(topology, everyone(topology))
    assert (found.one_over_x, found.k) == (Fraction(one), k) and certified(topology, everyone(topology), found)


#: k: GB/s
FIXED = [
    (dgx_a100(2), dict.fromkeys(range(1, 7), 342.86) | {8: 345.95, 13: 346.67}),
    (dgx_h100(2), {1: 514.29, 2: 533.33}),
    (dgx_h100(4), {1: 514.29, 2: 514.29, 4: 514.29, 10: 516.13}),
    (mi250(1), {1: 266.67, 2: 320.0, 3: 342.86}),
    (mi250(2), {1: 320.0, 2: 341.33, 3: 342.86, 4: 341.33, 5: 347.83, 6: 342.86, 8: 345.95, 10: 347.83, 16: 350.68,
                83: 354.13}),
    (subset(mi250(2), EIGHT), {1: 200.0, 2: 200.0, 3: 200.0, 4: 204.8, 8: 204.8, 13: 208.0}),
    (dgx1_v100(), {1: 100.0, 2: 133.33, 3: 150.0, 6: 171.43}),  # every link of a pair holds whole trees
    (bundled(dgx1_v100())[0], {1: 133.33, 2: 160.0, 3: 150.0, 6: 171.43}),  # or the pair does
]  # fmt: skip


@pytest.mark.parametrize(("topology", "algbw"), FIXED, ids=lambda x: getattr(x, "name", None))
def test_fixed_numbers_of_trees(topology, algbw):
    supply = everyone(topology)
    found = {k: fixed(topology, supply, k) for k in algbw}
    assert {k: round(float(topology.num_ranks / one.one_over_x / GB), 2) for k, one in found.items()} == algbw
    assert all(certified(topology, supply, one) and is_balanced(topology, one.per_unit) for one in found.values())


def test_rooted_k_is_the_smallest_cut():
    """One root: as many trees as the smallest cut between it and anybody has links (Edmonds)."""
    found = optimum(dgx1_v100(), [1] + [0] * 7)
    assert (found.one_over_x * GB, found.k) == (Fraction(1, 150), 6)
    found = optimum(hypercube(4), [0] * 5 + [1] + [0] * 10)
    assert (found.one_over_x, found.k, found.per_unit) == (Fraction(1, 4), 4, 1)
    assert optimum(dgx_a100(4), [1] + [0] * 31).one_over_x * GB == Fraction(1, 200)  # a box has 8 ways in of 25


# ---- the search for k


def test_auto_takes_a_small_optimum_and_scans_where_it_is_large():
    assert choose(mi250(4), everyone(mi250(4)), "auto").tried == ((8, Fraction(1)),)
    net = mi250(2)
    chosen = choose(net, everyone(net), "auto")
    assert [k for k, _ in chosen.tried] == list(range(1, 11)) and chosen.optimum.k == 83
    assert dict(chosen.tried)[5] == Fraction(1875, 1909) and dict(chosen.tried)[6] < dict(chosen.tried)[5]
    assert chosen.k == 9 and chosen.lost_bandwidth == Fraction(28, 3403) == 1 - max(part for _, part in chosen.tried)
    assert choose(net, everyone(net), "auto", most=8).k == 7
    assert choose(net, everyone(net), "auto", most=3).k == 3
    assert choose(net, everyone(net), "auto", most=83).k == choose(net, everyone(net)).k == 83


def test_of_equals_auto_takes_the_fewest():
    net = dgx_a100(2)
    chosen = choose(net, everyone(net), "auto", most=6)
    assert (
        chosen.k == 1
        and {part for _, part in chosen.tried} == {Fraction(90, 91)}
        and chosen.lost_bandwidth == Fraction(1, 91)
    )


def test_a_given_k_is_taken():
    net = mi250(2)
    chosen = choose(net, everyone(net), 2)
    assert (chosen.k, chosen.per_unit * GB, chosen.lost_bandwidth) == (2, Fraction(3, 16), Fraction(3, 83))
    assert chosen.tried == ((2, Fraction(80, 83)),)
    assert choose(net, everyone(net), 83).chosen == choose(net, everyone(net)).optimum


def test_links_off_the_bottleneck_need_not_be_full():
    """8 boxes of MI250: one tree a rank reaches what whole trees on every link take 8 for."""
    net = mi250(8)
    chosen = choose(net, everyone(net), "fewest")
    assert (chosen.optimum.k, chosen.k, chosen.lost_bandwidth) == (8, 1, 0)
    assert choose(mi250(4), everyone(mi250(4)), "fewest").k == 3


def test_rounding_down_may_upset_the_balance():
    """Two links of 1/2 into a switch and one of 1 out of it hold 0 and 1 trees at U = 1."""
    half, one = LinkClass(Fraction(1, 2)), LinkClass(Fraction(1))
    links = [(0, 2, half), (0, 2, half), (2, 1, one), (1, 0, one)]
    net = Topology.from_links("uneven", 2, links, 1)
    assert not is_balanced(net, Fraction(1)) and is_balanced(net, Fraction(2))
    assert link_capacities(net, Fraction(1)) == [0, 0, 1, 1]
    best = optimum(net, [1, 1])
    assert (best.k, best.one_over_x) == (2, 1) and is_balanced(net, best.per_unit)


def test_a_scan_can_keep_to_balanced_numbers():
    """Two ranks and a switch with one-way links: 9 ways in and out of the switch, but 3 trees a rank leave one over."""
    widths = {(0, 1): 2, (0, 2): 3, (1, 2): 6, (2, 0): 5, (2, 1): 4}
    net = Topology.from_links("uneven", 2, [(a, b, LinkClass(Fraction(w))) for (a, b), w in widths.items()], 1)
    plain, kept = (choose(net, [1, 1], "auto", most=3, balanced=balanced) for balanced in (False, True))
    assert plain.optimum.k == 5 and is_balanced(net, plain.optimum.per_unit)
    assert plain.tried == kept.tried == ((1, Fraction(3, 5)), (2, Fraction(4, 5)), (3, Fraction(9, 10)))
    assert (plain.k, plain.lost_bandwidth) == (3, Fraction(1, 10)) and not is_balanced(net, plain.per_unit)
    assert (kept.k, kept.lost_bandwidth) == (2, Fraction(1, 5)) and is_balanced(net, kept.per_unit)


def test_a_thousand_gpus_are_scanned_in_no_time():
    for net in (dgx_a100(128), dgx_h100(128), mi250(64)):
        started = time.perf_counter()
        chosen = choose(net, everyone(net), "auto")
        assert chosen.lost_bandwidth == 0 and time.perf_counter() - started < 5


def test_one_rank_needs_no_trees():
    alone = Topology.from_links("alone", 1, [(0, 0)])
    for k in (None, "auto", "fewest", 3):
        chosen = choose(alone, [1], k)
        assert chosen.per_unit == chosen.lost_bandwidth == 0 and certified(alone, [1], chosen.chosen)
