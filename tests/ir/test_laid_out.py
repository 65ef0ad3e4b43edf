"""Programs of templates, laid out on all ranks, against their unfolded programs; and what the verifier says of both."""

from __future__ import annotations

from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import KINDS, cayley_networks, group_networks, instructions_of, network, template

from collc.ir import laid_out as ir_laid_out
from collc.ir.laid_out import laid_out, run_counts
from collc.ir.machine import partners
from collc.ir.program import Opcode
from collc.ir.ragged import owners
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify


@settings(max_examples=examples(60), deadline=None)
@given(
    topology=st.one_of(cayley_networks(), group_networks()), kind=st.sampled_from(KINDS),
    most=st.sampled_from([None, 1, 2, 3]),
)  # fmt: skip
def test_it_moves_the_chunks_of_the_unfolded_program(topology: Topology, kind: str, most: int | None) -> None:
    program = template(topology, kind)
    found = laid_out(program, most)
    assert verify(found).ok
    assert instructions_of(found) == instructions_of(program.unfold())
    assert most is None or int(found.count[~found.local].max()) <= most
    assert int(run_counts(program, most).sum()) == found.num_instructions


@settings(max_examples=examples(40), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS), seed=st.sampled_from([None, 0, 1]))
def test_runs_are_as_long_as_they_can_be(topology: Topology, kind: str, seed: int | None) -> None:
    """Against single chunks: those of a message that follow each other at both ends are one instruction."""
    program = template(topology, kind)
    if seed is not None and kind == "allreduce":
        program = _numbered(program, seed)
    single = laid_out(program, 1)
    of, partner = owners(run_counts(program, 1).ravel()), partners(single)
    sender = np.where(partner >= 0, partner, np.arange(len(of)))
    follows = of[1:] == of[:-1]
    for end, rows, used in (
        ("src", sender, single.reads_src[sender]), ("dst", np.arange(len(of)), single.writes_dst),
        ("src", np.arange(len(of)), single.receives & single.reads_src),
    ):  # fmt: skip
        buffer, offset = (getattr(single, f"{end}_{c}").astype(np.int64)[rows] for c in ("buffer", "offset"))
        follows &= ~used[1:] | ((buffer[1:] == buffer[:-1]) & (offset[1:] == offset[:-1] + 1))
    ends = single.receives | single.local
    runs = int(ends.sum()) - int((follows & ends[1:]).sum())
    found = laid_out(program)
    assert int((found.receives | found.local).sum()) == runs


@settings(max_examples=examples(60), deadline=None)
@given(topology=cayley_networks(), seed=st.integers(0, 2**32 - 1))
def test_any_numbering_of_an_allreduce_is_right(topology: Topology, seed: int) -> None:
    program = _numbered(template(topology, "allreduce"), seed)
    found = laid_out(program)
    assert verify(program).ok
    assert verify(found).ok
    renumbered = laid_out(attrs.evolve(program, numbering=[]))
    amount = np.bincount(renumbered.rank, weights=renumbered.count, minlength=found.num_ranks)
    assert np.array_equal(np.bincount(found.rank, weights=found.count, minlength=found.num_ranks), amount)


def _numbered(program: SymmetricProgram, seed: int) -> SymmetricProgram:
    chunks = program.collective.num_shards * program.chunks
    return attrs.evolve(program, numbering=np.random.default_rng(seed).permutation(chunks))


@pytest.mark.quick
def test_runs_are_adjacent_chunks_in_the_order_of_the_numbering() -> None:
    program = template(network("uniring(4)"), "allreduce")
    whole = attrs.evolve(program, numbering=np.arange(4))
    assert laid_out(whole) == laid_out(program)
    backwards = laid_out(attrs.evolve(program, numbering=np.arange(4)[::-1]))
    first = backwards.src_offset[np.flatnonzero(backwards.opcode == Opcode.SEND)]
    plain = laid_out(program)
    assert (3 - first == plain.src_offset[np.flatnonzero(plain.opcode == Opcode.SEND)]).all()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("allreduce", lambda places: np.where(places == 1, 0, places), "not all different"),
        ("allgather", lambda places: places, "have fixed places"),
    ],
)
def test_a_wrong_numbering_is_caught(kind: str, change, said: str) -> None:  # type: ignore[no-untyped-def]
    program = template(network("torus(3, 3)"), kind)
    chunks = program.collective.num_shards * program.chunks
    report = verify(attrs.evolve(program, numbering=change(np.arange(chunks))))
    assert [check.name for check in report.failed] == ["numbering"]
    assert said in report.failed[0].detail


@pytest.mark.quick
@pytest.mark.parametrize("numbering", [[0, 1], [*range(8), 9]])
def test_a_numbering_of_another_form_is_malformed(numbering: list[int]) -> None:
    program = attrs.evolve(template(network("uniring(9)"), "allreduce"), numbering=numbering)
    assert structure(program)


@pytest.mark.quick
def test_a_numbering_is_printed_and_read() -> None:
    program = _numbered(template(network("torus(3, 3)"), "allreduce"), 7)
    assert parse_ir(print_ir(program)) == program


@pytest.mark.quick
def test_a_copy_onto_itself_is_no_race_but_one_of_place_counts() -> None:
    """In place the copy of a rank's own shard to the output does nothing; out of place it must come before no write."""
    program = template(network("uniring(4)"), "allgather")
    seed = program.seed
    free = attrs.evolve(program, seed=attrs.evolve(seed, dep_start=np.zeros_like(seed.dep_start), deps=[]))
    copies = np.flatnonzero(seed.opcode == Opcode.COPY)
    assert len(copies)
    failed = [check.name for check in verify(free).failed]
    assert failed in ([], ["races"])  # sends of what arrived need their dependencies
    moved = seed.dst_offset.copy()
    moved[copies] = (moved[copies] + seed.chunks) % (4 * seed.chunks)
    assert not verify(attrs.evolve(program, seed=attrs.evolve(seed, dst_offset=moved))).ok


@pytest.mark.quick
def test_one_changed_row_of_one_rank_is_caught() -> None:
    program = laid_out(template(network("torus(3, 3)"), "allreduce"))
    missed = []
    for row in range(0, program.num_instructions, 7):
        offset = program.src_offset.copy()
        offset[row] = (offset[row] + 1) % (9 * program.chunks)
        if program.reads_src[row] and verify(attrs.evolve(program, src_offset=offset)).ok:
            missed.append(row)
    assert not missed


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_columns_are_sorted_alike_in_one_number_and_in_two(kinds: list[int], rows: int, seed: int) -> None:
    kind = np.array(kinds)
    place = np.array([np.random.default_rng([seed, row]).permutation(len(kinds)) for row in range(rows)])
    packed = ir_laid_out._sorted_within(kind, place)
    with patch.object(ir_laid_out, "_WORD", 0):
        apart = ir_laid_out._sorted_within(kind, place)
    for (order, ordered), (other, others) in zip(zip(*packed, strict=True), zip(*apart, strict=True), strict=True):
        assert order.tolist() == other.tolist() and ordered.tolist() == others.tolist()
    for row, order in enumerate(packed[0]):
        assert order.tolist() == np.lexsort((place[row], kind)).tolist()
