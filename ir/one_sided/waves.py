"""Paths through the events of blocks, of which some wait for events of others: how long they are, and what they bring.

Events that do not wait for each other are taken together, wave by wave.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..arrays import Array, lexsort
from ..progress import counting, progress
from ..ragged import first_of_group, group_starts, inverse, nth_in_group, ranges

__all__ = ["Spread", "arranged", "levels"]


def levels(start: Array, later: Array, earlier: Array, weight: Array | None = None) -> Array | None:
    """Return for each event how many events come before it on the longest path; None if some wait for each other.

    Those of block b are ``start[b]`` to ``start[b + 1]`` (exclusive), one after the other. Event ``later[k]`` waits for
    event ``earlier[k]`` too. With ``weight``, waits count ``weight[k]`` and all else counts nothing.

    >>> levels(np.array([0, 2, 4]), np.array([3]), np.array([1])).tolist()
    [0, 1, 0, 2]
    >>> levels(np.array([0, 2, 4]), np.array([3]), np.array([1]), np.array([5])).tolist()
    [0, 0, 0, 5]
    >>> levels(np.array([0, 2, 4]), np.array([0, 2]), np.array([3, 1])) is None
    True
    """
    events = int(start[-1])
    heads = np.zeros(events, dtype=bool)
    heads[later] = True
    first = start[:-1][np.diff(start) > 0]
    heads[first] = True
    head = np.flatnonzero(heads)  # all up to the next head run as soon as the head has
    of = np.cumsum(heads) - 1
    begins = np.zeros(len(head), dtype=bool)
    begins[of[first]] = True
    inner = np.flatnonzero(~begins)
    source, target = np.concatenate([of[earlier], inner - 1]), np.concatenate([of[later], inner])
    if weight is None:
        steps = np.concatenate([earlier - head[of[earlier]] + 1, np.diff(head)[inner - 1]])
    else:
        steps = np.concatenate([weight, np.zeros(len(inner), dtype=np.int64)])
    begin = _begins(len(head), source, target, steps)
    if begin is None:
        return None
    found: Array = begin[of] if weight is not None else begin[of] + np.arange(events) - head[of]
    return found


def _begins(number: int, source: Array, target: Array, weight: Array) -> Array | None:
    """Return the longest path to each of some nodes; None if there is a circle."""
    order = lexsort([source])
    target, weight = target[order], weight[order]
    first = group_starts(source[order], number)
    waiting = np.bincount(target, minlength=number)
    begin, last = np.zeros(number, dtype=np.int64), np.empty(number, dtype=np.int64)
    wave, done = np.flatnonzero(waiting == 0), 0
    count = np.diff(first)
    while len(wave):
        progress("ordering events", done, number)
        done += len(wave)
        number_of = count[wave]
        pairs = ranges(first[wave], number_of)
        to = target[pairs]
        np.maximum.at(begin, to, np.repeat(begin[wave], number_of) + weight[pairs])
        np.subtract.at(waiting, to, 1)
        ready = to[waiting[to] == 0]
        last[ready] = np.arange(len(ready))
        wave = ready[last[ready] == np.arange(len(ready))]
    return begin if done == number else None


def arranged(level: Array, later: Array) -> Array:
    """Return a place for each node, by level; of one level, those that learn from more nodes stand before others.

    ``later`` are the nodes that learn, once for each node that they learn from.
    """
    degree = np.bincount(later, minlength=len(level))
    return inverse(lexsort((-degree, level)))


class Spread:
    """How what nodes know spreads to the nodes that learn from them, level by level.

    Nodes stand in their places (:func:`arranged`), with levels from -1 on. Node ``later[k]`` learns from node
    ``earlier[k]``, of a lower level.
    """

    def __init__(self, level: Array, later: Array, earlier: Array):
        order = lexsort([later])
        later, earlier = later[order], earlier[order]
        nth = nth_in_group(later)
        order = lexsort((nth, level[later]))
        later, earlier, nth = later[order], earlier[order], nth[order]
        height = level[later]
        runs = np.append(np.flatnonzero(first_of_group(height) | first_of_group(nth)), len(later))
        begins = np.flatnonzero(first_of_group(height[runs[:-1]]))
        self._level, self._earlier = level, earlier
        self._heights = height[runs[:-1]][begins]
        self._nodes, self._limits = later[runs[:-1]].tolist(), runs.tolist()  # runs of successive nodes
        self._levels = [*begins.tolist(), len(self._nodes)]  # level -> its first run

    def into(self, value: Array, node: Array, column: Array, number: Array) -> None:
        """Change ``value``, whose rows are what nodes know, to what they know in the end.

        Node ``node[k]`` learns that ``column[k]`` is ``number[k]`` at least.
        """
        order = lexsort([node])
        place = (node * np.int64(value.shape[1]) + column)[order]
        number, known = number[order].astype(value.dtype), self._level[node[order]]
        flat, done = value.reshape(-1), int(np.searchsorted(known, -1, side="right"))
        np.maximum.at(flat, place[:done], number[:done])
        ends = np.searchsorted(known, self._heights, side="right").tolist()
        nodes, limits, earlier = self._nodes, self._limits, self._earlier
        levels = list(zip(pairwise(self._levels), ends, strict=True))
        for (begin, end), upto in counting(levels, "what blocks know of others"):
            for k in range(begin, end):
                low, high, one = limits[k], limits[k + 1], nodes[k]
                part = value[one : one + high - low]
                np.maximum(part, value[earlier[low:high]], out=part)
            np.maximum.at(flat, place[done:upto], number[done:upto])
            done = upto
