"""Growing one tree breadth first within the remaining capacities and cuts.

A tree of multiplicity m takes m units of every arc it uses, and of a set S of ranks m units for every edge out of it,
but gives m back if its root is in S: its supply no longer has to leave. So S, which has ``slack`` units more than its
supplies need, allows slack // m + [root in S] edges (ForestColl, Theorem 9). Sets that once were short form a pool.
They are stored as bits: ``member[v]`` are the sets that hold v, so that one ``&`` tells whether an edge leaves a full
set.

Sets of ranks are bitmasks as well. Trees grow in layers, and a rank takes the arc with most remaining capacity from the
layer above. So trees are as low as the remaining capacity allows, and arcs are used evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from collc.ir.effort import spend

from .capacities import Tree

__all__ = ["Growth", "Residual", "bits"]


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Growth:
    """A growing tree: ``edges`` parents first, ``crossed[i]`` how many of them leave pooled set i."""

    __slots__ = ("crossed", "edges", "height")

    def __init__(self) -> None:
        self.edges: list[tuple[int, int]] = []
        self.crossed: dict[int, int] = {}
        self.height = 0


class Residual:
    """The remaining capacity of arcs, supply of ranks, and slack of the sets in the pool.

    ``into[y][x]`` is the capacity from x to y; ``onward[x]`` and ``inward[y]`` are the ranks with some.
    """

    def __init__(self, num_ranks: int, capacity: dict[tuple[int, int], int], supply: Sequence[int]) -> None:
        self.num_ranks = num_ranks
        self.supply = list(supply)
        self.into: list[dict[int, int]] = [{} for _ in range(num_ranks)]
        self.onward = [0] * num_ranks
        self.inward = [0] * num_ranks
        for (x, y), amount in sorted(capacity.items()):
            if amount and x != y:
                self.into[y][x] = amount
                self.onward[x] |= 1 << y
                self.inward[y] |= 1 << x
        self.member = [0] * num_ranks
        self.slack: list[int] = []

    def farthest(self, root: int) -> int:
        """Return the hops from a root to the farthest rank."""
        reached, front, hops = 1 << root, 1 << root, -1
        while front:
            onward, hops = 0, hops + 1
            for x in bits(front):
                onward |= self.onward[x]
            front = onward & ~reached
            reached |= front
        return hops

    def pool(self, nodes: Iterable[int], slack: int) -> None:
        """Add a set of ranks with ``slack`` spare units to the pool."""
        bit = 1 << len(self.slack)
        self.slack.append(slack)
        for v in nodes:
            self.member[v] |= bit

    def take(self, tree: Tree, crossed: dict[int, int], sign: int = 1) -> None:
        """Take the capacity of a tree; with a sign of -1 give it back."""
        weight = sign * tree.weight
        into, onward, inward = self.into, self.onward, self.inward
        for x, y in tree.edges:
            left = into[y][x] - weight
            into[y][x] = left
            if left == 0:
                onward[x] &= ~(1 << y)
                inward[y] &= ~(1 << x)
            elif left == -weight:
                onward[x] |= 1 << y
                inward[y] |= 1 << x
        self.supply[tree.root] -= weight
        for i, times in crossed.items():
            self.slack[i] -= weight * times
        for i in bits(self.member[tree.root]):
            self.slack[i] += weight

    def crossings(self, tree: Tree) -> dict[int, int]:
        """Return how many edges of a tree leave each pooled set, for the sets that some leave."""
        crossed: dict[int, int] = {}
        for x, y in tree.edges:
            for i in bits(self.member[x] & ~self.member[y]):
                crossed[i] = crossed.get(i, 0) + 1
        return crossed

    def grow(self, root: int, weight: int) -> Growth:
        """Return a tree that fits ``weight`` times, as low as possible.

        The search never backtracks, so the tree may not span all ranks though others do.
        """
        into, onward, inward, member = self.into, self.onward, self.inward, self.member
        at_root = member[root]
        allowed = [s // weight + (at_root >> i & 1) for i, s in enumerate(self.slack)]
        full = sum(1 << i for i, s in enumerate(allowed) if s == 0)
        growth = Growth()
        edges, crossed = growth.edges, growth.crossed
        missing = (1 << self.num_ranks) - 1 & ~(1 << root)
        high = -1 << root  # ranks from the root up come first: layers wear different arcs for different roots
        front, layer = [root], 1 << root
        seen = 0
        while missing:
            fresh = 0
            for x in front:
                fresh |= onward[x]
            fresh &= missing
            front, found = [], 0
            for part in (fresh & high, fresh & ~high):
                while part:
                    low = part & -part
                    part ^= low
                    y = low.bit_length() - 1
                    caps, above = into[y], inward[y] & layer
                    best, most, not_y = -1, weight - 1, ~member[y]
                    seen += above.bit_count()
                    while above:
                        bit = above & -above
                        above ^= bit
                        x = bit.bit_length() - 1
                        left = caps[x]
                        if left > most and not member[x] & not_y & full:
                            best, most = x, left
                    if best < 0:
                        continue
                    edges.append((best, y))
                    front.append(y)
                    found |= low
                    leaves = member[best] & not_y
                    while leaves:
                        bit = leaves & -leaves
                        leaves ^= bit
                        i = bit.bit_length() - 1
                        times = crossed[i] = crossed.get(i, 0) + 1
                        if times >= allowed[i]:
                            full |= bit
            if not found:
                break
            growth.height += 1
            missing &= ~found
            layer = found
        spend(seen)
        return growth
