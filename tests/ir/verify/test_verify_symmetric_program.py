"""The verifier of programs of one rank and a group: no fault passes that the verifier of all ranks finds."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from sampling import EXHAUSTIVE
from template_programs import KINDS, network, template

from collc.ir.group import Translations
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.verify import adds_once, verify

pytestmark = pytest.mark.quick

NETS = ("torus(4, 4)", "hypercube(3)", "circulant(9, {1, 3})")


def failed(program: SymmetricProgram) -> list[str]:
    return [check.name for check in verify(program).failed]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS)
def test_right_programs_are_right(name: str, kind: str) -> None:
    program = template(network(name), kind)
    report = verify(program)
    assert report.ok
    text = {check.name: check.detail for check in report.checks}["postcondition"]
    n = program.num_ranks
    assert f"executed 1 of {n} ranks" in text
    assert f"of order {n}, checked" in text


def changed(program: SymmetricProgram, rng: random.Random) -> SymmetricProgram:
    """Return the program with one number of one column changed."""
    seed = program.seed
    columns = (
        "send_peer",
        "recv_peer",
        "opcode",
        "src_buffer",
        "src_offset",
        "dst_buffer",
        "dst_offset",
        "count",
        "joined",
        "deps",
    )
    name = rng.choice(columns)
    column = np.array(program.joined if name == "joined" else getattr(seed, name), dtype=np.int64)
    if not len(column):
        return program
    row = rng.randrange(len(column))
    if name in ("src_buffer", "dst_buffer"):
        column[row] = (column[row] + 1) % 3
    elif name == "joined":
        column[row] ^= 1
    elif name == "opcode":
        column[row] = rng.choice((1, 2, 3, 6))
    else:
        column[row] += rng.choice((-1, 1, program.chunks))
    if (column < 0).any() and name not in ("send_peer", "recv_peer"):
        return program
    if name == "joined":
        return attrs.evolve(program, joined=column)
    return attrs.evolve(program, seed=attrs.evolve(seed, **{name: column}))


@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_passes_that_the_verifier_of_all_ranks_finds(kind: str) -> None:
    rng = random.Random(kind)
    right = template(network("torus(3, 3)"), kind)
    wrong, same = 0, 0
    for _ in range(600 if EXHAUSTIVE else 60):
        program = changed(right, rng)
        if verify(program).ok:
            same += 1
            assert verify(program.unfold()).ok, program
        else:
            wrong += 1
    assert wrong > 3 * max(same, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_another_group_of_the_same_order_is_found(kind: str) -> None:
    program = template(network("torus(4, 4)"), kind)
    assert failed(attrs.evolve(program, group=Translations((16,))))


def test_a_group_of_another_order_is_found() -> None:
    assert failed(attrs.evolve(template(network("torus(4, 4)"), "allgather"), group=Translations((4, 3)))) == [
        "symmetry"
    ]


def test_a_missing_dependency_is_found() -> None:
    program = template(network("torus(4, 4)"), "allgather")
    seed = attrs.evolve(program.seed, dep_start=np.zeros(program.seed.num_instructions + 1, dtype=int), deps=[])
    assert failed(attrs.evolve(program, seed=seed)) == ["races"]


def test_a_missing_message_is_found() -> None:
    program = template(network("hypercube(3)"), "allreduce")
    seed = program.seed
    rows = np.flatnonzero(seed.sends)
    opcode = np.array(seed.opcode)
    opcode[rows[-1]] = 3
    assert failed(attrs.evolve(program, seed=attrs.evolve(seed, opcode=opcode)))


def test_data_added_twice_are_found_unless_the_operation_allows_it() -> None:
    assert adds_once(template(network("torus(3, 3)"), "allreduce", "max"))
    program = template(network("torus(3, 3)"), "allreduce")
    seed = program.seed
    adding = np.flatnonzero(seed.reads_src & seed.receives & (seed.src_buffer == 0))
    buffer = np.array(seed.src_buffer)
    late = np.flatnonzero(seed.reads_src & seed.receives & (seed.src_buffer == 1))
    assert len(adding)
    assert len(late)
    buffer[late[0]] = 0  # the rank's own contribution in place of the sum so far
    assert failed(attrs.evolve(program, seed=attrs.evolve(seed, src_buffer=buffer)))


def test_a_wrong_program_is_not_said_to_be_executed() -> None:
    program = template(network("torus(4, 4)"), "allgather")
    seed = attrs.evolve(program.seed, dep_start=np.zeros(program.seed.num_instructions + 1, dtype=int), deps=[])
    report = verify(attrs.evolve(program, seed=seed))
    assert not report.ok and not any("executed" in check.detail for check in report.checks)
