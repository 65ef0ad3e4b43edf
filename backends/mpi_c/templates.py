"""Programs of the first ranks and a group as C tables: the group, and messages as instructions."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.program import Buffer, Program
from collc.ir.ragged import starts
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.turning import Turning

from .scratch import Segments, is_whole
from .turns import Folded
from .words import NO_WORDS, Words, shape_of, words_of

__all__ = [
    "GroupTables", "algorithm_columns", "messages_of", "messages_of_few", "shards_in_scratch", "word_columns",
]  # fmt: skip


@attrs.frozen
class GroupTables:
    """The group of one algorithm: sizes of the vectors, bits of the buffers that it moves, chunks of a shard, and the
    number of ranks listed.

    A group that is none of vectors has its order as the only size, and ``words``; so has a rotation, ``turning``.
    """

    sizes: tuple[int, ...] = ()
    moves: int = 0
    shard: int = 1
    width: int = 1
    words: Words = attrs.field(default=NO_WORDS, eq=False)
    turning: Turning | None = attrs.field(default=None, eq=False)

    @classmethod
    def of(cls, program: SymmetricProgram) -> GroupTables:
        """Return the tables of a program."""
        moves = sum(1 << buffer for buffer in Buffer if program.moves(buffer))
        shape = shape_of(program.group)
        if shape is not None:
            return cls(shape, moves, program.chunks, program.width)
        return cls((program.group.order,), moves, program.chunks, program.width, words_of(program.group))

    @classmethod
    def of_few(cls, folded: Folded) -> GroupTables:
        """Return the tables of a program whose ranks are images of a few."""
        program, turning = folded.whole, folded.turning
        moves = sum(1 << buffer for buffer in Buffer if program.moves(buffer))
        return cls((turning.order,), moves, program.chunks, turning.width, turning=turning)


def algorithm_columns(groups: list[GroupTables]) -> Columns:
    """Return the tables of the groups of all algorithms, in order."""
    sizes = [size for one in groups for size in one.sizes]
    return {
        "algorithm_group": starts([len(one.sizes) for one in groups])[:-1],
        "algorithm_sizes": [len(one.sizes) for one in groups], "algorithm_moves": [one.moves for one in groups],
        "algorithm_shard": [one.shard for one in groups], "group_sizes": sizes,
    }  # fmt: skip


def word_columns(groups: list[GroupTables]) -> Columns:
    """Return the tables of the groups that are none of vectors, one after the other; empty if there is none."""
    words = [one.words for one in groups]
    if not any(len(one.first) for one in words):
        return {}
    elements, times = (starts([len(part) for part in parts])[:-1] for parts in zip(*map(_parts, words), strict=True))
    worded = np.array([len(one.first) > 0 for one in words])
    joined = [np.concatenate([getattr(one, name) for one in words]) for name in ("first", "rest", "times")]
    return {
        "algorithm_words": np.where(worded, elements + 1, 0), "algorithm_times": times,
        **dict(zip(("word_generator", "word_rest", "generator_times"), joined, strict=True)),
    }  # fmt: skip


def _parts(words: Words) -> tuple[Array, Array]:
    return words.first, words.times


def messages_of(program: SymmetricProgram) -> Program:
    """Return the messages of the first ranks as instructions, with the peers that these ranks have.

    A message of one run has its place; one of several has place 0 of the input, for its pieces have theirs.
    """
    batched, seed, alone = program.batched, program.seed, _alone(program)
    columns: Columns = {
        f"{end}_{what}": np.where(alone, getattr(batched, f"{end}_{what}"), 0)
        for end in ("src", "dst") for what in ("buffer", "offset")
    }  # fmt: skip
    return attrs.evolve(
        batched,
        send_peer=seed.send_peer,
        recv_peer=seed.recv_peer,
        channel=seed.channel,
        scratch=seed.scratch[: program.width],
        **columns,
    )


def messages_of_few(folded: Folded) -> Program:
    """Return the messages of the listed ranks of a rotation as instructions, in a program of these ranks."""
    width, found = folded.turning.width, messages_of(folded.few)
    return attrs.evolve(found, collective=Collective("allreduce", width), scratch=found.scratch[:width])


def _alone(program: SymmetricProgram) -> Array:
    alone: Array = np.diff(program.message_start) == 1
    return alone


def shards_in_scratch(program: SymmetricProgram, listed: int | None = None) -> Segments:
    """Return the segments of the first ranks' scratch, which has whole shards, one after the other.

    A call has the count of a shard. So shards lie side by side like the blocks of a buffer, and are one segment.
    ``listed`` is the number of first ranks, if it is not the program's width.

    Raises C0704 if chunks of a shard differ in size between ranks, as those of a vector with one count do.
    """
    cells = program.seed.scratch[: program.width if listed is None else listed].astype(np.int64)
    if cells.any() and is_whole(program.collective):
        raise error("C0704", f"a template of `{program.collective.name}` with scratch cannot be a C file")
    used = cells > 0
    none = np.zeros(int(used.sum()), dtype=np.int64)
    return Segments(starts(used), none, none, cells)
