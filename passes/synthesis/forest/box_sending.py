"""The ranks that send the trees of a root from its box to the other boxes of a cluster.

A root sends them itself as far as its link to the fabric holds them, and ranks of its box send the rest. If the links
of the whole box hold too few, every tree still leaves the box for some boxes, and these send it on to the others.

Units of a root that have the same sender to every box form a group. A group is halved until ranks are found for it that
can send all of its units to a box: so there are few groups, and every unit of capacity can be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from .boxes import Cluster

__all__ = ["Group", "Sending"]

#: units [first, end) of a root, and the sender to every box (-1 for its own)
Group = tuple[int, int, list[int]]

_HALVINGS = 5  # of a root's units, before trees may be passed on by boxes that they did not reach first


class Sending:
    """The remaining capacity to send: ``left[v]`` of every rank, and ``spare[b]`` of every box for other boxes' trees.

    With ``shared`` what leaves a link to the fabric leaves less for trees that enter: every box keeps room for those.
    """

    def __init__(self, boxes: Cluster, room: Sequence[int], trees: Sequence[int], shared: bool) -> None:
        self.boxes, self.trees = [box.ranks for box in boxes.boxes], trees
        self.left = [room[link] if link >= 0 else 0 for link in boxes.up]
        self.others = len(self.boxes) - 1
        total = sum(trees)
        rooted = [sum(trees[v] for v in ranks) for ranks in self.boxes]
        kept = [total - own if shared else 0 for own in rooted]
        held = [sum(self.left[v] for v in ranks) for ranks in self.boxes]
        self.most = [whole - keep for whole, keep in zip(held, kept, strict=True)]
        self.needed = [own * self.others for own in rooted]
        self.rooted = rooted

    def groups(self) -> dict[int, list[Group]] | None:
        """Return the groups of every root, in order; None if the boxes cannot send all trees."""
        if any(most < own for most, own in zip(self.most, self.rooted, strict=True)):
            return None
        found = dict[int, list[Group]]()
        short = list[int]()
        for number, (most, needed) in enumerate(zip(self.most, self.needed, strict=True)):
            if most < needed:
                short.append(number)
                continue
            for root, own in self._in_turn(number):
                groups = self._divided(number, 0, self.trees[root], own)
                if groups is None:
                    return None
                found[root] = groups
        self.helping = [self._spare(number) for number in range(len(self.boxes))] if short else []
        for number in short:
            for root, groups in self._with_help(number):
                if groups is None:
                    return None
                found[root] = groups
        return found

    def _in_turn(self, number: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the roots of a box that can send all their trees, then the others, with those that send, in order."""
        ranks = [v for v in self.boxes[number] if self.trees[v]]
        for root in sorted(ranks, key=lambda v: self.trees[v] * self.others > self.left[v]):
            yield root, [root, *(v for v in self.boxes[number] if v != root)]

    def _divided(self, number: int, low: int, high: int, ranks: Sequence[int]) -> list[Group] | None:
        """Return the groups of units that the box itself sends to all others."""
        taken, sender = list[tuple[int, int]](), [-1] * len(self.boxes)
        for target in range(len(self.boxes)):
            if target != number:
                sender[target] = self._take(ranks, high - low, taken)
        if sender.count(-1) == 1:
            return [(low, high, sender)]
        self._give_back(taken)
        if high - low == 1:
            return None
        middle = (low + high + 1) // 2
        first = self._divided(number, low, middle, ranks)
        second = None if first is None else self._divided(number, middle, high, ranks)
        return None if first is None or second is None else first + second

    def _take(self, ranks: Sequence[int], units: int, taken: list[tuple[int, int]]) -> int:
        """Take units of capacity from the first of some ranks that has them; return it, or -1."""
        for rank in ranks:
            if self.left[rank] >= units:
                self.left[rank] -= units
                taken.append((rank, units))
                return rank
        return -1

    def _give_back(self, taken: Sequence[tuple[int, int]]) -> None:
        for rank, units in taken:
            self.left[rank] += units

    # ---- boxes that cannot send to all others

    def _spare(self, number: int) -> dict[int, int]:
        """Return what the ranks of a box can send for other boxes, as evenly as their links allow."""
        spare = max(0, self.most[number] - self.needed[number])
        found = dict[int, int]()
        ranks = sorted(self.boxes[number], key=lambda v: (-self.left[v], v))
        for rank in ranks:
            found[rank] = min(self.left[rank], spare)
            spare -= found[rank]
        return found

    def _with_help(self, number: int) -> Iterator[tuple[int, list[Group] | None]]:
        """Yield the groups of every root of a box; its trees leave the box for as many boxes as its links allow."""
        each, more = divmod(self.most[number], self.rooted[number])
        seen = given = 0
        for root in self.boxes[number]:
            trees = self.trees[root]
            if trees:
                seen += trees
                wider = seen * more // self.rooted[number] - given
                given += wider
                parts = [(0, wider, each + 1), (wider, trees, each)]
                groups = [self._helped(number, root, *part) for part in parts if part[0] < part[1]]
                yield root, None if None in groups else [group for found in groups if found for group in found]

    def _helped(self, number: int, root: int, low: int, high: int, direct: int) -> list[Group] | None:
        """Return the groups of units that the box sends to ``direct`` boxes, and these to the others."""
        for passed_on in (False, True)[: 1 + (high - low <= max(1, self.trees[root] >> _HALVINGS))]:
            sender = self._senders(number, root, high - low, direct, passed_on)
            if sender is not None:
                return [(low, high, sender)]
        if high - low == 1:
            return None
        middle = (low + high + 1) // 2
        first = self._helped(number, root, low, middle, direct)
        second = None if first is None else self._helped(number, root, middle, high, direct)
        return None if first is None or second is None else first + second

    def _senders(self, number: int, root: int, units: int, direct: int, passed_on: bool) -> list[int] | None:
        """Return the sender of these units to every box, those that can help most first reached; None if some has none.

        With ``passed_on`` every box that they have reached may send, else only those that the root's box sends to.
        """
        taken, helped, sender = list[tuple[int, int]](), list[int](), [-1] * len(self.boxes)
        own = [root, *(v for v in self.boxes[number] if v != root)]
        place = self.boxes[number].index(root)
        most = [max(helping.values()) for helping in self.helping]
        targets = sorted((b for b in range(len(self.boxes)) if b != number), key=lambda b: (-most[b], b))
        reached = list[tuple[int, int, int]]()
        for turn, target in enumerate(targets):
            hops = 0
            if turn < direct:
                sender[target] = self._take(own, units, taken)
            elif reached:
                hops, _, helper = heappop(reached)
                rank = self._helper(helper, place, units)
                self.helping[helper][rank] -= units
                self.left[rank] -= units
                taken.append((rank, units))
                helped.append(helper)
                sender[target] = rank
                if self._helper(helper, place, units) >= 0:
                    heappush(reached, (hops, -max(self.helping[helper].values()), helper))
            if sender[target] < 0:
                break
            if (turn < direct or passed_on) and self._helper(target, place, units) >= 0:
                heappush(reached, (hops + 1, -most[target], target))
        else:
            return sender
        self._give_back(taken)
        for helper, (rank, amount) in zip(helped, taken[len(taken) - len(helped) :], strict=True):
            self.helping[helper][rank] += amount
        return None

    def _helper(self, box: int, place: int, units: int) -> int:
        """Return the rank of a box that can send units for another: the one at the root's place, else the most able."""
        helping, ranks = self.helping[box], self.boxes[box]
        if place < len(ranks) and helping[ranks[place]] >= units:
            return ranks[place]
        rank = max(ranks, key=lambda v: helping[v])
        return rank if helping[rank] >= units else -1
