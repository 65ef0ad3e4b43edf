"""Routes of transfers written by hand: the fewest links, through switches only, and the least loaded of those."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import pairwise
from math import lcm

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.ranges import runs
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

__all__ = ["Router"]

#: For every node on a shortest route, the next links, lowest number first.
NextLinks = dict[int, list[int]]

_LONGEST_SHOWN = 5  # ranks of a route in a hint


@attrs.define
class Router:
    """Chooses routes and remembers the load that each step puts on each link.

    The load of a link is the time it needs for what it carries in the step, in some unit that all links share.
    """

    topology: Topology
    _near: dict[tuple[int, int], list[int]] = attrs.field(factory=dict)
    _next_links: dict[tuple[int, int], NextLinks | None] = attrs.field(factory=dict)
    _loads: dict[int, dict[int, int | Fraction]] = attrs.field(factory=dict)
    _numbers: dict[tuple[int, ...], int] = attrs.field(factory=dict)
    _weights: list[int] = attrs.field(factory=list)
    _tails: list[int] = attrs.field(factory=list)
    _heads: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        topology = self.topology
        self._tails, self._heads = topology.src.tolist(), topology.dst.tolist()
        for link, ends in enumerate(zip(self._tails, self._heads, strict=True)):
            self._near.setdefault(ends, []).append(link)
        common = lcm(*(kind.bandwidth.numerator for kind in topology.classes))
        times = [int(common / kind.bandwidth) for kind in topology.classes]
        self._weights = [times[kind] for kind in topology.link_class.tolist()]

    def route(self, step: int, source: int, target: int, parts: int) -> int:
        """Return the number of the route for 1/parts of a shard from rank to rank at a step; raise C0160 without one.

        Among shortest routes each next link is one whose worst load from there on, this transfer included, is least,
        then the one with the lowest number.
        """
        links = self._near.get((source, target))
        if links is not None and len(links) == 1:
            return self._direct(links[0])
        if links is not None:
            return self._direct(self._least(step, links, parts))
        return self._number(self._through(step, source, target, parts))

    @property
    def routes(self) -> Routes:
        """All routes given out, by number; link numbers where the topology has no switches."""
        if self.topology.is_direct:
            return Routes.direct(self.topology.num_links)
        return Routes.of(list(self._numbers))

    def _direct(self, link: int) -> int:
        return link if self.topology.is_direct else self._number((link,))

    def _number(self, route: tuple[int, ...]) -> int:
        return self._numbers.setdefault(route, len(self._numbers))

    def _least(self, step: int, links: list[int], parts: int) -> int:
        """Return the parallel link to take, and load it."""
        load = self._loads.setdefault(step, {})
        best = min(links, key=lambda link: load.get(link, 0) + _share(self._weights[link], parts))
        load[best] = load.get(best, 0) + _share(self._weights[best], parts)
        return best

    # ---- through switches

    def _through(self, step: int, source: int, target: int, parts: int) -> tuple[int, ...]:
        key = source, target
        if key not in self._next_links:
            self._next_links[key] = self._shortest(source, target)
        next_links = self._next_links[key]
        if next_links is None:
            raise self._unreachable(source, target)
        load = self._loads.setdefault(step, {})
        worst: dict[int, int | Fraction] = {target: 0}
        take: dict[int, int] = {}
        for node in reversed(next_links):  # in order of distance, so ends come first
            choices = (
                (max(load.get(link, 0) + _share(self._weights[link], parts), worst[self._heads[link]]), link)
                for link in next_links[node]
            )
            worst[node], take[node] = min(choices)
        route, node = [], source
        while node != target:
            link = take[node]
            route.append(link)
            load[link] = load.get(link, 0) + _share(self._weights[link], parts)
            node = self._heads[link]
        return tuple(route)

    def _shortest(self, source: int, target: int) -> NextLinks | None:
        """Return the links on shortest routes from rank to rank, nodes in order of distance; None without a route."""
        start, links = self.topology.out_links
        distance, queue, order = {source: 0}, deque([source]), list[int]()
        while queue:
            node = queue.popleft()
            order.append(node)
            if node != source and node < self.topology.num_ranks:
                continue  # no route passes through a rank
            for link in links[start[node] : start[node + 1]].tolist():
                if self._heads[link] not in distance:
                    distance[self._heads[link]] = distance[node] + 1
                    queue.append(self._heads[link])
        if target not in distance:
            return None
        useful, next_links = {target}, NextLinks()
        for node in reversed(order):
            if distance[node] >= distance[target] or (node != source and node < self.topology.num_ranks):
                continue
            onward = [
                link
                for link in links[start[node] : start[node + 1]].tolist()
                if self._heads[link] in useful and distance[self._heads[link]] == distance[node] + 1
            ]
            if onward:
                useful.add(node)
                next_links[node] = onward
        return {node: next_links[node] for node in reversed(next_links)}

    def _unreachable(self, source: int, target: int) -> CollcError:
        names = self.topology.names
        start, links = self.topology.out_links
        near = sorted({self._heads[link] for link in links[start[source] : start[source + 1]].tolist()})
        listed = [names[node] for node in near] if self.topology.node_names else runs(near)
        shown = ", ".join(listed[:8]) + (", .." if len(listed) > 8 else "")
        note = f"rank {names[source]} has links to {shown}" if near else f"rank {names[source]} has no links out"
        if not self.topology.is_direct:
            note += "; a transfer passes through switches, never through other ranks"
        message = f"there is no route from rank {names[source]} to rank {names[target]}"
        return error("C0160", message, notes=(note,), hint=self._stepwise(source, target))

    def _stepwise(self, source: int, target: int) -> str | None:
        """Return how to send data over the ranks between two ranks, step by step; None if there are no such ranks."""
        topology = self.topology
        hops, at, path = topology.hops_to(target), source, [source]
        if hops[source] < 0:
            return "add a link between them, or name other ranks"
        while at != target:
            start, links = topology.out_links
            near = {self._heads[link] for link in links[start[at] : start[at + 1]].tolist()}
            at = min(node for node in near if hops[node] == hops[at] - 1)
            path.append(at)
        ranks = [topology.names[node] for node in path if node < topology.num_ranks]
        if len(ranks) < 3 or len(ranks) > _LONGEST_SHOWN:
            return "send the data to a rank between them first, and on in a later step"
        legs = [f"from {a} to {b}" for a, b in pairwise(ranks)]
        return f"send it {legs[0]}, then in a later step {', then '.join(legs[1:])}"


def _share(weight: int, parts: int) -> int | Fraction:
    return weight if parts == 1 else Fraction(weight, parts)
