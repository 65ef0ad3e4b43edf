"""Lower a schedule on a cluster with a few odd boxes: the programs of the odd ranks and of one alike box.

Where a rotation of the alike boxes maps the transfers of a schedule to each other, it maps the programs of ranks too
(:mod:`collc.ir.turning`). So only the transfers at the listed ranks become instructions, and all other ranks get the
images. The verifier executes all ranks.

The rotation moves ranks by itself. It moves the atoms of the vector, which the ends of all transfers cut, as it moves
their transfers: the image of an atom has the images of its transfers. Sums of hashes tell which atom that is.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, lexsort
from collc.ir.frozen import frozen
from collc.ir.graph.box_rotation import box_rotation
from collc.ir.group import Translations
from collc.ir.opcodes import READS_SRC, WRITES_DST
from collc.ir.placement import channels
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, inverse, owners, ranges, starts
from collc.ir.schedule import Action, Schedule
from collc.ir.symmetric import SYMMETRIC_KINDS
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.symmetries import Rotations
from collc.ir.turning import Turning, all_images

from ..analysis.hazards import needed, neighbours

__all__ = ["lower_turned", "turning_of"]

_SENDING, _RECEIVING, _LOCAL = 0, 1, 2
_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def lower_turned(s: Schedule) -> SymmetricProgram | None:
    """Return the program of messages of a discrete schedule, all ranks listed, with the rotation that makes it.

    None if the network is no cluster with a few odd boxes, if the rotation does not map transfers to transfers, or if a
    rank sends a chunk in the step in which it arrives there.
    """
    if s.collective.kind not in SYMMETRIC_KINDS or not s.collective.is_plain or s.placement is not None:
        return None
    s = _joined(s)
    rotation = box_rotation(s.topology)
    turning = None if rotation is None else turning_of(s, rotation)
    if turning is None or 2 * turning.width > s.topology.num_ranks:
        return None
    moves = _Moves.of(s, turning)
    if moves.exchange():
        return None
    seed, joined = _assembled(s, turning, moves)
    vector = frozenset(
        buffer for buffer, slots in (
            (Buffer.INPUT, s.collective.input_shards), (Buffer.OUTPUT, s.collective.output_shards)
        ) if slots == s.collective.num_shards
    )  # fmt: skip
    program, flags = all_images(seed, joined, turning, vector)
    return SymmetricProgram(program, Translations((1,)), flags, turning=turning)


def _joined(s: Schedule) -> Schedule:
    """Return the schedule with one transfer in place of those that move neighbouring parts in a step of a route.

    Trees of one root that differ in the odd boxes only are one tree elsewhere.
    """
    s = s.rows(lexsort((s.lo, s.shard, s.action, s.route, s.step)))
    fresh = np.append(True, s.lo[1:] != s.hi[:-1])[: len(s)]
    for column in (s.shard, s.action, s.route, s.step):
        fresh |= first_of_group(column)
    begin = np.flatnonzero(fresh)
    final = np.append(begin[1:], len(s))[: len(begin)] - 1
    return attrs.evolve(s.rows(begin), hi=s.hi[final])


# ---- the rotation of ranks and chunks


def turning_of(s: Schedule, rotation: Rotations) -> Turning | None:
    """Return how a rotation of the network moves the chunks of a schedule; None if it does not map all transfers."""
    generator, stays, order = rotation.generator.astype(np.int64), rotation.stays, rotation.order
    ranks = s.topology.num_ranks
    first = np.unique(rotation.rank_orbit, return_index=True)[1]
    seeds = np.sort(first[~stays[first]])
    boxes = rotation.nodes(np.arange(order)[:, None], seeds[None, :])
    at = np.concatenate([np.flatnonzero(stays), boxes.ravel()])
    chunks, parts = s.collective.num_shards * s.parts, np.int64(s.parts)
    shard = s.shard.astype(np.int64)
    lo, hi = shard * parts + s.lo, shard * parts + s.hi
    own = np.arange(s.collective.num_shards + 1) * parts
    cuts = distinct(np.concatenate([own if s.collective.kind != "allreduce" else own[[0, -1]], lo, hi]))
    span = (np.searchsorted(cuts, lo), np.searchsorted(cuts, hi))
    kind = (s.step.astype(np.int64) * 2 + s.action) * (int(channels(s).max(initial=0)) + 1) + channels(s)
    src, dst = s.src.astype(np.int64), s.dst.astype(np.int64)
    here = _sums(_hashed(kind, src, dst), *span, len(cuts))
    there = _sums(_hashed(kind, generator[src], generator[dst]), *span, len(cuts))
    if s.collective.kind != "allreduce":  # a shard belongs to its rank
        of, inside = np.divmod(cuts[:-1], parts)
        here = here + _hashed(of, inside)
        there = there + _hashed(generator[:ranks][of], inside)
    size, place = np.diff(cuts), np.arange(len(cuts) - 1)
    ordered, turned = (np.lexsort((place, size, sums)) for sums in (here, there))
    if not (np.array_equal(here[ordered], there[turned]) and np.array_equal(size[ordered], size[turned])):
        return None
    image = np.empty(len(place), dtype=np.int64)
    image[turned] = ordered
    atoms = _cycled(image, order)
    if atoms is None:
        return None
    fixed, moved = atoms
    by_place = np.concatenate([fixed, moved.ravel()])
    chunk = ranges(cuts[:-1][by_place], size[by_place])
    kept, box = int(size[fixed].sum()), int(size[moved[0]].sum()) if len(moved) else 0
    unit = s.parts if s.collective.kind != "allreduce" else _unit(chunk, kept, box)
    if kept % unit or box % unit or chunks % unit:
        return None
    return Turning(order, int(stays.sum()), kept // unit, unit, at, chunk[::unit] // unit)


def _cycled(image: Array, order: int) -> tuple[Array, Array] | None:
    """Return the points that stay, and the cycles of the others, one a column: shape (order, cycles).

    None if a cycle has another length than ``order``.
    """
    rows, least = [np.arange(len(image))], np.arange(len(image))
    for _ in range(order - 1):
        rows.append(image[rows[-1]])
        np.minimum(least, rows[-1], out=least)
    stays = image == rows[0]
    moves = ~stays
    if (
        not np.array_equal(image[rows[-1]], rows[0])
        or (np.bincount(least[moves], minlength=1)[least[moves]] != order).any()
    ):
        return None
    first = np.flatnonzero(moves & (least == rows[0]))
    return np.flatnonzero(stays), np.stack([row[first] for row in rows])


def _unit(chunk: Array, kept: int, box: int) -> int:
    """Return the most neighbouring chunks that move together everywhere; ``chunk`` has the chunk at each place."""
    most = int(np.gcd(np.gcd(kept, box), len(chunk)))
    for unit in range(most, 1, -1):
        if most % unit == 0:
            rows = chunk.reshape(-1, unit)
            if not (rows[:, 0] % unit).any() and (np.diff(rows, axis=1) == 1).all():
                return unit
    return 1


def _sums(value: Array, first: Array, end: Array, size: int) -> Array:
    """Return for each atom the sum of the values of the rows that move it, modulo 2^64."""
    change = np.zeros(size, dtype=np.uint64)
    np.add.at(change, first, value)
    np.subtract.at(change, end, value)
    total: Array = np.cumsum(change)[:-1]
    return total


def _hashed(*columns: Array) -> Array:
    """Return a hash of 64 bits of each row (the mixing of splitmix64)."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = found + column.astype(np.uint64) + np.uint64(_MIX[0])
        found = (found ^ (found >> np.uint64(30))) * np.uint64(_MIX[1])
        found = (found ^ (found >> np.uint64(27))) * np.uint64(_MIX[2])
        found ^= found >> np.uint64(31)
    return found


# ---- transfers at the listed ranks


@frozen(eq=False)
class _Ends:
    """Connections at the listed ranks: by number, the rank, its peer (both places) and the channel."""

    rank: Array
    peer: Array
    channel: Array

    @classmethod
    def of(cls, rank: Array, peer: Array, channel: Array, ranks: int) -> tuple[_Ends, Array]:
        """Return the connections of some rows, and the number of each row's."""
        channels_ = int(channel.max(initial=0)) + 1
        key, number = np.unique((rank * ranks + peer) * channels_ + channel, return_inverse=True)
        return cls(key // channels_ // ranks, key // channels_ % ranks, key % channels_), number.reshape(-1)


@frozen(eq=False)
class _Moves:
    """Transfers that a listed rank sends or receives, cut at units and where the location at either end changes.

    ``sends`` and ``receives`` are the flags of the rows that a listed rank sends or receives. At both ends every row
    has the listed rank of which its end is an image, ``sender`` and ``receiver``; the units ``sent`` and ``received``
    as these name them; and the connection, ``out`` of ``ends[0]`` and ``into`` of ``ends[1]``.
    ``arrived`` is the time at which data of a unit and atom first arrive, shape (listed ranks, units, atoms).
    """

    ends: tuple[_Ends, _Ends]
    sends: Array
    receives: Array
    step: Array
    adds: Array
    sender: Array
    receiver: Array
    sent: Array
    received: Array
    out: Array
    into: Array
    lo: Array
    hi: Array
    sent_home: Array
    kept_home: Array
    arrived: Array
    cuts: Array
    never: int
    sends_arriving: bool

    def exchange(self) -> bool:
        """Return whether a rank sends an atom in the step in which it arrives."""
        return self.sends_arriving

    @classmethod
    def of(cls, s: Schedule, turning: Turning) -> _Moves:
        src, dst = turning.place[s.src], turning.place[s.dst]
        near = np.flatnonzero((src < turning.width) | (dst < turning.width))
        src, dst, step, adds = src[near], dst[near], s.step[near].astype(np.int64), s.action[near] == Action.REDUCE
        channel, parts = channels(s)[near].astype(np.int64), np.int64(s.parts)
        lo, hi = (s.shard[near].astype(np.int64) * parts + column[near] for column in (s.lo, s.hi))
        count = (hi - 1) // turning.unit - lo // turning.unit + 1
        row, unit = owners(count), ranges(lo // turning.unit, count)
        lo, hi = np.maximum(lo[row] - unit * turning.unit, 0), np.minimum(hi[row] - unit * turning.unit, turning.unit)
        unit = turning.place_of_unit[unit]
        src, dst, step, adds, channel = (column[row] for column in (src, dst, step, adds, channel))
        out, into = turning.element(src), turning.element(dst)
        sender, receiver = turning.listed(src), turning.listed(dst)
        sent, received = turning.moved_units(-out, unit), turning.moved_units(-into, unit)
        # both ends take the runs of a message in one order, that of a listed rank
        named = np.where(src >= turning.kept, sent, received)
        order = lexsort((lo, named))
        ranks = len(turning.ranks)
        outward, place = _Ends.of(sender, turning.moved(-out, dst), channel, ranks)
        inward, arrival = _Ends.of(receiver, turning.moved(-into, src), channel, ranks)
        moves = (src < turning.width, dst < turning.width)
        columns = (*moves, step, adds, sender, receiver, sent, received, place, arrival)
        flat = tuple(column[order] for column in columns)
        return cls._cut((outward, inward), flat, lo[order], hi[order], turning, s.num_steps)

    @classmethod
    def _cut(
        cls, ends: tuple[_Ends, _Ends], columns: tuple[Array, ...], lo: Array, hi: Array, turning: Turning, steps: int
    ) -> _Moves:
        cuts = distinct(np.concatenate([[0, turning.unit], lo, hi]).astype(np.int64))
        first, end = np.searchsorted(cuts, lo), np.searchsorted(cuts, hi)
        row, atom = owners(end - first), ranges(first, end - first)
        sends, receives, step, _, sender, receiver, sent, received, _, into = (column[row] for column in columns)
        base = max(len(ends[1].rank), 1)
        time, never = step * base + into, steps * base
        arrived = np.full((turning.width, len(turning.units), len(cuts) - 1), never, dtype=np.int64)
        np.minimum.at(arrived, (receiver[receives], received[receives], atom[receives]), time[receives])
        sent_home = arrived[sender, sent, atom] < step * base
        kept_home = arrived[receiver, received, atom] < time
        size = arrived[0].size
        leaving, arriving = (
            (step * turning.width + rank)[use] * size + (unit * (len(cuts) - 1) + atom)[use]
            for rank, unit, use in ((sender, sent, sends), (receiver, received, receives))
        )
        exchange = bool(np.isin(leaving, arriving).any())
        fresh = first_of_group(row) | first_of_group(sent_home) | first_of_group(kept_home)
        begin = np.flatnonzero(fresh)
        final = np.append(begin[1:], len(row))[: len(begin)] - 1
        of = row[begin]
        sends, receives, step, adds, sender, receiver, sent, received, out, into = (column[of] for column in columns)
        return cls(
            ends, sends, receives, step, adds, sender, receiver, sent, received, out, into, cuts[atom[begin]],
            cuts[atom[final] + 1], sent_home[begin], kept_home[begin], arrived, cuts, never, exchange,
        )  # fmt: skip


# ---- instructions


@frozen(eq=False)
class _Homes:
    """Where listed ranks keep units, shape (listed ranks, units): buffer and first chunk of what arrives, and the first
    chunk in the input of what is there from the start, -1 if nothing is."""

    buffer: Array
    home: Array
    start: Array

    @classmethod
    def of(cls, s: Schedule, turning: Turning, moves: _Moves) -> _Homes:
        width, units, kind = turning.width, len(turning.units), s.collective.kind
        place = np.broadcast_to(np.arange(units) * turning.unit, (width, units))
        own = np.arange(units)[None, :] == np.arange(width)[:, None]  # of an allgather or reduce-scatter
        start = np.where(own, 0, -1) if kind == "allgather" else place
        output = np.where(own, 0, -1) if kind == "reduce-scatter" else place
        passing = (output < 0) & (moves.arrived < moves.never).any(axis=2)
        room = np.where(passing, (np.cumsum(passing, axis=1) - 1) * turning.unit, -1)
        buffer = np.where(output >= 0, int(Buffer.OUTPUT), int(Buffer.SCRATCH))
        return cls(buffer, np.where(output >= 0, output, room), start)


def _instructions(s: Schedule, turning: Turning, moves: _Moves) -> Columns:
    """Return the instructions of the listed ranks as columns; ``kind`` and ``place`` name their block."""
    homes, row = _Homes.of(s, turning, moves), np.arange(len(moves.step))
    zeros = np.zeros(len(row), dtype=np.int64)
    sent, received = (moves.sender, moves.sent), (moves.receiver, moves.received)
    # a rank without a contribution of its own stores what it receives first; both ends cut messages alike
    adds = moves.adds & (moves.kept_home | (homes.start[received] >= 0))
    opcode = np.where(adds, int(Opcode.RECV_REDUCE_COPY), int(Opcode.RECV))
    common = {"row": row, "lo": moves.lo, "count": moves.hi - moves.lo, "arrival": opcode}
    sends = {
        **common, "rank": moves.sender, "kind": zeros + _SENDING, "place": moves.out, "time": 2 * moves.step,
        "unit": moves.sent, "opcode": zeros + Opcode.SEND,
        "src_buffer": np.where(moves.sent_home, homes.buffer[sent], int(Buffer.INPUT)),
        "src_offset": np.where(moves.sent_home, homes.home[sent], homes.start[sent]) + moves.lo,
        "dst_buffer": zeros, "dst_offset": zeros,
    }  # fmt: skip
    buffer = np.where(moves.kept_home, homes.buffer[received], int(Buffer.INPUT))
    src = np.where(moves.kept_home, homes.home[received], homes.start[received]) + moves.lo
    receives = {
        **common, "rank": moves.receiver, "kind": zeros + _RECEIVING, "place": moves.into,
        "time": 2 * moves.step + 1, "unit": moves.received, "opcode": opcode,
        "src_buffer": np.where(adds, buffer, 0), "src_offset": np.where(adds, src, 0),
        "dst_buffer": homes.buffer[received], "dst_offset": homes.home[received] + moves.lo,
    }  # fmt: skip
    tables = [
        {c: values[moves.sends] for c, values in sends.items()},
        {c: values[moves.receives] for c, values in receives.items()},
        _copies(s, turning, moves, homes),
    ]  # fmt: skip
    found = {c: np.concatenate([table[c] for table in tables]) for c in tables[0]}
    order = lexsort([found[c] for c in ("lo", "row", "arrival", "time", "place", "kind", "rank")])
    return {c: values[order] for c, values in found.items()}


def _copies(s: Schedule, turning: Turning, moves: _Moves, homes: _Homes) -> Columns:
    """Return the copies of what a rank has from the start, must have in the end, and never receives."""
    kept = (homes.start >= 0) & (homes.buffer == Buffer.OUTPUT)
    idle = kept[:, :, None] & (moves.arrived == moves.never)
    rank, unit, atom = np.nonzero(idle)
    fresh = first_of_group(rank) | first_of_group(unit) | np.append(True, np.diff(atom) != 1)[: len(atom)]
    begin = np.flatnonzero(fresh)
    last = atom[np.append(begin[1:], len(atom))[: len(begin)] - 1]
    rank, unit, lo, hi = rank[begin], unit[begin], moves.cuts[atom[begin]], moves.cuts[last + 1]
    zeros = np.zeros(len(unit), dtype=np.int64)
    return {
        "row": np.arange(len(unit)), "lo": lo, "count": hi - lo, "arrival": zeros, "rank": rank,
        "kind": zeros + _LOCAL, "place": zeros, "time": zeros + 2 * s.num_steps, "unit": unit,
        "opcode": zeros + Opcode.COPY, "src_buffer": zeros + Buffer.INPUT, "src_offset": homes.start[rank, unit] + lo,
        "dst_buffer": zeros + Buffer.OUTPUT, "dst_offset": homes.home[rank, unit] + lo,
    }  # fmt: skip


def _assembled(s: Schedule, turning: Turning, moves: _Moves) -> tuple[Program, Array]:
    """Return the programs of the listed ranks, named by places, and the flags of joined instructions."""
    t = _instructions(s, turning, moves)
    rank, kind, place = t["rank"], t["kind"], t["place"]
    fresh_block = first_of_group(rank) | first_of_group(kind) | first_of_group(place)
    block = np.cumsum(fresh_block) - 1
    first = fresh_block | first_of_group(t["time"]) | first_of_group(t["arrival"]) | (kind == _LOCAL)
    begin, opening, message = np.flatnonzero(fresh_block), np.flatnonzero(first), np.cumsum(first) - 1
    later, earlier = _waits(s, turning, t, moves.cuts, block[opening], message)
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, opening[later], 1)
    scratch = np.zeros(s.topology.num_ranks, dtype=np.int64)
    stored = np.flatnonzero(t["dst_buffer"] == Buffer.SCRATCH)
    np.maximum.at(scratch, rank[stored], t["dst_offset"][stored] + t["count"][stored])
    used, of = place[begin], kind[begin]
    peers = [np.full(len(begin), -1, dtype=np.int64) for _ in range(2)]
    channel = np.zeros(len(begin), dtype=np.int64)
    for what, (ends, peer) in enumerate(zip(moves.ends, peers, strict=True)):
        own = np.flatnonzero(of == what)
        peer[own], channel[own] = ends.peer[used[own]], ends.channel[used[own]]
    return Program(
        s.collective, s.parts, scratch, block_rank=rank[begin], send_peer=peers[0], recv_peer=peers[1],
        channel=channel, block_start=np.append(begin, len(first)), dep_start=starts(counts), deps=opening[earlier],
        scheduler=s.scheduler, **{c: t[c] for c in INSTRUCTION_COLUMNS},
    ), ~first  # fmt: skip


def _waits(s: Schedule, turning: Turning, t: Columns, cuts: Array, block: Array, message: Array) -> tuple[Array, Array]:
    """Return the pairs of messages (later, earlier) of different blocks that must wait, as the accesses need.

    A pair that an earlier message of the block implies is left out. In calls in place the input is part of the output,
    so both count as one.
    """
    time = np.empty(len(block), dtype=np.int64)
    time[message] = t["time"]
    order = inverse(lexsort((np.arange(len(time)), time)))
    at, location, write = _accesses(s, turning, t, cuts, message)
    later, earlier = neighbours(at, location, write, order)
    return needed(block, later, earlier)


def _accesses(s: Schedule, turning: Turning, t: Columns, cuts: Array, message: Array) -> tuple[Array, Array, Array]:
    """Return every access to an atom: message, location, whether it writes.

    In place a unit has one location in input and output, and another one in scratch.
    """
    units, atoms = len(turning.units), len(cuts) - 1
    first, after = np.searchsorted(cuts, np.stack([t["lo"], t["lo"] + t["count"]]))
    size = after - first
    found: list[tuple[Array, Array, Array]] = []
    for end, used in (("src", READS_SRC[t["opcode"]]), ("dst", WRITES_DST[t["opcode"]])):
        rows = np.flatnonzero(used)
        slot = t["rank"][rows] * 2 * units + (t[f"{end}_buffer"][rows] == Buffer.SCRATCH) * units + t["unit"][rows]
        location = ranges(slot * atoms + first[rows], size[rows])
        found.append((np.repeat(message[rows], size[rows]), location, np.full(len(location), end == "dst")))
    at, location, write = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return at, location, write
