"""Breadth-first schedules of shards that differ in size: LP (1) of the direct-connect paper with weights, exactly.

In each step, a node's shards that may use the same in-links stand in a row, as long as their weights together. The
optimal division cuts this row. Shards of weight 0 take their first usable link: they cost nothing in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.progress import progress
from collc.ir.schedule import Action, Schedule
from collc.ir.topology import Topology

from ..shares import common_parts, rounded
from .balance import links_of_mask
from .division import Division

__all__ = ["uneven_breadth_first"]


class _Share(NamedTuple):
    """The interval ``lo`` to ``hi`` of a shard crosses a link in a step."""

    step: int
    shard: int
    link: int
    lo: Fraction
    hi: Fraction


def uneven_breadth_first(topology: Topology, collective: Collective, division: Division, slots: Array) -> Schedule:
    """Return the optimal breadth-first allgather; ``slots`` are every node's in-links, a row a node, padded with -1.

    If exact ends need too many parts, they are rounded down.
    """
    shares = [one for node in range(topology.num_ranks) for one in _node(topology, collective, division, slots, node)]
    shares.sort(key=lambda one: one.step)  # stable: nodes stay in order within a step
    parts = common_parts("bfb", {end.denominator for one in shares for end in (one.lo, one.hi)})
    rows = [(one, rounded(one.lo, parts), rounded(one.hi, parts)) for one in shares]
    rows = [row for row in rows if row[1] < row[2]]
    return Schedule(
        topology, collective, parts, step=[one.step for one, _, _ in rows], action=[Action.COPY] * len(rows),
        shard=[one.shard for one, _, _ in rows], lo=[lo for _, lo, _ in rows], hi=[hi for _, _, hi in rows],
        route=[one.link for one, _, _ in rows], scheduler="bfb",
    )  # fmt: skip


def _node(
    topology: Topology, collective: Collective, division: Division, slots: Array, node: int
) -> Iterator[_Share]:  # fmt: skip
    """Yield what a node receives, step by step."""
    progress("balancing steps", node, topology.num_ranks)
    hops = topology.hops_to(node)
    links = slots[node][slots[node] >= 0]
    kinds = tuple(division.kinds(topology, slots)[node].tolist())
    weight = collective.weight.tolist()
    nearer = [topology.hops_to(int(tail)) + 1 == hops for tail in topology.src[links]]
    for step in range(int(hops[: topology.num_ranks].max())):
        groups: dict[int, list[int]] = {}
        for shard in np.flatnonzero(hops[: topology.num_ranks] == step + 1).tolist():
            groups.setdefault(sum(1 << slot for slot, usable in enumerate(nearer) if usable[shard]), []).append(shard)
        totals = {mask: sum(weight[shard] for shard in shards) for mask, shards in sorted(groups.items())}
        heavy = tuple((mask, total) for mask, total in totals.items() if total)
        found = division.flow(heavy, kinds) if heavy else None
        for mask in totals:
            idle = [shard for shard in groups[mask] if not weight[shard]]
            yield from (_Share(step, s, int(links[links_of_mask(mask)[0]]), Fraction(0), Fraction(1)) for s in idle)
        for (mask, _), flow in zip(heavy, found.flow if found else (), strict=True):
            spans = [(int(links[slot]), Fraction(flow[slot], found.unit if found else 1)) for slot in sorted(flow)]
            yield from _cut(step, [(s, weight[s]) for s in groups[mask] if weight[s]], spans)


def _cut(step: int, shards: Sequence[tuple[int, int]], spans: Sequence[tuple[int, Fraction]]) -> Iterator[_Share]:
    """Yield the shares of shards in a row, ``(shard, weight)`` each, over links of ``spans``: (link, weight)."""
    ends, rest = iter(spans), Fraction(0)
    link = -1
    for shard, weight in shards:
        at = Fraction(0)
        while at < weight:
            if not rest:
                link, rest = next(ends)
            taken = min(weight - at, rest)
            yield _Share(step, shard, link, at / weight, (at + taken) / weight)
            at, rest = at + taken, rest - taken
