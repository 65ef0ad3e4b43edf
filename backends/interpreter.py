"""Executes programs with real numbers: the results of a runtime, and the correct results.

Chunks need not divide the elements: of P chunks of a vector of E elements, chunk k has elements ``k * E // P`` to
``(k + 1) * E // P``. A chunk has the same length in all places. If shards differ in size, each is divided so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NoReturn, TypeAlias

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import error, nearest
from collc.ir.layout import Layout, layout, locations
from collc.ir.machine import Execution, connections, execute
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import Check, Report
from collc.ir.verify.program import verify_form

__all__ = ["OPERATIONS", "reference", "run"]
Operation: TypeAlias = Callable[[Array, Array], Array]

#: operation -> function that combines two arrays
OPERATIONS: dict[str, Operation] = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}

#: collectives whose chunks divide the whole vector; the others divide each rank's block
_CUT = frozenset({"allreduce", "reduce", "broadcast"})


def run(
    program: Program,
    inputs: Sequence[Array | None],
    *,
    op: str | Operation | None = None,
    inplace: bool = False,
    fifo_depth: int | None = None,
    split: int | None = None,
    counts: Sequence[int] | None = None,
) -> list[Array]:
    """Execute a program and return every rank's output (of length 0 if the collective gives it none).

    ``inputs`` has a one-dimensional array for every rank, all of one dtype; it is None or empty if the collective takes
    nothing from the rank. Arrays have any length for allreduce, reduce and broadcast (the whole vector), and for
    allgather and gather (a rank's block). For reduce-scatter, scatter and alltoall they are N blocks of equal length.
    If shards differ in size, or the collective is custom, shard v has ``counts[v]`` elements (default: its weight, or
    as many as all others; any counts are right), and an input is the rank's shards one after the other. The function
    does not change inputs. ``op`` is a name (default: that of the collective) or a function of two arrays.
    ``fifo_depth`` and ``split`` are those of :func:`collc.ir.machine.execute`; the run follows its order.

    Raises CollcError if inputs do not fit (C0207), if the operation is unknown (C0206), or if the program is not well
    formed, deadlocks, or reads unwritten memory (C0401).
    """
    verify_form(program).require()
    combine = _operation(program.collective.op if op is None else op)
    cut = _cut(program.collective, program.chunks, inputs, counts)
    execution = execute(program, fifo_depth, split)
    if execution.deadlock:
        _fail(program, "deadlock", execution.deadlock.describe(program))
    where = layout(program, inplace)
    memory = _initial(program, where, cut, inputs)
    _Run(program, where, memory, combine).all(execution)
    return _outputs(program, where, cut, memory)


def reference(
    collective: Collective, inputs: Sequence[Array | None], op: str | Operation | None = None,
    counts: Sequence[int] | None = None,
) -> list[Array]:  # fmt: skip
    """Return the correct output of every rank, from the definition of the collective.

    Inputs and outputs are as in :func:`run`. It reduces in the order of ranks.
    """
    combine = _operation(collective.op if op is None else op)
    cut = _cut(collective, 1, inputs, counts)
    shards: dict[int, Array] = {}
    for shard in range(collective.num_shards):
        ranks = np.flatnonzero(collective.holds(np.arange(collective.num_ranks), shard)).tolist()
        pieces = [_array(inputs, r)[cut.span(r, int(collective.input_slots(r, shard)))] for r in ranks]
        shards[shard] = reduce(combine, pieces)
    outputs = []
    for rank in range(collective.num_ranks):
        slots = collective.output_slots(rank, np.arange(collective.num_shards))
        present = np.flatnonzero(slots >= 0)
        parts = [shards[s] for s in present[np.argsort(slots[present])].tolist()]
        outputs.append(np.concatenate(parts) if parts else np.zeros(0, cut.dtype))
    return outputs


def _operation(op: str | Operation) -> Operation:
    if callable(op):
        return op
    if op not in OPERATIONS:
        raise error("C0206", f"unknown operation `{op}`", hint=nearest(op, OPERATIONS))
    return OPERATIONS[op]


def _array(inputs: Sequence[Array | None], rank: int) -> Array:
    given = inputs[rank]
    assert given is not None
    return given


def _fail(program: Program, check: str, detail: str) -> NoReturn:
    Report("program", program.collective.kind, program.num_ranks, (Check(check, False, detail),)).require()
    raise AssertionError("a failed check raises")


@attrs.frozen
class _Cut:
    """The division of buffers into chunks. ``elements`` counts the whole vector if ``whole``, else one block."""

    whole: bool
    shards: int
    chunks: int
    elements: int
    dtype: np.dtype[Any]  # Any: the dtype of the inputs

    @classmethod
    def of(cls, collective: Collective, chunks: int, inputs: Sequence[Array | None]) -> _Cut:
        ranks, whole = collective.num_ranks, collective.kind in _CUT
        if len(inputs) != ranks:
            raise error("C0207", f"{len(inputs)} inputs for {ranks} ranks")
        arrays = [_checked(collective, rank, array) for rank, array in enumerate(inputs)]
        lengths = {len(a) for a in arrays if a is not None}
        if len(lengths) > 1:
            raise error("C0207", f"inputs have different lengths: {', '.join(map(str, sorted(lengths)))}")
        dtype = _dtype(arrays)
        length = lengths.pop()
        blocks = 1 if whole else collective.input_shards
        if length % blocks:
            raise error("C0207", f"an input of {length} elements is not {blocks} blocks of equal size")
        return cls(whole, ranks, chunks, length // blocks, dtype)

    def span(self, rank: int, offset: int) -> slice:
        """Return the elements of the chunk at an offset of an input buffer."""
        if self.whole:
            pieces = self.shards * self.chunks
            return slice(offset * self.elements // pieces, (offset + 1) * self.elements // pieces)
        block, chunk = divmod(offset, self.chunks)
        low, high = (block * self.elements + k * self.elements // self.chunks for k in (chunk, chunk + 1))
        return slice(low, high)


@attrs.frozen
class _UnevenCut:
    """The division of inputs whose shards differ in size: ``starts[rank][slot]`` is the first element of a shard, and
    the next entry its end.
    """

    chunks: int
    starts: list[list[int]]
    dtype: np.dtype[Any]  # Any: the dtype of the inputs

    @classmethod
    def of(
        cls, collective: Collective, chunks: int, inputs: Sequence[Array | None], counts: Sequence[int]
    ) -> _UnevenCut:  # fmt: skip
        if len(inputs) != collective.num_ranks:
            raise error("C0207", f"{len(inputs)} inputs for {collective.num_ranks} ranks")
        if len(counts) != collective.num_shards or min(counts) < 0:
            raise error("C0207", f"found counts {list(counts)}, needed {collective.num_shards} of at least 0")
        arrays = [_checked(collective, rank, array) for rank, array in enumerate(inputs)]
        shards = np.arange(collective.num_shards)
        found = list[list[int]]()
        for rank, array in enumerate(arrays):
            slots = collective.input_slots(rank, shards)
            ordered = shards[slots >= 0][np.argsort(slots[slots >= 0])].tolist()
            found.append([0, *np.cumsum([counts[shard] for shard in ordered]).tolist()])
            if array is not None and len(array) != found[-1][-1]:
                raise error("C0207", f"the input of rank {rank} has {len(array)} elements, needed {found[-1][-1]}")
        return cls(chunks, found, _dtype(arrays))

    def span(self, rank: int, offset: int) -> slice:
        """Return the elements of the chunk at an offset of a rank's input buffer."""
        slot, chunk = divmod(offset, self.chunks)
        first, end = self.starts[rank][slot : slot + 2]
        low, high = (first + k * (end - first) // self.chunks for k in (chunk, chunk + 1))
        return slice(low, high)


def _cut(
    collective: Collective, chunks: int, inputs: Sequence[Array | None], counts: Sequence[int] | None
) -> _Cut | _UnevenCut:  # fmt: skip
    if counts is None and collective.weights is None and collective.kind != CUSTOM:
        return _Cut.of(collective, chunks, inputs)
    return _UnevenCut.of(collective, chunks, inputs, _counts(collective, inputs) if counts is None else counts)


def _counts(collective: Collective, inputs: Sequence[Array | None]) -> Sequence[int]:
    """Return the elements of each shard: its weight, or equal counts that add up to all elements."""
    if collective.weights is not None:
        return collective.weights
    elements = sum(np.size(array) for array in inputs if array is not None)
    there = int(collective.contribution_counts.sum())
    if elements % there:
        raise error("C0207", f"{elements} elements are not {there} shards of equal size")
    return [elements // there] * collective.num_shards


def _dtype(arrays: Sequence[Array | None]) -> np.dtype[Any]:  # Any: the dtype of the inputs
    dtypes = {a.dtype for a in arrays if a is not None}
    if len(dtypes) > 1:
        raise error("C0207", f"inputs have different types: {', '.join(sorted(map(str, dtypes)))}")
    return dtypes.pop()


def _checked(collective: Collective, rank: int, array: Array | None) -> Array | None:
    """Return the input of a rank, or None if the collective takes none from it."""
    takes = (collective.input_slots(rank, np.arange(collective.num_shards)) >= 0).any()
    if not takes:
        if array is not None and np.size(array):
            raise error("C0207", f"rank {rank} has an input, but {collective.kind} takes none from it")
        return None
    if array is None:
        raise error("C0207", f"rank {rank} has no input, but {collective.kind} takes one from it")
    if np.ndim(array) != 1:
        raise error("C0207", f"the input of rank {rank} has {np.ndim(array)} dimensions, needed 1")
    return np.asarray(array)


def _initial(
    program: Program, where: Layout, cut: _Cut | _UnevenCut, inputs: Sequence[Array | None]
) -> list[Array | None]:
    memory: list[Array | None] = [None] * where.total
    for rank in range(program.num_ranks):
        base, size = int(where.base[rank, Buffer.INPUT]), int(where.size[rank, Buffer.INPUT])
        for offset in range(size):
            memory[base + offset] = _array(inputs, rank)[cut.span(rank, offset)]
    return memory


def _outputs(program: Program, where: Layout, cut: _Cut | _UnevenCut, memory: list[Array | None]) -> list[Array]:
    outputs = []
    for rank in range(program.num_ranks):
        base, size = int(where.base[rank, Buffer.OUTPUT]), int(where.size[rank, Buffer.OUTPUT])
        parts = []
        for address in range(base, base + size):
            value = memory[address]
            if value is None:
                _fail(program, "postcondition", f"no instruction has written {where.name(program, address)}")
            parts.append(value)
        outputs.append(np.concatenate(parts) if parts else np.zeros(0, cut.dtype))
    return outputs


class _Run:
    """One run: ``memory`` has an array for every address. The run replaces arrays and never changes them."""

    def __init__(self, program: Program, where: Layout, memory: list[Array | None], combine: Operation):
        self.program, self.where, self.memory, self.combine = program, where, memory, combine
        links = connections(program)
        self.source, self.sink = links.inward[program.block].tolist(), links.outward[program.block].tolist()
        self.fifos: list[deque[list[Array]]] = [deque() for _ in range(len(links))]
        self.src, self.dst = (column.tolist() for column in locations(program, where))
        self.count = program.count.tolist()
        self.opcode = [Opcode(op) for op in program.opcode.tolist()]

    def all(self, execution: Execution) -> None:
        """Repeat an execution, primitive by primitive."""
        for i, primitive in execution.order.tolist():
            size = self.count[i] if execution.split is None else execution.split
            low = primitive * size
            self.do(i, low, min(low + size, self.count[i]))

    def do(self, i: int, low: int, high: int) -> None:
        """Do chunks ``low`` to ``high`` (exclusive) of an instruction."""
        op, src, dst = self.opcode[i], self.src[i], self.dst[i]
        value = self.read(i, src + low, src + high) if op.reads_src else []
        if op.receives or op.reads_dst:
            other = self.fifos[self.source[i]].popleft() if op.receives else self.read(i, dst + low, dst + high)
            value = [self.add(i, a, b) for a, b in zip(value, other, strict=True)] if op.reduces else other
        if op.writes_dst:
            self.memory[dst + low : dst + high] = value
        if op.sends:
            self.fifos[self.sink[i]].append(value)

    def add(self, i: int, value: Array, other: Array) -> Array:
        if len(value) != len(other):  # arrays of length 1 would broadcast
            what = f"reduces chunks of {len(value)} and {len(other)} elements"
            _fail(self.program, "single reduction", f"{self.program.place(i)} {what}")
        return self.combine(value, other)

    def read(self, i: int, low: int, high: int) -> list[Array]:
        found = []
        for address in range(low, high):
            value = self.memory[address]
            if value is None:
                name = self.where.name(self.program, address)
                _fail(self.program, "reads", f"{self.program.place(i)} reads {name}, which no instruction has written")
            found.append(value)
        return found
