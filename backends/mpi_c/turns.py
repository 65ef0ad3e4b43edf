"""Programs of all ranks that are images of a few (:mod:`collc.ir.turning`) as C tables: few ranks, and the rotation.

Ranks and units of the vector are named by their places in the tables of the listed ranks. One list gives the rank, or
the unit, at each place; equal lists are written once.
"""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.group import Translations
from collc.ir.program import Buffer, Program
from collc.ir.ragged import ranges, starts
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.turning import Turning, all_images

from .progress import Allowance, messages_allowance

__all__ = ["TITLE", "TURNS", "Folded", "folded", "turn_columns"]

#: the comment before the tables, and their names
TITLE = (
    "Rotations of ranks, of algorithms that list those that stay and one box: ranks and units that stay, units of a\n"
    " * box, chunks of a unit (0: no rotation), the first of the ranks and units; the rank or unit at each place."
)
TURNS = (
    "algorithm_kept", "algorithm_kept_units", "algorithm_box_units", "algorithm_unit", "algorithm_ranks",
    "algorithm_units", "turn_places",
)  # fmt: skip


@attrs.frozen(eq=False)
class Folded:
    """A program of all ranks with the listed ranks only: ``few`` has these, named by places, and all ranks' number.

    ``message`` and ``block`` are the message and the block of ``few`` of which each of all ranks is an image.
    """

    whole: SymmetricProgram
    few: SymmetricProgram
    turning: Turning
    message: Array
    block: Array

    def allowance(self) -> Allowance:
        """Return what each listed block needs, the most that any of its images does.

        If an image of a message is sent as a copy, all images are.
        """
        copied, known = frozenset[int](), -1
        found = messages_allowance(self.whole)
        while len(copied) > known:
            known = len(copied)
            copied |= self._images(found.copied)
            if copied != found.copied:
                found = messages_allowance(self.whole, copied)
        blocks = self.few.seed.num_blocks

        def most(column: tuple[int, ...]) -> tuple[int, ...]:
            values = np.zeros(blocks, dtype=np.int64)
            np.maximum.at(values, self.block, np.array(column, dtype=np.int64))
            return tuple(values.tolist())

        own, in_place = (self._listed(each) for each in (found.copied, found.copied_in_place))
        return Allowance(most(found.slots), most(found.slot_chunks), most(found.sends), own, in_place - own)

    def _listed(self, messages: frozenset[int]) -> frozenset[int]:
        return frozenset(self.message[sorted(messages)].tolist())

    def _images(self, messages: frozenset[int]) -> frozenset[int]:
        """Return all images of messages, of messages of all ranks."""
        return frozenset(np.flatnonzero(np.isin(self.message, sorted(self._listed(messages)))).tolist())


def folded(program: SymmetricProgram) -> Folded | None:
    """Return a program of all ranks with the listed ranks only; None if it has no rotation, or is not made by it."""
    if "folded" not in program.found:
        program.found["folded"] = _folded(program)
    found: Folded | None = program.found["folded"]
    return found


def _folded(program: SymmetricProgram) -> Folded | None:
    turning, seed = program.turning, program.seed
    if turning is None or program.group.order != 1 or len(program.numbering):
        return None
    moves = frozenset(buffer for buffer in Buffer if program.moves(buffer))
    place = turning.place
    ranks = turning.ranks[: turning.width].astype(np.int64)
    first, number = seed.rank_blocks.astype(np.int64)[ranks], np.diff(seed.rank_blocks)[ranks].astype(np.int64)
    block = ranges(first, number)
    size = np.diff(seed.block_start).astype(np.int64)[block]
    row = ranges(seed.block_start[:-1].astype(np.int64)[block], size)
    new = np.full(seed.num_instructions, -1, dtype=np.int64)
    new[row] = np.arange(len(row))
    columns: Columns = {name: getattr(seed, name)[row] for name in ("opcode", "src_buffer", "dst_buffer", "count")}
    for end in ("src", "dst"):
        offset = getattr(seed, f"{end}_offset")[row].astype(np.int64)
        at = np.flatnonzero(np.isin(columns[f"{end}_buffer"], [int(one) for one in moves]) & seed.uses(end)[row])
        unit, inside = np.divmod(offset[at], turning.unit)
        offset[at] = turning.place_of_unit[unit] * turning.unit + inside
        columns[f"{end}_offset"] = offset
    for name in ("send_peer", "recv_peer"):
        peer = getattr(seed, name)[block].astype(np.int64)
        columns[name] = np.where(peer >= 0, place[np.maximum(peer, 0)], -1)
    needs = seed.num_dependencies.astype(np.int64)[row]
    deps = new[seed.deps[ranges(seed.dep_start[:-1].astype(np.int64)[row], needs)]]
    scratch = np.zeros(seed.num_ranks, dtype=np.int64)
    scratch[: turning.width] = seed.scratch[ranks]
    few = Program(
        seed.collective, seed.chunks, scratch, block_rank=np.repeat(np.arange(turning.width), number),
        channel=seed.channel[block], block_start=starts(size), dep_start=starts(needs), deps=deps, name=seed.name,
        scheduler=seed.scheduler, **columns,
    )  # fmt: skip
    listed = SymmetricProgram(few, Translations((1,)), program.joined[row])
    images, joined = all_images(few, listed.joined, turning, moves)
    same = np.array_equal(joined, program.joined) and all(
        np.array_equal(getattr(images, name), getattr(seed, name)) for name in Program.COLUMNS
    )
    if not same:
        return None
    of = turning.listed(place)
    messages = np.searchsorted(listed.message_start, few.block_start[few.rank_blocks[: turning.width + 1]])
    begin, count = messages[:-1][of], np.diff(messages)[of]
    blocks = few.rank_blocks.astype(np.int64)
    own = ranges(blocks[:-1][of], np.diff(blocks)[of])
    return Folded(program, listed, turning, ranges(begin, count), own)


def turn_columns(turnings: list[Turning | None]) -> Columns:
    """Return the tables of the rotations of all algorithms, in order; empty if there is none."""
    if not any(turnings):
        return {}
    known, parts, size = dict[bytes, int](), list[Array](), 0

    def first(numbers: Array) -> int:
        nonlocal size
        values = numbers.astype(np.int64)
        if values.tobytes() not in known:
            known[values.tobytes()] = size
            parts.append(values)
            size += len(values)
        return known[values.tobytes()]

    rows = [
        (0,) * len(TURNS[:-1]) if one is None else (
            one.kept, one.kept_units, (len(one.units) - one.kept_units) // one.order, one.unit, first(one.ranks),
            first(one.units),
        ) for one in turnings
    ]  # fmt: skip
    return {**dict(zip(TURNS, np.array(rows).T, strict=False)), TURNS[-1]: np.concatenate(parts)}
