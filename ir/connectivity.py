"""Why a network is not connected as a collective needs it, and which links would connect it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .diagnostic import CollcError, Subject, error
from .shown import counted, some

if TYPE_CHECKING:
    from .topology import Topology

__all__ = ["not_connected", "without_route"]

_MOST_TRIED = 32

Link = tuple[int, int]


def not_connected(topology: Topology, need: str, root: int | None = None, outward: bool = True) -> CollcError:
    """Return the error C0301, for a network in which some rank does not reach another.

    With a ``root``, routes from it (or to it, unless ``outward``) are needed only. The error names the ranks without a
    route, the direction of the links between the two parts, and the links that connect all parts.
    """
    network = _Network(topology, root, outward)
    a, missing = network.without_route()
    names, far = topology.names, [topology.names[b] for b in missing]
    ends = (names[a], far[0]) if outward else (far[0], names[a])
    others = "" if len(far) == 1 else f", nor {'to' if outward else 'from'} {counted(len(far) - 1, 'other rank')}"
    return error(
        "C0301",
        f"topology `{topology.name}` is not strongly connected: "
        f"there is no route from rank {ends[0]} to rank {ends[1]}{others}",
        notes=[*_listed_ranks(names[a], far, outward), network.direction(a), need],
        hint=network.remedy(),
        about=(Subject.TOPOLOGY, Subject.COLLECTIVE),
    )


def _listed_ranks(of: str, far: Sequence[str], outward: bool) -> list[str]:
    word = "has no route to" if outward else "has no route from"
    return [f"rank {of} {word} ranks {some(far)}"] if len(far) > 1 else []


def without_route(topology: Topology) -> tuple[int, list[int]]:
    """Return the first rank that does not reach all others, and the ranks without a route from it, of which there are
    some.
    """
    rank, ranks = 0, topology.num_ranks
    if (topology.hops_from(0)[:ranks] >= 0).all():  # then a rank that reaches rank 0 reaches all
        rank = int(np.argmax(topology.hops_to(0)[:ranks] < 0))
    return rank, np.flatnonzero(topology.hops_from(rank)[:ranks] < 0).tolist()


class _Network:
    """The pairs of nodes that a network links, and what a collective needs of them."""

    def __init__(self, topology: Topology, root: int | None, outward: bool):
        self.topology, self.root, self.outward = topology, root, outward
        rows = np.stack([topology.src, topology.dst], axis=1).astype(np.int64)
        self.pairs: list[Link] = [(a, b) for a, b in np.unique(rows, axis=0).tolist() if a != b]

    def without_route(self) -> tuple[int, list[int]]:
        """Return a rank and the ranks that it does not reach (or that do not reach it, unless ``outward``)."""
        if self.root is None:
            return without_route(self.topology)
        hops = self.topology.hops_from(self.root) if self.outward else self.topology.hops_to(self.root)
        return self.root, np.flatnonzero(hops[: self.topology.num_ranks] < 0).tolist()

    def direction(self, rank: int) -> str:
        """Return which links there are between the nodes that have a route to or from a rank and the others."""
        hops = self.topology.hops_from(rank) if self.outward else self.topology.hops_to(rank)
        between = [(a, b) for a, b in self.pairs if (hops[a] < 0) != (hops[b] < 0)]
        if not between:
            return "no link joins them, in either direction"
        first = self.link_text(between[0], "->")
        if len(between) == 1:
            return f"the only link between them leads the other way: `{first}`"
        return f"all {len(between)} links between them lead the other way, such as `{first}`"

    def remedy(self) -> str:
        """Return the links to add: the missing directions of links if they suffice, else new ones."""
        part = _parts(self.topology.num_nodes, self.pairs)
        known = set(self.pairs)
        one_way = [(a, b) for a, b in self.pairs if part[a] != part[b] and (b, a) not in known]
        for link in one_way[:_MOST_TRIED]:
            if self.connects([link[::-1]]):
                return f"write `<->` in place of `->`: `{self.written(link)}`"
        if one_way and self.connects([(b, a) for a, b in one_way]):
            needed = self.needed(one_way)
            links = some([f"`{self.written(link)}`" for link in needed])
            return f"write `<->` in place of `->` in {len(needed)} links: {links}"
        new = self.chain(part)
        if self.topology.node_names is None:
            pairs = some([f"ranks {a} and {b}" for a, b in new])
            return f"add links in both directions between {pairs}, or choose a topology that has them"
        added = [f"`{self.written(link)}`" for link in new]
        return f"add {'a link' if len(new) == 1 else 'links'}: {some(added)}"

    def connects(self, more: Sequence[Link]) -> bool:
        """Return whether the network with more links is connected as needed."""
        pairs, ranks = [*self.pairs, *more], self.topology.num_ranks
        if self.root is None:
            part = _parts(self.topology.num_nodes, pairs)
            return all(part[rank] == part[0] for rank in range(ranks))
        seen = _reached(_neighbours(self.topology.num_nodes, pairs, not self.outward), self.root)
        return all(rank in seen for rank in range(ranks))

    def needed(self, links: Sequence[Link]) -> list[Link]:
        """Return those of some links whose reverses suffice together: none of them can be left out."""
        kept = list(links)
        for link in links[:_MOST_TRIED]:
            rest = [other for other in kept if other != link]
            if self.connects([(b, a) for a, b in rest]):
                kept = rest
        return kept

    def chain(self, part: Sequence[int]) -> list[Link]:
        """Return links that join the first ranks of all parts, one after another."""
        first: dict[int, int] = {}
        for rank in range(self.topology.num_ranks):
            first.setdefault(part[rank], rank)
        ends = list(first.values())
        return list(pairwise(ends))

    def link_text(self, link: Link, sign: str) -> str:
        return f"{self.topology.node_text(link[0])} {sign} {self.topology.node_text(link[1])}"

    def written(self, link: Link) -> str:
        return f"link {self.link_text(link, '<->')};"


def _neighbours(nodes: int, pairs: Iterable[Link], backwards: bool = False) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in pairs:
        found[b if backwards else a].append(a if backwards else b)
    return found


def _reached(neighbours: Sequence[Sequence[int]], start: int) -> set[int]:
    seen, open_ = {start}, [start]
    while open_:
        for node in neighbours[open_.pop()]:
            if node not in seen:
                seen.add(node)
                open_.append(node)
    return seen


def _parts(nodes: int, pairs: Sequence[Link]) -> list[int]:
    """Return for every node the number of its strongly connected part (Kosaraju's algorithm)."""
    out, into = _neighbours(nodes, pairs), _neighbours(nodes, pairs, backwards=True)
    part = [-1] * nodes
    for number, root in enumerate(reversed(_finished(out))):
        if part[root] < 0:
            part[root], open_ = number, [root]
            while open_:
                for node in into[open_.pop()]:
                    if part[node] < 0:
                        part[node] = number
                        open_.append(node)
    return part


def _finished(out: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes in the order in which a depth-first search leaves them."""
    order, seen = list[int](), [False] * len(out)
    for root in range(len(out)):
        stack = [] if seen[root] else [(root, iter(out[root]))]
        seen[root] = True
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if not seen[other]), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen[following] = True
                stack.append((following, iter(out[following])))
    return order
