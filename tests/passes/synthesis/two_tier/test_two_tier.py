"""Two-tier all-to-alls: rounds add up to the matrix, every NIC carries its share, and the fabric takes its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.frontends.coll import topology
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import boxes_of
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.verify import verify, verify_schedule
from collc.passes.base import remarks
from collc.passes.schedule.step_times import time_per_byte
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.two_tier import scheduler
from collc.passes.synthesis.two_tier.cluster import Cluster
from collc.passes.synthesis.two_tier.rounds import box_rounds, filled
from collc.passes.synthesis.two_tier.scheduler import TwoTier, plan

pytestmark = pytest.mark.slow

matrices = st.integers(2, 7).flatmap(
    lambda n: st.lists(
        st.lists(st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 10**9)), min_size=n, max_size=n),
        min_size=n, max_size=n,
    )
)  # fmt: skip


@given(matrices)
@settings(max_examples=examples(60))
def test_rounds_are_matchings_that_add_up_to_the_matrix(rows: list[list[int]]) -> None:
    """At most n^2 - 2n + 2 of them, and as long together as the busiest box needs (Birkhoff, von Neumann)."""
    matrix = np.array(rows)
    n = len(matrix)
    full = filled(matrix)
    assert {*full.sum(axis=0).tolist(), *full.sum(axis=1).tolist()} == {max(matrix.sum(axis=0).max(),
                                                                           matrix.sum(axis=1).max())}  # fmt: skip
    assert (full >= matrix).all()
    rounds = box_rounds(matrix)
    np.fill_diagonal(matrix, 0)
    back = np.zeros_like(matrix)
    for target, amount, weight in zip(rounds.target, rounds.amount, rounds.weight.tolist(), strict=True):
        assert sorted(target.tolist()) == list(range(n)) and weight > 0
        assert 0 <= amount.min() and amount.max() <= weight
        back[np.arange(n), target] += amount
    assert np.array_equal(back, matrix)
    assert len(rounds) <= n * n - 2 * n + 2
    assert rounds.total == max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())


def test_a_uniform_matrix_takes_as_many_rounds_as_there_are_other_boxes() -> None:
    for n in (2, 3, 5, 8, 16, 64):
        rounds = box_rounds(np.full((n, n), 64))
        assert len(rounds) == n - 1 and rounds.weight.tolist() == [64] * (n - 1)
        assert np.array_equal(rounds.target[:, 1:], (rounds.target[:, :-1] + 1) % n)  # each is a rotation


@pytest.mark.parametrize("network", ["dgx_a100(3)", "dgx_h100(5)"])
@pytest.mark.parametrize("slices", [None, 1, 4])
def test_a_large_even_schedule_is_a_template_of_one_box(
    network: str, slices: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = scheduled(problem(network), slices=slices)
    monkeypatch.setattr(scheduler, "MOST_LISTED", 0)
    template = TwoTier(slices=slices).run(problem(network))
    assert isinstance(template, SymmetricSchedule)
    assert verify(template).ok
    unfolded = template.unfold()
    for name in ("step", "shard", "lo", "hi", "action"):
        assert np.array_equal(getattr(unfolded, name), getattr(listed, name)), name
    links = [[one.routes.links_of(route) for route in one.route.tolist()] for one in (unfolded, listed)]
    assert links[0] == links[1]


def test_a_large_uneven_schedule_is_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.ones((24, 24), dtype=np.int64)
    weights[3, 17] = 2
    monkeypatch.setattr(scheduler, "MOST_LISTED", 0)
    assert isinstance(TwoTier().run(problem("dgx_a100(3)", weights)), Schedule)
    assert isinstance(TwoTier().run(problem("without(dgx_a100(4), {5})")), Schedule)


def problem(expression: str, weights: Array | None = None, size: int = 1 << 36) -> Problem:
    network = topology(expression)
    listed = None if weights is None else tuple(weights.ravel().tolist())
    return Problem(network, Collective("alltoall", network.num_ranks, weights=listed, size=size))


def scheduled(given: Problem, **options: object) -> Schedule:
    schedule = TwoTier(**options).run(given)  # type: ignore[arg-type]
    assert isinstance(schedule, Schedule)
    report = verify_schedule(schedule)
    assert report.ok, report
    return schedule


def fabric_bound(given: Problem) -> Fraction:
    """Return the largest of the boxes' sums over their bandwidth, per byte of M, by names and links alone."""
    network, collective = given.topology, given.collective
    n = network.num_ranks
    box = np.array([name.split("[")[1].split(",")[0] for name in network.names[:n]])
    demand = collective.weight.reshape(n, n).astype(object)
    width = {name: [Fraction(0), Fraction(0)] for name in box}
    boxes = boxes_of(network)
    assert boxes is not None
    for link in np.flatnonzero(~boxes.inside).tolist():
        for end, way in ((int(network.src[link]), 0), (int(network.dst[link]), 1)):
            if end < n:
                width[box[end]][way] += network.bandwidth(link)
    found = []
    for name, (out, into) in width.items():
        mine = box == name
        found += [Fraction(int(demand[mine][:, ~mine].sum())) / out, Fraction(int(demand[~mine][:, mine].sum())) / into]
    return max(found) / collective.whole


def skewed(ranks: int, exponent: float) -> Array:
    """Return weights by Zipf's law, at places drawn once."""
    order = np.random.default_rng(ranks).permutation(ranks * ranks)
    return (10**7 / (order + 1.0) ** exponent).astype(np.int64).reshape(ranks, ranks)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 0.9, 1.2])
def test_64_gpus_take_the_bound_of_the_fabric_however_uneven(exponent: float) -> None:
    given = problem("dgx_h100(8)", skewed(64, exponent))
    schedule = scheduled(given)
    bound = fabric_bound(given)
    assert bound <= time_per_byte(schedule) <= bound * Fraction(101, 100)
    assert schedule.scheduler == "two-tier"


def test_64_gpus_at_once_take_the_bound_too() -> None:
    given = problem("dgx_h100(8)", skewed(64, 0.9))
    assert time_per_byte(scheduled(given, rounds=False)) <= fabric_bound(given) * Fraction(103, 100)


@pytest.mark.parametrize(
    "expression", ["dgx_a100(4)", "without(dgx_a100(4), {3, 9, 20})", "without(dgx_a100(4), {gpu[0, 0] <-> ib})",
                   "degraded(dgx_a100(4), {0 <-> nv[0]}, 1/2)", "gb200_nvl72(1)"],
)  # fmt: skip
def test_boxes_that_differ_take_the_time_of_the_best_flow(expression: str) -> None:
    if boxes_of(topology(expression)) is None:
        with pytest.raises(CollcError, match="C0587"):
            TwoTier().run(problem(expression))
        return
    given = problem(expression)
    assert time_per_byte(scheduled(given)) <= time_per_byte(Flow().run(given)) * Fraction(101, 100)


def test_one_to_one_rounds_are_one_to_one() -> None:
    """In every step a box sends to one other box, and receives from one; only the shortest rounds are one step."""
    given = problem("dgx_a100(4)", skewed(32, 0.8))
    schedule = scheduled(given)
    box = np.arange(32) // 8
    src, dst = box[schedule.src], box[schedule.dst]
    others, crossing = 0, 0
    for step in range(schedule.num_steps):
        rows = (schedule.step == step) & (src != dst) & (schedule.amount > 0)
        pairs = set(zip(src[rows].tolist(), dst[rows].tolist(), strict=True))
        crossing += bool(pairs)
        others += len({a for a, _ in pairs}) != len(pairs) or len({b for _, b in pairs}) != len(pairs)
    assert crossing > 4 and others <= 1


@given(st.data())
@settings(max_examples=examples(25), deadline=None)
def test_any_matrix_on_any_boxes_is_right(data: st.DataObject) -> None:
    boxes, size = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4))
    ranks = boxes * size
    width = [data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(ranks)]
    ports = [data.draw(st.booleans()) for _ in range(ranks)]
    text = "".join(
        f"link gpu[{r // size}, {r % size}] <-> ib : 1 GB/s;" * width[r]
        for r in range(ranks) if ports[r] or r % size == 0
    )  # fmt: skip
    net = f"""topology t {{ rank gpu[{boxes}, {size}]; switch nv[{boxes}], ib; {text}
        for b in 0..{boxes}, g in 0..{size} {{ link gpu[b, g] <-> nv[b] : 100 GB/s; }} }}"""
    network = collc.frontends.coll.load("t.coll", text=net).topologies["t"]
    weight = st.sampled_from([0, 0, 1, 1, 5, 1000])
    weights = tuple(data.draw(st.lists(weight, min_size=ranks**2, max_size=ranks**2).filter(any)))
    given = Problem(network, Collective("alltoall", ranks, weights=weights, size=1 << 30))
    pieces = data.draw(st.sampled_from([None, 1, 3]))
    schedule = scheduled(given, rounds=data.draw(st.booleans()), slices=pieces)
    demand = np.array(weights, dtype=np.int64).reshape(ranks, ranks)
    if (demand * (np.arange(ranks)[:, None] != np.arange(ranks))).any():
        assert time_per_byte(schedule) >= Cluster.of(network, boxes_of(network)).fabric_time(  # type: ignore[arg-type]
            demand
        ) / max(int(demand.sum(axis=1).max()), 1)


def test_512_gpus_are_planned_by_few_rounds() -> None:
    network = topology("dgx_h100(64)")
    boxes = boxes_of(network)
    assert boxes is not None
    cluster = Cluster.of(network, boxes)
    uniform = plan(cluster, np.full((512, 512), 64), True, 1, Fraction(0))
    assert uniform.number == 63
    uneven = plan(cluster, np.random.default_rng(3).integers(0, 10**6, (512, 512)), True, 1)
    between = cluster.between(np.random.default_rng(3).integers(0, 10**6, (512, 512)))
    assert uneven.number < 64 * 62
    sent = np.zeros(64 * 64, dtype=np.int64)
    np.add.at(sent, uneven.pair, uneven.end - uneven.start)
    np.fill_diagonal(between, 0)
    assert np.array_equal(sent, between.ravel())


def test_what_it_says_and_refuses() -> None:
    with remarks() as said:
        TwoTier().run(problem("dgx_a100(4)"))
    assert any("one-to-one rounds on 4 boxes of 8 ranks" in text for text in said)
    for expression, code in (("torus(3, 3)", "C0587"), ("gb200_nvl72(1)", "C0587")):
        with pytest.raises(CollcError) as caught:
            TwoTier().run(problem(expression))
        assert caught.value.diagnostics[0].code == code
    allreduce = Problem(topology("dgx_a100(2)"), Collective("allreduce", 16))
    with pytest.raises(CollcError) as caught:
        TwoTier().run(allreduce)
    assert caught.value.diagnostics[0].code == "C0503"
    with pytest.raises(CollcError) as caught:
        TwoTier(slices=0)
    assert caught.value.diagnostics[0].code == "C0589"


def test_a_lost_transfer_is_found() -> None:
    schedule = scheduled(problem("dgx_a100(2)", skewed(16, 0.8)))
    for row in range(7, len(schedule), len(schedule) // 8):
        keep = np.flatnonzero(np.arange(len(schedule)) != row)
        assert not verify_schedule(schedule.rows(keep)).ok
