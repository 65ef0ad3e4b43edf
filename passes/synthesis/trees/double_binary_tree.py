"""The double binary tree: each half of the data uses its own tree, pipelined in pieces.

The baseline of the direct-connect paper (section 8.2), NCCL's algorithm for large machines (Sanders, Speck and Traff,
Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009). An allreduce sends every piece up its tree,
reducing, and down again as soon as it has arrived; pieces going up and pieces going down do not share links.

Every tree edge has a *first step*: the step in which the first piece comes down, counted from the root; for pieces
going up, it is counted from the end. Pieces follow each other every step. With ``one-port`` a rank sends down at most
one piece per step and receives at most one; then pieces follow every two steps, and edges are coloured by parity.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, isqrt
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.costs.messages import Messages, with_reduced
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.graph.two_trees import centre, depths, rooted, two_trees
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...applying import not_scheduled
from ...base import Pass
from ...ranges import Range
from ..operations import require_commutative, require_routes
from ..torus.routing import router
from ..torus.shape import logical_shape

__all__ = ["DoubleBinaryTree"]
#: tree, step of the first piece over every edge, steps between pieces, routes of the edges, action
_Flow = tuple[int, Array, int, Array, Action]

_KINDS = ("allreduce", "broadcast", "reduce")
_MOST_PIECES = 1 << 16
#: the most pieces by default: schedules grow with them, and runtimes cut large messages anyway
_MOST_CHOSEN = 1024


@attrs.frozen
class DoubleBinaryTree(Pass):
    """Synthesize the pipelined schedule of two binary trees, on any network.

    The trees are those of ``double_binary_tree(N)`` by rank numbers. If the network lacks one of their links, messages
    take shortest paths. An allreduce has its roots in the middle of each tree; a broadcast or reduce uses its root in
    both trees.

    Raises C0530 (a collective it cannot do), C0531 (a link is missing and ``routed`` is false), C0532 (an
    impossible number of pieces), C0533 (``one-port`` with a rooted collective), C0593 (an operation that needs an
    order).
    """

    name: ClassVar[str] = "double-binary-tree"
    summary: ClassVar[str] = "pipelined allreduce, broadcast or reduce over two binary trees, as in NCCL"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    pipelined: ClassVar[bool] = True

    pipeline: int | None = attrs.field(
        default=None,
        metadata={
            "help": "pieces of each half of the data (default: the number with the least predicted time)",
            "range": Range(1, _MOST_PIECES, "C0532", divides="half"),
        },
    )
    one_port: bool = attrs.field(
        default=False, metadata={"help": "a rank sends down, and receives from above, at most one piece per step"}
    )

    routed: bool = attrs.field(
        default=True, metadata={"help": "route messages over several links if the network lacks a link of the trees"}
    )

    def run(self, ir: Problem) -> Schedule:
        topology, ranks = ir.topology, ir.collective.num_ranks
        pieces, flows, routes = self._flows(ir)
        halves = _halves(ranks, pieces)
        rows = [_rows(first, pace, links, halves[tree], action) for tree, first, pace, links, action in flows]
        return _schedule(topology, ir.collective, routes, pieces, rows)

    def pieces(self, ir: Problem) -> int:
        """Return the number of pieces of each half of the data."""
        return self._flows(ir)[0]

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pipeline is None

    def num_pieces(self, ir: Problem) -> int:
        return self.pieces(ir)

    def in_pieces(self, pieces: int) -> DoubleBinaryTree:
        return attrs.evolve(self, pipeline=pieces)

    def messages(self, ir: Problem) -> Messages:
        """Return the messages of the schedule of ``run``; equal steps, in which all edges are busy, are stored once."""
        pieces, flows, routes = self._flows(ir)
        last = max((int(first.max(initial=0)) for _, first, *_ in flows), default=0)
        kept = min(pieces, last + 1) if all(pace == 1 for *_, pace, _, _ in flows) else pieces
        steps = [(first[:, None] + pace * np.arange(kept)).ravel() for _, first, pace, _, _ in flows]
        links = [np.repeat(links, kept) for *_, links, _ in flows]
        adding = [np.full(len(first) * kept, action == Action.REDUCE) for _, first, *_, action in flows]
        none = np.zeros(0, dtype=np.int64)
        step, link, adds = (np.concatenate([none, *columns]) for columns in (steps, links, adding))
        order, times = np.argsort(step, kind="stable"), np.ones(int(step.max(initial=-1)) + 1, dtype=np.int64)
        times[last : last + 1] += pieces - kept
        return with_reduced(Messages(
            ir.topology, ir.collective, 2 * pieces, step=step[order], route=link[order], amount=np.ones_like(step),
            times=times, routes=routes, scheduler=self.name,
        ), adds[order])  # fmt: skip

    def num_transfers(self, ir: Problem, most: int) -> int:
        return ir.topology.num_ranks**2 * (2 if ir.collective.kind == "allreduce" else 1)

    def _flows(self, ir: Problem) -> tuple[int, list[_Flow], Routes]:
        """Return the number of pieces of each half, the flows up and down the trees, and their routes."""
        topology, collective = ir.topology, ir.collective
        self.require(ir)
        trees = _placed(topology.num_ranks, collective.root, self.one_port)
        first_steps, pace = (_coloured_steps(trees), 2) if self.one_port else ([depths(tree) - 1 for tree in trees], 1)
        last = max(int(first_step.max()) for first_step in first_steps)
        phases = 2 if collective.kind == "allreduce" else 1
        up, down, routes = _routes(topology, trees, self.routed)
        flows: list[_Flow] = []
        for tree, parent in enumerate(trees):
            first_step = first_steps[tree][np.flatnonzero(parent >= 0)]
            if collective.kind != "broadcast":
                flows.append((tree, last - first_step, pace, up[tree], Action.REDUCE))
            if collective.kind != "reduce":
                flows.append((tree, first_step + (last + 1) * (phases - 1), pace, down[tree], Action.COPY))
        shared = _shared(routes, [links for _, _, _, links, _ in flows])
        return self.pipeline or _pieces(topology, collective, phases * (last + 1), pace, shared), flows, routes

    def require(self, ir: Problem) -> None:
        collective = ir.collective
        if collective.kind not in _KINDS:
            raise not_scheduled("C0530", self.name, ir, _KINDS)
        require_commutative(self.name, collective)
        require_routes(ir.topology, collective)
        if self.one_port and collective.root is not None:
            message = f"found `one-port` for a {collective.kind}, needed an allreduce"
            hint = "leave `one-port` out"
            raise error("C0533", message, hint=hint, option="one-port", about=(Subject.COLLECTIVE,))


# ---- trees and first steps


def _placed(num_ranks: int, root: int | None, plain: bool) -> list[Array]:
    """Return both trees, rooted at the root of the collective or at their middles; unchanged if ``plain``."""
    trees = two_trees(num_ranks)
    if plain:
        return list(trees)
    return [rooted(tree, centre(tree) if root is None else root) for tree in trees]


def _coloured_steps(trees: Sequence[Array]) -> list[Array]:
    """Return the first steps of both trees' edges, by child, so that a rank has one edge in and one out of each parity.

    An edge shares its parent with at most one other edge, and its child with at most one edge of the other tree. These
    relations form paths and even cycles, so two colours are enough.
    """
    colour = _two_colours(trees)
    first_steps = []
    for tree, parent in enumerate(trees):
        first_step = np.full(len(parent), -1, dtype=np.int64)
        for child in np.argsort(depths(parent), kind="stable")[1:].tolist():
            first = int(first_step[parent[child]]) + 1
            first_step[child] = first + (first + colour[tree, child]) % 2
        first_steps.append(first_step)
    return first_steps


def _two_colours(trees: Sequence[Array]) -> dict[tuple[int, int], int]:
    """Return 0 or 1 for every (tree, child)."""
    edges = [(tree, int(child)) for tree, parent in enumerate(trees) for child in np.flatnonzero(parent >= 0)]
    below: dict[int, list[tuple[int, int]]] = {}
    for tree, child in edges:
        below.setdefault(int(trees[tree][child]), []).append((tree, child))
    colour: dict[tuple[int, int], int] = {}
    for first in edges:
        pending = [(first, 0)]
        while pending:
            edge, parity = pending.pop()
            if edge in colour:
                continue
            colour[edge] = parity
            tree, child = edge
            beside = [other for other in below[int(trees[tree][child])] if other != edge]
            across = [(1 - tree, child)] if trees[1 - tree][child] >= 0 else []
            pending += [(other, 1 - parity) for other in (*beside, *across)]
    return colour


# ---- pieces


def _pieces(topology: Topology, collective: Collective, steps: int, pace: int, shared: int) -> int:
    """Return the number of pieces with the least time: (steps + pace (k - 1)) (alpha + x / k).

    x is the time of half the data on a link, times the most tree edges that share one. Latency and bandwidth are the
    links' own, by default those of predictions; the size is the collective's, by default 1 MiB.
    """
    alpha = max(c.latency for c in topology.classes) or DEFAULT_ALPHA
    speed = min(c.bandwidth for c in topology.classes)
    if topology.unit != "B/s":
        speed *= DEFAULT_BANDWIDTH / (topology.node_bandwidth or 1)
    half = Fraction((collective.size or USUAL_SIZE) * shared, 2) / speed
    best = isqrt(max(int((steps - pace) * half / (pace * alpha)), 0))
    tried = (min(max(k, 1), _MOST_CHOSEN) for k in (best, best + 1))
    return min(tried, key=lambda k: (steps + pace * (k - 1)) * (alpha + half / k))


def _halves(num_ranks: int, pieces: int) -> list[Array]:
    """Return each half's pieces, cut at the ends of shards, as rows (piece, shard, lo, hi) in parts of a shard."""
    parts, width = _parts(num_ranks, pieces)
    ends = np.union1d(np.arange(2 * pieces + 1) * width, np.arange(num_ranks + 1) * parts)
    lo, hi = ends[:-1], ends[1:]
    shard = lo // parts
    cuts = np.stack([lo // width % pieces, shard, lo - shard * parts, hi - shard * parts], axis=1)
    return [cuts[lo < pieces * width], cuts[lo >= pieces * width]]


def _parts(num_ranks: int, pieces: int) -> tuple[int, int]:
    """Return the parts per shard, and the parts per piece."""
    common = gcd(2 * pieces, num_ranks)
    return 2 * pieces // common, num_ranks // common


# ---- links and rows


def _routes(topology: Topology, trees: Sequence[Array], routed: bool) -> tuple[list[Array], list[Array], Routes]:
    """Return the routes up and the routes down every tree's edges, children ascending, and all routes."""
    found = _links(topology, trees)
    if not isinstance(found, CollcError):
        return *found, Routes.direct(topology.num_links)
    if not routed:
        raise found
    by, keys = router(topology, logical_shape(topology)), list[Array]()
    for tree, parent in enumerate(trees):
        child = np.flatnonzero(parent >= 0)
        keys += [by.keys(child, parent[child], tree, tree), by.keys(parent[child], child, tree, tree)]
    known, index = np.unique(np.concatenate(keys), return_inverse=True)
    rows = np.split(index, np.cumsum([len(key) for key in keys])[:-1])
    return rows[::2], rows[1::2], by.routes(known)


def _shared(routes: Routes, used: Sequence[Array]) -> int:
    """Return the most used routes that share a link, at least 1."""
    often = np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *used]), minlength=len(routes))
    load = np.zeros(int(routes.links.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(load, routes.links, np.repeat(often, routes.lengths))
    return max(int(load.max()), 1)


def _links(topology: Topology, trees: Sequence[Array]) -> tuple[list[Array], list[Array]] | CollcError:
    """Return the links up and down every tree's edges, children ascending, or C0531 if one is missing.

    An edge of both trees uses two parallel links if they exist.
    """
    key = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    order = np.argsort(key, kind="stable")
    known = key[order]
    taken: Array = np.zeros(0, dtype=np.int64)
    up, down = [], []
    for tree, parent in enumerate(trees):
        child = np.flatnonzero(parent >= 0)
        above = parent[child]
        ends = np.stack([np.concatenate([child, above]), np.concatenate([above, child])], axis=1)
        needed = ends[:, 0] * topology.num_nodes + ends[:, 1]
        first, count = np.searchsorted(known, needed), np.searchsorted(known, needed, "right")
        if (first == count).any():
            return _missing(topology, tree, ends[first == count])
        found = order[first + ((count - first > 1) & np.isin(needed, taken))]
        taken = needed
        up.append(found[: len(child)])
        down.append(found[len(child) :])
    return up, down


def _missing(topology: Topology, tree: int, ends: Array) -> CollcError:
    (a, b), names = ends[0].tolist(), topology.names
    more = f", nor {len(ends) - 1} others of tree {tree + 1}" if len(ends) > 1 else ""
    return error(
        "C0531",
        f"`{topology.name}` has no link from rank {names[a]} to rank {names[b]}{more}",
        notes=[f"it needs the links of `double_binary_tree({topology.num_ranks})` in both directions"],
        hint="leave `routed` out: then messages take several links",
        exit_status=3,
        option="routed",
        about=(Subject.TOPOLOGY,),
    )


def _rows(first_step: Array, pace: int, links: Array, cuts: Array, action: Action) -> Array:
    """Return columns step, action, shard, lo, hi, link: every piece over every edge."""
    step = first_step[:, None] + pace * cuts[:, 0]
    columns = [step, np.full_like(step, action), *(np.broadcast_to(c, step.shape) for c in cuts.T[1:])]
    columns.append(np.broadcast_to(links[:, None], step.shape))
    return np.stack([column.ravel() for column in columns])


def _schedule(
    topology: Topology, collective: Collective, routes: Routes, pieces: int, rows: Sequence[Array]
) -> Schedule:
    table = np.concatenate(rows, axis=1)
    step, action, shard, lo, hi, route = table[:, np.argsort(table[0], kind="stable")]
    return Schedule(
        topology, collective, _parts(topology.num_ranks, pieces)[0], step=step, action=action, shard=shard, lo=lo,
        hi=hi, route=route, routes=routes, scheduler="double-binary-tree",
    )  # fmt: skip
