"""The document model -> the Program it makes the runtimes execute, one instruction for each step."""

from __future__ import annotations

from math import lcm

import attrs

from collc.ir.collective import ROOTED, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.program import Buffer, Opcode, Program

from .consume import Operation, operations, target
from .model import KINDS, OPCODES, Algorithm, Gpu, Step

__all__ = ["Loaded", "collective_of", "to_program"]

_BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
_SHARED = {**_BUFFERS, "i": Buffer.OUTPUT}

#: An instruction as Program.build takes it, its waits still (threadblock, step row) of the same rank.
_Row = tuple[Opcode, Buffer, int, Buffer, int, int, list[tuple[int, int]]]


@attrs.frozen
class Loaded:
    """A program and how many of its chunks one chunk of the file is.

    A Program cuts shards in whole chunks; a file may cut the whole buffer in any number, so each of its
    chunks becomes ``scale`` of the program's, moved together.
    """

    program: Program
    scale: int


def collective_of(algorithm: Algorithm, told: str | None = None, root: int = 0) -> Collective:
    """Return the collective the file's ``coll`` names, or the one ``told``; rooted ones with this root.

    Raises C0608 where there is nothing to verify against: ``custom`` and other names no collective has.
    """
    kind = told or KINDS.get(algorithm.coll)
    if kind is None:
        hint = nearest(algorithm.coll, KINDS) or "name the collective it performs in `coll`, or say it when verifying"
        raise error(
            "C0608", f"coll=\"{algorithm.coll}\" names no collective, so there is nothing to verify the file against",
            notes=[f"collectives: {', '.join(KINDS)}"], hint=hint,
        )  # fmt: skip
    return Collective(kind, algorithm.ngpus, root if kind in ROOTED else None)


def to_program(algorithm: Algorithm, collective: Collective | None = None) -> Loaded:
    """Return what the runtimes execute of a file without fatal findings (see :func:`.structure.check_structure`).

    Buffers ``i``, ``o``, ``s`` become input, output, scratch as they stand; a file for in-place use that
    touches one of ``i`` and ``o`` only is right where the program is, with input and output at one address. In a
    broadcast for calls in place only, whose ranks but the root have no input, ``i`` there is the output.
    Instruction k of threadblock t is step k, in document order, of ``<tb id="t">``; folded `nop` steps stay
    as such, without their waits. A wait that never ends is taken for a wait for the step it names
    (``check_structure`` finds it).
    """
    collective = collective or collective_of(algorithm)
    shards = max(collective.input_shards, collective.output_shards)
    scale = lcm(algorithm.nchunksperloop, shards) // algorithm.nchunksperloop
    chunks = algorithm.nchunksperloop * scale // shards
    blocks: list[tuple[int, int, int, int]] = []
    rows: list[list[tuple[Opcode, Buffer, int, Buffer, int, int, list[int]]]] = []
    first = 0
    for gpu in sorted(algorithm.gpus, key=lambda g: g.id):
        in_order = sorted(gpu.threadblocks, key=lambda b: b.id)
        blocks += [(gpu.id, block.send, block.recv, block.chan) for block in in_order]
        start = {}
        for block in in_order:
            start[block.id] = first
            first += len(block.steps)
        shared = collective.kind == "broadcast" and gpu.id != collective.root and _in_place_only(algorithm)
        for listed in _rank_rows(gpu, scale, _SHARED if shared else _BUFFERS):
            rows.append([(*row[:6], [start[b] + r for b, r in row[6]]) for row in listed])
    scratch = [gpu.s_chunks * scale for gpu in sorted(algorithm.gpus, key=lambda g: g.id)]
    program = Program.build(
        collective, chunks, scratch, blocks, rows, name=algorithm.name or "collective", scheduler="msccl-xml"
    )
    return Loaded(program, scale)


def _in_place_only(algorithm: Algorithm) -> bool:
    return bool(algorithm.inplace) and not algorithm.outofplace


def _rank_rows(gpu: Gpu, scale: int, buffers: dict[str, Buffer]) -> list[list[_Row]]:
    """Return the instructions of each threadblock of a rank, by id."""
    made = {block.id: operations(block) for block in gpu.threadblocks}
    flagged = {number: [op for op in ops if op.flagged] for number, ops in made.items()}
    result = []
    for block in sorted(gpu.threadblocks, key=lambda b: b.id):
        waits: dict[int, list[tuple[int, int]]] = {}
        counts: dict[int, int] = {}
        for operation in made[block.id]:
            ends = [_end(gpu, flagged, wait.block, wait.number) for wait in operation.waits]
            waits[operation.rows[0]] = sorted({e for e in ends if e is not None and e[0] != block.id})
            for row in operation.rows:
                counts[row] = block.steps[operation.rows[-1]].cnt
        result.append(
            [_row(step, counts.get(row, 0), scale, waits.get(row, []), buffers) for row, step in enumerate(block.steps)]
        )
    return result


def _end(gpu: Gpu, flagged: dict[int, list[Operation]], block: int, number: int) -> tuple[int, int] | None:
    """Return the (threadblock, row) a wait ends with."""
    if block not in flagged:
        return None
    reached = target(flagged[block], number)
    if reached is not None:
        return block, reached.rows[-1]
    steps = next(b.steps for b in gpu.threadblocks if b.id == block)
    named = next((row for row, step in enumerate(steps) if step.s == number), None)
    return None if named is None else (block, named)


def _row(step: Step, count: int, scale: int, waits: list[tuple[int, int]], buffers: dict[str, Buffer]) -> _Row:
    """Return a step as an instruction; locations its type does not use are 0, 0."""
    opcode = OPCODES[step.type]
    src = (buffers[step.srcbuf], step.srcoff * scale) if opcode.reads_src else (Buffer.INPUT, 0)
    dst = (buffers[step.dstbuf], step.dstoff * scale) if opcode.writes_dst else (Buffer.INPUT, 0)
    return (opcode, *src, *dst, count * scale, waits)
