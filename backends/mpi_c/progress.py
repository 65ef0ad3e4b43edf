"""The allowances with which the C engine completes every program, whenever the MPI completes its sends.

A program is correct if connections buffer messages, but an MPI may complete a send only after the matching receive is
posted. The engine continues after a send and only protects the data in flight against writes. This module executes the
program once under those rules, with every send completed as late as possible. It finds the slots and the sends in
flight that each block needs. It also finds the sends that need a copy, because a write of their data must come before
the receive. One execution suffices: no choice of a block depends on timing (see :mod:`collc.ir.machine`).

Ranks that only relay do not know whether a call is in place, so they must copy the same sends in all calls. They do: if
an execution in place stalls where one out of place does not, then a write of a member waits, and the blocks of members
come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from collc.ir.program import Program
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.waves import waves

from .progress_buffers import Buffers, Needs
from .progress_one_by_one import OneByOne
from .progress_waves import InWaves

__all__ = ["Allowance", "allowance", "messages_allowance"]

#: collectives whose input is part of the output in calls in place
_OVERLAID = frozenset({"allreduce", "allgather", "alltoall", "reduce", "broadcast"})


@attrs.frozen
class Allowance:
    """The needs of each block, and the instructions that send a copy: always, or in calls in place."""

    slots: tuple[int, ...]
    slot_chunks: tuple[int, ...]
    sends: tuple[int, ...]
    copied: frozenset[int]
    copied_in_place: frozenset[int]


def allowance(program: Program) -> Allowance:
    """Return the resources that the engine must give ``program``; raise C0704 if the program deadlocks in any case."""
    return _allowed(lambda in_place: Buffers.of(program, in_place), program, program.collective.kind, frozenset())


def messages_allowance(program: SymmetricProgram, copied: frozenset[int] = frozenset()) -> Allowance:
    """Return the same for the messages of the first ranks of a symmetric program; their images need the same.

    A message of several runs is sent from a slot and arrives in one. The messages ``copied`` send copies in any case.
    """
    kind = program.collective.kind
    return _allowed(lambda in_place: Buffers.of_messages(program, in_place), program.batched, kind, copied)


def _allowed(buffers: Callable[[bool], Buffers], program: Program, kind: str, copied: frozenset[int]) -> Allowance:
    order = waves(program)  # None: few blocks work at a time

    def run(in_place: bool, copied: frozenset[int]) -> Needs:
        own = buffers(in_place)
        if order is None:
            return Needs.of(OneByOne(program, own, copied).run())
        return Needs.of(InWaves(program, own, copied, order).run())

    plain = run(False, copied)
    if kind not in _OVERLAID:
        return _combine([plain], plain.copied)
    return _combine([plain, run(True, plain.copied)], plain.copied)


def _combine(runs: list[Needs], copied: frozenset[int]) -> Allowance:
    def largest(columns: Iterable[Sequence[int]]) -> tuple[int, ...]:
        return tuple(max(values) for values in zip(*columns, strict=True))

    return Allowance(
        largest(run.slots for run in runs), largest(run.slot_chunks for run in runs),
        largest(run.sends for run in runs), copied, runs[-1].copied - copied,
    )  # fmt: skip
