"""Packing spanning trees lazily: grow whole trees, check many of them with one sweep, learn from the failing sets.

Edmonds: trees exist as long as every set of ranks has the capacity out of it that its supplies need. Checking every
edge costs a flow each (ForestColl, Theorem 12). Here whole trees grow against the few sets that were ever short
(:mod:`.growing`), and one sweep over the remaining capacity (:mod:`collc.ir.graph.cuts`) checks all trees since the
last sweep. If it finds short sets, the trees are taken back, the sets join the pool, and half as many trees grow again.
Checked trees stay, so slacks only fall and the pool stays valid. The first attempt grows all trees: if all fit, no
check is needed.

A tree that ends before it spans all ranks has itself left some set too little (else an edge could be added, Theorem
12). A sweep finds those sets, and the tree grows again. After many failures it grows edge by edge
(:mod:`.exact_packing`), which always succeeds. Finally :mod:`.flatten` reduces the height of tall trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collc.ir.graph.cuts import Cut, FlowNetwork
from collc.ir.progress import progress

from .capacities import Tree
from .exact_packing import exact_tree
from .flatten import EFFORT, flatten
from .growing import Growth, Residual

__all__ = ["height", "pack"]

_CUTS = 64  # the most sets to learn from one sweep
_ALL = 1 << 62
_BATCH = 256  # trees grown between sweeps; at first all
_FAILURES = 100  # in a row, then a tree is grown edge by edge


def pack(
    num_ranks: int, capacity: dict[tuple[int, int], int], trees: Sequence[int], low: int = 0, effort: int = EFFORT
) -> list[Tree]:
    """Return spanning out-trees, ``trees[r]`` rooted at rank r, that use no arc more often than its capacity.

    Trees no higher than ``low`` need not become lower; ``effort`` limits the search for lower ones.
    Raises ValueError if there are none: if some set of ranks has less capacity out of it than trees inside.
    """
    packing = _Packing(num_ranks, capacity, trees)
    forest = packing.run()
    least = max(packing.farthest, low)
    return forest if packing.height <= least else flatten(num_ranks, capacity, forest, least, effort)


def height(forest: Iterable[Tree]) -> int:
    """Return the most edges from a root to a rank.

    >>> height([Tree(0, 1, ((0, 1), (1, 2)))])
    2
    """
    highest = 0
    for tree in forest:
        depth = {tree.root: 0}
        for x, y in tree.edges:
            depth[y] = depth[x] + 1
        highest = max(highest, *depth.values())
    return highest


class _Packing:
    def __init__(self, num_ranks: int, capacity: dict[tuple[int, int], int], trees: Sequence[int]) -> None:
        self.num_ranks = num_ranks
        progress("packing trees", 0, sum(trees))
        self.residual = Residual(num_ranks, capacity, trees)
        self.network = FlowNetwork(num_ranks, ((x, y, c) for (x, y), c in sorted(capacity.items()) if c))
        self.done: list[Tree] = []
        self.fresh: list[tuple[Tree, dict[int, int]]] = []
        self.farthest = max((self.residual.farthest(root) for root, number in enumerate(trees) if number), default=0)
        self.height = self.sweeps = self.exacts = 0
        self.trees = sum(trees)

    def run(self) -> list[Tree]:
        batch, failures = _ALL, 0
        while any(self.residual.supply):
            stump = self._grow(batch)
            if not any(self.residual.supply):
                break  # all trees fit within the capacities
            grown = len(self.fresh)
            if not self._check():
                batch, failures = max(grown // 2, 1), failures + 1
                if grown == 1 and failures > 2 * _FAILURES:  # many single trees took too much from other sets
                    self._exact()
                    failures = 0
            elif grown:
                batch, failures = min(2 * grown, _BATCH), 0
            elif stump is not None and failures < _FAILURES:
                self._learn(self._short_of(stump))
                failures += 1
            else:
                self._exact()
                failures = 0
        return self.done + [tree for tree, _ in self.fresh]

    def _grow(self, batch: int) -> Tree | None:
        """Grow up to ``batch`` trees; return the tree that does not span all ranks, if growth ended with one."""
        while len(self.fresh) < batch and (left := sum(self.residual.supply)):
            progress("packing trees", self.trees - left, self.trees)
            tree, growth = self._heaviest(self._next())
            if len(tree.edges) < self.num_ranks - 1:
                return tree
            self.residual.take(tree, growth.crossed)
            self.height = max(self.height, growth.height)
            self.fresh.append((tree, growth.crossed))
        return None

    def _next(self) -> int:
        """Return the rank with most remaining trees."""
        return self.residual.supply.index(max(self.residual.supply))

    def _heaviest(self, root: int) -> tuple[Tree, Growth]:
        """Return the tree with most copies that is not too tall; else the lowest found, else an incomplete one."""
        weight = self.residual.supply[root]
        width, best = weight, self.residual.grow(root, weight)
        while weight > 1 and (len(best.edges) < self.num_ranks - 1 or best.height > self.farthest):
            weight //= 2
            growth = self.residual.grow(root, weight)
            if len(best.edges) < self.num_ranks - 1 or (
                len(growth.edges) == self.num_ranks - 1 and growth.height < best.height
            ):
                width, best = weight, growth
        return Tree(root, width, tuple(best.edges)), best

    def _check(self) -> bool:
        """Check the trees grown since the last sweep; if sets are short, learn them and take the trees back."""
        if not self.fresh:
            return True
        delta: dict[tuple[int, int], int] = {}
        for tree, _ in self.fresh:
            for edge in tree.edges:
                delta[edge] = delta.get(edge, 0) - tree.weight
        for (x, y), change in delta.items():
            self.network.add(x, y, change)
        self.sweeps += 1
        short = self.network.violated(self.residual.supply, range(self.num_ranks), _CUTS)
        if not short:
            self.done += [tree for tree, _ in self.fresh]
            self.fresh = []
            return True
        for (x, y), change in delta.items():
            self.network.add(x, y, -change)
        for tree, crossed in self.fresh:
            self.residual.take(tree, crossed, -1)
        self.fresh = []
        self._learn(short)
        return False

    def _learn(self, short: Sequence[Cut]) -> None:
        """Add sets to the pool, with their present slack."""
        for nodes in dict.fromkeys(cut.nodes for cut in short):
            slack = self.network.leaving(nodes) - sum(self.residual.supply[v] for v in nodes)
            if slack < 0:
                raise ValueError(f"{len(nodes)} ranks have {-slack} units of capacity too few for their trees")
            self.residual.pool(nodes, slack)

    def _short_of(self, stump: Tree) -> list[Cut]:
        """Return sets to which an incomplete tree has left too little (there are some: Theorem 12).

        None of them holds all reached ranks of the tree: no edge of it leaves such a set. So its own copies need no
        supply.
        """
        supply = list(self.residual.supply)
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
        """Add a tree with every edge checked."""
        self.exacts += 1
        self.height = self.num_ranks  # or less
        tree = exact_tree(self.network, self.residual.supply, self._next())
        self._charge(tree.edges, -tree.weight)
        self.residual.take(tree, self.residual.crossings(tree))
        self.done.append(tree)
