"""What bounds memory changes no verdict: few locations and contributors at a time, and no place of a mistake."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from built_programs import direct, edited, random_program, ring
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collc.frontends import coll
from collc.ir import waves as waving
from collc.ir.collective import KINDS, Collective
from collc.ir.layout import layout, total
from collc.ir.machine import execute, partners
from collc.ir.program import Program
from collc.ir.ragged import parts
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.verify import _accesses, _columns, verify_program
from collc.ir.verify import program as verifier
from collc.passes.schedule import discretize
from collc.passes.synthesis.breadth_first.bfb import BFB

PROGRAMS = st.builds(
    random_program, st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12), tangled=st.booleans()
)
KEPT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at one location and one word of contributors at a time."""
    for module in (_accesses, _columns):
        monkeypatch.setattr(module, "LOCATIONS", 1)
    monkeypatch.setattr(_columns, "_BITS", 1)
    monkeypatch.setattr(_columns, "_WORD", 2)  # contributors of a word


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every program be too large to say where it is wrong."""
    monkeypatch.setattr(verifier, "MAX_CHUNKS", 0)
    monkeypatch.setattr(verifier, "_right", verifier._right.copy())
    verifier._right.clear()


def by_columns(program: Program) -> list[bool]:
    order, partner = waving.all_waves(program), partners(program)
    return [_columns.computes(program, layout(program, inplace), order, partner) for inplace in (False, True)]


def by_values(program: Program) -> list[bool]:
    """Return whether one instruction after another finds no wrong value, in place or out of place."""
    found = []
    for inplace in (False, True):
        where, finished, partner = layout(program, inplace), execute(program).finished, partners(program)
        outcome = verifier.evaluate(program, where, finished, partner)
        found.append(
            not outcome.problem and not verifier.postcondition(program, where, outcome.memory, finished, partner)
        )
    return found


@KEPT
@given(PROGRAMS)
def test_few_contributors_at_a_time_find_what_all_find(one_by_one: None, program: Program) -> None:
    if verifier.verify_form(program).ok and not execute(program).deadlock and verify_program(program).checks[5].ok:
        assert by_columns(program) == by_values(program)


@pytest.mark.parametrize("kind", KINDS)
def test_few_contributors_at_a_time_find_a_change(one_by_one: None, kind: str) -> None:
    program = direct(kind, 5, 2)
    assert by_columns(program) == by_values(program)
    assert by_columns(program)[0]
    sends = np.flatnonzero(program.sends)
    changed = edited(program, int(sends[-1]), src_offset=0 if program.src_offset[sends[-1]] else 1, count=1)
    receive = int(np.flatnonzero(partners(changed) == sends[-1])[0])
    changed = edited(changed, receive, count=1)
    assert not by_columns(changed)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_program_is_right_or_wrong(large: None, kind: str) -> None:
    program = direct(kind, 4, 2)
    assert verify_program(program).ok
    assert [check.name for check in verify_program(program).checks[-4:]] == ["deadlock", *verifier._DATA]
    row = int(np.flatnonzero(program.sends)[0])
    wrong = edited(program, row, src_offset=1 - int(program.src_offset[row] == 1), count=1)
    wrong = edited(wrong, int(np.flatnonzero(partners(wrong) == row)[0]), count=1)
    (failed,) = verify_program(wrong).failed
    assert failed.detail == (
        f"an instruction is wrong; collc says where for up to 0 chunks in all buffers, found {total(wrong)}"
    )


@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter"])
def test_a_large_program_may_be_narrow(large: None, kind: str) -> None:
    program = ring(kind, 4, 2)
    assert waving.waves(program) is None and verify_program(program).ok


def test_a_large_program_that_deadlocks_says_where(large: None) -> None:
    program = direct("allgather", 3, 1)
    needs = program.num_dependencies.astype(np.int64)
    first = int(np.flatnonzero(program.receives)[0])
    needs[first] += 1
    starts = np.append(0, np.cumsum(needs))
    stuck = attrs.evolve(program, deps=np.insert(program.deps, int(starts[first]), first), dep_start=starts)
    found = verify_program(stuck)
    assert not found.ok and found.failed[0].name != "postcondition"


def test_parts_have_all_groups_once() -> None:
    size = np.array([3, 0, 7, 1, 1, 1, 20, 0, 2])
    for most in (1, 2, 5, 100):
        found = [row for part in parts(size, most) for row in range(len(size))[part]]
        assert found == list(range(len(size)))
    assert not list(parts(size[:0], 3))


# ---- chunks


def allgather(network: str) -> Schedule:
    topology = coll.topology(network)
    found = BFB().run(Problem(topology, Collective("allgather", topology.num_ranks)))
    return found if isinstance(found, Schedule) else found.unfold()


@pytest.mark.parametrize("limit", [2, 3, 5])
def test_parts_are_exact_in_twice_as_many_chunks_as_they_are_rounded_to(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = allgather("jellyfish(20, 5, 1)")
    needed = discretize.chunks_needed(schedule)
    held = discretize._held(schedule.collective)
    monkeypatch.setattr(verifier, "MAX_CHUNKS", held * needed // limit)
    monkeypatch.setattr(verifier, "MAX_IN_WAVES", 2 * held * needed // limit)
    made = discretize.Discretize().run(schedule)
    assert (made.parts == needed) == (limit == 2) and made.discrete
    assert limit == 2 or made.parts <= needed // limit


def test_templates_of_more_ranks_than_a_program_can_list_keep_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk per shard would be too much for the verifier, so nothing is rounded for it."""
    topology = coll.topology("jellyfish(20, 5, 1)")
    collective = Collective("allreduce", topology.num_ranks)
    held = discretize._held(collective)
    for limit in (held - 1, held, held + 1):
        monkeypatch.setattr(verifier, "MAX_CHUNKS", limit)
        monkeypatch.setattr(verifier, "MAX_IN_WAVES", 2 * limit)
        most = [discretize.Discretize().most(collective, exactly)[0] for exactly in (False, True)]
        assert most == ([discretize.MOST_CHUNKS] * 2 if limit < held else [1, 2])
