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
#: less than any difference of weights
_NEVER: dict[type, int] = {np.int16: -(1 << 14), np.int32: -(1 << 30), np.int64: -(1 << 62)}


def heavy_path(weights: Array, start: Array) -> Array:
    """Return an order of all nodes with a large sum of weights between neighbours, at least that of ``start``.

    ``weights`` is symmetric, of integers of at least 0. Ends of paths are joined, heaviest pair first. That is optimal
    if weights come from a hierarchy of sets: the path then leaves each set once. The better of that path and ``start``
    is improved by reversing segments and moving short ones, until neither helps.
    """
    number = len(start)
    if number < 3:
        return start
    most = int(weights.max())
    kind = next((kind for kind, never in _NEVER.items() if most < -never >> 2), np.int64)
    weights = weights.astype(kind)
    found = max((start, _joined(weights)), key=lambda path: weight(weights, path))
    rounds = max(_WORK // (4 * number * number), 1)
    for turn in range(rounds):
        progress("ordering chunks, round", turn + 1)
        placed = _Placed(weights, found)
        _reverse_segments(placed)
        _move_segments(placed)
        if not placed.changed:
            break
        found = placed.path
    return found


def weight(weights: Array, path: Array) -> int:
    """Return the sum of weights between neighbours on a path."""
    return int(weights[path[:-1], path[1:]].sum())


def _joined(weights: Array) -> Array:
    """Return a path made by joining ends of paths: the heaviest pair first, of equals the pair of lowest nodes."""
    number = len(weights)
    pair = np.flatnonzero(np.triu(weights, 1))
    pair = pair.take(lexsort([-weights.ravel().take(pair)]))
    low, high = pair // number, pair % number
    owner = list(range(number))

    def root(node: int) -> int:
        while owner[node] != node:
            owner[node] = owner[owner[node]]
            node = owner[node]
        return node

    near: list[list[int]] = [[] for _ in range(number)]
    free = np.ones(number, dtype=bool)  # the nodes that are not inside a path
    for begin in range(0, len(pair), _BATCH):
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


class _Placed:
    """A path, and the weights by place on it. A node of weight 0 stands before the first node and after the last.

    ``node[k]`` is the node at place k, and ``next[k]`` its weight with the one at place k + 1. As long as the path has
    not ``changed``, its weights are a table in the order of places, which is read faster than single entries.
    """

    def __init__(self, weights: Array, path: Array):
        self.number, self.changed = len(path), False
        self.weights = np.pad(weights, (0, 1))  # the same both ways
        self.never = _NEVER[self.weights.dtype.type]
        self.node = np.concatenate([[self.number], path, [self.number]])
        self.table: Array | None = self.weights.take(self.node, axis=0).take(self.node, axis=1)
        self.next = np.diagonal(self.table, 1)

    @property
    def path(self) -> Array:
        return self.node[1:-1]

    def rows(self, low: int, high: int) -> Array:
        """Return the weights of the nodes at places ``low`` to ``high`` with those at all places."""
        if self.table is not None:
            return self.table[low:high]
        return self.weights.take(self.node[low:high], axis=0).take(self.node, axis=1)

    def change(self, node: Array) -> None:
        """Set the nodes of all places."""
        self.node, self.table, self.changed = node, None, True
        self.next = self.weights[node[:-1], node[1:]]

    @property
    def at_once(self) -> int:
        """For how many places changes are weighed at once: an improvement makes the others of its batch void."""
        return max(_BATCH // self.number, 1)


def _reverse_segments(p: _Placed) -> None:
    """Reverse segments if that adds weight."""
    i, number = 1, p.number
    while i < number:
        end = min(i + p.at_once, number)
        # reversing places i..j: (i-1, i) and (j, j+1) become (i-1, j) and (i, j+1)
        around = p.rows(i - 1, end)
        gain = around[:-1, i + 1 : -1] + around[1:, i + 2 :]
        gain -= p.next[i - 1 : end - 1, None] + p.next[i + 1 :]
        gain[np.tril_indices(end - i, -1, gain.shape[1])] = 0  # j is behind i
        better = (gain.max(axis=1) > 0).nonzero()[0]
        if len(better):
            i += int(better[0])
            k = int(np.argmax(gain[better[0]])) + end - len(gain) + 1
            p.change(np.concatenate([p.node[:i], p.node[i : k + 1][::-1], p.node[k + 1 :]]))
            i += 1
        else:
            i = end


def _move_segments(p: _Placed) -> None:
    """Move segments of up to three nodes if that adds weight."""
    number = p.number
    for length in (1, 2, 3):
        i = 1
        while i < number - length + 2:
            end = min(i + p.at_once, number - length + 2)
            forth, back = _added(p, i, end, length)
            around = p.next[i - 1 : end - 1] + p.next[i + length - 1 : end + length - 1]
            freed = around - p.weights[p.node[i - 1 : end - 1], p.node[i + length : end + length]]
            idle = (freed == around) & (around == 0) & (length > 1)
            better = ((np.maximum(forth.max(axis=1), back.max(axis=1)) > freed) & ~idle).nonzero()[0]
            if len(better):
                i += int(better[0])
                best = int(np.argmax(np.concatenate([forth[better[0]], back[better[0]]])))
                p.change(_inserted(p.node, i, i + length - 1, best % (number + 1), reverse=best > number))
                i += 1
            else:
                i = end


def _added(p: _Placed, low: int, high: int, length: int) -> tuple[Array, Array]:
    """Return what segments from places ``low`` to ``high`` add between each place and the next, and what in reverse."""
    ahead = p.rows(low, high)
    behind = ahead if length == 1 else p.rows(low + length - 1, high + length - 1)
    forth = ahead[:, :-1] + behind[:, 1:]
    forth -= p.next
    back = behind[:, :-1] + ahead[:, 1:]
    back -= p.next
    each = np.arange(high - low)
    for place in range(low - 1, low + length):  # beside and inside itself
        forth[each, each + place] = back[each, each + place] = p.never
    return forth, back


def _inserted(p: Array, first: int, last: int, after: int, reverse: bool) -> Array:
    segment = p[first : last + 1][::-1] if reverse else p[first : last + 1]
    if after < first:
        return np.concatenate([p[: after + 1], segment, p[after + 1 : first], p[last + 1 :]])
    return np.concatenate([p[:first], p[last + 1 : after + 1], segment, p[after + 1 :]])
