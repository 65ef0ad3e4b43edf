"""From who sends what when to what each rank executes."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from collc.ir.arrays import distinct
from collc.ir.collective import Collective
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.schedule import Action, Schedule

from .base import Pass
from .hazards import synchronize
from .joining import LOCAL, RECEIVING, SENDING, join_messages

__all__ = ["Lower"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class Lower(Pass):
    """Turn transfers into instructions: a send at one rank, a receive at the other, waits between.

    Every connection (pair of ranks and parallel link) gets a threadblock at each end, in step order, so nothing can
    deadlock that had steps. A shard lies in the output where the collective puts it there, else in scratch; until
    something arrives for it, it is read from the input. What a rank has from the start and must output is copied.

    With ``join`` messages of one step of a connection become one where they lie next to each other at both ends. The
    pass `coalesce` joins more, which would undo a pipeline: all that could go together, whatever its step.
    """

    name: ClassVar[str] = "lower"
    summary: ClassVar[str] = "from who sends what when to what each rank executes"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Program
    requires: ClassVar[tuple[str, ...]] = ("discrete",)

    join: bool = attrs.field(
        default=False, metadata={"help": "send what is contiguous and goes in one step in one message"}
    )

    def run(self, ir: Schedule) -> Program:
        # By shard within a step, so that what lies together is sent one after the other. What is to be joined must not
        # have reductions of other connections in between: some of its chunks would come before those, some after.
        within = (ir.lo, ir.shard, ir.route) if self.join else (ir.route, ir.lo, ir.shard)
        ir = ir.rows(np.lexsort((*within, ir.step)))
        places = _Places.of(ir)
        moves = _cut(ir, places)
        table = _Table()
        _transfers(ir, places, moves, table)
        _copies(ir, places, table)
        return _assemble(ir, places, table, self.join)


# ---- where data lie


@attrs.frozen(eq=False)
class _Places:
    """Where each rank keeps each shard, in chunks; and since which transfer something has arrived for each atom.

    ``home_buffer``, ``home`` and ``start`` (offset in the input, -1: none) have shape (ranks, shards); ``arrived``
    (ranks, shards, atoms) holds the row of the first transfer that brings the atom, or the number of rows. ``ends`` are
    the atoms' ends in chunks.
    """

    home_buffer: Array
    home: Array
    start: Array
    arrived: Array
    ends: Array
    first: Array
    last: Array
    scratch: Array
    staged: Array

    @classmethod
    def of(cls, s: Schedule) -> _Places:
        c, chunks = s.collective, s.parts
        ranks, shards = np.arange(c.num_ranks)[:, None], np.arange(c.num_shards)[None, :]
        start, output = (_offsets(slots(ranks, shards), chunks) for slots in (c.input_slots, c.output_slots))
        ends = distinct(np.concatenate([[0, chunks], s.lo, s.hi]).astype(np.int64))
        first, last = np.searchsorted(ends, s.lo), np.searchsorted(ends, s.hi)
        arrived = np.full((c.num_ranks, c.num_shards, len(ends) - 1), len(s), dtype=np.int64)
        row, atom = _expand(first, last)
        backwards = row[::-1]  # the earliest row is written last
        arrived[s.dst[backwards], s.shard[backwards], atom[::-1]] = backwards
        staged = _leaves_late(s)
        arrived[staged] = -1
        passing = (arrived < len(s)).any(axis=2) & (output < 0)
        room = np.cumsum(passing, axis=1) * chunks
        home = np.where(output >= 0, output, np.where(passing, room - chunks, -1))
        home_buffer = np.where(output >= 0, Buffer.OUTPUT, Buffer.SCRATCH)
        return cls(home_buffer, home, start, arrived, ends, first, last, room[:, -1] if room.size else room, staged)


def _leaves_late(s: Schedule) -> Array:
    """Return which shards of an all-to-all their source still sends when the one that takes their place has come.

    In place, the shard from v to r arrives where the shard from r to v lies in r's input. Shape (ranks, shards).
    """
    ranks, shards = s.collective.num_ranks, np.arange(s.collective.num_shards)
    late = np.zeros((ranks, len(shards)), dtype=bool)
    if s.collective.kind != "alltoall" or not len(s):
        return late
    source, target = shards // ranks, shards % ranks
    shard, step = s.shard.astype(np.int64), s.step.astype(np.int64)
    leaves, comes = np.full(len(shards), -1), np.full(len(shards), s.num_steps)
    np.maximum.at(leaves, shard, np.where(s.src == source[shard], step, -1))
    np.minimum.at(comes, shard, np.where(s.dst == target[shard], step, s.num_steps))
    late[source, shards] = leaves > comes[target * ranks + source]
    return late


def _offsets(slots: Array, chunks: int) -> Array:
    return np.where(slots < 0, -1, slots * chunks)


def _expand(first: Array, last: Array) -> tuple[Array, Array]:
    """Return (row, atom) for every atom of every row, in row order."""
    widths = (last - first).astype(np.int64)
    row = np.repeat(np.arange(len(first)), widths)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(widths) - widths - first, widths)


@attrs.frozen(eq=False)
class _Moves:
    """Transfers cut where either end's location changes: row of the schedule, chunks ``lo .. hi``, and flags.

    ``sent_home``: the sender reads its home, not its input; ``kept_home``: the receiver has something at home already;
    ``busy``: the receiver sends the old value in the same step, so that what arrives must wait aside.
    """

    row: Array
    lo: Array
    hi: Array
    sent_home: Array
    kept_home: Array
    busy: Array


def _cut(s: Schedule, places: _Places) -> _Moves:
    row, atom = _expand(places.first, places.last)
    shard, src, dst = s.shard[row], s.src[row], s.dst[row]
    step_first = s.step_start[s.step[row]]  # what arrives in the same step has not arrived for the sender
    sent_home = places.arrived[src, shard, atom] < step_first
    kept_home = places.arrived[dst, shard, atom] < row
    busy = _sent_in_step(s, places, row, atom)
    flags = np.stack([row, sent_home, kept_home, busy])
    change = np.flatnonzero((flags[:, 1:] != flags[:, :-1]).any(axis=0)) + 1
    begin = np.concatenate([[0], change]).astype(np.int64) if len(row) else np.zeros(0, dtype=np.int64)
    final = np.concatenate([change - 1, [len(row) - 1]]).astype(np.int64) if len(row) else begin
    return _Moves(
        row[begin], places.ends[atom[begin]], places.ends[atom[final] + 1],
        sent_home[begin], kept_home[begin], busy[begin],
    )  # fmt: skip


def _sent_in_step(s: Schedule, places: _Places, row: Array, atom: Array) -> Array:
    """Return for each arriving atom whether its receiver sends that atom of the same shard in the same step."""
    _, shards, atoms = places.arrived.shape

    def key(rank: Array) -> Array:
        place = (rank.astype(np.int64) * shards + s.shard[row]) * atoms + atom
        return place * np.int64(s.num_steps + 1) + s.step[row]

    sent, arriving = np.append(np.sort(key(s.src[row])), -1), key(s.dst[row])
    return sent[np.searchsorted(sent[:-1], arriving)] == arriving


# ---- instructions


class _Table:
    """Instructions in the making: lists of columns, concatenated at the end."""

    COLUMNS = (
        "rank", "kind", "peer", "channel", "time", "rank_order", "opcode", "src_buffer", "src_offset",
        "dst_buffer", "dst_offset", "count",
    )  # fmt: skip

    def __init__(self) -> None:
        self.columns: dict[str, list[Array]] = {c: [] for c in self.COLUMNS}

    def add(self, length: int, **values: Any) -> None:
        for name in self.COLUMNS:
            self.columns[name].append(np.broadcast_to(np.asarray(values.get(name, 0), dtype=np.int64), length))

    def done(self) -> dict[str, Array]:
        return {c: np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64) for c, parts in self.columns.items()}


def _channels(s: Schedule) -> Array:
    """Number the used routes between each pair of ranks: parallel links are channels of their own.

    Routes over the same links are one.
    """
    named = np.unique(s.route)
    if s.routes.is_direct:
        first = named
    else:
        paths: dict[tuple[int, ...], int] = {}
        first = np.array([paths.setdefault(tuple(s.routes.path(r)), r) for r in named.tolist()], dtype=np.int64)
    used = np.unique(first)
    src, dst = s.routes.tails(s.topology)[used], s.routes.heads(s.topology)[used]
    order = np.lexsort((used, dst, src))
    pair = np.stack([src, dst])[:, order]
    fresh = np.concatenate([[True], (pair[:, 1:] != pair[:, :-1]).any(axis=0)]) if len(used) else np.zeros(0, bool)
    index = np.arange(len(used))
    channel = np.zeros(len(s.routes), dtype=np.int64)
    channel[used[order]] = index - np.maximum.accumulate(np.where(fresh, index, 0)) if len(used) else index
    channel[named] = channel[first]
    return channel


def _transfers(s: Schedule, places: _Places, moves: _Moves, table: _Table) -> None:
    """Add a send and a receive for every move; several instructions where what arrives must wait aside."""
    row, count = moves.row, moves.hi - moves.lo
    shard = s.shard[row].astype(np.int64)
    src, dst = s.src[row].astype(np.int64), s.dst[row].astype(np.int64)
    # In a step, reads come before writes; within both, the rows' order. Both ends of a connection agree on it.
    time = s.step[row].astype(np.int64) * 2
    common = {"channel": _channels(s)[s.route[row]], "rank_order": np.arange(len(row)), "count": count}
    buffer, offset = _at(places, src, shard, moves.lo, moves.sent_home)
    table.add(
        len(row), rank=src, kind=SENDING, peer=dst, time=time, opcode=Opcode.SEND,
        src_buffer=buffer, src_offset=offset, **common,
    )  # fmt: skip
    reduces = s.action[row] == Action.REDUCE
    buffer, offset = _at(places, dst, shard, moves.lo, moves.kept_home)
    home_buffer, home = _at(places, dst, shard, moves.lo, np.ones(len(row), dtype=bool))
    arrival = {**common, "rank": dst, "kind": RECEIVING, "peer": src, "time": time + 1}
    aside = moves.busy
    plain = {
        "opcode": np.where(reduces, Opcode.RECV_REDUCE_COPY, Opcode.RECV), "dst_buffer": home_buffer,
        "dst_offset": home, "src_buffer": np.where(reduces, buffer, 0), "src_offset": np.where(reduces, offset, 0),
    }  # fmt: skip
    _add_rows(table, ~aside, {**arrival, **plain})
    if aside.any():
        _set_aside(places, table, aside, arrival, reduces, (buffer, offset), (home_buffer, home))


def _at(places: _Places, rank: Array, shard: Array, lo: Array, at_home: Array) -> tuple[Array, Array]:
    buffer = np.where(at_home, places.home_buffer[rank, shard], Buffer.INPUT)
    return buffer, np.where(at_home, places.home[rank, shard], places.start[rank, shard]) + lo


def _add_rows(table: _Table, keep: Array, values: dict[str, Any]) -> None:
    chosen = {c: np.broadcast_to(v, len(keep))[keep] for c, v in values.items()}
    table.add(int(keep.sum()), **chosen)


def _set_aside(
    places: _Places, table: _Table, aside: Array, arrival: dict[str, Any], reduces: Array,
    kept: tuple[Array, Array], home: tuple[Array, Array],
) -> None:  # fmt: skip
    """Receive into scratch of its own, then copy or add once the old value has been sent.

    Otherwise two ranks that exchange a shard would each wait with receiving until their own send has gone.
    """
    rank, count = arrival["rank"], np.where(aside, arrival["count"], 0)
    order = np.argsort(rank, kind="stable")
    filled = np.cumsum(count[order]) - count[order]
    first = np.searchsorted(rank[order], np.arange(len(places.scratch)))
    base = np.append(filled, 0)[first] if len(filled) else np.zeros(len(places.scratch), dtype=np.int64)
    stage = np.empty(len(rank), dtype=np.int64)
    stage[order] = filled - base[rank[order]] + places.scratch[rank[order]]
    np.add.at(places.scratch, rank, count)
    staged = {"src_buffer": Buffer.SCRATCH, "src_offset": stage}
    target = {"dst_buffer": home[0], "dst_offset": home[1]}
    _add_rows(table, aside, {**arrival, "opcode": Opcode.RECV, "dst_buffer": Buffer.SCRATCH, "dst_offset": stage})
    untouched = aside & reduces & ((kept[0] != home[0]) | (kept[1] != home[1]))
    initial = {"src_buffer": kept[0], "src_offset": kept[1]}
    _add_rows(table, untouched, {**arrival, **initial, **target, "opcode": Opcode.COPY})
    code = np.where(reduces, Opcode.REDUCE, Opcode.COPY)
    _add_rows(table, aside, {**arrival, **staged, **target, "opcode": code})


def _copies(s: Schedule, places: _Places, table: _Table) -> None:
    """Copy to the output what the rank has from the start and nothing ever arrives for; to scratch what is staged."""
    c: Collective = s.collective
    source, held = np.nonzero(places.staged)
    table.add(
        len(source), rank=source, kind=LOCAL, peer=-1, time=-1, rank_order=np.arange(len(source)),
        opcode=Opcode.COPY, src_buffer=Buffer.INPUT, src_offset=places.start[source, held],
        dst_buffer=Buffer.SCRATCH, dst_offset=places.home[source, held], count=s.parts,
    )  # fmt: skip
    ranks, shards = np.arange(c.num_ranks)[:, None], np.arange(c.num_shards)[None, :]
    wanted = c.wants(ranks, shards) & c.holds(ranks, shards)
    rank, shard, atom = np.nonzero(wanted[:, :, None] & (places.arrived == len(s)))
    lo, hi = places.ends[atom], places.ends[atom + 1]
    table.add(
        len(rank), rank=rank, kind=LOCAL, peer=-1, time=2 * s.num_steps, rank_order=np.arange(len(rank)),
        opcode=Opcode.COPY, src_buffer=Buffer.INPUT, src_offset=places.start[rank, shard] + lo,
        dst_buffer=Buffer.OUTPUT, dst_offset=places.home[rank, shard] + lo, count=hi - lo,
    )  # fmt: skip


def _assemble(s: Schedule, places: _Places, table: _Table, join: bool) -> Program:
    """Sort the instructions into blocks: sends by peer, receives by peer, local copies."""
    t = table.done()
    sequence = np.arange(len(t["rank"]))  # instructions of one arrival were added in their order
    # To be joined, what is done with arrivals that were set aside must not stand between them.
    phase = np.select([t["opcode"] == Opcode.COPY, t["opcode"] == Opcode.REDUCE], [1, 2], 0) if join else sequence * 0
    t["phase"] = np.where(t["kind"] == RECEIVING, phase, 0)
    order = np.lexsort(
        (sequence, t["rank_order"], t["phase"], t["time"], t["channel"], t["peer"], t["kind"], t["rank"])
    )
    t = {c: values[order] for c, values in t.items()}
    sequence = sequence[order]
    if join and len(order):
        t, sequence = join_messages(t, sequence)
    owner = np.stack([t[c] for c in ("rank", "kind", "peer", "channel")])
    fresh = (
        np.concatenate([[True], (owner[:, 1:] != owner[:, :-1]).any(axis=0)]) if len(sequence) else np.zeros(0, bool)
    )
    start = np.flatnonzero(fresh)
    rank, kind, peer, channel = owner[:, start]
    columns: dict[str, Any] = {c: t[c] for c in INSTRUCTION_COLUMNS}
    program = Program(
        s.collective, s.parts, scratch=places.scratch, block_rank=rank,
        send_peer=np.where(kind == SENDING, peer, -1), recv_peer=np.where(kind == RECEIVING, peer, -1),
        channel=channel, block_start=np.append(start, len(sequence)),
        dep_start=np.zeros(len(sequence) + 1, dtype=np.int64), deps=[], scheduler=s.scheduler,
        **columns,
    )  # fmt: skip
    when = np.empty(len(sequence), dtype=np.int64)
    when[np.lexsort((sequence, t["rank_order"], t["phase"], t["time"]))] = np.arange(len(sequence))
    return synchronize(program, when)
