"""The steps of a threadblock as columns: files of hundreds of ranks have hundreds of thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, overload

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.program import Opcode

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BUFFERS", "COUNT", "COUNTED", "DEPID", "DEPS", "DST", "DST_OFFSET", "FIELDS", "HASDEP", "KINDS_OF", "LINE",
    "NUMBER", "OPCODES", "SRC", "SRC_OFFSET", "TYPE", "Step", "Steps", "as_steps", "divided", "joined", "opcode_of",
]  # fmt: skip

#: step type -> opcode
OPCODES: dict[str, Opcode] = {
    "nop": Opcode.NOP, "s": Opcode.SEND, "r": Opcode.RECV, "cpy": Opcode.COPY, "re": Opcode.REDUCE,
    "rcs": Opcode.RECV_COPY_SEND, "rrc": Opcode.RECV_REDUCE_COPY, "rrs": Opcode.RECV_REDUCE_SEND,
    "rrcs": Opcode.RECV_REDUCE_COPY_SEND,
}  # fmt: skip

#: the letters of the buffers, by their numbers in columns
BUFFERS = ("i", "o", "s")
#: the step types, by their numbers in columns
KINDS_OF = tuple(OPCODES)
#: the columns of a table of steps: the attributes in the file's order, then the line
FIELDS = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep", "line")
NUMBER, TYPE, SRC, SRC_OFFSET, DST, DST_OFFSET, COUNT, DEPID, DEPS, HASDEP, LINE = range(len(FIELDS))
#: the columns that count chunks
COUNTED = (SRC_OFFSET, DST_OFFSET, COUNT)

_OPCODES = np.array(list(OPCODES.values()), dtype=np.int64)
_TYPE_OF = {name: number for number, name in enumerate(KINDS_OF)}
_BUFFER_OF = {letter: number for number, letter in enumerate(BUFFERS)}


@attrs.frozen
class Step:
    """One ``<step>``. ``depid`` and ``deps`` are -1 if it has no dependency; ``line`` is 0 if it comes from no text."""

    s: int
    type: str
    srcbuf: str
    srcoff: int
    dstbuf: str
    dstoff: int
    cnt: int
    depid: int = -1
    deps: int = -1
    hasdep: int = 0
    line: int = attrs.field(default=0, eq=False)


class Steps(Sequence[Step]):
    """The steps of one threadblock in document order. An entry is made when it is asked for.

    ``table`` has shape (steps, 11): a column for each of ``FIELDS``, with the numbers of types and buffers. Two are
    equal if all but the lines are. If the table is a part of one of several threadblocks, ``whole`` is that one, and
    ``first`` the row of it with which this one begins.
    """

    __slots__ = ("first", "table", "whole")

    def __init__(self, table: Array, whole: Array | None = None, first: int = 0):
        self.table, self.whole, self.first = table, whole, first

    @classmethod
    def none(cls) -> Steps:
        """Return no steps."""
        return cls(np.zeros((0, len(FIELDS)), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> Steps: ...
    def __getitem__(self, at: int | slice) -> Step | Steps:
        return Steps(self.table[at]) if isinstance(at, slice) else _step(self.table[at].tolist())

    def __iter__(self) -> Iterator[Step]:
        return map(_step, self.table.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Steps):
            return np.array_equal(self.table[:, :LINE], other.table[:, :LINE])
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def divided(table: Array, start: Array) -> list[Steps]:
    """Return the steps of threadblocks whose tables stand one after the other; ``start`` is where each begins."""
    return [Steps(table[low:high], table, low) for low, high in pairwise(start.tolist())]


def joined(blocks: Sequence[Steps]) -> Array:
    """Return one table of the steps of several threadblocks, without a copy if it is there. :func:`divided` backwards.

    >>> table = np.arange(33).reshape(3, 11)
    >>> joined(divided(table, np.array([0, 2, 3]))) is table
    True
    """
    whole, at = blocks[0].whole if blocks else None, 0
    for steps in blocks:
        if steps.whole is not whole or steps.first != at:
            whole = None
            break
        at += len(steps.table)
    if whole is not None and at == len(whole):
        return whole
    tables = [steps.table for steps in blocks if len(steps)]
    return np.concatenate(tables) if tables else np.zeros((0, len(FIELDS)), dtype=np.int64)


def opcode_of(table: Array) -> Array:
    """Return the opcode of each step of a table."""
    found: Array = _OPCODES.take(table[:, TYPE])
    return found


def as_steps(steps: Iterable[Step] | Steps) -> Steps:
    """Return steps as columns."""
    if isinstance(steps, Steps):
        return steps
    rows = [
        (
            one.s, _TYPE_OF[one.type], _BUFFER_OF[one.srcbuf], one.srcoff, _BUFFER_OF[one.dstbuf], one.dstoff,
            one.cnt, one.depid, one.deps, one.hasdep, one.line,
        )
        for one in steps
    ]  # fmt: skip
    return Steps(np.array(rows, dtype=np.int64).reshape(-1, len(FIELDS)))


def _step(row: Sequence[int]) -> Step:
    s, kind, src, srcoff, dst, dstoff, *rest = row
    return Step(s, KINDS_OF[kind], BUFFERS[src], srcoff, BUFFERS[dst], dstoff, *rest)
