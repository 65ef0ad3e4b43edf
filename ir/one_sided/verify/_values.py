"""Execute one launch on symbols in place of numbers, as :mod:`collc.ir.verify._values` does for programs.

A value is one integer. Its low bits are the *identity*: the part of a chunk of a shard, counted from 1. The bits above
are the set of ranks whose contributions it adds. 0 is an address that this launch has not written.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array, lexsort
from ...collective import Collective
from ...frozen import frozen
from ...program import Buffer
from ...progress import counting
from ..opcodes import ADDS, Op
from ..program import OneSided
from ._events import Events
from ._form import MOST, doing
from ._memory import Memory

__all__ = ["evaluate", "postcondition"]


@frozen
class _Symbols:
    """The encoding of values; a shard has ``parts`` parts, ``each`` a chunk."""

    collective: Collective
    parts: int
    each: int
    width: int

    @classmethod
    def of(cls, program: OneSided, memory: Memory) -> _Symbols:
        parts = program.chunks * memory.parts
        return cls(program.collective, parts, memory.parts, (program.collective.num_shards * parts).bit_length())

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def values(self, shard: int, contributions: int) -> list[int]:
        """Return the values of all parts of a shard with these contributions."""
        first = (contributions << self.width) + shard * self.parts + 1
        return list(range(first, first + self.parts))

    def identity(self, value: int) -> str:
        shard, part = divmod((value & self.mask) - 1, self.parts)
        name = f"shard {shard}"
        if self.collective.kind == "alltoall":
            name += " (from rank {} to rank {})".format(*self.collective.pair(shard))
        return f"{name}, chunk {part // self.each}" if self.parts > self.each else name

    def name(self, value: int) -> str:
        if value == 0:
            return "no data of this launch"
        return self.identity(value) + (f" of {self.ranks(value >> self.width)}" if self.collective.reduces else "")

    def ranks(self, bits: int) -> str:
        ranks = [str(r) for r in range(bits.bit_length()) if bits >> r & 1]
        if len(ranks) == self.collective.num_members > 1:
            return f"all {len(ranks)} ranks"
        return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(ranks)}"


def _initial(program: OneSided, memory: Memory, symbols: _Symbols) -> list[int]:
    held = [0] * memory.total
    collective = program.collective
    for rank in range(program.num_ranks):
        shards = collective.shards_at(rank, output=False)
        slots = collective.input_slots(rank, shards)
        base = int(memory.base[rank, Buffer.INPUT])
        for shard, slot in zip(shards[slots >= 0].tolist(), slots[slots >= 0].tolist(), strict=True):
            at = base + slot * symbols.parts
            held[at : at + symbols.parts] = symbols.values(shard, 1 << rank)
    return held


class _MistakeError(Exception):
    """The sources of an event cannot be added or read: ``one`` at ``address``, or ``one`` and ``other``."""

    def __init__(self, address: int, one: int, other: int):
        super().__init__()
        self.address, self.one, self.other = address, one, other


def evaluate(program: OneSided, seen: Events, memory: Memory, level: Array) -> tuple[list[int], str]:
    """Return the memory after one launch, and the first mistake: a read of no data, or a wrong sum."""
    symbols = _Symbols.of(program, memory)
    held = _initial(program, memory, symbols)
    first, lo, hi = seen.first.tolist(), seen.lo.tolist(), seen.hi.tolist()
    slot, write = seen.slot.tolist(), seen.write.tolist()
    op, adds = program.opcode[seen.row].tolist(), ADDS.tolist()
    acts = np.flatnonzero(np.diff(seen.first) > 0)
    for event in counting(acts[lexsort([level[acts]])].tolist(), "executing operations"):
        a, b = first[event], first[event + 1]
        cut = a
        while cut < b and not write[cut]:
            cut += 1
        try:
            given = [_read(held, lo[k], hi[k], 2 if slot[k] else 1) for k in range(a, cut)]
            if adds[op[event]]:
                total = given[0]
                for other in given[1:]:
                    total = _sum(total, other, symbols.mask)
                given = [total]
        except _MistakeError as mistake:
            return held, _explain(program, seen, memory, symbols, event, mistake)
        for k in range(cut, b):
            value = given[k - cut] if len(given) > 1 else given[0]
            held[lo[k] : hi[k] : 2 if slot[k] else 1] = value
    return held, ""


def _read(held: list[int], lo: int, hi: int, stride: int) -> list[int]:
    value = held[lo:hi:stride]
    if 0 in value:
        raise _MistakeError(lo + stride * value.index(0), 0, 0)
    return value


def _sum(one: list[int], other: list[int], mask: int) -> list[int]:
    if len(one) == 1:
        a, b = one[0], other[0]
        if a & b == a & mask == b & mask:
            return [a | b]
    result: list[int] = []
    for a, b in zip(one, other, strict=True):
        # equal identities and disjoint contributions: the common bits are exactly the identity
        if not a & b == a & mask == b & mask:
            raise _MistakeError(-1, a, b)
        result.append(a | b)
    return result


def _explain(
    program: OneSided, seen: Events, memory: Memory, symbols: _Symbols, event: int, mistake: _MistakeError
) -> str:
    actor, a, b = doing(program, int(seen.row[event])), mistake.one, mistake.other
    if a == 0:
        slot = any(
            seen.slot[k] and seen.lo[k] <= mistake.address < seen.hi[k] for k in range(*seen.first[event : event + 2])
        )
        where = memory.name(mistake.address, slot)
        crossed = program.opcode[seen.row[event]] == Op.GET
        why = " (a get reads at the offset of its destination)" if crossed else ""
        return f"{actor} reads {where}, which nothing has written in this launch{why}"
    if (a ^ b) & symbols.mask:
        return f"{actor} adds {symbols.name(a)} and {symbols.name(b)}, which is another chunk"
    twice = (a & b) >> symbols.width
    verb = "contributes" if twice.bit_count() == 1 else "contribute"
    return (
        f"{actor} adds {symbols.identity(a)} of {symbols.ranks(a >> symbols.width)} and that of "
        f"{symbols.ranks(b >> symbols.width)}: {symbols.ranks(twice)} {verb} twice"
    )


def postcondition(program: OneSided, memory: Memory, held: list[int]) -> list[str]:
    """Return where the output is not the collective's result: the first wrong chunk of each shard."""
    symbols, collective = _Symbols.of(program, memory), program.collective
    everyone = sum(1 << rank for rank in collective.ranks.tolist())
    problems: list[str] = []
    for rank in range(program.num_ranks):
        shards = collective.shards_at(rank, output=True)
        slots = collective.output_slots(rank, shards)
        base = int(memory.base[rank, Buffer.OUTPUT])
        for shard, slot in zip(shards[slots >= 0].tolist(), slots[slots >= 0].tolist(), strict=True):
            source = collective.source(shard)
            due = symbols.values(shard, everyone if source is None else 1 << source)
            at = base + slot * symbols.parts
            found = held[at : at + symbols.parts]
            if found != due and len(problems) < MOST:
                k = next(k for k in range(symbols.parts) if found[k] != due[k])
                wrong = f"must hold {symbols.name(due[k])}, but holds {symbols.name(found[k])}"
                problems.append(f"{memory.name(at + k)} {wrong}")
    return problems
