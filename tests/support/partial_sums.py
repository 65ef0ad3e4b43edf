"""Custom collectives that reduce, drawn at random, and right schedules of them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import strategies as st

from collc.ir.collective import Collective, preconditions
from collc.ir.schedule import Action, Schedule
from collc.ir.topology import Topology

__all__ = ["RANKS", "reductions", "scheduled"]

RANKS = 4
_NETWORK = Topology.from_links("net", RANKS, [(a, b) for a in range(RANKS) for b in range(RANKS) if a != b])
_SOME = st.sets(st.integers(0, RANKS - 1), min_size=1).map(lambda ranks: tuple(sorted(ranks)))


@st.composite
def reductions(draw: st.DrawFn) -> Collective:
    shards = draw(st.lists(st.tuples(_SOME, _SOME | st.just(())), min_size=1, max_size=4))
    if all(len(sources) == 1 for sources, _ in shards):
        shards.append(((0, 2), (1,)))
    pre, contributors = preconditions([sources for sources, _ in shards])
    return Collective("custom", RANKS, pre=pre, post=tuple(after for _, after in shards), contributors=contributors)


def scheduled(collective: Collective, luck: Random) -> Schedule:
    """Return a schedule of reductions along a random chain of the contributors, and copies to the targets."""
    rows: list[tuple[int, int, int, int, int]] = []
    for shard in range(collective.num_shards):
        chain = list(collective.contributions(shard))
        luck.shuffle(chain)
        steps = [(step, Action.REDUCE, a, b) for step, (a, b) in enumerate(pairwise(chain))]
        targets = [rank for rank in (collective.post or ())[shard] if rank != chain[-1]]
        steps += [(len(steps), Action.COPY, chain[-1], rank) for rank in targets]
        rows += [(step, action, shard, a, b) for step, action, a, b in steps]
    rows.sort(key=lambda row: row[0])
    known = sorted({row[0] for row in rows})
    links = {pair: k for k, pair in enumerate(zip(_NETWORK.src.tolist(), _NETWORK.dst.tolist(), strict=True))}
    columns = [[known.index(row[0]) for row in rows], [row[1] for row in rows], [row[2] for row in rows]]
    return Schedule(
        _NETWORK, collective, 1, *columns, lo=[0] * len(rows), hi=[1] * len(rows),
        route=[links[row[3], row[4]] for row in rows], discrete=True,
    )  # fmt: skip
