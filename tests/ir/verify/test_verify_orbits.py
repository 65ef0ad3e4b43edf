"""The verifier of programs of several first ranks and a group: faults in one class of ranks, and in the group."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from orbit_programs import KINDS, boxes, orbit_program, orbit_schedule
from sampling import EXHAUSTIVE

from collc.ir.group import Translations
from collc.ir.program import Buffer
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import adds_once, verify
from collc.ir.verify.symmetric_program import template_strayed

pytestmark = pytest.mark.quick

_NUMBERS = ("src_offset", "dst_offset", "count", "send_peer", "recv_peer", "channel", "opcode", "deps", "block_rank")


def failed(program: SymmetricProgram) -> list[str]:
    return [check.name for check in verify(program).failed]


def with_number(program: SymmetricProgram, name: str, row: int, by: int) -> SymmetricProgram:
    column = np.array(getattr(program.seed, name), dtype=np.int64)
    column[row] += by
    return attrs.evolve(program, seed=attrs.evolve(program.seed, **{name: column}))


@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_passes_that_the_verifier_of_all_ranks_finds(kind: str) -> None:
    rng, right = random.Random(kind), orbit_program(boxes(3, 2), kind, 2)
    wrong, same = 0, 0
    for _ in range(600 if EXHAUSTIVE else 60):
        name = rng.choice(_NUMBERS)
        rows = len(getattr(right.seed, name))
        program = with_number(right, name, rng.randrange(rows), rng.choice((-1, 1, right.chunks)))
        if verify(program).ok:
            same += 1
            assert verify(program.unfold()).ok, program
        else:
            wrong += 1
    assert wrong > 3 * max(same, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_row_of_one_class_is_found(kind: str) -> None:
    program = orbit_program("dgx_a100(3)", kind)
    seed = program.seed
    rows = np.flatnonzero(seed.sends & (seed.rank == 5))
    moves = program.moves(Buffer.OUTPUT) or program.moves(Buffer.INPUT)
    assert moves
    for row in rows[:: max(len(rows) // 4, 1)].tolist():
        assert failed(with_number(program, "src_offset", row, program.chunks)), row


@pytest.mark.parametrize("kind", KINDS)
def test_a_peer_of_another_class_is_found(kind: str) -> None:
    program = orbit_program("dgx_a100(3)", kind)
    blocks = np.flatnonzero(program.seed.send_peer >= 0)
    for block in blocks[::9].tolist():
        peer = int(program.seed.send_peer[block])
        other = peer + 1 if peer % 8 < 7 else peer - 7
        assert failed(with_number(program, "send_peer", block, other - peer)), block


def test_peers_of_two_blocks_swapped_are_found() -> None:
    program = orbit_program("dgx_a100(3)", "reduce-scatter")
    seed = program.seed
    first, second = np.flatnonzero((seed.send_peer >= 0) & (seed.block_rank == 0))[:2].tolist()
    peers = np.array(seed.send_peer, dtype=np.int64)
    peers[[first, second]] = peers[[second, first]]
    assert failed(attrs.evolve(program, seed=attrs.evolve(seed, send_peer=peers)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_of_another_order_is_found(kind: str) -> None:
    program = orbit_program(boxes(5, 2, "ib[0]"), kind)
    for shape in ((4,), (10,), (5, 2), (3,), (1,)):
        assert failed(attrs.evolve(program, group=Translations(shape))), shape


def test_another_group_strays_from_the_schedule_even_if_it_is_right() -> None:
    program, schedule = orbit_program("dgx_a100(4)", "allgather"), orbit_schedule("dgx_a100(4)", "allgather")
    other = attrs.evolve(program, group=Translations((2, 2)))
    assert not failed(other) and verify(other.unfold()).ok  # every box sends to every other
    assert "abelian(2, 2)" in template_strayed(other, schedule) and not template_strayed(program, schedule)


def test_a_missing_dependency_is_found() -> None:
    program = orbit_program("dgx_a100(3)", "allgather")
    seed = attrs.evolve(program.seed, dep_start=np.zeros(program.seed.num_instructions + 1, dtype=int), deps=[])
    assert failed(attrs.evolve(program, seed=seed)) == ["races"]


def test_a_block_of_a_rank_that_is_not_listed_is_found() -> None:
    program = orbit_program(boxes(3, 2), "allgather")
    ranks = program.seed.block_rank * 2
    report = verify(attrs.evolve(program, seed=attrs.evolve(program.seed, block_rank=ranks)))
    assert "ranks 0 to 1 only" in report.failed[0].detail


def test_data_added_twice_are_found_unless_the_operation_allows_it() -> None:
    assert adds_once(orbit_program(boxes(3, 2), "allreduce", op="max"))
    program = orbit_program(boxes(3, 2), "allreduce")
    seed = program.seed
    adding = np.flatnonzero(seed.reads_src & seed.receives & (seed.src_buffer == Buffer.INPUT) & (seed.rank == 1))
    buffer, offset = np.array(seed.src_buffer), np.array(seed.src_offset)
    other = np.flatnonzero(seed.reads_src & seed.receives & (seed.src_buffer == Buffer.OUTPUT) & (seed.rank == 1))
    buffer[other[:1]] = Buffer.INPUT
    offset[other[:1]] = seed.src_offset[other[:1]]
    assert len(adding) and failed(attrs.evolve(program, seed=attrs.evolve(seed, src_buffer=buffer, src_offset=offset)))
