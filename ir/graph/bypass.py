"""Switches between two nodes, left out of flows: a NIC between a rank and its rail.

What comes from one side of such a switch leaves on the other, so both of its links together hold as much as the
narrower. Flows then meet a rank wherever they met its NIC, and the search behind a rail of a thousand ports ends at the
first few. Cuts are the same: of the smallest ones, flows give that with the most nodes, and this is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

__all__ = ["Bypass"]

Arc = tuple[int, int, int]


class Bypass:
    """The switches of a network (nodes from ``num_ranks`` on) that lie between two nodes, and the arcs around them.

    Arc i leads from ``tails[i]`` to ``heads[i]``; no two of these switches are neighbours.
    """

    def __init__(self, num_ranks: int, num_nodes: int, tails: Sequence[int], heads: Sequence[int]) -> None:
        self.tails, self.heads = tails, heads
        around: list[set[int]] = [set() for _ in range(num_nodes)]
        for tail, head in zip(tails, heads, strict=True):
            if tail != head:
                around[tail].add(head)
                around[head].add(tail)
        self._sides = dict[int, tuple[int, int]]()
        for node in range(num_ranks, num_nodes):
            if len(around[node]) == 2 and not any(other in self._sides for other in around[node]):
                one, other = sorted(around[node])
                self._sides[node] = one, other
        self._held = dict[int, tuple[int, int, int, int]]()

    def arcs(self, capacity: Sequence[int]) -> Iterator[Arc]:
        """Yield the arcs of these capacities; a switch between two nodes becomes an arc each way."""
        if not self._sides:
            yield from zip(self.tails, self.heads, capacity, strict=True)
            return
        held = {node: [0, 0, 0, 0] for node in self._sides}
        for tail, head, amount in zip(self.tails, self.heads, capacity, strict=True):
            if tail == head:
                continue
            if tail in held:
                held[tail][1 + 2 * (head == self._sides[tail][1])] += amount
            elif head in held:
                held[head][2 * (tail == self._sides[head][1])] += amount
            else:
                yield tail, head, amount
        self._held = {}
        for node, (first, to_first, second, to_second) in held.items():
            one, other = self._sides[node]
            self._held[node] = first, to_first, second, to_second
            yield one, other, min(first, to_second)
            yield other, one, min(second, to_first)

    def whole(self, nodes: Collection[int]) -> tuple[int, ...]:
        """Return a cut of the last arcs with the switches that belong to it, where links into the rest are narrower."""
        if not self._sides:
            return tuple(nodes)
        inside = set(nodes) - self._sides.keys()
        more = list[int]()
        for node, (one, other) in self._sides.items():
            first, to_first, second, to_second = self._held[node]
            if one in inside and other in inside:
                more.append(node)
            elif one in inside:
                more += [node] if to_second <= first else []
            elif other in inside:
                more += [node] if to_first <= second else []
        return tuple(sorted((*inside, *more)))
