"""The NICs of the boxes of a cluster, and the routes that stay in a box, pass its NICs, or cross the fabric.

NCCL sees a node of a cluster as GPUs, NICs, and the switches between them. Here the same follows from names and links:

* *Boxes* are ranks with one host in their names: ``HOST/gpu0``, or ``gpu[BOX, 0]`` in the families of machines. Without
  such names all ranks are one box if there are no switches, or if one is named ``fabric``, as in a node that was
  described alone. Otherwise boxes are those of :func:`boxes_of`.
* A *switch* belongs to the box that is nearest to it. If several boxes are equally near, it is part of the fabric. If
  switches have hosts in their names, the name decides; in a single box the switches named ``fabric`` are the fabric.
* A *NIC* is an exit of a box: a node of the box, and its neighbour outside.

Routes are pairs of neighbours. They pass switches, never ranks: a GPU does not forward what it does not reduce.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..frozen import frozen
from ..shown import counted
from ..topology import Topology
from .boxes import boxes_of

__all__ = ["Cabling", "Nic", "Pair", "cabling"]

#: the two ends of a link: parallel links are one pair
Pair = tuple[int, int]
#: a route: its pairs, from the sender to the receiver
Path = tuple[Pair, ...]

_FABRIC = "fabric"


@frozen
class Nic:
    """An exit and entry of a box: ``node`` of the box, and ``outside``, its neighbour.

    ``number`` counts the NICs of a box, ascending by node and neighbour.
    """

    box: int
    number: int
    node: int
    outside: int


@frozen(eq=False)
class Cabling:
    """The boxes of a network (ascending by their lowest rank), their NICs, and routes.

    ``box_of`` maps every node to its box, and nodes of the fabric to -1. ``rule`` says how the boxes were found.
    """

    topology: Topology
    boxes: tuple[tuple[int, ...], ...]
    box_of: Array
    rule: str

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def text(self) -> str:
        """The boxes and NICs in words, for remarks and messages.

        >>> from collc.frontends.coll import topology
        >>> cabling(topology("dgx_a100(2, 2)")).text
        '2 boxes of 8 ranks with 8 NICs each, by their names'
        """
        sizes, nics = ({len(one) for one in many} for many in (self.boxes, self.nics))
        size, number = ("to".join(f" {one} " for one in sorted({min(s), max(s)})).strip() for s in (sizes, nics))
        each = " each" if len(self) > 1 else ""
        with_nics = f" with {number} NIC{'s' * (number != '1')}{each}" if number != "0" else ""
        return f"{counted(len(self), 'box')} of {size} rank{'s' * (size != '1')}{with_nics}, {self.rule}"

    @cached_property
    def nics(self) -> tuple[tuple[Nic, ...], ...]:
        """The NICs of every box."""
        found: list[list[Pair]] = [[] for _ in self.boxes]
        for tail, head in self._pairs:
            for node, outside in ((tail, head), (head, tail)):
                box = int(self.box_of[node])
                if box >= 0 and self.box_of[outside] != box:
                    found[box].append((node, outside))
        return tuple(
            tuple(Nic(box, number, *ends) for number, ends in enumerate(sorted(set(ports))))
            for box, ports in enumerate(found)
        )

    def inside(self, src: int, dst: int) -> Path | None:
        """Return the shortest route between two ranks, or a rank and a NIC's node, that stays in their box."""
        box = self.box_of[src]
        if self.box_of[dst] != box:
            return None
        return self._trees(src, lambda node: bool(self.box_of[node] == box)).get(dst)

    def out(self, rank: int, nic: Nic) -> Path | None:
        """Return the route from a rank through a NIC of its box to the NIC's neighbour; None if there is none."""
        last = nic.node, nic.outside
        path = self.inside(rank, nic.node) if self._serves(nic, rank) else None
        return None if path is None or last not in self._pair_set else (*path, last)

    def into(self, nic: Nic, rank: int) -> Path | None:
        """Return the route from a NIC's neighbour through the NIC to a rank of its box; None if there is none."""
        first = nic.outside, nic.node
        path = self.inside(nic.node, rank) if self._serves(nic, rank) else None
        return None if path is None or first not in self._pair_set else (first, *path)

    def _serves(self, nic: Nic, rank: int) -> bool:
        """Return whether a rank may use a NIC: a port of a rank is for this rank alone."""
        return nic.node >= self.topology.num_ranks or nic.node == rank

    def across(self, leaving: Nic, entering: Nic) -> Path | None:
        """Return the route over the fabric between the neighbours of two NICs; None if there is none.

        If a cable joins the NICs, the route has no pair, and :meth:`crossing` counts the cable once.
        """
        if (leaving.node, leaving.outside) == (entering.outside, entering.node):
            return ()
        ends = leaving.outside, entering.outside
        if (self.box_of[list(ends)] >= 0).any():
            return None
        return self._trees(ends[0], lambda node: bool(self.box_of[node] < 0)).get(ends[1])

    def crossing(self, src: int, leaving: Nic, entering: Nic, dst: int) -> Path | None:
        """Return the route between ranks of two boxes by these NICs; None if there is none."""
        out, between, into = self.out(src, leaving), self.across(leaving, entering), self.into(entering, dst)
        if out is None or between is None or into is None:
            return None
        return out + (into[1:] if leaving.node == entering.outside else between + into)

    # ---- how routes are found

    @cached_property
    def _pairs(self) -> list[Pair]:
        ends = np.unique(np.stack([self.topology.src, self.topology.dst]).astype(np.int64), axis=1)
        return [(a, b) for a, b in ends.T.tolist() if a != b]

    @cached_property
    def _pair_set(self) -> frozenset[Pair]:
        return frozenset(self._pairs)

    @cached_property
    def _next(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(self.topology.num_nodes)]
        for tail, head in self._pairs:
            found[tail].append(head)
        return found

    @cached_property
    def _known(self) -> dict[int, dict[int, Path]]:
        return {}

    def _trees(self, src: int, kept: Callable[[int], bool]) -> dict[int, Path]:
        """Return the shortest routes from a node to all that it reaches over kept nodes, through switches only."""
        if src not in self._known:
            found: dict[int, Path] = {src: ()}
            front = deque([src])
            while front:
                node = front.popleft()
                if node != src and node < self.topology.num_ranks:
                    continue
                for other in self._next[node]:
                    if other not in found and kept(other):
                        found[other] = (*found[node], (node, other))
                        front.append(other)
            self._known[src] = found
        return self._known[src]


def cabling(topology: Topology, size: int | None = None) -> Cabling:
    """Return the boxes of a network and their NICs; with ``size``, every ``size`` ranks are a box.

    >>> from collc.frontends.coll import topology
    >>> [len(nics) for nics in cabling(topology("mi250(2)")).nics], len(cabling(topology("biring(6)"), 1))
    ([16, 16], 6)
    """
    groups, rule = _groups(topology, size)
    box_of = np.full(topology.num_nodes, -1, dtype=np.int64)
    for box, ranks in enumerate(groups):
        box_of[list(ranks)] = box
    switches = topology.names[topology.num_ranks :]
    if size is None and any("/" in name for name in topology.names[: topology.num_ranks]):
        number = {_host(topology.names[ranks[0]]): box for box, ranks in enumerate(groups)}
        box_of[topology.num_ranks :] = [number.get(_host(name), -1) for name in switches]
    elif len(groups) == 1:
        box_of[topology.num_ranks :] = [-1 if _is_fabric(name) else 0 for name in switches]
    else:
        _place_switches(topology, box_of)
    return Cabling(topology, groups, box_of, rule)


def _groups(topology: Topology, size: int | None) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Return the ranks of every box, and by which rule they were found."""
    ranks = range(topology.num_ranks)
    if size is not None:
        starts = range(0, topology.num_ranks, size)
        return tuple(tuple(ranks[start : start + size]) for start in starts), f"{counted(size, 'rank')} a box"
    hosts = [_host(name) for name in topology.names[: topology.num_ranks]]
    if ranks and None not in hosts:
        return tuple(tuple(r for r in ranks if hosts[r] == host) for host in dict.fromkeys(hosts)), "by their names"
    alone = topology.is_direct or any(map(_is_fabric, topology.names[topology.num_ranks :]))
    found = None if alone else boxes_of(topology)
    return ((tuple(ranks),), "all ranks") if found is None else (found.ranks, found.rule)


def _is_fabric(name: str) -> bool:
    return re.split(r"[/\[]", name)[0] == _FABRIC


def _host(name: str) -> str | None:
    """Return the host in a name: what is before a slash, or the first of two indices.

    >>> _host("a1/gpu0"), _host("gpu[3, 7]"), _host("gpu[3]")
    ('a1', 'gpu[3', None)
    """
    for sign in ("/", ", "):
        if sign in name and (sign == "/" or name.startswith("gpu[")):
            return name.split(sign, 1)[0]
    return None


def _place_switches(topology: Topology, box_of: Array) -> None:
    """Give every switch the box that is nearest to it; those with several nearest boxes stay in the fabric.

    Breadth first from all ranks, over links in either direction.
    """
    beside = [set[int]() for _ in range(topology.num_nodes)]
    for a, b in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        beside[a].add(b)
        beside[b].add(a)
    nearest: dict[int, set[int]] = {rank: {int(box_of[rank])} for rank in range(topology.num_ranks)}
    front: Sequence[int] = range(topology.num_ranks)
    while front:
        reached: dict[int, set[int]] = {}
        for node, other in _steps(front, beside):
            if other not in nearest:
                reached.setdefault(other, set()).update(nearest[node])
        nearest.update(reached)
        front = sorted(reached)
    for switch in range(topology.num_ranks, topology.num_nodes):
        found = nearest.get(switch, set())
        box_of[switch] = min(found) if len(found) == 1 else -1


def _steps(front: Sequence[int], beside: Sequence[set[int]]) -> Iterator[Pair]:
    for node in front:
        for other in beside[node]:
            yield node, other
