"""Wide programs are executed in waves, and so found to be what one instruction after the other finds them to be."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from built_programs import direct, random_program, ring
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.ir import waves as waving
from collc.ir.collective import Collective
from collc.ir.editing import without_idle_nops
from collc.ir.layout import layout
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import program as verifier
from collc.ir.verify._columns import computes
from collc.ir.verify._values import evaluate, postcondition
from collc.ir.verify.program import verify_form, verify_program
from collc.passes.analysis.clocks import clocks, without_implied
from collc.passes.analysis.timing import _times, _wide_times
from collc.passes.program.coalesce import _depths_by_waves, _depths_one_by_one

PROGRAMS = st.builds(
    random_program, st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12), tangled=st.booleans()
)
KINDS = ("allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce", "gather", "scatter")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest programs count as wide."""
    monkeypatch.setattr(waving, "MIN_BLOCKS", 0)
    monkeypatch.setattr(waving, "MIN_WIDTH", 0)


def _waved(program: Program, depth: int | None, split: int | None) -> waving._Run:
    run = waving._Run(program, depth, split)
    run.patience = None
    return run


@given(PROGRAMS, st.sampled_from([0, 1, 2, 3, 8]), st.sampled_from([None, 1, 2, 100]))
def test_waves_complete_where_any_execution_does(program: Program, depth: int, split: int | None) -> None:
    run, plain = _waved(program, depth, split), execute(program, depth, split)
    assert run.run_waves() is (plain.deadlock is None)
    stuck = {w.instruction for w in plain.deadlock.waits} if plain.deadlock else set()
    open_ = np.flatnonzero(run.at < run.end)
    assert {int(run.at[block]) for block in open_} == stuck
    free = execute(program, None, split)
    run = _waved(program, 0, split)
    while not (done := run.run_waves()) and run.waits_for_slot():
        run.depth = (run.depth or 0) + 1
    assert (run.depth if done else None) == (None if free.deadlock else free.depth)


@pytest.mark.parametrize("depth", [1, 2, 8])
def test_waves_do_not_grow_with_the_chunks_of_a_message(depth: int) -> None:
    """Both ends of a message work alternately within a wave, so that its chunks take no waves of their own."""

    def rounds(count: int) -> int:
        run = _waved(_messages([count, count], [count, count]), depth, 1)
        assert run.run_waves()
        return run.rounds

    assert rounds(1000) == rounds(10) <= 6


@pytest.mark.parametrize("depth", [1, 2, 8])
@pytest.mark.parametrize("received", [[3], [3, 30], [40], [20, 20], [41]])
def test_ends_of_other_sizes_stop_where_any_execution_does(depth: int, received: list[int]) -> None:
    program = _messages([40], received)
    run, plain = _waved(program, depth, 1), execute(program, depth, 1)
    assert run.run_waves() is (plain.deadlock is None)
    done = np.bincount(plain.instruction, plain.stop - plain.first, program.num_instructions)
    stuck = np.flatnonzero(run.at < run.end)
    assert run.executed[stuck].tolist() == done[run.at[stuck]].tolist()


def _messages(sent: list[int], received: list[int]) -> Program:
    """Return a program in which rank 0 sends messages of these sizes, and rank 1 receives messages of those sizes."""
    blocks, rooms = [(0, 1, -1, 0), (1, -1, 0, 0)], [0, sum(received)]
    rows = [
        [(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, count, ()) for count in sent],
        [(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, 0, count, ()) for count in received],
    ]
    return Program.build(Collective("broadcast", 2, root=0), sum(sent), rooms, blocks, rows)


@given(PROGRAMS)
def test_an_order_of_waves_is_one_that_all_waits_allow(program: Program) -> None:
    order = waving.all_waves(program)
    wave = np.full(program.num_instructions, -1)
    wave[order.instruction] = np.repeat(np.arange(len(order)), np.diff(order.start))
    assert len(set(order.instruction.tolist())) == len(order.instruction)
    partner = partners(program)
    for i in order.instruction.tolist():
        before = [
            *program.dependencies(i),
            *([i - 1] if program.step[i] else []),
            *([partner[i]] if partner[i] >= 0 else []),
        ]
        assert all(0 <= wave[j] < wave[i] for j in before)


@given(PROGRAMS)
def test_clocks_tell_what_waits_tell(program: Program) -> None:
    """Against the plain closure of program order and waits within a rank; the reduction keeps the closure."""
    if execute(program).deadlock:
        return
    n = program.num_instructions
    order = waving.all_waves(program).instruction.tolist()

    def closure(of: Program) -> np.ndarray:
        done = np.zeros((n, n), dtype=bool)
        for i in order:
            for j in [*of.dependencies(i), *([i - 1] if of.step[i] else [])]:
                done[i] |= done[j]
                done[i, j] = True
        return done

    known, told = closure(program), clocks(program)
    for i in range(n):
        for j in range(n):
            if program.block_rank[program.block[i]] == program.block_rank[program.block[j]]:
                assert told.before(j, i) == known[i, j]
    fewer = without_implied(program)
    assert (closure(fewer) == known).all()
    for i in range(n):  # and no wait of it could be left out
        for d in fewer.dependencies(i):
            rest = [w for w in fewer.dependencies(i) if w != d] + ([i - 1] if program.step[i] else [])
            assert not any(w == d or known[w, d] for w in rest)


@given(PROGRAMS, st.sampled_from([None, 1, 2]))
def test_times_do_not_depend_on_how_they_are_found(program: Program, depth: int | None) -> None:
    run, plain = _waved(program, depth, None), execute(program, depth)
    if not run.run_waves():
        return
    swift = _wide_times(program, run.waves(), 7, 3, depth)
    slow = _times(program, plain.finished, 7, 3, depth)
    assert [column.tolist() for column in swift] == [list(column) for column in slow]


@given(PROGRAMS)
def test_depths_do_not_depend_on_how_they_are_found(program: Program) -> None:
    run, partner = _waved(program, None, None), partners(program)
    if run.run_waves():
        swift = _depths_by_waves(program, partner, run.waves())
        assert swift.tolist() == _depths_one_by_one(program, partner).tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = 1 if kind in ("broadcast", "reduce", "gather", "scatter") else 0
    program = direct(kind, 4, 2, root)
    for place in range(-1, program.num_instructions):
        changed = program
        if place >= 0:
            offset = program.dst_offset.astype(np.int64)
            offset[place] = (offset[place] + 1) % 2
            opcode = program.opcode.astype(np.int64)
            opcode[place] = {Opcode.RECV_REDUCE_COPY: Opcode.RECV, Opcode.REDUCE: Opcode.COPY}.get(
                Opcode(int(opcode[place])), opcode[place]
            )
            changed = attrs.evolve(program, dst_offset=offset, opcode=opcode)
        swift = verify_program(changed)
        with monkeypatch.context() as patched:
            patched.setattr(verifier, "_completes", lambda *_: None)
            assert verify_program(changed) == swift
    assert verify_program(program).ok


@pytest.mark.usefixtures("narrow")
def test_what_was_found_of_a_program_is_found_again() -> None:
    """A program that is known to complete at a depth does at greater ones, and those alone need no execution."""
    known = direct("allreduce", 4, 2, 0)
    least = waving.least_depth(known, 1)
    assert least is not None
    for depth in range(least + 2):
        fresh = attrs.evolve(known)
        assert fresh.found == {}
        assert (
            waving.completes_in_waves(known, depth, 1) == waving.completes_in_waves(fresh, depth, 1) == (depth >= least)
        )
    assert partners(known) is partners(known)
    with pytest.raises(ValueError):
        partners(known)[0] = 1


@given(PROGRAMS, st.booleans())
def test_values_in_columns_are_the_same(program: Program, inplace: bool) -> None:
    """Where no instructions of a wave conflict, which the search for races sees to."""
    if not verify_form(program).ok or execute(program).deadlock:
        return
    where, partner, order = layout(program, inplace), partners(program), waving.all_waves(program)
    races = next((c for c in verify_program(program, inplace=inplace).checks if c.name == "races"), None)
    if races is None or not races.ok:
        return
    plain = evaluate(program, where, order.instruction, partner)
    right = not plain.problem and not postcondition(program, where, plain.memory, order.instruction, partner)
    if program.collective.reduces or not any(Opcode(int(op)).reduces for op in program.opcode):
        assert computes(program, where, order, partner) == right


@pytest.mark.usefixtures("narrow")
def test_a_program_without_its_idle_instructions_is_the_same() -> None:
    program = ring("allgather", 3)
    assert without_idle_nops(program) is program
    rows = program.num_instructions
    columns = {
        name: np.append(getattr(program, name).astype(np.int64), 0)
        for name in ("opcode", "src_buffer", "src_offset", "dst_buffer", "dst_offset", "count")
    }
    start = program.block_start.astype(np.int64)
    start[-1] += 1
    dep_start = program.dep_start.astype(np.int64)
    idle = attrs.evolve(program, **columns, block_start=start, dep_start=np.append(dep_start, dep_start[-1]))
    assert idle.num_instructions == rows + 1
    assert waving.fingerprint(idle) != waving.fingerprint(program)
    assert waving.fingerprint(without_idle_nops(idle)) == waving.fingerprint(program)
    assert verify_program(idle).ok


def test_only_the_size_of_a_call_is_no_part_of_a_fingerprint() -> None:
    """What a program does is the same for calls of all sizes; whether it is right depends on its operation."""
    program = ring("allreduce", 3)
    sized, least = (
        attrs.evolve(program, collective=attrs.evolve(program.collective, **changed))
        for changed in ({"size": 1 << 20}, {"op": "min"})
    )
    assert waving.fingerprint(sized) == waving.fingerprint(program) != waving.fingerprint(least)


@pytest.mark.parametrize("size", ["", " { size: 64 MiB }"])
def test_a_program_that_is_written_and_read_back_is_executed_once(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executed, are_right = list[Program](), verifier._are_right

    def noted(program: Program, *given: Any) -> bool:  # Any: the arguments of a function of another module
        executed.append(program)
        return are_right(program, *given)

    monkeypatch.setattr(verifier, "_are_right", noted)
    verifier._right.clear()
    source = f"collective grads = allreduce on torus(8, 8){size}; schedule grads using bfb {{ template: true }};"
    assert all(report.ok for report in collc.compile_source(source, target="msccl-xml")["grads"].reports)
    assert len(executed) == 1
