"""All-to-all on generalized Kautz digraphs: routings by walks whose links are intervals, and their rate.

Number link k of node x (k = 1 .. d) as d x + k - 1. It leads to node -1 - number, modulo N (Definition 16 of the
direct-connect paper). So the links that walks from x take j-th are d^j consecutive numbers, and loads are sums over
intervals: a network of 2,000 nodes takes a tenth of a second, without a table of all pairs.

Data for a node at h hops go by its walks of h links, or by its walks of D links, D the least with d^D >= N, evenly over
these walks. All walks of D links together use every link equally often, so a mix of both is more level than the first.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

__all__ = ["kautz_degree", "kautz_rate"]

_PARTS = 8  # shares of a mix are counted in eighths
_SWEEPS = 3


def kautz_degree(topology: Topology) -> int | None:
    """Return d if the topology is a generalized Kautz digraph, links in the order of its definition; otherwise None.

    >>> kautz_degree(Topology("three", 3, [0, 0, 1, 1, 2, 2], [2, 1, 0, 2, 1, 0]))
    2
    """
    n, degree = topology.num_ranks, topology.degree
    if not degree or degree < 2 or n <= degree or not topology.is_direct or not topology.is_uniform:
        return None
    number = np.arange(n * degree)
    same = np.array_equal(topology.src, number // degree) and np.array_equal(topology.dst, (-1 - number) % n)
    return degree if same else None


def kautz_rate(nodes: int, degree: int) -> Fraction:
    """Return a rate that a routing reaches on the generalized Kautz digraph, at most the rate f of LP (3).

    >>> kautz_rate(5, 4), kautz_rate(6, 2)
    (Fraction(1, 1), Fraction(1, 5))
    """
    walks = _Walks.of(nodes, degree)
    number = np.arange(nodes * degree)
    links = (-1 - number) % nodes != number // degree  # loops carry nothing
    short, long = walks.loads(by_hops=True)[:, links], walks.loads(by_hops=False)[:, links]
    return Fraction(_PARTS * walks.unit, _level(short, long))


@attrs.frozen(eq=False)
class _Walks:
    """Arcs of targets of every node x: ``first``, ``size`` and ``hops``, shape (nodes, arcs).

    A target v has the coordinate -1 - v, modulo N. ``start[j]``: the first link number of the j-th links, shape
    (nodes,). Loads are in parts of 1/``unit``.
    """

    nodes: int
    degree: int
    start: Array
    first: Array
    size: Array
    hops: Array
    unit: int

    @classmethod
    def of(cls, nodes: int, degree: int) -> _Walks:
        start = [np.zeros(nodes, dtype=np.int64), np.arange(nodes) * degree]
        while degree ** (len(start) - 1) < nodes:
            start.append((-degree * start[-1] - degree ** len(start)) % (nodes * degree))
        ends = [np.asarray(-1 - np.arange(nodes)) % nodes]
        ends += [ends[0] + 1]
        for j, each in enumerate(start[1:], 1):
            ends += [each, each + degree**j]
        first = np.sort(np.stack(ends, axis=1) % nodes, axis=1)
        size = np.diff(first, axis=1, append=first[:, :1] + nodes)
        hops = np.full(first.shape, len(start) - 1, dtype=np.int64)
        for j in range(len(start) - 2, 0, -1):
            hops[(first - start[j][:, None]) % nodes < degree**j] = j
        hops[first == ends[0][:, None]] = 0
        return cls(nodes, degree, np.stack(start), first, size, hops, lcm(*range(1, degree + 1)))

    @property
    def longest(self) -> int:
        """D, the links of the longest walks."""
        return len(self.start) - 1

    def loads(self, by_hops: bool) -> Array:
        """Return the loads of all links by data for nodes at each number of hops, shape (D + 1, links).

        The data go by walks of as many links, otherwise by walks of D links.
        """
        total = np.zeros((self.longest + 1, self.nodes * self.degree + 1), dtype=np.int64)
        for length in range(1, self.longest + 1) if by_hops else [self.longest]:
            chosen = (self.size > 0) & ((self.hops == length) if by_hops else (self.hops > 0))
            self._send(total, length, *np.nonzero(chosen))
        return np.cumsum(total, axis=1)[:, :-1]

    def _send(self, total: Array, length: int, node: Array, arc: Array) -> None:
        """Add the differences of loads of the data from nodes to their arcs by all walks of this length."""
        place = (self.first[node, arc] - self.start[length][node]) % self.nodes
        whole, rest = divmod(self.degree**length, self.nodes)
        copies = whole + (place < rest)
        size, hops, share = self.size[node, arc], self.hops[node, arc], self.unit // copies
        for copy in range(int(copies.max(initial=0))):
            some = copies > copy
            begin = place[some] + copy * self.nodes
            self._spread(total, length, node[some], begin, begin + size[some], hops[some], share[some])

    def _spread(
        self, total: Array, length: int, node: Array, begin: Array, end: Array, hops: Array, share: Array
    ) -> None:  # fmt: skip
        """Add walks ``begin`` .. ``end`` of a length, in the order of their last links, to the loads of their links."""
        links, row = self.nodes * self.degree, hops * total.shape[1]
        flat = total.reshape(-1)
        for step in range(1, length + 1):
            block, count = self.degree ** (length - step), self.degree**step
            (low, before), (high, after) = divmod(begin, block), divmod(end, block)
            spans = [(low, high, share * block)]
            if block > 1:
                spans += [(low, low + 1, -share * before), (high, high + 1, share * after)]
            turned = (length - step) % 2 == 1  # a link's number falls where that of the link before rises
            for first, last, amount in spans:
                at = (self.start[step][node] + (count - last if turned else first)) % links
                to = at + last - first
                np.add.at(flat, row + at, amount)
                np.add.at(flat, row + np.minimum(to, links), -amount)
                wrapped = to > links
                np.add.at(flat, row[wrapped], amount[wrapped])
                np.add.at(flat, (row + to - links)[wrapped], -amount[wrapped])


def _level(short: Array, long: Array) -> int:
    """Return the largest load of the most level mix found, in parts; a mix has a share for each number of hops."""
    best, shares = min((int(each.sum(axis=0).max()) * _PARTS, k * _PARTS) for k, each in enumerate((short, long)))
    share = [shares] * len(short)
    total = (short if shares == 0 else long).sum(axis=0) * _PARTS
    for _ in range(_SWEEPS):
        before = best
        for h in range(1, len(short)):
            change = long[h] - short[h]
            if not change.any():
                continue
            rest = total - share[h] * change
            most = [int((rest + s * change).max()) for s in range(_PARTS + 1)]
            if min(most) < best:
                best, share[h] = min(most), most.index(min(most))
                total = rest + share[h] * change
        if best == before:
            break
    return best
