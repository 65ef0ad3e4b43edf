"""Forests cost what their steps cost, for any number of pieces, and the number of pieces is the best."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.costs.bounds import worst_cut
from collc.ir.costs.cost import algbw, cost, predict, predicted_time
from collc.ir.costs.pieces import best_pieces
from collc.ir.schedule import Forest
from collc.ir.topology import LinkClass, Topology

KINDS = (LinkClass(Fraction(3), Fraction(1, 10**6)), LinkClass(Fraction(1), Fraction(1, 10**7)), LinkClass(Fraction(1)))


@st.composite
def timed_forests(draw: st.DrawFn) -> Forest:
    """A correct forest on a network whose links differ in bandwidth and latency."""
    forest = draw(strategies.forests())
    net = forest.topology
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)))
    number = np.array([draw(st.integers(0, len(kinds) - 1)) for _ in range(net.num_links)], dtype=np.int64)
    net = attrs.evolve(
        net, classes=kinds, link_class=number, unit=draw(st.sampled_from(["link", "B/s"])), symmetry=None
    )
    return attrs.evolve(forest, topology=net)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(timed_forests(), st.integers(0, 10**7), st.integers(1, 9), st.sampled_from([None, Fraction(1, 10**5)]))
def test_rounds_are_those_of_the_steps(forest, size, pieces, alpha):
    """What is predicted from windows of steps is what is predicted of the steps written out."""
    piped = attrs.evolve(forest, pieces=pieces)
    assert predicted_time(cost(piped), size, alpha) == predicted_time(cost(piped.to_steps()), size, alpha)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(timed_forests(), st.integers(0, 10**7), st.integers(1, 9))
def test_the_usual_estimate_is_an_upper_bound(forest, size, pieces):
    """(D + P - 1) rounds of latency and a P-th of all that the busiest link carries."""
    piped = attrs.evolve(forest, pieces=pieces)
    found, alpha = cost(piped), Fraction(1, 10**5)
    if not found.T_L:
        return
    rounds = found.T_L + pieces - 1
    work = predicted_time(found, size, Fraction(0))
    at_least = found.time_per_byte * (found.node_bandwidth or 1 if found.unit == "link" else 1) * size
    at_least /= Fraction(12_500_000_000) if found.unit == "link" else 1
    assert at_least <= work <= Fraction(rounds, pieces) * at_least
    assert predicted_time(found, size, alpha) == rounds * alpha + work


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(timed_forests(), st.integers(0, 10**8))
def test_no_number_of_pieces_is_better(forest, size):
    alpha = Fraction(1, 10**6)
    chosen = best_pieces(forest, size, alpha, most=40)
    times = [predicted_time(cost(attrs.evolve(forest, pieces=p)), size, alpha) for p in range(1, 41)]
    assert times[chosen - 1] == min(times) and times.index(min(times)) == chosen - 1


def path(ranks: int, pieces: int = 1) -> Forest:
    """A broadcast along a line: every link carries all, one after the other."""
    net = Topology.from_links("line", ranks, [(r, r + 1) for r in range(ranks - 1)] + [(ranks - 1, 0)])
    rows = np.arange(ranks - 1)
    zero = 0 * rows
    return Forest(net, Collective("broadcast", ranks, 0), 1, [0], [1], zero, rows, rows + 1, rows, pieces=pieces)


def test_a_line_takes_pieces_as_the_square_root_says():
    """(D - 1 + P) (alpha + x / P): links take turns, so F is 2 (D - 1) L."""
    forest, alpha, size = path(11), Fraction(1, 10**6), 10**6
    whole = Fraction(size) / 12_500_000_000  # 80 us
    for pieces in (1, 7, 27, 40):
        found = predicted_time(cost(attrs.evolve(forest, pieces=pieces)), size, alpha)
        assert found == (9 + pieces) * (alpha + whole / pieces)
    assert best_pieces(forest, size, alpha) == 27  # sqrt(9 * 80) = 26.8
    assert best_pieces(forest, size, alpha, most=5) == 5
    assert best_pieces(path(2), size, alpha) == 1


def test_steps_that_load_links_alike_gain_nothing_from_pieces():
    """On a one-way ring every link carries another shard in every step: one piece, no more rounds than needed."""
    ranks = 6
    ring = Topology.from_links("ring", ranks, [(r, (r + 1) % ranks) for r in range(ranks)])
    tree = np.repeat(np.arange(ranks), ranks - 1)
    hop = np.tile(np.arange(ranks - 1), ranks)
    parent = (tree + hop) % ranks
    forest = Forest(
        ring, Collective("allgather", ranks), 1, np.arange(ranks), np.ones(ranks, int), tree, parent,
        (parent + 1) % ranks, parent,
    )  # fmt: skip
    assert best_pieces(forest, 1 << 30) == 1
    assert cost(forest).bw_optimal


def test_what_forests_have_besides():
    """Shares of 1/6 and 2/6 and 3/6 are six trees of equal weight, three distinct; bandwidths are told in GB/s."""
    net = Topology.from_links(
        "pair", 2, [(a, 1 - a, LinkClass(Fraction(25 * 10**9))) for a in (0, 1, 0, 1)], unit="B/s"
    )
    weight, root = [1, 2, 3] * 2, [0] * 3 + [1] * 3
    forest = Forest(
        net, Collective("allgather", 2), 6, root, weight, range(6), root, [1 - r for r in root],
        [0, 0, 2, 1, 1, 3], pieces=4,
    )  # fmt: skip
    found = cost(forest)
    assert found.forest is not None
    assert (found.forest.k, found.forest.trees, found.forest.max_height, found.forest.pieces) == (6, 6, 1, 4)
    assert found.forest.one_over_x == Fraction(1, 50) == 2 * worst_cut(net)[0] * 10**9
    assert algbw(found) == 100 * 10**9
    doubled = attrs.evolve(forest, parts=12, weight=[2 * w for w in weight])
    assert cost(doubled).forest.k == 6


def test_an_allreduce_counts_both_phases():
    """One tree a rank in, one out: twice the bandwidth time, both heights; k is that of a phase."""
    net = Topology.from_links("triangle", 3, [(a, b) for a in range(3) for b in range(3) if a != b])
    link = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(net.src, net.dst, strict=True))}
    rows = [(r + 3 * out, r, c, link[(r, c) if out else (c, r)]) for out in (0, 1) for r in range(3) for c in range(3)
            if c != r]  # fmt: skip
    tree, parent, child, route = np.array(rows).T
    forest = Forest(
        net, Collective("allreduce", 3), 1, [0, 1, 2] * 2, [1] * 6, tree, parent, child, route,
        inward=[1, 1, 1, 0, 0, 0],
    )  # fmt: skip
    found = cost(forest)
    assert (found.T_L, found.T_B, found.T_B_bound) == (2, Fraction(4, 3), Fraction(4, 3))
    assert (found.forest.k, found.forest.one_over_x, found.forest.max_height) == (1, 2, 1)
    assert predict(found, [3000])[0].time == pytest.approx(20e-6 + 3000 * 4 / 3 / 12.5e9)
