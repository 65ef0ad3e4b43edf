"""How much every kind of rank on rails roots, sends and relays, so that trees reach a given total: a linear program.

Per pair of ranks on one rail, ``send`` is what the box of the first sends to the box of the second between them. Trees
of a box go from it to every other box. Boxes without a rail in common pass theirs on: all trees of such a box go to one
box that shares a rail with every other, the *proxy*, and this box sends them on as its own. Ranks of a box whose links
inside are too weak for all trees may get some of them over their own rail instead: these trees enter the box twice.

The columns are averages over ranks that are alike; the loads of links are sums of them, so they fit exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

import attrs
import numpy as np

from .exact_lp import LinearProgram
from .rail_kinds import Kinds, kinds
from .rails import Rails

__all__ = ["Quotas", "quotas"]

#: larger programs are not tried
_MOST_COLUMNS = 1200
_MOST_KINDS = 24
#: larger numbers of trees would not fit a column
_MOST_TREES = 1 << 45

Sum = Counter[int]
#: what a column is, and the classes that it is of
Key = tuple[str, tuple[int, ...]]


@attrs.frozen
class Quotas:
    """Whole numbers of trees, ``finer`` times as many as those of the links' room.

    ``roots[c]`` are those of every rank of class c; ``send[c, d]`` go from a rank of class c to one of class d on its
    rail, ``relay[c, d]`` enter a box at a rank of class c, which lets one of class d send them on inside.
    Of the trees that its box sends to one of class d, ``apart[c, d, e]`` go from a rank of class c to one of class e in
    the same box, on its rail.
    """

    kinds: Kinds
    finer: int
    roots: tuple[int, ...]
    send: dict[tuple[int, ...], int]
    relay: dict[tuple[int, ...], int]
    apart: dict[tuple[int, ...], int]
    proxy: int
    delegating: frozenset[int]


def quotas(
    found: Rails, room: Sequence[int], trees: Sequence[int] | None, total: int, reverse: Sequence[int] | None,
    weak: bool,
) -> Quotas | None:  # fmt: skip
    """Return quotas of ``total`` trees; None if links hold fewer in this form.

    Every rank roots ``trees``, or any number (None). With ``reverse``, the partner of every link in the opposite
    direction, both share their room. If ``weak``, trees enter boxes whose links inside hold too little more than once.
    """
    alike = kinds(found, room, trees)
    if len(alike.kinds) > _MOST_KINDS:
        return None
    delegating, proxy = _delegating(alike), -1
    if delegating:
        able = [kind.boxes[0] for number, kind in enumerate(alike.kinds) if number not in delegating]
        if not able:
            return None
        proxy = min(able)
        alike = kinds(found, room, trees, proxy)
        delegating = _delegating(alike)
    program = _Program(found, alike, room, trees, total, reverse, weak, proxy, delegating)
    return program.solved() if program.size <= _MOST_COLUMNS else None


def _delegating(alike: Kinds) -> frozenset[int]:
    """Return the kinds of boxes that share no rail with some other box."""
    numbers = range(len(alike.kinds))
    return frozenset(
        a for a in numbers for b in numbers
        if alike.targets(a, b) and not set(alike.kinds[a].rails) & set(alike.kinds[b].rails) - {-1}
    )  # fmt: skip


class _Program:
    def __init__(
        self, found: Rails, alike: Kinds, room: Sequence[int], trees: Sequence[int] | None, total: int,
        reverse: Sequence[int] | None, weak: bool, proxy: int, delegating: frozenset[int],
    ) -> None:  # fmt: skip
        self.rails, self.kinds, self.room, self.trees, self.total = found, alike, room, trees, total
        self.reverse, self.delegating, self.proxy = reverse, delegating, proxy
        self.classes = range(len(alike.kind_of))
        home = {box: number for number, kind in enumerate(alike.kinds) for box in kind.boxes}
        self.proxy_kind = home[proxy] if proxy >= 0 else -1
        self.weak = [number for number in range(len(alike.kinds)) if weak and self._is_weak(number)]
        self.number = dict[Key, int]()
        for key in self._keys():
            self.number[key] = len(self.number)
        self.size = len(self.number)

    def _is_weak(self, number: int) -> bool:
        box = self.rails.cluster.boxes[self.kinds.kinds[number].boxes[0]]
        held = [self.room[link] for route in box.inside.values() for link in route]
        return bool(held) and min(held) < self.total * (1 if self.reverse is None else 2)

    def _keys(self) -> Iterator[Key]:
        kinds = self.kinds
        for c in self.classes:
            yield "roots", (c,)
        for c in self.classes:
            for d in self.classes:
                if self._sends(kinds.kind_of[c], kinds.kind_of[d]) and kinds.pairs(c, d):
                    yield "send", (c, d)
        for c in self.classes:
            if len(kinds.kinds[kinds.kind_of[c]].ranks) > 1:
                yield "direct", (c,)
                for d in self._beside(c):
                    if kinds.kind_of[c] not in self.weak:
                        yield "relay", (c, d)
                    else:
                        yield from (
                            ("apart", (e, c, d)) for e in self.classes
                            if self._sends(kinds.kind_of[e], kinds.kind_of[d]) and kinds.pairs(e, d)
                        )  # fmt: skip
        for c in self.classes:
            for kind in range(len(kinds.kinds)):
                if kinds.on_rail[c] and self._sends(kinds.kind_of[c], kind):
                    yield "match", (c, kind)

    def _beside(self, c: int) -> list[int]:
        """Return the classes of other ranks in the box of a rank."""
        kinds = self.kinds
        return [d for d in self.classes if kinds.kind_of[c] == kinds.kind_of[d] and kinds.count[d] > (c == d)]

    def _sends(self, kind: int, other: int) -> bool:
        """Whether boxes of a kind send to boxes of another."""
        allowed = kind not in self.delegating or other == self.proxy_kind
        return allowed and self.kinds.targets(kind, other) > 0

    # ---- sums of columns

    def _sum(self, *terms: tuple[int, Key]) -> Sum:
        """Return multiples of columns; those that are not there are 0."""
        found = Sum()
        for factor, key in terms:
            if factor and key in self.number:
                found[self.number[key]] += factor
        return found

    def _boxes(self, c: int) -> int:
        return len(self.kinds.kinds[self.kinds.kind_of[c]])

    def _own(self, kind: int) -> Sum:
        """Return the trees that the ranks of a box root."""
        counts = Counter(self.kinds.kinds[kind].classes)
        return self._sum(*((count, ("roots", (c,))) for c, count in counts.items()))

    def _pool(self, kind: int, target: int) -> Sum:
        """Return the trees that a box sends to one of another kind: its own, and as a proxy those of others."""
        found = self._own(kind)
        if kind == self.proxy_kind:
            for other in sorted(self.delegating):
                for column, count in self._own(other).items():
                    found[column] += count * (len(self.kinds.kinds[other]) - (other == target))
        return found

    def _sent(self, c: int) -> Sum:
        """Return what a rank sends over its rail."""
        kinds = self.kinds
        found = self._sum(*(
            (kinds.targets(kinds.kind_of[c], kinds.kind_of[d]) * kinds.mates(c, d), ("send", (c, d)))
            for d in self.classes
        ))  # fmt: skip
        found.update(self._sum(*(
            (kinds.targets(kinds.kind_of[c], kinds.kind_of[e]) * kinds.mates(c, e) * (kinds.count[d] - (d == e)),
             ("apart", (c, d, e)))
            for d in self.classes if kinds.kind_of[d] in self.weak
            for e in self._beside(d)
        )))  # fmt: skip
        return found

    def _entering(self, d: int) -> Sum:
        """Return what enters a box at a rank."""
        kinds = self.kinds
        return self._sum(*(
            (kinds.targets(kinds.kind_of[d], kinds.kind_of[c]) * kinds.mates(d, c), ("send", (c, d)))
            for c in self.classes
        ))  # fmt: skip

    def _apart(self, d: int, e: int) -> Sum:
        """Return what a rank of class e gets over its rail of the trees that enter at one of class d."""
        kinds = self.kinds
        return self._sum(*(
            (kinds.targets(kinds.kind_of[d], kinds.kind_of[c]) * kinds.mates(e, c), ("apart", (c, d, e)))
            for c in self.classes
        ))  # fmt: skip

    def _traffic(self, c: int, d: int) -> Sum:
        """Return what a rank of class c sends to one of class d in its box."""
        kinds, kind = self.kinds, self.kinds.kind_of[c]
        found = self._sum((1, ("direct", (c,))), (1, ("relay", (c, d))))
        for e in sorted(set(kinds.kinds[kind].classes)):
            found.update(self._sum((kinds.count[e] - (e == c) - (e == d), ("relay", (e, c)))))
        return _plus(found, self._apart(c, d), -1) if kind in self.weak else found

    # ---- rows

    def _rows(self) -> Iterator[tuple[Sum, int, bool]]:
        """Yield sums, what they are at most, and whether they are equal to it."""
        for c in self.classes:
            if self.trees is not None:
                rank = self.kinds.kinds[self.kinds.kind_of[c]].ranks[self.kinds.place[c]]
                yield self._sum((1, ("roots", (c,)))), self.trees[rank], False
        yield self._every(), self.total, False
        yield from self._sending_rows()
        for c in self.classes:
            if ("direct", (c,)) in self.number:
                first = self._sum((-1, ("direct", (c,))))
                for d in self.classes:
                    first.update(self._sum((-self.kinds.count[d] + (c == d), ("relay", (c, d)))))
                yield _plus(_plus(self._sum((1, ("roots", (c,)))), self._entering(c)), first), 0, True
        yield from self._rail_rows()
        for kind in range(len(self.kinds.kinds)):
            yield from self._inside_rows(kind)

    def _every(self) -> Sum:
        return self._sum(*((self._boxes(c) * self.kinds.count[c], ("roots", (c,))) for c in self.classes))

    def _sending_rows(self) -> Iterator[tuple[Sum, int, bool]]:
        kinds = self.kinds
        for kind in range(len(kinds.kinds)):
            for other in range(len(kinds.kinds)):
                if self._sends(kind, other):
                    pool, sent = self._pool(kind, other), Sum()
                    for c in sorted(set(kinds.kinds[kind].classes)):
                        for d in sorted(set(kinds.kinds[other].classes)):
                            sent.update(self._sum((kinds.pairs(c, d), ("send", (c, d)))))
                        if ("match", (c, other)) in self.number:
                            matched = self._sum((1, ("match", (c, other))))
                            yield _plus(matched, self._sum((1, ("roots", (c,)))), -1), 0, False
                            yield _plus(matched, self._to(c, other), -1), 0, False
                    yield _plus(pool, sent, -1), 0, True
        for d in self.classes:
            for e in self._beside(d) if kinds.kind_of[d] in self.weak else ():
                for kind in range(len(kinds.kinds)):
                    among = sorted(set(kinds.kinds[kind].classes))
                    apart = self._sum(*((kinds.mates(e, c), ("apart", (c, d, e))) for c in among))
                    if apart:
                        sent = self._sum(*((kinds.mates(d, c), ("send", (c, d))) for c in among))
                        yield _plus(apart, sent, -1), 0, False

    def _to(self, c: int, kind: int) -> Sum:
        """Return what a rank sends to a box of a kind."""
        targets = sorted(set(self.kinds.kinds[kind].classes))
        return self._sum(*((self.kinds.mates(c, d), ("send", (c, d))) for d in targets))

    def _rail_rows(self) -> Iterator[tuple[Sum, int, bool]]:
        cluster = self.rails.cluster
        for c in self.classes:
            v = self._rank(c)
            if cluster.up[v] >= 0:
                out, into = self._sent(c), self._entering(c)
                for d in self._beside(c) if self.kinds.kind_of[c] in self.weak else ():
                    into = _plus(into, self._apart(d, c), self.kinds.count[d] - (c == d))
                if self.reverse is not None:
                    yield _plus(out, into), min(self.room[cluster.up[v]], self.room[cluster.down[v]]), False
                else:
                    yield out, self.room[cluster.up[v]], False
                    yield into, self.room[cluster.down[v]], False

    def _rank(self, c: int) -> int:
        return self.kinds.kinds[self.kinds.kind_of[c]].ranks[self.kinds.place[c]]

    def _inside_rows(self, number: int) -> Iterator[tuple[Sum, int, bool]]:
        kind = self.kinds.kinds[number]
        box = self.rails.cluster.boxes[kind.boxes[0]]
        loads = dict[int, Counter[tuple[int, int]]]()
        one = dict(zip(kind.ranks, kind.classes, strict=True))
        for (v, u), route in box.inside.items():
            for link in route:
                loads.setdefault(link, Counter())[one[v], one[u]] += 1
        known = set[object]()
        for link, pairs in sorted(loads.items()):
            back = -1 if self.reverse is None else self.reverse[link]
            other = loads.get(back, Counter())
            key = self.room[link], tuple(sorted(pairs.items())), tuple(sorted(other.items()))
            if key in known:
                continue
            known.add(key)
            found = Sum()
            for (c, d), count in [*pairs.items(), *other.items()]:
                for column, factor in self._traffic(c, d).items():
                    found[column] += count * factor
            yield found, self.room[link], False

    # ---- solutions

    def solved(self) -> Quotas | None:
        """Return the quotas of most ranks that send their own trees on their rail, of those that reach the total."""
        rows = list(self._rows())
        first = self._program(self._every(), rows).exact()
        if first is None or sum(factor * first.values[i] for i, factor in self._every().items()) != self.total:
            return None
        best = self._program(self._objective(), [*rows, (self._every(), self.total, True)]).exact()
        return self._whole((best or first).values)

    def _program(self, objective: Sum, rows: Sequence[tuple[Sum, int, bool]]) -> LinearProgram:
        ranks = sum(len(kind) * len(kind.ranks) for kind in self.kinds.kinds)
        program = LinearProgram([objective[i] for i in range(self.size)], max(1, self.total // ranks))
        for entries, most, equal in rows:
            row = np.zeros(self.size, dtype=np.int64)
            for column, factor in entries.items():
                row[column] = factor
            if row.any():
                program.add(row, most, equal)
        return program

    def _objective(self) -> Sum:
        """Return a sum that is large if ranks send the trees that they root, and none relays inside of a box."""
        found, boxes = Sum(), sum(map(len, self.kinds.kinds))
        for (what, classes), column in self.number.items():
            if what == "match":
                c, kind = classes
                weight = self._boxes(c) * self.kinds.count[c] * self.kinds.targets(self.kinds.kind_of[c], kind)
                found[column] += weight
            elif what == "relay":
                c, d = classes
                found[column] -= 2 * boxes * self._boxes(c) * self.kinds.count[c] * (self.kinds.count[d] - (c == d))
        return found

    def _whole(self, values: Sequence[Fraction]) -> Quotas | None:
        used = {key: value for key, value in zip(self.number, values, strict=True) if key[0] != "match"}
        finer = lcm(*(value.denominator for value in used.values()))
        if finer * self.total > _MOST_TREES:
            return None
        amounts: dict[str, dict[tuple[int, ...], int]] = {
            "send": {},
            "relay": {},
            "apart": {},
            "roots": {},
            "direct": {},
        }
        for (what, classes), value in used.items():
            amounts[what][classes] = int(value * finer)
        return Quotas(
            self.kinds, finer, tuple(amounts["roots"][(c,)] for c in self.classes), amounts["send"], amounts["relay"],
            amounts["apart"], self.proxy, self.delegating,
        )  # fmt: skip


def _plus(one: Sum, other: Sum, factor: int = 1) -> Sum:
    """Return a sum plus a multiple of another."""
    found = Sum(one)
    for column, count in other.items():
        found[column] += factor * count
    return found
