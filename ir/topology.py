"""The network: a directed multigraph of ranks and switches with exact bandwidths and latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrays import Columnar, as_column
from .diagnostic import error
from .group import Group, Translations

if TYPE_CHECKING:
    import networkx

__all__ = ["LinkClass", "Origin", "Topology", "Translations"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class LinkClass:
    """What links have in common: bandwidth (in the topology's unit) and latency (seconds), exact."""

    bandwidth: Fraction = Fraction(1)
    latency: Fraction = Fraction(0)


@attrs.frozen(eq=False)
class Origin:
    """How a topology came about: the family or operator that built it, and its arguments.

    Topologies among the arguments have origins of their own, so operators can be undone: expansions schedule the
    base and carry its schedule along.
    """

    name: str
    arguments: tuple[Any, ...]
    depth: int = attrs.field(init=False)

    @depth.default
    def _depth(self) -> int:
        """How many operators are on each other: 0 for a family."""
        return max([base.origin.depth + 1 if base.origin else 1 for base in self.bases], default=0)

    @property
    def bases(self) -> tuple[Topology, ...]:
        """The topologies it was built from."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Topology))


@attrs.frozen(eq=False)
class Topology(Columnar):
    """A network of ``num_ranks`` ranks (nodes 0 .. num_ranks-1) and ``num_switches`` switches (the nodes after).

    Links are rows of three columns: ``src``, ``dst`` (node numbers) and ``link_class`` (index into
    ``classes``). Parallel links are rows of their own; a link may join a rank to itself (de Bruijn graphs
    have such links; they count in the degree and carry nothing). ``unit`` is ``"link"`` where bandwidths are
    relative (1 = one link) and ``"B/s"`` where they are absolute.

    ``symmetry`` is a group with an element for every rank: the links out of rank r are numbers r*d .. r*d+d-1, and
    multiplying every rank by an element on the left maps links to links, each to one of the same place among its
    rank's links. ``origin`` is not part of what the topology is: equality and the textual form leave it out.
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

    SCALARS = ("name", "num_ranks", "num_switches", "classes", "unit", "names", "symmetry")
    COLUMNS = ("src", "dst", "link_class")

    def __attrs_post_init__(self) -> None:
        if len(self.link_class) == 0 and len(self.src):
            object.__setattr__(self, "link_class", as_column(np.zeros(len(self.src), dtype=np.uint8)))

    # ---- size and shape

    @property
    def num_nodes(self) -> int:
        return self.num_ranks + self.num_switches

    @property
    def num_links(self) -> int:
        return len(self.src)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The printed name of every node; plain numbers where none were given."""
        return self.node_names or tuple(str(n) for n in range(self.num_nodes))

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
        """The degree d where every rank has d links out and d links in; else nothing."""
        if self.num_ranks == 0:
            return None
        both = np.concatenate([self.out_degree[: self.num_ranks], self.in_degree[: self.num_ranks]])
        return int(both[0]) if (both == both[0]).all() else None

    # ---- bandwidth and latency

    @property
    def is_uniform(self) -> bool:
        """Whether all links have the same bandwidth and latency."""
        return len({self.classes[c] for c in np.unique(self.link_class)}) <= 1

    def bandwidth(self, link: int) -> Fraction:
        return self.classes[self.link_class[link]].bandwidth

    def latency(self, link: int) -> Fraction:
        return self.classes[self.link_class[link]].latency

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
        """B of the papers: the total egress bandwidth that every rank has, or nothing where ranks differ.

        Ingress must be the same too, so that B bounds both sending and receiving.
        """
        seen = set()
        for ends in (self.src, self.dst):
            table = np.zeros((self.num_nodes, len(self.classes)), dtype=np.int64)
            np.add.at(table, (ends, self.link_class), 1)
            for row in np.unique(table[: self.num_ranks], axis=0):
                seen.add(sum((c.bandwidth * int(n) for c, n in zip(self.classes, row, strict=True)), Fraction(0)))
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
        """Hops from node v to node u at ``[v, u]`` (int16; -1 where there is no path). Switches count as hops.

        Breadth first from all sources at once: the set of sources that reach a node is a bitset.
        """
        n = self.num_nodes
        reached = np.zeros((n, (n + 63) // 64), dtype=np.uint64)
        reached[np.arange(n), np.arange(n) // 64] = np.uint64(1) << (np.arange(n) % 64).astype(np.uint64)
        result = np.full((n, n), -1, dtype=np.int16)
        np.fill_diagonal(result, 0)
        start, links = self.in_links
        heads = np.flatnonzero(start[1:] > start[:-1])
        tails, first = self.src[links], start[:-1][heads]
        for hops in range(1, n):
            arriving = np.bitwise_or.reduceat(reached[tails], first, axis=0) if len(heads) else reached[:0]
            fresh = arriving & ~reached[heads]
            if not fresh.any():
                break
            reached[heads] |= fresh
            bits = np.unpackbits(fresh.view(np.uint8), axis=1, bitorder="little")[:, :n]
            result[:, heads] += (hops + 1) * bits.T.astype(np.int16)
        return result

    def hops_from(self, node: int) -> Array:
        """Return the hops from one node to every node (int64; -1 where there is no path), without the whole matrix."""
        return _hops(*self.out_links, self.dst, node)

    def hops_to(self, node: int) -> Array:
        """Return the hops from every node to one node (int64; -1 where there is no path), without the whole matrix."""
        return _hops(*self.in_links, self.src, node)

    @cached_property
    def diameter(self) -> int | None:
        """The most hops between two ranks, or nothing where some rank cannot reach another.

        With a symmetry all ranks have the same view, so rank 0's will do.
        """
        if not self.is_connected:
            return None
        if self.symmetry is not None and self.num_ranks:
            return int(self.hops_from(0).max())
        return int(self.distances[: self.num_ranks, : self.num_ranks].max(initial=0))

    @cached_property
    def total_hops(self) -> int:
        """The sum of hops over all pairs of ranks, all of which have a path; with a symmetry N times rank 0's."""
        if self.symmetry is not None and self.num_ranks:
            return self.num_ranks * int(self.hops_from(0).sum())
        return int(self.distances[: self.num_ranks, : self.num_ranks].sum(dtype=np.int64))

    @cached_property
    def is_connected(self) -> bool:
        """Whether every rank reaches every other: rank 0 reaches all, and all reach rank 0."""
        ranks = self.num_ranks
        return ranks <= 1 or bool((self.hops_from(0)[:ranks] >= 0).all() and (self.hops_to(0)[:ranks] >= 0).all())

    def require_connected(self, need: str) -> None:
        """Raise C0301 naming two ranks without a path unless every rank reaches every other."""
        if self.is_connected:
            return
        a, b = self._unreachable()
        raise error(
            "C0301",
            f"topology `{self.name}` is not strongly connected: "
            f"rank {self.names[a]} has no path to rank {self.names[b]}",
            notes=[f"{need} needs a path from every rank to every other"],
            hint="add the missing links, or write `<->` where a link should go both ways",
        )

    def _unreachable(self) -> tuple[int, int]:
        """Return the first two ranks without a path; there are two."""
        rank, ranks = 0, self.num_ranks
        if (self.hops_from(0)[:ranks] >= 0).all():  # then whoever reaches rank 0 reaches all
            rank = int(np.argmax(self.hops_to(0)[:ranks] < 0))
        return rank, int(np.argmax(self.hops_from(rank)[:ranks] < 0))

    def transpose(self) -> Topology:
        """Return the topology with every link turned round; link numbers stay."""
        return attrs.evolve(
            self, name=f"transpose({self.name})", src=self.dst, dst=self.src, symmetry=None,
            origin=Origin("transpose", (self,)),
        )  # fmt: skip

    @cached_property
    def reverse_links(self) -> Array | None:
        """For each link, its partner of the opposite direction and same class: an involution, or nothing.

        Where it exists the topology equals its transpose, and schedules can be run backwards on it.
        """
        mine = np.lexsort((np.arange(self.num_links), self.link_class, self.dst, self.src))
        theirs = np.lexsort((np.arange(self.num_links), self.link_class, self.src, self.dst))
        same = (self.src[mine] == self.dst[theirs]) & (self.dst[mine] == self.src[theirs])
        if not (same & (self.link_class[mine] == self.link_class[theirs])).all():
            return None
        partner = np.empty(self.num_links, dtype=np.int64)
        partner[mine] = theirs
        return partner

    def with_links(self, bandwidth: Fraction | None, latency: Fraction | None) -> Topology:
        """Return the topology with every link given this bandwidth (bytes per second) and/or latency (seconds)."""
        kinds = [
            LinkClass(c.bandwidth if bandwidth is None else bandwidth, c.latency if latency is None else latency)
            for c in self.classes
        ]
        classes = tuple(dict.fromkeys(kinds))  # classes that became alike are one: links compare by class number
        index = {kind: i for i, kind in enumerate(classes)}
        number = np.array([index[kind] for kind in kinds], dtype=np.int64)
        unit = self.unit if bandwidth is None else "B/s"
        return attrs.evolve(self, classes=classes, link_class=number[self.link_class], unit=unit)

    # ---- networkx

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return a MultiDiGraph: nodes have ``name`` and ``kind`` (rank, switch), edges ``bandwidth``, ``latency``."""
        import networkx

        graph = networkx.MultiDiGraph(name=self.name, unit=self.unit)
        for node in range(self.num_nodes):
            graph.add_node(node, name=self.names[node], kind="rank" if node < self.num_ranks else "switch")
        for link in range(self.num_links):
            kind = self.classes[self.link_class[link]]
            graph.add_edge(
                int(self.src[link]), int(self.dst[link]), link, bandwidth=kind.bandwidth, latency=kind.latency
            )
        return graph

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, name: str | None = None) -> Topology:
        """Return the topology of any networkx graph; undirected edges become two links.

        Node attribute ``kind`` (``"rank"`` unless given) tells switches; edge attributes ``bandwidth`` and
        ``latency`` are read as exact rationals. Ranks are numbered in the graph's node order, then switches; links
        in the graph's edge order, except that a graph of :meth:`to_networkx` keeps its link numbers.
        """
        nodes = list(graph.nodes(data=True))
        ranks = [n for n, a in nodes if a.get("kind", "rank") == "rank"]
        switches = [n for n, a in nodes if a.get("kind", "rank") != "rank"]
        number = {node: i for i, node in enumerate([*ranks, *switches])}
        rows: list[tuple[int, int, LinkClass]] = []
        for a, b, data in _edges(graph):
            between = f"edge {a!r} to {b!r}"
            bandwidth = _rational(data.get("bandwidth", 1), f"bandwidth of {between}")
            kind = LinkClass(bandwidth, _rational(data.get("latency", 0), f"latency of {between}", zero=True))
            rows.append((number[a], number[b], kind))
            if not graph.is_directed():
                rows.append((number[b], number[a], kind))
        names = tuple(str(graph.nodes[n].get("name", n)) for n in [*ranks, *switches])
        return cls.from_links(
            name or str(graph.graph.get("name") or "graph"), len(ranks), rows, len(switches),
            unit=graph.graph.get("unit", "link"), node_names=names,
        )  # fmt: skip

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


def _edges(graph: networkx.Graph) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Return the edges, in the order of their keys where those number all edges of the graph."""
    if graph.is_multigraph():
        keyed = list(graph.edges(keys=True, data=True))
        keys = [key for _, _, key, _ in keyed]
        if all(isinstance(key, int) for key in keys) and sorted(keys) == list(range(len(keys))):
            keyed.sort(key=lambda edge: edge[2])
        return [(a, b, data) for a, b, _, data in keyed]
    return list(graph.edges(data=True))


def _rational(value: Any, what: str, zero: bool = False) -> Fraction:
    """Return a positive (with ``zero``: not negative) number that a graph attribute holds, exactly."""
    try:
        number = Fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        number = Fraction(-1)
    if number < 0 or (number == 0 and not zero):
        need = "a number of at least 0" if zero else "a positive number"
        raise error("C0302", f"{what} is {value!r}, needed is {need}")
    return number


def _rows_by(key: Array, count: int) -> tuple[Array, Array]:
    rows = np.argsort(key, kind="stable")
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(key, minlength=count), out=start[1:])
    return start, rows


def _hops(start: Array, links: Array, ends: Array, root: int) -> Array:
    """Search breadth first from ``root`` along ``links[start[v]:start[v+1]]``, which end at ``ends[link]``."""
    hops = np.full(len(start) - 1, -1, dtype=np.int64)
    hops[root], front, distance = 0, np.array([root]), 0
    while len(front):
        distance += 1
        counts = start[front + 1] - start[front]
        rows = np.repeat(start[front] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        reached = ends[links[rows]].astype(np.int64)
        hops[reached[hops[reached] < 0]] = distance
        front = np.unique(reached[hops[reached] == distance])
    return hops
