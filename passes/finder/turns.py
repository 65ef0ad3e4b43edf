"""Turns of polycirculants: symmetries that multiply the places on the ring, and maybe exchange the classes of nodes.

Node a + m x is node x of class a. A turn moves it to node ``times`` x of class ``next[a]``. So the links of a graph
with this symmetry come in cycles, and one link of each gives all. The classes of one cycle are alike. That is worth
most for the least bandwidth time: all nodes must then have equally many nodes at each distance, and divide the data of
each step evenly over their links. With fewer kinds of nodes, random graphs are so more often. Moreover, if a power of
the turn keeps a class but not its links, the nodes of this class have links that are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from random import Random

from collc.ir.frozen import frozen

__all__ = ["Link", "Turn", "below", "completed", "turns"]

_ORDERS = 8  # the largest order of a turn
_UNITS = 2  # of one order
_CYCLES = 4  # ways to move classes, those of the fewest cycles
_TRIES = 40  # random links until a graph is given up
_SPECIAL = 8  # one in this number of links goes no places further, or half the ring, which few cycles keep

#: a node of the first period, and the node that it is linked to
Link = tuple[int, int]


@frozen
class Turn:
    """A symmetry of polycirculants: it multiplies places by ``times``, and moves class a to class ``next[a]``.

    Its ``order``-th power moves nothing.
    """

    times: int
    order: int
    next: tuple[int, ...]

    @property
    def cycles(self) -> int:
        """The number of cycles of classes.

        >>> Turn(4, 2, (1, 0, 2)).cycles
        2
        """
        return len(set(map(self._least, range(len(self.next)))))

    def image(self, node: int, nodes: int) -> int:
        """Return the image of a node.

        >>> [Turn(4, 2, (0, 2, 1)).image(node, 15) for node in range(6)]
        [0, 2, 1, 12, 14, 13]
        """
        m = len(self.next)
        return m * (node // m * self.times % (nodes // m)) + self.next[node % m]

    def cycle(self, link: Link, nodes: int) -> list[Link]:
        """Return the images of a link, moved back to the first period, each once in one of its directions."""
        found: dict[Link, None] = {}
        for _ in range(self.order):
            if link not in found and _reverse(link, nodes, len(self.next)) not in found:
                found[link] = None
            tail, head = (self.image(node, nodes) for node in link)
            back = tail - tail % len(self.next)
            link = tail - back, (head - back) % nodes
        return list(found)

    def _least(self, a: int) -> int:
        """Return the least class of a cycle."""
        found, least = self.next[a], a
        while found != a:
            found, least = self.next[found], min(found, least)
        return least


def turns(copies: int, m: int, degree: int) -> Iterator[Turn]:
    """Yield some turns of polycirculants with m classes of ``copies`` nodes, for each order those of the fewest cycles.

    The power of a turn that keeps a class exchanges the ``degree`` links of each node, or does nothing.

    >>> [(turn.times, turn.next) for turn in turns(5, 3, 4)][:2]
    [(4, (1, 0, 2)), (4, (0, 1, 2))]
    """
    for order in range(2, _ORDERS + 1):
        lengths = [length for length in range(order, 0, -1) if order % length == 0 and order <= degree * length]
        cycles = sorted(_sums(m, lengths), key=len)[:_CYCLES]
        for unit in _units(copies)[order]:
            for some in cycles:
                yield Turn(unit, order, _moved(some))


def completed(
    nodes: int, degree: int, turn: Turn, some: Sequence[Link], random: Random
) -> tuple[list[Link], list[Link]] | None:
    """Return ``some`` links with random ones, one of each cycle, and all links of a graph that the turn keeps.

    Return None if some node has more than ``degree`` links, or soon none fits. Links may be parallel.
    """
    m, chosen, links = len(turn.next), list(some), list[Link]()
    ends = [0] * m
    for link in some:
        if not _add(turn.cycle(link, nodes), nodes, degree, ends, links):
            return None
    for _ in range(_TRIES):
        free = [a for a in range(m) if ends[a] < degree]
        if not free:
            return chosen, links
        tail, head = free[below(len(free), random)], free[below(len(free), random)]
        place = below(nodes // m, random)
        if not below(_SPECIAL, random):
            place = 0 if nodes // m % 2 or below(2, random) else nodes // m // 2
        link = tail, head + m * place
        if _add(turn.cycle(link, nodes), nodes, degree, ends, links):
            chosen.append(link)
    return None


def below(bound: int, random: Random) -> int:
    """Return a number from 0 to bound - 1, the same for every version of Python."""
    return int(random.random() * bound)


def _add(cycle: Sequence[Link], nodes: int, degree: int, ends: list[int], links: list[Link]) -> bool:
    """Add a cycle of links, unless a node then has too many or is linked to itself; return whether they were added."""
    m, more = len(ends), [0] * len(ends)
    for link in cycle:
        tail, head = link
        if tail == head:
            return False
        more[tail] += 1
        if _reverse(link, nodes, m) != link:
            more[head % m] += 1
    if any(a + b > degree for a, b in zip(ends, more, strict=True)):
        return False
    ends[:] = (a + b for a, b in zip(ends, more, strict=True))
    links += cycle
    return True


def _reverse(link: Link, nodes: int, m: int) -> Link:
    """Return the link of the other direction, moved such that it begins in the first period."""
    tail, head = link
    return head % m, (tail - (head - head % m)) % nodes


@lru_cache
def _units(copies: int) -> dict[int, list[int]]:
    """Return the largest units of Z_copies of each order up to :data:`_ORDERS`."""
    found: dict[int, list[int]] = {order: [] for order in range(1, _ORDERS + 1)}
    for unit in range(copies - 1, 1, -1):
        power, order = unit, 1
        while power != 1 and order <= _ORDERS:
            power, order = power * unit % copies, order + 1
        if order <= _ORDERS and len(found[order]) < _UNITS:
            found[order].append(unit)
    return found


def _sums(total: int, parts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a total as a sum of parts, the first parts first."""
    if not total:
        yield ()
    for place, part in enumerate(parts):
        if part <= total:
            yield from ((part, *rest) for rest in _sums(total - part, parts[place:]))


def _moved(cycles: Sequence[int]) -> tuple[int, ...]:
    """Return the next class of each class, for cycles of these lengths."""
    found: list[int] = []
    for length in cycles:
        first = len(found)
        found += [*range(first + 1, first + length), first]
    return tuple(found)
