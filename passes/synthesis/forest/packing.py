"""Packing spanning trees lazily: grow whole trees, check many of them with one sweep, learn from the sets that fail.

Edmonds: trees exist as long as every set of ranks has the capacity out of it that its supplies need. Checking every
edge costs a flow each (ForestColl, Theorem 12). Here trees are grown whole, against the few sets that were ever short
(:mod:`.growing`), and one sweep over what is left (:mod:`collc.ir.cuts`) checks all trees grown since the last. Where
it finds sets that are short the trees are given back, the sets join the pool, and half as many are grown anew. Trees
that were checked stay, so slacks only fall and the pool never becomes wrong. At first all trees are grown: if all find
their place, nothing needs checking.

A tree that ends before it spans all ranks has itself left some set too little (else some edge could be added, Theorem
12); a sweep finds those sets, and the tree is grown anew. Where that goes on for long it is grown edge by edge
(:mod:`.exact_packing`), which always succeeds. At last tall trees are made lower (:mod:`.flatten`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.cuts import Cut, FlowNetwork
from collc.ir.progress import progress

from .capacities import Tree
from .exact_packing import exact_tree
from .flatten import flatten
from .growing import Growth, Residual

__all__ = ["pack"]

_CUTS = 64  # learnt from one sweep
_ALL = 1 << 62
_BATCH = 256  # trees grown between sweeps; at first all
_FAILURES = 100  # in a row, then a tree is grown edge by edge


def pack(num_ranks: int, capacity: dict[tuple[int, int], int], trees: Sequence[int]) -> list[Tree]:
    """Return spanning out-trees, ``trees[r]`` rooted at rank r, that use no arc more often than its capacity.

    Raises ValueError where there are none: where some set of ranks has less capacity out of it than trees inside.
    """
    packing = _Packing(num_ranks, capacity, trees)
    forest = packing.run()
    if packing.height <= packing.farthest:
        return forest
    return flatten(num_ranks, capacity, forest, packing.farthest)


class _Packing:
    def __init__(self, num_ranks: int, capacity: dict[tuple[int, int], int], trees: Sequence[int]) -> None:
        self.num_ranks = num_ranks
        self.left = Residual(num_ranks, capacity, trees)
        self.network = FlowNetwork(num_ranks, ((x, y, c) for (x, y), c in sorted(capacity.items()) if c))
        self.done: list[Tree] = []
        self.fresh: list[tuple[Tree, dict[int, int]]] = []
        self.farthest = max((self.left.farthest(root) for root, number in enumerate(trees) if number), default=0)
        self.height = self.sweeps = self.exacts = 0

    def run(self) -> list[Tree]:
        batch, failures = _ALL, 0
        trees = sum(self.left.supply)
        while any(self.left.supply):
            progress("packing trees", trees - sum(self.left.supply), trees)
            dead = self._grow(batch)
            if not any(self.left.supply):
                break  # capacities were respected, and nothing is left to go wrong
            grown = len(self.fresh)
            if not self._check():
                batch, failures = max(grown // 2, 1), failures + 1
                if grown == 1 and failures > 2 * _FAILURES:  # each of many single trees took too much from other sets
                    self._exact()
                    failures = 0
            elif grown:
                batch, failures = min(2 * grown, _BATCH), 0
            elif dead is not None and failures < _FAILURES:
                self._learn(self._short_of(dead))
                failures += 1
            else:
                self._exact()
                failures = 0
        return self.done + [tree for tree, _ in self.fresh]

    def _grow(self, batch: int) -> Tree | None:
        """Grow up to so many trees; return the tree that ended before it spanned all, if that was the end of it."""
        while len(self.fresh) < batch and any(self.left.supply):
            tree, growth = self._widest(self._next())
            if len(tree.edges) < self.num_ranks - 1:
                return tree
            self.left.take(tree, growth.crossed)
            self.height = max(self.height, growth.height)
            self.fresh.append((tree, growth.crossed))
        return None

    def _next(self) -> int:
        """Return the rank with most trees to come."""
        return self.left.supply.index(max(self.left.supply))

    def _widest(self, root: int) -> tuple[Tree, Growth]:
        """Return the tree with most copies no taller than needed; else the lowest found, else a single stump."""
        weight = self.left.supply[root]
        width, best = weight, self.left.grow(root, weight)
        while weight > 1 and (len(best.edges) < self.num_ranks - 1 or best.height > self.farthest):
            weight //= 2
            growth = self.left.grow(root, weight)
            if len(best.edges) < self.num_ranks - 1 or (
                len(growth.edges) == self.num_ranks - 1 and growth.height < best.height
            ):
                width, best = weight, growth
        return Tree(root, width, tuple(best.edges)), best

    def _check(self) -> bool:
        """Sweep over what is left if trees were grown; where sets are short, learn them and give the trees back."""
        if not self.fresh:
            return True
        delta: dict[tuple[int, int], int] = {}
        for tree, _ in self.fresh:
            for edge in tree.edges:
                delta[edge] = delta.get(edge, 0) - tree.weight
        for (x, y), change in delta.items():
            self.network.add(x, y, change)
        self.sweeps += 1
        short = self.network.violated(self.left.supply, range(self.num_ranks), _CUTS)
        if not short:
            self.done += [tree for tree, _ in self.fresh]
            self.fresh = []
            return True
        for (x, y), change in delta.items():
            self.network.add(x, y, -change)
        for tree, crossed in self.fresh:
            self.left.take(tree, crossed, -1)
        self.fresh = []
        self._learn(short)
        return False

    def _learn(self, short: Sequence[Cut]) -> None:
        """Add sets to the pool, with what they have to spare now."""
        for nodes in dict.fromkeys(cut.nodes for cut in short):
            slack = self.network.leaving(nodes) - sum(self.left.supply[v] for v in nodes)
            if slack < 0:
                raise ValueError(f"{len(nodes)} ranks have {-slack} units of capacity too few for their trees")
            self.left.pool(nodes, slack)

    def _short_of(self, stump: Tree) -> list[Cut]:
        """Return sets that a tree which could not be completed has left too little (there are some: Theorem 12).

        None of them holds all that the tree has reached: no edge of it leaves such a set. So its own copies need not
        be supplied.
        """
        supply = list(self.left.supply)
        supply[stump.root] -= stump.weight
        self._charge(stump.edges, -stump.weight)
        self.sweeps += 1
        short = self.network.violated(supply, range(self.num_ranks), _CUTS)
        self._charge(stump.edges, stump.weight)
        return list(short)

    def _charge(self, edges: Iterable[tuple[int, int]], amount: int) -> None:
        for x, y in edges:
            self.network.add(x, y, amount)

    def _exact(self) -> None:
        """Add a tree every edge of which was checked."""
        self.exacts += 1
        self.height = self.num_ranks  # or less
        tree = exact_tree(self.network, self.left.supply, self._next())
        self._charge(tree.edges, -tree.weight)
        self.left.take(tree, self.left.crossings(tree))
        self.done.append(tree)
