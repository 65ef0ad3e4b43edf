"""What explains a failed check of a schedule: which rows brought the data, and which data are missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..schedule import Action, Schedule
from ..shown import some
from ._atoms import Atoms
from .report import Row

__all__ = [
    "Missing",
    "arrivals",
    "contribution",
    "lacking_contributions",
    "overwritten",
    "part_rows",
    "reducer",
    "supplier",
]

_MOST_RANKS = 2  # in notes, besides the first


def part_rows(s: Schedule, shard: int, atoms: Atoms, atom: int) -> Array:
    """Return the rows that move an atom of a shard, in order."""
    return np.flatnonzero((s.shard == shard) & (atoms.first <= atom) & (atoms.last > atom))


def arrivals(s: Schedule, row: int) -> tuple[tuple[str, ...], tuple[Row, ...], str]:
    """Return notes and rows that say when the sender of a row gets the data that the row sends, if ever, and a hint."""
    names, rank, step = s.topology.names, int(s.src[row]), int(s.step[row])
    moved = (s.shard == s.shard[row]) & (s.lo < s.hi[row]) & (s.hi > s.lo[row])
    into = np.flatnonzero(moved & (s.dst == rank) & (s.step >= step))
    if not len(into):
        origin = s.collective.source(int(s.shard[row]))
        begins = "" if origin is None else f"; rank {names[origin]} has it at the start"
        return (
            (f"no transfer brings shard {s.shard[row]} to rank {names[rank]}{begins}",),
            (),
            f"bring it to rank {names[rank]} in an earlier step",
        )
    found, when = int(into[0]), int(s.step[into[0]])
    notes = ("data that arrive in a step can be sent on in a later step",) if when == step else ()
    here = Row(found, f"rank {names[rank]} receives it here, in step {when}")
    return notes, (here,), "move this transfer to a step after the one that brings the data"


def contribution(s: Schedule, atoms: Atoms, row: int, atom: int, rank: int) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Return notes and rows that say where the receiver of a row got the contribution of a rank before that row."""
    to, names = int(s.dst[row]), s.topology.names
    if to == rank:
        return (f"rank {names[to]} begins with its own contribution",), ()
    earlier = _brought(s, part_rows(s, int(s.shard[row]), atoms, atom), row, to, rank)
    if earlier is None:
        return (), ()
    return (), (Row(earlier, f"rank {names[to]} received it here first, in step {s.step[earlier]}"),)


def _brought(s: Schedule, rows: Array, last: int, to: int, rank: int) -> int | None:
    """Return the first row before ``last`` that gave a rank's contribution to a rank; ``rows`` move one atom."""
    has: dict[int, set[int]] = {}
    for step in np.unique(s.step[rows]).tolist():
        now = rows[s.step[rows] == step].tolist()
        sent = {row: set(has.get(int(s.src[row]), _own(s, row, int(s.src[row])))) for row in now}
        for row in now:
            if row >= last:
                return None
            into = int(s.dst[row])
            before = has.get(into, _own(s, row, into)) if s.action[row] == Action.REDUCE else set()
            has[into] = before | sent[row]
            if into == to and rank in sent[row]:
                return int(row)
    return None


def _own(s: Schedule, row: int, rank: int) -> set[int]:
    """Return what a rank has of a row's shard at the start."""
    return {rank} if s.collective.holds(rank, int(s.shard[row])) else set()


def supplier(s: Schedule, rank: int, holders: Array, shard: int) -> str:
    """Return a hint with a transfer, in a new step, that brings a shard to a rank or nearer to it from one of
    ``holders``; "" if none can.
    """
    names, topology = s.topology.names, s.topology
    hops = topology.hops_to(rank)
    near = [holder for holder in holders.tolist() if hops[holder] > 0]
    if not near or not topology.is_direct:
        return ""
    holder = min(near, key=lambda node: (hops[node], node))
    start, links = topology.out_links
    heads = topology.dst[links[start[holder] : start[holder + 1]]].tolist()
    to = min(node for node in heads if hops[node] == hops[holder] - 1)
    onward = "" if to == rank else f", then send it on to rank {names[rank]}"
    return f"add `at {s.num_steps}: send shard {shard} from {names[holder]} to {names[to]};`{onward}"


def overwritten(s: Schedule, has: Array, rank: int, shard: int) -> tuple[Row, ...]:
    """Return the first row that replaced a rank's own contribution, if its result lacks that; ``has`` are its words."""
    if int(has[rank // 64]) >> (rank % 64) & 1 or rank not in s.collective.contributions(shard):
        return ()
    copies = np.flatnonzero((s.dst == rank) & (s.shard == shard) & (s.action == Action.COPY))
    return (Row(int(copies[0])),) if len(copies) else ()


def reducer(s: Schedule, values: Array, rank: int, shard: int) -> str:
    """Return a hint for a rank whose result lacks contributions; ``values`` are the words of all ranks' values."""
    names, topology = s.topology.names, s.topology
    if overwritten(s, values[rank], rank, shard):
        return f"`send` replaces what rank {names[rank]} has: write `reduce` to add to it"
    if not topology.is_direct:
        return ""
    near = np.unique(topology.src[(topology.dst == rank) & (topology.src != rank)]).tolist()
    apart = [node for node in near if values[node].any() and not (values[node] & values[rank]).any()]
    if apart:
        best = max(apart, key=lambda node: (int(np.bitwise_count(values[node]).sum()), -node))
        return f"add `at {s.num_steps}: reduce shard {shard} from {names[best]} to {names[rank]};`"
    count = np.bitwise_count(values).sum(axis=1)
    full = [node for node in near if count[node] == s.collective.contribution_counts[shard]]
    if full:
        return f"add `at {s.num_steps}: send shard {shard} from {names[full[0]]} to {names[rank]};`"
    return f"`reduce` it, in an earlier step, to a rank whose sum rank {names[rank]} receives later"


class Missing:
    """The shards that ranks lack at the end, collected a block of ranks at a time."""

    def __init__(self, s: Schedule, shards: int):
        self.s, self.shards = s, shards
        self.ranks: list[tuple[int, str, int]] = []  # the first ranks: their number, what they lack, a shard
        self.count = 0

    def add(self, rank: int, shards: Sequence[int], parts: Sequence[str], amount: int) -> None:
        """Add a rank that lacks some of the ``amount`` shards; of those whose part has a name, that part only."""
        self.count += 1
        if len(self.ranks) > _MOST_RANKS:
            return
        name = self.s.topology.names[rank]
        if amount == 1 or self.shards < self.s.collective.num_shards:
            text = f"rank {name} never receives{parts[0]} shard {shards[0]}"
        else:
            pairs = zip(shards, parts, strict=True)
            pairs = zip(shards, parts, strict=True)
            listed = [f"{shard} ({part[1:]} it)" if part else f"{shard}" for shard, part in pairs]
            text = f"rank {name} misses {len(shards)} of {amount} shards: {some(listed)}"
        self.ranks.append((rank, text, shards[0]))

    @property
    def detail(self) -> str:
        """What the first rank lacks, and the number of the other ranks."""
        more = self.count - 1
        ends = f"; {more} more rank{'s miss' if more > 1 else ' misses'} shards" if more else ""
        return self.ranks[0][1] + ends

    @property
    def notes(self) -> tuple[str, ...]:
        """What the next ranks lack."""
        return tuple(text for _, text, _ in self.ranks[1:])


def lacking_contributions(s: Schedule, has: Array, part: str, rank: int, shard: int) -> str:
    """Return which contributions a rank's result lacks; ``has`` are the words of those that it has."""
    names, contributors = s.topology.names, s.collective.contributions(shard)
    ranks = len(contributors)
    lacking = [names[r] for r in contributors if not int(has[r // 64]) >> (r % 64) & 1]
    what = f"rank {names[rank]} ends with{part} shard {shard} without the contribution"
    if len(lacking) == 1:
        return f"{what} of rank {lacking[0]}"
    return f"{what}s of {len(lacking)} of {ranks} ranks: {some(lacking)}"
