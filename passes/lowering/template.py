"""Lower a template: the programs of the first ranks, of which those of all other ranks are images.

Rank e*width + i is the image of rank i under element e. A row of the template moves a shard from u = (a, i) to
v = (b, j). Its image under the inverse of a is sent by rank i: to v moved by a^-1. Its image under the inverse of b is
received by rank j, from u moved by b^-1. In a regular group width is 1: ranks are elements, and rank 0 does both.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from collc.ir.arrays import Array, Columns, distinct, fit, lexsort
from collc.ir.frozen import frozen
from collc.ir.opcodes import READS_SRC, WRITES_DST
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, inverse, nth, nth_in_group, owners, ranges, starts
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import SYMMETRIC_KINDS, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.symmetries import Identity

from ..analysis.hazards import needed, neighbours

__all__ = ["lower_messages", "lower_template"]

#: instructions whose accesses are sorted together
_ROWS = 1 << 18

#: kinds of blocks
_SENDING, _RECEIVING, _LOCAL = 0, 1, 2


def lower_template(s: SymmetricSchedule) -> SymmetricProgram | None:
    """Return the program of a discrete template; None if a rank sends a chunk in the step in which it arrives there.

    Every connection out of a rank of the template gets a block that sends, every one into it a block that receives; a
    further block copies. The transfers of one step over one connection are one message. Data lie where :class:`Lower`
    puts them, but scratch is in the order of the shards as the first ranks name them.
    """
    cuts = distinct(np.concatenate([[0, s.parts], s.seed.lo, s.seed.hi]).astype(np.int64))
    ends = _links(s) if s.orbits is None else _connections(s)
    atoms = _Atoms.of(s, cuts, ends)
    if atoms.exchange():
        return None
    table = _instructions(s, cuts, atoms)
    del atoms
    return _assembled(s, table, ends, cuts)


def lower_messages(s: Schedule) -> SymmetricProgram | None:
    """Return the program of a discrete schedule without a group: that of all ranks, as the template of one element.

    None if the collective has no templates, or if a rank sends a chunk in the step in which it arrives there.
    """
    if s.collective.kind not in SYMMETRIC_KINDS or not s.collective.is_plain:
        return None
    by_shard = s.rows(lexsort((s.lo, s.shard, s.route, s.step)))
    return lower_template(SymmetricSchedule(by_shard, Identity(s.topology)))


@frozen(eq=False)
class _Ends:
    """The connections of the template's rows: ``place`` is the number of that of each row.

    By row, ``sender`` and ``receiver`` are the ranks of the template that send and receive its images; ``sent`` and
    ``received`` number the shards that they move, those in ``shards``. By connection, ``to`` is the peer of its sender,
    ``source`` that of its receiver.
    """

    place: Array
    sender: Array
    receiver: Array
    sent: Array
    received: Array
    shards: Array
    to: Array
    source: Array
    channel: Array


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
    shards = np.arange(s.topology.num_ranks)
    if s.collective.kind == "alltoall":
        shards = distinct(np.concatenate([shards, sent, received]))  # the first are those that rank 0 has
        sent, received = np.searchsorted(shards, sent), np.searchsorted(shards, received)
    return _Ends(s.place.astype(np.int64), rank, rank, sent, received, shards, to, group.inverse(to), channel)


def _connections(s: SymmetricSchedule) -> _Ends:
    """Return the connections of a group with several orbits of ranks: each route has the channel of its image."""
    seed, group, width = s.seed, s.symmetry, s.width
    src, dst, shard = (column.astype(np.int64) for column in (seed.src, seed.dst, seed.shard))

    def moved(element: Array, number: Array) -> Array:
        image: Array = group.multiply(element, number // width) * width + number % width
        return image

    home, away = group.inverse(src // width), group.inverse(dst // width)
    ranks, channel = s.topology.num_ranks, _channels(s, home)
    channels = int(channel.max(initial=0)) + 1
    keys = ((src % width * ranks + moved(home, dst)) * channels + channel) * ranks + moved(away, src)
    named, place = np.unique(keys, return_inverse=True)
    from_rank, source = np.divmod(named, ranks)
    return _Ends(
        place.reshape(-1),
        src % width,
        dst % width,
        moved(home, shard),
        moved(away, shard),
        np.arange(ranks),
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
class _Atoms:
    """The atoms of the template's rows, which the ends of all rows cut out of shards: one row for each.

    ``row`` is the row of the template; its columns are those of :class:`_Ends`. ``time`` orders the messages that a
    rank receives: by step, then by the place of the connection. ``first`` is the time at which data of each shard and
    atom first arrive on a rank of the template, shape (ranks, shards, atoms); ``never`` if none do, -1 if a copy does
    before all messages: of the shards ``early``, shape (ranks, shards). ``shards`` are those of :class:`_Ends`.
    """

    row: Array
    atom: Array
    step: Array
    place: Array
    sender: Array
    receiver: Array
    sent: Array
    received: Array
    time: Array
    first: Array
    never: int
    early: Array
    shards: Array

    @classmethod
    def of(cls, s: SymmetricSchedule, cuts: Array, ends: _Ends) -> _Atoms:
        seed = s.seed
        begin, end = np.searchsorted(cuts, seed.lo), np.searchsorted(cuts, seed.hi)
        row, atom = owners(end - begin), ranges(begin, end - begin)
        step = seed.step.astype(np.int64)[row]
        place, sender, receiver = ends.place[row], ends.sender[row], ends.receiver[row]
        sent, received = ends.sent[row], ends.received[row]
        time, never = step * len(ends.to) + place, s.num_steps * len(ends.to)
        first = np.full((s.width, len(ends.shards), len(cuts) - 1), never, dtype=fit(-1, never))
        np.minimum.at(first, (receiver, received, atom), time)
        early = _sent_after_arrival(s, ends)
        first[early] = -1
        return cls(row, atom, step, place, sender, receiver, sent, received, time, first, never, early, ends.shards)

    def exchange(self) -> bool:
        """Return whether a rank sends an atom in the step in which it arrives."""
        width, shards, atoms = self.first.shape
        places = shards * atoms
        sent, received = (
            ((self.step * width + rank) * places + shard * atoms + self.atom)
            for rank, shard in ((self.sender, self.sent), (self.receiver, self.received))
        )
        return bool(np.isin(sent, received).any())


def _sent_after_arrival(s: SymmetricSchedule, ends: _Ends) -> Array:
    """Return which shards of an all-to-all rank 0 still sends after the shard that replaces them has arrived.

    In place, the shard from v to 0 arrives at the place of the shard from 0 to v. Shape (ranks, shards).
    """
    staged = np.zeros((s.width, len(ends.shards)), dtype=bool)
    if s.collective.kind != "alltoall" or not len(s.seed):
        return staged
    n, step = s.topology.num_ranks, s.seed.step.astype(np.int64)
    source, target = np.divmod(ends.shards, n)
    last_sent, arrives = np.full(n, -1), np.full(n, s.num_steps)
    own, here = source[ends.sent] == 0, target[ends.received] == 0
    np.maximum.at(last_sent, target[ends.sent[own]], step[own])
    np.minimum.at(arrives, source[ends.received[here]], step[here])
    staged[0, :n] = last_sent > arrives
    return staged


def _instructions(s: SymmetricSchedule, cuts: Array, atoms: _Atoms) -> Columns:
    """Return the instructions as columns; ``rank``, ``kind`` and ``place`` name their block, ``row`` the transfer."""
    buffer, home, start = _homes(s, atoms)
    # no rank sends an atom in the step in which it arrives, so what has arrived before the message has before the step
    sent_home = atoms.first[atoms.sender, atoms.sent, atoms.atom] < atoms.time
    kept_home = atoms.first[atoms.receiver, atoms.received, atoms.atom] < atoms.time
    # rows are cut where the location at either end changes, so that both ends have the same instructions
    flags = np.stack([atoms.row, sent_home, kept_home])
    fresh = np.concatenate([[True], (flags[:, 1:] != flags[:, :-1]).any(axis=0)])[: len(atoms.row)]
    begin = np.flatnonzero(fresh)
    final = np.append(begin[1:], len(fresh)) - 1
    row, lo, hi = atoms.row[begin], cuts[atoms.atom[begin]], cuts[atoms.atom[final] + 1]
    sent, received = (atoms.sender[begin], atoms.sent[begin]), (atoms.receiver[begin], atoms.received[begin])
    zeros = np.zeros(len(row), dtype=np.int64)
    common = {"place": atoms.place[begin], "row": row, "lo": lo, "count": hi - lo}
    step = s.seed.step.astype(np.int64)[row]
    # a rank without a contribution of its own stores what it receives first
    adds = (s.seed.action == Action.REDUCE)[row] & (kept_home[begin] | (start[received] >= 0))
    # the two ends cut messages alike: one adds all its data, or none
    common["arrival"] = np.where(adds, Opcode.RECV_REDUCE_COPY, Opcode.RECV)
    sends = _narrow({
        **common, "rank": sent[0], "kind": zeros + _SENDING, "time": 2 * step, "opcode": zeros + Opcode.SEND,
        "src_buffer": np.where(sent_home[begin], buffer[sent], Buffer.INPUT),
        "src_offset": np.where(sent_home[begin], home[sent], start[sent]) + lo, "dst_buffer": zeros,
        "dst_offset": zeros,
    })  # fmt: skip
    src_buffer = np.where(kept_home[begin], buffer[received], Buffer.INPUT)
    src = np.where(kept_home[begin], home[received], start[received]) + lo
    receives = _narrow({
        **common, "rank": received[0], "kind": zeros + _RECEIVING, "time": 2 * step + 1,
        "opcode": common["arrival"],
        "src_buffer": np.where(adds, src_buffer, 0), "src_offset": np.where(adds, src, 0),
        "dst_buffer": buffer[received], "dst_offset": home[received] + lo,
    })  # fmt: skip
    tables = [sends, receives, _narrow(_copies(s, cuts, atoms, home, start, buffer))]
    found = {c: np.concatenate([table.pop(c) for table in tables]) for c in list(tables[0])}
    order = lexsort([found[c] for c in ("lo", "row", "arrival", "time", "place", "kind", "rank")])
    return {c: values[order] for c, values in found.items()}


def _narrow(table: Columns) -> Columns:
    """Return columns in the narrowest types that hold them: they are many, and long."""
    return {c: table[c].astype(fit(int(table[c].min(initial=0)), int(table[c].max(initial=0)))) for c in table}


def _homes(s: SymmetricSchedule, atoms: _Atoms) -> tuple[Array, Array, Array]:
    """Return where each rank keeps each shard that arrives: buffer, first chunk; its first chunk in the input, or -1.

    Shape (ranks of the template, shards).
    """
    ranks, shards = np.arange(s.width)[:, None], atoms.shards[None, :]
    output, start = s.collective.output_slots(ranks, shards), s.collective.input_slots(ranks, shards)
    passing = (output < 0) & (atoms.first < atoms.never).any(axis=2)
    room = _reused(atoms, passing[0])[None, :] if s.collective.kind == "alltoall" else np.cumsum(passing, axis=1) - 1
    home = np.where(output >= 0, output, np.where(passing, room, -1)) * s.parts
    buffer = np.where(output >= 0, Buffer.OUTPUT, Buffer.SCRATCH)
    return buffer, home, np.where(start >= 0, start * s.parts, -1)


def _reused(atoms: _Atoms, passing: Array) -> Array:
    """Return the place in rank 0's scratch of each passing shard, in shards; a place is free after its last step.

    Shards take the lowest free place in the order of their arrival. Others get -1.
    """
    last = np.full(len(passing), -1)
    np.maximum.at(last, atoms.sent, atoms.step)
    arrival = np.full(len(passing), np.iinfo(np.int64).max)
    np.minimum.at(arrival, atoms.received, atoms.step)
    begin = np.where(atoms.early[0], -1, arrival)
    free, busy, place, size = list[int](), list[tuple[int, int]](), np.full(len(passing), -1), 0
    for shard in lexsort((np.arange(len(passing)), begin)).tolist():
        if not passing[shard]:
            continue
        while busy and busy[0][0] < begin[shard]:
            heappush(free, heappop(busy)[1])
        if free:
            place[shard] = heappop(free)
        else:
            place[shard], size = size, size + 1
        heappush(busy, (int(last[shard]), int(place[shard])))
    return place


def _copies(s: SymmetricSchedule, cuts: Array, atoms: _Atoms, home: Array, start: Array, buffer: Array) -> Columns:
    """Return the copies of what a rank has from the start, must have in the end, and never receives; before all else,
    those of the shards that it sends late.
    """
    ranks, shards = np.arange(s.width)[:, None], atoms.shards[None, :]
    kept = s.collective.wants(ranks, shards) & s.collective.holds(ranks, shards)
    rank, shard, atom = np.nonzero((kept[:, :, None] & (atoms.first == atoms.never)) | atoms.early[:, :, None])
    lo, zeros = cuts[atom], np.zeros(len(shard), dtype=np.int64)
    return {
        "rank": rank, "place": zeros, "row": np.arange(len(shard)), "lo": lo, "count": cuts[atom + 1] - lo,
        "kind": zeros + _LOCAL, "time": np.where(atoms.early[rank, shard], -1, 2 * s.num_steps), "arrival": zeros,
        "opcode": zeros + Opcode.COPY, "src_buffer": zeros + Buffer.INPUT, "src_offset": start[rank, shard] + lo,
        "dst_buffer": buffer[rank, shard], "dst_offset": home[rank, shard] + lo,
    }  # fmt: skip


# ---- blocks and messages


def _assembled(s: SymmetricSchedule, t: Columns, ends: _Ends, cuts: Array) -> SymmetricProgram:
    """Return the program of sorted instructions: a block for each kind and place, a message for each time in it."""
    rank, kind, place = t["rank"], t["kind"], t["place"]
    fresh_block = first_of_group(rank) | first_of_group(kind) | first_of_group(place)
    block = np.cumsum(fresh_block) - 1
    first = fresh_block | first_of_group(t["time"]) | first_of_group(t["arrival"]) | (kind == _LOCAL)
    begin = np.flatnonzero(fresh_block)
    used = place[begin]
    message = np.cumsum(first) - 1
    later, earlier = _waits(s, t, cuts, block, message)
    counts = np.zeros(len(first), dtype=np.int64)
    opening = np.flatnonzero(first)
    np.add.at(counts, opening[later], 1)
    scratch = np.zeros(s.topology.num_ranks, dtype=np.int64)
    stored = np.flatnonzero(t["dst_buffer"] == Buffer.SCRATCH)
    np.maximum.at(scratch, rank[stored], t["dst_offset"][stored].astype(np.int64) + t["count"][stored])
    seed = Program(
        s.collective, s.parts, scratch, block_rank=rank[begin],
        send_peer=np.where(kind[begin] == _SENDING, ends.to[used], -1),
        recv_peer=np.where(kind[begin] == _RECEIVING, ends.source[used], -1),
        channel=np.where(kind[begin] == _LOCAL, 0, ends.channel[used]),
        block_start=np.append(begin, len(first)), dep_start=starts(counts), deps=opening[earlier],
        scheduler=s.scheduler, **{c: t[c] for c in INSTRUCTION_COLUMNS},
    )  # fmt: skip
    return SymmetricProgram(seed, s.symmetry, ~first)


def _waits(s: SymmetricSchedule, t: Columns, cuts: Array, block: Array, message: Array) -> tuple[Array, Array]:
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
        location, at, write = _accesses(s, {c: values[rows] for c, values in t.items()}, cuts, message[rows])
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


def _accesses(s: SymmetricSchedule, t: Columns, cuts: Array, message: Array) -> tuple[Array, Array, Array]:
    """Return every access to an atom: location, message, whether it writes."""
    locations, messages, writes = [], [], []
    base, opcode, lo = _bases(s, t), t["opcode"], t["lo"].astype(np.int64)
    atom = np.searchsorted(cuts, lo)
    atoms = np.searchsorted(cuts, lo + t["count"]) - atom
    for end, used in (("src", READS_SRC[opcode]), ("dst", WRITES_DST[opcode])):
        rows = np.flatnonzero(used)
        slot = (t[f"{end}_offset"][rows].astype(np.int64) - lo[rows]) // s.parts
        slot += base[t["rank"][rows], t[f"{end}_buffer"][rows]]
        locations.append(ranges(slot * (len(cuts) - 1) + atom[rows], atoms[rows]))
        messages.append(np.repeat(message[rows], atoms[rows]))
        writes.append(np.full(len(locations[-1]), end == "dst"))
    return np.concatenate(locations), np.concatenate(messages), np.concatenate(writes)


def _bases(s: SymmetricSchedule, t: Columns) -> Array:
    """Return the first place of each buffer in shards, shape (ranks of the template, 3).

    In place the smaller of input and output is the place of the rank's own shard in the larger.
    """
    own, shards = np.arange(s.width), s.topology.num_ranks  # in an all-to-all, input and output are the same places
    slots = s.collective.input_slots(0, np.arange(shards)), s.collective.output_slots(0, np.arange(shards))
    places = [own * (int((found >= 0).sum()) < shards) for found in slots]
    scratch = int((t["dst_offset"] // s.parts).max(initial=0)) + 1
    bases: Array = np.stack([places[0], places[1], own * 0 + shards], axis=1) + own[:, None] * (shards + scratch)
    return bases
