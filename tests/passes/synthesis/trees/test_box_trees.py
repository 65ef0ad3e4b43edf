"""`box-trees`: NCCL's trees, chains in boxes and two binary trees across them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import attrs
import numpy as np
import pytest
from clusters import CLUSTERS, cluster, clusters
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.costs.rounds import loads
from collc.ir.diagnostic import CollcError
from collc.ir.graph.boxes import boxes_of
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_forest
from collc.passes.synthesis.trees.box_trees import BoxTrees


def grown(net: Topology, **options: int) -> Forest:
    return BoxTrees(**options).run(Problem(net, Collective("allreduce", net.num_ranks)))


def edges(forest: Forest, tree: int) -> list[tuple[int, int]]:
    rows = forest.tree == tree
    return list(zip(forest.parent[rows].tolist(), forest.child[rows].tolist(), strict=True))


def across(forest: Forest, tree: int, box_of: list[int]) -> list[tuple[int, int]]:
    """Return the edges of a tree between boxes, as (parent, child) ranks."""
    return [(a, b) for a, b in edges(forest, tree) if box_of[a] != box_of[b]]


def interior_in_both(forest: Forest, channel: int, box_of: list[int]) -> set[int]:
    """Return the boxes that have children in both trees of a channel."""
    inner = [{box_of[a] for a, _ in across(forest, 2 * channel + tree, box_of)} for tree in (0, 1)]
    return inner[0] & inner[1]


@pytest.mark.parametrize("net", CLUSTERS)
def test_every_rank_is_in_every_tree_once(net: str) -> None:
    forest = grown(topology(net))
    for tree in range(forest.num_trees):
        met = [int(forest.root[tree]), *(b for _, b in edges(forest, tree))]
        assert sorted(met) == list(range(topology(net).num_ranks))
    assert verify_forest(forest).ok


@pytest.mark.parametrize("count", [*range(2, 10), 16, 31])
def test_a_box_is_inside_one_tree_of_a_channel(count: int) -> None:
    """But for the last of an odd number of boxes, as in NCCL; the children in both trees are two at most."""
    net = topology(f"dgx_a100({count})")
    forest, boxes = grown(net, pieces=1), boxes_of(net)
    assert boxes is not None and forest.num_trees == 2 * 2 * 8
    box_of = boxes.box_of.tolist()
    for channel in range(8):
        assert interior_in_both(forest, channel, box_of) == ({count - 1} if count % 2 else set())
        children = Counter(box_of[a] for tree in (0, 1) for a, _ in across(forest, 2 * channel + tree, box_of))
        assert max(children.values()) <= 2


def test_the_check_finds_a_planted_fault() -> None:
    net = topology("dgx_a100(4)")
    forest, boxes = grown(net, pieces=1), boxes_of(net)
    assert boxes is not None
    rows = np.flatnonzero(forest.tree == 0)
    same = attrs.evolve(
        forest, tree=np.concatenate([rows * 0, rows * 0 + 1]), parent=np.tile(forest.parent[rows], 2),
        child=np.tile(forest.child[rows], 2), route=np.tile(forest.route[rows], 2),
    )  # fmt: skip
    assert interior_in_both(same, 0, boxes.box_of.tolist())


@pytest.mark.parametrize("net", ["dgx_a100(5)", "mi250(3)", "dgx_h100(4, 8)"])
def test_boxes_are_joined_at_the_channels_own_nic(net: str) -> None:
    t = topology(net)
    forest, boxes = grown(t, pieces=1), boxes_of(t)
    assert boxes is not None
    for tree in range(forest.num_trees):
        channel = tree // 2 % boxes.nics
        ends = {rank for pair in across(forest, tree, boxes.box_of.tolist()) for rank in pair}
        assert ends == {gates[channel] for gates in boxes.gates}


def test_in_a_box_ranks_form_a_chain() -> None:
    forest = grown(topology("dgx_a100(3)"), pieces=1)
    for tree in range(forest.num_trees):
        near = [(a, b) for a, b in edges(forest, tree) if a // 8 == b // 8]
        assert max(Counter(a for a, _ in near).values()) == 1 and len(near) == 3 * 7


@given(clusters, st.integers(1, 6))
def test_trees_on_boxes_of_any_sizes(sizes: list[int], channels: int) -> None:
    assert verify_forest(grown(cluster(sizes), channels=channels, pieces=2)).ok


@pytest.mark.parametrize(("net", "time"), [
    ("dgx_a100(2)", Fraction(2 * 7, 8) / (300 * 10**9)),  # the NVLinks of the chains; NICs carry M / 8
    ("dgx_a100(4)", Fraction(2, 8 * 25 * 10**9)), ("dgx_a100(16)", Fraction(2, 8 * 25 * 10**9)),
    ("dgx_h100(4, 8)", Fraction(2, 8 * 50 * 10**9)),
])  # fmt: skip
def test_the_bandwidth_time_is_that_of_the_nics(net: str, time: Fraction) -> None:
    """In the steady state every NIC carries 2 M / 8 both ways, from 4 boxes on."""
    forest = grown(topology(net), pieces=1)
    amount = loads(forest)
    (_, load) = amount.rounds(amount.steps)[amount.steps - 1][1][-1]
    assert load / forest.parts == time


def test_heights_are_logarithmic_in_the_boxes() -> None:
    for count in (2, 4, 8, 16):
        assert grown(topology(f"dgx_a100({count})"), pieces=1).heights == (7 + count.bit_length() - 1,) * 2


def test_what_trees_cannot_be() -> None:
    with pytest.raises(CollcError, match=r"C0586"):
        BoxTrees(channels=0)
    with pytest.raises(CollcError, match=r"C0532"):
        BoxTrees(pieces=0)
    net = topology("dgx_a100(2)")
    with pytest.raises(CollcError, match=r"C0530"):
        BoxTrees().run(Problem(net, Collective("allgather", 16)))
    with pytest.raises(CollcError, match=r"C0587"):
        grown(topology("dgx_a100(1)"))
    with pytest.raises(CollcError, match=r"C0593"):
        BoxTrees().run(Problem(net, Collective("allreduce", 16, op="ordered")))
