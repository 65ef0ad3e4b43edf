"""Compute the exact cost of an allgather by BFB with sets of ranks as the bits of integers.

As in :mod:`.evaluate`, the least load of the busiest in-link of node u at step t is the greatest, over sets of links,
of the shards confined to the set by the links in it. Here the shards that u gets at step t are an integer of N bits, as
are those that an in-link can bring. A union of links is a bitwise or, and its size a count of bits. So no table of all
pairs is made, and a network of 2,000 nodes with four links takes a tenth of a second.

A network that looks the same after a shift of all ranks by a period m needs m nodes: the sets of the others are those
of these, rotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import attrs

from collc.ir.topology import Topology

from .evaluate import load_unit

__all__ = ["MOST_LINKS", "Balls", "balls", "bits_cost", "bits_diameter", "period_of"]

#: links of a node up to which all sets of links are tried
MOST_LINKS = 8
#: the families whose graphs look the same after a shift: a set of offsets for each of the first ranks
_PERIODIC = ("polycirculant", "directed_polycirculant")


@attrs.frozen
class Balls:
    """What a breadth-first search from the first nodes of a period sees.

    ``reached[t][i]`` holds the nodes within t steps of node i, ``brought[t][i]`` for each in-link those that its tail
    has within t steps. ``unreached`` counts the pairs further apart than the limit.
    """

    nodes: int
    degree: int
    reached: Sequence[Sequence[int]]
    brought: Sequence[Sequence[Sequence[int]]]
    unreached: int

    @property
    def steps(self) -> int:
        """The number of steps searched: T_L if no pair is unreached."""
        return len(self.brought)

    @property
    def least_load(self) -> int:
        """A lower bound of :meth:`load`, quickly: the nodes of a step, shared by all links."""
        unit = load_unit(self.degree) // self.degree
        return unit * sum(max(map(_more, new, old)) for old, new in pairwise(self.reached))

    def load(self, most: int | None = None) -> int | None:
        """Return the loads of the busiest links of all steps, in load units; None as soon as they exceed ``most``."""
        total = 0
        for step, brought in enumerate(self.brought):
            before, after = self.reached[step], self.reached[step + 1]
            nodes = zip(before, after, brought, strict=True)
            total += max(_load(new ^ old, tails, self.degree) for old, new, tails in nodes)
            if most is not None and total > most:
                return None
        return total

    def bandwidth(self, load: int) -> Fraction:
        """Return T_B in units of M/B."""
        return Fraction(self.degree * load, load_unit(self.degree) * self.nodes)


def _more(new: int, old: int) -> int:
    return (new ^ old).bit_count()


def balls(tails: Sequence[Sequence[int]], nodes: int, degree: int, limit: int) -> Balls:
    """Search breadth first up to ``limit`` steps; ``tails`` are the tails of the in-links of nodes 0 .. period-1."""
    period, every = len(tails), (1 << nodes) - 1
    sources = [[(tail % period, tail - tail % period) for tail in own] for own in tails]
    reached: list[list[int]] = [[1 << node for node in range(period)]]
    brought: list[list[list[int]]] = []
    while len(brought) < limit:
        now = reached[-1]
        after: list[int] = []
        parts: list[list[int]] = []
        for node, own in enumerate(sources):
            found, links = now[node], list[int]()
            for like, shift in own:
                ball = now[like]
                if shift:
                    ball = (ball << shift | ball >> nodes - shift) & every
                links.append(ball)
                found |= ball
            after.append(found)
            parts.append(links)
        if after == now:
            break
        reached.append(after)
        brought.append(parts)
    return Balls(nodes, degree, reached, brought, sum(nodes - ball.bit_count() for ball in reached[-1]))


@lru_cache
def _sets(degree: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return (set, set without its lowest link, that link, 1 / links outside in load units) for all sets of links."""
    unit = load_unit(degree)
    return tuple(
        (some, some & (some - 1), (some & -some).bit_length() - 1, unit // (degree - some.bit_count()))
        for some in range(1, (1 << degree) - 1)
    )


def _load(fresh: int, brought: Sequence[int], degree: int) -> int:
    """Return the load of one node's busiest link, in load units: shards that no link of a set brings fit the others."""
    count = fresh.bit_count()
    most = count * (load_unit(degree) // degree)
    if not fresh:
        return 0
    own = [fresh & ball for ball in brought]
    counts = [ball.bit_count() for ball in own]
    if sum(counts) == count:  # each shard has one link, as in the first steps of most networks
        return max(counts) * load_unit(degree)
    union = [0] * (1 << degree)
    for some, rest, link, weight in _sets(degree):
        either = union[some] = union[rest] | own[link]
        load = (count - either.bit_count()) * weight
        if load > most:
            most = load
    return most


def period_of(topology: Topology) -> int:
    """Return a shift of all ranks that keeps the links, as the family of the topology says; otherwise all ranks."""
    origin = topology.origin
    if origin is not None and origin.name in _PERIODIC:
        return len(origin.arguments) - 1
    return topology.num_ranks


def bits_cost(topology: Topology) -> tuple[int, Fraction]:
    """Return (T_L, T_B) of an allgather by breadth first, as :func:`collc.passes.finder.evaluate.bfb_cost` does.

    Nodes have up to :data:`MOST_LINKS` links, all equal. Raises C0301 if the topology is not strongly connected.
    """
    found = _balls_of(topology)
    load = found.load()
    assert load is not None  # without a limit
    return found.steps, found.bandwidth(load)


def bits_diameter(topology: Topology) -> int:
    """Return the most hops between two nodes. Raises C0301 if the topology is not strongly connected."""
    return _balls_of(topology).steps


def _balls_of(topology: Topology) -> Balls:
    """Search to all nodes of the topology from one of each orbit of its shift."""
    degree, nodes = topology.degree or 0, topology.num_ranks
    links = topology.in_links[1].reshape(nodes, -1)[: period_of(topology)]
    found = balls(topology.src[links].tolist(), nodes, degree, nodes)
    if found.unreached:
        topology.require_connected("an allgather")
    return found
