"""Distribute messages over threadblocks and channels within a runtime's limits."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.editing import join_blocks
from collc.ir.frozen import frozen
from collc.ir.machine import execute
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.ragged import inverse, ranges, starts
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.arrange import Ordered, Rearrangement, reblock, split_counts
from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass
from ..ranges import AT_LEAST_1
from .limits import steps, steps_of
from .orbit_chains import along_chains
from .orbit_channels import Room, spread_over_channels
from .spreading import Blocks, Layout, free_channels

__all__ = ["BalanceThreadblocks"]

_ROUNDS = 16


@frozen
class BalanceThreadblocks(Pass):
    """Give every connection as many channels as its messages need, evenly by bytes, and every rank few enough blocks.

    A connection whose block would exceed ``max-steps`` gets more channels. Each message goes to the channel with the
    fewest bytes so far. Sending and receiving blocks are separate, which cannot deadlock at any FIFO depth. Only if a
    rank would exceed ``max-threadblocks``, a sending and a receiving block of one channel share a threadblock: the one
    with most chunks joins the one with fewest. Raises C0509 if the limits cannot be met.

    A schedule that chooses channels, threadblocks or scratch keeps its threadblocks. Of a template whole messages go to
    channels, if they fit on every rank. With ``runs``, they stay on one channel, and `lay-out` distributes their runs
    on each rank: pipelined schedules have many short messages.
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
    runs: bool = attrs.field(
        default=False, metadata={"help": "leave a template's messages to `lay-out`, which distributes their runs"}
    )

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return self.runs or self._by_orbits(ir) is not None

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            return ir if self.runs and ir.width == 1 else self._by_orbits(ir) or ir
        if (ir.sends & ir.receives).any():
            message = "balance-threadblocks does not take fused receive-and-send instructions"
            raise error("C0510", message, hint="put `balance-threadblocks` before `fuse`, or `unfuse` between them")
        if ir.placed:
            return self._kept(ir)
        order = sequential_order(ir)
        if self.max_count is not None:
            ir, order = split_counts(ir, order, self.max_count)
        return self._fit_blocks(self._spread(ir, order))

    def _by_orbits(self, ir: SymmetricProgram) -> SymmetricProgram | None:
        """Return a template with its messages on channels; None if they do not fit.

        They may fit only if `fuse` joins the blocks that forward data; otherwise `lay-out` distributes them again.
        """
        most = self.max_threadblocks if ir.width == 1 else None  # `fuse` joins those of boxes
        room = Room(self.channels, self.max_steps, self.max_channels, most, self.max_count, self.fused)
        if room not in ir.found:
            ir.found[room] = spread_over_channels(ir, room) or along_chains(ir, room)
        found: SymmetricProgram | None = ir.found[room]
        return found

    def _spread(self, ir: Program, order: Array) -> Program:
        """Return the program with as many channels as ``max-steps`` needs."""
        layout, moves = Layout.of(ir, order), Rearrangement.of(ir, order)
        num_channels = np.full(len(layout.messages), max(self.channels, 1), dtype=np.int64)
        whole = here = _Changing(layout, moves, ir.opcode, np.arange(len(layout.messages)))
        for turn in range(_ROUNDS):
            progress("placing messages, round", turn + 1)
            channels = self._channels(layout, num_channels)
            blocks, dependencies = here.arranged(num_channels, channels)
            length = here.steps(blocks, dependencies, self.fused)
            over = np.flatnonzero(self._is_too_long(length))
            if not len(over):
                if here is not whole:
                    blocks, dependencies = whole.arranged(num_channels, channels)
                return moves.moved(blocks.columns, blocks.owner, dependencies)
            more = self._more_channels(layout, num_channels, blocks, length, over.tolist())
            here, num_channels = whole.changed(more != num_channels, ir.num_ranks), more
        raise self._too_many_steps(blocks.columns["block_rank"], int(over[0]), length)

    def _kept(self, ir: Program) -> Program:
        """Return a program whose author chose the threadblocks; raise C0509 if they exceed a limit."""
        if self.max_count is not None:
            ir = synchronize(*split_counts(ir, sequential_order(ir), self.max_count))
        self._require_short(ir)
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

    def _is_too_long(self, length: Array) -> Array:
        return np.zeros(len(length), dtype=bool) if self.max_steps is None else length > self.max_steps

    def _require_short(self, program: Program) -> None:
        """Raise C0509 if a block has too many steps."""
        length = steps(program, self.fused)
        over = np.flatnonzero(self._is_too_long(length))
        if len(over):
            raise self._too_many_steps(program.block_rank, int(over[0]), length)

    def _require_few_instructions(self, program: Program, host: Array, depth: int) -> None:
        """Raise C0509 if a shared block has too many steps without those of dependencies.

        Its messages are cut at ``depth`` chunks.
        """
        _, owner = join_blocks(program, host)
        length = np.zeros(int(owner.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(length, owner[program.block], -(-program.count.astype(np.int64) // depth))
        over = np.flatnonzero(self._is_too_long(length))
        if len(over):
            rank = np.zeros(len(length), dtype=np.int64)
            rank[owner] = program.block_rank
            raise self._too_many_steps(rank, int(over[0]), length, "at least ")

    def _more_channels(
        self, layout: Layout, num_channels: Array, blocks: Blocks, length: Array, over: list[int]
    ) -> Array:
        """Return more channels for the connections of blocks that are too long."""
        more = num_channels.copy()
        for block in over:
            link = int(blocks.link[block])
            if link < 0 or num_channels[link] >= layout.messages[link]:
                raise self._too_many_steps(blocks.columns["block_rank"], block, length)
            # One more channel adds dependencies between blocks, so each round adds at least one.
            need = -(-int(length[block]) * int(num_channels[link]) // (self.max_steps or 1))
            need = min(max(need, int(num_channels[link]) + 1), int(layout.messages[link]))
            more[link] = max(more[link], need)
        return more

    def _too_many_steps(self, block_rank: Array, block: int, length: Array, least: str = "") -> Exception:
        number, rank = int(length[block]), int(block_rank[block])
        return error(
            "C0509",
            f"threadblock {block - int(np.searchsorted(block_rank, rank))} of rank {rank} would have {least}{number} "
            f"steps; the limit is {self.max_steps}",
            hint="cut shards in fewer chunks (`discretize{max-chunks=N}`), or use a target with larger limits",
            exit_status=3,
            excess=Excess("steps", number, self.max_steps or 0),
        )

    def _channels(self, layout: Layout, num_channels: Array) -> Array:
        """Return the channels of all connections, one connection after the other; raise C0509 if they are too many."""
        channels = free_channels(layout.src, layout.dst, num_channels)
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
        host = _hosts(program, self.max_threadblocks)
        self._require_few_instructions(program, host, depth)
        if int(program.count.max(initial=0)) > depth:
            # A shared block must not fill a FIFO before it receives.
            program = synchronize(*split_counts(program, sequential_order(program), depth))
        order = inverse(execute(program, fifo_depth=1).finished)
        blocks, owner = join_blocks(program, host)
        shared = reblock(program, order, blocks, owner[program.block])
        self._require_short(shared)
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


@frozen(eq=False)
class _Changing:
    """The instructions of some ranks, all whose blocks a round can change, with the numbers of their connections."""

    layout: Layout
    moves: Ordered
    opcode: Array
    links: Array

    def changed(self, links: Array, ranks: int) -> _Changing:
        """Return what other channels of some connections change: the ranks at their ends; all, if those are most."""
        there = np.zeros(ranks, dtype=bool)
        there[self.layout.src[links]] = there[self.layout.dst[links]] = True
        if 2 * np.count_nonzero(there) > ranks:
            return self
        layout, links, rows = self.layout.part(there)
        return _Changing(layout, self.moves.part(rows), self.opcode[rows], links)

    def arranged(self, num_channels: Array, channels: Array) -> tuple[Blocks, tuple[Array, Array]]:
        """Return the blocks of these instructions and their dependencies; channels are those of all connections."""
        number = num_channels[self.links]
        here = channels[ranges(starts(num_channels)[self.links], number)]
        blocks = self.layout.blocks(number, here)
        named = attrs.evolve(blocks, link=np.append(self.links, -1)[blocks.link])
        return named, self.moves.dependencies(blocks.owner)

    def steps(self, blocks: Blocks, dependencies: tuple[Array, Array], fused: bool) -> Array:
        """Return the steps of each block."""
        return steps_of(self.opcode, self.moves.num_dependencies(dependencies), blocks.owner, len(blocks), fused)


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
