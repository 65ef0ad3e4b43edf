"""Hypothesis strategies for the data structures of the compiler, built from small integers so that they shrink.

``*_schedules``, ``forests`` are correct by construction unless their name says ``any_``; those are only well formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, zip_longest

import numpy as np
from hypothesis import strategies as st

from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Action, Forest, Routes, Schedule
from collc.ir.topology import LinkClass, Topology, Translations

# ---- topologies


def texts() -> st.SearchStrategy[str]:
    """Any text at all, with a taste for what printers get wrong."""
    awkward = st.sampled_from(["", '"', "\\", "\n", "a b", "}", "{", "#", "\r", "\u2028", "\ud800", "é", "\x00", "😀"])
    return st.lists(awkward | st.text(max_size=3), max_size=4).map("".join)


def fractions(least: int = 0) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, 10**12), st.integers(1, 10**9))


def link_classes() -> st.SearchStrategy[LinkClass]:
    return st.builds(LinkClass, fractions(1), fractions(0))


@st.composite
def topologies(
    draw: st.DrawFn, max_ranks: int = 6, max_switches: int = 3, max_links: int = 24, named: bool = False
) -> Topology:
    """Any directed multigraph: unconnected, with self-loops, parallel links, switches, classes that nobody uses."""
    ranks = draw(st.integers(1, max_ranks))
    switches = draw(st.integers(0, max_switches))
    node = st.integers(0, ranks + switches - 1)
    ends = draw(st.lists(st.tuples(node, node), max_size=max_links))
    classes = draw(st.lists(link_classes(), min_size=1, max_size=3))
    kinds = [draw(st.integers(0, len(classes) - 1)) for _ in ends]
    names = None
    if named and draw(st.booleans()):
        names = tuple(draw(st.lists(texts(), min_size=ranks + switches, max_size=ranks + switches)))
    able = st.sets(st.integers(ranks, ranks + switches - 1)).map(sorted).map(tuple) if switches else st.just(())
    return Topology(
        draw(texts()) if named else "any", ranks, [a for a, _ in ends], [b for _, b in ends], switches,
        link_class=kinds, classes=tuple(classes), unit=draw(st.sampled_from(["link", "B/s"])), node_names=names,
        gamma=draw(st.just(Fraction(0)) | fractions()), epsilon=draw(st.just(Fraction(0)) | fractions()),
        multicast=draw(st.just(()) | able), reduces=draw(st.just(()) | able),
    )  # fmt: skip


@st.composite
def connected(draw: st.DrawFn, min_ranks: int = 1, max_ranks: int = 6, extra: int = 8) -> Topology:
    """A strongly connected network of ranks: a cycle through all, and any links besides."""
    ranks = draw(st.integers(min_ranks, max_ranks))
    order = draw(st.permutations(range(ranks)))
    node = st.integers(0, ranks - 1)
    cycle = [(a, b) for a, b in zip(order, [*order[1:], order[0]], strict=True) if a != b]
    return Topology.from_links("connected", ranks, [*cycle, *draw(st.lists(st.tuples(node, node), max_size=extra))])


@st.composite
def regular(draw: st.DrawFn, max_ranks: int = 7, max_degree: int = 3) -> Topology:
    """A strongly connected network in which all ranks have d links out and d in: d permutations, one of them a cycle.

    Permutations have fixed points and agree with one another, so there are self-loops and parallel links.
    """
    ranks = draw(st.integers(2, max_ranks))
    order = draw(st.permutations(range(ranks)))
    links = list(zip(order, [*order[1:], order[0]], strict=True))
    for _ in range(draw(st.integers(0, max_degree - 1))):
        links += enumerate(draw(st.permutations(range(ranks))))
    return Topology.from_links("regular", ranks, sorted(links))


def translations(shape: Sequence[int], generators: Iterable[Sequence[int]], name: str) -> Topology:
    """Return the Cayley graph of Z_a x Z_b x ..: a link from every vector to itself plus each generator."""
    symmetry = Translations(tuple(shape))
    ranks = np.arange(int(np.prod(shape, dtype=np.int64)))
    steps = [int(np.ravel_multi_index([g % s for g, s in zip(v, shape, strict=True)], shape)) for v in generators]
    dst = np.stack([symmetry.translate(ranks, np.array(step)) for step in steps], axis=1) if steps else ranks[:, None]
    return Topology(name, len(ranks), np.repeat(ranks, dst.shape[1]), dst.ravel(), symmetry=symmetry)


def uniring(ranks: int, degree: int = 1) -> Topology:
    return translations([ranks], [[1]] * degree, f"uniring({ranks}, {degree})")


def torus(*shape: int) -> Topology:
    """Return the torus that is 2D-regular: a dimension of 2 has two parallel links each way."""
    axes = np.eye(len(shape), dtype=int)
    return translations(shape, [*axes, *-axes], f"torus{shape}")


def complete(ranks: int) -> Topology:
    return translations([ranks], [[k] for k in range(1, ranks)] or [[0]], f"complete({ranks})")


def hypercube(dimension: int) -> Topology:
    return translations([2] * dimension, np.eye(dimension, dtype=int), f"hypercube({dimension})")


def star(ranks: int) -> Topology:
    """Return ranks around one switch; link r leads up from rank r, link ranks + r down to it."""
    up = [(r, ranks) for r in range(ranks)]
    return Topology.from_links(f"star({ranks})", ranks, [*up, *((b, a) for a, b in up)], 1)


def families() -> st.SearchStrategy[Topology]:
    """Small members of the families that have names, all with their symmetry."""
    return st.one_of(
        st.builds(uniring, st.integers(2, 7), st.integers(1, 3)),
        st.lists(st.integers(2, 4), min_size=1, max_size=2).map(lambda shape: torus(*shape)),
        st.integers(2, 6).map(complete),
        st.integers(1, 3).map(hypercube),
    )


def networks() -> st.SearchStrategy[Topology]:
    """Strongly connected networks of ranks, and a star of them round a switch."""
    return st.one_of(families(), regular(), connected(), st.integers(2, 5).map(star))


# ---- collectives


@st.composite
def collectives(draw: st.DrawFn, ranks: int | None = None, kinds: Sequence[str] = KINDS) -> Collective:
    num_ranks = ranks if ranks is not None else draw(st.integers(1, 6))
    kind = draw(st.sampled_from(list(kinds)))
    root = draw(st.integers(0, num_ranks - 1)) if kind in ROOTED else None
    size = draw(st.none() | st.integers(0, 2**40))
    words = st.sampled_from(["sum", "max", "float32", "bfloat16"]) | texts()
    return Collective(kind, num_ranks, root, size, draw(words), draw(words))


# ---- schedules that are correct


def rank_routes(topology: Topology) -> Routes:
    """Return all routes from rank to rank over one link, or over two with a switch between."""
    ranks, src, dst = topology.num_ranks, topology.src.tolist(), topology.dst.tolist()
    direct = [[k] for k in range(len(src)) if src[k] < ranks and dst[k] < ranks and src[k] != dst[k]]
    through = [
        [a, b] for a in range(len(src)) for b in range(len(src))
        if src[a] < ranks <= dst[a] == src[b] and dst[b] < ranks and src[a] != dst[b]
    ]  # fmt: skip
    return Routes.of(direct + through)


class _Tree:
    """A random spanning tree: ``rows`` of (rank nearer the root, rank further, route), nearer ones first."""

    def __init__(self, draw: st.DrawFn, root: int, hops: Sequence[tuple[int, int, int]], shallow: bool):
        self.depth, self.rows = {root: 0}, []
        while True:
            open_hops = [hop for hop in hops if hop[0] in self.depth and hop[1] not in self.depth]
            if not open_hops:
                break
            if shallow:
                open_hops = [h for h in open_hops if self.depth[h[0]] == self.depth[open_hops[0][0]]]
            near, far, route = draw(st.sampled_from(open_hops))
            self.depth[far] = self.depth[near] + 1
            self.rows.append((near, far, route))

    def path_to(self, rank: int) -> list[tuple[int, int, int]]:
        above = {far: (near, far, route) for near, far, route in self.rows}
        path = []
        while rank in above:
            path.append(above[rank])
            rank = above[rank][0]
        return path


class _Builder:
    """Rows (step, action, shard, lo, hi, route) of a schedule, gathered tree by tree."""

    def __init__(self, draw: st.DrawFn, topology: Topology):
        self.draw, self.routes = draw, rank_routes(topology)
        tails = self.routes.tails(topology).tolist() if len(self.routes) else []
        heads = self.routes.heads(topology).tolist() if len(self.routes) else []
        self.out = [(a, b, k) for k, (a, b) in enumerate(zip(tails, heads, strict=True))]
        self.back = [(b, a, k) for a, b, k in self.out]
        self.rows: list[tuple[int, int, int, int, int, int]] = []

    def tree(self, root: int, inward: bool = False) -> _Tree:
        return _Tree(self.draw, root, self.back if inward else self.out, self.draw(st.booleans()))

    def spread(self, root: int, shard: int, lo: int, hi: int, begin: int = 0, to: int | None = None) -> None:
        """Copy from the root to all ranks, or to one."""
        tree = self.tree(root)
        for _, far, route in tree.rows if to is None else tree.path_to(to):
            self.rows.append((begin + tree.depth[far] - 1, Action.COPY, shard, lo, hi, route))

    def gather_in(self, root: int, shard: int, lo: int, hi: int, end: int) -> None:
        """Reduce from all ranks to the root, which has the result after ``end`` steps."""
        tree = self.tree(root, inward=True)
        for _, far, route in tree.rows:
            self.rows.append((end - tree.depth[far], Action.REDUCE, shard, lo, hi, route))

    def one(self, c: Collective, shard: int, lo: int, hi: int) -> None:
        """Add what a collective asks for a shard's parts."""
        n, root = c.num_ranks, c.root if c.root is not None else shard
        match c.kind:
            case "allgather" | "broadcast":
                self.spread(root, shard, lo, hi)
            case "reduce-scatter" | "reduce":
                self.gather_in(root, shard, lo, hi, n)
            case "allreduce":
                self.gather_in(shard, shard, lo, hi, n)
                self.spread(shard, shard, lo, hi, begin=n)
            case "scatter":
                self.spread(root, shard, lo, hi, to=shard)
            case "gather":
                self.spread(shard, shard, lo, hi, to=root)
            case _:
                self.spread(shard // n, shard, lo, hi, to=shard % n)


def pieces(draw: st.DrawFn, parts: int) -> list[tuple[int, int]]:
    """Return intervals that cover 0 .. parts."""
    cuts = sorted({0, parts, *draw(st.lists(st.integers(0, parts), max_size=2))})
    return list(pairwise(cuts))


@st.composite
def schedules(
    draw: st.DrawFn,
    topology: Topology | st.SearchStrategy[Topology] | None = None,
    kinds: Sequence[str] = KINDS,
) -> Schedule:
    """A correct schedule on a strongly connected network: random trees for every piece of every shard."""
    network = topology if isinstance(topology, Topology) else draw(topology if topology is not None else networks())
    collective = draw(collectives(network.num_ranks, kinds))
    parts, builder = draw(st.integers(1, 4)), _Builder(draw, network)
    for shard in range(collective.num_shards):
        for lo, hi in pieces(draw, parts):
            builder.one(collective, shard, lo, hi)
    return step_schedule(network, collective, parts, builder.rows, builder.routes)


def step_schedule(
    topology: Topology, collective: Collective, parts: int, rows: Iterable[Sequence[int]], routes: Routes
) -> Schedule:
    """Return the schedule of (step, action, shard, lo, hi, route) rows, in order, steps renumbered without gaps."""
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 6)
    if len(table):
        table[:, 0] = np.unique(table[:, 0], return_inverse=True)[1]
    columns = dict(zip(Schedule.COLUMNS, table.T, strict=True))
    return Schedule(topology, collective, parts, **columns, routes=routes)


@st.composite
def forests(draw: st.DrawFn, topology: Topology | None = None) -> Forest:
    """A correct forest of one of the five collectives that trees carry."""
    network = topology if topology is not None else draw(networks())
    kinds = ("allgather", "reduce-scatter", "broadcast", "reduce", "allreduce")
    collective = draw(collectives(network.num_ranks, kinds))
    ways = {"allreduce": (True, False)}.get(collective.kind, (collective.kind in ("reduce-scatter", "reduce"),))
    parts, builder, trees, listed = draw(st.integers(1, 6)), _Builder(draw, network), [], []
    roots = list(range(network.num_ranks)) if collective.root is None else [collective.root]
    whole = collective.root is not None or (collective.kind == "allreduce" and draw(st.booleans()))
    if whole:
        roots = [draw(st.sampled_from(roots))]
    for root in roots:
        for inward in ways:
            for lo, hi in pieces(draw, parts):
                listed.append([(len(trees), *row) for row in builder.tree(root, inward).rows])
                trees.append((root, hi - lo, inward))
    edges = [edge for rows in listed for edge in rows]
    if draw(st.booleans()):  # trees may stand side by side
        edges = [edge for rows in zip_longest(*listed) for edge in rows if edge is not None]
    root, weight, inward = np.array(trees).T
    tree, parent, child, route = np.array(edges, dtype=np.int64).reshape(-1, 4).T
    return Forest(
        network, collective, parts, root, weight, tree, parent, child, route, routes=builder.routes, inward=inward,
        whole=whole, pieces=draw(st.integers(1, 4)), scheduler=draw(st.sampled_from(["forest", "swing"])),
    )  # fmt: skip


# ---- well formed, and perhaps wrong


@st.composite
def any_schedules(draw: st.DrawFn) -> Schedule:
    """A schedule whose columns are in range: good enough to be printed and parsed, not to be believed."""
    network = draw(topologies(named=True))
    collective = draw(collectives(network.num_ranks))
    routes = draw(st.sampled_from([rank_routes(network), Routes.direct(network.num_links)]))
    tails, heads = (end(network) < network.num_ranks for end in (routes.tails, routes.heads))
    usable = np.flatnonzero(tails & heads).tolist() if len(routes) else []
    parts = draw(st.integers(1, 2**63 - 1) | st.integers(1, 8))
    shard, step = st.integers(0, collective.num_shards - 1), st.integers(0, 2**40) | st.integers(0, 9)
    rows = []
    for _ in range(draw(st.integers(0, 12)) if usable else 0):
        lo, hi = sorted((draw(st.integers(0, parts)), draw(st.integers(0, parts))))
        if lo < hi:
            route = draw(st.sampled_from(usable))
            rows.append((draw(step), draw(st.sampled_from(list(Action))), draw(shard), lo, hi, route))
    table = np.array(sorted(rows, key=lambda row: row[0]), dtype=np.int64).reshape(-1, 6)
    return Schedule(
        network, collective, parts, **dict(zip(Schedule.COLUMNS, table.T, strict=True)), routes=routes,
        discrete=draw(st.booleans()), scheduler=draw(texts()),
    )  # fmt: skip


@st.composite
def any_forests(draw: st.DrawFn) -> Forest:
    """A forest whose edges follow routes that are there, in no order."""
    network = draw(topologies(named=True))
    collective = draw(collectives(network.num_ranks))
    routes, way = rank_routes(network), draw(st.sampled_from([st.just(False), st.just(True), st.booleans()]))
    ends = list(zip(routes.tails(network).tolist(), routes.heads(network).tolist(), strict=True)) if len(routes) else []
    parts = draw(st.integers(1, 2**63 - 1) | st.integers(1, 8))
    rank, weight = st.integers(0, network.num_ranks - 1), st.integers(1, parts)
    trees = draw(st.lists(st.tuples(rank, weight, way), max_size=4))
    edges = []
    for _ in range(draw(st.integers(0, 12)) if trees and ends else 0):
        route = draw(st.integers(0, len(ends) - 1))
        tree = draw(st.integers(0, len(trees) - 1))
        a, b = reversed(ends[route]) if trees[tree][2] else ends[route]
        edges.append((tree, a, b, route))
    root, weights, inward = np.array(trees, dtype=np.int64).reshape(-1, 3).T
    tree, parent, child, route_column = np.array(edges, dtype=np.int64).reshape(-1, 4).T
    return Forest(
        network, collective, parts, root, weights, tree, parent, child, route_column, routes=routes,
        inward=inward, whole=draw(st.booleans()), pieces=draw(st.integers(1, (2**63 - 1) // parts)),
        scheduler=draw(texts()),
    )  # fmt: skip


@st.composite
def any_programs(draw: st.DrawFn) -> Program:
    """A program whose numbers are in range: blocks of any instructions, waiting for any of their rank's."""
    collective = draw(collectives())
    ranks, chunks = collective.num_ranks, draw(st.integers(1, 3))
    scratch = draw(st.lists(st.integers(0, 4), min_size=ranks, max_size=ranks))
    peer = st.integers(-1, ranks - 1)
    blocks = sorted(
        (draw(st.integers(0, ranks - 1)), draw(peer), draw(peer), draw(st.integers(0, 40)))
        for _ in range(draw(st.integers(0, 4)))
    )
    empty = Program.build(collective, chunks, scratch, [], [])
    listed = []
    for rank, send, recv, _ in blocks:
        sizes = (empty.input_chunks(rank), empty.output_chunks(rank), scratch[rank])
        lengths = range(draw(st.integers(0, 4)))
        listed.append([row for _ in lengths if (row := _instruction(draw, sizes, send >= 0, recv >= 0)) is not None])
    block_of = [b for b, rows in enumerate(listed) for _ in rows]
    numbered = iter(range(len(block_of)))
    table = [
        [(*row, _waits(draw, next(numbered), block_of, [rank for rank, *_ in blocks])) for row in rows]
        for rows in listed
    ]
    return Program.build(collective, chunks, scratch, blocks, table, name=draw(texts()), scheduler=draw(texts()))


def _instruction(
    draw: st.DrawFn, sizes: Sequence[int], sends: bool, receives: bool
) -> tuple[Opcode, Buffer, int, Buffer, int, int] | None:
    able = [op for op in Opcode if (sends or not op.sends) and (receives or not op.receives)]
    opcode = draw(st.sampled_from(able))
    count = 0 if opcode is Opcode.NOP else draw(st.integers(1, 3))
    places = []
    for used in (opcode.reads_src, opcode.writes_dst):
        room = [b for b in Buffer if sizes[b] >= count]
        if used and not room:
            return None
        buffer = draw(st.sampled_from(room)) if used else Buffer.INPUT
        places += [buffer, draw(st.integers(0, sizes[buffer] - count)) if used else 0]
    return (opcode, places[0], places[1], places[2], places[3], count)


def _waits(draw: st.DrawFn, row: int, block_of: Sequence[int], rank_of: Sequence[int]) -> list[int]:
    mine = block_of[row]
    others = [
        k for k, block in enumerate(block_of)
        if rank_of[block] == rank_of[mine] and (block != mine or k < row)
    ]  # fmt: skip
    return draw(st.lists(st.sampled_from(others), max_size=3)) if others else []


def levels() -> st.SearchStrategy[Topology | Collective | Schedule | Forest | Program]:
    """Anything that has a textual form."""
    return st.one_of(
        topologies(named=True), families(), collectives(), any_schedules(), schedules(), any_forests(), forests(),
        any_programs(),
    )  # fmt: skip
