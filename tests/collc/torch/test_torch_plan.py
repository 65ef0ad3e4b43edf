"""What ranks do in a call of torch, played without torch: messages that come as early or as late as they may."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.backends.interpreter import reference
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import verify_program
from collc.torch import plan as planning
from collc.torch.moves import Kind, ProgramLayout
from collc.torch.plan import Plan, Planner

UNWRITTEN = -777
ONE_TENSOR = ("allreduce", "broadcast", "reduce")

#: topology, scheduler, collective, and the target whose limits shape the program (msccl-xml's has fused instructions)
CASES = [
    ("torus(2, 2)", "bfb", "allreduce on t", "ir"),
    ("torus(2, 2)", "bfb", "allreduce on t", "msccl-xml"),
    ("torus(3, 2)", "forest", "allreduce on t", "ir"),
    ("torus(3, 2)", "forest", "allreduce on t", "msccl-xml"),
    ("torus(5)", "ring", "allreduce on t", "msccl-xml"),
    ("hypercube(3)", "swing", "allreduce on t", "ir"),
    ("hypercube(3)", "bfb", "allgather on t", "ir"),
    ("torus(8)", "swing", "allgather on t", "msccl-xml"),
    ("torus(3, 2)", "forest", "allgather on t", "ir"),
    ("torus(3, 2)", "bfb", "reduce-scatter on t", "ir"),
    ("torus(8)", "swing", "reduce-scatter on t", "ir"),
    ("torus(3, 2)", "forest", "broadcast on t { root: 1 }", "ir"),
    ("torus(3, 2)", "forest", "broadcast on t { root: 1 }", "msccl-xml"),
    ("torus(3, 2)", "forest", "reduce on t { root: 1 }", "ir"),
    ("torus(3, 2)", "flow", "alltoall on t", "ir"),
    ("hypercube(2)", "exact", "gather on t { root: 2 }", "ir"),
    ("hypercube(2)", "exact", "scatter on t { root: 2 }", "ir"),
]


def relay() -> Program:
    """An allgather in which all that arrives goes through one place, from which the message before was sent."""
    scratch, out, n = Buffer.SCRATCH, Buffer.OUTPUT, 4
    rows = []
    for rank in range(n):
        mine = [(Opcode.COPY, Buffer.INPUT, 0, out, rank, 1, ()), (Opcode.COPY, Buffer.INPUT, 0, scratch, 0, 1, ())]
        for step in range(1, n):
            mine.append((Opcode.SEND, scratch, 0, Buffer.INPUT, 0, 1, ()))
            mine.append((Opcode.RECV, Buffer.INPUT, 0, scratch, 0, 1, ()))
            mine.append((Opcode.COPY, scratch, 0, out, (rank - step) % n, 1, ()))
        rows.append(mine)
    blocks = [(rank, (rank + 1) % n, (rank - 1) % n, 0) for rank in range(n)]
    program = Program.build(Collective("allgather", n), 1, [1] * n, blocks, rows)
    verify_program(program).require()
    return program


@cache
def laid(case: int) -> ProgramLayout:
    if case == len(CASES):
        return ProgramLayout.of(relay())
    topology, scheduler, collective, target = CASES[case]
    text = f"topology t = {topology}; collective g = {collective}; schedule g using {scheduler};"
    return ProgramLayout.of(collc.compile_source(text, target=target).program)


def inputs_of(program: Program, elements: int, seed: int) -> list[Array | None]:
    c = program.collective
    numbers = np.random.default_rng(seed)
    blocks = 1 if c.kind in ONE_TENSOR else c.input_shards
    takes = [bool((c.input_slots(r, np.arange(c.num_shards)) >= 0).any()) for r in range(c.num_ranks)]
    return [numbers.integers(0, 1000, blocks * elements) if t else None for t in takes]


class Played:
    """Ranks that perform their plans in any order; what was sent is copied at any time from when both ends are posted
    until one of them waits for it.
    """

    def __init__(self, which: ProgramLayout, plans: list[Plan], inputs: list[Array | None], elements: int, seed: int):
        self.plans, self.chance = plans, random.Random(seed)
        self.memory = [self.buffers(which, r, inputs[r], elements) for r in range(len(plans))]
        self.sends: dict[tuple[int, int, int], Any] = {}
        self.receives: dict[tuple[int, int, int], Any] = {}
        self.done: set[tuple[int, int, int]] = set()

    def buffers(self, which: ProgramLayout, rank: int, given: Array | None, elements: int) -> list[Array]:
        program, plan = which.program, self.plans[rank]
        own = [np.full(plan.scratch, UNWRITTEN), np.full(plan.own, UNWRITTEN)]
        if program.collective.kind in ONE_TENSOR:
            tensor = np.full(elements, UNWRITTEN) if given is None else given.copy()
            return [tensor, tensor, *own]
        blocks = program.output_chunks(rank) // program.chunks
        return [np.zeros(0, int) if given is None else given.copy(), np.full(blocks * elements, UNWRITTEN), *own]

    def view(self, rank: int, span: tuple[int, int, int]) -> Array:
        assert 0 <= span[1] <= span[2] <= len(self.memory[rank][span[0]])
        return self.memory[rank][span[0]][span[1] : span[2]]

    def deliver(self, name: tuple[int, int, int]) -> None:
        out, into = self.view(name[0], self.sends[name]), self.view(name[1], self.receives[name])
        assert len(out) == len(into) > 0
        into[:] = out
        self.done.add(name)

    def run(self) -> list[Array]:
        at = [0] * len(self.plans)
        while ready := [r for r, plan in enumerate(self.plans) if at[r] < len(plan.actions)]:
            for name in [n for n in self.sends if n in self.receives and n not in self.done]:
                if self.chance.random() < 0.1:
                    self.deliver(name)
            self.chance.shuffle(ready)
            rank = next((r for r in ready if self.can(r, self.plans[r].actions[at[r]])), None)
            assert rank is not None, "all ranks wait"
            self.perform(rank, self.plans[rank].actions[at[rank]])
            at[rank] += 1
        assert set(self.sends) == set(self.receives) == self.done
        return [buffers[1] for buffers in self.memory]

    def name(self, rank: int, act: Any) -> tuple[int, int, int]:
        sends = act[0] in (Kind.SEND, Kind.SENT)
        return (rank, act[1], act[2]) if sends else (act[1], rank, act[2])

    def can(self, rank: int, act: Any) -> bool:
        if act[0] not in (Kind.AWAIT, Kind.SENT):
            return True
        name = self.name(rank, act)
        return name in self.done or (name in self.sends and name in self.receives)

    def perform(self, rank: int, act: Any) -> None:
        if act[0] in (Kind.POST, Kind.SEND):
            table = self.receives if act[0] is Kind.POST else self.sends
            assert self.name(rank, act) not in table
            table[self.name(rank, act)] = act[4]
        elif act[0] in (Kind.AWAIT, Kind.SENT):
            if self.name(rank, act) not in self.done:
                self.deliver(self.name(rank, act))
        else:
            one, other = self.view(rank, act[2]), self.view(rank, act[3])
            self.view(rank, act[1])[:] = one if act[0] is Kind.COPY else one + other


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
