"""Execute a program on symbols instead of numbers.

A value is one integer. Its low bits are the *identity*: the chunk and shard, counted from 1. The bits above are the set
of ranks whose contributions it combines. 0 is an unwritten location.
"""

from __future__ import annotations

from ..arrays import Array
from ..collective import Collective
from ..frozen import frozen
from ..layout import Layout, locations
from ..program import Buffer, Opcode, Program
from ._structure import MOST, doing

__all__ = ["Outcome", "evaluate", "identities", "postcondition"]


@frozen
class Symbols:
    """The encoding of a program's values as integers."""

    collective: Collective
    chunks: int
    width: int

    @classmethod
    def of(cls, program: Program) -> Symbols:
        shards = program.collective.num_shards
        return cls(program.collective, program.chunks, (shards * program.chunks).bit_length())

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def values(self, shard: int, contributions: int) -> list[int]:
        """Return the values of all chunks of a shard with these contributions."""
        first = (contributions << self.width) + shard * self.chunks + 1
        return list(range(first, first + self.chunks))

    def identity(self, value: int) -> str:
        """Return ``shard 2, chunk 1``."""
        shard, chunk = divmod((value & self.mask) - 1, self.chunks)
        name = f"shard {shard}"
        if self.collective.kind == "alltoall":
            name += " (from rank {} to rank {})".format(*self.collective.pair(shard))
        return f"{name}, chunk {chunk}" if self.chunks > 1 else name

    def name(self, value: int) -> str:
        """Return ``shard 2, chunk 1 of ranks 0-2`` (only the identity if the collective does not reduce)."""
        if value == 0:
            return "no data"
        return self.identity(value) + (f" of {self.ranks(value)}" if self.collective.reduces else "")

    def ranks(self, value: int) -> str:
        """Return the ranks that contribute to a value, as text."""
        bits = value >> self.width
        ranks = [r for r in range(bits.bit_length()) if bits >> r & 1]
        if len(ranks) == self.collective.num_members > 1:
            return f"all {len(ranks)} {'ranks' if self.collective.members is None else 'members'}"
        return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {_spans(ranks)}"


def _spans(numbers: list[int]) -> str:
    """Return ascending numbers in short.

    >>> _spans([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7, 8'
    """
    spans: list[list[int]] = []
    for n in numbers:
        if spans and spans[-1][-1] == n - 1:
            spans[-1].append(n)
        else:
            spans.append([n])
    return ", ".join(f"{s[0]}-{s[-1]}" if len(s) > 2 else ", ".join(map(str, s)) for s in spans)


def _initial(program: Program, where: Layout, symbols: Symbols) -> list[int]:
    memory = [0] * where.total
    for rank in range(program.num_ranks):
        shards = program.collective.shards_at(rank, output=False)
        slots = program.collective.input_slots(rank, shards)
        base = int(where.base[rank, Buffer.INPUT])
        for shard, slot in zip(shards[slots >= 0].tolist(), slots[slots >= 0].tolist(), strict=True):
            at = base + slot * program.chunks
            memory[at : at + program.chunks] = symbols.values(shard, 1 << rank)
    return memory


class _MistakeError(Exception):
    """Chunk ``chunk`` of an instruction cannot be computed from ``mine`` and ``other``."""

    def __init__(self, chunk: int, one: int, other: int):
        super().__init__()
        self.chunk, self.one, self.other = chunk, one, other


@frozen(eq=False)
class Outcome:
    """The memory at the end, or the first mistake."""

    memory: list[int]
    problem: str = ""


def evaluate(program: Program, where: Layout, order: Array, partner: Array) -> Outcome:
    """Execute instructions in ``order`` on symbols; ``partner`` is the matching send of each receive.

    It stops at the first read of an unwritten location, and at the first reduction of different chunks, or of values
    with a common contribution unless the operation is idempotent.
    """
    symbols = Symbols.of(program)
    memory = _initial(program, where, symbols)
    src, dst = (column.tolist() for column in locations(program, where))
    opcode, count, partner_of = program.opcode.tolist(), program.count.tolist(), partner.tolist()
    kinds = [(op.reads_src, op.reads_dst, op.receives, op.writes_dst, op.sends) for op in Opcode]
    is_idempotent = program.collective.idempotent
    sent: dict[int, list[int]] = {}
    for i in order.tolist():
        reads, accumulates, receives, writes, sends = kinds[opcode[i]]
        size, at = count[i], dst[i]
        try:
            value = _read(memory, src[i], size) if reads else []
            if accumulates:
                value = _combine(value, _read(memory, at, size), symbols.mask, is_idempotent)
            elif receives:
                other = sent.pop(partner_of[i])
                value = _combine(value, other, symbols.mask, is_idempotent) if reads else other
        except _MistakeError as mistake:
            return Outcome(memory, _explain(program, where, symbols, i, mistake))
        if writes:
            memory[at : at + size] = value
        if sends:
            sent[i] = value
    return Outcome(memory)


def identities(program: Program, where: Layout, order: Array, partner: Array) -> list[int] | None:
    """Return the chunks that are sent (shard * chunks + chunk, from 1), message by message; None if an instruction
    reads an unwritten location.
    """
    symbols = Symbols.of(program)
    memory = [value & symbols.mask for value in _initial(program, where, symbols)]
    src, dst = (column.tolist() for column in locations(program, where))
    opcode, count, partner_of = program.opcode.tolist(), program.count.tolist(), partner.tolist()
    kinds = [(op.reads_src, op.receives, op.writes_dst, op.sends) for op in Opcode]
    sent: dict[int, list[int]] = {}
    for i in order.tolist():
        reads, receives, writes, sends = kinds[opcode[i]]
        size, at = count[i], dst[i]
        value = memory[src[i] : src[i] + size] if reads else sent[partner_of[i]] if receives else []
        if 0 in value:
            return None
        if writes:
            memory[at : at + size] = value
        if sends:
            sent[i] = value
    return [identity for i in sorted(sent) for identity in sent[i]]


def _read(memory: list[int], at: int, size: int) -> list[int]:
    value = memory[at : at + size]
    if 0 in value:
        raise _MistakeError(at + value.index(0), 0, 0)
    return value


def _combine(one: list[int], other: list[int], mask: int, is_idempotent: bool) -> list[int]:
    """Return the reduction of two values; if ``is_idempotent``, a rank may contribute to both."""
    result: list[int] = []
    for a, b in zip(one, other, strict=True):
        # equal identities and disjoint contributions: the common bits are exactly the identity
        if not a & b == a & mask == b & mask and not (is_idempotent and a & mask == b & mask):
            raise _MistakeError(len(result), a, b)
        result.append(a | b)
    return result


def _explain(program: Program, where: Layout, symbols: Symbols, instruction: int, mistake: _MistakeError) -> str:
    actor, a, b = doing(program, instruction), mistake.one, mistake.other
    if a == 0:
        return f"{actor} reads {where.name(program, mistake.chunk)}, which no instruction has written"
    what = f"{actor}, chunk {mistake.chunk} of its {program.count[instruction]}, reduces"
    if (a ^ b) & symbols.mask:
        return f"{what} {symbols.name(a)} with {symbols.name(b)}, which is another chunk"
    twice = a & b
    verb = "contributes" if (twice >> symbols.width).bit_count() == 1 else "contribute"
    return (
        f"{what} {symbols.identity(a)} of {symbols.ranks(a)} with that of {symbols.ranks(b)}: "
        f"{symbols.ranks(twice)} {verb} twice"
    )


def postcondition(program: Program, where: Layout, memory: list[int], order: Array, partner: Array) -> list[str]:
    """Return where the output is not the collective's result: the first wrong chunk of each shard, and its writer."""
    symbols, collective = Symbols.of(program), program.collective
    everyone = sum(1 << rank for rank in collective.ranks.tolist())
    named = collective.contributors is not None
    problems: list[str] = []
    for rank in range(program.num_ranks):
        shards = collective.shards_at(rank, output=True)
        slots = collective.output_slots(rank, shards)
        for shard, slot in zip(shards[slots >= 0].tolist(), slots[slots >= 0].tolist(), strict=True):
            source = collective.source(shard)
            whole = sum(1 << one for one in collective.contributions(shard)) if named else everyone
            promised = symbols.values(shard, whole if source is None else 1 << source)
            at = int(where.base[rank, Buffer.OUTPUT]) + slot * program.chunks
            found = memory[at : at + program.chunks]
            if found != promised and len(problems) < MOST:
                k = next(k for k in range(program.chunks) if found[k] != promised[k])
                wrong = f"must hold {symbols.name(promised[k])}, but holds {symbols.name(found[k])}"
                origin = _origin(program, where, at + k, order, partner)
                problems.append(f"{where.name(program, at + k)} {wrong}{origin}")
    return problems


def _origin(program: Program, where: Layout, address: int, order: Array, partner: Array) -> str:
    """Return which instruction wrote an address last, and which one sent the data, as text."""
    dst = locations(program, where)[1]
    writes = program.writes_dst
    covers = writes & (dst <= address) & (address < dst + program.count)
    writers = order[covers[order]]
    if not len(writers):
        return ": no instruction writes it"
    last = int(writers[-1])
    sender = int(partner[last])
    sent = f", sent by {doing(program, sender)}" if sender >= 0 else ""
    return f": last written by {doing(program, last)}{sent}"
