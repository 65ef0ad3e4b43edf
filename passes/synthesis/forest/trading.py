"""A forest whose trees exchange arcs, with the same total loads.

If rank y is below x in one tree and below z in another, the two may exchange these arcs, if y's subtrees allow it. More
trees may take part: trees that move y in a cycle, or to an arc with room left, keep loads within capacity. Trees with
different numbers of copies move only the smallest number; the other copies become a separate tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .capacities import Tree

__all__ = ["MeasuredTree", "Trading"]

Move = tuple[int, int]  # tree, new parent of the moved rank

_NEVER = 1 << 62  # copies of a tree


class MeasuredTree:
    """A tree by the parents of its ranks (the root's is -1): ``depth`` of every rank, ``below`` its layers of
    descendants, ``order`` of ranks, parents first."""

    __slots__ = ("below", "depth", "height", "order", "parent", "root")

    def __init__(self, root: int, parent: list[int]) -> None:
        self.root, self.parent = root, parent
        self.depth = depth = [-1] * len(parent)
        depth[root] = 0
        for y in range(len(parent)):
            path = []
            while depth[y] < 0:
                path.append(y)
                y = parent[y]
            for hops, below in enumerate(reversed(path), depth[y] + 1):
                depth[below] = hops
        self._measure()

    def _measure(self) -> None:
        """Compute the other fields from the parents and depths. No nested lists: they would be slower."""
        parent, below = self.parent, [0] * len(self.parent)
        self.order = sorted(range(len(parent)), key=self.depth.__getitem__)
        for y in reversed(self.order):
            x = parent[y]
            if below[x] <= below[y] and x >= 0:
                below[x] = below[y] + 1
        self.below, self.height = below, below[self.root]

    def move_below(self, y: int, x: int) -> None:
        """Move y below x."""
        depth, parent = self.depth, self.parent
        parent[y] = x
        shift, inside = depth[x] + 1 - depth[y], {y}
        depth[y] += shift
        if self.below[y]:
            for v in self.order[self.order.index(y) :]:
                if parent[v] in inside and v != y:
                    inside.add(v)
                    depth[v] += shift
        self._measure()

    def is_below(self, x: int, y: int) -> bool:
        """Whether x is y or below it."""
        depth, parent, top = self.depth, self.parent, self.depth[y]
        while depth[x] > top:
            x = parent[x]
        return x == y

    def allows(self, y: int, x: int, limit: int) -> bool:
        """Whether y may move below x, within the limit or at least not deeper than now."""
        depth = self.depth
        if depth[x] + self.below[y] >= limit and depth[x] >= depth[y]:
            return False
        return not self.is_below(x, y)


class Trading:
    """The forest: per tree root, weight and parents; ``room[y][x]`` is the free capacity of the arc from x to y.

    ``effort`` counts down with the work. Trees are split while there are fewer than ``most``.
    """

    def __init__(
        self, num_ranks: int, capacity: dict[tuple[int, int], int], forest: Sequence[Tree], effort: int
    ) -> None:
        self.effort, self.most = effort, len(forest)
        self.forest = list(forest)
        self.root = [tree.root for tree in forest]
        self.weight = [tree.weight for tree in forest]
        self.parent: list[list[int]] = []
        self.height: list[int] = []
        self.room: list[dict[int, int]] = [{} for _ in range(num_ranks)]
        for (x, y), amount in sorted(capacity.items()):
            if amount and x != y:
                self.room[y][x] = amount
        for tree in forest:
            self._enter(num_ranks, tree)
        self._measured: dict[int, MeasuredTree] = {}
        self._users: dict[int, dict[int, dict[int, None]]] = {}

    def _enter(self, num_ranks: int, tree: Tree) -> None:
        parent, depth, weight = [-1] * num_ranks, [0] * num_ranks, tree.weight
        for x, y in tree.edges:
            parent[y] = x
            depth[y] = depth[x] + 1
            self.room[y][x] -= weight
        self.parent.append(parent)
        self.height.append(max(depth))

    def tree(self, number: int) -> MeasuredTree:
        """Return a tree with its measures, computed on first use."""
        tree = self._measured.get(number)
        if tree is None:
            tree = self._measured[number] = MeasuredTree(self.root[number], self.parent[number])
            self.effort -= len(tree.parent)
        return tree

    def trees(self) -> list[Tree]:
        """Return the present forest, with equal trees of a root joined."""
        copies: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        for number, weight in enumerate(self.weight):
            edges = self.forest[number].edges if number < len(self.forest) else ()
            if number in self._measured or not edges:
                tree = self.tree(number)
                edges = tuple((tree.parent[y], y) for y in tree.order[1:])
            key = self.root[number], edges
            copies[key] = copies.get(key, 0) + weight
        return [Tree(root, weight, edges) for (root, edges), weight in copies.items()]

    def using(self, y: int) -> dict[int, dict[int, None]]:
        """Return the trees that use each arc into y, by its tail."""
        using = self._users.get(y)
        if using is None:
            using = self._users[y] = {x: {} for x in self.room[y]}
            for number, parent in enumerate(self.parent):
                if parent[y] >= 0:
                    using[parent[y]][number] = None
            self.effort -= len(self.parent)
        return using

    # ---- finding a trade

    def find_trade(self, number: int, y: int, target: int, limit: int, copies: int, direct: bool) -> list[Move] | None:
        """Return moves of y, the first one below ``target``, for at least ``copies`` copies, or None.

        Shortest first; with ``direct`` at most one other tree moves. No other tree becomes taller than the limit.
        """
        using, room = self.using(y), self.room[y]
        first = self.parent[number][y]
        if direct:
            return self._find_direct(number, y, target, limit, copies)
        weight, measured, least = self.weight, self._measured, self._least_above(copies)
        reached_by: dict[int, Move] = {target: (number, first)}  # tail -> the tree that moves y here, and from where
        unseen = [first, *(z for z in room if z not in (target, first))]
        queue = [target]
        for x in queue:
            if room[x] >= copies:
                return _moves_back(reached_by, x, first)
            for other in using[x]:
                if weight[other] != copies and weight[other] < least:
                    continue
                tree = measured.get(other) or self.tree(other)
                self.effort -= len(unseen)
                depth, deepest = tree.depth, max(limit - tree.below[y] - 1, tree.depth[y] - 1)
                found = [z for z in unseen if depth[z] <= deepest and not tree.is_below(z, y)]
                for z in found:
                    reached_by[z] = other, x
                    if z == first:
                        return _moves_back(reached_by, z, first)
                    queue.append(z)
                if found:
                    unseen = [z for z in unseen if z not in reached_by]
        return None

    def _find_direct(self, number: int, y: int, target: int, limit: int, copies: int) -> list[Move] | None:
        """Return the moves of :meth:`find_trade` in which at most one other tree moves, or None."""
        if self.room[y][target] >= copies:
            return [(number, target)]
        weight, measured, least = self.weight, self._measured, self._least_above(copies)
        first = self.parent[number][y]
        for other in self.using(y)[target]:
            if weight[other] == copies or weight[other] >= least:
                tree = measured.get(other) or self.tree(other)
                self.effort -= 1
                if tree.allows(y, first, limit):
                    return [(number, target), (other, first)]
        return None

    def _least_above(self, copies: int) -> int:
        """Return from how many copies on a tree may leave some of them behind."""
        return copies if self.may_split else _NEVER

    @property
    def may_split(self) -> bool:
        """Whether a tree may be divided in two: there are fewer trees than ``most``."""
        return len(self.weight) < self.most

    # ---- trading

    def exchange(self, moves: Iterable[Move], y: int) -> list[int]:
        """Make moves that :meth:`circle` found; return the trees that were split off."""
        moves, using, room = list(moves), self.using(y), self.room[y]
        start, end = self.parent[moves[0][0]][y], moves[-1][1]
        copies = min(self.weight[number] for number, _ in moves)
        if end != start:
            copies = min(copies, room[end])
            room[start] += copies
            room[end] -= copies
        split = [self._split(number, copies) for number, _ in moves if self.weight[number] > copies]
        for number, x in moves:
            tree = self.tree(number)
            del using[tree.parent[y]][number]
            using[x][number] = None
            tree.move_below(y, x)
            self.height[number] = tree.height
            self.effort -= len(tree.parent)
        return split

    def _split(self, number: int, copies: int) -> int:
        """Leave ``copies`` copies in a tree, and move the rest to a new one."""
        new = len(self.weight)
        self.root.append(self.root[number])
        self.weight.append(self.weight[number] - copies)
        self.weight[number] = copies
        self.parent.append(list(self.parent[number]))
        self.height.append(self.height[number])
        for y, using in self._users.items():
            if y != self.root[number]:
                using[self.parent[number][y]][new] = None
        return new


def _moves_back(reached_by: dict[int, Move], end: int, first: int) -> list[Move]:
    moves = []
    while True:
        number, start = reached_by[end]
        moves.append((number, end))
        end = start
        if end == first:
            return moves[::-1]
