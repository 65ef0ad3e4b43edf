"""Breadth-first broadcast schedules (section 6 and appendix E of the direct-connect paper), exact and without a solver.

At step t every node u receives the shards of all nodes at distance t, through the in-links that lie on shortest paths.
How each shard is divided among them is LP (1) of the paper; :mod:`.balance` solves it in integers. Nodes whose
shards see their in-links in the same pattern share one solution, so symmetric networks cost next to nothing.

Parallel links beside single ones keep the optimal breadth-first schedule from being bandwidth-optimal (a torus with a
side of 2 has them); there :mod:`.relaxed` lets data arrive later than at the first chance, in as many steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import lcm
from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.arrays import fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ..base import Pass
from ..compose import compose
from ..reverse import Reverse, reverse
from .balance import Balance, Histogram, balance
from .relaxed import relaxed_breadth_first

__all__ = ["BFB"]

Array = np.ndarray[Any, np.dtype[Any]]
Piece = tuple[int, Array, Array, Array, Array, int]  # step, shard, link, lo, hi, parts

_MOST_PARTS = 2**62
_ALLGATHERS = ("allgather", "reduce-scatter", "allreduce")
_BROADCASTS = ("broadcast", "reduce")


@attrs.frozen
class BFB(Pass):
    """Synthesize the optimal breadth-first schedule: as many steps as the diameter, links balanced exactly.

    With ``relax`` (the default) data may arrive later than breadth first where that takes less bandwidth time.

    Allgather and broadcast are built directly; reduce-scatter and reduce on the transpose, then reversed
    (Corollary 1.1);
    allreduce is reduce-scatter, then allgather. Raises C0301 (not strongly connected), C0501 (switches),
    C0502 (links that differ in bandwidth), C0503 (a collective it cannot do).
    """

    name: ClassVar[str] = "bfb"
    summary: ClassVar[str] = (
        "breadth-first broadcast with exactly balanced links, for any strongly connected network of ranks"
    )
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule

    collective: str | None = attrs.field(
        default=None, metadata={"help": "schedule only this half of an allreduce: allgather or reduce-scatter"}
    )

    relax: bool = attrs.field(
        default=True, metadata={"help": "let data arrive late where parallel links make breadth first fall short"}
    )

    def run(self, ir: Problem) -> Schedule:
        topology, collective = ir.topology, self._phase(ir.collective)
        _require(topology, collective)
        if collective.kind in ("allgather", "broadcast"):
            return self._forwards(topology, collective)
        if collective.kind == "allreduce":
            gather = attrs.evolve(collective, kind="allgather")
            return compose(self._backwards(topology, gather), self._forwards(topology, gather))
        return self._backwards(topology, collective.reversed())

    def _phase(self, collective: Collective) -> Collective:
        if self.collective is None:
            return collective
        if self.collective not in ("allgather", "reduce-scatter"):
            raise error(
                "C0511",
                f"bfb cannot schedule `{self.collective}` as half of an allreduce",
                hint="choose `allgather` or `reduce-scatter`",
            )
        return attrs.evolve(collective, kind=self.collective, root=None)

    def _forwards(self, topology: Topology, collective: Collective) -> Schedule:
        relaxed = relaxed_breadth_first(topology, collective) if self.relax else None
        return _breadth_first(topology, collective) if relaxed is None else relaxed

    def _backwards(self, topology: Topology, forward: Collective) -> Schedule:
        """Schedule ``forward`` on the transpose and reverse it: Corollary 1.1."""
        if topology.reverse_links is not None:
            return Reverse().run(self._forwards(topology, forward))
        return attrs.evolve(reverse(self._forwards(topology.transpose(), forward)), topology=topology)


def _require(topology: Topology, collective: Collective) -> None:
    if collective.kind not in (*_ALLGATHERS, *_BROADCASTS):
        raise error(
            "C0503",
            f"bfb cannot schedule `{collective.kind}`",
            notes=[f"it schedules {', '.join((*_ALLGATHERS, *_BROADCASTS))}"],
            hint="write it by hand: `schedule NAME using steps { ... }`",
            exit_status=3,
        )
    if not topology.is_direct:
        raise error(
            "C0501",
            f"bfb needs a network of ranks only; `{topology.name}` has {topology.num_switches} switches",
            hint="write the schedule by hand: `schedule NAME using steps { ... }`",
            exit_status=3,
        )
    used = np.unique(topology.link_class[topology.src != topology.dst])
    if len({topology.classes[c] for c in used}) > 1:
        raise error(
            "C0502",
            f"bfb needs links that are all alike; those of `{topology.name}` differ in bandwidth or latency",
            notes=[f"found {len(used)} kinds of links"],
            hint="give every link the same bandwidth and latency",
            exit_status=3,
        )
    topology.require_connected("a breadth-first schedule")


def _breadth_first(topology: Topology, collective: Collective) -> Schedule:
    """Return the optimal BFB schedule of an allgather or broadcast."""
    slots = _slots(topology)
    masks, width = _masks(topology, slots)
    jobs = _allgather_jobs(topology, masks, width) if collective.root is None else None
    pieces = (
        list(_solve(*jobs, slots)) if jobs else list(_broadcast(topology, masks, width, slots, collective.root or 0))
    )
    parts = lcm(1, *(piece[5] for piece in pieces))
    if parts > _MOST_PARTS:
        raise error(
            "C0504",
            f"balancing the links exactly would cut every shard into {parts} parts",
            notes=["more than 2^62 parts cannot be counted"],
            hint="use a topology whose nodes have fewer links",
            exit_status=3,
        )
    return _columns(topology, collective, pieces, parts)


def _slots(topology: Topology) -> Array:
    """Return the in-links of every node as a row, padded with -1; loops carry nothing and are left out."""
    _, links = topology.in_links
    links = links[topology.src[links] != topology.dst[links]]
    degree = np.bincount(topology.dst[links], minlength=topology.num_ranks)
    slots = np.full((topology.num_ranks, int(degree.max(initial=0))), -1, dtype=np.int64)
    slots[np.arange(slots.shape[1]) < degree[:, None]] = links
    return slots


def _masks(topology: Topology, slots: Array) -> tuple[Array, int]:
    """Return for every node u and shard v which in-links of u lie on a shortest path from v, as bits of a mask.

    Shape (N, N), a row per u. Masks of more than 63 links are Python integers (object dtype).
    """
    hops = np.ascontiguousarray(topology.distances.T)
    width = slots.shape[1]
    kind: Any = object if width > 63 else fit(0, (1 << width) - 1)
    masks = np.zeros(hops.shape, dtype=kind)
    for slot in range(width):
        tail = topology.src[slots[:, slot]]
        usable = (hops[tail] + 1 == hops) & (slots[:, slot] >= 0)[:, None]
        bit = 1 << slot if width > 63 else kind(1 << slot)
        masks[usable] |= bit
    return masks, width


def _allgather_jobs(topology: Topology, masks: Array, width: int) -> tuple[Array, Array, int, list[int]]:
    """Sort every node's shards by (distance, mask, shard).

    Returns shards (N, N-1) and their keys (same shape); a key is distance * base + the mask, or + its number in the
    list of masks where that is not empty.
    """
    hops = topology.distances.T
    if width > 63 or int(hops.max()) << width >= 2**63:
        known, number = np.unique(masks, return_inverse=True)
        base, listed = len(known), [int(m) for m in known]
        key = hops.astype(np.int64) * base + number.reshape(masks.shape)
    else:
        base, listed = 1 << width, []
        key = (hops.astype(np.int64) << width) | masks
    key = key.astype(fit(0, int(key.max())))  # narrow keys sort by radix
    order = np.argsort(key, axis=1, kind="stable")[:, 1:]  # the first is the node itself, at distance 0
    return order, np.take_along_axis(key, order, axis=1), base, listed


def _solve(shards: Array, keys: Array, base: int, listed: list[int], slots: Array) -> Iterator[Piece]:
    """Balance every node's steps; equal histograms of masks, at whatever nodes, once."""
    patterns: dict[bytes, list[int]] = {}
    for node, row in enumerate(keys):
        patterns.setdefault(row.tobytes(), []).append(node)
    # (step, histogram) -> the nodes that have it then, and where their shards for it begin
    places: dict[tuple[int, Histogram], tuple[list[int], list[int]]] = {}
    for nodes in patterns.values():
        for step, first, histogram in _histograms(keys[nodes[0]], base, listed):
            where, begin = places.setdefault((step, histogram), ([], []))
            where += nodes
            begin += [first] * len(nodes)
    solved: dict[Histogram, Balance] = {}
    for (step, histogram), (where, begin) in places.items():
        if histogram not in solved:
            solved[histogram] = balance(histogram)
        share = solved[histogram]
        rows = np.array(where)[:, None]
        shard = shards[rows, np.array(begin)[:, None] + share.job]
        link = slots[rows, share.slot]
        lo, hi = (np.broadcast_to(x, shard.shape) for x in (share.lo, share.hi))
        yield step, shard.ravel(), link.ravel(), lo.ravel(), hi.ravel(), share.parts


def _histograms(keys: Array, base: int, listed: list[int]) -> Iterator[tuple[int, int, Histogram]]:
    """Split one node's sorted shards into steps: (step, first shard, histogram of masks); steps count from 0."""
    if not len(keys):
        return
    begin = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()]
    runs = zip(keys[begin].tolist(), begin, [*begin[1:], len(keys)], strict=True)
    for hop, group in groupby(runs, key=lambda run: run[0] // base):
        row = list(group)
        masks = (run[0] % base for run in row)
        sizes = (end - at for _, at, end in row)
        yield hop - 1, row[0][1], tuple(zip((listed[m] for m in masks) if listed else masks, sizes, strict=True))


def _broadcast(topology: Topology, masks: Array, width: int, slots: Array, root: int) -> Iterator[Piece]:
    """Give every node all shards from the root, each step's vector divided evenly among the usable in-links."""
    n = topology.num_ranks
    for node in range(n):
        if node == root:
            continue
        share = balance(((int(masks[node, root]), n),))
        step = int(topology.distances[root, node]) - 1
        yield step, share.job, slots[node][share.slot], share.lo, share.hi, share.parts


def _columns(topology: Topology, collective: Collective, pieces: list[Piece], parts: int) -> Schedule:
    """Put the pieces in step order into columns no wider than needed."""
    pieces.sort(key=lambda piece: piece[0])  # stable: nodes stay in order within a step
    rows = sum(len(piece[1]) for piece in pieces)
    step = np.empty(rows, dtype=fit(0, topology.num_ranks))
    shard = np.empty(rows, dtype=fit(0, topology.num_ranks))
    link = np.empty(rows, dtype=fit(0, max(topology.num_links, 1)))
    lo, hi = np.empty(rows, dtype=fit(0, parts)), np.empty(rows, dtype=fit(0, parts))
    at = 0
    for piece in pieces:
        here = slice(at, at + len(piece[1]))
        scale = parts // piece[5]
        step[here], shard[here], link[here] = piece[0], piece[1], piece[2]
        lo[here], hi[here] = piece[3] * scale, piece[4] * scale
        at = here.stop
    return Schedule(
        topology, collective, parts, step=step, action=np.zeros(rows, dtype=np.uint8) + Action.COPY,
        shard=shard, lo=lo, hi=hi, route=link, scheduler="bfb",
    )  # fmt: skip
