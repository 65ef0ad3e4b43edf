"""Relaxed breadth-first schedules: exact costs, causality by a checker of our own, and where nothing is to gain."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology, Translations
from collc.ir.verify import verify_schedule
from collc.passes.schedule.reverse import Reverse
from collc.passes.synthesis.breadth_first.labels import Plan, View, _Links, _most_for_each, grow_labels
from collc.passes.synthesis.breadth_first.relaxed import _view, relaxed_breadth_first


def cayley(shape: tuple[int, ...], generators: list[tuple[int, ...]]) -> Topology:
    """The multigraph on vectors modulo ``shape`` with links r -> r + g for every generator g."""
    n, symmetry = int(np.prod(shape)), Translations(shape)
    ranks = np.arange(n)
    heads = []
    for g in generators:
        number = 0
        for x, size in zip(g, shape, strict=True):
            number = number * size + x % size
        heads.append(symmetry.translate(ranks, np.full(n, number)))
    return Topology("cayley", n, np.repeat(ranks, len(heads)), np.stack(heads, axis=1).ravel(), symmetry=symmetry)


def torus(*sides: int) -> Topology:
    """Two links a dimension from every rank, parallel ones where the side is 2."""
    unit = np.eye(len(sides), dtype=int)
    return cayley(sides, [tuple(sign * row) for row in unit for sign in (1, -1)])


def relaxed(topology: Topology) -> Schedule | None:
    made = relaxed_breadth_first(topology, Collective("allgather", topology.num_ranks))
    return None if made is None else made.unfold()


def bandwidth_cost(s: Schedule) -> Fraction:
    """T_B in units of M/B: the busiest link's bytes of every step."""
    assert s.topology.degree is not None
    total = Fraction(0)
    for a, b in zip(s.step_start[:-1], s.step_start[1:], strict=True):
        load = np.zeros(s.topology.num_links, dtype=np.int64)
        np.add.at(load, s.route[a:b], s.hi[a:b].astype(np.int64) - s.lo[a:b])
        total += Fraction(int(load.max()), s.parts)
    return total * Fraction(s.topology.degree, s.topology.num_ranks)


def complaint(s: Schedule) -> str | None:
    """Run an allgather row by row; say what is wrong with it, if anything."""
    n, whole = s.topology.num_ranks, (1 << s.parts) - 1
    has = [{rank: whole} for rank in range(n)]
    arriving: list[tuple[int, int, int]] = []
    now = 0
    columns = (s.step, s.shard, s.lo, s.hi, s.src, s.dst)
    for step, shard, lo, hi, src, dst in zip(*(c.tolist() for c in columns), strict=True):
        if step != now:
            for rank, piece, bits in arriving:
                has[rank][piece] = has[rank].get(piece, 0) | bits
            arriving, now = [], step
        bits = (1 << hi) - (1 << lo)
        if bits & ~has[src].get(shard, 0):
            return f"step {step}: rank {src} sends what it does not have of shard {shard}"
        if bits & has[dst].get(shard, 0):
            return f"step {step}: rank {dst} has that of shard {shard} already"
        arriving.append((dst, shard, bits))
    for rank, piece, bits in arriving:
        has[rank][piece] = has[rank].get(piece, 0) | bits
    lacking = [(r, v) for r in range(n) for v in range(n) if has[r].get(v, 0) != whole]
    return f"rank {lacking[0][0]} lacks parts of shard {lacking[0][1]}" if lacking else None


OPTIMAL = [
    *sorted(set(permutations((3, 3, 2)))), *sorted(set(permutations((3, 3, 3, 2)))),
    (3, 4, 2), (4, 4, 2), (5, 5, 2), (3, 5, 2), (6, 7, 2), (4, 4, 4, 2),
    (3, 2, 2), (4, 2, 2), (2, 5, 2), (7, 2, 2), (3, 3, 2, 2), (3, 2, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("sides", OPTIMAL)
def test_tori_with_parallel_links_are_bandwidth_optimal_in_diameter_steps(sides: tuple[int, ...]) -> None:
    t = torus(*sides)
    s = relaxed(t)
    assert s is not None
    assert s.num_steps == t.diameter == sum(side // 2 for side in sides)
    assert bandwidth_cost(s) == Fraction(t.num_ranks - 1, t.num_ranks)
    assert complaint(s) is None
    assert verify_schedule(s).ok
    assert s.parts <= 24


def test_no_fewer_parts_would_do() -> None:
    """The steps' loads, in whole parts of a shard, add up to (N-1)/d = 17/6 shards."""
    s = relaxed(torus(3, 3, 2))
    assert s is not None and s.parts == 6


@pytest.mark.slow
@pytest.mark.parametrize("side", [3, 4, 5, 6, 7, 8])
def test_a_ring_times_two_gets_the_steady_rate(side: int) -> None:
    s = relaxed(torus(side, 2))
    assert s is not None and complaint(s) is None
    assert s.num_steps == side // 2 + 1
    gain = Fraction(1, side**2) if side % 2 else Fraction(2, side * (side + 1))
    assert bandwidth_cost(s) == 1 - gain


def test_large_tori() -> None:
    for sides in ((16, 16, 2), (31, 2, 2), (3, 3, 3, 3, 3, 2)):
        t = torus(*sides)
        s = relaxed(t)
        assert s is not None and verify_schedule(s).ok
        assert (s.num_steps, bandwidth_cost(s)) == (t.diameter, Fraction(t.num_ranks - 1, t.num_ranks))


def test_other_multigraphs_with_a_symmetry() -> None:
    five = cayley((5, 2), [(1, 0), (-1, 0), (2, 0), (-2, 0), (0, 1), (0, 1)])  # a complete graph times two
    s = relaxed(five)
    assert s is not None and complaint(s) is None
    assert bandwidth_cost(s) == Fraction(9, 10)
    directed = cayley((3, 2, 2), [(2, 1, 0), (1, 0, 1), (1, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0)])
    s = relaxed(directed)
    assert s is not None and complaint(s) is None and s.num_steps == directed.diameter


def test_loops_carry_nothing() -> None:
    looped = cayley((3, 3, 2), [(1, 0, 0), (-1, 0, 0), (0, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, 1)])
    s = relaxed(looped)
    assert s is not None and complaint(s) is None
    assert bandwidth_cost(s) == Fraction(7, 6) * Fraction(17, 18)  # the degree counts the loop


def test_nothing_to_gain_or_not_applicable() -> None:
    assert relaxed(torus(3, 3)) is None  # no parallel links
    assert relaxed(torus(2, 2, 2)) is None  # breadth first is optimal already
    assert relaxed(cayley((5,), [(1,), (1,), (-1,), (-1,)])) is None
    assert relaxed(Topology("one", 1, [], [])) is None
    assert relaxed(cayley((4,), [(2,), (2,)])) is None  # not connected
    assert relaxed(attrs.evolve(torus(3, 3, 2), symmetry=None)) is None
    assert relaxed_breadth_first(torus(3, 3, 2), Collective("broadcast", 18, root=0)) is None
    assert relaxed(cayley((3, 2), [(1, 0)] * 62 + [(0, 1)])) is None  # more links than bits


def test_the_reverse_is_a_reduce_scatter_of_the_same_cost() -> None:
    s = relaxed(torus(3, 3, 2))
    assert s is not None
    back = Reverse().run(s)
    assert back.collective.kind == "reduce-scatter"
    assert verify_schedule(back).ok
    assert bandwidth_cost(back) == Fraction(17, 18)


def test_same_schedule_every_time() -> None:
    assert relaxed(torus(4, 3, 2)) == relaxed(torus(4, 3, 2))


@pytest.mark.parametrize("plant", ["early", "dropped", "repeated", "cut"])
def test_the_checker_sees_planted_mistakes(plant: str) -> None:
    s = relaxed(torus(3, 3, 2))
    assert s is not None and complaint(s) is None
    rows = np.arange(len(s))
    if plant == "early":
        first, last = int(s.step_start[0]), int(s.step_start[-2])
        rows[first], rows[last] = rows[last], rows[first]
        broken = attrs.evolve(s.rows(rows), step=s.step)
    elif plant == "dropped":
        broken = s.rows(rows[rows != 100])
    elif plant == "repeated":
        broken = attrs.evolve(s.rows(np.append(rows, 0)), step=np.append(s.step, s.step[-1]))
    else:
        hi = s.hi.copy()
        hi[100] -= 1
        broken = attrs.evolve(s, hi=hi)
    assert complaint(broken) is not None


@pytest.mark.slow
@given(st.lists(st.integers(2, 5), min_size=2, max_size=4).filter(lambda sides: np.prod(sides) <= 100))
@settings(max_examples=examples(40), deadline=None)
def test_any_torus(sides: list[int]) -> None:
    t = torus(*sides)
    s = relaxed(t)
    if 2 not in sides or max(sides) == 2:
        assert s is None
        return
    assert s is not None and complaint(s) is None and s.num_steps == t.diameter
    best = Fraction(t.num_ranks - 1, t.num_ranks)
    assert bandwidth_cost(s) == best if len(sides) > 2 else best < bandwidth_cost(s) < 1


# ---- labels


@given(st.integers(0, 50), st.sampled_from([None, 1, 2]))
@settings(max_examples=examples(30), deadline=None)
def test_labels_grow_from_labelled_nodes_and_use_links_evenly(seed: int, most: int | None) -> None:
    view = _seen(torus(4, 3, 2))
    labels = grow_labels(view, Plan(2, most), seed)
    if labels is None:
        return
    assert (labels[:, 0] == 0).all() and labels.max() <= view.diameter and (labels[:, 1:] > 0).all()
    before = labels[:, view.tails].min(axis=2)
    assert (before[:, 1:] < labels[:, 1:]).all()
    counts = np.bincount(labels.ravel())[1 : view.diameter]
    if most is None:
        assert (counts % view.width == 0).all()
    else:
        assert (counts <= most * view.width).all()


def _seen(topology: Topology) -> View:
    view, _ = _view(topology, Collective("allgather", topology.num_ranks))
    assert view is not None
    return view


@given(st.lists(st.integers(1, 15), max_size=24))
def test_most_for_each_against_hall(masks: list[int]) -> None:
    """Links can get k jobs each exactly if every set of links has k jobs for each of its links that can use it."""
    hall = min(sum(1 for m in masks if m & links) // links.bit_count() for links in range(1, 16))
    assert _most_for_each(masks, 4) == hall


@given(st.lists(st.integers(1, 15), max_size=16), st.integers(1, 3))
def test_links_take_every_job_they_can(masks: list[int], each: int) -> None:
    links = _Links(4, each)
    taken = [m for m in masks if links.take(m)]

    def fits(jobs: list[int]) -> bool:
        return all(sum(1 for m in jobs if m & ~s == 0) <= each * s.bit_count() for s in range(16))

    expected: list[int] = []
    for mask in masks:
        if fits([*expected, mask]):
            expected.append(mask)
    assert taken == expected
    assert sum(links.load) == len(taken) and max(links.load) <= each
