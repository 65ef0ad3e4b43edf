"""Assign channels to connections: few channels, and data that a rank forwards stay on one channel."""

from __future__ import annotations

from typing import ClassVar

import attrs

from collc.ir.diagnostic import Excess, error
from collc.ir.program import Program

from ..analysis.hazards import conflicts, sequential_order
from ..base import Pass
from ..ranges import AT_LEAST_1
from .pairing import flow_channels, flows

__all__ = ["AssignChannels"]


@attrs.frozen
class AssignChannels(Pass):
    """Renumber channels: a connection shares a channel with the connection that forwards its data, if that is possible.

    Connections of one threadblock must share a channel. Parallel connections of two ranks cannot. No rank sends to, or
    receives from, more than 31 ranks on one channel. Each connection gets the lowest free channel, so channels are few.
    If a rank forwards to several ranks, or merges data from several, the two connections with the most common data
    share a channel. Raises C0509 if ``max-channels`` is too small.
    """

    name: ClassVar[str] = "assign-channels"
    summary: ClassVar[str] = "assign few channels; data forwarded by a rank stay on one channel"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels", "range": AT_LEAST_1})

    def run(self, ir: Program) -> Program:
        if ir.placed or not ir.num_instructions:
            return ir
        channel = flow_channels(ir, flows(ir, conflicts(ir, sequential_order(ir))))
        needed = int(channel.max(initial=0)) + 1
        if self.max_channels is not None and needed > self.max_channels:
            raise error(
                "C0509", f"the messages between two ranks need {needed} channels; the limit is {self.max_channels}",
                hint="use fewer instances, or a target with larger limits", exit_status=3,
                excess=Excess("channels", needed, self.max_channels),
            )  # fmt: skip
        return attrs.evolve(ir, channel=channel)
