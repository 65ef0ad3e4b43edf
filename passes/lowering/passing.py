"""Where ranks keep the shards of an all-to-all that only pass through them: in few places, and in few runs.

A place is free after the last step in which its shard leaves, so a rank needs as many places as it has shards at once.
Shards that arrive in one message and leave in one message lie side by side if there is room. Then a message is few runs
of adjacent shards, not one for each.
"""

from __future__ import annotations

from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from collc.ir.arrays import Array, distinct, lexsort, numbered
from collc.ir.frozen import frozen
from collc.ir.ragged import first_of_group, inverse, nth_in_group

from ..analysis.paths import heavy_path

__all__ = ["Passage"]

#: shards of a template up to which all pairs are compared
_MOST_PAIRED = 1024


@frozen(eq=False)
class Passage:
    """How shards pass through the ranks of a template.

    There is one row for each shard that a rank ever has: its ``rank``, and whether it is ``early``, copied before all
    messages. By hop, ``sent`` and ``received`` are the rows at both ends, ``shard`` is the shard as the template names
    it, ``lo`` and ``hi`` are the chunks that move, of ``parts`` of a shard, ``message`` is the step times ``messages``,
    plus the connection.
    """

    rank: Array
    early: Array
    sent: Array
    received: Array
    shard: Array
    lo: Array
    hi: Array
    message: Array
    messages: int
    parts: int

    @cached_property
    def came(self) -> Array:
        """The message in which each row first came; -1: none."""
        never = int(self.message.max(initial=0)) + 1
        came = np.full(len(self.rank), never)
        np.minimum.at(came, self.received, self.message)
        came[came == never] = -1
        return came

    @cached_property
    def left(self) -> Array:
        """The message in which each row last left; -1: none."""
        left = np.full(len(self.rank), -1)
        np.maximum.at(left, self.sent, self.message)
        return left

    def places(self, passing: Array, ends: tuple[Array, Array], shared: bool) -> Array:
        """Return the place in its rank's scratch of each ``passing`` shard, in shards; others get -1.

        ``ends`` are the places of shards in input and output, -1 where they have none. If places are ``shared``, no
        rank has one more than it needs, otherwise each shard has its own. Shards lie side by side if that makes fewer
        runs; otherwise in the lowest free places, or in order.
        """
        rows = np.flatnonzero(passing)
        begin = np.where(self.early, -1, self.came // self.messages)
        last = np.maximum(self.left // self.messages, begin)
        lowest, beside = np.full((2, len(passing)), -1, dtype=np.int64)
        lowest[rows] = _lowest(self.rank[rows], begin[rows], last[rows]) if shared else nth_in_group(self.rank[rows])
        if len(distinct(self.shard)) > _MOST_PAIRED:
            return lowest
        order = rows[lexsort([c[rows] for c in (self._in_order(), self.left, self.came, begin, self.rank)])]
        if shared:
            group = np.cumsum(np.any([first_of_group(c[order]) for c in (self.rank, self.came, self.left)], axis=0))
            for of_rank in np.split(np.arange(len(order)), np.flatnonzero(first_of_group(self.rank[order]))[1:]):
                here = order[of_rank]
                beside[here] = _side_by_side(group[of_rank], begin[here], last[here])
        else:
            beside[order] = nth_in_group(self.rank[order])
        return max((lowest, beside), key=lambda place: self._adjacent(place, passing, ends))

    def _in_order(self) -> Array:
        """Return for each row the place of its shard in an order of all shards.

        Shards are neighbours that share many hops: messages that they come by from one message, and leave by one.
        """
        shards, number = numbered(self.shard)
        columns = self.came[self.sent], self.message, self.left[self.received]
        order = lexsort((number, *columns))
        fresh = np.any([first_of_group(column[order]) for column in columns], axis=0)
        shared = np.zeros((len(shards), len(shards)), dtype=np.int64)
        for alike in np.split(number[order], np.flatnonzero(fresh)[1:]):
            shared[np.ix_(alike, alike)] += 1
        np.fill_diagonal(shared, 0)
        place = np.zeros(len(self.rank), dtype=np.int64)
        place[self.sent] = place[self.received] = inverse(heavy_path(shared, np.arange(len(shards))))[number]
        return place

    def _adjacent(self, place: Array, passing: Array, ends: tuple[Array, Array]) -> int:
        """Return how many hops continue another one of their message at both ends, on the ranks of the template."""
        begins, stops = list[Array](), list[Array]()
        for row, own in zip((self.sent, self.received), ends, strict=True):
            at = np.where(passing[row], 2 * len(place) + place[row], own[row])  # far from all places of own shards
            begins.append(at * self.parts + self.lo)
            stops.append(at * self.parts + self.hi)
        order = lexsort((begins[1], begins[0], self.message, self.rank[self.sent]))
        follows = ~(first_of_group(self.rank[self.sent][order]) | first_of_group(self.message[order]))[1:]
        for begin, stop in zip(begins, stops, strict=True):
            follows &= begin[order][1:] == stop[order][:-1]
        return int(follows.sum())


def _lowest(rank: Array, begin: Array, last: Array) -> Array:
    """Return places of shards on their ranks: the lowest free one for each, in the order of their arrival."""
    place = np.empty(len(rank), dtype=np.int64)
    order = lexsort((begin, rank))
    owner, size = -1, 0
    free, busy = list[int](), list[tuple[int, int]]()
    columns = (column[order].tolist() for column in (np.arange(len(rank)), rank, begin, last))
    for row, of_rank, arrives, leaves in zip(*columns, strict=True):
        if of_rank != owner:
            owner, size, free, busy = of_rank, 0, [], []
        while busy and busy[0][0] < arrives:
            heappush(free, heappop(busy)[1])
        if free:
            at = heappop(free)
        else:
            at, size = size, size + 1
        place[row] = at
        heappush(busy, (leaves, at))
    return place


def _side_by_side(group: Array, begin: Array, last: Array) -> Array:
    """Return places for groups of shards, in the fewest places; ``begin`` ascends and is the same in a group.

    A group takes the smallest gap that holds it, the lowest of equals; if none does, the largest gap and then others.
    """
    steps = int(last.max(initial=-1)) + 2
    change = np.bincount(begin + 1, minlength=steps + 1) - np.bincount(last + 2, minlength=steps + 1)
    until = np.full(int(np.cumsum(change).max(initial=0)), -2)  # the last step of what is there
    place = np.empty(len(group), dtype=np.int64)
    for low, high in pairwise(np.append(np.flatnonzero(first_of_group(group)), len(group)).tolist()):
        while low < high:
            free = np.concatenate([[False], until < begin[low], [False]])
            edges = np.flatnonzero(free[1:] != free[:-1])
            first, size = edges[::2], edges[1::2] - edges[::2]
            fits = np.flatnonzero(size >= high - low)
            gap = int(fits[np.argmin(size[fits])] if len(fits) else np.argmax(size))
            taken = min(int(size[gap]), high - low)
            at = int(first[gap]) + np.arange(taken)
            place[low : low + taken], until[at] = at, last[low : low + taken]
            low += taken
    return place
