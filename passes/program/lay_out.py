"""List the program of a template for all ranks, for passes and files that need them."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.frozen import frozen
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.machine import completes_with
from collc.ir.program import Program
from collc.ir.ragged import inverse, owners
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.clocks import without_implied
from ..analysis.hazards import sequential_order, synchronize
from ..base import Pass
from ..ranges import AT_LEAST_1
from .limits import steps
from .orbit_messages import message_order
from .scratch import ReuseScratch
from .threadblocks import BalanceThreadblocks
from .unfuse import unfused

__all__ = ["LayOut"]


@frozen
class LayOut(Pass):
    """List the ranks of a template: a message becomes an instruction for each run of adjacent chunks.

    Runs have at most ``max-count`` chunks, and depend only on what accesses their own chunks. If a block has more than
    ``max-steps`` steps, or a rank too many threadblocks, the runs of all ranks are distributed as by
    ``balance-threadblocks``: those of pipelined schedules, whose messages a template leaves on one channel, and others
    whose dependencies are more than those of whole messages, which were counted. If `unfuse` worked on the template,
    each run's fused instructions are replaced, and what blocks receive aside shares scratch as by `reuse-scratch`. A
    program of all ranks does not change.
    """

    name: ClassVar[str] = "lay-out"
    summary: ClassVar[str] = "list all ranks of the program of one rank and a group"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

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
    max_elements: int | None = attrs.field(
        default=None,
        metadata={
            "help": "the most elements of a file that a rank reads: one, all ranks, its threadblocks and its steps",
            "range": AT_LEAST_1,
        },
    )
    last: bool = attrs.field(default=False, metadata={"help": "no pass follows that fuses instructions"})

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return True

    def run(self, ir: AnyProgram) -> Program:
        if isinstance(ir, Program):
            return ir
        self._require_room(ir)
        if ir.forwards:  # its dependencies are those of the template, pruned there
            return _without_fused(laid_out(ir)) if ir.unfused else laid_out(ir)
        divides = self._divides(ir)
        found, order = laid_out(ir, self.max_count, by_place=divides), _order(ir, self.max_count)
        if ir.unfused and not divides and self._fits(plain := without_implied(unfused(found, order))):
            return _packed(plain)
        found = without_implied(synchronize(found, order))
        if not ir.unfused and not divides and self._fits(found):
            return found
        fit = BalanceThreadblocks(
            1, self.max_threadblocks, self.max_steps, self.max_channels, self.max_count, self.fifo_depth, self.fused
        )
        fitted = fit.run(found)
        assert isinstance(fitted, Program), "a program of all ranks stays one"
        return _without_fused(fitted) if ir.unfused else without_implied(fitted)

    def _divides(self, ir: SymmetricProgram) -> bool:
        """Return whether a block has more runs than steps, so that its messages are distributed again."""
        if self.max_steps is None:
            return False
        runs = run_counts(ir, self.max_count)
        begin = ir.batched.block_start[:-1][np.diff(ir.batched.block_start.astype(np.int64)) > 0]
        return int(np.add.reduceat(runs, begin, axis=1).max(initial=0)) > self.max_steps

    def _require_room(self, ir: SymmetricProgram) -> None:
        """Raise C0509 if the least that all ranks need exceeds a limit.

        Each run is a step, unless `fuse` comes later: then a step may receive one and send another. Where it has joined
        blocks, each message that a run waits for is a step too. A block sends over one connection.
        """
        runs, batched = run_counts(ir, self.max_count), ir.batched
        if self.max_elements is not None:
            least = _least_steps(ir, runs, self.last) + 1 + ir.num_ranks + np.diff(batched.rank_blocks) // 2
            self._require("elements", least, self.max_elements)
        if self.max_steps is not None and self.max_threadblocks is not None:
            sent = np.zeros((len(runs), ir.seed.num_blocks), dtype=np.int64)
            np.add.at(sent.T, batched.block[batched.sends], runs[:, batched.sends].T)
            needed = -(-sent.max(axis=0, initial=0) // self.max_steps)
            found = np.bincount(ir.seed.block_rank, needed, ir.width).astype(np.int64)
            self._require("threadblocks", found, self.max_threadblocks)

    def _require(self, what: str, found: Array, most: int) -> None:
        """Raise C0509 if a rank of the template needs more than ``most``."""
        rank = int(np.argmax(found))
        if int(found[rank]) > most:
            raise error(
                "C0509", f"rank {rank} would need at least {int(found[rank])} {what}; the limit is {most}",
                hint="cut shards in fewer chunks (`discretize{max-chunks=N}`), or use a target with larger limits",
                exit_status=3, about=(Subject.SCHEDULER, Subject.TARGET), excess=Excess(what, int(found[rank]), most),
            )  # fmt: skip

    def _fits(self, program: Program) -> bool:
        """Return whether no threadblock is too long, no rank has too many, and joined ones need no longer FIFOs."""
        found = np.max(steps(program, self.fused), initial=0), np.max(np.diff(program.rank_blocks), initial=0)
        limits = self.max_steps, self.max_threadblocks
        if not all(most is None or int(n) <= most for n, most in zip(found, limits, strict=True)):
            return False
        joined = (program.send_peer >= 0) & (program.recv_peer >= 0)
        return self.fifo_depth is None or not joined.any() or completes_with(program, self.fifo_depth, 1)


def _without_fused(program: Program) -> Program:
    """Return a program of all ranks without fused instructions."""
    return _packed(without_implied(unfused(program, sequential_order(program))))


def _packed(program: Program) -> Program:
    packed = ReuseScratch().run(program)
    assert isinstance(packed, Program), "a program of all ranks stays one"
    return packed


def _least_steps(program: SymmetricProgram, runs: Array, last: bool) -> Array:
    """Return the least steps of the template's ranks: the most of their images.

    ``last``: if no runs are fused.
    """
    batched, found = program.batched, []
    links = program.links
    if ((links.outward >= 0) & (links.inward >= 0)).any():
        each = [np.maximum(runs, without_implied(batched).num_dependencies)]
    elif last:
        each = [runs]
    else:
        each = [runs * batched.sends, runs * batched.receives]
    for steps_of in each:
        total = np.zeros((len(runs), program.width), dtype=np.int64)
        np.add.at(total.T, batched.rank, steps_of.T)
        found.append(total.max(axis=0, initial=0))
    least: Array = np.max(found, axis=0)
    return least


def _order(program: SymmetricProgram, most: int | None) -> Array:
    """Return the position of each instruction of all ranks in one execution: all images of a message at a time."""
    counts = run_counts(program, most)
    message = owners(counts.ravel()) % counts.shape[1]
    return inverse(lexsort((np.arange(len(message)), message_order(program)[message])))
