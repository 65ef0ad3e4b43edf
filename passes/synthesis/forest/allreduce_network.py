"""The network of the allreduce program: ranks, links and pairs of ranks, with equivalent ones joined.

An optimal solution may be averaged over all automorphisms of the network. So ranks (links, pairs) that an automorphism
exchanges may have equal variables, and one rank of each kind represents all. If every link has one of the same
bandwidth in the opposite direction, the reversed broadcast half is a reduce half, and averaging both directions leaves
one half to find. Otherwise there are two halves, the reduction as a broadcast on the transpose.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.isomorphism import automorphisms
from collc.ir.topology import Topology

__all__ = ["Half", "Net", "reduced"]

#: effort of the search for automorphisms, in links: well below a second
_EFFORT = 3_000_000


@attrs.frozen(eq=False)
class Half:
    """The pairs and arcs of one half of an allreduce, as a broadcast.

    ``pairs`` are (2, P) ranks: sender and receiver, over a link (no switches) or through switches; ``pair_kind``
    numbers their kinds. ``arcs`` are (2, A) nodes; ``budget`` is the row of the bandwidth that they share with
    equivalent arcs and with the other half. Without switches, pairs and arcs are the same.
    """

    pairs: Array
    pair_kind: Array
    arcs: Array
    budget: Array

    def usable_arcs(self, rank: int, num_ranks: int) -> Array:
        """Return the arcs that data of one rank may use: out of it or out of switches, never back to it."""
        tail, head = self.arcs
        return np.flatnonzero(((tail == rank) | (tail >= num_ranks)) & (head != rank))


@attrs.frozen(eq=False)
class Net:
    """``kind`` numbers the kinds of ranks; rank ``first[k]`` represents the ``count[k]`` ranks of kind k.

    ``width[i]`` is the bandwidth of all links of budget i together, in the topology's unit.
    """

    num_ranks: int
    num_nodes: int
    kind: Array
    first: Array
    count: Array
    halves: tuple[Half, ...]
    width: tuple[Fraction, ...]

    @property
    def is_direct(self) -> bool:
        """Whether there are no switches, so that pairs are links."""
        return self.num_nodes == self.num_ranks

    @property
    def unit(self) -> Fraction:
        """The largest bandwidth that all widths are multiples of."""
        denominator = lcm(*(width.denominator for width in self.width))
        return Fraction(gcd(*(int(width * denominator) for width in self.width)), denominator)


def reduced(topology: Topology) -> Net:
    """Return the network with parallel links joined, without loops, and with equivalent ranks and links joined."""
    n, nodes = topology.num_ranks, topology.num_nodes
    ends, width = _joined(topology)
    maps = automorphisms(topology, _EFFORT)
    ranks = _kinds(n, [g[:n] for g in maps])
    first, count = np.unique(ranks, return_index=True, return_counts=True)[1:]
    code = ends[0] * nodes + ends[1]
    moved = [_places(code, g[ends[0]] * nodes + g[ends[1]]) for g in maps]
    back = _partners(code, ends[1] * nodes + ends[0], width)
    both_ways = back is not None
    budget = _kinds(len(code), [*moved, back] if back is not None else moved)
    total = _budgets(budget, width, both_ways)
    turned = [] if both_ways else [ends[::-1]]
    halves = tuple(_half(topology, arcs, budget, maps) for arcs in [ends, *turned])
    return Net(n, nodes, ranks, first, count, halves, total)


def _half(topology: Topology, arcs: Array, budget: Array, maps: list[Array]) -> Half:
    n = topology.num_ranks
    pairs = arcs if topology.is_direct else _pairs(n, topology.num_nodes, arcs)
    code = pairs[0] * n + pairs[1]
    kinds = _kinds(len(code), [_places(code, g[pairs[0]] * n + g[pairs[1]]) for g in maps])
    return Half(pairs, kinds, arcs, budget)


def _joined(topology: Topology) -> tuple[Array, list[Fraction]]:
    """Return the pairs of different nodes with links, ascending, and the bandwidth of all links of each."""
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    links = np.flatnonzero(src != dst)
    code, place = np.unique(src[links] * topology.num_nodes + dst[links], return_inverse=True)
    table = np.zeros((len(code), len(topology.classes)), dtype=np.int64)
    np.add.at(table, (place.ravel(), topology.link_class[links]), 1)
    width = [
        sum((kind.bandwidth * count for kind, count in zip(topology.classes, row, strict=True) if count), Fraction(0))
        for row in table.tolist()
    ]
    return np.stack([code // topology.num_nodes, code % topology.num_nodes]), width


def _partners(code: Array, reverse: Array, width: list[Fraction]) -> Array | None:
    """Return the opposite arc of every arc, or None unless all exist with the same bandwidth."""
    if not np.array_equal(np.sort(reverse), code):
        return None
    back = _places(code, reverse)
    return back if all(width[i] == width[j] for i, j in enumerate(back.tolist())) else None


def _budgets(budget: Array, width: list[Fraction], both_ways: bool) -> tuple[Fraction, ...]:
    """Return the bandwidth of every budget; a link and its reverse are one budget if both halves are the same."""
    total = [Fraction(0)] * (int(budget.max(initial=-1)) + 1)
    for number, amount in zip(budget.tolist(), width, strict=True):
        total[number] += amount / 2 if both_ways else amount
    return tuple(total)


def _places(code: Array, moved: Array) -> Array:
    """Return the places of the moved codes among the codes, in any order."""
    order = np.argsort(code, kind="stable")
    return order[np.searchsorted(code[order], moved)]


def _kinds(count: int, maps: list[Array]) -> Array:
    """Return the orbit of 0 .. count-1 under permutations, numbered by their least members."""
    label = np.arange(count)
    while True:
        before = label.copy()
        for g in maps:
            label = np.minimum(label, label[g])
            label[g] = np.minimum(label[g], label)
        label = label[label]
        if np.array_equal(before, label):
            return np.unique(label, return_inverse=True)[1].ravel()


def _pairs(num_ranks: int, num_nodes: int, arcs: Array) -> Array:
    """Return (tail, head) of all ranks with a route from one to the other through no third rank, ascending."""
    reach = np.zeros((num_nodes, num_nodes), dtype=bool)
    reach[arcs[0], arcs[1]] = True
    for switch in range(num_ranks, num_nodes):
        reach |= np.outer(reach[:, switch], reach[switch])
    reach = reach[:num_ranks, :num_ranks]
    np.fill_diagonal(reach, False)
    return np.stack(np.nonzero(reach))
