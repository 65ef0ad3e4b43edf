"""Edge splitting: a capacity into a switch and one out of it become one around it, and no cut becomes too small.

Splitting (u, w), (w, t) off to (u, t) by m lowers the capacity out of exactly those sets that have w on one side, and u
and t on the other, by m (ForestColl, section 4.3 and appendix C.2). If all switches have equal capacity in and out,
every capacity can be paired (Theorem 7). The amount of a pair is found lazily: many pairs are split off at once, each
by at most what the known cuts allow, and one sweep verifies all. A cut that is then too small becomes known. A tight
cut stays tight: pairs that it blocks cost a bit test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from collc.ir.effort import spend
from collc.ir.graph.cuts import Cut, FlowNetwork
from collc.ir.progress import counting, progress

from .growing import bits
from .stars import Pair

__all__ = ["CutPool", "Mesh", "PairsLeft", "Split", "split_off", "switch_routes"]

#: capacity that was split off: (switch, from, to, amount); capacity back to its own tail is lost
Split = tuple[int, int, int, int]
#: for a pair of nodes: (switches passed, capacity) of every route
SwitchRoutes = dict[tuple[int, int], list[tuple[tuple[int, ...], int]]]

#: failures in a row before a batch is halved: with the cuts found, the whole batch often succeeds
_PATIENCE = 3
#: cuts to learn from one failed sweep
_MOST_CUTS = 16


class PairsLeft(Exception):
    """A switch has capacity left that no pair can take; ``switch`` is its number."""

    def __init__(self, switch: int) -> None:
        super().__init__(switch)
        self.switch = switch


class Mesh:
    """Capacities between nodes by tail and head, and the splits that made them."""

    def __init__(self, network: FlowNetwork) -> None:
        self.num_nodes = network.num_nodes
        self.out: list[dict[int, int]] = [{} for _ in range(network.num_nodes)]
        self.into: list[dict[int, int]] = [{} for _ in range(network.num_nodes)]
        for tail, head, capacity in network.arcs():
            self.out[tail][head] = self.into[head][tail] = capacity
        self.splits: list[Split] = []

    def copy(self) -> Mesh:
        """Return an independent mesh with the same capacities and splits."""
        twin = Mesh.__new__(Mesh)
        twin.num_nodes = self.num_nodes
        twin.out = [dict(row) for row in self.out]
        twin.into = [dict(row) for row in self.into]
        twin.splits = list(self.splits)
        return twin

    def remove(self, switch: int, pairs: Iterable[Pair]) -> None:
        """Remove a switch; capacity that no pair uses is lost."""
        out, into, splits = self.out, self.into, self.splits
        for node in into[switch]:
            del out[node][switch]
        for node in out[switch]:
            del into[node][switch]
        into[switch], out[switch] = {}, {}
        before = len(splits)
        for u, t, amount in pairs:
            if u != t:
                row = out[u]
                row[t] = into[t][u] = row.get(t, 0) + amount
            splits.append((switch, u, t, amount))
        spend(len(splits) - before)

    def reduce(self, tail: int, head: int, amount: int) -> None:
        """Take an amount off the capacity of an arc."""
        left = self.out[tail][head] - amount
        if left:
            self.out[tail][head] = self.into[head][tail] = left
        else:
            del self.out[tail][head], self.into[head][tail]

    def network(self, num_nodes: int | None = None) -> FlowNetwork:
        """Return the flow network of the first ``num_nodes`` nodes (default: all)."""
        rows = enumerate(self.out[:num_nodes])
        arcs = ((u, t, capacity) for u, row in rows for t, capacity in row.items())
        return FlowNetwork(self.num_nodes if num_nodes is None else num_nodes, arcs)


class CutPool:
    """Known cuts with their slack: the amount that may still be taken from each."""

    def __init__(self, num_nodes: int) -> None:
        self.inside = [0] * num_nodes  # for every node, the cuts that contain it, as bits
        self.slack: list[int] = []
        self.tight = 0

    def add(self, cut: Cut, slack: int) -> None:
        """Add a cut with its slack: the integer bandwidth that may still be taken from it."""
        bit = 1 << len(self.slack)
        for node in cut.nodes:
            self.inside[node] |= bit
        self.slack.append(slack)
        if slack <= 0:
            self.tight |= bit

    def lowered(self, w: int, u: int, t: int) -> int:
        """Return the cuts that splitting off u to t at w takes from, as bits."""
        inside = self.inside
        return (inside[u] ^ inside[w]) & (inside[t] ^ inside[w])

    def room(self, lowered: int, amount: int) -> int:
        """Return how much of an amount those cuts allow."""
        if lowered & self.tight:
            return 0
        for number in bits(lowered):
            amount = min(amount, self.slack[number])
        return amount

    def take(self, lowered: int, amount: int) -> None:
        """Subtract an amount (negative: add it) from the slack of cuts."""
        for number in bits(lowered):
            self.slack[number] -= amount
            if self.slack[number] <= 0:
                self.tight |= 1 << number
            else:
                self.tight &= ~(1 << number)


class _Splitter:
    """Splits one switch off, batch by batch."""

    def __init__(self, mesh: Mesh, switch: int, supply: Sequence[int], sinks: list[int], pool: CutPool) -> None:
        self.switch, self.supply, self.sinks, self.pool = switch, supply, sinks, pool
        self.into, self.out = dict(mesh.into[switch]), dict(mesh.out[switch])
        self.network = mesh.network()
        self.total = sum(supply)
        self.split_pairs: list[Pair] = []

    def run(self, preferred: Iterable[Pair]) -> list[Pair]:
        """Split all capacity off: first the preferred pairs, then any pairs evenly, last the loops."""
        self._try(list(preferred))
        most = 1
        while any(self.into.values()) and any(self.out.values()):
            progress("splitting switches off", len(self.split_pairs))
            senders = [node for node, amount in self.into.items() if amount]
            targets = [node for node, amount in self.out.items() if amount]
            most = max(most, -(-sum(self.into.values()) // (len(senders) * len(targets))))
            count = len(self.split_pairs)
            self._try([(u, t, most) for u, t in _round_robin(senders, targets)])
            if len(self.split_pairs) > count:
                most *= 2
            elif most < sum(self.into.values()):
                most = sum(self.into.values())
            else:
                self._try([(u, u, most) for u in senders])
                break
        if any(self.into.values()) or any(self.out.values()):
            raise PairsLeft(self.switch)
        return self.split_pairs

    def _try(self, queue: list[Pair]) -> None:
        """Split off as much of every pair of a queue as the cuts allow."""
        place, size, failures = 0, len(queue), 0
        while place < len(queue):
            batch, after = self._batch(queue, place, size)
            if not batch:
                place = after
                continue
            cuts = self.network.violated(self.supply, self.sinks, _MOST_CUTS)
            if not cuts:
                self.split_pairs += [(u, t, amount) for u, t, amount, _ in batch]
                place, size, failures = after, 2 * size, 0
                continue
            self._undo(batch)
            for cut in cuts:
                self._learn(cut, batch)
            failures += 1
            if failures >= _PATIENCE:
                size = max(1, (after - place) // 2)

    def _batch(self, queue: list[Pair], place: int, size: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Split off up to ``size`` pairs from a place on; return (from, to, amount, cuts lowered), and the end."""
        w, pool, into, out, add = self.switch, self.pool, self.into, self.out, self.network.add
        batch: list[tuple[int, int, int, int]] = []
        while place < len(queue) and len(batch) < size:
            u, t, amount = queue[place]
            place += 1
            amount = min(amount, into[u], out[t])
            if not amount:
                continue
            lowered = pool.lowered(w, u, t)
            amount = pool.room(lowered, amount)
            if amount > 0:
                pool.take(lowered, amount)
                into[u] -= amount
                out[t] -= amount
                add(u, w, -amount)
                add(w, t, -amount)
                add(u, t, amount)
                batch.append((u, t, amount, lowered))
        return batch, place

    def _undo(self, batch: list[tuple[int, int, int, int]]) -> None:
        w, add = self.switch, self.network.add
        for u, t, amount, lowered in batch:
            self.pool.take(lowered, -amount)
            self.into[u] += amount
            self.out[t] += amount
            add(u, w, amount)
            add(w, t, amount)
            add(u, t, -amount)

    def _learn(self, cut: Cut, batch: list[tuple[int, int, int, int]]) -> None:
        """Add a cut with its slack before a batch, and check a rank that it lacks first from now on."""
        inside = set(cut.nodes)
        here = self.switch in inside
        taken = sum(b[2] for b in batch if (b[0] in inside) != here and (b[1] in inside) != here)
        self.pool.add(cut, cut.value - self.total + taken)
        first = next(sink for sink in self.sinks if sink not in inside)
        self.sinks.remove(first)
        self.sinks.insert(0, first)


def _round_robin(senders: list[int], targets: list[int]) -> Iterator[tuple[int, int]]:
    """Yield all pairs of different nodes; no node comes twice before all have come once."""
    span = max(len(senders), len(targets))
    short, swap = (senders, False) if len(senders) < len(targets) else (targets, True)
    for turn in range(span):
        for i, node in enumerate(short):
            other = (targets if not swap else senders)[(i + turn + 1) % span]
            if node != other:
                yield (other, node) if swap else (node, other)


def split_off(
    mesh: Mesh, switch: int, preferred: Iterable[Pair], supply: Sequence[int], sinks: list[int], pool: CutPool
) -> list[Pair]:
    """Return pairs (from, to, capacity) that split a switch off without loss (Theorems 7 and 8), preferred ones first.

    ``supply`` counts trees by root; ``sinks`` are the ranks in the order of their flows, and ``pool`` known cuts: both
    are updated. Raises :class:`PairsLeft` if capacities in and out do not match.
    """
    return _Splitter(mesh, switch, supply, sinks, pool).run(preferred)


def switch_routes(network: FlowNetwork, splits: Collection[Split]) -> SwitchRoutes:
    """Return the switches and capacity of every route, for every pair of nodes that is joined in the end.

    A route that would pass a switch twice leaves the loop out.
    """
    found: dict[tuple[int, int], list[tuple[tuple[int, ...], int]]] = {
        (tail, head): [((), capacity)] for tail, head, capacity in network.arcs()
    }
    for w, u, t, amount in counting(splits, "routes through switches"):
        first, second = found[u, w], found[w, t]
        if len(first) == len(second) == 1 and not first[0][0] and not second[0][0]:
            before, after = first[0][1], second[0][1]
            first[0], second[0] = ((), before - amount), ((), after - amount)
            joined: list[tuple[tuple[int, ...], int]] = [((w,), amount)]
        else:
            joined = _join(_take(first, amount), w, _take(second, amount))
        if u != t:
            found.setdefault((u, t), []).extend(joined)
    return {pair: kept for pair, routes in found.items() if (kept := _merged(routes))}


def _take(routes: list[tuple[tuple[int, ...], int]], amount: int) -> list[tuple[tuple[int, ...], int]]:
    """Take an amount off the end of a list of routes."""
    taken = []
    while amount:
        route, capacity = routes.pop()
        part = min(amount, capacity)
        taken.append((route, part))
        amount -= part
        if capacity > part:
            routes.append((route, capacity - part))
    return taken


def _join(
    first: list[tuple[tuple[int, ...], int]], w: int, second: list[tuple[tuple[int, ...], int]]
) -> list[tuple[tuple[int, ...], int]]:
    joined, rest = [], second[::-1]
    for route, amount in first:
        while amount:
            onward, capacity = rest.pop()
            part = min(amount, capacity)
            joined.append((_simple((*route, w, *onward)), part))
            amount -= part
            if capacity > part:
                rest.append((onward, capacity - part))
    return joined


def _simple(route: tuple[int, ...]) -> tuple[int, ...]:
    """Return the route without loops between two visits of a switch."""
    if len(set(route)) == len(route):
        return route
    kept: list[int] = []
    for node in route:
        if node in kept:
            del kept[kept.index(node) :]
        kept.append(node)
    return tuple(kept)


def _merged(routes: list[tuple[tuple[int, ...], int]]) -> list[tuple[tuple[int, ...], int]]:
    if len(routes) == 1:
        return routes if routes[0][1] else []
    total: dict[tuple[int, ...], int] = {}
    for route, amount in routes:
        total[route] = total.get(route, 0) + amount
    return [(route, amount) for route, amount in total.items() if amount]
