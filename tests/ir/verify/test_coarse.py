"""Programs with fewer chunks: chunks that all instructions move together are one, and the verdict is the same."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_programs import message_program
from strategies import connected

from collc.frontends.coll import topology as parsed
from collc.ir.collective import Collective
from collc.ir.layout import total
from collc.ir.program import Buffer, Program
from collc.ir.spec import Problem
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import symmetric_program, verify
from collc.ir.verify._coarse import coarser
from collc.ir.verify.program import verify_program
from collc.passes.lowering.template import lower_messages
from collc.passes.schedule.discretize import round_parts
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree

_COLUMNS = ("src_offset", "dst_offset", "count", "opcode", "src_buffer", "dst_buffer")


def in_chunks(network: Topology, pieces: int, chunks: int) -> SymmetricProgram:
    """Return a program of trees whose intervals of the vector have several chunks of every shard."""
    found = DoubleBinaryTree(pipeline=pieces).run(Problem(network, Collective("allreduce", network.num_ranks)))
    program = lower_messages(round_parts(found, chunks))
    assert program is not None
    return program


def wrong(program: Program, drawn: int, name: str) -> Program:
    """Return a program with one number changed, or without a dependency."""
    if name == "deps":
        if not len(program.deps):
            return program
        row = drawn % len(program.deps)
        needs = program.num_dependencies.astype(np.int64)
        needs[program.dependent[row]] -= 1
        return attrs.evolve(program, deps=np.delete(program.deps, row), dep_start=np.append(0, np.cumsum(needs)))
    column = getattr(program, name).astype(np.int64)
    used = np.flatnonzero(program.uses(name[:3])) if "_" in name else np.arange(len(column))
    row = int(used[drawn % len(used)])
    other = {"opcode": 6 if column[row] == 2 else 2, "src_buffer": 1 - column[row], "dst_buffer": 0}
    column[row] = other.get(name, column[row] + 1)
    return attrs.evolve(program, **{name: column})


@given(connected(min_ranks=2), st.integers(1, 3), st.integers(1, 12))
def test_the_verdict_on_a_right_program_is_the_same(network: Topology, pieces: int, chunks: int) -> None:
    program = in_chunks(network, pieces, chunks)
    whole = program.unfold()
    coarse = coarser(whole)
    assert verify(program).ok and verify_program(whole).ok
    if coarse is not None:
        assert coarse.chunks < whole.chunks and total(coarse) < total(whole) and verify_program(coarse).ok


@given(connected(min_ranks=2), st.integers(0, 1 << 20), st.sampled_from([*_COLUMNS, "deps"]), st.integers(2, 12))
def test_the_verdict_on_a_wrong_program_is_the_same(network: Topology, drawn: int, name: str, chunks: int) -> None:
    changed = wrong(in_chunks(network, 2, chunks).unfold(), drawn, name)
    coarse = coarser(changed)
    if coarse is not None:
        assert verify_program(coarse).ok == verify_program(changed).ok


def test_a_message_that_moves_its_data_has_no_coarse_program() -> None:
    """Also if the sender and the receiver alone are well formed: chunks of other sizes would be moved."""
    whole = in_chunks(parsed("double_binary_tree(8)"), 2, 8).unfold()
    assert coarser(whole) is not None
    for name in ("src_offset", "dst_offset", "count"):
        assert coarser(wrong(whole, 1, name)) is None, name
    scratch = whole.scratch.astype(np.int64) + 1
    assert coarser(attrs.evolve(whole, scratch=scratch)) is None
    buffer = whole.dst_buffer.astype(np.int64)
    buffer[np.flatnonzero(whole.writes_dst)[0]] = Buffer.SCRATCH
    assert coarser(attrs.evolve(whole, dst_buffer=buffer)) is None
    assert coarser(message_program("debruijn(2, 3)", "allgather").unfold()) is None


def test_the_vector_has_whole_shards() -> None:
    whole = in_chunks(parsed("double_binary_tree(8)"), 3, 16).unfold()
    coarse = coarser(whole)
    assert coarse is not None and coarse.chunks == 1  # six intervals, and two more ends
    assert np.array_equal(coarse.opcode, whole.opcode) and np.array_equal(coarse.deps, whole.deps)


def test_reports_count_all_chunks_and_name_the_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    program = in_chunks(parsed("double_binary_tree(8)"), 3, 16)
    found = {check.name: check for check in verify(program).checks}
    assert found["bounds"].detail == f"{total(program.unfold())} chunks in all buffers"
    seed = wrong(program.seed, 5, "opcode")
    report = verify(attrs.evolve(program, seed=seed))
    monkeypatch.setattr(symmetric_program, "coarser", lambda whole: None)
    assert not report.ok and report == verify(attrs.evolve(program, seed=seed))
