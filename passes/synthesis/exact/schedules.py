"""From arrivals to schedules, in integers: the arrivals of parts are given, and this module chooses their links.

Within a step an integer flow divides every rank's parts among its links, so the schedule does not depend on a solver's
floating point. Chunks are never cut.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.schedule import Action, Schedule

from ..breadth_first.balance import assign, cut_jobs, links_of_mask
from .demand import Demand

__all__ = ["Arrivals", "rounds_of", "schedule_of"]
#: one rank's receipts of one step: rank, step (from 0), parts by mask of in-links
_Receipt = tuple[int, int, dict[int, list[int]]]


@attrs.frozen(eq=False)
class Arrivals:
    """``step[part, rank]``: after which step (from 1) a rank has a part; 0 at its source, -1 never.

    Items are cut in ``types`` parts of ``grain`` chunks each; parts count item by item.
    """

    types: int
    grain: int
    step: Array

    @property
    def chunks(self) -> int:
        """Chunks per item."""
        return self.types * self.grain

    @property
    def last(self) -> int:
        """The step of the last arrival; 0 without arrivals."""
        return int(self.step.max(initial=0))


def _in_links(demand: Demand) -> list[list[int]]:
    """Return the links into every rank, without loops, ascending."""
    result: list[list[int]] = [[] for _ in range(demand.num_ranks)]
    heads = demand.topology.dst.tolist()
    for link in np.flatnonzero(demand.pair >= 0).tolist():
        result[heads[link]].append(link)
    return result


def _receipts(demand: Demand, arrivals: Arrivals, inward: list[list[int]]) -> Iterator[_Receipt]:
    tails = demand.topology.src
    for rank, links in enumerate(inward):
        at = arrivals.step[:, rank]
        before = arrivals.step[:, tails[links]] if links else np.zeros((len(at), 0), dtype=np.int64)
        for step in np.unique(at[at > 0]).tolist():
            groups: dict[int, list[int]] = {}
            for part in np.flatnonzero(at == step).tolist():
                usable = (before[part] >= 0) & (before[part] < step)
                groups.setdefault(sum(1 << k for k in np.flatnonzero(usable).tolist()), []).append(part)
            yield rank, step - 1, dict(sorted(groups.items()))


def _link_capacities(demand: Demand, links: list[int], rounds: int) -> dict[int, int]:
    """Return how many chunks each in-link carries in ``rounds`` rounds."""
    return {k: int(demand.topology.bandwidth(link) / demand.unit) * rounds for k, link in enumerate(links)}


def _flow_of(
    demand: Demand, links: list[int], groups: dict[int, list[int]], grain: int, rounds: int
) -> list[dict[int, int]] | None:
    """Return the flow that delivers the parts in ``rounds`` rounds, or None."""
    supply = [len(members) * grain for members in groups.values()]
    flow, confined = assign([links_of_mask(mask) for mask in groups], supply, _link_capacities(demand, links, rounds))
    return flow if confined is None else None


def rounds_of(demand: Demand, arrivals: Arrivals) -> list[int]:
    """Return the fewest rounds of every step; in a round, each link carries one chunk per unit of its bandwidth."""
    inward = _in_links(demand)
    rounds = [0] * arrivals.last
    for rank, step, groups in _receipts(demand, arrivals, inward):
        if 0 in groups:
            raise ValueError(f"a part arrives at rank {rank} in step {step + 1} from no other rank")
        width = sum(_link_capacities(demand, inward[rank], 1).values())
        jobs = sum(map(len, groups.values())) * arrivals.grain
        rounds[step] = max(rounds[step], -(-jobs // width))
        while _flow_of(demand, inward[rank], groups, arrivals.grain, rounds[step]) is None:
            rounds[step] += 1
    return rounds


def schedule_of(demand: Demand, arrivals: Arrivals, scheduler: str) -> Schedule:
    """Return the schedule with these arrivals, in chunks, every step with the fewest rounds."""
    inward, rounds = _in_links(demand), rounds_of(demand, arrivals)
    rows: list[Array] = []
    for rank, step, groups in _receipts(demand, arrivals, inward):
        flow = _flow_of(demand, inward[rank], groups, arrivals.grain, rounds[step])
        assert flow is not None, "rounds_of returned enough rounds"
        members = np.array([part for group in groups.values() for part in group])
        share = cut_jobs([len(group) for group in groups.values()], flow, arrivals.grain, demand.unit)
        scale = arrivals.grain // share.parts
        part = members[share.job]
        first = part % arrivals.types * arrivals.grain
        link = np.array(inward[rank])[share.slot]
        rows.append(
            np.stack([
                np.full(len(part), step), part // arrivals.types, first + share.lo * scale, first + share.hi * scale,
                link,
            ])
        )  # fmt: skip
    table = np.concatenate(rows, axis=1) if rows else np.zeros((5, 0), dtype=np.int64)
    return _schedule(demand, table, arrivals.chunks, scheduler)


def _schedule(demand: Demand, table: Array, chunks: int, scheduler: str) -> Schedule:
    collective = demand.collective
    if collective.kind == "broadcast":
        table = _cut(table, collective, chunks)
    step, shard, lo, hi, link = table[:, np.lexsort((table[2], table[1], table[4], table[0]))]
    return Schedule(
        demand.topology, collective, chunks, step=step, action=np.full(len(step), int(Action.COPY)), shard=shard,
        lo=lo, hi=hi, route=link, scheduler=scheduler,
    )  # fmt: skip


def _cut(table: Array, collective: Collective, chunks: int) -> Array:
    """Cut intervals of the whole vector, in chunks of it, into intervals of its shards, in as many parts a shard."""
    n, columns = collective.num_ranks, []
    for step, _, lo, hi, link in table.T.tolist():
        for shard in range(lo * n // chunks, -(-hi * n // chunks)):
            at = max(lo * n - shard * chunks, 0), min(hi * n - shard * chunks, chunks)
            columns.append((step, shard, *at, link))
    return np.array(columns, dtype=np.int64).reshape(-1, 5).T
