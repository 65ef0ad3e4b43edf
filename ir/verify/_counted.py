"""Check the result of a wide program that reduces by counting contributions, if its sums allow it (see :mod:`._sums`).

This is the execution of :mod:`._columns`, with the number of a sum in place of the bits of its contributors.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..layout import Layout, locations
from ..program import Opcode, Program
from ..ragged import nth, owners, starts
from ..waves import Waves
from ._columns import Places, by_opcode, places
from ._sums import MOST, Sums

__all__ = ["adds_up"]


def adds_up(program: Program, where: Layout, order: Waves, partner: Array) -> bool:
    """Return whether counting shows that all reads and reductions are correct, and that the outputs have the result.

    False also if the program may be correct all the same. ``order`` is as for :func:`._columns.computes`.
    """
    collective = program.collective
    if not collective.reduces or collective.idempotent or collective.contributors is not None:
        return False
    given = places(program, where, output=False)
    added = int(program.count[program.reduces].astype(np.int64).sum())
    if max(given.total + added, collective.num_shards * program.chunks) >= MOST:
        return False
    memory = _Memory(program, where, partner, given, added)
    rows, start = by_opcode(program, order)
    if not all(memory.do(rows[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        return False
    # a rank has a shard once, so as many contributions as ranks are those of all ranks
    return all(
        np.array_equal(memory.identity.take(held := memory.holds.take(at)), identity)
        and (memory.sums.count.take(held) == len(collective.ranks)).all()
        for at, identity, _ in places(program, where, output=True).blocks()
    )


class _Memory:
    """The sum that each location holds, and each message brings, by number; ``identity`` is the chunk of each sum."""

    def __init__(self, program: Program, where: Layout, partner: Array, given: Places, added: int):
        self.sums = Sums(given.total, added)
        self.identity = np.zeros(1 + given.total + added, dtype=np.int32)
        self.opcode, self.size = program.opcode, program.count.astype(np.int64)
        self.src, self.dst = locations(program, where)
        sent = np.where(program.sends, self.size, 0)
        self.out = starts(sent)
        self.come = np.where(partner >= 0, self.out.take(partner), -1)
        self.sent = np.zeros(int(self.out[-1]), dtype=np.int32)
        self.holds = np.zeros(where.total, dtype=np.int32)
        number = 1
        for at, identity, _ in given.blocks():
            self.identity[number : number + len(at)] = identity
            self.holds[at] = np.arange(number, number + len(at))
            number += len(at)

    def do(self, rows: Array) -> bool:
        """Execute instructions of one opcode, none of which waits for another; return whether they were right."""
        op, size = Opcode(int(self.opcode[rows[0]])), self.size.take(rows)
        if op is Opcode.NOP:
            return True
        each, chunk = owners(size), nth(size)
        given = [self.holds.take(self.src.take(rows).take(each) + chunk)] if op.reads_src else []
        at = self.dst.take(rows).take(each) + chunk if op.writes_dst or op.reads_dst else chunk
        if op.reads_dst:
            given.append(self.holds.take(at))
        if op.receives:
            given.append(self.sent.take(self.come.take(rows).take(each) + chunk))
        if not all(sums.all() for sums in given):
            return False
        found = given[0] if len(given) == 1 else self.added(*given)
        if found is None:
            return False
        if op.writes_dst:
            self.holds[at] = found
        if op.sends:
            self.sent[self.out.take(rows).take(each) + chunk] = found
        return True

    def added(self, one: Array, other: Array) -> Array | None:
        """Return the sums of pairs; None if one becomes part of two, or if the two are of different chunks."""
        identity = self.identity.take(one)
        if (identity != self.identity.take(other)).any() or not self.sums.take(np.concatenate([one, other])):
            return None
        found = self.sums.add(self.sums.count.take(one) + self.sums.count.take(other))
        self.identity[found] = identity
        return found
