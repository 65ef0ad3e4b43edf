"""Does a program send what its schedule sends, and only where it sends it?

A *connection* is a pair of ranks, whatever channels or parallel links it has. The verifier says whether a program
computes the right result; a program may do so over connections that the network does not have, or with more data on one
than the schedule's cost counts. That is what is compared here.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..arrays import distinct
from ..layout import layout, sizes, total
from ..machine import execute, partners
from ..program import Opcode, Program
from ..schedule import Schedule
from ..waves import waves
from . import _columns, _values
from ._accesses import bounds
from ._structure import matched

__all__ = ["MOST_CHUNKS", "Carried", "carried", "excess", "strayed"]

Array = np.ndarray[Any, np.dtype[Any]]

_SENDS = np.array([op.sends for op in Opcode])
#: chunks that are followed one by one; of more only the amounts are compared
MOST_CHUNKS = 1 << 22


@attrs.frozen(eq=False)
class Carried:
    """What connections carry: ``pair`` (source * ranks + target, ascending, each once) carries ``amount`` chunks, of
    which a shard has ``chunks``.
    """

    ranks: int
    chunks: int
    pair: Array
    amount: Array


def carried(level: Schedule | Program) -> Carried:
    """Return what each connection of a schedule or program carries in all."""
    if isinstance(level, Schedule):
        ranks, chunks = level.topology.num_ranks, level.parts
        pair, amount = _pairs(level), level.hi.astype(np.int64) - level.lo
    else:
        ranks, chunks = level.num_ranks, level.chunks
        sends = np.flatnonzero(_SENDS[level.opcode])
        pair, amount = _pairs(level)[sends], level.count[sends].astype(np.int64)
    found = distinct(pair)
    total = np.zeros(len(found), dtype=np.int64)
    np.add.at(total, np.searchsorted(found, pair), amount)
    return Carried(ranks, chunks, found, total)


def excess(found: Carried, allowed: Carried) -> str:
    """Return the first connection that carries more than it may, in words; nothing where none does."""
    ranks = allowed.ranks
    missing = np.flatnonzero(~np.isin(found.pair, allowed.pair))
    if len(missing):
        source, target = divmod(int(found.pair[missing[0]]), ranks)
        return f"rank {source} sends to rank {target}, to which it had nothing to send"
    here = allowed.amount[np.searchsorted(allowed.pair, found.pair)]
    pairs = zip(found.amount.tolist(), here.tolist(), strict=True)
    row = next((row for row, (a, b) in enumerate(pairs) if a * allowed.chunks > b * found.chunks), None)
    if row is None:
        return ""
    source, target = divmod(int(found.pair[row]), ranks)
    shards = f"{found.amount[row]}/{found.chunks} of a shard, needed are {here[row]}/{allowed.chunks}"
    return f"rank {source} sends rank {target} {shards}"


def strayed(program: Program, schedule: Schedule) -> str:
    """Return where a program that was lowered from a discrete schedule sends other chunks than that; else nothing.

    The program is executed on symbols. One that does not execute is for the verifier to explain; of more than
    ``MOST_CHUNKS`` chunks in buffers or messages only the amounts are compared.
    """
    if wrong := excess(carried(program), carried(schedule)):
        return wrong
    sent_chunks = int(program.count[_SENDS[program.opcode]].astype(np.int64).sum())
    if max(sent_chunks, total(program)) > MOST_CHUNKS:
        return ""
    sent = _sent(program)
    return "" if sent is None else _difference(sent, _scheduled(schedule), program)


def _pairs(level: Schedule | Program) -> Array:
    """Return the connection of every transfer, or of every instruction by its block's send peer."""
    if isinstance(level, Schedule):
        return level.src.astype(np.int64) * level.topology.num_ranks + level.dst
    return (level.block_rank.astype(np.int64) * level.num_ranks + level.send_peer)[level.block]


def _keys(pair: Array, identity: Array, level: Schedule | Program) -> Array:
    """Return one number for every chunk on a connection, sorted."""
    chunks = level.parts if isinstance(level, Schedule) else level.chunks
    return np.sort(pair * np.int64(level.collective.num_shards * chunks) + identity)


def _scheduled(schedule: Schedule) -> Array:
    size = schedule.hi.astype(np.int64) - schedule.lo
    row = np.repeat(np.arange(len(schedule)), size)
    chunk = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size) + schedule.lo[row]
    return _keys(_pairs(schedule)[row], schedule.shard[row].astype(np.int64) * schedule.parts + chunk, schedule)


def _sent(program: Program) -> Array | None:
    """Return which chunk of which shard goes over which connection, message by message."""
    found = _identities(program)
    if found is None:
        return None
    sends = np.flatnonzero(_SENDS[program.opcode])
    pair = np.repeat(_pairs(program)[sends], program.count[sends].astype(np.int64))
    return _keys(pair, found - 1, program)


def _identities(program: Program) -> Array | None:
    partner = partners(program)
    if matched(program, partner) or bounds(program, sizes(program)):
        return None
    where, swift = layout(program, False), waves(program)
    if swift is not None:
        return _columns.identities(program, where, swift, partner)
    execution = execute(program)
    if execution.deadlock:
        return None
    found = _values.identities(program, where, execution.finished, partner)
    return None if found is None else np.array(found, dtype=np.int64)


def _difference(sent: Array, wanted: Array, program: Program) -> str:
    """Return the first chunk that is sent more or less often than it is wanted."""
    if np.array_equal(sent, wanted):
        return ""
    length = min(len(sent), len(wanted))
    apart = np.flatnonzero(sent[:length] != wanted[:length])
    at = int(apart[0]) if len(apart) else length
    extra = at == len(wanted) or (at < len(sent) and sent[at] < wanted[at])
    pair, identity = divmod(int((sent if extra else wanted)[at]), program.collective.num_shards * program.chunks)
    source, target = divmod(pair, program.num_ranks)
    shard, chunk = divmod(identity, program.chunks)
    what = f"chunk {chunk} of shard {shard}"
    if extra:
        return f"rank {source} sends rank {target} {what}, which the schedule does not send there"
    return f"rank {source} does not send rank {target} {what}, which the schedule sends there"
