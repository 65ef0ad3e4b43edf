"""The document model -> the Program it makes the runtimes execute, one instruction for each step."""

from __future__ import annotations

from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.collective import ROOTED, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.program import BLOCK_COLUMNS, Buffer, Opcode, Program

from .consume import Operation, operations, target
from .model import KINDS, OPCODES, Algorithm, Gpu, Threadblock

__all__ = ["Loaded", "collective_of", "to_program"]

_BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])


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
    gpus = [(gpu, sorted(gpu.threadblocks, key=_id)) for gpu in sorted(algorithm.gpus, key=_id)]
    blocks = [(gpu.id, block.send, block.recv, block.chan) for gpu, in_order in gpus for block in in_order]
    steps = [step for _, in_order in gpus for block in in_order for step in block.steps]
    count = [step.cnt for step in steps]
    waits: dict[int, list[int]] = {}
    shared: list[tuple[int, int]] = []
    first, starts = 0, [0]
    for gpu, in_order in gpus:
        start = {}
        for block in in_order:
            start[block.id] = first
            first += len(block.steps)
            starts.append(first)
        _take_over(gpu, start, count, waits)
        if collective.kind == "broadcast" and gpu.id != collective.root and _in_place_only(algorithm):
            shared.append((starts[-1 - len(in_order)], first))
    opcode = np.array([OPCODES[step.type] for step in steps], dtype=np.int64)
    columns: dict[str, Any] = {"opcode": opcode, "count": np.array(count, dtype=np.int64) * scale}
    columns["count"][opcode == Opcode.NOP] = 0
    for side, used in (("src", _READS[opcode]), ("dst", _WRITES[opcode])):
        buffer = np.array([_BUFFERS[getattr(step, f"{side}buf")] for step in steps], dtype=np.int64)
        for low, high in shared:
            buffer[low:high][buffer[low:high] == Buffer.INPUT] = Buffer.OUTPUT
        offset = np.array([getattr(step, f"{side}off") for step in steps], dtype=np.int64) * scale
        columns[f"{side}_buffer"], columns[f"{side}_offset"] = np.where(used, buffer, 0), np.where(used, offset, 0)
    dep_start = np.zeros(len(steps) + 1, dtype=np.int64)
    for row, found in waits.items():
        dep_start[row + 1] = len(found)
    program = Program(
        collective, chunks, [gpu.s_chunks * scale for gpu, _ in gpus],
        **{name: [row[i] for row in blocks] for i, name in enumerate(BLOCK_COLUMNS)}, block_start=starts, **columns,
        dep_start=np.cumsum(dep_start), deps=[dep for row in sorted(waits) for dep in waits[row]],
        name=algorithm.name or "collective", scheduler="msccl-xml",
    )  # fmt: skip
    return Loaded(program, scale)


def _id(element: Gpu | Threadblock) -> int:
    return element.id


def _in_place_only(algorithm: Algorithm) -> bool:
    return bool(algorithm.inplace) and not algorithm.outofplace


def _take_over(gpu: Gpu, start: dict[int, int], count: list[int], waits: dict[int, list[int]]) -> None:
    """Note what the device makes of a rank's steps: counts of merged ones, and for each row the rows it waits for."""
    made = {block.id: operations(block) for block in gpu.threadblocks}
    flagged = {number: [op for op in ops if op.flagged] for number, ops in made.items()}
    for block in gpu.threadblocks:
        first = start[block.id]
        for operation in made[block.id]:
            if operation.waits:
                ends = {_end(gpu, flagged, wait.block, wait.number) for wait in operation.waits}
                found = sorted(e for e in ends if e is not None and e[0] != block.id)
                waits[first + operation.rows[0]] = [start[b] + row for b, row in found]
            if len(operation.rows) > 1:
                for row in operation.rows:
                    count[first + row] = block.steps[operation.rows[-1]].cnt


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
