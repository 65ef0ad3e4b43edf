"""Check that a program sends exactly the data of its schedule, between the same ranks.

A *connection* is a pair of ranks here, with all its channels and parallel links. The verifier checks the result of a
program. But a program could use connections that the network does not have, or send more data than the schedule's cost
counts. This module compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, are_among, lexsort, numbered
from ..frozen import frozen
from ..layout import layout, locations, sizes, total
from ..machine import execute, partners
from ..program import Opcode, Program
from ..ragged import ranges
from ..schedule import Schedule
from ..waves import waves
from . import _columns, _values
from ._accesses import bounds
from ._structure import matched

__all__ = ["MOST_CHUNKS", "Carried", "carried", "excess", "strayed"]

#: chunks up to which each is compared; beyond that only the amounts are
MOST_CHUNKS = 1 << 22


@frozen(eq=False)
class Carried:
    """The load of connections: ``pair`` (source * ranks + target, ascending, distinct) carries ``amount`` chunks; a
    shard has ``chunks``.
    """

    ranks: int
    chunks: int
    pair: Array
    amount: Array


def carried(level: Schedule | Program) -> Carried:
    """Return the total load of each connection of a schedule or program. That of a program is kept."""
    if isinstance(level, Schedule):
        return _carried(level)
    if "carried" not in level.found:
        level.found["carried"] = _carried(level)
    found: Carried = level.found["carried"]
    return found


def _carried(level: Schedule | Program) -> Carried:
    if isinstance(level, Schedule):
        ranks, chunks = level.topology.num_ranks, level.parts
        pair, amount = _pairs(level), level.hi.astype(np.int64) - level.lo
    else:
        ranks, chunks = level.num_ranks, level.chunks
        sends = np.flatnonzero(level.sends)
        pair, amount = _pairs(level).take(sends), level.count.take(sends).astype(np.int64)
    found, number = numbered(pair)
    total = np.zeros(len(found), dtype=np.int64)
    np.add.at(total, number, amount)
    return Carried(ranks, chunks, found, total)


def excess(found: Carried, allowed: Carried) -> str:
    """Return the first connection that carries more than allowed, as text; empty if there is none."""
    ranks = allowed.ranks
    missing = np.flatnonzero(~are_among(found.pair, allowed.pair))
    if len(missing):
        source, target = divmod(int(found.pair[missing[0]]), ranks)
        return f"rank {source} sends to rank {target}, to which the schedule sends no data"
    here = allowed.amount[np.searchsorted(allowed.pair, found.pair)]
    pairs = zip(found.amount.tolist(), here.tolist(), strict=True)
    row = next((row for row, (a, b) in enumerate(pairs) if a * allowed.chunks > b * found.chunks), None)
    if row is None:
        return ""
    source, target = divmod(int(found.pair[row]), ranks)
    shards = f"{found.amount[row]}/{found.chunks} of a shard, needed {here[row]}/{allowed.chunks}"
    return f"rank {source} sends rank {target} {shards}"


def strayed(program: Program, schedule: Schedule) -> str:
    """Return where a program sends other chunks than the discrete schedule from which it was lowered; empty if nowhere.

    The program is executed on symbols. If it cannot be executed, the verifier reports why, and the result is empty. Of
    more than ``MOST_CHUNKS`` chunks in buffers or messages only the amounts are compared.
    """
    if wrong := excess(carried(program), carried(schedule)):
        return wrong
    sent_chunks = int(program.count[program.sends].astype(np.int64).sum())
    if max(sent_chunks, total(program)) > MOST_CHUNKS:
        return ""
    sent = _sent(program)
    return "" if sent is None else _difference(program, sent, _scheduled(schedule))


def _pairs(level: Schedule | Program) -> Array:
    """Return the connection of every transfer, or of every instruction by its block's send peer."""
    if isinstance(level, Schedule):
        return level.src.astype(np.int64) * level.topology.num_ranks + level.dst
    return (level.block_rank.astype(np.int64) * level.num_ranks + level.send_peer).take(level.block)


def _keys(pair: Array, identity: Array, level: Schedule | Program) -> Array:
    """Return a number for a chunk on a connection: chunks of a connection are in the order of their identities."""
    chunks = level.parts if isinstance(level, Schedule) else level.chunks
    return pair * np.int64(level.collective.num_shards * chunks) + identity


@frozen(eq=False)
class _Runs:
    """What goes over connections: runs of consecutive chunks, ``count`` from key ``first`` on, sorted by key."""

    first: Array
    count: Array

    @classmethod
    def of(cls, first: Array, count: Array) -> _Runs:
        order = lexsort([first])
        return cls(first.take(order), count.take(order).astype(np.int64, copy=False))

    def joined(self) -> _Runs | None:
        """Return the fewest runs of the same chunks; None if a chunk is in two of them."""
        end = self.first + self.count
        if (end[:-1] > self.first[1:]).any():
            return None
        fresh = np.append(True, end[:-1] != self.first[1:])[: len(end)]
        begin = np.flatnonzero(fresh)
        last = np.append(begin[1:], len(end))[: len(begin)] - 1
        return _Runs(self.first[begin], end[last] - self.first[begin])

    def listed(self) -> Array:
        """Return the key of every chunk, sorted."""
        return np.sort(ranges(self.first, self.count))


def _scheduled(schedule: Schedule) -> _Runs:
    identity = schedule.shard.astype(np.int64) * schedule.parts + schedule.lo
    return _Runs.of(_keys(_pairs(schedule), identity, schedule), schedule.hi.astype(np.int64) - schedule.lo)


def _sent(program: Program) -> _Runs | None:
    """Return the chunks that go over each connection, message by message."""
    found = _identities(program)
    if found is None:
        return None
    sends = np.flatnonzero(program.sends)
    pair, (first, count) = _pairs(program)[sends], found
    if len(first) > len(pair):  # chunk by chunk
        pair = np.repeat(pair, program.count[sends].astype(np.int64))
    return _Runs.of(_keys(pair, first - 1, program), count)


def _identities(program: Program) -> tuple[Array, Array] | None:
    """Return the chunks that are sent (from 1): the first and the number of each message, or every one alone.

    None if the program cannot be executed.
    """
    partner = partners(program)
    if matched(program, partner) or bounds(program, sizes(program)):
        return None
    fixed = _fixed_identities(program, partner)
    if fixed is not None:
        return fixed
    where, found_waves = layout(program, False), waves(program)
    if found_waves is not None:
        return _alone(_columns.identities(program, where, found_waves, partner))
    execution = execute(program)
    if execution.deadlock:
        return None
    return _alone(_values.identities(program, where, execution.finished, partner))


def _alone(chunks: Sequence[int] | Array | None) -> tuple[Array, Array] | None:
    """Return chunks as runs of one."""
    return None if chunks is None else (np.array(chunks, dtype=np.int64), np.ones(len(chunks), dtype=np.int64))


def _fixed_identities(program: Program, partner: Array) -> tuple[Array, Array] | None:
    """Return what messages send if every location only ever holds one chunk; None if that is not known.

    Each location of input and output is to hold the chunk of its place. If every instruction takes the chunks of its
    operands and leaves them where they belong, whatever the order, then so it is.
    """
    where, count = layout(program, False), program.count.astype(np.int64)
    kind = np.int32 if max(where.total, program.collective.num_shards * program.chunks) < 2**31 - 1 else np.int64
    holds, run = np.zeros((2, where.total + 1), dtype=kind)
    for output in (False, True):
        for at, identity, _ in _columns.places(program, where, output).blocks():
            holds[at] = identity
    np.cumsum(holds[1:] != holds[:-1] + 1, out=run[1:])  # of consecutive chunks
    sides = [(program.reads_src, 0), (program.reads_dst | program.writes_dst, 1)]
    addresses = locations(program, where)
    found = np.zeros(program.num_instructions, dtype=np.int64)
    for used, side in sides:
        rows = np.flatnonzero(used)
        at = addresses[side].take(rows)
        first = holds.take(at)
        if not first.all() or (run.take(at) != run.take(at + count.take(rows) - 1)).any():
            return None
        if ((found.take(rows) != 0) & (found.take(rows) != first)).any():
            return None
        found[rows] = first
    if (found == 0)[program.opcode != Opcode.NOP].any():
        return None
    taken = np.flatnonzero(partner >= 0)
    sends = np.flatnonzero(program.sends)
    if (found[taken] != found.take(partner.take(taken))).any():
        return None
    return found.take(sends), count.take(sends)


def _difference(program: Program, sends: _Runs, schedules: _Runs) -> str:
    """Return the first chunk that is sent more or less often than scheduled."""
    one, other = sends.joined(), schedules.joined()
    if one and other and np.array_equal(one.first, other.first) and np.array_equal(one.count, other.count):
        return ""
    sent, scheduled = sends.listed(), schedules.listed()
    if np.array_equal(sent, scheduled):
        return ""
    length = min(len(sent), len(scheduled))
    apart = np.flatnonzero(sent[:length] != scheduled[:length])
    at = int(apart[0]) if len(apart) else length
    extra = at == len(scheduled) or (at < len(sent) and sent[at] < scheduled[at])
    pair, identity = divmod(int((sent if extra else scheduled)[at]), program.collective.num_shards * program.chunks)
    source, target = divmod(pair, program.num_ranks)
    shard, chunk = divmod(identity, program.chunks)
    what = f"chunk {chunk} of shard {shard}"
    if extra:
        return f"rank {source} sends rank {target} {what}, which the schedule does not send there"
    return f"rank {source} does not send rank {target} {what}, which the schedule sends there"
