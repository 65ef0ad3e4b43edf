"""Groups on one network, and which of their links are equivalent.

An optimal division may be averaged over all automorphisms of the network that map groups to groups. So a link of a
group and its images have one share.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.graph.isomorphism import automorphisms, link_map
from collc.ir.graph.members import Inside
from collc.ir.links import LinkClass
from collc.ir.ragged import starts
from collc.ir.topology import Topology

__all__ = ["Classes", "classes_of"]

_EFFORT = 30_000_000


@attrs.frozen(eq=False)
class Classes:
    """The orbits of groups, of links, and of the links of groups.

    ``group[i]`` is the kind of group i, ``link[e]`` that of link e of the network; ``share[i][j]`` is the kind of link
    j of group i's network. ``maps`` are automorphisms (of nodes, of links, of groups) that generate them.
    """

    group: Array
    link: Array
    share: tuple[Array, ...]
    maps: tuple[tuple[Array, Array, Array], ...]

    @property
    def first(self) -> list[int]:
        """The first group of each kind."""
        found: list[int] = np.unique(self.group, return_index=True)[1].tolist()
        return found


def classes_of(topology: Topology, networks: Sequence[Inside], collectives: Sequence[Collective]) -> Classes:
    """Return the orbits under automorphisms of the network that map groups to groups of equal collectives."""
    maps = tuple(_maps(topology, collectives)) if _alike(collectives) else ()
    place: dict[tuple[int, int], int] = {}
    for number, network in enumerate(networks):
        for link in network.links.tolist():
            place[number, link] = len(place)
    moved = [_moved(place, groups, links) for _, links, groups in maps]
    kept = [(one, pairs) for one, pairs in zip(maps, moved, strict=True) if pairs is not None]
    share = _orbits(len(place), [pairs for _, pairs in kept])
    ends = starts([len(network.links) for network in networks])
    return Classes(
        _orbits(len(collectives), [groups for (_, _, groups), _ in kept]),
        _orbits(topology.num_links, [links for (_, links, _), _ in kept]),
        tuple(share[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)),
        tuple(one for one, _ in kept),
    )  # fmt: skip


def _alike(collectives: Sequence[Collective]) -> bool:
    """Return whether some group may be the image of another, or of itself: members must be exchangeable."""
    return all(one.weights is None and one.pre is None for one in collectives)


def _maps(topology: Topology, collectives: Sequence[Collective]) -> list[tuple[Array, Array, Array]]:
    """Return automorphisms of the network with a further node for each group, beside its members."""
    nodes, links = topology.num_nodes, topology.num_links
    kinds = [_key(one) for one in collectives]
    number = {kind: place for place, kind in enumerate(dict.fromkeys(kinds))}
    width = max(kind.bandwidth for kind in topology.classes) + 1
    rows = [[one.ranks.tolist(), [nodes + i] * one.num_members, [number[kinds[i]]] * one.num_members]
            for i, one in enumerate(collectives)]  # fmt: skip
    roots = [(one.root, nodes + i) for i, one in enumerate(collectives) if one.root is not None]
    src = [*(r for row in rows for r in row[0]), *(root for root, _ in roots)]
    dst = [*(g for row in rows for g in row[1]), *(group for _, group in roots)]
    kind = [*(k for row in rows for k in row[2]), *(len(number) for _ in roots)]
    beside = tuple(LinkClass(width + Fraction(k)) for k in range(len(number) + 1))
    grown = Topology(
        name="groups", num_ranks=topology.num_ranks, num_switches=topology.num_switches + len(collectives),
        src=np.concatenate([topology.src.astype(np.int64), np.array(src, dtype=np.int64)]),
        dst=np.concatenate([topology.dst.astype(np.int64), np.array(dst, dtype=np.int64)]),
        link_class=np.concatenate([
            topology.link_class.astype(np.int64), np.array(kind, dtype=np.int64) + len(topology.classes),
        ]),
        classes=(*topology.classes, *beside), unit=topology.unit, multicast=topology.multicast,
        reduces=topology.reduces,
    )  # fmt: skip
    found = []
    for one in automorphisms(grown, _EFFORT):
        moved = link_map(topology, topology, one[:nodes])
        if moved is not None:
            found.append((one[:nodes], moved[:links], one[nodes:] - nodes))
    return found


def _key(collective: Collective) -> tuple[object, ...]:
    return collective.kind, collective.num_members, collective.size, collective.op, collective.dtype


def _moved(place: dict[tuple[int, int], int], groups: Array, links: Array) -> Array | None:
    """Return where a map takes each link of each group; None if it takes one where the group has no link."""
    there, moved = groups.tolist(), links.tolist()
    found = [place.get((there[group], moved[link]), -1) for group, link in place]
    return None if -1 in found else np.array(found, dtype=np.int64)


def _orbits(count: int, maps: Sequence[Array]) -> Array:
    """Return the orbit of each number under permutations; orbits are numbered by their least numbers."""
    label = np.arange(count)
    while True:
        before = label.copy()
        for one in maps:
            label = np.minimum(label, label[one])
            np.minimum.at(label, one, label.copy())
        label = label[label]
        if np.array_equal(before, label):
            return np.unique(label, return_inverse=True)[1].ravel()
