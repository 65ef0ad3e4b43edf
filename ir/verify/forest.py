"""Whether a forest is one: trees span all ranks, shards are carried whole; then its steps are executed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schedule import Forest
from ..validate import structure
from .report import Check, Report

__all__ = ["verify_forest"]

#: collective -> whether data flow to the roots of its trees
_INWARD = {"allgather": False, "broadcast": False, "reduce-scatter": True, "reduce": True}


def verify_forest(forest: Forest) -> Report:
    """Verify a forest; checks: structure, direction, trees, weights, then those of its steps.

    Structure: columns and routes are well formed, the route of every edge joins its ranks. Direction: trees
    can carry the collective, and data flow the right way. Trees: every tree reaches every rank once, parents
    stand before children. Weights: the trees of every root carry its shard whole (in a rooted collective: all
    trees stand at the root and carry the vector). The other checks are those of the executed steps.
    """
    checks: list[Check] = []
    for name, check in _CHECKS:
        detail = check(forest)
        checks.append(Check(name, not detail, detail))
        if detail:
            break
    else:
        from .schedule import verify_schedule

        checks += [c for c in verify_schedule(forest.to_steps()).checks if c.name != "structure"]
    return Report("forest", forest.collective.kind, forest.collective.num_ranks, tuple(checks))


def _structure(forest: Forest) -> str:
    problems = structure(forest)
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def _direction(forest: Forest) -> str:
    kind = forest.collective.kind
    if kind not in _INWARD:
        return f"trees do not carry {kind}: they carry {', '.join(_INWARD)}"
    if forest.inward != _INWARD[kind]:
        found, needed = ("inward", "outward") if forest.inward else ("outward", "inward")
        return f"data flow {found}; {kind} needs them to flow {needed}"
    return ""


def _trees(forest: Forest) -> str:
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
    reached = np.bincount(tree, minlength=forest.num_trees)
    short = np.flatnonzero(reached != ranks - 1)
    if len(short):
        lost = np.setdiff1d(np.arange(ranks), [*child[tree == short[0]], forest.root[short[0]]])
        edges = f"{reached[short[0]]} edges, needed {ranks - 1}"
        return f"tree {short[0]} does not reach rank {names[lost[0]]} ({edges})"
    return ""


def _weights(forest: Forest) -> str:
    names = forest.topology.names
    total: dict[int, int] = {}
    for root, weight in zip(forest.root.tolist(), forest.weight.tolist(), strict=True):
        total[root] = total.get(root, 0) + weight
    needed = range(forest.collective.num_ranks)
    if forest.collective.root is not None:
        needed = range(forest.collective.root, forest.collective.root + 1)
        if stray := [root for root in total if root not in needed]:
            return f"a tree stands at rank {names[stray[0]]}; the root is rank {names[forest.collective.root]}"
    if forest.collective.num_ranks == 1:
        return ""  # nothing has to move
    for root in needed:
        if total.get(root, 0) != forest.parts:
            return f"the trees of rank {names[root]} carry {total.get(root, 0)}/{forest.parts} of its data"
    return ""


_CHECKS: tuple[tuple[str, Callable[[Forest], str]], ...] = (
    ("structure", _structure),
    ("direction", _direction),
    ("trees", _trees),
    ("weights", _weights),
)
