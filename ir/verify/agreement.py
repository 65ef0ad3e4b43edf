"""Check whether all ranks end with the same bits: floating-point sums depend on the order of additions.

Every rank's result is a tree of additions over the ranks' contributions. If one rank finishes a sum that is then
copied, there is one tree. If ranks exchange and add, as in a latency variant, each rank has its own tree. Two trees
give the same bits for all inputs if they differ only in the order of an addition's operands (a + b is exactly b + a).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..arrays import Array, lexsort
from ..ragged import first_of_group, group_starts, ranges
from ..schedule import Action, Forest, Schedule
from ..symmetric import SymmetricSchedule
from ..symmetric_forest import SymmetricForest
from ._atoms import Atoms

__all__ = ["same_everywhere"]

#: operations whose floating-point results depend on the order of additions; a user's operation may
_ROUNDING = frozenset({"sum", "prod", "avg", "user"})
_BLOCK_BYTES = 1 << 26  # state of the shards executed together


def same_everywhere(level: Schedule | SymmetricSchedule | Forest | SymmetricForest) -> bool:
    """Return whether every rank of a verified allreduce ends with the same bits.

    In other collectives one rank finishes a sum. Sums of integers and maxima do not depend on the order. Trees of
    additions are compared by 64-bit hashes that ignore the order of operands. A rank adds the data of one step in the
    order of parts, then of routes, as lowering does. Forests reduce to a root first.
    """
    exact = "int" in level.collective.dtype or level.collective.op not in _ROUNDING
    if level.collective.kind != "allreduce" or isinstance(level, (Forest, SymmetricForest)) or exact:
        return True
    if isinstance(level, SymmetricSchedule):
        rows, shards = level.seed, level.width
    else:
        rows, shards = level, level.collective.num_shards
    most = max(1, _BLOCK_BYTES // (8 * level.collective.num_ranks))
    blocks = [
        (low, min(low + max(1, most // atoms.count), end), atoms)
        for start, end, atoms in Atoms.by_shard(rows, shards, most // 16)
        for low in range(start, end, max(1, most // atoms.count))
    ]
    number = np.searchsorted(np.array([low for low, _, _ in blocks]), rows.shard, side="right") - 1
    order = lexsort((rows.route, rows.lo, rows.step, number))
    first = group_starts(number[order], len(blocks)).tolist()
    return all(
        _agree(rows, atoms, order[a:b], low, end - low)
        for (low, end, atoms), (a, b) in zip(blocks, pairwise(first), strict=True)
    )


def _agree(s: Schedule, atoms: Atoms, rows: Array, low: int, shards: int) -> bool:
    """Return whether all ranks end with equal hashes of the shards from ``low``, of which ``rows`` tell."""
    ranks = s.collective.num_ranks
    state = np.repeat(_mixed(np.arange(1, ranks + 1, dtype=np.uint64)), shards * atoms.count)
    cuts = np.flatnonzero(np.diff(s.step[rows].astype(np.int64))) + 1
    for step in np.split(rows, cuts) if len(rows) else ():
        widths = atoms.last[step].astype(np.int64) - atoms.first[step]
        row = np.repeat(step, widths)
        place = (s.shard[row].astype(np.int64) - low) * atoms.count + ranges(atoms.first[step], widths)
        sent = state[s.src[row].astype(np.int64) * (shards * atoms.count) + place]
        target = s.dst[row].astype(np.int64) * (shards * atoms.count) + place
        for now in _one_by_one(target):
            adds = s.action[row[now]] == Action.REDUCE
            state[target[now]] = np.where(adds, _added(state[target[now]], sent[now]), sent[now])
    by_rank = state.reshape(ranks, -1)
    return bool((by_rank == by_rank[:1]).all())


def _one_by_one(target: Array) -> list[Array]:
    """Return row numbers in groups without a common target, each target's rows in order."""
    order = lexsort([target])
    index = np.arange(len(order))
    turn = index - np.maximum.accumulate(np.where(first_of_group(target[order]), index, 0))
    return [order[turn == k] for k in range(int(turn.max(initial=-1)) + 1)]


def _added(a: Array, b: Array) -> Array:
    """Return the hash of a sum from those of its operands, in whichever order."""
    return _mixed(_mixed(a + b) ^ (a * b))


def _mixed(x: Array) -> Array:
    """Return 64-bit words whose bits all depend on all bits (Steele, Lea and Flood, Fast splittable generators)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed
