"""The network: a directed multigraph of ranks and switches with exact bandwidths and latencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrays import Array, Columnar, as_column, distinct, lexsort
from .frozen import frozen
from .group import Group, Translations
from .links import LinkClass
from .node_names import node_text
from .ragged import ranges, starts
from .shown import clipped, counted, shown

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["LinkClass", "Origin", "Topology", "Translations", "renumbered"]

_MOST_TABLED = 1 << 12  # nodes up to which the diameter comes from the table of distances


@frozen(eq=False)
class Origin:
    """The family or operator that built a topology, and its arguments.

    Topologies among the arguments have their own origins, so operators can be undone: `expansion` schedules the base
    and expands its schedule.
    """

    name: str
    arguments: tuple[object, ...]
    depth: int = attrs.field(init=False)

    @depth.default
    def _depth(self) -> int:
        """The number of nested operators: 0 for a family."""
        return max([base.origin.depth + 1 if base.origin else 1 for base in self.bases], default=0)

    @property
    def times(self) -> int:
        """How often an operator was applied to its first operand: its second argument, or once."""
        times = self.arguments[1] if len(self.arguments) > 1 else 1
        return times if isinstance(times, int) else 1

    @property
    def bases(self) -> tuple[Topology, ...]:
        """The topologies it was built from."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Topology))


@frozen(eq=False)
class Topology(Columnar):
    """A network of ``num_ranks`` ranks (nodes 0 .. num_ranks-1) and ``num_switches`` switches (the nodes after).

    Links are rows of three columns: ``src``, ``dst`` (node numbers) and ``link_class`` (index into
    ``classes``). Parallel links are separate rows. A link may lead from a rank to itself (de Bruijn graphs have such
    links; they count in the degree and carry no data). ``unit`` is ``"link"`` if bandwidths are relative (1 = one
    link), and ``"B/s"`` if they are absolute.

    ``symmetry`` is a group with an element for every rank. The links out of rank r are numbers r*d .. r*d+d-1. Ranks
    multiplied by an element on the left map links to links, each to one of the same place among its rank's links.
    ``gamma`` (seconds) is the time in which a rank adds a received byte. ``epsilon`` (seconds) is the launch: the time
    of a call besides its steps. ``origin`` is not part of the network: equality and the textual form ignore it.

    Switches forward. ``multicast`` and ``reduces`` are node numbers of switches, ascending. The first also copy data to
    several links, the second also add data from several links. NVLink SHARP does both.

    >>> pair = Topology.from_links("pair", 2, [(0, 1), (1, 0)])
    >>> pair, pair.degree, pair.diameter
    (Topology(pair: 2 ranks, 2 links), 1, 1)
    """

    name: str
    num_ranks: int
    src: Array = attrs.field(converter=as_column)
    dst: Array = attrs.field(converter=as_column)
    num_switches: int = 0
    link_class: Array = attrs.field(converter=as_column, default=())
    classes: tuple[LinkClass, ...] = (LinkClass(),)
    unit: str = "link"
    node_names: tuple[str, ...] | None = None
    symmetry: Group | None = None
    origin: Origin | None = attrs.field(default=None, repr=False)
    gamma: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    multicast: tuple[int, ...] = ()
    reduces: tuple[int, ...] = ()

    SCALARS = (
        "name", "num_ranks", "num_switches", "classes", "unit", "names", "symmetry", "gamma", "epsilon", "multicast",
        "reduces",
    )  # fmt: skip
    COLUMNS = ("src", "dst", "link_class")

    def __attrs_post_init__(self) -> None:
        if len(self.link_class) == 0 and len(self.src):
            object.__setattr__(self, "link_class", as_column(np.zeros(len(self.src), dtype=np.uint8)))

    @cached_property
    def found(self) -> dict[Any, Any]:  # Any: each function has its own key and type
        """Cached results of functions of other modules, by name. No function changes a cached result."""
        return {}

    # ---- size and shape

    def __repr__(self) -> str:
        switches = f"{counted(self.num_switches, 'switch')}, " if self.num_switches else ""
        text = f"{clipped(self.name)}: {counted(self.num_ranks, 'rank')}, {switches}{counted(self.num_links, 'link')}"
        return shown(self, text)

    def _repr_html_(self) -> str:
        """Return the size of the network as a table, for notebooks."""
        from .html import html_table

        degree = "-" if self.degree is None else self.degree
        rows = [
            ("ranks", self.num_ranks), ("switches", self.num_switches), ("links", self.num_links), ("degree", degree),
        ]  # fmt: skip
        return html_table(self.name, (), rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the links as a data frame of pandas: ends by number and name, bandwidth in ``unit``, latency in s.

        Raises C0028 without pandas.
        """
        from .frames import dataframe

        kinds = {
            "src": "integer", "dst": "integer", "src_name": "text", "dst_name": "text", "bandwidth": "rational",
            "bandwidth_float": "number", "latency_s": "number",
        }  # fmt: skip
        each = [(kind.bandwidth, float(kind.bandwidth), float(kind.latency)) for kind in self.classes]
        ends = zip(self.src.tolist(), self.dst.tolist(), self.link_class.tolist(), strict=True)
        names = self.names
        cells = ((a, b, names[a], names[b], *each[kind]) for a, b, kind in ends)
        return dataframe(kinds, [dict(zip(kinds, row, strict=True)) for row in cells])

    @property
    def num_nodes(self) -> int:
        """Ranks and switches together."""
        return self.num_ranks + self.num_switches

    @property
    def num_links(self) -> int:
        """Directed links; parallel links count one by one."""
        return len(self.src)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The printed name of every node; plain numbers if none were given."""
        return self.node_names or tuple(str(n) for n in range(self.num_nodes))

    def node_text(self, node: int) -> str:
        """Return a node as the language writes it: its name, in quotes where needed; its number if it has no name."""
        return node_text(self.node_names[node]) if self.node_names else str(node)

    @property
    def in_network(self) -> bool:
        """Whether some switch multicasts or reduces."""
        return bool(self.multicast or self.reduces)

    @property
    def is_direct(self) -> bool:
        """Whether every node is a rank (no switches)."""
        return self.num_switches == 0

    @cached_property
    def out_degree(self) -> Array:
        """Links out of each node, self-loops included."""
        return np.bincount(self.src, minlength=self.num_nodes)

    @cached_property
    def in_degree(self) -> Array:
        """Links into each node, self-loops included."""
        return np.bincount(self.dst, minlength=self.num_nodes)

    @cached_property
    def degree(self) -> int | None:
        """The degree d if every rank has d links out and d links in, otherwise None."""
        if self.num_ranks == 0:
            return None
        both = np.concatenate([self.out_degree[: self.num_ranks], self.in_degree[: self.num_ranks]])
        return int(both[0]) if (both == both[0]).all() else None

    # ---- bandwidth and latency

    @property
    def is_uniform(self) -> bool:
        """Whether all links have the same bandwidth and latency."""
        return len({self.classes[c] for c in distinct(self.link_class)}) <= 1

    def bandwidth(self, link: int) -> Fraction:
        """Return a link's bandwidth, exact, in the topology's ``unit``."""
        kind: LinkClass = self.classes[self.link_class[link]]
        return kind.bandwidth

    def latency(self, link: int) -> Fraction:
        """Return a link's latency in seconds, exact."""
        kind: LinkClass = self.classes[self.link_class[link]]
        return kind.latency

    def egress(self, node: int) -> Fraction:
        """Total bandwidth out of one node."""
        return self._total(self.src, node)

    def ingress(self, node: int) -> Fraction:
        """Total bandwidth into one node."""
        return self._total(self.dst, node)

    def _total(self, ends: Array, node: int) -> Fraction:
        counts = np.bincount(self.link_class[ends == node], minlength=len(self.classes))
        return sum((c.bandwidth * int(n) for c, n in zip(self.classes, counts, strict=True)), Fraction(0))

    @cached_property
    def node_bandwidth(self) -> Fraction | None:
        """B of the papers: the total egress bandwidth of every rank; None if ranks differ.

        Ingress must be the same too, so that B bounds both sending and receiving.
        """
        seen = set()
        for ends in (self.src, self.dst):
            table = np.zeros((self.num_nodes, len(self.classes)), dtype=np.int64)
            np.add.at(table, (ends, self.link_class), 1)
            for row in set(map(tuple, table[: self.num_ranks].tolist())):
                seen.add(sum((c.bandwidth * n for c, n in zip(self.classes, row, strict=True)), Fraction(0)))
        return seen.pop() if len(seen) == 1 else None

    # ---- graph algorithms

    @cached_property
    def in_links(self) -> tuple[Array, Array]:
        """Links by head: ``(start, links)``; the links into node v are ``links[start[v]:start[v+1]]``, ascending."""
        return _rows_by(self.dst, self.num_nodes)

    @cached_property
    def out_links(self) -> tuple[Array, Array]:
        """Links by tail: ``(start, links)``; the links out of node v are ``links[start[v]:start[v+1]]``, ascending."""
        return _rows_by(self.src, self.num_nodes)

    @cached_property
    def distances(self) -> Array:
        """Hops from node v to node u at ``[v, u]`` (int16; -1 without a route). Switches count as hops.

        Breadth first from all sources at once: the set of sources that reach a node is a bitset.
        """
        n = self.num_nodes
        result = np.full((n, n), -1, dtype=np.int16)
        np.fill_diagonal(result, 0)
        for hops, heads, fresh in self._reached(n):
            bits = np.unpackbits(fresh.view(np.uint8), axis=1, bitorder="little")[:, :n]
            result[:, heads] += (hops + 1) * bits.T.astype(np.int16)
        return result

    def _reached(self, sources: int) -> Iterator[tuple[int, Array, Array]]:
        """Yield numbers of hops, the nodes with links into them, and for each the bitset of those of the first
        ``sources`` nodes that are at this distance."""
        reached = np.zeros((self.num_nodes, (sources + 63) // 64), dtype=np.uint64)
        own = np.arange(sources)
        reached[own, own // 64] = np.uint64(1) << (own % 64).astype(np.uint64)
        start, links = self.in_links
        heads = np.flatnonzero(start[1:] > start[:-1])
        tails, first = self.src[links], start[:-1][heads]
        for hops in range(1, self.num_nodes):
            arriving = np.bitwise_or.reduceat(reached[tails], first, axis=0) if len(heads) else reached[:0]
            fresh = arriving & ~reached[heads]
            if not fresh.any():
                break
            reached[heads] |= fresh
            yield hops, heads, fresh

    def hops_from(self, node: int) -> Array:
        """Return the hops from one node to every node (int64; -1 without a route), without the whole matrix."""
        return _hops(*self.out_links, self.dst, node)

    def hops_to(self, node: int) -> Array:
        """Return the hops from every node to one node (int64; -1 without a route), without the whole matrix."""
        return _hops(*self.in_links, self.src, node)

    @cached_property
    def diameter(self) -> int | None:
        """The most hops between two ranks; None if some rank cannot reach another.

        With a symmetry all ranks have the same distances, so those of rank 0 suffice. Of a large network no table of
        distances is made.
        """
        if not self.is_connected:
            return None
        if self.symmetry is not None and self.num_ranks:
            return int(self.hops_from(0).max())
        if self.num_nodes > _MOST_TABLED:
            reached = self._reached(self.num_ranks)
            return max((hops for hops, heads, fresh in reached if fresh[heads < self.num_ranks].any()), default=0)
        return int(self.distances[: self.num_ranks, : self.num_ranks].max(initial=0))

    @cached_property
    def total_hops(self) -> int:
        """The sum of hops over all pairs of ranks, all of which have a route; with a symmetry N times rank 0's."""
        if self.symmetry is not None and self.num_ranks:
            return self.num_ranks * int(self.hops_from(0).sum())
        return int(self.distances[: self.num_ranks, : self.num_ranks].sum(dtype=np.int64))

    @cached_property
    def is_connected(self) -> bool:
        """Whether every rank reaches every other: rank 0 reaches all, and all reach rank 0."""
        ranks = self.num_ranks
        return ranks <= 1 or bool((self.hops_from(0)[:ranks] >= 0).all() and (self.hops_to(0)[:ranks] >= 0).all())

    def require_connected(self, need: str) -> None:
        """Raise C0301, which names the ranks without a route and the missing links, unless every rank reaches every
        other.
        """
        if not self.is_connected:
            from .connectivity import not_connected

            raise not_connected(self, f"{need} needs a route from every rank to every other")

    def transpose(self) -> Topology:
        """Return the topology with every link reversed; link numbers do not change.

        A switch that multicasts in one reduces in the other.
        """
        return attrs.evolve(
            self, name=f"transpose({self.name})", src=self.dst, dst=self.src, symmetry=None,
            origin=Origin("transpose", (self,)), multicast=self.reduces, reduces=self.multicast,
        )  # fmt: skip

    @cached_property
    def reverse_links(self) -> Array | None:
        """For each link, its partner of the opposite direction and the same class, an involution; None if some link has
        none.

        If it exists, the topology equals its transpose, and schedules can be reversed on it.
        """
        forward = lexsort((np.arange(self.num_links), self.link_class, self.dst, self.src))
        backward = lexsort((np.arange(self.num_links), self.link_class, self.src, self.dst))
        same = (self.src[forward] == self.dst[backward]) & (self.dst[forward] == self.src[backward])
        if not (same & (self.link_class[forward] == self.link_class[backward])).all():
            return None
        partner = np.empty(self.num_links, dtype=np.int64)
        partner[forward] = backward
        return partner

    def with_links(self, bandwidth: Fraction | None, latency: Fraction | None) -> Topology:
        """Return the topology with every link given this bandwidth (bytes per second) and/or latency (seconds)."""
        kinds = [
            LinkClass(c.bandwidth if bandwidth is None else bandwidth, c.latency if latency is None else latency)
            for c in self.classes
        ]
        classes = tuple(dict.fromkeys(kinds))  # equal classes become one: links compare by class number
        index = {kind: i for i, kind in enumerate(classes)}
        number = np.array([index[kind] for kind in kinds], dtype=np.int64)
        unit = self.unit if bandwidth is None else "B/s"
        return attrs.evolve(self, classes=classes, link_class=number[self.link_class], unit=unit)

    # ---- networkx

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return a MultiDiGraph, from which :meth:`from_networkx` makes the same topology.

        Nodes are numbers with ``name`` and ``kind`` (``"rank"``, ``"switch"``), and ``multicast`` and ``reduces``
        (True) for switches that do so. Edges have the number of their link as
        key, and ``bandwidth`` and ``latency`` (seconds) as Fractions. The graph has ``name`` and ``unit``, and
        ``gamma`` and ``epsilon`` if they are not 0, but no symmetry and no origin.
        """
        from .exchange import graph_of

        return graph_of(self)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, name: str | None = None) -> Topology:
        """Return the topology of any networkx graph; an edge of an undirected graph becomes two opposite links.

        Node attributes are ``kind`` (``"rank"``, the default, or ``"switch"``), ``name``, and ``multicast`` and
        ``reduces`` (truth values, for switches). Edge attributes are
        ``bandwidth`` (default 1) and ``latency`` (seconds, default 0), exact rationals from numbers or text. The
        graph's ``unit`` is the unit of bandwidth; its ``gamma`` and ``epsilon`` are seconds (default 0). Other
        attributes are ignored. Ranks are numbered in the graph's node order, then switches; links in the graph's edge
        order, except that a graph of :meth:`to_networkx` keeps its link numbers. Raises C0302 for wrong numbers, C0303
        for a graph that is not a network.
        """
        from .exchange import network_of

        found = network_of(graph, name)
        network = cls.from_links(
            found.name, found.num_ranks, found.links, found.num_switches, unit=found.unit, node_names=found.names
        )
        return attrs.evolve(
            network, gamma=found.gamma, epsilon=found.epsilon, multicast=found.multicast, reduces=found.reduces
        )

    @classmethod
    def from_links(
        cls,
        name: str,
        num_ranks: int,
        links: Iterable[tuple[int, int] | tuple[int, int, LinkClass]],
        num_switches: int = 0,
        *,
        unit: str = "link",
        node_names: Sequence[str] | None = None,
        symmetry: Group | None = None,
    ) -> Topology:
        """Return the topology with these ``(src, dst)`` or ``(src, dst, LinkClass)`` rows, in this order."""
        rows = list(links)
        kinds = [row[2] if len(row) == 3 else LinkClass() for row in rows]
        classes = tuple(dict.fromkeys(kinds)) or (LinkClass(),)
        index = {kind: i for i, kind in enumerate(classes)}
        return cls(
            name=name, num_ranks=num_ranks, num_switches=num_switches,
            src=[row[0] for row in rows], dst=[row[1] for row in rows],
            link_class=[index[kind] for kind in kinds], classes=classes, unit=unit,
            node_names=tuple(node_names) if node_names is not None else None, symmetry=symmetry,
        )  # fmt: skip


def renumbered(nodes: tuple[int, ...], number: Array) -> tuple[int, ...]:
    """Return the numbers of some nodes in another topology, ascending; a node of a negative number is left out."""
    moved = number[list(nodes)] if nodes else number[:0]
    return tuple(sorted(moved[moved >= 0].tolist()))


def _rows_by(key: Array, count: int) -> tuple[Array, Array]:
    rows = lexsort([key])
    return starts(np.bincount(key, minlength=count)), rows


def _hops(start: Array, links: Array, ends: Array, root: int) -> Array:
    """Search breadth first from ``root`` along ``links[start[v]:start[v+1]]``, which end at ``ends[link]``."""
    hops = np.full(len(start) - 1, -1, dtype=np.int64)
    hops[root], front, distance = 0, np.array([root]), 0
    while len(front):
        distance += 1
        counts = start[front + 1] - start[front]
        reached = ends[links[ranges(start[front], counts)]].astype(np.int64)
        hops[reached[hops[reached] < 0]] = distance
        front = distinct(reached[hops[reached] == distance])
    return hops
