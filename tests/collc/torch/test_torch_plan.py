"""What ranks do in a call of torch, played without torch: messages that come as early or as late as they may."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_plans import CASES, Played, inputs_of, laid

import collc
from collc.backends.interpreter import reference
from collc.torch import plan as planning
from collc.torch.moves import Kind, ProgramLayout
from collc.torch.plan import Plan, Planner


def check(which: ProgramLayout, elements: int, packed: bool, seed: int) -> None:
    program = which.program
    inputs = inputs_of(program, elements, seed)
    plans = [Planner(which, r).plan(elements, packed) for r in range(program.num_ranks)]
    found = Played(which, plans, inputs, elements, seed).run()
    for mine, expected in zip(found, reference(program.collective, inputs), strict=True):
        assert not len(expected) or np.array_equal(mine, expected)


@pytest.mark.slow
@given(
    case=st.integers(0, len(CASES)), elements=st.integers(0, 70), packed=st.booleans(), seed=st.integers(0, 999)
)  # fmt: skip
def test_ranks_end_with_what_the_collective_promises(case: int, elements: int, packed: bool, seed: int) -> None:
    check(laid(case), elements, packed, seed)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES) + 1), ids=[*(" ".join(case) for case in CASES), "relay"])
@pytest.mark.parametrize("packed", [True, False])
def test_every_case_at_a_size_that_nothing_divides(case: int, packed: bool) -> None:
    check(laid(case), 61, packed, case)


def messages(plan: Plan) -> int:
    return sum(act[0] is Kind.SEND for act in plan.actions)


def test_packing_leaves_one_message_a_peer_and_step() -> None:
    """On a torus of 2 x 2 a breadth-first allreduce has 4 steps and 2 peers."""
    planner = Planner(laid(0), 0)
    assert messages(planner.plan(1000, True)) == 8
    assert messages(planner.plan(1000, False)) > 8
    assert messages(planner.plan(0, True)) == 0


def test_what_arrives_goes_where_it_belongs_at_once_unless_it_is_combined() -> None:
    """A ring's allgather needs no memory of its own, its reduce-scatter that of the messages of three steps."""
    text = "topology t = torus(5); collective g = {} on t; schedule g using ring;"
    gather = ProgramLayout.of(collc.compile_source(text.format("allgather"), target="ir").program)
    assert Planner(gather, 2).plan(1000, False).own == 0
    scatter = ProgramLayout.of(collc.compile_source(text.format("reduce-scatter"), target="ir").program)
    assert 0 < Planner(scatter, 2).plan(1000, False).own <= 3 * 1000


def test_receives_that_overwrite_sent_data_are_posted_before_one_of_them_is_awaited() -> None:
    """The gather of an allreduce on a ring of 4 gets halves from both neighbors, which links carry at the same time."""
    text = "topology t = biring(4); collective g = allreduce on t; schedule g using bfb;"
    layout = ProgramLayout.of(collc.compile_source(text, target="ir").program)
    for rank in range(4):
        acts = Planner(layout, rank).plan(8000, False).actions
        into = [(k, act) for k, act in enumerate(acts) if act[0] in (Kind.POST, Kind.AWAIT) and act[4][0] == 1]
        awaited = next(k for k, act in into if act[0] is Kind.AWAIT)
        before = {act[1] for k, act in into if k < awaited}
        assert before == {(rank + 1) % 4, (rank - 1) % 4}


def test_a_receive_is_posted_two_levels_ahead() -> None:
    """In a ring's reduce-scatter of 4 steps the receives of two steps are posted before the first send."""
    text = "topology t = torus(5); collective g = reduce-scatter on t; schedule g using ring;"
    layout = ProgramLayout.of(collc.compile_source(text, target="ir").program)
    acts = Planner(layout, 2).plan(1000, False).actions
    first = next(k for k, act in enumerate(acts) if act[0] is Kind.AWAIT)
    assert sum(act[0] is Kind.POST for act in acts[:first]) == 6


def test_receives_are_posted_before_what_is_waited_for_in_the_step_before() -> None:
    acts = Planner(laid(0), 0).plan(1000, True).actions
    assert [act[0] for act in acts[:2]] == [Kind.POST, Kind.POST]
    assert acts[-1][0] is Kind.SENT


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["early", "no wait for sends", "tight"])
def test_the_play_finds_mistakes(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receives posted at the very beginning, writes that do not wait for sends, and memory given twice."""
    from collc.torch import moves

    if planted == "tight":
        monkeypatch.setattr(planning, "_first_gap", lambda held, size: 0)
    original = moves.outline

    def changed(which: ProgramLayout, rank: int, packed: bool) -> moves.Outline:
        found = original(which, rank, packed)
        if planted == "early":
            found = moves.Outline(found.messages, tuple(sorted(found.moves, key=lambda m: m.kind is not Kind.POST)))
        if planted == "no wait for sends":
            ordered = tuple(sorted(found.moves, key=lambda m: m.kind is Kind.SENT))
            found = moves.Outline(found.messages, ordered)
        return found

    monkeypatch.setattr(planning, "outline", changed)
    wrong = 0
    for case in (0, 2, len(CASES)):
        for seed in range(10):
            try:
                check(laid(case), 61, seed % 2 == 0, seed)
            except AssertionError:
                wrong += 1
    assert wrong, "a mistake that nothing shows"
