"""Ranks, switches and links of a network that may have equal variables in the allreduce program.

An optimum may be averaged over all automorphisms of the network. So ranks (links) that an automorphism exchanges may
have equal variables, and one of each class represents all. If every link has a reverse of the same bandwidth, an inward
tree is an outward tree of the reverse links, and averaging both directions leaves one half to find.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.bottleneck import whole_bandwidths
from collc.ir.graph.bypass import Bypass
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.graph.folding import Folding
from collc.ir.graph.isomorphism import automorphisms
from collc.ir.topology import Topology

__all__ = ["Classes", "classes"]

#: effort of the search for automorphisms, in links: well below a second
_EFFORT = 3_000_000


@attrs.frozen(eq=False)
class Classes:
    """The network with parallel links joined into arcs and without loops, and which variables are equal.

    ``arcs`` are (2, A) tails and heads, ``width[a]`` the bandwidth of an arc in whole units; a unit of the topology's
    bandwidth has ``scale`` of them. ``node[v]`` is the class of a node; ranks have the first ``num_kinds`` numbers.
    ``column[0, a]`` is the class of the bandwidth of arc a that outward trees have, ``column[1, a]`` that of inward
    trees. With ``mirrored``, that of inward trees is that of outward trees on the reverse arc. ``maps`` are the
    automorphisms by which nodes and arcs are equal.
    """

    num_ranks: int
    num_nodes: int
    arcs: Array
    width: tuple[int, ...]
    scale: Fraction
    node: Array
    column: Array
    mirrored: bool
    maps: tuple[Array, ...]

    @property
    def num_kinds(self) -> int:
        """The number of classes of ranks."""
        return int(self.node[: self.num_ranks].max()) + 1

    @property
    def num_columns(self) -> int:
        """The number of classes of the bandwidths that trees have on arcs."""
        return int(self.column.max(initial=-1)) + 1

    @property
    def halves(self) -> tuple[int, ...]:
        """The directions of trees that differ: 0 outward, 1 inward."""
        return (0,) if self.mirrored else (0, 1)

    @property
    def count(self) -> Array:
        """The number of ranks of every class."""
        return np.bincount(self.node[: self.num_ranks], minlength=self.num_kinds)

    def first_ranks(self) -> list[int]:
        """Return the first rank of every class."""
        first: list[int] = np.unique(self.node[: self.num_ranks], return_index=True)[1].tolist()
        return first

    def first_switches(self) -> list[int]:
        """Return the first switch of every class."""
        first: list[int] = np.unique(self.node[self.num_ranks :], return_index=True)[1].tolist()
        return [self.num_ranks + switch for switch in first]

    def crossing(self, nodes: Array, inward: bool) -> Array:
        """Return how many arcs of every column leave a set (a flag for every node), or ``inward`` enter it."""
        tails, heads = nodes[self.arcs[0]], nodes[self.arcs[1]]
        crossed = ~tails & heads if inward else tails & ~heads
        return np.bincount(self.column[int(inward), crossed], minlength=self.num_columns)

    def inside(self, nodes: Array) -> Array:
        """Return how many ranks of every class are in a set."""
        return np.bincount(self.node[np.flatnonzero(nodes[: self.num_ranks])], minlength=self.num_kinds)

    def balance(self, switch: int, inward: bool) -> Array:
        """Return the arcs of every column into a switch, less those out of it."""
        column, width = self.column[int(inward)], self.num_columns
        into = np.bincount(column[self.arcs[1] == switch], minlength=width)
        return into - np.bincount(column[self.arcs[0] == switch], minlength=width)

    def network(self, held: Sequence[int], inward: bool) -> tuple[FlowNetwork, Bypass]:
        """Return the network in which arcs have the whole numbers of their columns; ``inward`` turns arcs round.

        Switches between two nodes are left out of it.
        """
        tails, heads = (self.arcs[::-1] if inward else self.arcs).tolist()
        bypass = Bypass(self.num_ranks, self.num_nodes, tails, heads)
        return FlowNetwork(self.num_nodes, bypass.arcs([held[c] for c in self.column[int(inward)].tolist()])), bypass

    def folded(self, inward: bool) -> Folding:
        """Return the network for cuts before the first ranks, its arcs of the kinds of columns; ``inward`` as above."""
        arcs = self.arcs[::-1] if inward else self.arcs
        return Folding.of(self.num_ranks, self.node, arcs, self.column[int(inward)], self.first_ranks())


def classes(topology: Topology, multicast: Collection[int] = (), reduces: Collection[int] = ()) -> Classes:
    """Return the classes of a network whose switches ``multicast`` copy and whose switches ``reduces`` add."""
    able = np.zeros((2, topology.num_nodes), dtype=bool)
    able[0, list(multicast)] = able[1, list(reduces)] = True
    found = automorphisms(topology, _EFFORT)
    return by_maps(topology, [g for g in found if (able[:, g] == able).all()], bool((able[0] == able[1]).all()))


def by_maps(topology: Topology, maps: Sequence[Array], mirrored: bool) -> Classes:
    """Return the classes by automorphisms (maps of nodes); ``mirrored`` if arcs have reverses and may be exchanged."""
    n, nodes = topology.num_ranks, topology.num_nodes
    ends, width, scale = _joined(topology)
    code = ends[0] * nodes + ends[1]
    moved = [_moved(code, ends, nodes, g) for g in maps]
    back = _reverses(code, ends[1] * nodes + ends[0], width) if mirrored else None
    arcs = len(code)
    twice = [np.concatenate([places, places + arcs]) for places in moved]
    if back is not None:
        twice.append(np.concatenate([back + arcs, back]))
    column = orbits(2 * arcs, twice).reshape(2, arcs)
    ranks, switches = orbits(n, [g[:n] for g in maps]), orbits(nodes - n, [g[n:] - n for g in maps])
    node = np.concatenate([ranks, int(ranks.max(initial=-1)) + 1 + switches])
    return Classes(n, nodes, ends, tuple(width), scale, node, column, back is not None, tuple(maps))


def orbits(count: int, maps: Sequence[Array]) -> Array:
    """Return the orbit of 0 .. count-1 under permutations, numbered by their least members."""
    moves = [(moved, g[moved]) for g in maps for moved in [np.flatnonzero(g != np.arange(count))]]
    label, before = np.arange(count), None
    while before is None or not np.array_equal(before, label):
        before = label.copy()
        for origins, images in moves:
            low = np.minimum(label[origins], label[images])
            label[origins] = low
            label[images] = np.minimum(label[images], low)
        label = label[label]
    number: Array = np.unique(label, return_inverse=True)[1].ravel()
    return number


def _joined(topology: Topology) -> tuple[Array, list[int], Fraction]:
    """Return the pairs of different nodes with links, ascending, with the whole bandwidth of all links of each."""
    nodes, (whole, scale) = topology.num_nodes, whole_bandwidths(topology)
    code = topology.src.astype(np.int64) * nodes + topology.dst
    kept = topology.src != topology.dst
    pairs, place = np.unique(code[kept], return_inverse=True)
    width = [0] * len(pairs)
    for arc, link in zip(place.ravel().tolist(), np.flatnonzero(kept).tolist(), strict=True):
        width[arc] += whole[link]
    return np.stack([pairs // nodes, pairs % nodes]), width, scale


def _reverses(code: Array, reverse: Array, width: list[int]) -> Array | None:
    """Return the opposite arc of every arc, or None unless all exist with the same bandwidth."""
    if not np.array_equal(np.sort(reverse), code):
        return None
    back = _places(code, reverse)
    return back if all(width[i] == width[j] for i, j in enumerate(back.tolist())) else None


def _moved(code: Array, ends: Array, nodes: int, g: Array) -> Array:
    """Return the arc that an automorphism maps every arc to."""
    found = np.arange(len(code))
    away = g != np.arange(nodes)
    some = np.flatnonzero(away[ends[0]] | away[ends[1]])
    found[some] = _places(code, g[ends[0, some]] * nodes + g[ends[1, some]])
    return found


def _places(code: Array, moved: Array) -> Array:
    """Return the places of the moved codes among the ascending codes."""
    return np.searchsorted(code, moved)
