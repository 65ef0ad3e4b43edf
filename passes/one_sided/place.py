"""Let messages land where their data belong, or in scratch that is free."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from collc.ir.frozen import frozen
from collc.ir.one_sided.program import OneSided

from ..base import Pass
from .landing import landed, slots_of
from .nops import with_nops
from .order import Order, clocks, moments, order_of, renumbered
from .rows import program_of, rows_of
from .sharing import shared_slots
from .sums import stored_sums

__all__ = ["PlaceMessages"]


#: the most numbers in the clocks of senders; in programs with more each message keeps its slot
_MOST = 1 << 26


@frozen
class PlaceMessages(Pass):
    """Let messages land where their data belong, or in scratch that is free.

    A message that the receiver only copies lands in its final place, if every access to that place before has happened
    when the sender writes. Signals and semaphores alone decide that, never time. Other messages share scratch if all
    reads of one have happened before the other is sent. Packets keep a slot of their own: their flags mark a launch,
    not a message. A sum that is only sent on lies where the result comes later, if its block alone uses that place.
    """

    name: ClassVar[str] = "place-messages"
    summary: ClassVar[str] = "let messages land where their data belong, or in scratch that is free"
    takes: ClassVar[type] = OneSided
    gives: ClassVar[type] = OneSided

    def run(self, ir: OneSided) -> OneSided:
        order = order_of(ir)
        if order is None or not ir.together:
            return ir
        if ir.packets:
            return with_nops(stored_sums(ir))
        return with_nops(_placed(ir, order))


def _placed(program: OneSided, order: Order) -> OneSided:
    rows = rows_of(program)
    slots, moment = slots_of(rows, program.rank), moments(program, order)
    if len(slots.put) * program.num_blocks > _MOST:
        return program
    clock = clocks(program, order, slots.writer)
    rows, done, copies = landed(program, rows, slots, clock, moment)
    kept = np.ones(len(rows), dtype=bool)
    kept[copies] = False
    rows, scratch = shared_slots(program, rows, slots, np.flatnonzero(~done), clock, moment)
    scratch_of = np.full(program.num_ranks, scratch)
    result = program_of(program, rows.take(np.flatnonzero(kept)), scratch=scratch_of)
    return renumbered(result, program, np.maximum(np.cumsum(kept) - 1, 0))
