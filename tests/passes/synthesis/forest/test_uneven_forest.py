"""Trees for shards that differ in size: as fast as the worst cut, right for all counts."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from cut_nets import slow_ratio, switched
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sampling import examples
from uneven_runs import collective, runs_right, weights

import collc
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.compose import Compose
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.reverse import Reverse
from collc.passes.synthesis.forest.report import report
from collc.passes.synthesis.forest.scheduler import ForestScheduler

HALVES = ("allgather", "reduce-scatter")


def grown(net: Topology, kind: str, sizes: tuple[int, ...], **options: object) -> Forest:
    problem = Problem(net, collective(kind, net.num_ranks, sizes))
    return ForestScheduler(unbalanced=True, **options).run(problem)  # type: ignore[arg-type]


@given(st.data(), switched(max_ranks=4, balanced=True), st.sampled_from(HALVES))
@settings(max_examples=examples(60), deadline=None)
def test_trees_reach_the_worst_cut(data: st.DataObject, net: Topology, kind: str) -> None:
    sizes = data.draw(weights(net.num_ranks))
    try:
        forest = grown(net, kind, sizes)
    except CollcError as mistake:
        assert mistake.diagnostics[0].code == "C0582"  # a switch that no route passes
        assume(False)
    assert verify(forest).ok
    found = cost(forest)
    network = net if kind == "allgather" else net.transpose()
    assert found.time_per_byte == slow_ratio(network, sizes, range(net.num_ranks)) / sum(sizes)
    assert found.bound_met and found.collective == kind + "v"
    assert parse_ir(print_ir(forest)) == forest


@pytest.mark.parametrize("name", ["torus(3, 3)", "dgx_a100(2)", "mesh(2, 3)", "uniring(4)"])
@pytest.mark.parametrize("kind", HALVES)
def test_ranks_without_data_have_one_tree(name: str, kind: str) -> None:
    net = collc.topology(name)
    sizes = tuple(3 * (v == 1) for v in range(net.num_ranks))
    forest = grown(net, kind, sizes)
    idle = [tree for tree, root in enumerate(forest.root.tolist()) if root != 1]
    assert [int(forest.root[tree]) for tree in idle] == [v for v in range(net.num_ranks) if v != 1]
    assert not forest.amount[idle].any() and (forest.weight[idle] == forest.parts).all()
    for tree in idle:
        assert not verify(without(forest, tree)).ok


def without(forest: Forest, tree: int) -> Forest:
    """Return a forest without one of its trees."""
    trees, rows = np.arange(forest.num_trees) != tree, forest.tree != tree
    columns = {name: getattr(forest, name)[rows] for name in ("parent", "child", "route")}
    number = np.cumsum(trees) - 1
    return attrs.evolve(
        forest, root=forest.root[trees], weight=forest.weight[trees], inward=forest.inward[trees],
        tree=number[forest.tree[rows]], **columns,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["torus(3, 3)", "dgx_a100(1)"])
@pytest.mark.parametrize("kind", HALVES)
def test_the_program_is_right_for_all_counts(name: str, kind: str) -> None:
    net = collc.topology(name)
    n = net.num_ranks
    sizes = tuple(range(n))
    program = Lower().run(Discretize(max_chunks=16).run(grown(net, kind, sizes, pieces=2).to_steps()))
    for counts in (sizes, (0,) * (n - 1) + (40,), (13,) * n, tuple(reversed(sizes))):
        assert runs_right(program, counts)


def test_equal_weights_are_those_of_an_even_collective() -> None:
    for name in ("torus(4, 4)", "dgx_a100(1)", "mesh(2, 3)"):
        net = collc.topology(name)
        even = ForestScheduler(unbalanced=True).run(
            Problem(net, attrs.evolve(collective("allgather", net.num_ranks, [1] * net.num_ranks), weights=None))
        )
        assert cost(grown(net, "allgather", (4,) * net.num_ranks)).time_per_byte == cost(even).time_per_byte


def test_long_weights_are_rounded_and_it_is_remarked() -> None:
    net = collc.topology("torus(3, 3)")
    sizes = (999_983, 999_979, 999_961, 999_959, 999_953, 999_931, 999_917, 999_907, 999_883)
    with remarks() as texts:
        forest = grown(net, "allgather", sizes)
    assert len(texts) == 1 and "rounded" in texts[0]
    assert verify(forest).ok
    least = bound(net, forest.collective).value
    assert least < cost(forest).time_per_byte < least * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("k", [1, 2, "fewest", "auto"])
def test_other_numbers_of_trees(k: int | str) -> None:
    net = collc.topology("torus(3, 3)")
    sizes = (5, 0, 1, 2, 3, 0, 4, 6, 1)
    forest = grown(net, "allgather", sizes, k=k)
    assert verify(forest).ok and cost(forest).time_per_byte >= bound(net, forest.collective).value
    about = report(ForestScheduler(k=k), Problem(net, forest.collective), None)  # type: ignore[arg-type]
    assert about is not None and about.one_over_x == bound(net, forest.collective).value


def test_the_reverse_keeps_the_weights() -> None:
    net = collc.topology("torus(3, 3)")
    forest = grown(net, "allgather", (5, 0, 1, 2, 3, 0, 4, 6, 1))
    for level in (forest, forest.to_steps(2)):
        back = Reverse().run(level)
        assert back.collective.name == "reduce-scatterv" and back.collective.weights == forest.collective.weights
        assert verify(back).ok and cost(back).time_per_byte == cost(level).time_per_byte


def test_an_allreduce_is_not_composed_of_shards_that_differ() -> None:
    forest = grown(collc.topology("torus(3, 3)"), "allgather", (5, 0, 1, 2, 3, 0, 4, 6, 1))
    for level in (forest, forest.to_steps(1)):
        with pytest.raises(CollcError) as caught:
            Compose().run(level)
        assert caught.value.diagnostics[0].code == "C0506"
