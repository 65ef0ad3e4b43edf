"""The document model -> the Program that the runtimes execute, one instruction for each step."""

from __future__ import annotations

from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Columns
from collc.ir.collective import CUSTOM, ROOTED, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.frozen import frozen
from collc.ir.opcodes import USES
from collc.ir.program import BLOCK_COLUMNS, Buffer, Opcode, Program

from .consume import Operation, ending_operation, executed
from .model import KINDS, OPCODES, Algorithm, Gpu, Threadblock

__all__ = ["Loaded", "collective_of", "to_program"]

_BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}


@frozen
class Loaded:
    """A program, and the number of its chunks in one chunk of the file.

    A Program cuts shards in whole chunks, but a file can cut the whole buffer in any number. So each chunk of the file
    becomes ``scale`` chunks of the program, which move together.
    """

    program: Program
    scale: int


def collective_of(algorithm: Algorithm, kind: str | Collective | None = None, root: int = 0) -> Collective:
    """Return the collective of the file: ``kind``, or else that of its ``coll``, and ``root`` if it needs one.

    A custom collective is given as a whole, because a file does not describe it.

    Raises C0608 if ``coll`` names no collective, such as ``custom``: then there is nothing to verify against.
    """
    if isinstance(kind, Collective):
        return kind
    kind = kind or KINDS.get(algorithm.coll)
    if kind is None:
        known = [f"collectives: {', '.join(KINDS)}"]
        if algorithm.coll == CUSTOM:
            known.append(
                "a custom file does not say what its ranks have and need; collc executes its own as it writes them"
            )
        hint = nearest(algorithm.coll, KINDS) or "set `coll` to the file's collective, or use `--collective`"
        raise error(
            "C0608", f"coll=\"{algorithm.coll}\" names no collective, so there is nothing to verify the file against",
            notes=known, hint=hint,
        )  # fmt: skip
    return Collective(kind, algorithm.ngpus, root if kind in ROOTED else None)


def to_program(algorithm: Algorithm, collective: Collective | None = None) -> Loaded:
    """Return the program that the runtimes execute, of a file without fatal findings of ``check_structure``.

    Buffers ``i``, ``o``, ``s`` become input, output, scratch. A file for in-place use may name only one of ``i`` and
    ``o``: the program has input and output at one address, so it is correct exactly if the file is. In a broadcast for
    calls in place only, ranks other than the root have no input; there ``i`` is the output. Instruction k of
    threadblock t is step k, in document order, of ``<tb id="t">``. Folded `nop` steps stay, without their waits. A wait
    that never ends becomes a dependency on the step that it names (``check_structure`` finds it).
    """
    collective = collective or collective_of(algorithm)
    key = attrs.evolve(collective, size=None, op="sum", dtype="float32")
    if key not in algorithm.loaded:
        algorithm.loaded[key] = _load(algorithm, collective)
    found = algorithm.loaded[key]
    return attrs.evolve(found, program=attrs.evolve(found.program, collective=collective))


def _load(algorithm: Algorithm, collective: Collective) -> Loaded:
    shards = max(collective.input_shards, collective.output_shards)
    scale = lcm(algorithm.nchunksperloop, shards) // algorithm.nchunksperloop
    chunks = algorithm.nchunksperloop * scale // shards
    gpus = [(gpu, sorted(gpu.threadblocks, key=_id)) for gpu in sorted(algorithm.gpus, key=_id)]
    blocks = [(gpu.id, block.send, block.recv, block.chan) for gpu, in_order in gpus for block in in_order]
    steps = [step for _, in_order in gpus for block in in_order for step in block.steps]
    count = [step.cnt for step in steps]
    dependencies: dict[int, list[int]] = {}
    output_only: list[tuple[int, int]] = []
    first, starts = 0, [0]
    for gpu, in_order in gpus:
        start = {}
        for block in in_order:
            start[block.id] = first
            first += len(block.steps)
            starts.append(first)
        _consume(gpu, start, count, dependencies)
        if collective.kind == "broadcast" and gpu.id != collective.root and _in_place_only(algorithm):
            output_only.append((starts[-1 - len(in_order)], first))
    opcode = np.array([OPCODES[step.type] for step in steps], dtype=np.int64)
    columns: Columns = {"opcode": opcode, "count": np.array(count, dtype=np.int64) * scale}
    columns["count"][opcode == Opcode.NOP] = 0
    for side, table in USES.items():
        used = table[opcode]
        buffer = np.array([_BUFFERS[getattr(step, f"{side}buf")] for step in steps], dtype=np.int64)
        for low, high in output_only:
            buffer[low:high][buffer[low:high] == Buffer.INPUT] = Buffer.OUTPUT
        offset = np.array([getattr(step, f"{side}off") for step in steps], dtype=np.int64) * scale
        columns[f"{side}_buffer"], columns[f"{side}_offset"] = np.where(used, buffer, 0), np.where(used, offset, 0)
    dep_start = np.zeros(len(steps) + 1, dtype=np.int64)
    for row, found in dependencies.items():
        dep_start[row + 1] = len(found)
    program = Program(
        collective, chunks, [gpu.s_chunks * scale for gpu, _ in gpus],
        **{name: [row[i] for row in blocks] for i, name in enumerate(BLOCK_COLUMNS)}, block_start=starts, **columns,
        dep_start=np.cumsum(dep_start), deps=[dep for row in sorted(dependencies) for dep in dependencies[row]],
        name=algorithm.name or "collective", scheduler="msccl-xml", placed=False,
    )  # fmt: skip
    return Loaded(program, scale)


def _id(element: Gpu | Threadblock) -> int:
    return element.id


def _in_place_only(algorithm: Algorithm) -> bool:
    return bool(algorithm.inplace) and not algorithm.outofplace


def _consume(gpu: Gpu, start: dict[int, int], count: list[int], dependencies: dict[int, list[int]]) -> None:
    """Set the counts of a rank's merged steps, and the dependencies of its rows, as the device executes them."""
    operations = {block.id: executed(block) for block in gpu.threadblocks}
    flagged = {number: [op for op in ops if op.flagged] for number, ops in operations.items()}
    for block in gpu.threadblocks:
        first = start[block.id]
        for operation in operations[block.id]:
            if operation.waits:
                ends = {_end(gpu, flagged, wait.block, wait.number) for wait in operation.waits}
                found = sorted(e for e in ends if e is not None and e[0] != block.id)
                dependencies[first + operation.rows[0]] = [start[b] + row for b, row in found]
            if len(operation.rows) > 1:
                for row in operation.rows:
                    count[first + row] = block.steps[operation.rows[-1]].cnt


def _end(gpu: Gpu, flagged: dict[int, list[Operation]], block: int, number: int) -> tuple[int, int] | None:
    """Return the (threadblock, row) that ends a wait."""
    if block not in flagged:
        return None
    reached = ending_operation(flagged[block], number)
    if reached is not None:
        return block, reached.rows[-1]
    steps = next(b.steps for b in gpu.threadblocks if b.id == block)
    named = next((row for row, step in enumerate(steps) if step.s == number), None)
    return None if named is None else (block, named)
