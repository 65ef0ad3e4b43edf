"""Smallest cuts between a rank and the supplies of all ranks: the kernel of spanning-tree packing.

A rank *supplies* a number of trees. All trees of the ranks in a set S of nodes must leave S if S lacks a rank. So the
capacity c(S) out of it must reach their number. By max-flow and min-cut (ForestColl, Theorems 1, 5 and 10) that is true
of all sets if and only if all supplies together can flow to each rank.

A flow is searched from the sink to the nearest supply, in layers (Dinic), and stops as soon as the demand is met. A
rank that was a sink becomes an unlimited source for later sinks, because the sets that leave it out were examined
before. So a sweep over all ranks takes little longer than its first flow. It needs no copies: a flow restores the arcs
that it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from ..effort import spend
from ..progress import counting

__all__ = ["Cut", "FlowNetwork"]

_UNBOUNDED = 1 << 200
#: elementary steps for an arc, beside those of a loop over bits
_STEPS = 8


@attrs.frozen
class Cut:
    """A set of nodes (ascending) that leaves out some sink.

    ``value`` is the capacity of the arcs out of it plus the supplies outside. If it is less than the total supply, the
    trees do not exist. If it is equal, the cut is tight.
    """

    nodes: tuple[int, ...]
    value: int


class FlowNetwork:
    """A digraph with integer capacities, changed in place between sweeps.

    Arc a runs from ``head[a ^ 1]`` to ``head[a]``; arcs come in pairs of opposite directions. ``out[v]`` are the arcs
    that leave v.
    """

    def __init__(self, num_nodes: int, arcs: Iterable[tuple[int, int, int]] = ()) -> None:
        self.num_nodes = num_nodes
        self.head: list[int] = []
        self.capacity: list[int] = []
        self.out: list[list[int]] = [[] for _ in range(num_nodes)]
        self._arc: dict[tuple[int, int], int] = {}
        for tail, head, capacity in arcs:
            self.add(tail, head, capacity)

    def add(self, tail: int, head: int, capacity: int) -> None:
        """Add capacity (negative: remove it) from one node to another. Loops are ignored, because they cross no cut."""
        if tail == head:
            return
        arc = self._arc.get((tail, head))
        if arc is None:
            arc = len(self.head)
            self.head += [head, tail]
            self.capacity += [0, 0]
            self.out[tail].append(arc)
            self.out[head].append(arc + 1)
            self._arc[tail, head], self._arc[head, tail] = arc, arc + 1
        self.capacity[arc] += capacity

    def refill(self, arcs: Iterable[tuple[int, int, int]]) -> None:
        """Replace all capacities by these."""
        self.capacity[:] = [0] * len(self.capacity)
        for tail, head, capacity in arcs:
            self.add(tail, head, capacity)

    def between(self, tail: int, head: int) -> int:
        """Return the capacity from one node to another."""
        arc = self._arc.get((tail, head))
        return 0 if arc is None else self.capacity[arc]

    def arcs(self) -> Iterator[tuple[int, int, int]]:
        """Yield (tail, head, capacity) of every arc with capacity."""
        for arc, capacity in enumerate(self.capacity):
            if capacity:
                yield self.head[arc ^ 1], self.head[arc], capacity

    def leaving(self, nodes: Iterable[int]) -> int:
        """Return the capacity out of a set of nodes."""
        inside = set(nodes)
        out, head, capacity = self.out, self.head, self.capacity
        return sum(capacity[a] for v in inside for a in out[v] if head[a] not in inside)

    def smallest_cut(
        self, supply: Sequence[int], sinks: Iterable[int], limit: int, below: int | None = None
    ) -> Cut | None:
        """Return the smallest cut between the supplies and any sink, or None if none is below ``limit``.

        ``supply[v]`` is the amount that node v has to send. If ``below`` is given, the sweep ends at the first cut
        below it.
        """
        left, best = list(supply), None
        for sink in counting(tuple(sinks), "cuts before ranks"):
            found = self._flow(left, sink, limit)
            if found is not None:
                best, limit = found, found.value
                if below is not None and limit < below:
                    return best
            left[sink] = _UNBOUNDED
        return best

    def violated(self, supply: Sequence[int], sinks: Iterable[int], most: int = 1) -> list[Cut]:
        """Return at most ``most`` cuts that are too small for the supplies, one per sink: none if trees exist."""
        total, left, found = sum(supply), list(supply), list[Cut]()
        for sink in counting(tuple(sinks), "cuts before ranks"):
            cut = self._flow(left, sink, total)
            if cut is not None:
                found.append(cut)
                if len(found) >= most:
                    break
            left[sink] = _UNBOUNDED
        return found

    def settle(
        self, supply: Sequence[int], sinks: Iterable[int], mend: Callable[[tuple[int, ...]], Sequence[int]]
    ) -> None:
        """Sweep over the sinks once, and let ``mend`` correct every cut that is too small for the supplies.

        ``mend(nodes)`` changes capacities so that the supplies of this set can leave it, and returns the new supplies.
        No set may have less capacity for its supplies than before, so earlier sinks need no second visit.
        """
        left, done = list(supply), list[int]()
        total = sum(left)
        for sink in counting(tuple(sinks), "cuts before ranks"):
            while (cut := self._flow(left, sink, total)) is not None:
                left = list(mend(cut.nodes))
                total = sum(left)
                for node in done:
                    left[node] = _UNBOUNDED
            left[sink] = _UNBOUNDED
            done.append(sink)

    def flow(self, supply: Sequence[int], sink: int, demand: int) -> dict[int, int] | Cut:
        """Return how much of ``demand`` every arc carries to the sink, or the cut that prevents it."""
        carried: dict[int, int] = {}
        cut = self._flow(list(supply), sink, demand, carried)
        return carried if cut is None else cut

    def _flow(
        self, supply: list[int], sink: int, demand: int, carried: dict[int, int] | None = None
    ) -> Cut | None:  # fmt: skip
        """Send ``demand`` to the sink, then restore all capacities; return the cut if the demand cannot be met."""
        used: dict[int, int] = {}
        taken: dict[int, int] = {sink: supply[sink]}
        missing = demand - supply[sink]
        supply[sink] = 0
        seen = 0
        while missing > 0:
            ahead = self._layers(supply, sink, missing)
            seen += len(ahead)
            if isinstance(ahead, set):
                side = tuple(v for v in range(self.num_nodes) if v not in ahead)
                break
            missing = self._augment(supply, sink, missing, ahead, used, taken)
        else:
            side = None
        for arc, capacity in used.items():
            if carried is not None and capacity > self.capacity[arc]:
                carried[arc] = capacity - self.capacity[arc]
            self.capacity[arc] = capacity
        for node, amount in taken.items():
            supply[node] = amount
        spend(_STEPS * (len(used) + seen * len(self.head) // self.num_nodes))  # arcs, about; capacities are whole again
        return None if side is None else Cut(side, demand - missing)

    def _layers(self, supply: list[int], sink: int, missing: int) -> dict[int, Iterator[int]] | set[int]:
        """Return the arcs to the next layer, of every node nearer to the sink than the nearest supply.

        If no supply is left, return the nodes that reach the sink. The search of the last layer ends when its supplies
        could be enough: behind a switch of a thousand ports a few are.
        """
        head, capacity, out = self.head, self.capacity, self.out
        level, front, depth, met = {sink: 0}, [sink], 0, 0
        ahead = dict[int, Iterator[int]]()
        while front and not met:
            depth += 1
            behind = []
            for node in front:
                arcs = list[int]()
                ahead[node] = iter(arcs)
                for arc in out[node]:
                    free = capacity[arc ^ 1]
                    if not free:
                        continue
                    other = head[arc]
                    if other in level:
                        if level[other] == depth:
                            arcs.append(arc)
                        continue
                    level[other] = depth
                    arcs.append(arc)
                    behind.append(other)
                    if supply[other]:
                        met += min(supply[other], free)
                        if met >= missing:
                            return ahead
            front = behind
        return ahead if met else set(level)

    def _augment(
        self, supply: list[int], sink: int, missing: int, ahead: dict[int, Iterator[int]],
        used: dict[int, int], taken: dict[int, int],
    ) -> int:  # fmt: skip
        """Send along shortest paths until none is left; return the missing amount.

        Paths are searched depth first from the sink. Each arc of a node is tried once.
        """
        head, capacity = self.head, self.capacity
        path: list[int] = []  # arcs from the sink outwards: the flow runs against them
        node, end = sink, iter(())
        while True:
            if supply[node] and path:
                amount = min(missing, supply[node], min(capacity[a ^ 1] for a in path))
                taken.setdefault(node, supply[node])
                if supply[node] < _UNBOUNDED:
                    supply[node] -= amount
                for a in path:
                    used.setdefault(a, capacity[a])
                    used.setdefault(a ^ 1, capacity[a ^ 1])
                    capacity[a] += amount
                    capacity[a ^ 1] -= amount
                missing -= amount
                if not missing:
                    return 0
                full = next((i for i, a in enumerate(path) if not capacity[a ^ 1]), len(path))
                if full < len(path):
                    node = head[path[full] ^ 1]
                    del path[full:]
                continue
            for arc in ahead.get(node, end):
                if capacity[arc ^ 1]:
                    path.append(arc)
                    node = head[arc]
                    break
            else:
                if not path:
                    return missing
                node = head[path.pop() ^ 1]
