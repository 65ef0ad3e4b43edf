"""How many trees enter a pod at each of its ranks, and how many each rank may send to other pods.

All trees but its own enter a pod, as all but its own enter a box. A box that n boxes share a pod with sends a tree that
it gets from outside of the pod on to the n - 1 others. So a pod of boxes sends (n - 1) T trees for T in all to its own
boxes, and what is left of the boxes' links may leave the pod, as far as the links to the spines hold it. Boxes with
more left get more trees to send on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import attrs

from .boxes import Box
from .tiers import Tiers

__all__ = ["Share", "filled", "shares", "short_pods"]


@attrs.frozen
class Share:
    """For every rank of a pod in order, the trees that enter at it, and the most that it sends to other pods."""

    entering: tuple[int, ...]
    leaving: tuple[int, ...]


def shares(tiers: Tiers, room: Sequence[int], trees: Sequence[int], shared: bool) -> list[Share] | None:
    """Return the shares of every pod; None if its links hold too few trees.

    ``room[link]`` and ``trees[v]`` are as for :func:`.tier_trees.tier_trees`; with ``shared`` both directions of a link
    share its room.
    """
    pods = [_Pod(tiers, number, room, trees, shared) for number in range(len(tiers.pods))]
    if not all(pod.holds() for pod in pods):
        return None
    short = any(pod.most < pod.needed for pod in pods)
    quotas = [pod.most if short else pod.needed for pod in pods]
    if sum(quotas) < sum(pod.needed for pod in pods):
        return None
    found = [pod.share(quota) for pod, quota in zip(pods, quotas, strict=True)]
    known = [share for share in found if share is not None]
    return known if len(known) == len(found) else None


def short_pods(tiers: Tiers, room: Sequence[int], trees: Sequence[int], shared: bool) -> frozenset[int]:
    """Return the pods whose boxes cannot send every tree of the pod to others if each enters the pod only once."""
    pods = [_Pod(tiers, number, room, trees, shared) for number in range(len(tiers.pods))]
    return frozenset(number for number, pod in enumerate(pods) if pod.is_short)


class _Pod:
    """What the links of a pod hold, rank by rank, and of every box beyond what enters it (``spare``)."""

    def __init__(self, tiers: Tiers, number: int, room: Sequence[int], trees: Sequence[int], shared: bool) -> None:
        pod = tiers.pods[number]
        self.pod, self.shared, self.total = pod, shared, sum(trees)
        self.boxes = pod.inside.boxes
        self.own = [trees[v] for v in pod.ranks]
        self.entering = self.total - sum(self.own)
        self.needed = sum(self.own) * (len(tiers.pods) - 1)
        self.others = len(tiers.pods) - 1
        up, down = ([room[links[v]] if links[v] >= 0 else 0 for v in pod.ranks] for links in (tiers.up, tiers.down))
        both = [min(pair) for pair in zip(up, down, strict=True)]
        self.up, self.down = (both, both) if shared else (up, down)
        self.inside = [room[link] for link in pod.links]
        self.spare = [
            self._sum(self.up, box) - (self.total - self._sum(self.own, box)) * shared for box in self.boxes
        ]  # fmt: skip
        rise, fall = self._between(tiers, room)
        self.fall = fall
        self.most = min(rise - self.entering * shared, sum(self.spare) - (len(self.boxes) - 1) * self.total)
        self.rails = self._rails(tiers, trees)

    def _sum(self, amounts: Sequence[int], box: Box) -> int:
        return sum(amounts[v] for v in box.ranks)

    def _between(self, tiers: Tiers, room: Sequence[int]) -> tuple[int, int]:
        """Return what all links to the spines hold, and all links from them."""
        leaves = sorted({tiers.leaf[v] for v in self.pod.ranks if tiers.leaf[v] >= 0})
        pairs = [
            (room[rise], room[fall])
            for leaf in leaves for rise, fall in zip(tiers.rise[leaf].values(), tiers.fall[leaf].values(), strict=False)
        ]  # fmt: skip
        if self.shared:
            pairs = [(min(pair), min(pair)) for pair in pairs]
        return sum(rise for rise, _ in pairs), sum(fall for _, fall in pairs)

    def _rails(self, tiers: Tiers, trees: Sequence[int]) -> list[int]:
        """Return the trees of the ranks at the same place in other pods."""
        return [
            sum(trees[pod.ranks[place]] for pod in tiers.pods if pod is not self.pod and place < len(pod.ranks))
            for place in range(len(self.own))
        ]

    @property
    def is_short(self) -> bool:
        """Whether too few of the pod's own trees can leave it; those of a single pod need not."""
        return self.others > 0 and self.most < sum(self.own)

    def holds(self) -> bool:
        """Return whether every tree can enter the pod and its boxes, and leave them."""
        into = [self._sum(self.down, box) >= self.total - self._sum(self.own, box) for box in self.boxes]
        out = [spare >= self._sum(self.own, box) for spare, box in zip(self.spare, self.boxes, strict=True)]
        return all(into) and all(out) and self.fall >= self.entering and not self.is_short

    def share(self, quota: int) -> Share | None:
        entering = self._entering()
        return None if entering is None else Share(tuple(entering), tuple(self._leaving(entering, quota)))

    def _entering(self) -> list[int] | None:
        """Return where trees enter: boxes get no more than they send on to all others, if that is enough."""
        size = len(self.own)
        high = [0] * size
        for box in self.boxes:
            for v in box.ranks:
                high[v] = max(0, min(self.down[v], self._direct(box, v) - self.own[v]))
        target = [min(pair) for pair in zip(self.rails, high, strict=True)]
        given, most = list[int](), list[tuple[int, int, int]]()
        n = max(1, len(self.boxes) - 1)
        for spare, box in zip(self.spare, self.boxes, strict=True):
            own, limit = self._sum(self.own, box), self._sum(high, box)
            soft = min(limit, max(0, spare // n - own)) if len(self.boxes) > 1 else limit
            given.append(min(soft, self._sum(target, box)))
            most.append((soft, min(limit, max(0, spare - own)), limit))
        for step in range(3):
            if sum(row[step] for row in most) >= self.entering:
                boxes = filled(given, [row[step] for row in most], self.entering)
                return self._among_ranks(boxes, target, high)
        return None

    def _leaving(self, entering: Sequence[int], quota: int) -> list[int]:
        n = len(self.boxes) - 1
        surplus = [
            max(0, spare - n * (self._sum(self.own, box) + self._sum(entering, box)))
            for spare, box in zip(self.spare, self.boxes, strict=True)
        ]
        target = [self.others * own for own in self.own]
        boxes = filled([self._sum(target, box) for box in self.boxes], surplus, min(quota, sum(surplus)))
        taken = entering if self.shared else [0] * len(self.own)
        high = [max(0, up - used) for up, used in zip(self.up, taken, strict=True)]
        return self._among_ranks(boxes, target, high)

    def _among_ranks(self, boxes: Sequence[int], target: Sequence[int], high: Sequence[int]) -> list[int]:
        found = [0] * len(self.own)
        for amount, box in zip(boxes, self.boxes, strict=True):
            most = [high[v] for v in box.ranks]
            parts = filled([target[v] for v in box.ranks], most, min(amount, sum(most)))
            for v, part in zip(box.ranks, parts, strict=True):
                found[v] = part
        return found

    def _direct(self, box: Box, v: int) -> int:
        """Return the most trees that a rank of a box may reach first if it sends them to all others of the box."""
        size = len(box.ranks)
        routes = [box.inside[v, u] for u in box.ranks if u != v]
        if not routes:
            return self.total
        first = {route[0] for route in routes}
        least = min(self.inside[link] for link in chain(*routes))
        if len(first) > 1 or size == 2:
            return least
        out = self.inside[first.pop()]
        return max(0, (out - self.total) // (size - 2)) if self.shared else out // (size - 1)


def filled(given: Sequence[int], high: Sequence[int], needed: int) -> list[int]:
    """Return amounts of this sum, each at most its limit, near to ``given``: more or less of all, evenly.

    Raises ValueError if the limits' sum is smaller.

    >>> filled([3, 3, 3], [3, 9, 9], 12)
    [3, 5, 4]
    """
    if sum(high) < needed:
        raise ValueError(f"limits of {sum(high)} hold no {needed}")
    found = [min(pair) for pair in zip(given, high, strict=True)]
    while rest := needed - sum(found):
        sign = 1 if rest > 0 else -1
        free = [i for i, amount in enumerate(found) if (amount < high[i] if rest > 0 else amount > 0)]
        each = max(1, abs(rest) // len(free))
        for i in free[: abs(rest) // each]:
            found[i] += sign * min(each, high[i] - found[i] if rest > 0 else found[i])
    return found
