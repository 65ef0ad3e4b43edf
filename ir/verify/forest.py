"""Verify a forest: its trees span all ranks and carry whole shards; then its steps are executed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import attrs
import numpy as np

from ..arrays import Array
from ..progress import counting, progress
from ..schedule import Forest
from ..symmetric_forest import SymmetricForest
from ..validate import structure
from .report import Check, Report

__all__ = ["verify_forest"]

#: collective -> the directions of its trees (1: data flow to the roots)
_DIRECTIONS = {"allgather": (0,), "reduce-scatter": (1,), "allreduce": (1, 0), "broadcast": (0,), "reduce": (1,)}
_WORDS = ("outward", "inward")

#: pieces are independent, so a property of two consecutive pieces holds for any number
_EXECUTED = 2


def verify_forest(forest: Forest | SymmetricForest) -> Report:
    """Verify a forest; checks: structure, direction, trees, weights, then those of its steps.

    Structure: columns and routes are well formed, and the route of every edge connects its ranks. Direction: trees can
    carry the collective, and data flow in the right direction. Trees: every tree reaches every rank once, parents
    before children. Weights: the trees of every root carry its whole shard, in an allreduce in each direction. Trees
    of the whole vector carry it together: in a rooted collective from or to its root, in an allreduce every part from
    the rank to which it was reduced. The other checks are those of the executed steps, with at most two pieces: pieces
    never share data, and differ only in time.

    Of a template (:class:`SymmetricForest`) only its own roots' trees are checked and executed, after the group:
    structure has checked that it moves links to links of their class, and every rank to another or none. All other
    roots' trees are images, and trees of different roots share no data. If they carry the whole vector, the trees of
    every root are executed as if they carried a shard, in the same shares.
    """
    checks: list[Check] = []
    for name, check in counting(_CHECKS, "checks of trees"):
        detail = check(forest)
        checks.append(Check(name, not detail, detail or (_symmetry(forest) if name == "structure" else "")))
        if detail:
            break
    else:
        from .schedule import verify_schedule

        progress("steps of trees")
        own, shards = _executed(forest)
        steps = own.to_steps(min(forest.pieces, _EXECUTED))
        progress("structure of steps")
        checks += [check for check in verify_schedule(steps, shards).checks if check.name != "structure"]
    return Report("forest", forest.collective.name, forest.collective.num_ranks, tuple(checks))


def _template(forest: Forest | SymmetricForest) -> Forest:
    return forest if isinstance(forest, Forest) else forest.seed


def _executed(level: Forest | SymmetricForest) -> tuple[Forest, Array | None]:
    """Return the trees to execute, and the shards that they carry, if not all."""
    if isinstance(level, Forest):
        return level, None
    seed = level.seed
    if not level.whole:
        return seed, level.roots
    # the last tree of a root and direction carries what the others leave of a shard
    weight = seed.weight.astype(np.int64)
    owner = seed.root.astype(np.int64) * 2 + seed.inward
    order = np.argsort(owner, kind="stable")
    last = order[np.append(np.diff(owner[order]) != 0, True)]
    carried = np.zeros(2 * seed.collective.num_ranks, dtype=np.int64)
    np.add.at(carried, owner, weight)
    parts = int(carried.max(initial=1))
    weight[last] += parts - carried[owner[last]]
    return attrs.evolve(seed, weight=weight, parts=parts, whole=False), np.unique(seed.root)


def _symmetry(forest: Forest | SymmetricForest) -> str:
    if isinstance(forest, Forest):
        return ""
    roots = f"executed {len(np.unique(forest.seed.root))} of {_num_roots(forest):,} roots"
    return f"{roots}, all others by {forest.group.shown}, checked"


def _num_roots(forest: SymmetricForest) -> int:
    roots = np.unique(forest.seed.root)
    stays = int(np.count_nonzero(forest.group.stays[roots]))
    return (len(roots) - stays) * forest.group.order + stays


def _structure(forest: Forest | SymmetricForest) -> str:
    problems = structure(forest)
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def _direction(level: Forest | SymmetricForest) -> str:
    forest = _template(level)
    kind = forest.collective.kind
    if kind not in _DIRECTIONS:
        return f"trees do not carry {kind}: they carry {', '.join(_DIRECTIONS)}"
    wrong = np.flatnonzero(~np.isin(forest.inward, _DIRECTIONS[kind]))
    if len(wrong):
        found, needed = _WORDS[forest.inward[wrong[0]]], _WORDS[_DIRECTIONS[kind][0]]
        which = "" if len(wrong) == forest.num_trees else f" in tree {wrong[0]}"
        return f"data flow {found}{which}; {kind} needs them to flow {needed}"
    if forest.whole and forest.collective.root is None and kind != "allreduce":
        return f"trees carry shares of the whole vector; in {kind} every rank has a shard of its own"
    return ""


def _trees(level: Forest | SymmetricForest) -> str:
    forest = _template(level)
    ranks, names = forest.collective.num_ranks, forest.topology.names
    tree, child = forest.tree.astype(np.int64), forest.child
    again = np.flatnonzero(child == forest.root[tree])
    if len(again):
        row = int(again[0])
        return f"edge {row}: tree {tree[row]} returns to its root, rank {names[child[row]]}"
    key = tree * ranks + child
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
    if len(twice):
        row = int(order[twice].min())
        return f"edge {row}: tree {tree[row]} reaches rank {names[child[row]]} a second time"
    row_above, at_root = forest.parent_row, forest.parent == forest.root[tree]
    early = np.flatnonzero(~at_root & ((row_above < 0) | (row_above >= np.arange(len(tree)))))
    if len(early):
        row = int(early[0])
        parent = names[forest.parent[row]]
        return f"edge {row}: tree {tree[row]} has not reached the parent, rank {parent}, before"
    taking_part = forest.collective.places >= 0
    reached = np.bincount(tree[taking_part[child]], minlength=forest.num_trees)
    needed = forest.collective.num_members - taking_part[forest.root]  # a relay may be the root of an allreduce
    short = np.flatnonzero(reached != needed)
    if len(short):
        lost = np.setdiff1d(forest.collective.ranks, [*child[tree == short[0]], forest.root[short[0]]])
        edges = f"{reached[short[0]]} edges, needed {needed[short[0]]}"
        return f"tree {short[0]} does not reach rank {names[lost[0]]} ({edges})"
    return ""


def _weights(level: Forest | SymmetricForest) -> str:
    forest = _template(level)
    roots = None if isinstance(level, Forest) else level.roots
    names, root = forest.topology.names, forest.collective.root
    if root is not None and (forest.root != root).any():
        stray = int(forest.root[np.argmax(forest.root != root)])
        return f"a tree has the root rank {names[stray]}; the collective's root is rank {names[root]}"
    if forest.collective.num_members == 1:
        return ""  # no data move
    kind = forest.collective.kind
    for inward in _DIRECTIONS[kind]:
        trees = f"the {_WORDS[inward]} trees" if kind == "allreduce" else "the trees"
        if isinstance(level, SymmetricForest) and level.whole:
            sums = {-1: level.carried(inward)}
        else:
            sums = _carried(forest, inward, roots)
        for at, carried in sums.items():
            if carried != forest.parts:
                rank = root if at < 0 else at
                owner, what = ("", "the vector") if rank is None else (f" of rank {names[rank]}", "its data")
                return f"{trees}{owner} carry {carried}/{forest.parts} of {what}"
    if kind != "allreduce" or not forest.whole:
        return ""
    if isinstance(level, Forest):
        return _same_roots(level)
    return _same_roots(forest, level.stays) or _same_roots(forest, ~level.stays)


def _carried(forest: Forest, inward: int, roots: Array | None = None) -> dict[int, int]:
    """Return the sum of the weights of a direction's trees by root, or (key -1) for the vector, in 1/parts.

    Of a template only some ranks are ``roots``.
    """
    total = (
        {-1: 0} if forest.whole else dict.fromkeys((forest.collective.ranks if roots is None else roots).tolist(), 0)
    )
    keep = forest.inward == inward
    for root, weight in zip(forest.root[keep].tolist(), forest.weight[keep].tolist(), strict=True):
        total[-1 if forest.whole else root] += weight
    return total


def _same_roots(forest: Forest, among: Array | None = None) -> str:
    """Check that every part of the vector is broadcast from the rank to which it is reduced, by trees in a mask or all.

    The trees of a template that move, and those that stay, each carry a part of the vector in both directions.
    """
    chosen = np.ones(forest.num_trees, dtype=bool) if among is None else among
    stacks = [(forest.root[keep].tolist(), np.cumsum(forest.weight[keep].astype(object)).tolist())
              for keep in (chosen & (forest.inward == 1), chosen & (forest.inward == 0))]  # fmt: skip
    if stacks[0][1][-1:] != stacks[1][1][-1:]:
        return "inward and outward trees that a group moves carry different parts of the vector"
    for end in sorted({*stacks[0][1], *stacks[1][1]}):
        up, down = (roots[bisect_left(ends, end)] for roots, ends in stacks)
        if up != down:
            up, down = forest.topology.names[up], forest.topology.names[down]
            return f"the part up to {end}/{forest.parts} is reduced to rank {up}, but broadcast from rank {down}"
    return ""


_CHECKS: tuple[tuple[str, Callable[[Forest | SymmetricForest], str]], ...] = (
    ("structure", _structure),
    ("direction", _direction),
    ("trees", _trees),
    ("weights", _weights),
)
