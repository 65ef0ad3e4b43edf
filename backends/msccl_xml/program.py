"""The document model -> the Program that the runtimes execute, one instruction for each step."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct_pairs
from collc.ir.collective import CUSTOM, ROOTED, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.frozen import frozen
from collc.ir.opcodes import USES
from collc.ir.program import BLOCK_COLUMNS, Buffer, Opcode, Program
from collc.ir.ragged import group_starts, starts

from .consume import Operation, device, ending_operation, executed
from .model import KINDS, Algorithm, Gpu, Threadblock
from .steps import BUFFERS, COUNT, DST, DST_OFFSET, SRC, SRC_OFFSET, opcode_of

__all__ = ["Loaded", "collective_of", "to_program"]

_BUFFER_OF = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
_BUFFERS = np.array([_BUFFER_OF[letter] for letter in BUFFERS], dtype=np.int64)


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
    found = device(algorithm)
    if found is None:
        tables = [block.steps.table for _, in_order in gpus for block in in_order]
        table = np.concatenate(tables).astype(np.int64) if tables else algorithm.table
        start = starts([len(one) for one in tables])
        count, dependent, dependency = _consumed(gpus, table, start)
    else:
        table, start = algorithm.table, algorithm.starts
        count = table[:, COUNT].astype(np.int64)
        dependent, dependency = distinct_pairs(found.waiting, found.ending)
    opcode = opcode_of(table)
    columns: Columns = {"opcode": opcode, "count": np.where(opcode == Opcode.NOP, 0, count * scale)}
    moved = _input_is_output(algorithm, collective, gpus, start)
    for (side, used_by), (buffer, offset) in zip(USES.items(), ((SRC, SRC_OFFSET), (DST, DST_OFFSET)), strict=True):
        used, where = used_by.take(opcode), _BUFFERS.take(table[:, buffer])
        where = np.where(moved & (where == Buffer.INPUT), Buffer.OUTPUT, where)
        columns[f"{side}_buffer"] = np.where(used, where, 0)
        columns[f"{side}_offset"] = np.where(used, table[:, offset].astype(np.int64) * scale, 0)
    program = Program(
        collective, chunks, [gpu.s_chunks * scale for gpu, _ in gpus],
        **{name: [row[i] for row in blocks] for i, name in enumerate(BLOCK_COLUMNS)}, block_start=start, **columns,
        dep_start=group_starts(dependent, len(table)), deps=dependency, name=algorithm.name or "collective",
        scheduler="msccl-xml", placed=False,
    )  # fmt: skip
    return Loaded(program, scale)


def _id(element: Gpu | Threadblock) -> int:
    return element.id


def _in_place_only(algorithm: Algorithm) -> bool:
    return bool(algorithm.inplace) and not algorithm.outofplace


def _input_is_output(
    algorithm: Algorithm, collective: Collective, gpus: Sequence[tuple[Gpu, list[Threadblock]]], start: Array
) -> Array:
    """Return the steps for which `i` is the output: those of ranks without an input, in files for calls in place."""
    found = np.zeros(int(start[-1]), dtype=bool)
    if collective.kind != "broadcast" or not _in_place_only(algorithm):
        return found
    at = 0
    for gpu, in_order in gpus:
        found[start[at] : start[at + len(in_order)]] = gpu.id != collective.root
        at += len(in_order)
    return found


def _consumed(gpus: Sequence[tuple[Gpu, list[Threadblock]]], table: Array, start: Array) -> tuple[Array, Array, Array]:
    """Return the counts of steps, and their dependencies as pairs in order, as the device executes them."""
    count = table[:, COUNT].tolist()
    dependencies: dict[int, list[int]] = {}
    at = 0
    for gpu, in_order in gpus:
        first = {block.id: int(start[at + k]) for k, block in enumerate(in_order)}
        _consume(gpu, first, count, dependencies)
        at += len(in_order)
    pairs = np.array([(row, dep) for row in sorted(dependencies) for dep in dependencies[row]], dtype=np.int64).reshape(
        -1, 2
    )
    return np.array(count, dtype=np.int64), pairs[:, 0], pairs[:, 1]


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
