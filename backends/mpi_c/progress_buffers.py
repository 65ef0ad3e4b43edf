"""What the engine chooses for the buffers of a call: which messages leave from a slot and which arrive in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import attrs
import numpy as np

from collc.ir.arrays import Array, as_column
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.symmetric_program import SymmetricProgram

__all__ = ["ARRIVED", "READY", "RECEIVING", "Buffers", "Needs", "Places", "Run", "first_allowance"]

#: phases of a block: before an instruction, waiting for its message, with its message
READY, RECEIVING, ARRIVED = 0, 1, 2

#: sends in flight of a block before it waits; more only if the program does not end otherwise
_SENDS = 8


class Run(Protocol):
    """An execution that has ended: what each block needed, and the sends that became copies."""

    @property
    def slots(self) -> Iterable[int]:
        """Slots of each block."""

    @property
    def slot_chunks(self) -> Iterable[int]:
        """Chunks of a slot of each block."""

    @property
    def sends(self) -> Iterable[int]:
        """Sends in flight of each block."""

    @property
    def copied(self) -> set[int]:
        """The instructions that send a copy."""


@attrs.frozen
class Needs:
    """What an execution found, without its own tables, which are as long as the program."""

    slots: tuple[int, ...]
    slot_chunks: tuple[int, ...]
    sends: tuple[int, ...]
    copied: frozenset[int]

    @classmethod
    def of(cls, run: Run) -> Needs:
        """Return the needs of an execution that has ended."""
        slots, chunks, sends = (tuple(map(int, column)) for column in (run.slots, run.slot_chunks, run.sends))
        return cls(slots, chunks, sends, frozenset(run.copied))


@attrs.frozen(eq=False)
class Places:
    """Locations at their ranks: chunks ``first`` to ``end`` of ``buffer``."""

    buffer: Array
    first: Array
    end: Array

    @classmethod
    def of(cls, program: Program, end: str, in_place: bool, kind: str) -> Places:
        """Return where instructions read (``src``) or write (``dst``); in place, the input is part of the output."""
        buffer = getattr(program, f"{end}_buffer")
        first = getattr(program, f"{end}_offset").astype(np.int64)
        if in_place:
            own = program.rank * np.int64(program.chunks if kind == "allgather" else 0)
            first = first + np.where(buffer == Buffer.INPUT, own, 0)
            buffer = np.where(buffer == Buffer.INPUT, np.uint8(Buffer.OUTPUT), buffer)
        return cls(as_column(buffer), as_column(first), as_column(first + program.count))

    def rows(self, chosen: Array | slice) -> Places:
        """Return some of these locations."""
        return Places(self.buffer[chosen], self.first[chosen], self.end[chosen])

    def overlap(self, buffer: Array | int, first: Array | int, end: Array | int) -> Array:
        """Return which locations share a chunk with another one of the same rank."""
        found: Array = (self.buffer == buffer) & (self.first < end) & (first < self.end)
        return found

    def where(self, mask: Array, other: Places) -> Places:
        """Return these locations where ``mask`` is true, and the others elsewhere."""
        columns = ((self.buffer, other.buffer), (self.first, other.first), (self.end, other.end))
        return Places(*(np.where(mask, *pair) for pair in columns))

    def followed(self, other: Places) -> Places:
        """Return these locations and then the others."""
        columns = ((self.buffer, other.buffer), (self.first, other.first), (self.end, other.end))
        return Places(*map(np.concatenate, columns))

    def listed(self) -> list[tuple[int, int, int]]:
        """Return the rows (buffer, first, end)."""
        return list(zip(self.buffer.tolist(), self.first.tolist(), self.end.tolist(), strict=True))


@attrs.frozen(eq=False)
class Buffers:
    """The locations of instructions, or of messages of runs, in calls in place or out of place.

    ``src`` and ``dst`` have the first run of each; runs ``span[i]`` to ``span[i + 1]`` of ``written`` are those of
    instruction i. ``several`` says which are messages of several runs.
    """

    src: Places
    dst: Places
    written: Places
    span: Array
    several: Array

    @classmethod
    def of(cls, program: Program, in_place: bool) -> Buffers:
        """Return the locations of the instructions of a program."""
        kind = program.collective.kind
        src, dst = (Places.of(program, end, in_place, kind) for end in ("src", "dst"))
        size = program.num_instructions
        return cls(src, dst, dst, np.arange(size + 1), np.zeros(size, dtype=bool))

    @classmethod
    def of_messages(cls, program: SymmetricProgram, in_place: bool) -> Buffers:
        """Return the locations of the messages of the first ranks of a symmetric program."""
        kind = program.collective.kind
        read, written = (Places.of(program.seed, end, in_place, kind) for end in ("src", "dst"))
        span = program.message_start
        return cls(read.rows(span[:-1]), written.rows(span[:-1]), written, span, np.diff(span) > 1)

    def choices(self, program: Program, copied: frozenset[int]) -> tuple[Array, Array, Array]:
        """Return which instructions send from a slot, receive into one, and take one."""
        sent, receives = program.sends, program.receives
        leaves = (program.opcode == Opcode.RECV_REDUCE_SEND) | self.several
        leaves[list(copied)] = True
        adds_in_place = program.reads_src & program.writes_dst
        adds_in_place = adds_in_place & self.src.overlap(self.dst.buffer, self.dst.first, self.dst.end)
        lands = receives & (self.several | adds_in_place | (sent & leaves))
        return leaves, lands, lands | (sent & leaves)


def first_allowance(program: Program, is_sent: Array, takes_slot: Array) -> tuple[Array, Array, Array]:
    """Return the slots, their chunks and the sends in flight of each block with which an execution begins."""
    slots, chunks, sends = np.zeros((3, program.num_blocks), dtype=np.int64)
    block = program.block.astype(np.int64)
    sends += np.minimum(np.bincount(block[is_sent], minlength=program.num_blocks), _SENDS)
    took = np.flatnonzero(takes_slot)
    np.maximum.at(slots, block[took], np.where(is_sent[took], 2, 1))
    np.maximum.at(chunks, block[took], program.count[took].astype(np.int64))
    return slots, chunks, sends
