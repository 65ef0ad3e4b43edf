"""The sizes of calls that a plan serves: their unit, the smallest and the largest, in bytes as the runtime counts them.

The runtime counts the input of a rank, of an allgather the output.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.one_sided.program import OneSided

from .runtimes import MAX_BYTES, REUSED_SCRATCH, Runtime

__all__ = ["Sizes", "counted_chunks", "cuts_wrongly", "in_calls", "largest_chunk", "sizes_of", "smallest_chunk"]


@frozen
class Sizes:
    """The calls of a plan: multiples of ``unit`` bytes from ``low`` to ``high``, both inclusive."""

    unit: int
    low: int
    high: int


def counted_chunks(program: OneSided) -> int:
    """Return the chunks that the size of a call counts."""
    return int((program.outputs if program.collective.kind == "allgather" else program.inputs)[0])


def in_calls(program: OneSided, whole: int) -> Fraction:
    """Return the bytes of a call, as the runtime counts them, of a whole vector of ``whole`` bytes."""
    return Fraction(whole * counted_chunks(program), program.collective.whole * program.chunks)


def smallest_chunk(program: OneSided, runtime: Runtime) -> int:
    """Return the bytes of the smallest chunk: one unit, or enough that every slice of an operation has one.

    Versions that cut items of fewer units than slices wrongly need as many units as slices.
    """
    shares, counts = _cut(program, runtime)
    return int((-(-shares // counts)).max(initial=1)) * program.alignment


def cuts_wrongly(program: OneSided, runtime: Runtime, chunk: Fraction) -> bool:
    """Return whether a runtime cuts some item wrongly if a chunk has ``chunk`` bytes: into slices without a unit."""
    shares, counts = _cut(program, runtime)
    return bool((counts * chunk.numerator < shares * program.alignment * chunk.denominator).any())


def _cut(program: OneSided, runtime: Runtime) -> tuple[Array, Array]:
    """Return the slices and chunks of the items that a runtime cuts wrongly if they have fewer units than slices."""
    items = ((program.shares > 1) & runtime.cuts_short)[program.item_operation]
    shares = program.shares[program.item_operation[items]].astype(np.int64)
    return shares, program.item_count[items].astype(np.int64)


def largest_chunk(program: OneSided) -> int:
    """Return the bytes of the largest chunk with which all buffers stay below 4 GiB; 0 if there is none.

    Packets and double scratch take twice the scratch each. Scratch that calls share has 64 MiB.
    """
    factor = (2 if program.packets else 1) * (2 if program.double_scratch else 1)
    data = int(max(program.inputs.max(initial=1), program.outputs.max(initial=1)))
    scratch = int(program.scratch.max(initial=0)) * factor
    most = min((MAX_BYTES - 1) // data, (MAX_BYTES - 1) // max(scratch, 1))
    if program.reuse and scratch:
        most = min(most, REUSED_SCRATCH // scratch)
    for unit, chunks in zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True):
        most = min(most, _TURNS * unit // max(chunks, 1))
    return most // program.alignment * program.alignment


#: the most turns of a pipeline
_TURNS = 2**16 - 1


def sizes_of(program: OneSided, runtime: Runtime, low: int = 0, high: int | None = None) -> Sizes | None:
    """Return the calls of a program, of whole vectors of ``low`` to ``high`` bytes; None if there are none."""
    unit = counted_chunks(program) * program.alignment
    least = max(counted_chunks(program) * smallest_chunk(program, runtime), _up(in_calls(program, low), unit))
    most = counted_chunks(program) * largest_chunk(program)
    if high is not None:
        most = min(most, int(in_calls(program, high) // unit) * unit)
    return Sizes(unit, least, most) if least <= most else None


def _up(size: Fraction, unit: int) -> int:
    return -int(-size // unit) * unit
