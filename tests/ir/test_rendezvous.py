"""An order that executes a program shows what an execution would show, and no other order does."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from built_programs import direct, random_program, with_deps
from hypothesis import assume, given
from hypothesis import strategies as st

from collc.ir import waves as waving
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.rendezvous import executes, meets
from collc.passes.analysis.clocks import without_implied

PROGRAMS = st.builds(
    random_program, st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12), tangled=st.booleans()
)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest programs count as wide."""
    monkeypatch.setattr(waving, "MIN_BLOCKS", 0)
    monkeypatch.setattr(waving, "MIN_WIDTH", 0)
    waving._orders.clear()
    waving._depths.clear()


def _wave(program: Program, order: waving.Waves | None = None) -> Array:
    """Return the wave of each instruction in an order, by default in an execution with unbounded FIFOs."""
    order = order or waving.all_waves(program)
    wave = np.zeros(program.num_instructions, dtype=np.int64)
    wave[order.instruction] = np.repeat(np.arange(len(order)), np.diff(order.start))
    return wave


@given(PROGRAMS, st.integers(1, 3), st.sampled_from([None, 1, 2, 100]))
def test_programs_that_meet_complete_whatever_their_fifos_hold(program: Program, depth: int, split: int | None) -> None:
    assume(not execute(program).deadlock)
    wave = _wave(program)
    assert executes(program, wave)
    if meets(program, wave):
        assert execute(program, depth, split).deadlock is None


def test_many_programs_that_complete_meet() -> None:
    completing = [random_program(seed, 4, 1 + seed % 8) for seed in range(200)]
    assert all(not execute(program).deadlock for program in completing)
    assert sum(meets(program, _wave(program)) for program in completing) > 50


@given(PROGRAMS, st.data())
def test_an_order_executes_a_program_if_all_waits_allow_it(program: Program, data: st.DataObject) -> None:
    rows = program.num_instructions
    wave = _wave(program)
    for _ in range(data.draw(st.integers(0, 2)) if rows else 0):
        wave[data.draw(st.integers(0, rows - 1))] += data.draw(st.integers(-2, 2))
    partner = partners(program)
    right = (
        all(
            wave[before] < wave[i]
            for i in range(rows)
            for before in [
                *program.dependencies(i),
                *([i - 1] if program.step[i] else []),
                *([int(partner[i])] if partner[i] >= 0 else []),
            ]
        )
        and not (program.receives & (partner < 0)).any()
    )
    assert executes(program, wave) == right


def _flagged() -> Program:
    """Return a program that completes only if a message of three chunks fits its FIFO at once.

    Its receive waits for a flag, and the flag is sent when the message has been.
    """
    blocks = [(0, 1, -1, 0), (0, 1, -1, 1), (1, -1, 0, 0), (1, -1, 0, 1)]
    rows = [
        [(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, 3, ())],
        [(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, 1, (0,))],
        [(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, 0, 3, (3,))],
        [(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, 3, 1, ())],
    ]
    return Program.build(Collective("broadcast", 2, root=0), 4, [0, 4], blocks, rows)


def test_ends_that_both_send_first_do_not_meet() -> None:
    """They complete only if a message fits its FIFO."""
    program = direct("allgather", 2, 2)
    assert executes(program, _wave(program)) and not meets(program, _wave(program))
    assert execute(program, 1, 2).deadlock is None and execute(program, 1, 1).deadlock is not None


@pytest.mark.usefixtures("narrow")
def test_a_message_that_must_fit_its_fifo_does_not_meet() -> None:
    program = _flagged()
    assert execute(program, 1).deadlock is None and execute(program, 2, 1).deadlock is not None
    assert executes(program, _wave(program)) and not meets(program, _wave(program))
    assert waving.completes_in_waves(program, 1, None) is True
    assert [waving.completes_in_waves(program, depth, 1) for depth in (1, 2, 3)] == [False, False, True]


def test_ends_of_different_counts_do_not_meet() -> None:
    program = next(
        one for one in (random_program(seed, 4, 8) for seed in range(100)) if one.sends.any() and meets(one, _wave(one))
    )
    count = program.count.astype(np.int64)
    count[np.flatnonzero(program.receives)[0]] += 1
    assert not meets(attrs.evolve(program, count=count), _wave(program))


@pytest.mark.usefixtures("narrow")
def test_an_order_serves_a_program_with_fewer_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second execution is needed, and the depth is the one that an execution finds."""
    program = next(
        one for one in (random_program(seed, 4, 8) for seed in range(100))
        if len(without_implied(one).deps) < len(one.deps) and meets(one, _wave(one)) and one.sends.any()
    )  # fmt: skip
    fewer = without_implied(program)
    least = execute(fewer, None, 1).depth
    waving._orders.clear()
    waving._depths.clear()
    assert waving.completes_in_waves(attrs.evolve(program), 2, None)

    def fail(*_: object) -> None:
        raise AssertionError("the order was not taken")

    monkeypatch.setattr(waving, "_Run", fail)
    assert waving.least_depth(fewer, 1) == least == 1
    assert waving.some_waves(fewer) is not None


@pytest.mark.usefixtures("narrow")
@given(PROGRAMS, st.data())
def test_a_kept_order_never_changes_an_answer(program: Program, data: st.DataObject) -> None:
    """Programs of the same instructions with other dependencies: those that complete, and those that do not."""
    waving.completes_in_waves(program, 2, None)
    waving.waves(program)
    changed = program
    for _ in range(data.draw(st.integers(0, 3)) if program.num_instructions else 0):
        place = data.draw(st.integers(0, program.num_instructions - 1))
        rank = program.rank[place]
        same = np.flatnonzero((program.rank == rank) & (program.block != program.block[place])).tolist()
        deps = data.draw(st.lists(st.sampled_from(same), max_size=2, unique=True)) if same else []
        changed = with_deps(changed, place, sorted(deps))
    for split in (None, 1):
        for depth in (0, 1, 2):
            complete = execute(changed, depth, split).deadlock is None
            assert waving.completes_in_waves(changed, depth, split) is complete
        free = execute(changed, None, split)
        found = waving.least_depth(attrs.evolve(changed), split)
        assert found == (None if free.deadlock else free.depth)
    order = changed.found.get("waves")
    assert order is None or executes(changed, _wave(changed, order))


@pytest.mark.usefixtures("narrow")
def test_a_kept_order_that_waits_too_little_is_not_taken() -> None:
    """Rank 0 sends in the wave of its copy; then the send waits for the copy, though its receive comes later still."""
    blocks = [(0, -1, -1, 0), (0, 1, -1, 0), (1, -1, 0, 0)]
    rows = [
        [(Opcode.COPY, Buffer.INPUT, 0, Buffer.SCRATCH, 0, 1, ())],
        [(Opcode.SEND, Buffer.SCRATCH, 0, Buffer.INPUT, 0, 1, ())],
        [(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, 0, 1, ())],
    ]
    program = Program.build(Collective("broadcast", 2, root=0), 1, [1, 1], blocks, rows)
    assert waving.completes_in_waves(program, 2, None)
    later = with_deps(program, 1, [0])
    assert meets(later, _wave(program)) and not executes(later, _wave(program))
    assert waving.least_depth(later, None) == 1
    assert executes(later, _wave(later, later.found["waves"]))
