"""Boxes and pods that hold too few trees: some of their ranks and boxes are reached from outside, tree by tree.

Trees are built first as if such a part held all of them. Then edges inside of it give way to edges from ranks outside
that hold more trees, until its links hold the others. In a box with a slow switch, these are edges to ranks that are
leaves of their trees: ranks below the same leaf switch reach them instead, and room is kept on the box's links to the
leaf. In a pod whose boxes have slow links to the leaf, they are edges between boxes: ranks of other pods reach them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import owners, starts
from collc.ir.schedule import Routes

from .routes import Routed
from .tiers import Tiers

__all__ = ["WeakBox", "fed", "fed_pods", "kept_room", "weak_boxes", "widened_room"]

_EARLY = 3  # edges from the root to a rank that sends to another pod besides


@attrs.frozen
class WeakBox:
    """The ranks of a box, and of each its link to the box's switch (``out``) and from there (``into``)."""

    ranks: tuple[int, ...]
    out: tuple[int, ...]
    into: tuple[int, ...]


def weak_boxes(tiers: Tiers, room: Sequence[int], total: int, shared: bool) -> list[WeakBox]:
    """Return the boxes whose links to their switch hold fewer than ``total`` trees that enter the box once."""
    found = list[WeakBox]()
    for pod in tiers.pods:
        for box in pod.inside.boxes:
            size = len(box.ranks)
            ends = [
                {box.inside[(v, u) if end == 0 else (u, v)][end] for u in box.ranks if u != v}
                for v in box.ranks for end in (0, -1)
            ]  # fmt: skip
            if size < 2 or any(len(links) > 1 for links in ends):
                continue
            links = [pod.links[one.pop()] for one in ends]
            out, into = tuple(links[::2]), tuple(links[1::2])
            held = [sum(room[link] for link in row) for row in (out, into)]
            if min(held) < (size - 1) * total * (2 if shared else 1):
                found.append(WeakBox(tuple(pod.ranks[v] for v in box.ranks), out, into))
    return found


def kept_room(
    tiers: Tiers, weak: Sequence[WeakBox], room: Sequence[int], trees: Sequence[int], shared: bool
) -> list[int]:
    """Return room for trees that enter every box once: all they need in weak boxes, without what feeds these."""
    found, total = list(room), sum(trees)
    for box in weak:
        size = len(box.ranks)
        share = -(-(total - sum(trees[v] for v in box.ranks)) // size)
        for v, out, into in zip(box.ranks, box.out, box.into, strict=True):
            inside = min(room[into], room[out]) // 2 if shared else room[into]
            kept = max(0, total - trees[v] - inside - share)
            for link in (tiers.up[v], tiers.down[v])[0 if shared else 1 :]:
                if link >= 0:
                    found[link] = max(0, found[link] - kept)
            found[out] = found[into] = 2 * size * total
    return found


def fed(
    found: Routed, tiers: Tiers, weak: Sequence[WeakBox], room: Sequence[int], reverse: Sequence[int] | None
) -> Routed | None:
    """Return the trees with as many edges over the fabric as weak boxes hold too few; None if these do not fit."""
    feeder = _Feeder(found, tiers, room, reverse)
    feeder.weak.update(v for box in weak for v in box.ranks)
    for box in weak:
        if not feeder.relieve(box):
            return None
    return feeder.routed()


def widened_room(
    tiers: Tiers, short: Collection[int], room: Sequence[int], trees: Sequence[int], shared: bool
) -> list[int]:
    """Return room in which the boxes of some pods send every tree to each other, and those of the pod out of it."""
    found, total = list(room), sum(trees)
    for number in short:
        pod, others = tiers.pods[number], len(tiers.pods[number].inside.boxes) - 1
        own = sum(trees[v] for v in pod.ranks)
        held = sum(room[tiers.up[v]] for v in pod.ranks if tiers.up[v] >= 0)
        needed = others * total + own + ((others + 1) * total - own if shared else 0)
        able = [v for v in pod.ranks if tiers.up[v] >= 0 and tiers.down[v] >= 0]
        for v in able:
            for link in (tiers.up[v], tiers.down[v])[: 2 if shared else 1]:
                found[link] += max(0, -((held - needed) // len(able)))
    return found


def fed_pods(
    found: Routed, tiers: Tiers, short: Collection[int], room: Sequence[int], reverse: Sequence[int] | None
) -> Routed | None:
    """Return the trees with as many edges from other pods as the links of some pods hold too few; None if these do not
    fit."""
    feeder = _Feeder(found, tiers, room, reverse)
    return feeder.routed() if all(feeder.widen(tiers.pods[number].ranks) for number in short) else None


@attrs.define
class _Moved:
    """Tree ``tree``, this many copies, with new parents of the ranks in some columns, and their routes."""

    tree: int
    copies: int
    parents: dict[int, tuple[int, tuple[int, ...]]]


class _Feeder:
    """The trees as rows of equal length, and what every link holds besides."""

    def __init__(self, found: Routed, tiers: Tiers, room: Sequence[int], reverse: Sequence[int] | None) -> None:
        self.found, self.tiers, self.reverse = found, tiers, reverse
        trees = len(found.root)
        self.parent, self.child = found.parent.reshape(trees, -1), found.child.reshape(trees, -1)
        ranks = self.parent.shape[1] + 1
        uses = np.bincount(found.route, found.weight[found.tree], len(found.routes)).astype(np.int64)
        load = np.zeros(len(room), dtype=np.int64)
        np.add.at(load, found.routes.links, np.repeat(uses, found.routes.lengths))
        if reverse is not None:
            load = load + load[np.array(reverse)]
        self.left = (np.array(room, dtype=np.int64) - load).tolist()
        self.depth = np.zeros((trees, ranks), dtype=np.int64)
        self.leaf = np.ones((trees, ranks), dtype=bool)
        number = np.arange(trees)
        for a, b in zip(self.parent.T, self.child.T, strict=True):
            self.depth[number, b] = self.depth[number, a] + 1
            self.leaf[number, a] = False
        self.weak, self.early = set[int](), dict[int, list[int]]()
        self.rows: list[list[_Moved]] = [[_Moved(tree, int(w), {})] for tree, w in enumerate(found.weight)]

    def relieve(self, box: WeakBox) -> bool:
        """Feed ranks of a box over the fabric; return whether enough of them are fed."""
        place = np.full(self.depth.shape[1], -1, dtype=np.int64)
        place[list(box.ranks)] = np.arange(len(box.ranks))
        a, b = place[self.parent], place[self.child]
        trees, columns = np.nonzero((a >= 0) & (b >= 0) & np.take_along_axis(self.leaf, self.child, axis=1))
        edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for tree, column in zip(trees.tolist(), columns.tolist(), strict=True):
            edges.setdefault((int(a[tree, column]), int(b[tree, column])), []).append((tree, column))
        weight = self.found.weight.tolist()
        most = {pair: sum(weight[tree] for tree, _ in rows) for pair, rows in edges.items()}
        over = [[max(0, -self.left[link]) for link in links] for links in (box.out, box.into)]
        if self.reverse is not None:
            over = [[amount // 2 for amount in over[0]], [-(-amount // 2) for amount in over[1]]]
        amounts = _transport(over[0], over[1], most)
        return amounts is not None and all(
            self._move(box, pair, edges[pair], amount) for pair, amount in sorted(amounts.items())
        )

    def widen(self, ranks: Sequence[int]) -> bool:
        """Reach boxes of a pod from other pods; return whether the pod's links to its leaf hold the other trees."""
        inside = np.zeros(self.depth.shape[1], dtype=bool)
        inside[list(ranks)] = True
        self.early.clear()
        leaves = self._leaves_pod(inside)
        lengths, links = self.found.routes.lengths, self.found.routes.links
        first = links[np.minimum(self.found.routes.start[:-1], len(links) - 1)]
        for v in ranks:
            over = -self.left[self.tiers.up[v]] if self.tiers.up[v] >= 0 else 0
            if over <= 0:
                continue
            route = (lengths == 2) & (first == self.tiers.up[v])
            sent = route[self.found.route].reshape(self.parent.shape) & inside[self.child]
            trees, columns = np.nonzero(sent & ~np.take_along_axis(leaves, self.child, axis=1))
            for tree, column in zip(trees.tolist(), columns.tolist(), strict=True):
                over = self._from_outside(tree, column, over, inside)
                if over <= 0:
                    break
            if over > 0:
                return False
        return True

    def _leaves_pod(self, inside: Array) -> Array:
        """Return for every rank of every tree whether some rank below it is outside of a pod."""
        found = np.broadcast_to(~inside, self.depth.shape).copy()
        number = np.arange(len(found))
        for a, b in zip(self.parent.T[::-1], self.child.T[::-1], strict=True):
            found[number, a] |= found[number, b]
        return found

    def _from_outside(self, tree: int, column: int, amount: int, inside: Array) -> int:
        """Reach a rank from outside of its pod, at most this many times; return how many times are left."""
        v, u = int(self.child[tree, column]), int(self.parent[tree, column])
        for row in list(self.rows[tree]):
            if amount and column not in row.parents:
                x, links, most = self._outside(row, v, min(amount, row.copies), inside)
                if not most:
                    return amount
                self._cut(tree, row, most, column, (x, links))
                self._use(links[:-1], most)
                self._use((self.tiers.up[u],), -most)
                amount -= most
        return amount

    def _outside(self, row: _Moved, v: int, amount: int, inside: Array) -> tuple[int, tuple[int, ...], int]:
        """Return a rank outside of a pod that holds more trees, its route to rank v, and how many of them."""
        tiers, left = self.tiers, self.left
        fall = tiers.fall[tiers.leaf[v]]
        best: tuple[int, tuple[int, ...], int] = (-1, (), 0)
        if row.tree not in self.early:
            depth = np.where(inside, _EARLY + 1, self.depth[row.tree])
            order = np.argsort(depth, kind="stable")
            self.early[row.tree] = order[: int((depth <= _EARLY).sum())].tolist()
        for x in self.early[row.tree]:
            up = tiers.up[x]
            if up < 0 or min(amount, left[up]) <= best[2]:
                continue
            found = [(min(left[link], left[fall[s]]), -s) for s, link in tiers.rise[tiers.leaf[x]].items() if s in fall]
            wide, spine = max(found, default=(0, 0))
            most = min(amount, left[up], wide)
            if most > best[2]:
                best = (x, (up, tiers.rise[tiers.leaf[x]][-spine], fall[-spine], tiers.down[v]), most)
            if most == amount:
                break
        return best

    def _move(self, box: WeakBox, pair: tuple[int, int], edges: list[tuple[int, int]], amount: int) -> bool:
        """Feed a rank of a box this many times over the fabric, instead of by another rank of the box."""
        v = box.ranks[pair[1]]
        near = [u for u, leaf in enumerate(self.tiers.leaf) if leaf == self.tiers.leaf[v] and self.tiers.up[u] >= 0]
        near = [u for u in near if u not in self.weak]
        for tree, column in edges:
            for row in list(self.rows[tree]):
                rest: _Moved | None = row
                while amount and rest is not None and column not in rest.parents:
                    u, links, part = self._sender(rest, v, near, min(amount, rest.copies))
                    if not part:
                        return False
                    rest = self._cut(tree, rest, part, column, (u, links))
                    self._use(links, part)
                    self._use((box.out[pair[0]], box.into[pair[1]]), -part)
                    amount -= part
                if not amount:
                    return True
        return False

    def _sender(self, row: _Moved, v: int, near: Sequence[int], amount: int) -> tuple[int, tuple[int, ...], int]:
        """Return the rank that sends copies of a tree to rank v, the route, and how many, at most this number.

        First come ranks ``near`` below the same leaf: those that send them already, then those that are reached early.
        """
        left, depth = [self.left[self.tiers.up[u]] for u in near], self.depth[row.tree]
        used = {u for u, _ in row.parents.values()}
        able = [(free < amount, u not in used, int(depth[u]), -free, u) for free, u in zip(left, near, strict=True)]
        best = min((one for one in able if one[3] < 0), default=None)
        if best is None:
            weak = np.zeros(len(depth), dtype=bool)
            weak[sorted(self.weak)] = True
            return self._outside(row, v, amount, weak)
        return best[4], (self.tiers.up[best[4]], self.tiers.down[v]), min(amount, -best[3])

    def _cut(
        self, tree: int, row: _Moved, part: int, column: int, parent: tuple[int, tuple[int, ...]]
    ) -> _Moved | None:
        """Give some copies of a row a new parent; return the row of the others, if any."""
        rest = _Moved(row.tree, row.copies - part, dict(row.parents))
        row.copies, row.parents[column] = part, parent
        if not rest.copies:
            return None
        self.rows[tree].append(rest)
        return rest

    def _use(self, links: Sequence[int], amount: int) -> None:
        for link in links:
            self.left[link] -= amount
            if self.reverse is not None:
                self.left[self.reverse[link]] -= amount

    def routed(self) -> Routed:
        """Return the trees; rows of ranks with new parents, and of ranks below them, come last."""
        found, rows = self.found, [row for rows in self.rows for row in rows]
        tree = np.array([row.tree for row in rows], dtype=np.int64)
        parent, child = self.parent[tree], self.child[tree]
        route, width = found.route.reshape(len(found.root), -1)[tree], self.parent.shape[1]
        number: dict[tuple[int, ...], int] = {}
        for place, row in enumerate(rows):
            for column, (u, links) in row.parents.items():
                parent[place, column] = u
                route[place, column] = number.setdefault(links, len(found.routes) + len(number))
            if row.parents:
                order = _moved_last(parent[place].tolist(), child[place].tolist(), row.parents)
                for table in (parent, child, route):
                    table[place] = table[place][order]
        lengths = [*found.routes.lengths.tolist(), *map(len, number)]
        flat = [*found.routes.links.tolist(), *(link for links in number for link in links)]
        weight = np.array([row.copies for row in rows], dtype=np.int64)
        return Routed(
            found.root[tree], weight, owners(np.full(len(rows), width)), parent.ravel(), child.ravel(), route.ravel(),
            Routes(starts(lengths), flat),
        )  # fmt: skip


def _moved_last(parent: Sequence[int], child: Sequence[int], moved: Collection[int]) -> list[int]:
    """Return the places of a tree's edges with those that moved, and those below them, at the end."""
    below = set[int]()
    first, last = list[int](), list[int]()
    for place, (a, b) in enumerate(zip(parent, child, strict=True)):
        if place in moved or a in below:
            below.add(b)
            last.append(place)
        else:
            first.append(place)
    return first + last


def _transport(
    out: Sequence[int], into: Sequence[int], most: dict[tuple[int, int], int]
) -> dict[tuple[int, int], int] | None:
    """Return amounts of pairs (a, b) with at least ``out[a]`` of each a and ``into[b]`` of each b, as few as possible.

    None if ``most`` of the pairs is too little. Maximum flow by shortest paths, then what is left over goes anywhere.
    """
    found = dict.fromkeys(most, 0)
    given, taken = list(out), list(into)
    while any(given) and any(taken):
        path = _path(given, taken, found, most)
        if path is None:
            break
        amount = min(given[path[0][0]], taken[path[-1][1]])
        for step, pair in enumerate(path):
            amount = min(amount, found[pair] if step % 2 else most[pair] - found[pair])
        for step, pair in enumerate(path):
            found[pair] += -amount if step % 2 else amount
        given[path[0][0]] -= amount
        taken[path[-1][1]] -= amount
    for end, rest in ((0, given), (1, taken)):
        for place, needed in enumerate(rest):
            for pair in sorted(most):
                if pair[end] == place:
                    part = min(needed, most[pair] - found[pair])
                    found[pair] += part
                    needed -= part
            if needed:
                return None
    return {pair: amount for pair, amount in found.items() if amount}


def _path(
    given: Sequence[int], taken: Sequence[int], found: dict[tuple[int, int], int], most: dict[tuple[int, int], int]
) -> list[tuple[int, int]] | None:
    """Return pairs that lead from an a with something to give to a b that takes, forward and backward alternately."""
    paths: dict[tuple[int, int], list[tuple[int, int]]] = {(0, a): [] for a, amount in enumerate(given) if amount}
    queue = list(paths)
    for side, node in queue:
        if side == 1 and taken[node]:
            return paths[side, node]
        for pair in most:
            free = most[pair] - found[pair] if side == 0 else found[pair]
            key = (1 - side, pair[1 - side])
            if pair[side] == node and free > 0 and key not in paths:
                paths[key] = [*paths[side, node], pair]
                queue.append(key)
    return None
