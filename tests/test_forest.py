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

from collc.ir.collective import KINDS, Collective
from collc.ir.schedule import Action, Forest
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify, verify_forest, verify_schedule

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
    """Tree edges become transfers at their depth; intervals of a root's trees tile what they carry.

    In a rooted collective the vector is N shards, so a tree's share is worked out here on the whole vector.
    """
    schedule = forest.to_steps()
    assert structure(schedule) == []
    n, rooted = forest.collective.num_ranks, forest.collective.root is not None
    height = forest.height
    begin: dict[int, Fraction] = {}
    expected = []
    for tree in range(forest.num_trees):
        root = int(forest.root[tree])
        lo = begin.get(root, Fraction(0))
        hi = begin[root] = lo + forest.share(tree)
        for row in np.flatnonzero(forest.tree == tree):
            step = height - forest.depth[row] if forest.inward else forest.depth[row] - 1
            for shard in range(n) if rooted else [root]:
                # the part of this shard that [lo, hi) of the vector covers
                a, b = (min(max(x * n - shard, Fraction(0)), Fraction(1)) if rooted else x for x in (lo, hi))
                if a < b:
                    expected.append((int(step), shard, a, b, int(forest.route[row])))
    found = [
        (s, k, Fraction(a, schedule.parts), Fraction(b, schedule.parts), r)
        for s, k, a, b, r in zip(
            *(getattr(schedule, c).tolist() for c in ("step", "shard", "lo", "hi", "route")), strict=True
        )
    ]
    assert sorted(expected) == sorted(found)
    assert set(schedule.action.tolist()) <= {Action.REDUCE if forest.inward else Action.COPY}
    assert (schedule.num_steps, schedule.scheduler) == (height, forest.scheduler)


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


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
         "trees do not carry gather: they carry allgather, broadcast, reduce-scatter, reduce"),
        ({"collective": Collective("reduce-scatter", 4)}, "direction",
         "data flow outward; reduce-scatter needs them to flow inward"),
        ({"edges": [*EDGES[2:3], *EDGES[:2], *EDGES[3:]]}, "trees",
         "edge 0: tree 0 has not reached the parent, rank 1, before"),
        ({"edges": [*EDGES, (0, 3, 0, 6)]}, "trees", "edge 24: tree 0 returns to its root, rank 0"),
        ({"edges": [*EDGES, (0, 3, 2, 7)]}, "trees", "edge 24: tree 0 reaches rank 2 a second time"),
        ({"edges": _changed(2, tree=1)}, "trees", "edge 4: tree 1 reaches rank 2 a second time"),
        ({"edges": EDGES[:-1]}, "trees", "tree 7 does not reach rank 2 (2 edges, needed 3)"),
        ({"trees": [(0, 2), *TREES[1:]]}, "weights", "the trees of rank 0 carry 3/2 of its data"),
        ({"parts": 3}, "weights", "the trees of rank 0 carry 2/3 of its data"),
        ({"trees": TREES[:-2], "edges": EDGES[:-6]}, "weights", "the trees of rank 3 carry 0/2 of its data"),
        ({"collective": Collective("broadcast", 4, 0)}, "weights", "a tree stands at rank 1; the root is rank 0"),
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


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("allgather", "broadcast", "reduce-scatter", "reduce")])
def test_trees_do_not_carry_the_others(kind):
    collective = Collective(kind, 4, 0 if kind in ("gather", "scatter") else None)
    (failed,) = verify_forest(_forest(collective=collective)).failed
    assert failed.name == "direction" and f"trees do not carry {kind}" in failed.detail
