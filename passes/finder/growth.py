"""How many links of a network stay where they are if it grows into a larger one.

Every node of the small network becomes a node of the large one. A link is kept if the large network links the same two
nodes in the same direction. The number depends on the placement. Two are tried: equal numbers, and one that follows the
links from node 0. A search improves both by moving one node or exchanging two. It finds a good placement, not always
the best; the bound says how good a placement can be at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from collc.ir.topology import Topology

__all__ = ["Grown", "grown", "kept_bound", "links_kept"]

_MOST_TRIED = 40_000  # moves and exchanges that a search evaluates

_Links = Counter[tuple[int, int]]


@attrs.frozen
class Grown:
    """The best placement found: ``place`` has the new number of every node.

    ``kept`` of the small network's ``links`` stay, and no placement keeps more than ``bound``. ``labelling`` is
    ``numbers`` if the placement keeps the numbers of nodes, otherwise ``search``. Links of a node to itself do not
    count.
    """

    place: tuple[int, ...]
    kept: int
    links: int
    bound: int
    labelling: str


def grown(small: Topology, large: Topology) -> Grown:
    """Return the best placement that is found of a network in one of at least as many ranks, both without switches."""
    small_links, large_links = _links(small), _links(large)
    same = list(range(small.num_ranks))
    best, kept = same, links_kept(small, large, same)
    bound = kept_bound(small, large)
    for start in (same, _followed(small, large)):
        if kept == bound:
            break
        found = _Search(small_links, large_links, start, large.num_ranks).improved()
        if (count := links_kept(small, large, found)) > kept:
            best, kept = found, count
    labelling = "numbers" if best == same else "search"
    return Grown(tuple(best), kept, small_links.total(), bound, labelling)


def links_kept(small: Topology, large: Topology, place: list[int]) -> int:
    """Return the number of links of the small network that the large one has between the places of their ends."""
    moved = Counter({(place[a], place[b]): count for (a, b), count in _links(small).items()})
    return (moved & _links(large)).total()


def kept_bound(small: Topology, large: Topology) -> int:
    """Return a number of kept links that no placement exceeds.

    Links of new nodes are not kept. k new nodes with d links out and in have at least 2kd - k(k-1) of them, unless
    links are parallel.
    """
    small_links, large_links = _links(small), _links(large)
    new = large.num_ranks - small.num_ranks
    out, into = Counter[int](), Counter[int]()
    for (a, b), count in large_links.items():
        out[a] += count
        into[b] += count
    touching = sum(sorted(out[node] + into[node] for node in range(large.num_ranks))[:new])
    among = new * (new - 1) * max(large_links.values(), default=0)
    return min(small_links.total(), large_links.total() - max(touching - among, 0))


def _links(topology: Topology) -> _Links:
    """Return the number of parallel links between two nodes, without links of a node to itself."""
    ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    return Counter((a, b) for a, b in ends if a != b)


def _followed(small: Topology, large: Topology) -> list[int]:
    """Return the placement that starts at node 0 and gives the heads of a node's links places at the heads of links
    from its place, in their order; nodes that find no place get the lowest free numbers."""
    heads, large_links = _heads(_links(small), small.num_ranks), _heads(_links(large), large.num_ranks)
    place, used = {0: 0}, {0}
    queue = [0]
    for node in queue:
        free = (head for head in large_links[place[node]] if head not in used)
        for head in heads[node]:
            if head not in place and (target := next(free, None)) is not None:
                place[head] = target
                used.add(target)
                queue.append(head)
    rest = (number for number in range(large.num_ranks) if number not in used)
    return [place[node] if node in place else next(rest) for node in range(small.num_ranks)]


def _heads(links: _Links, nodes: int) -> list[list[int]]:
    heads: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in links:
        heads[a].append(b)
    return heads


class _Search:
    """Moves nodes to places, and exchanges them, as long as more links are kept; ties go to the lowest numbers."""

    def __init__(self, small_links: _Links, large_links: _Links, start: list[int], places: int) -> None:
        self.large_links, self.place = large_links, list(start)
        self.node_at = [-1] * places
        for node, place in enumerate(start):
            self.node_at[place] = node
        self.near: list[list[tuple[int, bool, int]]] = [[] for _ in start]  # (other end, whether it is the head, links)
        for (a, b), count in sorted(small_links.items()):
            self.near[a].append((b, True, count))
            self.near[b].append((a, False, count))
        self.around: list[list[int]] = [[] for _ in range(places)]
        for a, b in sorted(large_links):
            self.around[a].append(b)
            self.around[b].append(a)

    def improved(self) -> list[int]:
        """Return the placement in which no move or exchange that is tried keeps more, or where the effort ended."""
        left, better = _MOST_TRIED, True
        while better and left > 0:
            better = False
            for node in range(len(self.place)):
                for target in self._targets(node):
                    left -= 1
                    if self._exchange(node, target):
                        better = True
                        break
                if left <= 0:
                    break
        return self.place

    def _targets(self, node: int) -> Iterator[int]:
        """Yield the places beside those of the node's neighbours."""
        beside = {target for other, _, _ in self.near[node] for target in self.around[self.place[other]]}
        return iter(sorted(beside - {self.place[node]}))

    def _kept(self, node: int) -> int:
        place, large_links, here = self.place, self.large_links, self.place[node]
        return sum(
            min(count, large_links.get((here, place[other]) if head else (place[other], here), 0))
            for other, head, count in self.near[node]
        )

    def _between(self, node: int, other: int) -> int:
        """Return what both nodes count: the kept links between them."""
        place, large_links = self.place, self.large_links
        return sum(
            min(count, large_links.get((place[node], place[end]) if head else (place[end], place[node]), 0))
            for end, head, count in self.near[node] if end == other
        )  # fmt: skip

    def _value(self, node: int, other: int) -> int:
        if other < 0:
            return self._kept(node)
        return self._kept(node) + self._kept(other) - self._between(node, other)

    def _exchange(self, node: int, target: int) -> bool:
        """Move the node to the target, and the node there to the place left, if that keeps more links."""
        other, source = self.node_at[target], self.place[node]
        before = self._value(node, other)
        self._put(node, target, other, source)
        if self._value(node, other) > before:
            return True
        self._put(node, source, other, target)
        return False

    def _put(self, node: int, place: int, other: int, left: int) -> None:
        self.place[node], self.node_at[place], self.node_at[left] = place, node, other
        if other >= 0:
            self.place[other] = left
