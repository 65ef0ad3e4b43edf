"""The trees of schedules in steps: they span, their edges are transfers, and data come and add up along them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import attrs
import pytest
from report_pages import account

from collc.backends.graphviz import Dot
from collc.backends.pictures.arrivals import arrival_forest
from collc.backends.svg import Svg
from collc.ir.schedule import Action, Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule

#: network, scheduler, collective -> trees, and ranks below the root of each
CASES = [
    ("torus(3, 3)", "bfb", "allgather", 1, 8), ("torus(3, 3)", "bfb", "reduce-scatter", 1, 8),
    ("torus(3, 3)", "bfb", "allreduce", 2, 8), ("hypercube(3)", "recursive-doubling", "allreduce", 2, 7),
    ("biring(6)", "ring", "allreduce", 4, 5), ("dgx_a100(2)", "two-level", "allreduce", 2, 15),
    ("torus(3, 3)", "flow", "alltoall", 1, 8), ("mesh(2, 3)", "flow", "gather { root: 1 }", 1, 5),
    ("mesh(2, 3)", "flow", "scatter { root: 1 }", 1, 5), ("hypercube(3)", "swing", "broadcast { root: 3 }", None, 7),
    ("hypercube(3)", "bine", "reduce { root: 3 }", None, 7),
]  # fmt: skip


def text_of(net: str, scheduler: str, collective: str) -> str:
    kind, _, options = collective.partition(" ")
    return f"topology t = {net};\ncollective c = {kind} on t {options};\nschedule c using {scheduler};"


def steps_of(text: str) -> Schedule:
    level = account(text).shown.schedule
    found = level.seed if isinstance(level, SymmetricSchedule) else level
    assert isinstance(found, Schedule)
    return found


def forest_of(level: Schedule) -> Forest:
    found = arrival_forest(level)
    assert found is not None
    return found


@pytest.mark.parametrize(("net", "scheduler", "collective", "trees", "ranks"), CASES)
def test_trees_span_and_their_edges_are_transfers(
    net: str, scheduler: str, collective: str, trees: int | None, ranks: int
) -> None:
    level = steps_of(text_of(net, scheduler, collective))
    forest = forest_of(level)
    assert trees is None or forest.num_trees == trees
    below = Counter(forest.tree.tolist())
    assert set(below.values()) == {ranks}
    for tree in range(forest.num_trees):
        rows = forest.tree == tree
        children = forest.child[rows].tolist()
        assert len(set(children)) == len(children) and int(forest.root[tree]) not in children
    sent = set(zip(level.src.tolist(), level.dst.tolist(), strict=True))
    inward = forest.inward[forest.tree].astype(bool)
    for up, a, b in zip(inward.tolist(), forest.parent.tolist(), forest.child.tolist(), strict=True):
        assert ((b, a) if up else (a, b)) in sent


@pytest.mark.parametrize(("net", "scheduler", "collective", "trees", "ranks"), CASES[:6])
def test_shares_of_each_direction_are_one(net: str, scheduler: str, collective: str, trees: int, ranks: int) -> None:
    forest = forest_of(steps_of(text_of(net, scheduler, collective)))
    directions: dict[bool, Fraction] = {}
    for tree in range(forest.num_trees):
        up = bool(forest.inward[tree])
        directions[up] = directions.get(up, Fraction(0)) + forest.share(tree)
    needed = {"allgather": {False}, "reduce-scatter": {True}}.get(collective, {True, False})
    if scheduler == "recursive-doubling":  # all ranks have the sum at once
        needed = {True}
    assert directions == dict.fromkeys(needed, Fraction(1))


def test_replaying_an_allgather_gives_every_rank_its_parent_in_the_tree() -> None:
    """By sets of ranks step by step, without the trees: who had the shard when it came?"""
    level = steps_of(text_of("torus(3, 3)", "bfb", "allgather"))
    forest = forest_of(level)
    assert forest.num_trees == 1
    parent = dict(zip(forest.child.tolist(), forest.parent.tolist(), strict=True))
    have, root = {int(forest.root[0])}, int(forest.root[0])
    rows = [row for row in range(len(level)) if level.shard[row] == root]
    for step in range(level.num_steps):
        now = [row for row in rows if level.step[row] == step]
        for row in now:
            assert int(level.src[row]) in have and parent[int(level.dst[row])] == int(level.src[row])
        have |= {int(level.dst[row]) for row in now}
    assert have == {root, *parent}


def test_a_contribution_counts_once_in_an_exchange_of_sums() -> None:
    """In recursive doubling all ranks add; the tree of one rank has every other rank once, as deep as it is far."""
    level = steps_of(text_of("hypercube(3)", "recursive-doubling", "allreduce"))
    assert set(level.action.tolist()) == {int(Action.REDUCE)}
    forest = forest_of(level)
    assert forest.height == 3 and Counter(forest.depth[forest.tree == 0].tolist()) == {1: 3, 2: 3, 3: 1}


def test_an_edge_without_a_transfer_is_found() -> None:
    """Two planted faults: another rank in the file, and a schedule that does not have the edge."""
    one = account(text_of("biring(5)", "bfb", "allgather"))
    for target, old, new in (
        (Svg(picture="trees"), 'data-child="1"', 'data-child="3"'),
        (Dot(picture="trees"), "t0_0 -> t0_1", "t0_0 -> t0_3"),
    ):
        (file,) = target.emit(one)
        assert target.check(one, [file]).ok and old in file.text
        assert not target.check(one, [attrs.evolve(file, text=file.text.replace(old, new, 1))]).ok
    failed = {check.name for check in Svg(picture="trees").check(
        one, [attrs.evolve(file, text=file.text.replace('data-child="1"', 'data-child="3"', 1))
              for file in Svg(picture="trees").emit(one)]
    ).failed}  # fmt: skip
    assert {"trees", "transfers"} <= failed


def test_a_schedule_in_which_nothing_moves_has_none() -> None:
    assert arrival_forest(steps_of("topology t { rank a; }\ncollective c = allgather on t;")) is None
