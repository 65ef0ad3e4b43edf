"""Lower a template: the programs of the first ranks, of which those of all other ranks are images.

Rank e*width + i is the image of rank i under element e. A row of the template moves a shard from u = (a, i) to
v = (b, j). Its image under the inverse of a is sent by rank i: to v moved by a^-1. Its image under the inverse of b is
received by rank j, from u moved by b^-1. In a regular group width is 1: ranks are elements, and rank 0 does both.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, fit, lexsort, numbered
from collc.ir.frozen import frozen
from collc.ir.opcodes import READS_SRC, WRITES_DST
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, group_starts, inverse, nth, nth_in_group, owners, ranges, starts
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.symmetries import Identity

from ..analysis.hazards import needed, neighbours
from .passing import Passage

__all__ = ["lower_messages", "lower_template"]

#: instructions whose accesses are sorted together
_ROWS = 1 << 18

#: kinds of blocks
_SENDING, _RECEIVING, _LOCAL = 0, 1, 2


def lower_template(s: SymmetricSchedule, shared: bool = True) -> SymmetricProgram | None:
    """Return the program of a discrete template; None if a rank sends a chunk in the step in which it arrives there.

    If ranks exchange whole vectors, part p of all shards has a fixed place in the vector: N neighbours, from p*N on.
    Every connection out of a rank of the template gets a block that sends, every one into it a block that receives; a
    further block copies. The transfers of one step over one connection are one message. Data lie where :class:`Lower`
    puts them, but scratch is in the order of the shards as the first ranks name them. If it is ``shared``, shards of
    an all-to-all take places that others have left: their receives wait for the sends of those.
    """
    ends = _links(s) if s.orbits is None else _connections(s)
    if s.exchanges and _are_whole(s, ends):
        # what rank 0 sends of its shard, it sends of all
        rows, n = np.flatnonzero(ends.sent == 0), s.topology.num_ranks
        return _exchanged(s, ends, rows, *(column[rows].astype(np.int64) * n for column in (s.seed.lo, s.seed.hi)))
    if isinstance(s.orbits, Identity) and s.collective.kind == "allreduce":  # of a rank, all shards are in one place
        return _exchanged_by_all(s, ends)
    atoms = _Atoms.of(s, ends)
    if atoms.exchange(s):
        return None
    table = _instructions(s, ends, atoms, shared)
    del atoms  # the longest columns of all
    return _assembled(s, _sorted(table), ends)


def _exchanged_by_all(s: SymmetricSchedule, ends: _Ends) -> SymmetricProgram:
    """Return the program of all ranks, each of which has the whole vector: any chunks of it may be neighbours."""
    first = s.seed.shard.astype(np.int64) * s.parts
    return _exchanged(s, ends, np.arange(len(s.seed)), first + s.seed.lo, first + s.seed.hi)


def _exchanged(s: SymmetricSchedule, ends: _Ends, rows: Array, lo: Array, hi: Array) -> SymmetricProgram:
    """Return the program of rows that send the chunks lo .. hi of the vector, which have fixed places on all ranks.

    A rank receives after its own sends of a step, which read what the message is added to. All ranks send first, so a
    send must be over for its rank as soon as the data are on their way, as the machine says (:mod:`collc.ir.machine`).
    """
    seed, parts = s.seed, s.parts * s.topology.num_ranks
    order = lexsort((lo, seed.action[rows], ends.place[rows], seed.step[rows]))
    rows, lo, hi = rows[order], lo[order], hi[order]
    fresh = first_of_group(seed.step[rows]) | first_of_group(ends.place[rows]) | first_of_group(seed.action[rows])
    fresh[1:] |= lo[1:] != hi[:-1]
    begin = np.flatnonzero(fresh)  # neighbouring chunks of a message are one row
    rows, hi = rows[begin], hi[np.append(begin[1:], len(fresh)) - 1]
    zero = np.zeros_like(rows)  # the vector is the one shard
    runs = attrs.evolve(seed.rows(rows), parts=parts, shard=zero, lo=lo[begin], hi=hi)
    sender, receiver, first = _slim(ends.sender[rows]), _slim(ends.receiver[rows]), np.arange(s.width)
    ends = attrs.evolve(
        ends, place=_slim(ends.place[rows]), sender=sender, receiver=receiver, sent=sender, received=receiver,
        held=_Held(first, np.zeros_like(first)),
    )  # fmt: skip
    one = attrs.evolve(s, seed=runs)
    table = _instructions(one, ends, _Atoms.of(one, ends))
    return _assembled(one, _sorted(table), ends, fixed=s.parts)


def _are_whole(s: SymmetricSchedule, ends: _Ends) -> bool:
    """Return whether each message of a step has the same parts of all shards, each once."""
    seed, n = s.seed, s.topology.num_ranks
    columns = (seed.step, ends.place, seed.action, seed.lo, seed.hi, ends.sent)
    if not len(seed) or len(seed) % n:
        return False
    order = lexsort(columns[::-1])
    sorted_columns = [column[order].astype(np.int64) for column in columns]
    if not np.array_equal(sorted_columns[5], np.arange(len(order)) % n):
        return False
    return all((column.reshape(-1, n) == column[::n, None]).all() for column in sorted_columns[:5])


def lower_messages(s: Schedule) -> SymmetricProgram | None:
    """Return the program of a discrete schedule without a group: that of all ranks, as the template of one element.

    None if the collective has no templates, or if a rank sends a chunk in the step in which it arrives there. In an
    allreduce it may: there chunks have fixed places, as in latency variants, and neighbours of different shards in one
    message are one run.
    """
    if s.collective.kind not in TEMPLATE_KINDS or not s.collective.is_plain:
        return None
    by_shard = s.rows(lexsort((s.lo, s.shard, s.route, s.step)))
    return lower_template(SymmetricSchedule(by_shard, Identity(s.topology)))


@frozen(eq=False)
class _Held:
    """The shards that ranks of the template ever have, one row for each pair: sorted by rank, then by shard."""

    rank: Array
    shard: Array

    def __len__(self) -> int:
        return len(self.rank)


@frozen(eq=False)
class _Ends:
    """The connections of the template's rows: ``place`` is the number of that of each row.

    By row, ``sender`` and ``receiver`` are the ranks of the template that send and receive its images; ``sent`` and
    ``received`` are the rows of ``held`` that they move. By connection, ``to`` is the peer of its sender, ``source``
    that of its receiver.
    """

    place: Array
    sender: Array
    receiver: Array
    sent: Array
    received: Array
    held: _Held
    to: Array
    source: Array
    channel: Array


def _holding(
    s: SymmetricSchedule, sender: Array, sent: Array, receiver: Array, received: Array
) -> tuple[_Held, Array, Array]:
    """Return what the ranks of the template have, and the rows of it that the template's rows send and receive.

    With a shard for each rank, any rank may have any of them. An all-to-all has a shard for each pair of ranks, so only
    those are listed that a rank moves or keeps.
    """
    ranks, shards = s.topology.num_ranks, s.collective.num_shards
    keys = [sender * shards + sent, receiver * shards + received]
    if s.collective.kind != "alltoall":
        rank, shard = np.divmod(np.arange(s.width * ranks), ranks)
        return _Held(rank, shard), keys[0], keys[1]
    first = np.arange(s.width)
    own = first * (shards + ranks + 1) if s.width > 1 else np.arange(ranks)
    named = distinct(np.concatenate([own, *keys]))
    return _Held(named // shards, named % shards), np.searchsorted(named, keys[0]), np.searchsorted(named, keys[1])


def _links(s: SymmetricSchedule) -> _Ends:
    """Return the connections of a regular group: the links out of rank 0."""
    seed, group, rank = s.seed, s.symmetry, np.zeros(len(s.seed), dtype=np.int64)
    to = s.topology.dst[: s.topology.num_links // s.topology.num_ranks].astype(np.int64)
    idle = ~np.isin(np.arange(len(to)), s.place)  # parallel links without data have no channel
    order = lexsort((idle, to))
    fresh = first_of_group(to[order])
    first = np.maximum.accumulate(np.where(fresh, np.arange(len(to)), 0))
    channel = (np.arange(len(to)) - first)[inverse(order)]
    sent, received = (s.moved_shards(group.inverse(end), seed.shard) for end in (seed.src, seed.dst))
    held, sent, received = _holding(s, rank, sent, rank, received)
    return _Ends(s.place.astype(np.int64), rank, rank, sent, received, held, to, group.inverse(to), channel)


def _connections(s: SymmetricSchedule) -> _Ends:
    """Return the connections of a group with several orbits of ranks: each route has the channel of its image."""
    seed, group, width = s.seed, s.symmetry, s.width
    src, dst, shard = (column.astype(np.int64) for column in (seed.src, seed.dst, seed.shard))

    def moved(element: Array, number: Array) -> Array:
        image: Array = group.multiply(element, number // width) * width + number % width
        return image

    def moved_shard(element: Array) -> Array:
        return s.collective.moved(shard, lambda rank: moved(element, rank))

    home, away = group.inverse(src // width), group.inverse(dst // width)
    ranks, channel = s.topology.num_ranks, _channels(s, home)
    channels = int(channel.max(initial=0)) + 1
    keys = ((src % width * ranks + moved(home, dst)) * channels + channel) * ranks + moved(away, src)
    named, place = np.unique(keys, return_inverse=True)
    from_rank, source = np.divmod(named, ranks)
    sent, received = moved_shard(home), moved_shard(away)
    held, sent, received = _holding(s, src % width, sent, dst % width, received)
    return _Ends(
        place.reshape(-1),
        src % width,
        dst % width,
        sent,
        received,
        held,
        from_rank // channels % ranks,
        source,
        from_rank % channels,
    )


def _channels(s: SymmetricSchedule, home: Array) -> Array:
    """Return the channel of each row: its route's number among the parallel ones, as its sender's image names them.

    Routes are moved to the senders of the template, and numbered there in the order of their links.
    """
    assert s.orbits is not None, "a group of several orbits"
    routes, topology = s.seed.routes, s.topology
    pair, row = np.unique(home * len(routes) + s.seed.route, return_inverse=True)
    element, route = np.divmod(pair, len(routes))
    count = routes.lengths[route]
    owner = owners(count)
    links = np.full((len(pair), int(count.max(initial=1))), -1, dtype=np.int64)
    own = routes.links[ranges(routes.start[route].astype(np.int64), count)].astype(np.int64)
    links[owner, nth(count)] = s.orbits.links(element[owner], own)
    found, which = np.unique(links, axis=0, return_inverse=True)
    last = np.argmin(np.append(found, found[:, :1] * 0 - 1, axis=1), axis=1) - 1
    tails, heads = topology.src[found[:, 0]], topology.dst[found[np.arange(len(found)), last]]
    order = lexsort((heads, tails))
    number = np.empty(len(found), dtype=np.int64)
    number[order] = nth_in_group(tails[order].astype(np.int64) * topology.num_nodes + heads[order])
    channel: Array = number[which.reshape(-1)][row.reshape(-1)]
    return channel


@frozen(eq=False)
class _Cuts:
    """The atoms of shards, which the ends of all rows cut out of them: their edges in chunks, one after the other.

    Images of a shard are cut alike. So with a group all shards have the same edges, those of ``kind`` 0; without one,
    each has its own, and its number is its kind. The edges of kind k begin at ``first[k]``; an atom has the number of
    the edge where it begins.
    """

    edges: Array
    first: Array
    listed: bool

    @classmethod
    def of(cls, s: SymmetricSchedule) -> _Cuts:
        listed = s.order == 1
        shard = s.seed.shard.astype(np.int64) if listed else np.zeros(len(s.seed), dtype=np.int64)
        kinds, width = (s.collective.num_shards if listed else 1), s.parts + 1
        whole = np.arange(kinds) * width
        keys = distinct(np.concatenate([whole, whole + s.parts, shard * width + s.seed.lo, shard * width + s.seed.hi]))
        kind, edges = np.divmod(keys, width)
        return cls(edges, group_starts(kind, kinds), listed)

    def kind(self, shard: Array) -> Array:
        """Return the kinds of shards."""
        return shard.astype(np.int64) if self.listed else np.zeros(len(shard), dtype=np.int64)

    def between(self, s: SymmetricSchedule) -> tuple[Array, Array]:
        """Return the first atom of each row of the template, and the one after its last."""
        kind = self.kind(s.seed.shard)
        keys = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first)) * (s.parts + 1) + self.edges
        begin, end = (np.searchsorted(keys, kind * (s.parts + 1) + ends) for ends in (s.seed.lo, s.seed.hi))
        return begin, end


@frozen(eq=False)
class _Atoms:
    """The atoms of the template's rows: one row for each.

    ``row`` is the row of the template, ``atom`` that of ``cuts``; ``sent`` and ``received`` number the atom among those
    of all shards that the sender and the receiver have (:class:`_Held`): that shard's begin at ``base``. ``time``
    orders the messages that a rank receives: by step, then by the place of the connection. ``first`` is the time at
    which data of each of these atoms first arrive; ``never`` if none do, -1 if a copy does before all messages: of the
    shards ``early``.
    """

    row: Array
    atom: Array
    sent: Array
    received: Array
    time: Array
    base: Array
    first: Array
    never: int
    early: Array
    cuts: _Cuts

    @classmethod
    def of(cls, s: SymmetricSchedule, ends: _Ends) -> _Atoms:
        cuts = _Cuts.of(s)
        begin, end = cuts.between(s)
        row, atom = _slim(owners(end - begin)), _slim(ranges(begin, end - begin))
        kind = cuts.kind(ends.held.shard)
        base = starts(np.diff(cuts.first)[kind] - 1)
        within = base[:-1] - cuts.first[kind]
        sent, received = (_slim(within[ends.sent][row] + atom), _slim(within[ends.received][row] + atom))
        never = s.num_steps * len(ends.to)
        time = _slim(s.seed.step.astype(np.int64) * len(ends.to) + ends.place)[row]
        first = np.full(int(base[-1]), never, dtype=fit(-1, never))
        np.minimum.at(first, received, time.astype(first.dtype, copy=False))
        early = _sent_after_arrival(s, ends)
        first[np.repeat(early, np.diff(base))] = -1
        return cls(row, atom, sent, received, time, base, first, never, early, cuts)

    def exchange(self, s: SymmetricSchedule) -> bool:
        """Return whether a rank sends an atom in the step in which it arrives."""
        step, sent, received = s.seed.step.astype(np.int64)[self.row], self.sent, self.received
        if (step[1:] < step[:-1]).any():
            order = np.argsort(step, kind="stable")
            step, sent, received = step[order], sent[order], received[order]
        # The last step in which each atom arrives: one step after the other, so nothing is sorted.
        last = np.full(len(self.first), -1, dtype=fit(-1, s.num_steps))
        begin = np.flatnonzero(first_of_group(step))
        end = np.append(begin[1:], len(step))[: len(begin)]
        for low, high in zip(begin.tolist(), end.tolist(), strict=True):
            last[received[low:high]] = step[low]
            if (last[sent[low:high]] == step[low]).any():
                return True
        return False

    @property
    def arrives(self) -> Array:
        """Whether an atom of each shard that a rank has arrives there."""
        arrives: Array = np.logical_or.reduceat(self.first < self.never, self.base[:-1])
        return arrives


def _slim(column: Array) -> Array:
    """Return a column of 32 bits if its numbers fit these: those of atoms are the longest of all."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return column.astype(np.int32) if -(1 << 31) <= low and high < 1 << 31 else column


def _sent_after_arrival(s: SymmetricSchedule, ends: _Ends) -> Array:
    """Return which shards of an all-to-all their source still sends after the shard that replaces them has arrived.

    In place, the shard from v to r arrives at the place of the shard from r to v. One flag for each row of ``held``.
    """
    held = ends.held
    if s.collective.kind != "alltoall" or not len(s.seed):
        return np.zeros(len(held), dtype=bool)
    n, step = s.topology.num_ranks, s.seed.step.astype(np.int64)
    source, target = np.divmod(held.shard, n)
    last_sent, arrives = np.full(s.width * n, -1), np.full(s.width * n, s.num_steps)
    own, here = (source == held.rank)[ends.sent], (target == held.rank)[ends.received]
    leaving, arriving = ends.sent[own], ends.received[here]
    np.maximum.at(last_sent, held.rank[leaving] * n + target[leaving], step[own])
    np.minimum.at(arrives, held.rank[arriving] * n + source[arriving], step[here])
    early: Array = (source == held.rank) & (last_sent > arrives)[held.rank * n + target]
    return early


def _instructions(s: SymmetricSchedule, ends: _Ends, atoms: _Atoms, shared: bool = True) -> Columns:
    """Return the instructions as columns, in no order: ``rank``, ``kind`` and ``place`` name their block, ``row`` the
    transfer.
    """
    buffer, home, start = (_slim(column) for column in _homes(s, ends, atoms, shared))
    # all sends of a step read what was there before it
    sent_home = atoms.first[atoms.sent] < _slim(s.seed.step.astype(np.int64) * len(ends.to))[atoms.row]
    kept_home = atoms.first[atoms.received] < atoms.time
    # rows are cut where the location at either end changes, so that both ends have the same instructions
    fresh = first_of_group(atoms.row) | first_of_group(sent_home) | first_of_group(kept_home)
    begin = np.flatnonzero(fresh)
    final = np.append(begin[1:], len(fresh))[: len(begin)] - 1
    edges = _slim(atoms.cuts.edges)
    row, lo, hi = atoms.row[begin], edges[atoms.atom[begin]], edges[atoms.atom[final] + 1]
    sent_home, kept_home, sent, received = sent_home[begin], kept_home[begin], ends.sent[row], ends.received[row]
    zeros = np.zeros(len(row), dtype=np.uint8)
    nth = _within_messages(s, row, lo, buffer[received], home[received])
    step = _slim(s.seed.step.astype(np.int64))[row]
    # a rank without a contribution of its own stores what it receives first
    adds = (s.seed.action == Action.REDUCE)[row] & (kept_home | (start[received] >= 0))
    # the two ends cut messages alike: one adds all its data, or none
    arrival = np.where(adds, np.uint8(Opcode.RECV_REDUCE_COPY), np.uint8(Opcode.RECV))
    common = _narrow({"place": ends.place[row], "row": nth, "lo": lo, "count": hi - lo, "arrival": arrival})
    sends = _narrow({
        **common, "rank": ends.sender[row], "kind": zeros + _SENDING, "time": 2 * step, "opcode": zeros + Opcode.SEND,
        "src_buffer": np.where(sent_home, buffer[sent], Buffer.INPUT),
        "src_offset": np.where(sent_home, home[sent], start[sent]) + lo, "dst_buffer": zeros,
        "dst_offset": zeros,
    })  # fmt: skip
    src_buffer = np.where(kept_home, buffer[received], Buffer.INPUT)
    src = np.where(kept_home, home[received], start[received]) + lo
    receives = _narrow({
        **common, "rank": ends.receiver[row], "kind": zeros + _RECEIVING, "time": 2 * step + 1,
        "opcode": arrival,
        "src_buffer": np.where(adds, src_buffer, 0), "src_offset": np.where(adds, src, 0),
        "dst_buffer": buffer[received], "dst_offset": home[received] + lo,
    })  # fmt: skip
    tables = [sends, receives, _narrow(_copies(s, ends, atoms, home, start, buffer))]
    return {c: np.concatenate([table.pop(c) for table in tables]) for c in list(tables[0])}


def _sorted(table: Columns) -> Columns:
    """Return instructions block by block, message by message; ``table`` is empty then."""
    order = lexsort([table[c] for c in ("lo", "row", "arrival", "time", "place", "kind", "rank")])
    return {c: table.pop(c)[order] for c in list(table)}


def _within_messages(s: SymmetricSchedule, row: Array, lo: Array, buffer: Array, home: Array) -> Array:
    """Return numbers that order the transfers of a message; ``buffer`` and ``home`` are those of the receiver.

    The order is that of the template. In an all-to-all without a group it is that of the receiver's places: then the
    tables of its pieces have small steps.
    """
    if s.collective.kind != "alltoall" or s.order > 1:
        return row
    return inverse(lexsort((lo, home, buffer)))


def _narrow(table: Columns) -> Columns:
    """Return columns in the narrowest types that hold them: they are many, and long."""
    return {
        c: table[c].astype(fit(int(table[c].min(initial=0)), int(table[c].max(initial=0))), copy=False) for c in table
    }


def _homes(s: SymmetricSchedule, ends: _Ends, atoms: _Atoms, shared: bool) -> tuple[Array, Array, Array]:
    """Return where each rank keeps each shard that it has: buffer, first chunk; its first chunk in the input, or -1."""
    held = ends.held
    output, start = (slots(held.rank, held.shard) for slots in (s.collective.output_slots, s.collective.input_slots))
    passing = (output < 0) & atoms.arrives
    if s.collective.kind == "alltoall":
        room = _passage(s, ends, atoms).places(passing, (start, output), shared)
    else:
        room = np.cumsum(passing) - 1
        room -= starts(passing.astype(np.int64))[group_starts(held.rank, s.width)[:-1]][held.rank]
    home = np.where(output >= 0, output, np.where(passing, room, -1)) * s.parts
    buffer = np.where(output >= 0, Buffer.OUTPUT, Buffer.SCRATCH)
    return buffer, home, np.where(start >= 0, start * s.parts, -1)


def _passage(s: SymmetricSchedule, ends: _Ends, atoms: _Atoms) -> Passage:
    """Return how shards pass through the ranks of the template."""
    seed, messages = s.seed, len(ends.to)
    message = seed.step.astype(np.int64) * messages + ends.place
    shard, lo, hi = (column.astype(np.int64) for column in (seed.shard, seed.lo, seed.hi))
    return Passage(ends.held.rank, atoms.early, ends.sent, ends.received, shard, lo, hi, message, messages, s.parts)


def _copies(s: SymmetricSchedule, ends: _Ends, atoms: _Atoms, home: Array, start: Array, buffer: Array) -> Columns:
    """Return the copies of what a rank has from the start, must have in the end, and never receives; before all else,
    those of the shards that it sends late.
    """
    rank, shard, size = ends.held.rank, ends.held.shard, np.diff(atoms.base)
    kept = s.collective.wants(rank, shard) & s.collective.holds(rank, shard)
    at = np.flatnonzero((np.repeat(kept, size) & (atoms.first == atoms.never)) | np.repeat(atoms.early, size))
    held = owners(size)[at]
    atom = at - atoms.base[held] + atoms.cuts.first[atoms.cuts.kind(shard[held])]
    lo, hi = atoms.cuts.edges[atom], atoms.cuts.edges[atom + 1]
    zeros = np.zeros(len(at), dtype=np.int64)
    return {
        "rank": rank[held], "place": zeros, "row": np.arange(len(at)), "lo": lo, "count": hi - lo,
        "kind": zeros + _LOCAL, "time": np.where(atoms.early[held], -1, 2 * s.num_steps), "arrival": zeros,
        "opcode": zeros + Opcode.COPY, "src_buffer": zeros + Buffer.INPUT, "src_offset": start[held] + lo,
        "dst_buffer": buffer[held], "dst_offset": home[held] + lo,
    }  # fmt: skip


# ---- blocks and messages


def _assembled(s: SymmetricSchedule, t: Columns, ends: _Ends, *, fixed: int = 0) -> SymmetricProgram:
    """Return the program of sorted instructions: a block for each kind and place, a message for each time in it.

    If places are fixed, the one shard is the vector, whose shards have ``fixed`` chunks.
    """
    rank, kind, place = t["rank"], t["kind"], t["place"]
    fresh_block = first_of_group(rank) | first_of_group(kind) | first_of_group(place)
    block = np.cumsum(fresh_block) - 1
    first = fresh_block | first_of_group(t["time"]) | first_of_group(t["arrival"]) | (kind == _LOCAL)
    begin = np.flatnonzero(fresh_block)
    used = place[begin]
    message = np.cumsum(first) - 1
    later, earlier = _waits(s, t, block, message)
    counts = np.zeros(len(first), dtype=np.int64)
    opening = np.flatnonzero(first)
    np.add.at(counts, opening[later], 1)
    scratch = np.zeros(s.topology.num_ranks, dtype=np.int64)
    stored = np.flatnonzero(t["dst_buffer"] == Buffer.SCRATCH)
    np.maximum.at(scratch, rank[stored], t["dst_offset"][stored].astype(np.int64) + t["count"][stored])
    seed = Program(
        s.collective, fixed or s.parts, scratch, block_rank=rank[begin],
        send_peer=np.where(kind[begin] == _SENDING, ends.to[used], -1),
        recv_peer=np.where(kind[begin] == _RECEIVING, ends.source[used], -1),
        channel=np.where(kind[begin] == _LOCAL, 0, ends.channel[used]),
        block_start=np.append(begin, len(first)), dep_start=starts(counts), deps=opening[earlier],
        scheduler=s.scheduler, **{c: t[c] for c in INSTRUCTION_COLUMNS},
    )  # fmt: skip
    return SymmetricProgram(seed, s.symmetry, ~first, fixed=fixed > 0)


def _waits(s: SymmetricSchedule, t: Columns, block: Array, message: Array) -> tuple[Array, Array]:
    """Return the pairs of messages (later, earlier) of different blocks that access a chunk which one of them writes.

    Only neighbours in the order of all messages at a chunk count, and of the messages of one block only the last, if no
    earlier message of the later block waits for it. In calls in place the input is part of the output, so both count
    as one.
    """
    time = np.empty(int(message[-1]) + 1 if len(message) else 0, dtype=np.int64)
    time[message] = t["time"]
    order = inverse(lexsort((np.arange(len(time)), time)))
    of_message, found = _block_of(block, message), [np.zeros((2, 0), dtype=np.int64)]
    for rows in _by_ranks(t["rank"]):  # ranks have no location in common
        location, at, write = _accesses(s, {c: values[rows] for c, values in t.items()}, message[rows])
        later, earlier = neighbours(at, location, write, order)
        found.append(np.stack(needed(of_message, later, earlier)))
    later, earlier = np.concatenate(found, axis=1)
    return later, earlier


def _by_ranks(rank: Array) -> Iterator[slice]:
    """Yield the rows of some ranks together, up to ``_ROWS`` rows if several; ``rank`` ascends."""
    ends = np.append(np.flatnonzero(first_of_group(rank)), len(rank)).tolist()
    begin = 0
    for end, after in zip(ends[1:], [*ends[2:], -1], strict=True):
        if after < 0 or after - begin > _ROWS:
            yield slice(begin, end)
            begin = end


def _block_of(block: Array, message: Array) -> Array:
    found = np.zeros(int(message[-1]) + 1 if len(message) else 0, dtype=np.int64)
    found[message] = block
    return found


def _accesses(s: SymmetricSchedule, t: Columns, message: Array) -> tuple[Array, Array, Array]:
    """Return every access to an atom: location, message, whether it writes.

    The atoms of a place are those that the ends of all accesses to it cut.
    """
    base, opcode, lo, edge = _bases(s, t), t["opcode"], t["lo"].astype(np.int64), s.parts + 1
    firsts, rows_of = [], []
    for end, used in (("src", READS_SRC[opcode]), ("dst", WRITES_DST[opcode])):
        rows = np.flatnonzero(used)
        slot = (t[f"{end}_offset"][rows].astype(np.int64) - lo[rows]) // s.parts
        slot += base[t["rank"][rows], t[f"{end}_buffer"][rows]]
        firsts.append(slot * edge + lo[rows])
        rows_of.append(rows)
    begin, rows = np.concatenate(firsts), np.concatenate(rows_of)
    _, number = numbered(np.concatenate([begin, begin + t["count"][rows]]))
    first, last = np.split(number, 2)
    write = np.repeat([False, True], [len(one) for one in rows_of])
    # these columns are the largest of all: numbers that fit 32 bits take 32
    message, number = message.astype(fit(-1, int(message.max(initial=0)))), ranges(first, last - first)
    number = number.astype(np.int32) if int(number.max(initial=0)) < 1 << 31 else number
    return number, np.repeat(message[rows], last - first), np.repeat(write, last - first)


def _bases(s: SymmetricSchedule, t: Columns) -> Array:
    """Return the first place of each buffer in shards, shape (ranks of the template, 3).

    In place the smaller of input and output is the place of the rank's own shard in the larger.
    """
    own, shards = np.arange(s.width), s.topology.num_ranks
    slots = s.collective.input_slots(0, np.arange(shards)), s.collective.output_slots(0, np.arange(shards))
    places = [own * (int((found >= 0).sum()) < shards) for found in slots]
    scratch = int(t["dst_offset"].max(initial=0)) // s.parts + 1
    if s.collective.kind == "alltoall":  # in place, input and output are the same
        places = [own * 0, own * 0]
    bases: Array = np.stack([places[0], places[1], own * 0 + shards], axis=1) + own[:, None] * (shards + scratch)
    return bases
