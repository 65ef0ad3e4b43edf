"""Fuse receives and sends into one instruction, in threadblocks that do both."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.editing import join_blocks, take
from collc.ir.frozen import frozen
from collc.ir.layout import layout
from collc.ir.machine import Deadlock, completes_with, execute
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.progress import progress
from collc.ir.ragged import inverse

from ..analysis.hazards import accesses, conflicts, synchronize
from ..analysis.timing import Times, duration, play
from ..base import Pass, remark
from ..ranges import AT_LEAST_1
from .limits import steps
from .merging import Merged, merge
from .pairing import Pairs, flows, pair_blocks
from .unfuse import Unfuse

__all__ = ["STRATEGIES", "Fuse"]

#: how blocks may be paired, most threadblocks first
STRATEGIES = ("apart", "flow", "few")

#: default size of a call, and the latency of a message in bytes that a link moves in that time
_SIZE, _START = 1 << 24, 1 << 16
#: a strategy with fewer threadblocks may take 1/_MARGIN more time
_MARGIN = 8
_ROUNDS = 4


@frozen(eq=False)
class _Joined:
    """A program, and the former blocks of each of its blocks."""

    program: Program
    members: tuple[list[int], ...]


@frozen
class Fuse(Pass):
    """Let one threadblock receive and send, and fuse a receive with the send that forwards its data.

    recv + send becomes recv-copy-send. recv-reduce-copy + send becomes recv-reduce-copy-send, or recv-reduce-send if no
    instruction reads the stored data. ``strategy`` chooses the blocks to join:

    * ``apart``: none.
    * ``flow``: a receiving block and the sending block that forwards its data, those that forward most first.
    * ``few``: also all remaining blocks, with the same peer if possible.
    * ``auto`` builds all three and takes the fastest by the model of :mod:`..analysis.timing`, or one with fewer
      threadblocks if it takes at most an eighth more time: threadblocks take GPU cores from computation.

    Joined blocks share a channel, so forwarded data stay on one channel. The pass renumbers channels. Fusing also helps
    runtimes without ``fused`` instructions: it finds the data that need not be stored, and `unfuse`, which must follow,
    needs fewer instructions. FIFOs of ``fifo_depth`` messages (default 2) suffice for every split of messages into
    chunks: blocks are not joined, and instructions not fused, if that would deadlock.
    """

    name: ClassVar[str] = "fuse"
    summary: ClassVar[str] = "fuse receives and sends into one instruction and one threadblock"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program
    follows: ClassVar[tuple[str, ...]] = ("balance-threadblocks",)

    strategy: Literal["auto", "apart", "flow", "few"] = attrs.field(
        default="auto", metadata={"help": "which threadblocks to join: auto, apart, flow, few"}
    )
    fused: bool = attrs.field(
        default=True, metadata={"help": "whether the runtime has fused instructions; otherwise `unfuse` must follow"}
    )
    fifo_depth: int | None = attrs.field(
        default=None, metadata={"help": "messages a connection holds; default 2", "range": AT_LEAST_1}
    )
    max_steps: int | None = attrs.field(
        default=None, metadata={"help": "the most steps of a threadblock", "range": AT_LEAST_1}
    )
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels", "range": AT_LEAST_1})
    size: int | None = attrs.field(
        default=None,
        metadata={
            "help": "bytes of a call, to compare times (default: the collective's size, or 16 MiB)",
            "range": AT_LEAST_1,
        },
    )

    def run(self, ir: Program) -> Program:
        if self.strategy == "apart" or not ir.num_instructions:
            return ir
        apart = execute(ir, self._depth)
        finished = execute(ir).finished if apart.deadlock else apart.finished
        times = play(ir, _START, self._unit(ir), finished)
        clashes = conflicts(ir, times.place)
        flow = _without_delay(ir, times, clashes, *flows(ir, clashes))
        if self.strategy != "auto":
            joined = self._build(ir, times.place, clashes, flow, self._pairs(ir, flow, self.strategy))
            return joined.program if joined else ir
        candidates = {} if apart.deadlock else {"apart": _Joined(ir, ())}
        before = np.arange(ir.num_blocks)
        for strategy in STRATEGIES[1:]:
            pairs = self._pairs(ir, flow, strategy)
            if (pairs.host == before).all() or not _is_promising(ir, flow, pairs):
                continue
            before = pairs.host
            joined = self._build(ir, times.place, clashes, flow, pairs)
            if joined is not None:
                candidates[strategy] = joined
        return self._best(candidates) if candidates else ir

    def _best(self, candidates: dict[str, _Joined]) -> Program:
        """Return the fastest program, or one with fewer threadblocks that is hardly slower."""
        times = {name: self._time(one) for name, one in candidates.items()}
        blocks = {name: int(np.diff(one.program.rank_blocks).max(initial=0)) for name, one in candidates.items()}
        least = min(times.values())
        fits = [name for name, t in times.items() if t * _MARGIN <= least * (_MARGIN + 1)]
        chosen = min(fits, key=lambda name: (blocks[name], times[name], STRATEGIES.index(name)))
        listed = ", ".join(
            f"{name} (threadblocks {blocks[name]}, time {times[name] / max(least, 1):.2f})" for name in candidates
        )
        remark(f"fuse: strategy {chosen} of: {listed}")
        return candidates[chosen].program

    def _time(self, joined: _Joined) -> int:
        """Return how long the runtime takes, with fused instructions only if it has them."""
        program, unit = joined.program, self._unit(joined.program)
        if not self.fused:
            plain = Unfuse().run(program)
            return duration(plain, _START, unit, self._depth if completes_with(plain, self._depth) else None) or 0
        return duration(program, _START, unit, self._depth) or 0

    def _unit(self, program: Program) -> int:
        size = self.size or program.collective.size or _SIZE
        return max(size // max(program.chunks * program.collective.num_shards, 1), 1)

    @property
    def _depth(self) -> int:
        return 2 if self.fifo_depth is None else self.fifo_depth

    def _pairs(self, ir: Program, flow: tuple[Array, Array], strategy: str) -> Pairs:
        return pair_blocks(ir, flow, strategy == "few", steps(ir, self.fused), self.max_steps, self.fused)

    def _build(
        self, ir: Program, order: Array, clashes: tuple[Array, Array], flow: tuple[Array, Array], pairs: Pairs
    ) -> _Joined | None:
        """Return the program with blocks joined, or None if limits or FIFOs do not allow it."""
        for turn in range(_ROUNDS):
            progress("joining threadblocks, round", turn + 1)
            if self.max_channels is not None and int(pairs.channel.max(initial=0)) >= self.max_channels:
                return None
            merged = merge(ir, order, clashes, _follow(ir, flow, pairs), pairs.host, self._depth)
            if merged is None:
                return None
            program, members = assemble(ir, merged, pairs)
            deadlock = None
            if not completes_with(program, self._depth, split=1):
                deadlock = execute(program, self._depth, split=1).deadlock
            wrong = [b for b in self._wrongly_joined(program, deadlock) if len(members[b]) > 1]
            if not wrong:
                return None if deadlock else _Joined(program, tuple(members))
            host = pairs.host.copy()
            for b in wrong:
                host[members[b]] = members[b]
            pairs = attrs.evolve(pairs, host=host)
        return None

    def _wrongly_joined(self, program: Program, deadlock: Deadlock | None) -> list[int]:
        """Return the blocks that have too many steps or wait in a deadlock."""
        wrong = [] if self.max_steps is None else np.flatnonzero(steps(program, self.fused) > self.max_steps).tolist()
        if deadlock is not None:
            wrong += [int(program.block[w.instruction]) for w in deadlock.cycle or deadlock.waits]
        return sorted(set(wrong))


def _is_promising(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> bool:
    """Return whether pairs reduce the most threadblocks of a rank, or fuse an eighth of the instructions."""
    kept = np.bincount(program.block_rank[pairs.host == np.arange(len(pairs.host))], minlength=program.num_ranks)
    fewer = int(kept.max(initial=0)) < int(np.diff(program.rank_blocks).max(initial=0))
    fused = int((_follow(program, flow, pairs) >= 0).sum())
    return fewer or fused * _MARGIN > program.num_instructions


def _without_delay(
    program: Program, times: Times, clashes: tuple[Array, Array], i: Array, j: Array
) -> tuple[Array, Array]:
    """Return the pairs (receive, send) whose fusion delays no other instruction.

    The receive does not wait for its send, and no other instruction that accesses the data waits for the send.
    """
    soon = times.begin[j] <= times.end[i]
    i, j = i[soon], j[soon]
    later, earlier = clashes
    send_of = np.full(program.num_instructions, -1, dtype=np.int64)
    send_of[i] = j
    other = (send_of[earlier] >= 0) & (send_of[earlier] != later) & (later != earlier)
    before_sent = times.begin[later] < times.end[send_of[earlier]]
    delayed = np.zeros(program.num_instructions, dtype=bool)
    delayed[earlier[other & before_sent]] = True
    return i[~delayed[i]], j[~delayed[i]]


def _follow(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> Array:
    """Return for each receive the first send of its joined block that forwards its data; -1 if there is none."""
    follow = np.full(program.num_instructions, -1, dtype=np.int64)
    i, j = flow
    together = pairs.host[program.block[i]] == pairs.host[program.block[j]]
    i, j = i[together][::-1], j[together][::-1]  # the first send overwrites later ones
    follow[i] = j
    return follow


def assemble(program: Program, merged: Merged, pairs: Pairs) -> tuple[Program, list[list[int]]]:
    """Return the merged program, with recomputed dependencies, and the former blocks of each of its blocks."""
    place = inverse(merged.order)
    fused = np.flatnonzero(merged.follow >= 0)
    dead = _only_forwarded(program, place, fused)
    columns: Columns = {c: getattr(program, c).astype(np.int64) for c in INSTRUCTION_COLUMNS}
    reduces = program.opcode[fused] == Opcode.RECV_REDUCE_COPY
    columns["opcode"][fused] = np.where(
        reduces, np.where(dead, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND), Opcode.RECV_COPY_SEND
    )
    for c in ("dst_buffer", "dst_offset"):
        columns[c][fused[reduces & dead]] = 0
    blocks, owner = join_blocks(program, merged.host)
    blocks["channel"] = np.zeros(len(blocks["block_rank"]), dtype=np.int64)
    connected = (program.send_peer >= 0) | (program.recv_peer >= 0)
    np.maximum.at(blocks["channel"], owner[connected], pairs.channel[connected])
    absorbed = np.zeros(program.num_instructions, dtype=bool)
    absorbed[merged.follow[fused]] = True
    rows = np.flatnonzero(~absorbed)
    new_block = owner[program.block]
    rows = rows[np.lexsort((place[rows], new_block[rows]))]
    result = take(program, rows, new_block[rows], blocks, **{c: values[rows] for c, values in columns.items()})
    members: list[list[int]] = [[] for _ in blocks["block_rank"]]
    for b, k in enumerate(owner.tolist()):
        members[k].append(b)
    return synchronize(result, place[rows]), members


def _only_forwarded(program: Program, place: Array, fused: Array) -> Array:
    """Return which fused receives store data that only their own send reads, in scratch or overwritten later."""
    if not len(fused):
        return np.zeros(0, dtype=bool)
    instruction, location, write, address = accesses(program)
    by_time = np.lexsort((write, place[instruction], location))
    instruction, location, write, address = (a[by_time] for a in (instruction, location, write, address))
    where = layout(program, inplace=True)
    rank = program.rank[instruction]
    in_scratch = address >= where.base[rank, Buffer.SCRATCH]
    n = len(instruction)
    # after the store comes the read of its send; then another store, or no further access
    at = np.arange(n)
    follows = np.concatenate([location[1:] == location[:-1], [False]])
    second = np.minimum(at + 2, n - 1)
    more = np.concatenate([follows[1:], [False]]) & follows
    overwritten = more & write[second] & (instruction[second] != instruction[np.minimum(at + 1, n - 1)])
    unread = follows & (overwritten | (~more & in_scratch))
    live = np.zeros(program.num_instructions, dtype=bool)
    live[instruction[write & ~unread]] = True
    return ~live[fused]
