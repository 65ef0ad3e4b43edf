"""Sums that read the inputs of peers, in place of messages that bring them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided, Transport
from collc.ir.program import Buffer

from .addresses import bases
from .rows import OPCODE, program_of, rows_of
from .steps import Piece, Step, steps_of, to_rows

__all__ = ["pulled"]

_SUMS = {Op.RE: Op.RRE, Op.RES: Op.RRES}


def pulled(program: OneSided) -> OneSided:
    """Return the program in which ranks read the inputs that their peers would first put into scratch.

    That saves a put, a signal and a wait in every block. The program stays unchanged unless all ranks begin with such
    puts, all of them are only added, and no other operation writes what the sums read.
    """
    opcode = rows_of(program).fixed[:, OPCODE]
    start = program.block_start.tolist()
    if not len(opcode) or program.packets or any(opcode[low] != Op.PUT for low in start[:-1] if low < len(opcode)):
        return program
    rows = rows_of(program)
    steps = steps_of(rows, [0] * len(rows), [0] * len(rows))
    blocks = [steps[low:high] for low, high in pairwise(start)]
    heads = [_head(block) for block in blocks]
    if not all(heads) or sum(map(len, blocks)) != len(steps):
        return program
    rest = [one for block, head in zip(blocks, heads, strict=True) for one in block[head:]]
    sources = {
        target: source for block, head in zip(blocks, heads, strict=True) for one in block[:head]
        for source, target in zip(one.src, one.dst, strict=True) if one.op is Op.PUT
    }  # fmt: skip
    if not _only_added(rest, sources) or not _undisturbed(program, rest, sources):
        return program
    for one in rest:
        if any(piece in sources for piece in one.src):
            one.src = [sources.get(piece, piece) for piece in one.src]
            one.become(_SUMS[one.op])
            one.fixed = [*one.fixed[:2], int(Transport.MEMORY), *one.fixed[3:]]
    return program_of(program, to_rows(rest))


def _head(block: Sequence[Step]) -> int:
    """Return how many operations a block begins with that only put input into scratch, signal and wait; 0 if others."""
    at = 0
    for kinds in ((Op.PUT,), (Op.NOP,), (Op.SIGNAL,), (Op.WAIT,), (Op.NOP,)):
        first = at
        while at < len(block) and block[at].op in kinds:
            at += 1
        if at == first:
            return 0
    puts = [one for one in block[:at] if one.op is Op.PUT]
    given = all(piece.buffer == Buffer.INPUT for one in puts for piece in one.src)
    aside = all(piece.buffer == Buffer.SCRATCH for one in puts for piece in one.dst)
    signals, waits = (
        sorted(link for one in block[:at] if one.op is kind for link in one.links) for kind in (Op.SIGNAL, Op.WAIT)
    )
    peers = len({piece.rank for one in puts for piece in one.dst})
    memory = all(one.transport in (Transport.LOCAL, Transport.MEMORY) for one in block[:at])
    return at if given and aside and memory and signals == waits and len(signals) == peers else 0


def _only_added(rest: Sequence[Step], sources: dict[Piece, Piece]) -> bool:
    """Return whether each message is read as a whole by one sum, whose other operand comes first."""
    read = [piece for one in rest for piece in one.src if piece in sources]
    sums = [one for one in rest if any(piece in sources for piece in one.src)]
    plain = all(
        one.op in _SUMS and one.src[0] not in sources and all(piece in sources for piece in one.src[1:])
        for one in sums
    )  # fmt: skip
    touched = sum(one.touches([slot]) for slot in sources for one in rest) if len(sources) < 5000 else -1
    return plain and len(read) == len(set(read)) == len(sources) == touched


def _undisturbed(program: OneSided, rest: Sequence[Step], sources: dict[Piece, Piece]) -> bool:
    """Return whether what sums read of peers is written only by the sum itself, or later in its block."""
    base = bases(program).tolist()

    def span(piece: Piece) -> tuple[int, int]:
        first = base[piece.rank][piece.buffer]
        return first + piece.low, first + piece.high

    written: dict[int, list[tuple[tuple[int, int], int]]] = {}
    for k, one in enumerate(rest):
        for piece in one.dst:
            written.setdefault(piece.rank, []).append((span(piece), k))
    return all(
        (writer == k and to == span(sources[piece])) or (writer > k and rest[writer].fixed[0] == one.fixed[0])
        for k, one in enumerate(rest) for piece in one.src if piece in sources
        for to, writer in written.get(sources[piece].rank, ())
        if to[0] < span(sources[piece])[1] and span(sources[piece])[0] < to[1]
    )  # fmt: skip
