"""`auto` and numbers of trees, data in one step, and rings: no candidate of the benchmark's kind is faster."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.cost import DEFAULT_ALPHA
from collc.ir.spec import Problem
from collc.passes.schedulers import SCHEDULERS
from collc.passes.synthesis.forest.front import numbers
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.registry.classes import pass_class
from collc.selection import Algorithm, Auto, Memory, Selector
from collc.selection.algorithm import candidate_of
from collc.selection.floors import around, straight
from collc.selection.measure import MeasuredForest, Model

KIB, MIB = 1 << 10, 1 << 20
NETS = ("dgx_a100(1)", "torus(3, 2)", "biring(5)", "generalized_kautz(2, 5)", "leaf_spine(2, 3, 2)", "mesh(2, 3)")
KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast")
MODEL = Model.of(Auto())


def problem(net: str, kind: str = "allgather", size: int | None = None) -> Problem:
    graph = topology(net)
    return Problem(graph, Collective(kind, graph.num_ranks, 0 if kind == "broadcast" else None, size=size))


def least_of_trees(one: Problem, size: int) -> Fraction:
    """The least time of 1 to 10 trees and of the optimal number, each in its best number of pieces."""
    found = []
    for k in (*range(1, 11), "optimal", "fewest"):
        forest = MeasuredForest.of(ForestScheduler(k=k).grow(one), MODEL)  # type: ignore[arg-type]
        found.append(forest.measure(forest.pieces([size])[0]).times.at(size))
    return min(found)


@pytest.mark.parametrize(("net", "size", "loss"), [
    ("dgx_a100(2)", 32 * KIB, Fraction(149, 100)), ("dgx_h100(4)", MIB, Fraction(142, 100)),
    ("dgx_h100(2)", 32 * MIB, Fraction(109, 100)), ("mi250(1)", 32 * MIB, Fraction(109, 100)),
])  # fmt: skip
def test_cases_that_the_optimal_number_loses(net: str, size: int, loss: Fraction) -> None:
    """Trees of the optimal number alone take this much longer; `auto` is as fast as the best number."""
    one = problem(net, size=size)
    chosen, least = Selector(one, Auto()).choose({}).at(size), least_of_trees(one, size)
    forest = MeasuredForest.of(ForestScheduler().grow(one), MODEL)
    assert chosen <= least
    assert forest.measure(forest.pieces([size])[0]).times.at(size) > loss * least


@pytest.mark.parametrize(("net", "kind"), every(3, list(product(NETS, KINDS))))
def test_no_number_of_trees_is_faster(net: str, kind: str) -> None:
    memory = Memory()
    for size in (KIB, MIB, 256 * MIB):
        one = problem(net, kind, size)
        assert Selector(one, Auto(), memory=memory).choose({}).at(size) <= least_of_trees(one, size)


@pytest.mark.parametrize("net", ["dgx_h100(2)", "generalized_kautz(2, 5)", "biring(5)"])
def test_no_member_is_dominated(net: str) -> None:
    """A number of trees is a candidate if it is faster than the optimal one, and than fewer trees, at some size."""
    found = Selector(problem(net, "allgather"), Auto(sizes=f"{KIB}..{1 << 30}"))
    sizes = found.sizes
    front = [one for one in found.measured if "k" in dict(one.algorithm.options)]
    if net == "dgx_h100(2)":
        assert len({dict(one.algorithm.options)["k"] for one in front}) > 1
    best = [one for one in found.measured if one.algorithm.scheduler == "forest" and one not in front]
    numbers = [int(dict(one.algorithm.options)["k"]) for one in front]  # type: ignore[arg-type]
    assert numbers == sorted(numbers)
    for one, k in zip(front, numbers, strict=True):
        others = [other for other, more in zip(front, numbers, strict=True) if more < k] + best
        assert any(one.times.at(size) < min(other.times.at(size) for other in others) for size in sizes)


def test_the_choice_does_not_depend_on_earlier_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limited work counts trees that are remembered as if they grew again."""
    monkeypatch.setattr("collc.selection.selector.work_limit", lambda *_: 20_000)
    sizes = (KIB, 1 << 30)
    for order in (sizes, sizes[::-1]):
        memory = Memory()
        for size in order:
            one = problem("dgx_h100(2)", size=size)
            fresh, kept = Selector(one, Auto()), Selector(one, Auto(), memory=memory)
            assert [a.algorithm for a in fresh.measured] == [a.algorithm for a in kept.measured]


def test_names() -> None:
    assert Algorithm("forest", (("k", 10), ("pieces", 3))).name == "forest-k10-3"
    choice = Selector(problem("dgx_h100(2)", size=32 * MIB), Auto()).choose({})
    assert choice.intervals[0].algorithm.text == "forest { k: 1, pieces: 1 }"


@pytest.mark.parametrize(("net", "kind"), [
    ("dgx_a100(2)", "allgather"), ("dgx_a100(2)", "broadcast"), ("torus(3, 3)", "alltoall"), ("mi250(1)", "alltoall"),
])  # fmt: skip
def test_data_in_one_step_win_at_small_sizes(net: str, kind: str) -> None:
    small, large = (Selector(problem(net, kind, size), Auto()) for size in (KIB, 1 << 30))
    first = small.choose({})
    assert first.intervals[0].algorithm.scheduler == "general" and first.at(KIB) < 2 * DEFAULT_ALPHA
    if kind != "alltoall":  # it is not even measured
        assert all(one.algorithm.scheduler != "general" for one in large.measured)


def test_rings_of_boxes_win_where_trees_are_high() -> None:
    found = Selector(problem("mi250(1)", size=256 * MIB), Auto()).choose({})
    assert found.intervals[0].algorithm.scheduler == "nccl-rings"


@pytest.mark.parametrize("net", ["dgx_a100(2)", "mi250(1)", "torus(3, 3)", "mesh(2, 3)", "leaf_spine(2, 3, 2)"])
@pytest.mark.parametrize("kind", ["allgather", "broadcast", "alltoall", "reduce-scatter", "allreduce"])
def test_floors_are_floors(net: str, kind: str) -> None:
    """What is not tried because of its floor could not have won."""
    from collc.ir.costs.cost import unit_seconds
    from collc.ir.diagnostic import CollcError

    one = problem(net, kind)
    for scheduler, floor, options in (("general", straight, {"objective": "latency"}), ("nccl-rings", around, {})):
        if kind not in SCHEDULERS[scheduler].collectives:
            continue
        try:
            found = MODEL.measure(pass_class(scheduler)(**options), one)
        except CollcError:  # no rings
            continue
        steps, per_byte = floor(one)
        assert found.steps >= steps
        for size in (KIB, MIB, 1 << 30):
            least = steps * DEFAULT_ALPHA + size * per_byte * unit_seconds(one.topology)
            assert found.times.at(size) >= least


@pytest.mark.parametrize("net", ["dgx_a100(2)", "mesh(2, 3)", "biring(5)", "leaf_spine(2, 3, 2)"])
@pytest.mark.parametrize("kind", KINDS)
def test_times_of_trees_are_at_least_their_floor(net: str, kind: str) -> None:
    """What is not tried in pieces because of its steps and its busiest link could not have won."""
    one = problem(net, kind)
    latency = MODEL.least_latency(one.topology)
    for number in numbers(ForestScheduler(), one):
        scheduler = number.of(ForestScheduler())
        forest = MeasuredForest.of(scheduler.grow(one, known=number.known), MODEL)
        for size in (KIB, MIB, 1 << 30):
            assert number.seconds(size, latency) <= forest.least(size)
            for pieces in {1, 2, 7, *forest.pieces([size])}:
                assert forest.least(size) <= forest.measure(pieces).times.at(size)


@pytest.mark.parametrize("net", ["generalized_kautz(2, 5)", "mesh(2, 3)"])
def test_both_divisions_of_an_allreduce_are_tried(net: str) -> None:
    """Where ranks root different amounts, a number of trees is that of every root or of all."""
    known = numbers(ForestScheduler(), problem(net, "allreduce"))
    assert {one.division for one in known} == {"free", "equal"}
    assert all((one.known is None) == (one.division == "equal") for one in known)
    assert {one.division for one in numbers(ForestScheduler(), problem(net))} == {"free"}
    one, memory = problem(net, "allreduce"), Memory()
    forests = [
        MeasuredForest.of(ForestScheduler(k=k, division=division).grow(one), MODEL)  # type: ignore[arg-type]
        for k, division in product((1, 2, 5, 9, "optimal"), ("free", "equal"))
    ]
    for size in (MIB, 64 * MIB):
        least = min(forest.measure(forest.pieces([size])[0]).times.at(size) for forest in forests)
        assert Selector(one.sized(size), Auto(), memory=memory).choose({}).at(size) <= least


def test_one_step_is_tried_on_many_ranks_where_it_surely_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    how = candidate_of("general")._replace(most_varied=8, most_sure=16)
    monkeypatch.setattr(
        "collc.selection.selector.candidate_of", lambda name: how if name == "general" else candidate_of(name)
    )
    small, large = (
        Selector(problem("torus(4, 4)", size=KIB), Auto()),
        Selector(problem("torus(4, 4)", size=1 << 28), Auto()),
    )
    more = Selector(problem("torus(4, 5)", size=KIB), Auto())
    assert small.choose({}).intervals[0].algorithm.scheduler == "general"
    assert all(one.algorithm.scheduler != "general" for one in (*large.measured, *more.measured))
    assert "general" not in [one.name for one in large.skipped]
    assert ("general", "not tried on 20 ranks: more than 8 take too long") in [
        (one.name, one.reason) for one in more.skipped
    ]


@pytest.mark.parametrize("net", ["torus(6, 6)", "dgx_a100(5)"])
def test_one_step_on_more_ranks(net: str) -> None:
    """Small shards go straight to all ranks; large ones do not, and their one step is not synthesized."""
    small, large = Selector(problem(net, size=KIB), Auto()), Selector(problem(net, size=256 * MIB), Auto())
    chosen = small.choose({}).intervals[0]
    assert chosen.algorithm.name == "general-latency" and small.choose({}).at(KIB) < 2 * DEFAULT_ALPHA
    assert "general-latency" not in [one.algorithm.name for one in large.measured]
