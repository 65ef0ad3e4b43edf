"""Heavy paths through all nodes of a graph: join the heaviest pairs, then reverse and move segments."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.progress import progress

__all__ = ["MOST_NODES", "heavy_path", "weight"]

#: nodes up to which all pairs are examined
MOST_NODES = 2048
#: pairs of places to examine in all rounds of improvement
_WORK = 1 << 28


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
    order = np.argsort(-value, kind="stable")
    order = order[value[order] > 0]
    owner = list(range(number))

    def root(node: int) -> int:
        while owner[node] != node:
            owner[node] = owner[owner[node]]
            node = owner[node]
        return node

    near: list[list[int]] = [[] for _ in range(number)]
    for a, b in zip(low[order].tolist(), high[order].tolist(), strict=True):
        if len(near[a]) < 2 and len(near[b]) < 2 and (ra := root(a)) != (rb := root(b)):
            owner[rb] = ra
            near[a].append(b)
            near[b].append(a)
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
    changed = False
    for i in range(1, number):
        # reversing p[i..j]: (i-1, i) and (j, j+1) become (i-1, j) and (i, j+1)
        j = np.arange(i + 1, number + 1)
        gain = w[p[i - 1], p[j]] + w[p[i], p[j + 1]] - w[p[i - 1], p[i]] - w[p[j], p[j + 1]]
        best = int(np.argmax(gain))
        if gain[best] > 0:
            p[i : int(j[best]) + 1] = p[i : int(j[best]) + 1][::-1].copy()
            changed = True
    return p[1:-1] if changed else path


def _segments_moved(weights: Array, path: Array) -> Array:
    """Return a path with segments of up to three nodes moved if that adds weight, otherwise ``path`` itself."""
    w, number = _padded(weights), len(path)
    p = np.concatenate([[number], path, [number]])
    changed = False
    for length in (1, 2, 3):
        for i in range(1, number - length + 2):
            last = i + length - 1
            freed = w[p[i - 1], p[i]] + w[p[last], p[last + 1]] - w[p[i - 1], p[last + 1]]
            if freed == w[p[i - 1], p[i]] + w[p[last], p[last + 1]] == 0 and length > 1:
                continue
            at = np.concatenate([np.arange(0, i - 1), np.arange(last + 1, number + 1)])  # between at and at + 1
            old = w[p[at], p[at + 1]]
            added = np.stack([w[p[at], p[i]] + w[p[last], p[at + 1]], w[p[at], p[last]] + w[p[i], p[at + 1]]]) - old
            best = int(np.argmax(added)) if added.size else -1
            if best >= 0 and added.flat[best] > freed:
                p = _inserted(p, i, last, int(at[best % len(at)]), reverse=best >= len(at))
                changed = True
    return p[1:-1] if changed else path


def _inserted(p: Array, first: int, last: int, after: int, reverse: bool) -> Array:
    segment = p[first : last + 1][::-1] if reverse else p[first : last + 1]
    if after < first:
        return np.concatenate([p[: after + 1], segment, p[after + 1 : first], p[last + 1 :]])
    return np.concatenate([p[:first], p[last + 1 : after + 1], segment, p[after + 1 :]])
