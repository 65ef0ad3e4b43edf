"""Distribute messages over threadblocks and channels within a runtime's limits."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.editing import join_blocks
from collc.ir.frozen import frozen
from collc.ir.machine import connections, execute
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.ragged import inverse, nth_in_group, starts

from ..analysis.arrange import reblock, split_counts
from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass
from ..ranges import AT_LEAST_1
from .limits import steps

__all__ = ["BalanceThreadblocks"]

_PER_CHANNEL = 31  # blocks of a rank that may send (or receive) on one channel: the runtimes' 32 less a spare one
_ROUNDS = 16


@frozen
class BalanceThreadblocks(Pass):
    """Give every connection as many channels as its messages need, evenly by bytes, and every rank few enough blocks.

    A connection whose block would exceed ``max-steps`` gets more channels. Each message goes to the channel with the
    fewest bytes so far. Sending and receiving blocks are separate, which cannot deadlock at any FIFO depth. Only if a
    rank would exceed ``max-threadblocks``, a sending and a receiving block of one channel share a threadblock: the one
    with most chunks joins the one with fewest. Raises C0509 if the limits cannot be met.

    A schedule that chooses channels, threadblocks or scratch keeps its threadblocks.
    """

    name: ClassVar[str] = "balance-threadblocks"
    summary: ClassVar[str] = (
        "distribute messages over threadblocks and channels, evenly by bytes, within a runtime's limits"
    )
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    channels: int = attrs.field(
        default=1, metadata={"help": "minimum number of channels per connection", "range": AT_LEAST_1}
    )
    max_threadblocks: int | None = attrs.field(
        default=None, metadata={"help": "the most threadblocks of a rank", "range": AT_LEAST_1}
    )
    max_steps: int | None = attrs.field(
        default=None, metadata={"help": "the most steps of a threadblock", "range": AT_LEAST_1}
    )
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels", "range": AT_LEAST_1})
    max_count: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks of one message", "range": AT_LEAST_1}
    )
    fifo_depth: int | None = attrs.field(
        default=None, metadata={"help": "messages a connection holds (for shared blocks)", "range": AT_LEAST_1}
    )
    fused: bool = attrs.field(default=True, metadata={"help": "whether the runtime has fused instructions"})

    def run(self, ir: Program) -> Program:
        if (ir.sends & ir.receives).any():
            message = "balance-threadblocks does not take fused receive-and-send instructions"
            raise error("C0510", message, hint="put `balance-threadblocks` before `fuse`, or `unfuse` between them")
        if ir.placed:
            return self._kept(ir)
        order = sequential_order(ir)
        if self.max_count is not None:
            ir, order = split_counts(ir, order, self.max_count)
        layout = _Layout.of(ir, order)
        num_channels = np.full(len(layout.links), max(self.channels, 1), dtype=np.int64)
        for turn in range(_ROUNDS):
            progress("placing messages, round", turn + 1)
            program, link_of_block = self._arrange(ir, order, layout, num_channels)
            over = self._too_long(program)
            if not over.any():
                break
            too_long = np.flatnonzero(over).tolist()
            num_channels = self._more_channels(program, layout, num_channels, link_of_block, too_long)
        else:
            raise self._too_many_steps(program, int(np.flatnonzero(over)[0]))
        return self._fit_blocks(program)

    def _kept(self, ir: Program) -> Program:
        """Return a program whose author chose the threadblocks; raise C0509 if they exceed a limit."""
        if self.max_count is not None:
            ir = synchronize(*split_counts(ir, sequential_order(ir), self.max_count))
        over = self._too_long(ir)
        if over.any():
            raise self._too_many_steps(ir, int(np.flatnonzero(over)[0]))
        blocks = int(np.diff(ir.rank_blocks).max(initial=0))
        for what, found, most in (
            ("channels", ir.num_channels, self.max_channels), ("threadblocks of a rank", blocks, self.max_threadblocks),
        ):  # fmt: skip
            if most is not None and found > most:
                hint = "choose fewer in the schedule, or a target with larger limits"
                raise error(
                    "C0509", f"the schedule chooses {found} {what}; the limit is {most}", hint=hint, exit_status=3,
                    about=(Subject.SCHEDULER, Subject.TARGET), excess=Excess(what.split()[0], found, most),
                )  # fmt: skip
        return ir

    # ---- limits

    def _too_long(self, program: Program) -> Array:
        if self.max_steps is None:
            return np.zeros(program.num_blocks, dtype=bool)
        return steps(program, self.fused) > self.max_steps

    def _more_channels(
        self, program: Program, layout: _Layout, num_channels: Array, link_of_block: Array, blocks: list[int]
    ) -> Array:
        """Return more channels for the connections of blocks that are too long."""
        number, more = steps(program, self.fused), num_channels.copy()
        for block in blocks:
            link = link_of_block[block]
            if link < 0 or num_channels[link] >= layout.messages[link]:
                raise self._too_many_steps(program, block)
            # One more channel adds dependencies between blocks, so each round adds at least one.
            need = -(-int(number[block]) * int(num_channels[link]) // (self.max_steps or 1))
            need = min(max(need, int(num_channels[link]) + 1), int(layout.messages[link]))
            more[link] = max(more[link], need)
        return more

    def _too_many_steps(self, program: Program, block: int) -> Exception:
        number = int(steps(program, self.fused)[block])
        return error(
            "C0509",
            f"threadblock {int(program.block_id[block])} of rank {int(program.block_rank[block])} would have {number} "
            f"steps; the limit is {self.max_steps}",
            hint="cut shards in fewer chunks (`discretize{max-chunks=N}`), or use a target with larger limits",
            exit_status=3,
            excess=Excess("steps", number, self.max_steps or 0),
        )

    # ---- channels

    def _arrange(self, program: Program, order: Array, layout: _Layout, num_channels: Array) -> tuple[Program, Array]:
        """Build the blocks for a number of channels per connection; also return each block's connection (-1: none)."""
        channel = self._assign_channels(program, layout, num_channels)
        nth_channel = layout.spread(num_channels)
        rank = program.rank
        link = layout.link_of
        number = np.append(channel, 0)[np.where(link >= 0, layout.first_channel(num_channels) + nth_channel, -1)]
        peer = np.where(layout.is_send, layout.dst_of, layout.src_of)
        kind = np.where(link < 0, 2, np.where(layout.is_send, 0, 1))
        key = np.stack([rank, kind, np.where(link < 0, -1, peer), number, link])
        blocks, owner = np.unique(key, axis=1, return_inverse=True)
        columns = {
            "block_rank": blocks[0],
            "send_peer": np.where(blocks[1] == 0, blocks[2], -1),
            "recv_peer": np.where(blocks[1] == 1, blocks[2], -1),
            "channel": blocks[3],
        }
        return reblock(program, order, columns, owner.reshape(-1)), blocks[4]

    def _assign_channels(self, program: Program, layout: _Layout, num_channels: Array) -> Array:
        """Give every connection the lowest channels free at both ends: no channel twice between two ranks, and few
        blocks per rank and channel.
        """
        taken: set[tuple[int, int, int]] = set()
        sending: dict[tuple[int, int], int] = {}
        receiving: dict[tuple[int, int], int] = {}
        channels = np.empty(int(num_channels.sum()), dtype=np.int64)
        at = 0
        for (src, dst), count in zip(layout.links, num_channels.tolist(), strict=True):
            c = 0
            for _ in range(count):
                while (
                    (src, dst, c) in taken
                    or sending.get((src, c), 0) >= _PER_CHANNEL
                    or receiving.get((dst, c), 0) >= _PER_CHANNEL
                ):
                    c += 1
                taken.add((src, dst, c))
                sending[src, c] = sending.get((src, c), 0) + 1
                receiving[dst, c] = receiving.get((dst, c), 0) + 1
                channels[at] = c
                at += 1
        most = int(channels.max(initial=0)) + 1
        if self.max_channels is not None and most > self.max_channels:
            raise error(
                "C0509",
                f"the messages between two ranks would need {most} channels; the limit is {self.max_channels}",
                hint="cut shards in fewer chunks (`discretize{max-chunks=N}`), or use a target with larger limits",
                exit_status=3,
                excess=Excess("channels", most, self.max_channels),
            )
        return channels

    # ---- threadblocks

    def _fit_blocks(self, program: Program) -> Program:
        count = np.diff(program.rank_blocks)
        if self.max_threadblocks is None or int(count.max(initial=0)) <= self.max_threadblocks:
            return program
        depth = self.fifo_depth or 1
        if int(program.count.max(initial=0)) > depth:
            # A shared block must not fill a FIFO before it receives.
            program = synchronize(*split_counts(program, sequential_order(program), depth))
        order = inverse(execute(program, fifo_depth=1).finished)
        host = _hosts(program, self.max_threadblocks)
        blocks, owner = join_blocks(program, host)
        shared = reblock(program, order, blocks, owner[program.block])
        over = self._too_long(shared)
        if over.any():
            raise self._too_many_steps(shared, int(np.flatnonzero(over)[0]))
        stuck = execute(shared, fifo_depth=self.fifo_depth, split=1).deadlock
        if stuck:
            raise error(
                "C0509",
                f"ranks need {int(count.max())} threadblocks, the limit is {self.max_threadblocks}; if sends and "
                "receives share threadblocks, the program deadlocks",
                notes=[stuck.describe(shared)],
                hint="use a target with larger limits, or a topology with fewer links per rank",
                exit_status=3,
                excess=Excess("threadblocks", int(count.max()), self.max_threadblocks),
            )
        return shared


def _hosts(program: Program, most: int) -> Array:
    """Return for each block the block that it joins (mostly itself), so that every rank has at most ``most``."""
    host = np.arange(program.num_blocks)
    load = np.zeros(program.num_blocks, dtype=np.int64)
    np.add.at(load, program.block, program.count.astype(np.int64))
    for rank in range(program.num_ranks):
        blocks = range(int(program.rank_blocks[rank]), int(program.rank_blocks[rank + 1]))
        surplus = len(blocks) - most
        if surplus > 0:
            _pair_blocks(program, load, list(blocks), surplus, host, rank, most)
    return host


def _pair_blocks(
    program: Program, load: Array, blocks: list[int], surplus: int, host: Array, rank: int, most: int
) -> None:
    """Pair receiving blocks, most chunks first, with sending blocks of their channel, fewest chunks first; local copies
    join any block.
    """
    sends: dict[int, list[int]] = {}
    receives: list[int] = []
    local: list[int] = []
    for block in blocks:
        if program.send_peer[block] >= 0:
            sends.setdefault(int(program.channel[block]), []).append(block)
        else:
            (receives if program.recv_peer[block] >= 0 else local).append(block)
    for group in sends.values():
        group.sort(key=lambda b: (-int(load[b]), b))  # popped from the end: fewest chunks first
    for block in sorted(receives, key=lambda b: (-int(load[b]), b)):
        partners = sends.get(int(program.channel[block]))
        if surplus and partners:
            host[block] = partners.pop()
            surplus -= 1
    for block in local:
        others = [b for b in blocks if b != block and host[b] == b]
        if surplus and others:
            host[block] = min(others, key=lambda b: (int(load[b]), b))
            surplus -= 1
    if surplus:
        raise error(
            "C0509",
            f"rank {rank} needs {most + surplus} threadblocks even when sends and receives share them; "
            f"the limit is {most}",
            hint="use a target with larger limits, or a topology with fewer links per rank",
            exit_status=3,
            excess=Excess("threadblocks", most + surplus, most),
        )


@frozen(eq=False)
class _Layout:
    """The connections of a program, and the connection of each instruction: one row per instruction.

    ``links`` are (src, dst) of each connection; ``link_of`` is the connection of each instruction (-1: local), ``nth``
    its number among the connection's messages, ``messages`` the number of messages of each connection.
    """

    links: list[tuple[int, int]]
    link_of: Array
    is_send: Array
    src_of: Array
    dst_of: Array
    nth: Array
    messages: Array
    count: Array

    @classmethod
    def of(cls, program: Program, order: Array) -> _Layout:
        conns = connections(program)
        is_send = program.sends
        is_receive = program.receives
        link_of = np.where(is_send, conns.outward[program.block], np.where(is_receive, conns.inward[program.block], -1))
        link_of = np.where(link_of < 0, _companions(program, np.where(is_receive, link_of, -1)), link_of)
        nth = _message_numbers(link_of, is_send, is_send | is_receive, order)
        messages = np.bincount(link_of[is_send], minlength=len(conns))
        src_of, dst_of = (np.append(c, -1)[link_of] for c in (conns.src, conns.dst))
        links = list(zip(conns.src.tolist(), conns.dst.tolist(), strict=True))
        return cls(links, link_of, is_send, src_of, dst_of, nth, messages, program.count.astype(np.int64))

    def first_channel(self, num_channels: Array) -> Array:
        """Return for each instruction the number of its connection's first channel."""
        return np.append(starts(num_channels)[:-1], 0)[self.link_of]

    def spread(self, num_channels: Array) -> Array:
        """Return which of its connection's channels each instruction uses: the one with the fewest bytes so far."""
        if (num_channels <= 1).all():
            return np.zeros(len(self.link_of), dtype=np.int64)
        chosen: dict[tuple[int, int], int] = {}
        load = [[0] * n for n in num_channels.tolist()]
        rows = np.flatnonzero(self.is_send)
        rows = rows[lexsort((self.nth[rows], self.link_of[rows]))]
        for i in rows.tolist():
            link = int(self.link_of[i])
            least = min(range(len(load[link])), key=load[link].__getitem__)
            load[link][least] += int(self.count[i])
            chosen[link, int(self.nth[i])] = least
        pairs = zip(self.link_of.tolist(), self.nth.tolist(), strict=True)
        return np.array([chosen.get(pair, 0) for pair in pairs], dtype=np.int64)


def _companions(program: Program, link_of: Array) -> Array:
    """Keep the local instructions of a receiving block with the receive before them, if there is one.

    ``link_of`` is the connection of each receive, and -1 for all other instructions.
    """
    index = np.arange(len(link_of))
    start = program.block_start[program.block].astype(np.int64)
    known = np.maximum.accumulate(np.where(link_of >= 0, index, -1)) if len(index) else index
    return np.where(known >= start, link_of[known], -1)


def _message_numbers(link_of: Array, is_send: Array, is_message: Array, order: Array) -> Array:
    """Number the messages of each connection at both ends; companions take the number of their receive."""
    nth = np.zeros(len(link_of), dtype=np.int64)
    for side in (is_send, is_message & ~is_send):
        rows = np.flatnonzero(side)
        rows = rows[lexsort((order[rows], link_of[rows]))]
        group = link_of[rows]
        nth[rows] = nth_in_group(group)
    index = np.arange(len(link_of))
    last = np.maximum.accumulate(np.where(is_message & ~is_send, index, 0)) if len(index) else index
    return np.where((link_of >= 0) & ~is_message, nth[last], nth)
