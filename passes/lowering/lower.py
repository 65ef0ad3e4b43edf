"""Lower a schedule to a program of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, are_among, distinct, lexsort
from collc.ir.collective import Collective
from collc.ir.diagnostic import Subject, error
from collc.ir.frozen import frozen
from collc.ir.placement import channels
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, group_starts, inverse, owners, ranges, starts
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.hazards import synchronize
from ..base import Pass
from ..program.orbit_numbering import numbered_for_runs
from ..ranges import Range
from .gathering import Ends, gathered, grouped
from .joining import LOCAL, RECEIVING, SENDING, join_messages
from .regular import joins, lower_by_ranks
from .template import lower_messages, lower_template
from .turned import lower_turned

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from collc.ir.levels import Level

__all__ = ["INSTRUCTIONS", "Lower", "instructions"]

#: what a pass that needs :func:`instructions` of its result keeps them as in ``Schedule.found``, for :class:`Lower`
INSTRUCTIONS = "instructions"

#: chunks of pipelined templates are numbered anew if that saves 1/_PAYS of the instructions: longer messages wait for
#: more data
_PAYS = 4


@frozen
class Lower(Pass):
    """Turn transfers into instructions: a send at one rank, a receive at the other, dependencies between threadblocks.

    Every connection (pair of ranks and parallel link) gets a threadblock at each end, in step order, so that no program
    deadlocks (but see ``aside``). A shard is in the output if the collective needs it there, otherwise in scratch. A
    rank reads it from the input until data have arrived for it. A rank copies data to the output that it has from the
    start and must output.

    With ``join``, messages of one step of a connection become one if they are contiguous at both ends. For that a rank
    may first copy a shard of its own beside shards that it receives (:mod:`.gathering`). The pass `coalesce` joins
    messages of different steps too, which would undo pipelining.

    With ``templates``, the program of a template is that of one rank (:mod:`.template`). Files hold it as it is, or
    passes work on it by ``orbits`` until all ranks are listed. For them data share no scratch yet, and a pipelined
    allreduce numbers its chunks if its messages then have a quarter fewer runs.

    A long schedule that a group of ranks moves, whatever its routes are, is lowered to one rank too, if its messages
    have two transfers or more (:mod:`.regular`).

    With ``listed``, a longer schedule without a group is lowered in the same way, as the template of a group of one
    element: the transfers of a step over one connection are one message, wherever its chunks lie. A ring, of which each
    message is one transfer, keeps its instructions: the pass `fuse` joins what arrives and what leaves.

    In place, a shard of an all-to-all arrives where the rank may send another one in the same step. Its receive waits
    for that send. So ranks wait for each other if they exchange more messages in a step than a connection has slots.
    With ``aside``, a rank first copies such shards to scratch: then no receive waits for a send of its step.
    """

    name: ClassVar[str] = "lower"
    summary: ClassVar[str] = "lower a schedule to a program of instructions"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Program
    requires: ClassVar[tuple[str, ...]] = ("discrete",)

    takes_templates: ClassVar[bool] = True
    for_orbits: ClassVar[bool] = True

    join: bool = attrs.field(default=False, metadata={"help": "join contiguous transfers of one step into one message"})
    templates: bool = attrs.field(
        default=False, metadata={"help": "lower the schedule of one shard and a group to the program of one rank"}
    )
    listed: int | None = attrs.field(
        default=None,
        metadata={
            "help": "with more transfers, those of a step over one connection are one message",
            "range": Range(0),
        },
    )

    aside: bool = attrs.field(
        default=False,
        metadata={"help": "copy shards of an all-to-all aside that others replace in the step that sends them"},
    )

    orbits: bool = attrs.field(
        default=False,
        metadata={"help": "passes on the program of one rank follow, and files list all ranks"},
    )

    def unstuck(self) -> Lower | None:
        return None if self.aside else attrs.evolve(self, aside=True)

    def of_all_ranks(self) -> Lower:
        return attrs.evolve(self, templates=False, orbits=False)

    def on(self, ir: Level) -> Pass:
        idle = isinstance(ir, Schedule) and self.listed is not None and len(ir) <= self.listed
        this = attrs.evolve(self, listed=None) if idle else self
        if isinstance(ir, SymmetricSchedule) and not self.join and ir.collective.kind != "alltoall":
            this = attrs.evolve(this, orbits=False)
        return Pass.on(this, ir)

    def run(self, ir: Schedule | SymmetricSchedule) -> AnyProgram:
        if isinstance(ir, SymmetricSchedule):
            found = lower_template(ir, shared=not self.orbits) if self.templates and ir.movable else None
            if found is not None:
                return self._numbered(found)
            ir = ir.unfold()
        _require_plain(ir)
        if self.templates and (alike := lower_by_ranks(ir, self.orbits)) is not None:
            return self._numbered(alike)
        if self.listed is not None and len(ir) > self.listed and (ir.collective.kind == "alltoall" or joins(ir)):
            program = lower_turned(ir) or lower_messages(ir)
            if program is not None:
                return program
        known = None if self.join or self.aside else ir.found.get(INSTRUCTIONS)
        return synchronize(*(known or instructions(ir, self.join, self.aside)))

    def _numbered(self, found: SymmetricProgram) -> SymmetricProgram:
        return numbered_for_runs(found, share=_PAYS, by=self.name) if self.join and self.orbits else found


def _require_plain(s: Schedule) -> None:
    """Raise C0578 for transfers that share links in switches: sends and receives say nothing of that."""
    if s.in_network:
        message = f"transfers of `{s.collective.name}` share links in switches, which sends and receives cannot do"
        hint = (
            "write `using forest { in-network: false }`, declare the switches without `multicast` and `reduces`, or "
            "use the target `mscclpp-json`"
        )
        raise error("C0578", message, hint=hint, about=(Subject.TOPOLOGY,), exit_status=3)


def instructions(s: Schedule, join: bool = False, aside: bool = False) -> tuple[Program, Array]:
    """Return the program without dependencies, and each instruction's position in a correct sequential order.

    ``join`` and ``aside`` are the options of :class:`Lower`.
    """
    # By shard within a step, so that contiguous data are sent one after the other. No reduction of another connection
    # may stand between messages to join: some of their chunks would come before it, some after.
    within = (s.lo, s.shard, s.route) if join else (s.route, s.lo, s.shard)
    s = s.rows(lexsort((*within, s.step)))
    early = _sent_after_arrival(s, aside)
    places = _Places.of(s, early)
    moves = _cut(s, places)
    if join:
        places, moves = _joinable(s, places, moves, early)
    draft = _Draft()
    _transfers(s, places, moves, draft)
    _copies(s, places, draft)
    return _assemble(s, places, draft, join)


# ---- where data lie


@frozen(eq=False)
class _Places:
    """Where each rank keeps each shard, in chunks, and the first transfer that brings each interval of it.

    Intervals are the smallest that transfers move as a whole; ``ends`` are their ends in chunks. ``home_buffer``,
    ``home`` and ``start`` (offset in the input, -1: none) have shape (ranks, shards). ``arrived`` has shape (ranks,
    shards, intervals): the row of the first transfer that brings the interval, -1 if a copy does before all transfers,
    or the number of rows if none does. ``early`` are the shards of these copies.
    """

    home_buffer: Array
    home: Array
    start: Array
    arrived: Array
    ends: Array
    first: Array
    last: Array
    scratch: Array
    early: Array

    @classmethod
    def of(cls, s: Schedule, early: Array, first_sent: Array | None = None) -> _Places:
        """Return the places; ``early`` are shards to copy before all else. Shape of both: (ranks, shards).

        Scratch has the order of shards, or of ``first_sent``.
        """
        c, chunks = s.collective, s.parts
        ranks, shards = np.arange(c.num_ranks)[:, None], np.arange(c.num_shards)[None, :]
        start, output = (_offsets(slots(ranks, shards), chunks) for slots in (c.input_slots, c.output_slots))
        ends = distinct(np.concatenate([[0, chunks], s.lo, s.hi]).astype(np.int64))
        first, last = np.searchsorted(ends, s.lo), np.searchsorted(ends, s.hi)
        arrived = np.full((c.num_ranks, c.num_shards, len(ends) - 1), len(s), dtype=np.int64)
        row, interval = _expand(first, last)
        backwards = row[::-1]  # the earliest row is written last
        arrived[s.dst.take(backwards), s.shard.take(backwards), interval[::-1]] = backwards
        arrived[early] = -1
        passing = (arrived < len(s)).any(axis=2) & (output < 0)
        chosen, reserved = _chosen_scratch(s)
        room = _room(passing & (chosen < 0), first_sent) * chunks + reserved[:, None]
        own = np.where(chosen < 0, room - chunks, chosen)
        home = np.where(output >= 0, output, np.where(passing, own, -1))
        home_buffer = np.where(output >= 0, Buffer.OUTPUT, Buffer.SCRATCH)
        return cls(home_buffer, home, start, arrived, ends, first, last, room.max(axis=1, initial=0), early)

    def arrival(self, rank: Array, shard: Array, interval: Array) -> Array:
        """Return ``arrived[rank, shard, interval]``; one index takes a fraction of the time of three."""
        _, shards, intervals = self.arrived.shape
        found: Array = self.arrived.ravel().take((rank.astype(np.int64) * shards + shard) * intervals + interval)
        return found


def _room(passing: Array, first_sent: Array | None) -> Array:
    """Return how many passing shards of a rank lie up to each shard in scratch, itself included."""
    if first_sent is None:
        return np.cumsum(passing, axis=1)
    order = np.argsort(first_sent, axis=1, kind="stable")
    room = np.empty(passing.shape, dtype=np.int64)
    np.put_along_axis(room, order, np.cumsum(np.take_along_axis(passing, order, axis=1), axis=1), axis=1)
    return room


def _chosen_scratch(s: Schedule) -> tuple[Array, Array]:
    """Return the place in scratch that the schedule chooses for what each rank passes on, and the chunks of scratch
    that its choices take.

    Shapes (ranks, shards), in chunks, -1 if there is no choice, and (ranks,).
    """
    chosen = np.full((s.collective.num_ranks, s.collective.num_shards), -1, dtype=np.int64)
    reserved = np.zeros(s.collective.num_ranks, dtype=np.int64)
    if s.placement is not None:
        place = s.placement.scratch.astype(np.int64)
        stored = (place >= 0) & (s.action == Action.COPY)
        chosen[s.dst[stored], s.shard[stored]] = place[stored] * s.parts
        np.maximum.at(reserved, s.dst, (place + 1) * s.parts)
    return chosen, reserved


def _sent_after_arrival(s: Schedule, same_step: bool) -> Array:
    """Return which shards of an all-to-all their source still sends after the shard that replaces them has arrived.

    In place, the shard from v to r arrives at the place of the shard from r to v in r's input. With ``same_step``, also
    those that it sends in the step of the arrival. Shape (ranks, shards).
    """
    members, shards = s.collective.num_members, np.arange(s.collective.num_shards)
    staged = np.zeros((s.collective.num_ranks, len(shards)), dtype=bool)
    if s.collective.kind != "alltoall" or not len(s):
        return staged
    source, target = s.collective.ranks[shards // members], s.collective.ranks[shards % members]
    shard, step = s.shard.astype(np.int64), s.step.astype(np.int64)
    last_sent, arrives = np.full(len(shards), -1), np.full(len(shards), s.num_steps)
    np.maximum.at(last_sent, shard, np.where(s.src == source[shard], step, -1))
    np.minimum.at(arrives, shard, np.where(s.dst == target[shard], step, s.num_steps))
    replaced = arrives[shards % members * members + shards // members]
    staged[source, shards] = (last_sent > replaced) | (same_step & (last_sent == replaced))
    return staged


def _offsets(slots: Array, chunks: int) -> Array:
    return np.where(slots < 0, -1, slots * chunks)


def _expand(first: Array, last: Array) -> tuple[Array, Array]:
    """Return (row, interval) for every interval of every row, in row order."""
    widths = (last - first).astype(np.int64)
    return owners(widths), ranges(first, widths)


@frozen(eq=False)
class _Moves:
    """Transfers, cut where the location at either end changes: row of the schedule, chunks ``lo .. hi``, and flags.

    ``sent_home``: the sender reads its home, not its input. ``kept_home``: the receiver already has data at its home.
    ``busy``: the receiver sends the old value in the same step, so received data must first go to scratch.
    """

    row: Array
    lo: Array
    hi: Array
    sent_home: Array
    kept_home: Array
    busy: Array


def _cut(s: Schedule, places: _Places) -> _Moves:
    row, interval = _expand(places.first, places.last)
    shard, src, dst = s.shard.take(row), s.src.take(row), s.dst.take(row)
    step_first = s.step_start.take(s.step.take(row))  # data of the same step have not arrived yet
    sent_home = places.arrival(src, shard, interval) < step_first
    kept_home = places.arrival(dst, shard, interval) < row
    busy = _sent_in_step(s, places, row, interval)
    flags = first_of_group(row)
    for flag in (sent_home, kept_home, busy):
        flags |= first_of_group(flag)
    change = np.flatnonzero(flags[1:]) + 1
    begin = np.concatenate([[0], change]).astype(np.int64) if len(row) else np.zeros(0, dtype=np.int64)
    final = np.concatenate([change - 1, [len(row) - 1]]).astype(np.int64) if len(row) else begin
    return _Moves(
        row.take(begin), places.ends[interval.take(begin)], places.ends.take(interval.take(final) + 1),
        sent_home[begin], kept_home.take(begin), busy[begin],
    )  # fmt: skip


def _sent_in_step(s: Schedule, places: _Places, row: Array, interval: Array) -> Array:
    """Return for each arriving interval whether its receiver sends that interval of the shard in the same step."""
    _, shards, intervals = places.arrived.shape

    def key(rank: Array) -> Array:
        place = (rank.take(row).astype(np.int64) * shards + shard) * intervals + interval
        keys: Array = place * np.int64(s.num_steps + 1) + step
        return keys

    shard, step = s.shard.take(row), s.step.take(row)
    return are_among(key(s.dst), key(s.src))


def _joinable(s: Schedule, places: _Places, moves: _Moves, early: Array) -> tuple[_Places, _Moves]:
    """Return places and moves with more transfers that are adjacent; ``early`` are copied in any case.

    Ranks may send copies of own shards, and scratch may have the order of shards or that of sending. What saves most
    instructions is chosen.
    """
    found = [_with_copies(s, moves, early, None)]
    if places.scratch.any():
        first_sent = np.full(places.home.shape, len(s), dtype=np.int64)
        backwards = np.arange(len(s))[::-1]  # the earliest row is written last
        first_sent[s.src[backwards], s.shard[backwards]] = backwards
        found.append(_with_copies(s, moves, early, first_sent))
    _, places, moves = max(found, key=lambda one: one[0])
    return places, moves


def _with_copies(
    s: Schedule, moves: _Moves, early: Array, first_sent: Array | None
) -> tuple[int, _Places, _Moves]:  # fmt: skip
    """Return the instructions saved, and places and moves in which ranks send copies of own shards to save more."""
    places = _Places.of(s, early, first_sent)
    row, count = moves.row, moves.hi - moves.lo
    src, shard = s.src[row], s.shard[row]
    group = grouped(s.step[row], s.route[row])
    own = (places.arrived[src, shard] == len(s)).all(axis=1) & (s.action[row] == Action.COPY)
    own &= np.bincount(group, weights=moves.sent_home)[group] > 0

    def ends(at: _Places, sent_home: Array) -> Ends:
        at_home = np.ones(len(row), dtype=bool)
        return Ends(_at(at, src, shard, moves.lo, sent_home), _at(at, s.dst[row], shard, moves.lo, at_home))

    copied = np.zeros(places.home.shape, dtype=bool)
    copied[src[own], shard[own]] = True
    now, then = ends(places, moves.sent_home), ends(_Places.of(s, early | copied, first_sent), moves.sent_home | own)
    kept = gathered(group, count, own, now, then)
    if kept.any():
        copied[:] = False
        copied[src[kept], shard[kept]] = True
        places, moves = _Places.of(s, early | copied, first_sent), attrs.evolve(moves, sent_home=moves.sent_home | kept)
        now = ends(places, moves.sent_home)
    copies = int((places.early & (places.home_buffer == Buffer.SCRATCH)).sum())
    return 2 * int(now.continues(group, count).sum()) - copies, places, moves


# ---- instructions


class _Draft:
    """The instructions so far: lists of columns, concatenated at the end."""

    COLUMNS = (
        "rank", "kind", "peer", "channel", "threadblock", "time", "rank_order", "opcode", "src_buffer", "src_offset",
        "dst_buffer", "dst_offset", "count",
    )  # fmt: skip

    def __init__(self) -> None:
        self.columns: dict[str, list[Array]] = {c: [] for c in self.COLUMNS}

    def add(self, length: int, **values: ArrayLike) -> None:
        for name in self.COLUMNS:
            self.columns[name].append(np.broadcast_to(np.asarray(values.get(name, 0), dtype=np.int64), length))

    def done(self) -> dict[str, Array]:
        """Return the columns, of 32 bits if no sum of a number and all chunks needs more. The draft is then empty."""
        most = (1 << 31) - 1 - sum(int(part.sum()) for part in self.columns["count"])
        found = {}
        for c in self.COLUMNS:
            column = np.concatenate([np.zeros(0, dtype=np.int64), *self.columns.pop(c)])
            fits = max(int(column.max(initial=0)), -int(column.min(initial=0))) <= most
            found[c] = column.astype(np.int32) if fits else column
        return found


@frozen(eq=False)
class _Chosen:
    """The channel of each move, and what the schedule chooses for it, counted from 1 (0: no choice)."""

    channel: Array
    sender: Array
    receiver: Array
    scratch: Array

    @classmethod
    def of(cls, s: Schedule, row: Array) -> _Chosen:
        channel, none = channels(s)[row], np.zeros(len(row), dtype=np.int64)
        if s.placement is None:
            return cls(channel, none, none, none)
        placed = s.placement.rows(row)
        return cls(
            channel, *(column.astype(np.int64) + 1 for column in (placed.sender, placed.receiver, placed.scratch))
        )


def _transfers(s: Schedule, places: _Places, moves: _Moves, draft: _Draft) -> None:
    """Add a send and a receive for every move; several instructions if received data must first go to scratch."""
    row, count = moves.row, moves.hi - moves.lo
    shard, src, dst = (column.take(row).astype(np.int64) for column in (s.shard, s.src, s.dst))
    # In a step, reads come before writes; within both, in the order of rows. Both ends of a connection agree on it.
    time = s.step.take(row).astype(np.int64) * 2
    chosen = _Chosen.of(s, row)
    common = {"channel": chosen.channel, "rank_order": np.arange(len(row)), "count": count}
    buffer, offset = _at(places, src, shard, moves.lo, moves.sent_home)
    draft.add(
        len(row), rank=src, kind=SENDING, peer=dst, threadblock=chosen.sender, time=time, opcode=Opcode.SEND,
        src_buffer=buffer, src_offset=offset, **common,
    )  # fmt: skip
    reduces = s.action.take(row) == Action.REDUCE
    buffer, offset = _at(places, dst, shard, moves.lo, moves.kept_home)
    home_buffer, home = _at(places, dst, shard, moves.lo, np.ones(len(row), dtype=bool))
    arrival = {**common, "rank": dst, "kind": RECEIVING, "peer": src, "threadblock": chosen.receiver, "time": time + 1}
    in_scratch = home_buffer == Buffer.SCRATCH
    # what a rank only passes on stays at the chosen place; all other data arrive there, and go home in a second step
    aside = moves.busy | ((chosen.scratch > 0) & (reduces | ~in_scratch))
    # a relay has no contribution of its own: what it receives first it only stores
    adds = reduces & (moves.kept_home | (places.start[dst, shard] >= 0))
    plain = {
        "opcode": np.where(adds, Opcode.RECV_REDUCE_COPY, Opcode.RECV), "dst_buffer": home_buffer,
        "dst_offset": home, "src_buffer": np.where(adds, buffer, 0), "src_offset": np.where(adds, offset, 0),
    }  # fmt: skip
    _add_rows(draft, ~aside, {**arrival, **plain})
    if aside.any():
        taken = (chosen.scratch > 0) & (reduces | ~in_scratch)
        stage = np.where(taken, (chosen.scratch - 1) * s.parts + moves.lo, -1)
        _set_aside(places, draft, aside, arrival, adds, (buffer, offset), (home_buffer, home), stage)


def _at(places: _Places, rank: Array, shard: Array, lo: Array, at_home: Array) -> tuple[Array, Array]:
    place = rank.astype(np.int64) * places.home.shape[1] + shard
    buffer = np.where(at_home, places.home_buffer.ravel().take(place), Buffer.INPUT)
    return buffer, np.where(at_home, places.home.ravel().take(place), places.start.ravel().take(place)) + lo


def _add_rows(draft: _Draft, keep: Array, values: Columns) -> None:
    if not keep.all():
        values = {c: np.broadcast_to(v, len(keep)).compress(keep) for c, v in values.items()}
    draft.add(int(keep.sum()), **values)


def _set_aside(
    places: _Places, draft: _Draft, aside: Array, arrival: Columns, reduces: Array,
    kept: tuple[Array, Array], home: tuple[Array, Array], chosen: Array,
) -> None:  # fmt: skip
    """Receive into separate scratch, then copy or add when the old value has been sent.

    Otherwise two ranks that exchange a shard would each receive only after their own send. ``chosen`` is the place in
    scratch that the schedule chooses, -1 if none.
    """
    rank, count = arrival["rank"], np.where(aside & (chosen < 0), arrival["count"], 0)
    order = lexsort([rank])
    filled = starts(count[order])
    base = filled[group_starts(rank[order], len(places.scratch))]
    stage = np.empty(len(rank), dtype=np.int64)
    stage[order] = filled[:-1] - base[rank[order]] + places.scratch[rank[order]]
    np.add.at(places.scratch, rank, count)
    stage = np.where(chosen < 0, stage, chosen)
    staged = {"src_buffer": Buffer.SCRATCH, "src_offset": stage}
    target = {"dst_buffer": home[0], "dst_offset": home[1]}
    _add_rows(draft, aside, {**arrival, "opcode": Opcode.RECV, "dst_buffer": Buffer.SCRATCH, "dst_offset": stage})
    untouched = aside & reduces & ((kept[0] != home[0]) | (kept[1] != home[1]))
    initial = {"src_buffer": kept[0], "src_offset": kept[1]}
    _add_rows(draft, untouched, {**arrival, **initial, **target, "opcode": Opcode.COPY})
    code = np.where(reduces, Opcode.REDUCE, Opcode.COPY)
    _add_rows(draft, aside, {**arrival, **staged, **target, "opcode": code})


def _copies(s: Schedule, places: _Places, draft: _Draft) -> None:
    """Copy to the output the data that a rank has from the start and never receives; before all else, early copies."""
    c: Collective = s.collective
    source, held = np.nonzero(places.early)
    draft.add(
        len(source), rank=source, kind=LOCAL, peer=-1, time=-1, rank_order=np.arange(len(source)),
        opcode=Opcode.COPY, src_buffer=Buffer.INPUT, src_offset=places.start[source, held],
        dst_buffer=places.home_buffer[source, held], dst_offset=places.home[source, held], count=s.parts,
    )  # fmt: skip
    ranks, shards = np.arange(c.num_ranks)[:, None], np.arange(c.num_shards)[None, :]
    kept = c.wants(ranks, shards) & c.holds(ranks, shards)
    rank, shard, interval = np.nonzero(kept[:, :, None] & (places.arrived == len(s)))
    lo, hi = places.ends[interval], places.ends[interval + 1]
    draft.add(
        len(rank), rank=rank, kind=LOCAL, peer=-1, time=2 * s.num_steps, rank_order=np.arange(len(rank)),
        opcode=Opcode.COPY, src_buffer=Buffer.INPUT, src_offset=places.start[rank, shard] + lo,
        dst_buffer=Buffer.OUTPUT, dst_offset=places.home[rank, shard] + lo, count=hi - lo,
    )  # fmt: skip


def _assemble(s: Schedule, places: _Places, draft: _Draft, join: bool) -> tuple[Program, Array]:
    """Sort the instructions into blocks: sends by peer, receives by peer, local copies."""
    t = draft.done()
    sequence = np.arange(len(t["rank"]))  # instructions of one arrival were added in their order
    # The copies and additions from scratch must not stand between receives to join.
    phase = np.select([t["opcode"] == Opcode.COPY, t["opcode"] == Opcode.REDUCE], [1, 2], 0) if join else sequence * 0
    t["phase"] = np.where(t["kind"] == RECEIVING, phase, 0)
    owner = _owners(t)
    # instructions that are equal in all of these keep their order, that of the sequence
    order = lexsort((t["rank_order"], t["phase"], t["time"], *owner[::-1]))
    t, owner, sequence = {c: values.take(order) for c, values in t.items()}, owner.take(order, axis=1), order
    if join and len(order):
        t["row"] = np.arange(len(order))
        t, sequence = join_messages(t, sequence)
        owner = owner[:, t.pop("row")]
    fresh = (
        np.concatenate([[True], (owner[:, 1:] != owner[:, :-1]).any(axis=0)]) if len(sequence) else np.zeros(0, bool)
    )
    start = np.flatnonzero(fresh)
    sends, receives = (np.where(t["kind"] == kind, t["peer"], -1) for kind in (SENDING, RECEIVING))
    columns: Columns = {c: t[c] for c in INSTRUCTION_COLUMNS}
    program = Program(
        s.collective, s.parts, scratch=places.scratch, block_rank=t["rank"][start],
        send_peer=_most(sends, start), recv_peer=_most(receives, start), channel=_most(t["channel"], start),
        block_start=np.append(start, len(sequence)),
        dep_start=np.zeros(len(sequence) + 1, dtype=np.int64), deps=[], scheduler=s.scheduler,
        placed=s.placement is not None, **columns,
    )  # fmt: skip
    return program, inverse(lexsort((sequence, t["rank_order"], t["phase"], t["time"])))


def _owners(t: dict[str, Array]) -> Array:
    """Return what names the block of each instruction, the rank first: shape (columns, instructions).

    Blocks that the schedule chooses come first, by number. If a schedule chooses a block for a message, it is the block
    of all messages between the two ranks on that channel.
    """
    connection = np.stack([t[c] for c in ("rank", "kind", "peer", "channel")])
    if not t["threadblock"].any():
        return connection
    _, which = np.unique(connection, axis=1, return_inverse=True)
    which = which.reshape(-1)
    chosen = np.zeros(int(which.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(chosen, which, t["threadblock"])
    block, other = chosen[which], chosen[which] == 0
    rest = [np.where(other, column, 0) for column in connection[2:]]
    return np.stack([t["rank"], other.astype(np.int64), np.where(other, t["kind"], block), *rest])


def _most(values: Array, start: Array) -> Array:
    """Return the largest value of each block; ``start`` are the first rows of the blocks."""
    found: Array = np.maximum.reduceat(values, start) if len(start) else values
    return found
