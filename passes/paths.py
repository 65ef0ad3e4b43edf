"""Heavy paths through all nodes of a graph: joining what weighs most, then turning and moving pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.progress import progress

__all__ = ["MOST_NODES", "heavy_path", "weight"]

Array = np.ndarray[Any, np.dtype[Any]]

#: nodes up to which all pairs are looked at
MOST_NODES = 2048
#: pairs of places looked at, over all rounds of improving
_WORK = 1 << 28


def heavy_path(weights: Array, start: Array) -> Array:
    """Return an order of all nodes whose neighbours weigh much together: no less than those of ``start``.

    ``weights`` is symmetric, of whole numbers of at least 0. Pairs of ends are joined, heaviest first, which is best
    where weights come from a tree of sets within sets: then a path leaves each set once. The better of that path and
    ``start`` is improved by reversing pieces and by moving short ones while anything is gained.
    """
    number = len(start)
    if number < 3:
        return start
    found = max((start, _joined(weights)), key=lambda path: weight(weights, path))
    rounds = max(_WORK // (4 * number * number), 1)
    for turn in range(rounds):
        progress("ordering chunks", turn)
        better = _reversed_pieces(weights, found)
        better = _moved_pieces(weights, better)
        if better is found:
            break
        found = better
    return found


def weight(weights: Array, path: Array) -> int:
    """Return what neighbours on a path weigh together."""
    return int(weights[path[:-1], path[1:]].sum())


def _joined(weights: Array) -> Array:
    """Return a path made by joining ends of paths, the heaviest pairs first, of equals those of the least nodes."""
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
    """Return the weights with a node that weighs nothing to any, which stands before the first and after the last."""
    return np.pad(weights, (0, 1))


def _reversed_pieces(weights: Array, path: Array) -> Array:
    """Return a path with pieces reversed where that gains, or the same where none does."""
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


def _moved_pieces(weights: Array, path: Array) -> Array:
    """Return a path with pieces of up to three nodes moved where that gains, or the same where none does."""
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
            ways = np.stack([w[p[at], p[i]] + w[p[last], p[at + 1]], w[p[at], p[last]] + w[p[i], p[at + 1]]]) - old
            best = int(np.argmax(ways)) if ways.size else -1
            if best >= 0 and ways.flat[best] > freed:
                p = _inserted(p, i, last, int(at[best % len(at)]), turned=best >= len(at))
                changed = True
    return p[1:-1] if changed else path


def _inserted(p: Array, first: int, last: int, after: int, turned: bool) -> Array:
    piece = p[first : last + 1][::-1] if turned else p[first : last + 1]
    if after < first:
        return np.concatenate([p[: after + 1], piece, p[after + 1 : first], p[last + 1 :]])
    return np.concatenate([p[:first], p[last + 1 : after + 1], piece, p[after + 1 :]])
