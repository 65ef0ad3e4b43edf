"""Growing a tree edge by edge, every edge checked by a flow: slow, and always successful (ForestColl, Theorem 12).

A tree that has reached the ranks R needs capacity for its m copies out of every set that holds all of R. So the copies
that can use an edge from x in R to y outside are limited by the spare units of every set with x, without y and without
all of R. One flow to y, from all supplies and from x without limit, finds the smallest such set. Copies that cannot use
the edge return to their root and free their capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collc.ir.graph.cuts import FlowNetwork

from .capacities import Tree

__all__ = ["exact_tree", "pack_exactly"]

_TRIED = 8  # usable edges to try, to find one for more copies


def pack_exactly(num_ranks: int, capacity: dict[tuple[int, int], int], trees: Sequence[int]) -> list[Tree]:
    """Return the result of ``pack``, with every edge checked by a flow. Raises ValueError if there are no trees."""
    network = FlowNetwork(num_ranks, ((x, y, c) for (x, y), c in sorted(capacity.items()) if c))
    supply, done = list(trees), list[Tree]()
    short = network.violated(supply, range(num_ranks))
    if short:
        raise ValueError(f"{len(short[0].nodes)} ranks have too little capacity for their trees")
    while any(supply):
        tree = exact_tree(network, supply, supply.index(max(supply)))
        for x, y in tree.edges:
            network.add(x, y, -tree.weight)
        supply[tree.root] -= tree.weight
        done.append(tree)
    return done


def exact_tree(network: FlowNetwork, supply: Sequence[int], root: int) -> Tree:
    """Return a tree of the root with as many copies as its edges allow; afterwards all remaining trees still exist.

    The network and the supplies must satisfy the cut condition (else ValueError may be raised); they are not changed.
    """
    growing = _Growing(network, supply, root)
    try:
        while len(growing.reached) < network.num_nodes:
            growing.extend()
    finally:
        growing.charge(growing.weight)
    return Tree(root, growing.weight, tuple(growing.edges))


class _Growing:
    """``weight`` copies of a tree that has ``reached`` some ranks, in order; the network lacks what they use."""

    def __init__(self, network: FlowNetwork, supply: Sequence[int], root: int) -> None:
        self.network, self.root = network, root
        self.supply = list(supply)
        self.weight, self.supply[root] = self.supply[root], 0
        self.reached = {root: None}
        self.edges: list[tuple[int, int]] = []
        self.tight: list[set[int]] = []

    def charge(self, copies: int) -> None:
        """Return the capacity of ``copies`` copies to the network."""
        for x, y in self.edges:
            self.network.add(x, y, copies)

    def extend(self) -> None:
        """Add the edge that most copies can use, among the first few usable edges near the root."""
        best, copies, seen = None, 0, 0
        for x, y in self._open():
            room = self._copies(x, y)
            if room > copies:
                best, copies = (x, y), room
            seen += room > 0
            if copies == self.weight or seen == _TRIED:
                break
        if best is None:
            raise ValueError(f"no tree of rank {self.root} can be completed: some ranks have too little capacity")
        if copies < self.weight:
            back = self.weight - copies
            self.charge(back)
            self.supply[self.root] += back
            self.weight, self.tight = copies, []
        self.network.add(*best, -copies)
        self.edges.append(best)
        self.reached[best[1]] = None

    def _open(self) -> Iterator[tuple[int, int]]:
        """Yield the edges out of the reached ranks, nearest to the root first, that no tight set rules out."""
        network = self.network
        for x in self.reached:
            around = [nodes for nodes in self.tight if x in nodes]
            ends = [network.head[arc] for arc in network.out[x] if network.capacity[arc]]
            for y in ends:
                if y not in self.reached and all(y in nodes for nodes in around):
                    yield x, y
                    around = [nodes for nodes in self.tight if x in nodes]

    def _copies(self, x: int, y: int) -> int:
        """Return how many copies can use an edge (Theorem 12)."""
        most, others = min(self.network.between(x, y), self.weight), sum(self.supply)
        supply = list(self.supply)
        supply[x] = others + most
        cut = self.network.smallest_cut(supply, [y], others + most)
        if cut is None:
            return most
        if cut.value == others:
            self.tight.append(set(cut.nodes))
        return cut.value - others
