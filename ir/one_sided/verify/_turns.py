"""Sizes of chunks with which the loops of a program do the same: each number of turns, and each overlap of slices.

Slice i of an item with chunks o to e (exclusive) begins at o c + i u if a chunk has c bytes and slices have u. Between
two sizes at which such places coincide, their order is the same, and so are races and results. Of items o and p with
slices of u and v bytes, places coincide only at multiples of gcd(u, v) / (o - p).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import gcd

import numpy as np

from ...arrays import distinct_rows
from ...frozen import frozen
from ...validate import structure
from ..opcodes import Op
from ..program import OneSided
from ._events import events, lengths, parts_needed, shortest
from ._form import operations
from ._memory import MAX_ADDRESSES, MAX_PARTS, Memory, addresses
from ._run import gives

__all__ = ["Alike", "sizes_alike"]

#: numbers of turns of the shortest loop, from that of the smallest size on: at least, and at most
_FEWEST, _MOST = 3, 16
#: programs with more events are executed with fewer turns
_MOST_EVENTS = 1 << 14
#: more groups of sizes are not told apart
_MOST_GROUPS = 48


@frozen
class Alike:
    """Sizes of a chunk, in bytes: the ``least`` of a group that does the same, and the ``simplest``, a fraction."""

    least: Fraction
    simplest: Fraction


def sizes_alike(program: OneSided, low: Fraction, high: Fraction, unit: Fraction) -> list[Alike]:
    """Return the groups of the sizes of a chunk from ``low`` to ``high`` (multiples of ``unit``), the smallest first.

    They end where the shortest loop has 3 numbers of turns, or as many as use up what is signalled ahead. There are
    none without loops, in programs that are not well formed, and if the turns are too many to execute.
    """
    if low > high or not len(program.loop_unit) or structure(program) or operations(program):
        return []
    least = shortest(program)
    high = min(high, (-(-low * least // 1) + _numbers(program) - 1) / least)
    turns = {Fraction(u, n) for u, n in zip(program.loop_unit.tolist(), program.loop_chunks.tolist(), strict=True)}
    if not _executable(program, Fraction(1) / least):
        return []
    for steps in (turns | _overlaps(program), turns):
        if sum((high - low) // step + 2 for step in steps) > _MOST_GROUPS:
            continue
        found = list(_groups(program, steps, low, high, unit))
        if all(_executable(program, one.simplest) for one in found):
            return found
    return []


def _numbers(program: OneSided) -> int:
    """Return the numbers of turns to execute: loops go on for as many turns as there are signals outside of loops."""
    of, link = program.link_operation, program.links.astype(np.int64)
    ahead = np.flatnonzero((program.loop[of] < 0) & (gives(program)[of] | (program.opcode[of] == Op.SEM_RELEASE)))
    held = program.opcode[of[ahead]] == Op.SEM_RELEASE
    given = [np.bincount(link[ahead[some]]).max(initial=0) for some in (held, ~held)]
    most = max(int(program.semaphore_value.max(initial=0)) + int(given[0]), int(given[1]))
    return min(max(_FEWEST, most + 2), _MOST)


def _executable(program: OneSided, chunk: Fraction) -> bool:
    turns = lengths(program, chunk)
    parts = parts_needed(program, turns)
    inside = np.bincount(program.loop[program.loop >= 0], minlength=len(turns)).tolist()
    number = sum(-(-turn // 1) * rows for turn, rows in zip(turns, inside, strict=True))
    return parts <= MAX_PARTS and addresses(program, parts) <= MAX_ADDRESSES and number <= _MOST_EVENTS


def _overlaps(program: OneSided) -> set[Fraction]:
    """Return steps such that slices of overlapping items change their order only at multiples of one of them."""
    whole = [Fraction(1)] * len(program.loop_unit)
    parts = parts_needed(program, whole)
    seen = events(program, Memory.of(program, parts), whole)
    loop = program.loop.astype(np.int64)[seen.row[seen.event]]
    unit = np.where(loop >= 0, program.loop_unit.astype(np.int64)[np.maximum(loop, 0)], 0)
    spans = distinct_rows(np.stack([seen.lo, seen.hi, unit], axis=1))
    pairs: set[tuple[int, int]] = set()
    for lo, hi, slices in spans[spans[:, 2] > 0].tolist():
        near = spans[(spans[:, 0] < hi) & (spans[:, 1] > lo)]
        apart = np.abs(np.concatenate([near[:, 0] - lo, near[:, 1] - lo, hi - near[:, 0]]))
        common = np.gcd(np.tile(near[:, 2], 3), slices)
        pairs.update(map(tuple, distinct_rows(np.stack([common, apart], axis=1)).tolist()))
    return {Fraction(common * parts, apart) for common, apart in pairs if apart}


def _groups(
    program: OneSided, steps: Iterable[Fraction], low: Fraction, high: Fraction, unit: Fraction
) -> Iterator[Alike]:
    """Yield each multiple of a step that is a size, and the sizes between two of them."""
    grain = gcd(*program.loop_unit.tolist())
    places = sorted({step * k for step in steps for k in range(int(low // step), int(-(-high // step)) + 1)})
    for place, following in zip(places, [*places[1:], None], strict=True):
        if low <= place <= high and place > 0 and place % unit == 0:
            yield Alike(place, place)
        least = max(low, (place // unit + 1) * unit)
        if following is not None and place < least < following and least <= high:
            yield Alike(least, _simplest(place / grain, following / grain) * grain)


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator between two.

    >>> _simplest(Fraction(2, 3), Fraction(1))
    Fraction(3, 4)
    """
    whole = low // 1
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:
        return whole + 1 / Fraction(1 / (high - low) // 1 + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))
