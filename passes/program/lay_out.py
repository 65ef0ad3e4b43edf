"""List the program of a template for all ranks, for passes and files that need them."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.program import Program
from collc.ir.ragged import inverse, owners
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.clocks import without_implied
from ..analysis.hazards import synchronize
from ..base import Pass
from ..ranges import AT_LEAST_1
from .limits import steps
from .orbit_messages import message_order
from .threadblocks import BalanceThreadblocks

__all__ = ["LayOut"]


@frozen
class LayOut(Pass):
    """List the ranks of a template: a message becomes an instruction for each run of adjacent chunks.

    Runs have at most ``max-count`` chunks, and depend only on what accesses their own chunks. The blocks of a template
    were counted with the dependencies of whole messages. If a block has more than ``max-steps`` steps with those of its
    runs, the messages of all ranks are distributed again, as by ``balance-threadblocks``. A program of all ranks does
    not change.
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

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return True

    def run(self, ir: AnyProgram) -> Program:
        if isinstance(ir, Program):
            return ir
        found = laid_out(ir, self.max_count)
        found = without_implied(synchronize(found, _order(ir, self.max_count)))
        if self.max_steps is None or int(np.max(steps(found, self.fused), initial=0)) <= self.max_steps:
            return found
        fit = BalanceThreadblocks(
            1, self.max_threadblocks, self.max_steps, self.max_channels, self.max_count, self.fifo_depth, self.fused
        )
        fitted = fit.run(found)
        assert isinstance(fitted, Program), "a program of all ranks stays one"
        return without_implied(fitted)


def _order(program: SymmetricProgram, most: int | None) -> Array:
    """Return the position of each instruction of all ranks in one execution: all images of a message at a time."""
    counts = run_counts(program, most)
    message = owners(counts.ravel()) % counts.shape[1]
    return inverse(lexsort((np.arange(len(message)), message_order(program)[message])))
