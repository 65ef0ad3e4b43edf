"""Forests: depth, steps, and the verifier that believes none of it."""

from __future__ import annotations

import time
from fractions import Fraction

import attrs
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Action, Forest, Routes
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify, verify_forest, verify_schedule
from collc.passes.schedule.compose import compose_forests
from collc.passes.schedule.reverse import reverse_forest

RING = strategies.torus(4)  # links of rank r: 2r to r+1, 2r+1 to r-1

#: an allgather on it: per root one tree each way, of unequal height, half of the shard each
TREES = [(root, 1) for root in range(4) for _ in range(2)]
EDGES = [
    edge
    for tree, root in enumerate(r for r in range(4) for _ in range(2))
    for edge in (
        [(tree, (root + i) % 4, (root + i + 1) % 4, 2 * ((root + i) % 4)) for i in range(3)]
        if tree % 2
        else [
            (tree, root, (root + 1) % 4, 2 * root),
            (tree, root, (root - 1) % 4, 2 * root + 1),
            (tree, (root + 1) % 4, (root + 2) % 4, 2 * ((root + 1) % 4)),
        ]
    )
]


def _forest(trees=TREES, edges=EDGES, parts=2, collective=None, topology=RING, **options) -> Forest:
    root, weight = np.array(trees, dtype=np.int64).reshape(-1, 2).T
    tree, parent, child, route = np.array(edges, dtype=np.int64).reshape(-1, 4).T
    collective = collective or Collective("allgather", topology.num_ranks)
    return Forest(topology, collective, parts, root, weight, tree, parent, child, route, **options)


def _naive_depth(forest: Forest) -> list[int]:
    depth = [{int(root): 0} for root in forest.root]
    for tree, parent, child in zip(forest.tree, forest.parent, forest.child, strict=True):
        depth[tree][int(child)] = depth[tree][int(parent)] + 1
    return [depth[tree][int(child)] for tree, child in zip(forest.tree, forest.child, strict=True)]


# ---- depth and steps


@given(strategies.forests())
def test_depth_is_the_distance_from_the_root(forest):
    depth = _naive_depth(forest)
    assert depth == forest.depth.tolist()
    assert forest.height == max(depth, default=0)


def test_depth_of_a_long_path():
    """Doubling reaches the end of a path of a thousand hops."""
    ranks = 1000
    edges = [(0, r, r + 1, r) for r in range(ranks - 1)]
    forest = _forest([(0, 1)], edges, 1, Collective("broadcast", ranks, 0), strategies.uniring(ranks))
    assert forest.depth.tolist() == list(range(1, ranks))


@settings(deadline=None)
@given(strategies.forests())
def test_steps_carry_every_share_along_every_edge(forest):
    """Tree edges become transfers at their depth; in every piece, intervals of a stack's trees tile what they carry.

    Where trees carry the whole vector it is N shards, so a tree's share is worked out here on the whole vector.
    """
    schedule, pieces = forest.to_steps(), forest.pieces
    assert structure(schedule) == []
    n, whole, depth = forest.collective.num_ranks, forest.whole, _naive_depth(forest)
    inward = forest.inward.astype(bool).tolist()
    climb = max((d for d, t in zip(depth, forest.tree.tolist(), strict=True) if inward[t]), default=0)
    drop = max((d for d, t in zip(depth, forest.tree.tolist(), strict=True) if not inward[t]), default=0)
    begin: dict[tuple[bool, int], Fraction] = {}
    expected = []
    for tree in range(forest.num_trees):
        root = int(forest.root[tree])
        stack = (inward[tree], -1 if whole else root)
        low = begin.get(stack, Fraction(0))
        begin[stack] = low + forest.share(tree)
        for piece in range(pieces):
            lo, hi = ((piece + x) / pieces for x in (low, begin[stack]))
            for row in np.flatnonzero(forest.tree == tree):
                step = piece + (climb - depth[row] if inward[tree] else climb + depth[row] - 1)
                for shard in range(n) if whole else [root]:
                    # the part of this shard that [lo, hi) of the vector covers
                    a, b = (min(max(x * n - shard, Fraction(0)), Fraction(1)) if whole else x for x in (lo, hi))
                    if a < b:
                        action = Action.REDUCE if inward[tree] else Action.COPY
                        expected.append((step, action, shard, a, b, int(forest.route[row])))
    found = [
        (s, act, k, Fraction(a, schedule.parts), Fraction(b, schedule.parts), r)
        for s, act, k, a, b, r in zip(*(getattr(schedule, c).tolist() for c in schedule.COLUMNS), strict=True)
    ]
    assert sorted(expected) == sorted(found)
    assert forest.heights == (climb, drop)
    assert schedule.num_steps == (climb + drop + pieces - 1 if len(forest.tree) else 0)
    assert schedule.scheduler == forest.scheduler


def test_a_broadcast_cuts_shards_where_trees_end():
    """Two trees of 1/3 and 2/3 of a vector of two shards: the second tree begins within shard 0."""
    pair = Topology.from_links("pair", 2, [(0, 1), (0, 1), (1, 0)])
    forest = _forest([(0, 1), (0, 2)], [(0, 0, 1, 0), (1, 0, 1, 1)], 3, Collective("broadcast", 2, 0), pair)
    rows = [getattr(forest.to_steps(), c).tolist() for c in ("shard", "lo", "hi", "route")]
    assert rows == [[0, 0, 1], [0, 2, 0], [2, 3, 3], [0, 1, 1]]
    assert verify_forest(forest).ok


def test_a_reduction_ends_at_all_roots_together():
    """Inward, the leaves of the highest tree begin; every tree's last edges act in the last step."""
    steps = attrs.evolve(_inward()).to_steps()
    assert steps.num_steps == 3
    assert steps.action.tolist() == [Action.REDUCE] * 24
    assert verify_schedule(steps).ok


def _inward() -> Forest:
    """The trees of TREES turned round: data flow over the link the other way (2r <-> 2(r+1)+1)."""
    back = RING.reverse_links
    assert back is not None
    edges = [(tree, parent, child, int(back[route])) for tree, parent, child, route in EDGES]
    return _forest(edges=edges, collective=Collective("reduce-scatter", 4), inward=True)


def _allreduce(pieces: int = 1, **options) -> Forest:
    """The trees of both: every shard is reduced to its rank, then sent from there."""
    return compose_forests(_inward(), attrs.evolve(_forest(), pieces=pieces, **options))


def test_an_allreduce_turns_round_piece_by_piece():
    """Height 3 both ways: piece j arrives at its root in step j + 2 and leaves it in step j + 3, in 6 + P - 1 steps."""
    forest = _allreduce(pieces=4)
    assert forest.heights == (3, 3) and forest.height == 3
    assert forest.inward.tolist() == [1] * 8 + [0] * 8
    steps = forest.to_steps()
    assert (steps.num_steps, steps.parts) == (6 + 4 - 1, 2 * 4)
    at_root = np.flatnonzero((steps.dst == steps.shard) & (steps.action == Action.REDUCE))
    from_root = np.flatnonzero((steps.src == steps.shard) & (steps.action == Action.COPY))
    for piece in range(4):
        inside = steps.lo * 4 // steps.parts == piece
        assert set(steps.step[np.intersect1d(at_root, np.flatnonzero(inside))].tolist()) == {piece + 2}
        assert set(steps.step[np.intersect1d(from_root, np.flatnonzero(inside))].tolist()) == {piece + 3}
    assert verify_schedule(steps).ok and verify_forest(forest).ok


def test_an_allreduce_through_one_rank():
    """Reduce to rank 2, broadcast from there: two trees in, one out, of the whole vector."""
    ring = [(2, 3, 4), (3, 0, 6), (0, 1, 0)]
    back = [(2, 1, 5), (1, 0, 3), (0, 3, 1)]
    inward = [(0, p, c, 2 * c + 1) for p, c, _ in ring] + [(1, p, c, 2 * c) for p, c, _ in back]
    forest = _forest(
        [(2, 2), (2, 1), (2, 3)], [*inward, *((2, *row) for row in ring)], 3, Collective("allreduce", 4), whole=True,
        inward=[True, True, False], pieces=3,
    )  # fmt: skip
    assert verify_forest(forest).ok
    assert forest.to_steps().num_steps == 3 + 3 + 3 - 1
    assert parse_ir(print_ir(forest)) == forest
    elsewhere = attrs.evolve(forest, root=[2, 2, 0])
    assert verify_forest(elsewhere).failed[0].name == "trees"


def test_parts_of_a_vector_may_turn_round_at_different_ranks():
    """Two roots, half of the vector each; exchanged, what is reduced to one is broadcast from the other."""
    pair = Topology.from_links("pair", 2, [(0, 1), (1, 0)])
    up, down = [(0, 0, 1, 1), (1, 1, 0, 0)], [(2, 0, 1, 0), (3, 1, 0, 1)]
    trees, options = [(0, 1), (1, 1), (0, 1), (1, 1)], {"whole": True, "inward": [1, 1, 0, 0]}
    forest = _forest(trees, [*up, *down], 2, Collective("allreduce", 2), pair, **options)
    assert verify_forest(forest).ok
    crossed = _forest(
        [(0, 1), (1, 1), (1, 1), (0, 1)], [*up, (2, 1, 0, 1), (3, 0, 1, 0)], 2, Collective("allreduce", 2), pair,
        **options,
    )  # fmt: skip
    (failed,) = verify_forest(crossed).failed
    assert (failed.name, failed.detail) == (
        "weights",
        "the part up to 1/2 is reduced to rank 0, but broadcast from rank 1",
    )


def test_one_direction_stands_for_all_trees():
    """``inward`` is a column, however it is given; a rooted collective's trees carry the vector by nature."""
    assert _inward().inward.tolist() == [1] * 8 and not _inward().whole
    assert _forest(inward=np.bool_(False)) == _forest() == _forest(inward=[0] * 8)
    assert _forest() != _forest(pieces=2)
    assert attrs.evolve(_forest(), inward=True) == _forest(inward=[True] * 8) != _forest()
    assert _forest(TREES[:2], EDGES[:6], collective=Collective("broadcast", 4, 0)).whole


def test_to_steps_takes_numbers_of_any_size():
    """parts * N may leave 64 bits; shares do not."""
    parts = 2**62
    forest = _forest(
        [(0, parts - 1), (0, 1)], [(0, 0, 1, 0), (1, 0, 1, 0)], parts, Collective("broadcast", 2, 0),
        Topology.from_links("pair", 2, [(0, 1), (1, 0)]),
    )  # fmt: skip
    assert forest.to_steps().hi.tolist() == [parts, parts - 2, parts]
    assert verify_forest(forest).ok


def test_a_million_edges_take_a_second_or_two():
    """Forests of a thousand ranks, a tree each, are unfolded by columns."""
    ranks = 1000
    topology = strategies.complete(ranks)
    root = np.repeat(np.arange(ranks), ranks - 1)
    route = np.arange(ranks * (ranks - 1))
    forest = Forest(
        topology, Collective("allgather", ranks), 1, np.arange(ranks), np.arange(ranks) * 0 + 1, root, topology.src,
        topology.dst, route,
    )  # fmt: skip
    begin = time.process_time()
    schedule = forest.to_steps()
    assert time.process_time() - begin < 4
    assert (len(schedule), schedule.num_steps) == (ranks * (ranks - 1), 1)


# ---- the verifier


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests())
def test_correct_forests_are_accepted(forest):
    report = verify(forest)
    assert report.ok, report.failed
    assert (report.kind, report.collective, report.ranks) == (
        "forest",
        forest.collective.kind,
        forest.topology.num_ranks,
    )
    names = [check.name for check in report.checks]
    assert names[:4] == ["structure", "direction", "trees", "weights"] and "postcondition" in names
    assert verify(parse_ir(print_ir(forest))).ok


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests(), st.data())
def test_a_lost_edge_is_noticed(forest, data):
    if len(forest.tree) == 0:
        return
    keep = np.ones(len(forest.tree), dtype=bool)
    keep[data.draw(st.integers(0, len(keep) - 1))] = False
    columns = {c: getattr(forest, c)[keep] for c in ("tree", "parent", "child", "route")}
    report = verify_forest(attrs.evolve(forest, **columns))
    assert [check.name for check in report.failed] == ["trees"]


def test_the_example_is_correct():
    assert verify_forest(_forest()).ok
    assert verify_forest(_inward()).ok


def test_one_rank_needs_no_trees():
    one = Topology("one", 1, [], [])
    assert verify_forest(_forest([], [], 1, topology=one)).ok
    assert verify_forest(_forest([(0, 1)], [], 1, topology=one)).ok


def _changed(row: int, **values: int) -> list[tuple[int, int, int, int]]:
    edges = [list(edge) for edge in EDGES]
    for name, value in values.items():
        edges[row][("tree", "parent", "child", "route").index(name)] = value
    return [(a, b, c, d) for a, b, c, d in edges]


@pytest.mark.parametrize(
    ("change", "check", "detail"),
    [
        ({"edges": _changed(0, route=1)}, "structure", "edge 0: route 1 runs from 0 to 3, needed from 0 to 1"),
        ({"edges": _changed(0, route=8)}, "structure", "edge 0: route 8 does not exist: 0 to 7 do"),
        ({"edges": _changed(0, tree=8)}, "structure", "edge 0: tree 8 does not exist: 0 to 7 do"),
        ({"inward": True}, "structure", "edge 0: route 0 runs from 0 to 1, needed from 1 to 0 (and 23 more like it)"),
        ({"trees": [(9, 1), *TREES[1:]]}, "structure", "tree 0: root 9 does not exist: 0 to 3 do"),
        ({"trees": [(0, 3), *TREES[1:]]}, "structure", "tree 0: weight 3 is no share of 2 parts"),
        ({"trees": [(0, 0), *TREES[1:]]}, "structure", "tree 0: weight 0 is no share of 2 parts"),
        ({"collective": Collective("gather", 4, 0)}, "direction",
         "trees do not carry gather: they carry allgather, reduce-scatter, allreduce, broadcast, reduce"),
        ({"collective": Collective("reduce-scatter", 4)}, "direction",
         "data flow outward; reduce-scatter needs them to flow inward"),
        ({"edges": [*EDGES[2:3], *EDGES[:2], *EDGES[3:]]}, "trees",
         "edge 0: tree 0 has not reached the parent, rank 1, before"),
        ({"edges": [*EDGES, (0, 3, 0, 6)]}, "trees", "edge 24: tree 0 returns to its root, rank 0"),
        ({"edges": [*EDGES, (0, 3, 2, 7)]}, "trees", "edge 24: tree 0 reaches rank 2 a second time"),
        ({"edges": _changed(2, tree=1)}, "trees", "edge 4: tree 1 reaches rank 2 a second time"),
        ({"edges": EDGES[:-1]}, "trees", "tree 7 does not reach rank 2 (2 edges, needed 3)"),
        ({"trees": [(0, 2), *TREES[1:]]}, "weights", "the trees of rank 0 carry 3/2 of its data"),
        ({"collective": Collective("allreduce", 4)}, "weights", "the inward trees of rank 0 carry 0/2 of its data"),
        ({"collective": Collective("allreduce", 4), "whole": True}, "weights",
         "the inward trees carry 0/2 of the vector"),
        ({"whole": True}, "direction",
         "trees carry shares of the whole vector; in allgather every rank has a shard of its own"),
        ({"pieces": 0}, "structure", "0 pieces of 2 parts: 1 to 4611686018427387903 are possible"),
        ({"pieces": 2**62}, "structure", "4611686018427387904 pieces of 2 parts: 1 to 4611686018427387903"),
        ({"inward": [0] * 7}, "structure", "columns of trees differ in length: root 8, weight 8, inward 7"),
        ({"inward": [0] * 7 + [2]}, "structure", "tree 7: direction 2 does not exist: 0 to 1 do"),
        ({"parts": 3}, "weights", "the trees of rank 0 carry 2/3 of its data"),
        ({"trees": TREES[:-2], "edges": EDGES[:-6]}, "weights", "the trees of rank 3 carry 0/2 of its data"),
        ({"collective": Collective("broadcast", 4, 0)}, "weights",
         "a tree has the root rank 1; the collective's root is rank 0"),
        ({"collective": Collective("broadcast", 4, 0), "trees": TREES[:1], "edges": EDGES[:3]}, "weights",
         "the trees of rank 0 carry 1/2 of its data"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(change, check, detail):
    report = verify_forest(_forest(**change))
    (failed,) = report.failed
    assert (failed.name, report.checks[-1], report.ok) == (check, failed, False)
    assert failed.detail.startswith(detail)


def test_a_cycle_apart_from_the_root_is_refused():
    """Ranks that only reach one another are not reached, however many edges there are."""
    topology = strategies.complete(4)
    link = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(topology.src, topology.dst, strict=True))}
    ends = [(0, 1), (3, 2), (2, 3)]
    edges = [(0, a, b, link[a, b]) for a, b in ends]
    report = verify_forest(_forest([(0, 1)], edges, 1, Collective("broadcast", 4, 0), topology))
    assert [c.detail for c in report.failed] == ["edge 1: tree 0 has not reached the parent, rank 3, before"]
    assert np.isfinite(_forest([(0, 1)], edges, 1, Collective("broadcast", 4, 0), topology).depth).all()


@pytest.mark.parametrize("kind", ["gather", "scatter", "alltoall"])
def test_trees_do_not_carry_the_others(kind):
    collective = Collective(kind, 4, 0 if kind in ("gather", "scatter") else None)
    (failed,) = verify_forest(_forest(collective=collective)).failed
    assert failed.name == "direction" and f"trees do not carry {kind}" in failed.detail


def test_one_tree_that_flows_the_wrong_way_is_found():
    """Its links are there both ways, so only the direction tells."""
    inward = [0] * 7 + [1]
    back = RING.reverse_links
    assert back is not None
    edges = [(t, p, c, int(back[r])) if t == 7 else (t, p, c, r) for t, p, c, r in EDGES]
    (failed,) = verify_forest(_forest(edges=edges, inward=inward)).failed
    assert (failed.name, failed.detail) == (
        "direction",
        "data flow inward in tree 7; allgather needs them to flow outward",
    )


# ---- planted mistakes, in the steps that pieces take


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests(), st.data())
def test_a_piece_that_is_sent_before_it_came_is_noticed(forest, data):
    """One transfer a step early: what it copies is not there, or what it reduces is not whole."""
    steps = forest.to_steps()
    late = np.flatnonzero(steps.step > 0)
    # a transfer that waits for another: its sender got the data in the step before
    got = {(int(r), int(s), int(lo), int(t) + 1) for r, s, lo, t in zip(*_columns(steps, "dst"), strict=True)}
    waits = [i for i in late if (int(steps.src[i]), int(steps.shard[i]), int(steps.lo[i]), int(steps.step[i])) in got]
    if not waits:
        return
    row = data.draw(st.sampled_from(waits))
    step = steps.step.astype(np.int64).copy()
    step[row] -= 1
    order = np.argsort(step, kind="stable")
    early = attrs.evolve(steps.rows(order), step=step[order])
    assert not verify_schedule(early).ok


def _columns(steps, end):
    return tuple(getattr(steps, c).tolist() for c in (end, "shard", "lo", "step"))


@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests(), st.data())
def test_a_transfer_that_is_lost_or_done_twice_is_noticed(forest, data):
    """A lost one leaves somebody without a piece; a reduction done twice counts somebody twice, which maxima allow."""
    steps = forest.to_steps()
    if not len(steps):
        return
    row = data.draw(st.integers(0, len(steps) - 1))
    assert not verify_schedule(steps.rows(np.delete(np.arange(len(steps)), row))).ok
    if steps.action[row] == Action.REDUCE:
        twice = verify_schedule(steps.rows(np.insert(np.arange(len(steps)), row, row)))
        assert twice.ok == forest.collective.idempotent


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests(), st.data())
def test_a_share_that_is_too_large_or_small_is_noticed(forest, data):
    if forest.num_trees == 0 or forest.collective.num_ranks == 1:
        return
    tree = data.draw(st.integers(0, forest.num_trees - 1))
    weight = forest.weight.astype(np.int64).copy()
    weight[tree] += data.draw(st.sampled_from([-1, 1]))
    assert not verify_forest(attrs.evolve(forest, weight=weight)).ok


# ---- reversed and composed


@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests())
def test_reversing_twice_changes_nothing(forest):
    back = reverse_forest(forest)
    assert verify_forest(back).ok
    again = reverse_forest(back)
    assert attrs.evolve(again, topology=forest.topology) == forest
    assert set(back.inward.tolist()).isdisjoint(forest.inward.tolist()) or forest.collective.kind == "allreduce"


@settings(max_examples=examples(60), deadline=None)
@given(strategies.forests(), st.integers(1, 4))
def test_a_forest_and_another_turned_round_make_an_allreduce(forest, pieces):
    """The reverse lives on the transpose: turned round there it is the first phase here."""
    if forest.collective.kind not in ("allgather", "broadcast"):
        return
    net = forest.topology
    # A network with every link both ways, so that one forest serves as both phases.
    there = [(int(a), int(b)) for a, b in zip(net.src, net.dst, strict=True)]
    both = Topology.from_links("both", net.num_ranks, [*there, *((b, a) for a, b in there)], net.num_switches)
    out = attrs.evolve(forest, topology=both)
    links = forest.routes.links.astype(np.int64) + net.num_links
    flipped = attrs.evolve(
        reverse_forest(attrs.evolve(out, routes=Routes(forest.routes.start, links))), topology=both, pieces=pieces
    )
    whole = compose_forests(flipped, out)
    assert verify_forest(whole).ok, verify_forest(whole).failed
    assert (whole.collective.kind, whole.pieces) == ("allreduce", max(pieces, forest.pieces))
    assert whole.heights == (forest.height, forest.height)


def test_phases_that_do_not_fit_are_refused():
    pair = Topology.from_links("pair", 2, [(0, 1), (1, 0)])
    out = _forest([(0, 1)], [(0, 0, 1, 0)], 1, Collective("broadcast", 2, 0), pair)
    into = _forest([(1, 1)], [(0, 1, 0, 0)], 1, Collective("reduce", 2, 1), pair, inward=True)
    with pytest.raises(CollcError, match="cannot compose `reduce` at rank 1 and `broadcast` at rank 0") as caught:
        compose_forests(into, out)
    assert caught.value.diagnostics[0].code == "C0506"
    with pytest.raises(CollcError, match="cannot compose `broadcast`"):
        compose_forests(out, out)


# ---- text


def test_trees_that_point_both_ways_say_so():
    text = print_ir(_allreduce(pieces=5))
    lines = [line.strip() for line in text.split("forest {")[1].splitlines()]
    assert lines[1:5] == ["scheduler forest", "parts 2", "direction both", "pieces 5"]
    assert "trees 16: root weight direction {" in lines and "0 1 inward" in lines and "3 1 outward" in lines
    assert parse_ir(text) == _allreduce(pieces=5)
    plain = print_ir(_forest())
    assert "direction outward" in plain and "pieces" not in plain and "whole" not in plain


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("root weight direction", "root weight", "expected a column `direction` after `root weight`"),
        ("direction both", "direction inward", "expected `{`, found `direction`"),
        ("direction both", "direction up", "expected `outward` or `inward` or `both`, found `up`"),
        ("0 1 inward", "0 1 up", "expected `outward` or `inward` as direction, found `up`"),
        ("pieces 5", "pieces 0", "0 pieces of 2 parts: 1 to 4611686018427387903 are possible"),
        ("pieces 5", "whole maybe", "expected `yes` or `no`, found `maybe`"),
    ],
)
def test_what_a_forest_cannot_say(old, new, message):
    text = print_ir(_allreduce(pieces=5))
    assert old in text
    with pytest.raises(CollcError) as caught:
        parse_ir(text.replace(old, new))
    assert message in str(caught.value)
