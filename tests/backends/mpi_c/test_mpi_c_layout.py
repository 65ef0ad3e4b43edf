"""Scratch layout: for any count, elements end where chunks should; checked by moving elements, without MPI."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import programs
import pytest
from built_programs import direct, ring
from hypothesis import given
from hypothesis import strategies as st
from mpi_c_programs import relay, reused

from collc.backends.mpi_c import scratch
from collc.backends.mpi_c.scratch import Segments, lay_out, span
from collc.ir.collective import KINDS, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.editing import insert
from collc.ir.machine import execute, partners
from collc.ir.program import INSTRUCTION_COLUMNS, Buffer, Opcode, Program
from collc.ir.verify import verify_program

I, O, S = Buffer  # noqa: E741


# ---- a model of what the C engine does with elements


class Elements:
    """Moves elements as the generated C does, one instruction after the other."""

    def __init__(self, program: Program, segments: Segments, count: int):
        self.program, self.segments, self.count, self.span = program, segments, count, span(program)
        c, ranks = program.collective, program.num_ranks
        self.cell = -(-count // self.span)
        self.memory = [
            [self._input(c, r), np.zeros(self.edge(program.output_chunks(r)), np.int64),
             np.zeros(int(segments.cells[r]) * self.cell, np.int64)]
            for r in range(ranks)
        ]  # fmt: skip

    def edge(self, chunk: int) -> int:
        return chunk // self.span * self.count + chunk % self.span * self.count // self.span

    def _input(self, c: Collective, rank: int) -> Any:
        return value(rank, np.arange(self.edge(self.program.input_chunks(rank))))

    def place(self, rank: int, buffer: int, offset: int, chunks: int) -> Any:
        """Return the elements of a location, as a view."""
        origin = 0
        if buffer == Buffer.SCRATCH:
            first, stop = self.segments.first[rank], self.segments.first[rank + 1]
            at = first + np.searchsorted(self.segments.cell[first:stop], offset, side="right") - 1
            cell, chunk = int(self.segments.cell[at]), int(self.segments.chunk[at])
            origin, offset = cell * self.cell - self.edge(chunk), offset + chunk - cell
        begin, end = origin + self.edge(offset), origin + self.edge(offset + chunks)
        whole = self.memory[rank][buffer]
        assert 0 <= begin <= end <= len(whole)
        return whole[begin:end]

    def run(self) -> list[Any]:
        p, messages, sender = self.program, {}, partners(self.program)
        for i in execute(p).finished.tolist():
            op, rank, n = Opcode(p.opcode[i]), int(p.block_rank[p.block[i]]), int(p.count[i])
            src = self.place(rank, p.src_buffer[i], int(p.src_offset[i]), n) if op.reads_src else None
            dst = self.place(rank, p.dst_buffer[i], int(p.dst_offset[i]), n) if op.writes_dst else None
            data = messages.pop(int(sender[i])) if op.receives else src
            assert data is None or dst is None or len(data) == len(dst)
            if op.receives and op.reads_src:
                data = data + src
            if op.writes_dst:
                dst[:] = dst + data if op is Opcode.REDUCE else data
            if op.sends:
                messages[i] = data.copy()
        return [self.memory[r][1] for r in range(p.num_ranks)]


def value(rank: int, index: Any) -> Any:
    return (rank + 1) * 1_000_003 + index * (7 + rank * rank)


def expected(collective: Collective, count: int) -> list[Any]:
    n, all_ranks = collective.num_ranks, range(collective.num_ranks)
    i, root = np.arange(count), collective.root
    none = np.zeros(0, np.int64)
    match collective.kind:
        case "allreduce":
            return [sum(value(q, i) for q in all_ranks)] * n
        case "reduce":
            return [sum(value(q, i) for q in all_ranks) if r == root else none for r in all_ranks]
        case "reduce-scatter":
            return [sum(value(q, r * count + i) for q in all_ranks) for r in all_ranks]
        case "allgather" | "gather":
            whole = np.concatenate([value(q, i) for q in all_ranks])
            return [whole if root in (None, r) else none for r in all_ranks]
        case "broadcast":
            return [value(root or 0, i)] * n
        case "scatter":
            return [value(root or 0, r * count + i) for r in all_ranks]
        case _:
            return [np.concatenate([value(q, r * count + i) for q in all_ranks]) for r in all_ranks]


def check(program: Program, counts: tuple[int, ...]) -> None:
    assert verify_program(program).ok
    laid_out, segments = lay_out(program)
    report = verify_program(laid_out)
    assert report.ok, report.failed
    for count in counts:
        results = Elements(laid_out, segments, count).run()
        for got, want in zip(results, expected(program.collective, count), strict=True):
            assert np.array_equal(got, want), (program.collective, count)


COUNTS = (0, 1, 2, 3, 5, 7, 8, 12, 13, 64, 101)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("ranks", "chunks"), [(1, 2), (2, 1), (3, 2), (4, 3)])
def test_all_collectives(kind: str, ranks: int, chunks: int) -> None:
    check(direct(kind, ranks, chunks, root=ranks - 1), COUNTS)


@pytest.mark.parametrize("ranks", [3, 4])
def test_classic_programs(ranks: int) -> None:
    for chunks in (1, 3):
        check(programs.ring_allreduce(ranks, chunks, fused=False), COUNTS)
        check(programs.allpairs_allreduce(ranks, chunks), COUNTS)
        check(ring("reduce-scatter", ranks, chunks), COUNTS)
    check(programs.scratch_sum(ranks), COUNTS)


@given(st.permutations(range(6)), st.integers(0, 7), st.integers(0, 50))
def test_chunks_in_any_order_are_relayed(order: list[int], shift: int, count: int) -> None:
    check(relay(order, shift, 2), (count,))


@given(st.integers(1, 4), st.integers(0, 40))
def test_scratch_that_holds_one_chunk_after_the_other(chunks: int, count: int) -> None:
    check(reused(chunks), (count,))


def test_messages_are_split_only_where_chunks_do_not_follow_each_other() -> None:
    def sends(program: Program) -> list[int]:
        at_middle = program.block_rank[program.block] == 1
        return program.count[at_middle & (program.opcode == Opcode.SEND)].tolist()

    assert sends(lay_out(relay([0, 1, 2, 3, 4, 5], 0, 2))[0]) == [6]
    assert sends(lay_out(relay([3, 4, 5, 0, 1, 2], 0, 2))[0]) == [6]  # round the end of the vector
    assert sends(lay_out(relay([0, 1, 4, 5, 2, 3], 0, 2))[0]) == [2, 2, 2]
    assert sends(lay_out(relay([5, 4, 3, 2, 1, 0], 3, 2))[0]) == [1] * 6


def test_waits_for_a_split_instruction_are_for_its_last_piece() -> None:
    program = relay([0, 1, 4, 5, 2, 3], 0, 2)
    last = program.num_instructions - 7  # the receive at rank 2
    assert program.opcode[last] == Opcode.RECV
    blocks = [(0, 1, -1, 0), (1, 2, 0, 0), (2, -1, -1, 0), (2, -1, 1, 0)]
    rows = [
        (Opcode(program.opcode[i]), Buffer(program.src_buffer[i]), int(program.src_offset[i]),
         Buffer(program.dst_buffer[i]), int(program.dst_offset[i]), int(program.count[i]))
        for i in range(program.num_instructions)
    ]  # fmt: skip
    first, middle, arrival, copies = rows[:7], rows[7:last], rows[last], rows[last + 1 :]
    copy_block = [(*copies[0], [last + 6]), *((*c, []) for c in copies[1:])]
    split_up = Program.build(
        program.collective, 2, program.scratch.tolist(), blocks,
        [[(*r, []) for r in first], [(*r, []) for r in middle], copy_block, [(*arrival, [])]],
    )  # fmt: skip
    check(split_up, COUNTS)
    laid_out, _ = lay_out(split_up)
    waiting = int(laid_out.block_start[2])
    assert laid_out.dependencies(waiting) == [laid_out.num_instructions - 1]
    assert laid_out.num_instructions == split_up.num_instructions + 2 + 2


def test_the_last_instruction_may_be_a_nop() -> None:
    program = direct("allreduce", 3)
    last, nop = program.num_blocks - 1, dict.fromkeys(INSTRUCTION_COLUMNS, 0)
    idle, _, new = insert(program, np.array([last]), int(np.diff(program.block_start)[last]), nop)
    assert new.tolist() == [idle.num_instructions - 1]
    check(idle, (1, 2, 7, 12))


def test_scratch_takes_no_more_than_it_did() -> None:
    for program in (direct("reduce-scatter", 5, 3), programs.allpairs_allreduce(4, 2), programs.scratch_sum(3)):
        assert (lay_out(program)[1].cells <= program.scratch).all()


def _places(program: Program, segments: Segments) -> list[object]:
    columns = [getattr(program, name).tolist() for name in (*INSTRUCTION_COLUMNS, "scratch", "dep_start", "deps")]
    return [*columns, segments.first.tolist(), segments.cell.tolist(), segments.chunk.tolist(), segments.cells.tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_without_scratch_runs_are_laid_out_as_chunks_are(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (direct(kind, 4, 3, root=1), programs.ring_allreduce(4, 2, fused=False)):
        found = _places(*lay_out(program))
        with monkeypatch.context() as other:
            other.setattr(scratch, "_by_runs", lambda program: False)
            assert found == _places(*lay_out(program))


def test_a_chunk_of_another_size_is_found_without_scratch() -> None:
    program = direct("allgather", 4, 3)
    row = int(np.flatnonzero(program.receives)[0])
    offset = program.dst_offset.astype(np.int64)
    offset[row] += 1
    with pytest.raises(CollcError, match="another size"):
        lay_out(attrs.evolve(program, dst_offset=offset))
