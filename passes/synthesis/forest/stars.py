"""Guesses for switches: the pairs of neighbours that a switch should join, as evenly as whole numbers allow.

A guess ignores cuts; one sweep checks it as a whole. Even guesses succeed on real machines, and they keep trees low:
with links to many ranks, few hops are needed.

The rules: neighbours of one group (a box, or all nodes above the switch) have other routes to each other and are not
joined. Groups of several members are joined by index, first to first and so on (rails). If capacities differ, the rest
goes through pairs that are already joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Spreader", "star"]

Pair = tuple[int, int, int]

#: the most levels of capacity in a star; the rest is joined in order of size
_LEVELS = 8


class Spreader:
    """Pairs the neighbours of one switch after another; remainders of equal stars fall on other pairs each time."""

    def __init__(self) -> None:
        self._turn: dict[tuple[int, ...], int] = {}
        self._grain = 1

    def pairs(
        self, into: dict[int, int], out: dict[int, int], groups: Sequence[Sequence[int]], grain: int = 1,
        rails: bool = True,
    ) -> list[Pair]:  # fmt: skip
        """Return (from, to, capacity) for all capacity of a switch that can leave its group.

        ``into`` and ``out`` are the capacities from and to each neighbour, ``groups`` all neighbours in their order.
        Evenness alone gives no pair less than ``grain``. With ``rails`` members of the same index are joined.
        """
        self._grain = grain
        left_in, left_out = dict(into), dict(out)
        if len(groups) > 1 and max(map(len, groups)) == 1:
            result = self._rail([group[0] for group in groups], left_in, left_out)
        elif len(groups) > 1 and rails:
            result = []
            for index in range(max(map(len, groups))):
                result += self._rail([group[index] for group in groups if len(group) > index], left_in, left_out)
        else:
            result = []
        if any(left_in.values()) and any(left_out.values()):
            result += self._groups(groups, left_in, left_out)
        if any(left_in.values()) and any(left_out.values()):
            for group in groups:
                result = _through(result, group, left_in, left_out)
            inner = [node for group in groups for node in group]
            if len(groups) > 1 or len(inner) > 1:
                result += self._rail(inner, left_in, left_out)
                result += _pour(inner, left_in, left_out)
        return result

    def _rail(self, nodes: list[int], left_in: dict[int, int], left_out: dict[int, int]) -> list[Pair]:
        """Join nodes of different groups, as far as in and out are equal, evenly."""
        amounts = [min(left_in.get(v, 0), left_out.get(v, 0)) for v in nodes]
        pairs, left = self._star(nodes, amounts)
        for node, amount, rest in zip(nodes, amounts, left, strict=True):
            if amount:
                left_in[node] -= amount - rest
                left_out[node] -= amount - rest
        return [(nodes[i], nodes[j], amount) for i, j, amount in pairs]

    def _star(self, nodes: Sequence[int], amounts: list[int]) -> tuple[list[Pair], list[int]]:
        key = tuple(nodes)
        turn = self._turn.get(key, 0)
        self._turn[key] = turn + 1
        return star(amounts, turn, self._grain)

    def _groups(self, groups: Sequence[Sequence[int]], left_in: dict[int, int], left_out: dict[int, int]) -> list[Pair]:
        """Join whole groups evenly, and the members within each pair of groups, if possible by index."""
        sources = [_Draw(group, left_in, self._grain) for group in groups]
        targets = [_Draw(group, left_out, self._grain) for group in groups]
        amounts = [min(a.total, b.total) for a, b in zip(sources, targets, strict=True)]
        result: list[Pair] = []
        for g, h, amount in sorted(self._star([group[0] for group in groups], amounts)[0]):
            result += _match(sources[g].take(amount), targets[h].take(amount))
        for u, t, amount in result:
            left_in[u] -= amount
            left_out[t] -= amount
        return result


class _Draw:
    """Takes capacity from a group's members in proportion to their capacities, in any amounts."""

    def __init__(self, group: Sequence[int], capacity: dict[int, int], grain: int) -> None:
        self.nodes = [node for node in group if capacity.get(node)]
        self.width = [capacity[node] for node in self.nodes]
        self.total = sum(self.width)
        self.given = [0] * len(self.nodes)
        self.drawn, self.grain = 0, grain

    def take(self, amount: int) -> list[tuple[int, int]]:
        """Return (node, part of the amount), the largest debts first, then in order."""
        if len(self.nodes) == 1:
            return [(self.nodes[0], amount)]
        self.drawn += amount
        owed = [width * self.drawn - given * self.total for width, given in zip(self.width, self.given, strict=True)]
        order = sorted(range(len(owed)), key=owed.__getitem__, reverse=True)
        coarse = amount < self.grain * len(owed)
        fair = -(-amount // max(1, amount // self.grain)) if coarse else 0
        shares, missing = dict[int, int](), amount
        for i in order:
            fit = fair if coarse else max(0, owed[i] // self.total)
            shares[i] = min(missing, fit, self.width[i] - self.given[i])
            missing -= shares[i]
            if not missing:
                break
        if missing:
            self._round_up(shares, owed, missing)
        for i, share in shares.items():
            self.given[i] += share
        return [(self.nodes[i], shares[i]) for i in sorted(shares) if shares[i]]

    def _round_up(self, shares: dict[int, int], owed: Sequence[int], missing: int) -> None:
        """Add what is missing to shares: one more for those with a fraction, then as far as the total allows."""
        order = sorted(range(len(owed)), key=lambda i: (shares[i] * self.total - owed[i], i))
        for most in (1, missing):
            for i in order:
                part = min(missing, most, self.width[i] - self.given[i] - shares[i])
                shares[i] += part
                missing -= part


def star(amounts: Sequence[int], turn: int = 0, grain: int = 1) -> tuple[list[Pair], list[int]]:
    """Spread what n nodes send and receive (``amounts``, each as much in as out) evenly over pairs of different nodes.

    Returns (i, j, amount) by index and the rest of each node. Only the largest node can have a rest: its excess over
    all others together. ``turn`` chooses the pairs that get remainders.

    >>> star([3, 3, 3])
    ([(0, 1, 2), (1, 2, 2), (2, 0, 2), (0, 2, 1), (1, 0, 1), (2, 1, 1)], [0, 0, 0])
    """
    left, pairs = list(amounts), list[Pair]()
    for _ in range(_LEVELS):
        active = [i for i, amount in enumerate(left) if amount]
        n = len(active)
        if n < 2:
            break
        level = min(left[i] for i in active)
        for i in active:
            left[i] -= level
        for step, amount in _steps(level, n - 1, turn, grain):
            turned = active[step:] + active[:step]
            pairs += [(i, j, amount) for i, j in zip(active, turned, strict=True)]
    while True:
        active = sorted((i for i, amount in enumerate(left) if amount), key=lambda i: (-left[i], i))
        if len(active) < 2:
            break
        for i, j in zip(active[::2], active[1::2], strict=False):
            amount = min(left[i], left[j])
            left[i] -= amount
            left[j] -= amount
            pairs += [(i, j, amount), (j, i, amount)]
    for i in active:
        more_in, more_out = {i: left[i]}, {i: left[i]}
        pairs = _through(pairs, [i], more_in, more_out)
        left[i] = more_in[i]
    return pairs, left


def _steps(amount: int, span: int, turn: int, grain: int) -> list[tuple[int, int]]:
    """Divide an amount among steps 1 .. span around a circle; remainders, or all of a small amount, go to evenly
    spaced steps from ``turn`` on."""
    count = span if amount >= grain * span else max(1, amount // grain)
    each, extra = divmod(amount, count)
    chosen = (
        range(1, span + 1) if count == span else sorted((turn + j * span // count) % span + 1 for j in range(count))
    )
    wider = {(turn + j * count // extra) % count for j in range(extra)}
    return [(step, each + (place in wider)) for place, step in enumerate(chosen) if each or place in wider]


def _through(pairs: list[Pair], group: Iterable[int], left_in: dict[int, int], left_out: dict[int, int]) -> list[Pair]:
    """Route the rest of a group through pairs outside of it: u to t becomes u to x and y to t, with x and y of the
    group. Return the pairs; the rest is reduced.

    All suitable pairs contribute in proportion.
    """
    members = set(group)
    sources = [node for node in sorted(members) if left_in.get(node)]
    targets = [node for node in sorted(members) if left_out.get(node)]
    amount = min(sum(left_in[node] for node in sources), sum(left_out[node] for node in targets))
    width = sum(part for u, t, part in pairs if u not in members and t not in members) if amount else 0
    amount = min(amount, width)
    if not amount:
        return pairs
    result, fresh, seen, given = list[Pair](), list[Pair](), 0, 0
    for u, t, capacity in pairs:
        part = 0
        if u not in members and t not in members:
            seen += capacity
            part = seen * amount // width - given
            given += part
            fresh += [(u, target, some) for target, some in _last(targets, left_out, part)]
            fresh += [(source, t, some) for source, some in _last(sources, left_in, part)]
        if capacity > part:
            result.append((u, t, capacity - part))
    return result + fresh


def _last(nodes: list[int], left: dict[int, int], amount: int) -> list[tuple[int, int]]:
    """Take an amount from the last nodes of a list; exhausted nodes leave it."""
    taken = []
    while amount:
        node = nodes[-1]
        part = min(amount, left[node])
        left[node] -= part
        amount -= part
        taken.append((node, part))
        if not left[node]:
            nodes.pop()
    return taken


def _pour(nodes: Iterable[int], left_in: dict[int, int], left_out: dict[int, int]) -> list[Pair]:
    """Join the rests of different nodes in any order."""
    result: list[Pair] = []
    targets = [node for node in nodes if left_out.get(node)]
    for u in [node for node in nodes if left_in.get(node)]:
        for t in targets:
            amount = min(left_in[u], left_out[t]) if u != t else 0
            if amount:
                left_in[u] -= amount
                left_out[t] -= amount
                result.append((u, t, amount))
    return result


def _match(given: list[tuple[int, int]], needed: list[tuple[int, int]]) -> list[Pair]:
    """Join members of two groups, in order of both."""
    if len(given) == 1:
        return [(given[0][0], node, amount) for node, amount in needed]
    if len(needed) == 1:
        return [(node, needed[0][0], amount) for node, amount in given]
    result, targets = list[Pair](), iter(needed)
    target, room = next(targets)
    for node, amount in given:
        while amount:
            if not room:
                target, room = next(targets)
            part = min(amount, room)
            result.append((node, target, part))
            amount -= part
            room -= part
    return result
