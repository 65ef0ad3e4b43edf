"""Heavy paths through all nodes of a graph: join the heaviest pairs, then reverse and move segments."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.progress import progress

__all__ = ["MOST_NODES", "heavy_path", "weight"]

#: nodes up to which all pairs are examined
MOST_NODES = 2048
#: pairs of places to examine in all rounds of improvement
_WORK = 1 << 28
#: pairs of places, or of nodes, to examine at once
_BATCH = 1 << 14
#: more than any weight
_NEVER = 1 << 62


def heavy_path(weights: Array, start: Array) -> Array:
    """Return an order of all nodes with a large sum of weights between neighbours, at least that of ``start``.

    ``weights`` is symmetric, of integers of at least 0. Ends of paths are joined, heaviest pair first. That is optimal
    if weights come from a hierarchy of sets: the path then leaves each set once. The better of that path and ``start``
    is improved by reversing segments and moving short ones, until neither helps.
    """
    number = len(start)
    if number < 3:
        return start
    found = max((start, _joined(weights)), key=lambda path: weight(weights, path))
    rounds = max(_WORK // (4 * number * number), 1)
    for turn in range(rounds):
        progress("ordering chunks, round", turn + 1)
        better = _segments_reversed(weights, found)
        better = _segments_moved(weights, better)
        if better is found:
            break
        found = better
    return found


def weight(weights: Array, path: Array) -> int:
    """Return the sum of weights between neighbours on a path."""
    return int(weights[path[:-1], path[1:]].sum())


def _joined(weights: Array) -> Array:
    """Return a path made by joining ends of paths: the heaviest pair first, of equals the pair of lowest nodes."""
    number = len(weights)
    low, high = np.triu_indices(number, 1)
    value = weights[low, high]
    some = np.flatnonzero(value > 0)
    order = some[lexsort([-value[some]])]
    low, high = low[order], high[order]
    owner = list(range(number))

    def root(node: int) -> int:
        while owner[node] != node:
            owner[node] = owner[owner[node]]
            node = owner[node]
        return node

    near: list[list[int]] = [[] for _ in range(number)]
    free = np.ones(number, dtype=bool)  # the nodes that are not inside a path
    for begin in range(0, len(order), _BATCH):
        batch = slice(begin, begin + _BATCH)
        left = np.flatnonzero(free[low[batch]] & free[high[batch]]) + begin
        for a, b in zip(low[left].tolist(), high[left].tolist(), strict=True):
            if len(near[a]) < 2 and len(near[b]) < 2 and (ra := root(a)) != (rb := root(b)):
                owner[rb] = ra
                near[a].append(b)
                near[b].append(a)
                free[a], free[b] = len(near[a]) < 2, len(near[b]) < 2
    return _walk(near)


def _walk(near: list[list[int]]) -> Array:
    """Return the nodes of all paths, one path after the other, each from its lesser end."""
    seen, path = [False] * len(near), list[int]()
    for begin in range(len(near)):
        node = begin if len(near[begin]) < 2 and not seen[begin] else -1
        while node >= 0:
            seen[node] = True
            path.append(node)
            node = next((other for other in near[node] if not seen[other]), -1)
    return np.array(path, dtype=np.int64)


def _padded(weights: Array) -> Array:
    """Return the weights with a node of weight 0, which stands before the first node and after the last."""
    return np.pad(weights, (0, 1))


def _segments_reversed(weights: Array, path: Array) -> Array:
    """Return a path with segments reversed if that adds weight, otherwise ``path`` itself."""
    w, number = _padded(weights), len(path)
    p = np.concatenate([[number], path, [number]])
    changed, i = False, 1
    while i < number:
        at = np.arange(i, min(i + _rows_at_once(number), number))
        # reversing p[i..j]: (i-1, i) and (j, j+1) become (i-1, j) and (i, j+1)
        j = np.arange(i + 1, number + 1)
        gain = w[p[at - 1, None], p[j]] + w[p[at, None], p[j + 1]] - w[p[at - 1], p[at]][:, None] - w[p[j], p[j + 1]]
        gain[j <= at[:, None]] = 0
        better = (gain.max(axis=1) > 0).nonzero()[0]
        i = int(at[-1]) + 1
        if len(better):
            i, k = int(at[better[0]]), int(j[np.argmax(gain[better[0]])])
            p[i : k + 1] = p[i : k + 1][::-1].copy()
            changed, i = True, i + 1
    return p[1:-1] if changed else path


def _rows_at_once(number: int) -> int:
    """Return for how many places changes are weighed at once: an improvement makes the others of its batch void."""
    return max(_BATCH // number, 1)


def _segments_moved(weights: Array, path: Array) -> Array:
    """Return a path with segments of up to three nodes moved if that adds weight, otherwise ``path`` itself."""
    w, number = _padded(weights), len(path)
    p = np.concatenate([[number], path, [number]])
    changed = False
    for length in (1, 2, 3):
        i = 1
        while i < number - length + 2:
            at = np.arange(i, min(i + _rows_at_once(number), number - length + 2))
            added = _added(w, p, at, at + length - 1 if length > 1 else at)
            around = w[p[at - 1], p[at]] + w[p[at + length - 1], p[at + length]]
            freed = around - w[p[at - 1], p[at + length]]
            idle = (freed == around) & (around == 0) & (length > 1)
            better = ((added.max(axis=1) > freed) & ~idle).nonzero()[0]
            i = int(at[-1]) + 1
            if len(better):
                i, best = int(at[better[0]]), int(np.argmax(added[better[0]]))
                p = _inserted(p, i, i + length - 1, best % (number + 1), reverse=best > number)
                changed, i = True, i + 1
    return p[1:-1] if changed else path


def _added(w: Array, p: Array, first: Array, last: Array) -> Array:
    """Return what each segment adds between each place and the next one, then what it adds there in reverse."""
    places = np.arange(len(p) - 1)
    before, after = p[:-1], p[1:]
    # weights are the same both ways, and rows of a table are read faster than single entries
    ahead = w[p[first]][:, p]
    behind = ahead if first is last else w[p[last]][:, p]
    forth = ahead[:, :-1] + behind[:, 1:]
    back = behind[:, :-1] + ahead[:, 1:]
    own = (places >= first[:, None] - 1) & (places <= last[:, None])
    old = np.where(own, _NEVER, w[before, after])
    added: Array = np.concatenate([forth - old, back - old], axis=1)
    return added


def _inserted(p: Array, first: int, last: int, after: int, reverse: bool) -> Array:
    segment = p[first : last + 1][::-1] if reverse else p[first : last + 1]
    if after < first:
        return np.concatenate([p[: after + 1], segment, p[after + 1 : first], p[last + 1 :]])
    return np.concatenate([p[:first], p[last + 1 : after + 1], segment, p[after + 1 :]])
