"""A forest whose trees exchange arcs: what they carry together stays the same.

Where rank y hangs below x in one tree and below z in another, the two may exchange, if what hangs below y lets them. A
third may stand between: trees that move y in a circle, or to an arc that has room left, leave loads within
capacity. Of trees with different numbers of copies only as many copies move as all have; the rest stays behind as a
tree of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .capacities import Tree

__all__ = ["Hanging", "Trading"]

Move = tuple[int, int]  # tree, rank below which it hangs the rank that is moved


class Hanging:
    """A tree by the parents of its ranks (the root's is -1): ``depth`` of every rank, ``below`` the layers below it,
    ``order`` of ranks, parents first."""

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
        """Find out everything else from the parents and depths. No lists within lists: they would cost more."""
        parent, below = self.parent, [0] * len(self.parent)
        self.order = sorted(range(len(parent)), key=self.depth.__getitem__)
        for y in reversed(self.order):
            x = parent[y]
            if below[x] <= below[y] and x >= 0:
                below[x] = below[y] + 1
        self.below, self.height = below, below[self.root]

    def hang(self, y: int, x: int) -> None:
        """Hang y below x."""
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

    def hangs(self, x: int, y: int) -> bool:
        """Whether x is y or below it."""
        depth, parent, top = self.depth, self.parent, self.depth[y]
        while depth[x] > top:
            x = parent[x]
        return x == y

    def bears(self, y: int, x: int, limit: int) -> bool:
        """Whether y may hang below x, within the limit or at least not lower than now."""
        depth = self.depth
        if depth[x] + self.below[y] >= limit and depth[x] >= depth[y]:
            return False
        return not self.hangs(x, y)


class Trading:
    """The forest: per tree root, weight and parents; ``room[y][x]`` is what the arc from x to y could carry besides.

    ``effort`` counts down what has been looked at. Trees are split while there are fewer than ``most``.
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
        self._measured: dict[int, Hanging] = {}
        self._users: dict[int, dict[int, dict[int, None]]] = {}

    def _enter(self, num_ranks: int, tree: Tree) -> None:
        parent, depth, weight = [-1] * num_ranks, [0] * num_ranks, tree.weight
        for x, y in tree.edges:
            parent[y] = x
            depth[y] = depth[x] + 1
            self.room[y][x] -= weight
        self.parent.append(parent)
        self.height.append(max(depth))

    def tree(self, number: int) -> Hanging:
        """Return a tree measured; most are never asked for."""
        tree = self._measured.get(number)
        if tree is None:
            tree = self._measured[number] = Hanging(self.root[number], self.parent[number])
            self.effort -= len(tree.parent)
        return tree

    def trees(self) -> list[Tree]:
        """Return the forest as it is now, equal trees of a root as one."""
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

    def circle(self, number: int, y: int, wanted: int, limit: int, copies: int, direct: bool) -> list[Move] | None:
        """Return moves of y, the first that of a tree to ``wanted``, for so many copies at least, or None.

        Shortest first; with ``direct`` no more than one other tree moves. No other tree becomes taller than the limit.
        """
        using, room = self.using(y), self.room[y]
        first = self.parent[number][y]
        came: dict[int, Move] = {wanted: (number, first)}  # tail -> the tree that moves y here, and from where
        unseen = [first] if direct else [first, *(z for z in room if z not in (wanted, first))]
        queue = [wanted]
        for x in queue:
            if room[x] >= copies:
                return _path(came, x, first)
            for other in using[x]:
                if self.weight[other] != copies and not (self.weight[other] > copies and self.may_split):
                    continue
                tree = self.tree(other)
                self.effort -= len(unseen)
                for z in unseen:
                    if tree.bears(y, z, limit):
                        came[z] = other, x
                        if z == first:
                            return _path(came, z, first)
                        queue.append(z)
                if len(came) > 1:
                    unseen = [z for z in unseen if z not in came]
        return None

    @property
    def may_split(self) -> bool:
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
            tree.hang(y, x)
            self.height[number] = tree.height
            self.effort -= len(tree.parent)
        return split

    def _split(self, number: int, copies: int) -> int:
        """Leave so many copies in a tree, and the rest in a new one."""
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


def _path(came: dict[int, Move], end: int, first: int) -> list[Move]:
    moves = []
    while True:
        number, start = came[end]
        moves.append((number, end))
        end = start
        if end == first:
            return moves[::-1]
