"""Giving connections channels: few, and what flows through a rank stays on one."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.program import Program

from .base import Pass
from .hazards import sequential_order
from .limits import check_limits
from .pairing import flow_channels, flows

__all__ = ["AssignChannels"]


@attrs.frozen
class AssignChannels(Pass):
    """Number channels anew: a connection and the one that its data flow on to share a channel where that can be.

    Connections of one threadblock must share one; parallel connections of two ranks cannot, and no rank sends to, or
    receives from, more than 31 ranks on one channel. Channels are the lowest free, so there are few. Where a rank sends
    on to several, or merges what comes from several, the two that share most data go together. Raises C0509 where
    ``max-channels`` are too few.
    """

    name: ClassVar[str] = "assign-channels"
    summary: ClassVar[str] = "give connections few channels, on which what flows through a rank stays"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels"})

    def run(self, ir: Program) -> Program:
        check_limits(self)
        if not ir.num_instructions:
            return ir
        channel = flow_channels(ir, flows(ir, sequential_order(ir)))
        needed = int(channel.max(initial=0)) + 1
        if self.max_channels is not None and needed > self.max_channels:
            raise error(
                "C0509", f"the messages between two ranks need {needed} channels; the limit is {self.max_channels}",
                hint="run fewer instances side by side, or use a target with larger limits", exit_status=3,
            )  # fmt: skip
        return attrs.evolve(ir, channel=channel)
