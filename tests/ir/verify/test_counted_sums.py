"""Verifying by counting, by places and by one execution for both uses, against the executions that they stand for."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from built_programs import direct, edited, random_program, ring
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends import coll
from collc.ir import waves as waving
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.layout import layout
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.ragged import ranges
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.verify import connections, verify_program, verify_schedule
from collc.ir.verify import program as verifier
from collc.ir.verify import schedule as schedules
from collc.ir.verify._accesses import accesses, overlaps, reads_input_first
from collc.ir.verify._columns import computes, identities
from collc.ir.verify._counted import adds_up
from collc.ir.verify._races import races
from collc.ir.verify._sums import Sums
from collc.passes.lowering.lower import Lower
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB

PROGRAMS = st.builds(
    random_program, st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12), tangled=st.booleans()
)
REDUCING = ("allreduce", "reduce-scatter", "reduce")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest programs count as wide."""
    monkeypatch.setattr(waving, "MIN_BLOCKS", 0)
    monkeypatch.setattr(waving, "MIN_WIDTH", 0)


def scheduled(net: str, kind: str) -> Schedule:
    """Return the discrete schedule of a collective, shard by shard."""
    topology = coll.topology(net)
    found = Discretize().run(BFB().run(Problem(topology, Collective(kind, topology.num_ranks))))
    return found if isinstance(found, Schedule) else found.unfold()


# ---- sums


def test_a_sum_is_part_of_one_other() -> None:
    sums = Sums(4, 3)
    assert sums.take(np.array([1, 2]))
    (found,) = sums.add(sums.count[[1]] + sums.count[[2]]).tolist()
    assert (found, sums.count[found]) == (5, 2)
    assert not sums.take(np.array([2])) and not sums.take(np.array([3, 3]))
    assert sums.take(np.array([5, 4]))


@pytest.mark.parametrize("kind", REDUCING)
@pytest.mark.parametrize("made", [ring, direct])
def test_programs_whose_sums_are_added_once_are_counted(made, kind: str) -> None:
    program = made(kind, 5, 2)
    order, partner = waving.all_waves(program), partners(program)
    for inplace in (False, True):
        assert adds_up(program, layout(program, inplace), order, partner)


@given(PROGRAMS)
def test_what_counting_finds_right_is_right(program: Program) -> None:
    if not verifier.verify_form(program).ok or execute(program).deadlock:
        return
    order, partner = waving.all_waves(program), partners(program)
    for inplace in (False, True):
        where = layout(program, inplace)
        if adds_up(program, where, order, partner):
            assert computes(program, where, order, partner)


@given(st.sampled_from(REDUCING), st.sampled_from([ring, direct]), st.data())
def test_a_changed_program_is_counted_as_it_is_executed(kind: str, made, data: st.DataObject) -> None:
    program = made(kind, 3, 2)
    row = data.draw(st.integers(0, program.num_instructions - 1))
    field = data.draw(st.sampled_from(["opcode", "src_offset", "dst_offset", "src_buffer", "dst_buffer", "count"]))
    changed = edited(program, row, **{field: data.draw(st.integers(0, 6 if field == "opcode" else 2))})
    if not verifier.verify_form(changed).ok or execute(changed).deadlock:
        return
    order, partner = waving.all_waves(changed), partners(changed)
    where = layout(changed, False)
    if not races(changed, where, accesses(changed, where), verifier.Order(changed, order.instruction, partner)):
        assert not adds_up(changed, where, order, partner) or computes(changed, where, order, partner)


def exchange() -> Program:
    """An allreduce of two ranks that add each other's input: rank 0 sends its own after it has the sum."""
    blocks = [(0, -1, 1, 0), (0, 1, -1, 0), (1, 0, -1, 0), (1, -1, 0, 0)]
    i, o = Buffer.INPUT, Buffer.OUTPUT
    add, send = (Opcode.RECV_REDUCE_COPY, i, 0, o, 0, 2), (Opcode.SEND, i, 0, i, 0, 2)
    rows = [[(*add, [])], [(*send, [0])], [(*send, [])], [(*add, [2])]]
    return Program.build(Collective("allreduce", 2), 1, [0, 0], blocks, rows)


def test_an_input_that_two_ranks_add_needs_the_bits() -> None:
    program = exchange()
    order, partner, where = waving.all_waves(program), partners(program), layout(program, False)
    assert not adds_up(program, where, order, partner) and computes(program, where, order, partner)


@pytest.mark.parametrize("op", ["max", "sum"])
def test_operations_that_may_add_twice_need_the_bits(op: str) -> None:
    program = direct("allreduce", 4, 1)
    program = attrs.evolve(program, collective=attrs.evolve(program.collective, op=op))
    order, partner, where = waving.all_waves(program), partners(program), layout(program, False)
    assert adds_up(program, where, order, partner) == (op == "sum")


# ---- schedules


@pytest.mark.parametrize("net", ["torus(3, 2)", "complete(5)", "biring(6)", "hypercube(3)"])
@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter"])
def test_schedules_are_counted_as_they_are_executed(net: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = scheduled(net, kind)
    counted: list[bool] = []
    count = schedules._adds_up
    monkeypatch.setattr(schedules, "_adds_up", lambda *given: counted.append(count(*given)) or counted[-1])
    found = verify_schedule(schedule)
    assert found.ok and counted and all(counted)
    twice = schedule.rows(np.sort(np.append(np.arange(len(schedule)), 0)))
    fewer, wrong = verify_schedule(schedule.rows(np.arange(1, len(schedule)))), verify_schedule(twice)
    assert not counted[-1]
    monkeypatch.setattr(schedules, "_adds_up", lambda *given: False)
    assert found == verify_schedule(schedule)
    assert fewer == verify_schedule(schedule.rows(np.arange(1, len(schedule)))) and not fewer.ok
    assert wrong == verify_schedule(twice) and not wrong.ok


# ---- both uses


@pytest.mark.usefixtures("narrow")
@given(PROGRAMS)
def test_one_execution_shows_what_two_do(program: Program) -> None:
    if not verifier.verify_form(program).ok:
        return
    found = waving.waves(program)
    if found is None:
        return
    order = verifier.Order(program, found.instruction, partners(program), found.start)
    if verifier._is_right_in_both(program, found, order):
        assert verify_program(program, inplace=True).ok and verify_program(program, inplace=False).ok


@pytest.mark.parametrize("made", [ring, direct])
@pytest.mark.parametrize("kind", [*REDUCING, "allgather", "broadcast", "alltoall"])
def test_right_programs_need_one_execution(made, kind: str) -> None:
    if made is ring and kind == "alltoall":
        return
    program = made(kind, 4, 2)
    if not all(verify_program(program, inplace=inplace).ok for inplace in (False, True)):
        return
    found, where = waving.all_waves(program), layout(program, True)
    order = verifier.Order(program, found.instruction, partners(program), found.start)
    one = verifier._is_right_in_both(program, found, order)
    copies = (accesses(program, where).write.sum() != program.writes_dst.sum()) or bool(overlaps(program, where))
    assert one or copies


def test_an_input_that_is_read_after_the_output_was_written_is_read_wrong_in_place() -> None:
    program = exchange()
    assert verify_program(program, inplace=False).ok and not verify_program(program, inplace=True).ok
    found = waving.all_waves(program)
    order = verifier.Order(program, found.instruction, partners(program), found.start)
    assert not reads_input_first(program, layout(program, True), order.time)
    assert not verifier._is_right_in_both(program, found, order)


# ---- what is sent, by places


def listed(runs: tuple[Array, Array] | None) -> Array | None:
    """Return the chunks of messages, one by one."""
    return None if runs is None else ranges(*runs)


def both_ways(program: Program, schedule: Schedule) -> list[str]:
    """Return what is found by runs, and by single chunks."""
    sent, due = connections._sent(program), connections._scheduled(schedule)
    assert sent is not None
    one_by_one = [connections._Runs(chunks, np.ones_like(chunks)) for chunks in (sent.listed(), due.listed())]
    return [connections._difference(program, sent, due), connections._difference(program, *one_by_one)]


@pytest.mark.parametrize("net", ["torus(3, 2)", "complete(5)", "hypercube(3)"])
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
def test_runs_tell_what_single_chunks_tell(net: str, kind: str) -> None:
    """Also where a chunk is sent twice, too early, or not at all."""
    schedule = scheduled(net, kind)
    program = Lower().run(schedule)
    assert isinstance(program, Program) and both_ways(program, schedule) == ["", ""]
    send = int(np.flatnonzero(program.sends)[1])
    fewer, twice = (schedule.rows(keep) for keep in (np.arange(1, len(schedule)), np.arange(-1, len(schedule))))
    shorter = edited(program, send, count=int(program.count[send]) + 1)
    for one, due in ((program, fewer), (program, twice), (shorter, schedule)):
        if connections._sent(one) is not None:
            told = both_ways(one, due)
            assert told[0] and told[0] == told[1]


@pytest.mark.parametrize("net", ["torus(3, 2)", "complete(5)", "hypercube(3)"])
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
def test_places_tell_the_chunks_that_an_execution_finds(net: str, kind: str) -> None:
    program = Lower().run(scheduled(net, kind))
    assert isinstance(program, Program)
    fixed = listed(connections._fixed_identities(program, partners(program)))
    executed = identities(program, layout(program, False), waving.all_waves(program), partners(program))
    if kind != "reduce-scatter":
        assert fixed is not None
    assert fixed is None or np.array_equal(fixed, executed)
    moved = edited(program, int(np.flatnonzero(program.sends)[0]), src_buffer=Buffer.OUTPUT)
    again = listed(connections._fixed_identities(moved, partners(moved)))
    assert again is None or np.array_equal(again, executed) or kind == "allgather"
    other = program.sends & (program.src_offset > 0)
    if other.any():
        wrong = edited(program, int(np.flatnonzero(other)[0]), src_offset=0)
        assert connections._fixed_identities(wrong, partners(wrong)) is None


# ---- what is known of equal programs


@pytest.mark.usefixtures("narrow")
def test_a_program_that_was_read_back_is_not_executed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ring("allreduce", 6, 2)
    assert verify_program(program).ok and waving.completes_in_waves(program, 4, 1)
    runs: list[int] = []
    run = waving._Run.run_waves
    monkeypatch.setattr(waving._Run, "run_waves", lambda self: runs.append(1) or run(self))
    again = attrs.evolve(program, name="again")
    assert verify_program(again, fifo_depth=8).ok and waving.completes_in_waves(again, 4, 1) and not runs
    moved = edited(again, 0, count=1)
    waving.completes_in_waves(moved, 4, 1)
    assert runs
