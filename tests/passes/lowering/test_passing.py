"""Where the shards of an all-to-all lie that pass through ranks."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import cayley_networks, network, template_schedule

from collc.ir.laid_out import run_counts
from collc.ir.schedule import Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering import passing
from collc.passes.lowering.passing import Passage
from collc.passes.lowering.template import lower_messages, lower_template
from collc.passes.program.scratch import ReuseScratch


def runs_of(program: SymmetricProgram) -> int:
    return int(run_counts(program)[:, program.batched.sends].sum())


def lowered(schedule: SymmetricSchedule, shared: bool, beside: bool = True) -> SymmetricProgram:
    """Return the program of a schedule, also with no shard beside another on purpose."""
    with patch.object(passing, "_MOST_PAIRED", 1024 if beside else 0):
        found = lower_template(schedule, shared)
    assert found is not None
    return found


@settings(max_examples=examples(60), deadline=None)
@given(topology=cayley_networks(), shared=st.booleans())
def test_shards_beside_each_other_are_right_and_need_no_more_scratch(topology: Topology, shared: bool) -> None:
    schedule = template_schedule(topology, "alltoall")
    found, plain = (lowered(schedule, shared, beside) for beside in (True, False))
    assert verify(found).ok
    shards = [-(-int(one.seed.scratch.max()) // one.chunks) for one in (found, plain)]
    assert shards[0] == shards[1]
    assert len(found.message_start) == len(plain.message_start)


@settings(max_examples=examples(60), deadline=None)
@given(topology=cayley_networks())
def test_no_two_shards_are_in_one_place_at_once(topology: Topology) -> None:
    """And a rank has as many places as it has shards in some step."""
    schedule, places = template_schedule(topology, "alltoall"), []
    for one, passes, place in _seen(schedule):
        begin, last = one.came // one.messages, np.maximum(one.left, one.came) // one.messages
        begin[one.early] = -1
        at_once = [0]
        for step in range(-1, schedule.num_steps):
            here = passes & (begin <= step) & (step <= last)
            assert len(set(place[here].tolist())) == int(here.sum())
            at_once.append(int(here.sum()))
        assert int(place.max(initial=-1)) + 1 == max(at_once)
        places.append(place)
    assert len(places) == 1


def _seen(schedule: SymmetricSchedule) -> Iterator[tuple[Passage, np.ndarray, np.ndarray]]:
    """Yield each passage of a schedule with the shards that pass, and their places."""
    seen, plain = list[tuple[Passage, np.ndarray, np.ndarray]](), Passage.places

    def places(one: Passage, passes: np.ndarray, ends: tuple[np.ndarray, np.ndarray], shared: bool) -> np.ndarray:
        found = plain(one, passes, ends, shared)
        seen.append((one, passes, found))
        return found

    with patch.object(Passage, "places", places):
        assert lower_template(schedule) is not None
    yield from seen


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("name", "saved"), [("torus(10, 10)", 0.05), ("torus(12, 12)", 0.1), ("hypercube(8)", 0.08)])
def test_messages_of_a_large_network_are_fewer_runs(name: str, saved: float, shared: bool) -> None:
    schedule = template_schedule(network(name), "alltoall")
    found, plain = (runs_of(lowered(schedule, shared, beside)) for beside in (True, False))
    assert found < (1 - saved) * plain


@settings(max_examples=examples(40), deadline=None)
@given(topology=cayley_networks())
def test_scratch_is_reused_without_more_runs_or_saves_an_eighth(topology: Topology) -> None:
    program = lowered(template_schedule(topology, "alltoall"), shared=False)
    found = ReuseScratch().run(program)
    assert isinstance(found, SymmetricProgram) and verify(found).ok
    before, after = (int(one.seed.scratch.max()) for one in (program, found))
    assert found is program or runs_of(found) <= runs_of(program) or 8 * (before - after) >= before


@pytest.mark.quick
def test_the_program_of_all_ranks_has_its_shards_beside_each_other_too() -> None:
    schedule = template_schedule(network("torus(3, 4)"), "alltoall").unfold()
    assert isinstance(schedule, Schedule)
    found = lower_messages(schedule)
    assert found is not None and verify(found).ok
