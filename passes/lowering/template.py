"""Lower a template: the program of rank 0, of which those of all other ranks are images.

Rank 0 is the identity of the group. A row of the template moves shard 0 from u to v. Its image under u^-1 is sent by
rank 0: shard u^-1, to u^-1 v. Its image under v^-1 is received by rank 0: shard v^-1, from v^-1 u.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, Columns, distinct, distinct_pairs, lexsort
from collc.ir.frozen import frozen
from collc.ir.opcodes import READS_SRC, WRITES_DST
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import first_of_group, inverse, owners, ranges, starts
from collc.ir.schedule import Action
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram

from ..analysis.hazards import neighbours

__all__ = ["lower_template"]

#: kinds of blocks
_SENDING, _RECEIVING, _LOCAL = 0, 1, 2


def lower_template(s: SymmetricSchedule) -> SymmetricProgram | None:
    """Return the program of a discrete template; None if a rank sends a chunk in the step in which it arrives there.

    Every link out of rank 0 gets a block that sends, every link into it one that receives; a further block copies. The
    transfers of one step over one link are one message. Data lie where :class:`Lower` puts them, but scratch is in the
    order of rank 0's shards.
    """
    cuts = distinct(np.concatenate([[0, s.parts], s.seed.lo, s.seed.hi]).astype(np.int64))
    atoms = _Atoms.of(s, cuts)
    if atoms.exchange(len(cuts) * s.topology.num_ranks):
        return None
    table = _instructions(s, cuts, atoms)
    return _assembled(s, table)


@frozen(eq=False)
class _Atoms:
    """The atoms of the template's rows, which the ends of all rows cut out of shards: one row for each.

    ``row`` is the row of the template. ``sent`` and ``received`` are the shards that rank 0 sends and receives by it.
    ``time`` orders the messages that rank 0 receives: by step, then by the place of the link. ``first`` is the time at
    which data of each shard and atom first arrive on rank 0, shape (shards, atoms); ``never`` if none do.
    """

    row: Array
    atom: Array
    step: Array
    sent: Array
    received: Array
    time: Array
    first: Array
    never: int

    @classmethod
    def of(cls, s: SymmetricSchedule, cuts: Array) -> _Atoms:
        seed, group = s.seed, s.symmetry
        begin, end = np.searchsorted(cuts, seed.lo), np.searchsorted(cuts, seed.hi)
        row, atom = owners(end - begin), ranges(begin, end - begin)
        step = seed.step.astype(np.int64)[row]
        sent, received = group.inverse(seed.src)[row], group.inverse(seed.dst)[row]
        degree = s.topology.num_links // s.topology.num_ranks
        time, never = step * degree + s.place[row], s.num_steps * degree
        first = np.full((s.topology.num_ranks, len(cuts) - 1), never, dtype=np.int64)
        np.minimum.at(first, (received, atom), time)
        return cls(row, atom, step, sent, received, time, first, never)

    def exchange(self, places: int) -> bool:
        """Return whether rank 0 sends an atom in the step in which it arrives; there are at most ``places`` atoms."""
        atoms = self.first.shape[1]
        sent, received = ((self.step * places + shard * atoms + self.atom) for shard in (self.sent, self.received))
        return bool(np.isin(sent, received).any())


def _instructions(s: SymmetricSchedule, cuts: Array, atoms: _Atoms) -> Columns:
    """Return the instructions of rank 0 as columns; ``kind`` and ``place`` name their block, ``row`` the transfer."""
    buffer, home, start = _homes(s, atoms)
    # no rank sends an atom in the step in which it arrives, so what has arrived before the message has before the step
    sent_home = atoms.first[atoms.sent, atoms.atom] < atoms.time
    kept_home = atoms.first[atoms.received, atoms.atom] < atoms.time
    # rows are cut where the location at either end changes, so that both ends have the same instructions
    flags = np.stack([atoms.row, sent_home, kept_home])
    fresh = np.concatenate([[True], (flags[:, 1:] != flags[:, :-1]).any(axis=0)])[: len(atoms.row)]
    begin = np.flatnonzero(fresh)
    final = np.append(begin[1:], len(fresh)) - 1
    row, lo, hi = atoms.row[begin], cuts[atoms.atom[begin]], cuts[atoms.atom[final] + 1]
    sent, received = atoms.sent[begin], atoms.received[begin]
    zeros = np.zeros(len(row), dtype=np.int64)
    common = {"place": s.place.astype(np.int64)[row], "row": row, "lo": lo, "count": hi - lo}
    step = s.seed.step.astype(np.int64)[row]
    sends = {
        **common, "kind": zeros + _SENDING, "time": 2 * step, "opcode": zeros + Opcode.SEND,
        "src_buffer": np.where(sent_home[begin], buffer[sent], Buffer.INPUT),
        "src_offset": np.where(sent_home[begin], home[sent], start[sent]) + lo, "dst_buffer": zeros,
        "dst_offset": zeros,
    }  # fmt: skip
    # a rank without a contribution of its own stores what it receives first
    adds = (s.seed.action == Action.REDUCE)[row] & (kept_home[begin] | (start[received] >= 0))
    src_buffer = np.where(kept_home[begin], buffer[received], Buffer.INPUT)
    src = np.where(kept_home[begin], home[received], start[received]) + lo
    receives = {
        **common, "kind": zeros + _RECEIVING, "time": 2 * step + 1,
        "opcode": np.where(adds, Opcode.RECV_REDUCE_COPY, Opcode.RECV),
        "src_buffer": np.where(adds, src_buffer, 0), "src_offset": np.where(adds, src, 0),
        "dst_buffer": buffer[received], "dst_offset": home[received] + lo,
    }  # fmt: skip
    tables = [sends, receives, _copies(s, cuts, atoms, home, start)]
    found = {c: np.concatenate([table[c] for table in tables]) for c in sends}
    order = lexsort([found[c] for c in ("lo", "row", "opcode", "time", "place", "kind")])
    return {c: values[order] for c, values in found.items()}


def _homes(s: SymmetricSchedule, atoms: _Atoms) -> tuple[Array, Array, Array]:
    """Return where rank 0 keeps each shard that arrives: buffer, first chunk; its first chunk in the input, or -1."""
    shards = np.arange(s.topology.num_ranks)
    output, start = s.collective.output_slots(0, shards), s.collective.input_slots(0, shards)
    passing = (output < 0) & (atoms.first < atoms.never).any(axis=1)
    home = np.where(output >= 0, output, np.where(passing, np.cumsum(passing) - 1, -1)) * s.parts
    buffer = np.where(output >= 0, Buffer.OUTPUT, Buffer.SCRATCH)
    return buffer, home, np.where(start >= 0, start * s.parts, -1)


def _copies(s: SymmetricSchedule, cuts: Array, atoms: _Atoms, home: Array, start: Array) -> Columns:
    """Return the copies of what rank 0 has from the start, must have in the end, and never receives."""
    shards = np.arange(s.topology.num_ranks)
    kept = s.collective.wants(0, shards) & s.collective.holds(0, shards)
    shard, atom = np.nonzero(kept[:, None] & (atoms.first == atoms.never))
    lo, zeros = cuts[atom], np.zeros(len(shard), dtype=np.int64)
    return {
        "place": zeros, "row": np.arange(len(shard)), "lo": lo, "count": cuts[atom + 1] - lo, "kind": zeros + _LOCAL,
        "time": zeros + 2 * s.num_steps, "opcode": zeros + Opcode.COPY, "src_buffer": zeros + Buffer.INPUT,
        "src_offset": start[shard] + lo, "dst_buffer": zeros + Buffer.OUTPUT, "dst_offset": home[shard] + lo,
    }  # fmt: skip


# ---- blocks and messages


def _assembled(s: SymmetricSchedule, t: Columns) -> SymmetricProgram:
    """Return the program of sorted instructions: a block for each kind and place, a message for each time in it."""
    kind, place = t["kind"], t["place"]
    fresh_block = first_of_group(kind * (int(place.max(initial=0)) + 1) + place)
    block = np.cumsum(fresh_block) - 1
    first = fresh_block | first_of_group(t["time"]) | first_of_group(t["opcode"]) | (kind == _LOCAL)
    begin = np.flatnonzero(fresh_block)
    peer, channel = _link_ends(s)
    to = peer[place[begin]]
    message = np.cumsum(first) - 1
    later, earlier = _waits(s, t, block, message)
    counts = np.zeros(len(first), dtype=np.int64)
    opening = np.flatnonzero(first)
    np.add.at(counts, opening[later], 1)
    scratch = np.zeros(s.topology.num_ranks, dtype=np.int64)
    used = np.concatenate([(t[f"{e}_offset"] + t["count"])[t[f"{e}_buffer"] == Buffer.SCRATCH] for e in ("src", "dst")])
    scratch[0] = used.max(initial=0)
    seed = Program(
        s.collective, s.parts, scratch, block_rank=np.zeros(len(begin), dtype=np.int64),
        send_peer=np.where(kind[begin] == _SENDING, to, -1),
        recv_peer=np.where(kind[begin] == _RECEIVING, s.symmetry.inverse(to), -1),
        channel=np.where(kind[begin] == _LOCAL, 0, channel[place[begin]]),
        block_start=np.append(begin, len(first)), dep_start=starts(counts), deps=opening[earlier],
        scheduler=s.scheduler, **{c: t[c] for c in INSTRUCTION_COLUMNS},
    )  # fmt: skip
    return SymmetricProgram(seed, s.symmetry, ~first)


def _link_ends(s: SymmetricSchedule) -> tuple[Array, Array]:
    """Return for each place of a link at rank 0 the peer, and the number of the link among those to that peer."""
    peer = s.topology.dst[: s.topology.num_links // s.topology.num_ranks].astype(np.int64)
    order = lexsort([peer])
    fresh = first_of_group(peer[order])
    first = np.maximum.accumulate(np.where(fresh, np.arange(len(peer)), 0))
    return peer, (np.arange(len(peer)) - first)[inverse(order)]


def _waits(s: SymmetricSchedule, t: Columns, block: Array, message: Array) -> tuple[Array, Array]:
    """Return the pairs of messages (later, earlier) of different blocks that access a chunk which one of them writes.

    Only neighbours in the order of all messages at a chunk count, and of the messages of one block only the last. In
    calls in place the input is part of the output, so both count as one.
    """
    time = np.empty(int(message[-1]) + 1 if len(message) else 0, dtype=np.int64)
    time[message] = t["time"]
    order = inverse(lexsort((np.arange(len(time)), time)))
    location, at, write = _accesses(s, t, message)
    later, earlier = neighbours(at, location, write, order)
    return _latest(later, earlier, _block_of(block, message))


def _block_of(block: Array, message: Array) -> Array:
    found = np.zeros(int(message[-1]) + 1 if len(message) else 0, dtype=np.int64)
    found[message] = block
    return found


def _latest(later: Array, earlier: Array, block: Array) -> tuple[Array, Array]:
    """Return the pairs between blocks, sorted, of each earlier block only the latest."""
    between = block[later] != block[earlier]
    later, earlier = distinct_pairs(later[between], earlier[between])
    order = lexsort((earlier, block[earlier], later))
    later, earlier = later[order], earlier[order]
    last = np.append((later[1:] != later[:-1]) | (block[earlier][1:] != block[earlier][:-1]), True)[: len(later)]
    return later[last], earlier[last]


def _accesses(s: SymmetricSchedule, t: Columns, message: Array) -> tuple[Array, Array, Array]:
    """Return every access to a chunk on rank 0: location, message, whether it writes."""
    locations, messages, writes = [], [], []
    # in place the input and the output of rank 0 begin at the same place, that of shard 0
    base = np.where(np.arange(len(Buffer)) == Buffer.SCRATCH, s.topology.num_ranks * s.parts, 0)
    opcode = t["opcode"]
    for end, used in (("src", READS_SRC[opcode]), ("dst", WRITES_DST[opcode])):
        rows = np.flatnonzero(used)
        first = base[t[f"{end}_buffer"][rows].astype(np.int64)] + t[f"{end}_offset"][rows]
        locations.append(ranges(first, t["count"][rows]))
        messages.append(np.repeat(message[rows], t["count"][rows]))
        writes.append(np.full(len(locations[-1]), end == "dst"))
    return np.concatenate(locations), np.concatenate(messages), np.concatenate(writes)
