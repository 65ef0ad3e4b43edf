"""Receiving and sending on in one instruction, by threadblocks that do both."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.layout import layout
from collc.ir.machine import Deadlock, completes_with, execute
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.progress import progress

from .base import Pass, remark
from .hazards import accesses, conflicts, synchronize
from .limits import check_limits, steps
from .merging import Merged, merge
from .pairing import Pairs, flows, pair_blocks
from .timing import Times, duration, play
from .unfuse import Unfuse

__all__ = ["STRATEGIES", "Fuse"]

Array = np.ndarray[Any, np.dtype[Any]]

#: how blocks may be paired, the one with most threadblocks first
STRATEGIES = ("apart", "flow", "few")

#: bytes of a call where the collective gives none, and what a link moves while one message starts
_SIZE, _START = 1 << 24, 1 << 16
#: a strategy with fewer threadblocks is taken where it costs at most this part more
_WORTH = 8
_ROUNDS = 4


@attrs.frozen(eq=False)
class _Made:
    """A program, and which blocks each of its blocks consists of."""

    program: Program
    members: tuple[list[int], ...]


@attrs.frozen
class Fuse(Pass):
    """Let one threadblock receive and send, and fuse a receive with the send of what it stored.

    recv + send becomes recv-copy-send, recv-reduce-copy + send becomes recv-reduce-copy-send, or recv-reduce-send where
    nobody reads what would be stored. ``strategy`` says which blocks become one: ``apart`` none; ``flow`` a receiving
    and a sending one where the second sends on what the first stores, those first that pass on most; ``few`` besides
    all that are left, with the same peer where that can be. ``auto`` builds all three and takes the one of least time
    by the model of :mod:`.timing`, or one with fewer threadblocks where that costs at most an eighth more: they are
    taken from computation.

    Blocks that become one share a channel, so what flows through a rank stays on it; channels are numbered anew.
    Fusing also helps runtimes without ``fused`` instructions: what need not be stored is found here, and `unfuse`,
    which must follow, makes less of it. FIFOs of ``fifo_depth`` messages (unless given: 2) are enough for every split
    of messages in chunks: where a union would deadlock it is not made, where a fusion would, its parts stay apart.
    """

    name: ClassVar[str] = "fuse"
    summary: ClassVar[str] = "receive and send on in one instruction and one threadblock"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    strategy: Literal["auto", "apart", "flow", "few"] = attrs.field(
        default="auto", metadata={"help": "which threadblocks become one: auto, apart, flow, few"}
    )
    fused: bool = attrs.field(
        default=True, metadata={"help": "whether the runtime has fused instructions; else `unfuse` is to follow"}
    )
    fifo_depth: int | None = attrs.field(default=None, metadata={"help": "messages a connection holds; 2 unless given"})
    max_steps: int | None = attrs.field(default=None, metadata={"help": "the most steps of a threadblock"})
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels"})
    size: int | None = attrs.field(
        default=None, metadata={"help": "bytes for which times are compared (default: the collective's, or 16 MiB)"}
    )

    def run(self, ir: Program) -> Program:
        check_limits(self)
        if self.strategy == "apart" or not ir.num_instructions:
            return ir
        apart = execute(ir, self._depth)
        finished = execute(ir).finished if apart.deadlock else apart.finished
        times = play(ir, _START, self._unit(ir), finished)
        flow = _worthwhile(ir, times, *flows(ir, times.place))
        if self.strategy != "auto":
            made = self._build(ir, times.place, flow, self._pairs(ir, flow, self.strategy))
            return made.program if made else ir
        candidates = {} if apart.deadlock else {"apart": _Made(ir, ())}
        before = np.arange(ir.num_blocks)
        for strategy in STRATEGIES[1:]:
            pairs = self._pairs(ir, flow, strategy)
            if (pairs.host == before).all() or not _gains(ir, flow, pairs):
                continue
            before = pairs.host
            made = self._build(ir, times.place, flow, pairs)
            if made is not None:
                candidates[strategy] = made
        return self._best(candidates) if candidates else ir

    def _best(self, made: dict[str, _Made]) -> Program:
        """Return the program of least time, or one with fewer threadblocks and little more."""
        times = {name: self._time(m) for name, m in made.items()}
        blocks = {name: int(np.diff(m.program.rank_blocks).max(initial=0)) for name, m in made.items()}
        least = min(times.values())
        fits = [name for name, t in times.items() if t * _WORTH <= least * (_WORTH + 1)]
        chosen = min(fits, key=lambda name: (blocks[name], times[name], STRATEGIES.index(name)))
        listed = ", ".join(
            f"{name} (threadblocks {blocks[name]}, time {times[name] / max(least, 1):.2f})" for name in made
        )
        remark(f"fuse: strategy {chosen} of: {listed}")
        return made[chosen].program

    def _time(self, made: _Made) -> int:
        """Return how long the runtime takes: without fused instructions where it has none."""
        program, unit = made.program, self._unit(made.program)
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

    def _build(self, ir: Program, order: Array, flow: tuple[Array, Array], pairs: Pairs) -> _Made | None:
        """Return the program with blocks joined, or nothing where limits or FIFOs do not allow it."""
        for turn in range(_ROUNDS):
            progress("joining threadblocks", turn)
            if self.max_channels is not None and int(pairs.channel.max(initial=0)) >= self.max_channels:
                return None
            merged = merge(ir, order, _follow(ir, flow, pairs), pairs.host, self._depth)
            if merged is None:
                return None
            program, members = assemble(ir, merged, pairs)
            stuck = None
            if not completes_with(program, self._depth, split=1):
                stuck = execute(program, self._depth, split=1).deadlock
            bad = [b for b in self._unfit(program, stuck) if len(members[b]) > 1]
            if not bad:
                return None if stuck else _Made(program, tuple(members))
            host = pairs.host.copy()
            for b in bad:
                host[members[b]] = members[b]
            pairs = attrs.evolve(pairs, host=host)
        return None

    def _unfit(self, program: Program, stuck: Deadlock | None) -> list[int]:
        """Return the blocks that must not be unions: those with too many steps, those that wait in a deadlock."""
        bad = [] if self.max_steps is None else np.flatnonzero(steps(program, self.fused) > self.max_steps).tolist()
        if stuck is not None:
            bad += [int(program.block[w.instruction]) for w in stuck.cycle or stuck.waits]
        return sorted(set(bad))


def _gains(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> bool:
    """Return whether pairs leave every rank fewer threadblocks, or fuse a good part of the program."""
    kept = np.bincount(program.block_rank[pairs.host == np.arange(len(pairs.host))], minlength=program.num_ranks)
    fewer = int(kept.max(initial=0)) < int(np.diff(program.rank_blocks).max(initial=0))
    fused = int((_follow(program, flow, pairs) >= 0).sum())
    return fewer or fused * _WORTH > program.num_instructions


def _worthwhile(program: Program, times: Times, i: Array, j: Array) -> tuple[Array, Array]:
    """Return the pairs (receive, send) whose fusion delays nobody.

    Neither has the receive to wait for its send, nor has any other who wants its data to wait until they are sent.
    """
    soon = times.begin[j] <= times.end[i]
    i, j = i[soon], j[soon]
    later, earlier = conflicts(program, times.place)
    mine = np.full(program.num_instructions, -1, dtype=np.int64)
    mine[i] = j
    other = (mine[earlier] >= 0) & (mine[earlier] != later) & (later != earlier)
    hurried = times.begin[later] < times.end[mine[earlier]]
    delayed = np.zeros(program.num_instructions, dtype=bool)
    delayed[earlier[other & hurried]] = True
    return i[~delayed[i]], j[~delayed[i]]


def _follow(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> Array:
    """Return for each receive the first send of its union that sends on what it stores."""
    follow = np.full(program.num_instructions, -1, dtype=np.int64)
    i, j = flow
    together = pairs.host[program.block[i]] == pairs.host[program.block[j]]
    i, j = i[together][::-1], j[together][::-1]  # the first is written last
    follow[i] = j
    return follow


def assemble(program: Program, merged: Merged, pairs: Pairs) -> tuple[Program, list[list[int]]]:
    """Return the program as it was merged, with fresh waits, and the blocks that each of its blocks consists of."""
    place = np.empty(program.num_instructions, dtype=np.int64)
    place[merged.order] = np.arange(len(merged.order))
    fused = np.flatnonzero(merged.follow >= 0)
    dead = _unread(program, place, fused)
    columns: dict[str, Any] = {c: getattr(program, c).astype(np.int64) for c in INSTRUCTION_COLUMNS}
    reduces = program.opcode[fused] == Opcode.RECV_REDUCE_COPY
    columns["opcode"][fused] = np.where(
        reduces, np.where(dead, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND), Opcode.RECV_COPY_SEND
    )
    for c in ("dst_buffer", "dst_offset"):
        columns[c][fused[reduces & dead]] = 0
    kept = np.unique(merged.host)
    owner = np.searchsorted(kept, merged.host)
    blocks: dict[str, Any] = {"block_rank": program.block_rank[kept]}
    for name, values in (("send_peer", program.send_peer), ("recv_peer", program.recv_peer)):
        blocks[name] = np.full(len(kept), -1, dtype=np.int64)
        np.maximum.at(blocks[name], owner, values.astype(np.int64))
    blocks["channel"] = np.zeros(len(kept), dtype=np.int64)
    connected = (program.send_peer >= 0) | (program.recv_peer >= 0)
    np.maximum.at(blocks["channel"], owner[connected], pairs.channel[connected])
    gone = np.zeros(program.num_instructions, dtype=bool)
    gone[merged.follow[fused]] = True
    rows = np.flatnonzero(~gone)
    mine = owner[program.block]
    rows = rows[np.lexsort((place[rows], mine[rows]))]
    chosen: dict[str, Any] = {c: values[rows] for c, values in columns.items()}
    made = attrs.evolve(
        program, block_start=np.searchsorted(mine[rows], np.arange(len(kept) + 1)),
        dep_start=np.zeros(len(rows) + 1, dtype=np.int64), deps=[],
        **chosen, **blocks,
    )  # fmt: skip
    members: list[list[int]] = [[] for _ in kept]
    for b, k in enumerate(owner.tolist()):
        members[k].append(b)
    return synchronize(made, place[rows]), members


def _unread(program: Program, place: Array, fused: Array) -> Array:
    """Return which fused receives store what nobody but their own send reads: it is overwritten, or left in scratch."""
    if not len(fused):
        return np.zeros(0, dtype=bool)
    instruction, location, write, address = accesses(program)
    by_time = np.lexsort((write, place[instruction], location))
    instruction, location, write, address = (a[by_time] for a in (instruction, location, write, address))
    where = layout(program, inplace=True)
    rank = program.block_rank[program.block[instruction]]
    in_scratch = address >= where.base[rank, Buffer.SCRATCH]
    n = len(instruction)
    # after the store comes the read of its send; then another store, or nothing more
    at = np.arange(n)
    follows = np.concatenate([location[1:] == location[:-1], [False]])
    second = np.minimum(at + 2, n - 1)
    more = np.concatenate([follows[1:], [False]]) & follows
    overwritten = more & write[second] & (instruction[second] != instruction[np.minimum(at + 1, n - 1)])
    unread = follows & (overwritten | (~more & in_scratch))
    live = np.zeros(program.num_instructions, dtype=bool)
    live[instruction[write & ~unread]] = True
    return ~live[fused]
