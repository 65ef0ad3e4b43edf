"""Plans of torch's ranks, and ranks that play them without torch."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

import collc
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import verify_program
from collc.torch.moves import Kind, ProgramLayout
from collc.torch.plan import Plan

__all__ = ["CASES", "Played", "inputs_of", "laid", "memory_of"]

UNWRITTEN = -777
ONE_TENSOR = ("allreduce", "broadcast", "reduce")
#: of 2 ranks
PAIR = "topology t = torus(2); collective g = allreduce on t; schedule g using bfb;"

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
    if case == -1:
        return ProgramLayout.of(collc.compile_source(PAIR, target="ir").program)
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


def memory_of(which: ProgramLayout, plans: list[Plan], inputs: list[Array | None], elements: int) -> list[list[Array]]:
    """Return every rank's input, output, scratch and the messages' own memory."""
    kind = next(one.dtype for one in inputs if one is not None)
    return [_buffers(which, plan, rank, inputs[rank], elements, kind) for rank, plan in enumerate(plans)]


def _buffers(
    which: ProgramLayout, plan: Plan, rank: int, given: Array | None, elements: int, kind: np.dtype[Any]
) -> list[Array]:
    program = which.program
    own = [np.full(plan.scratch, UNWRITTEN, kind), np.full(plan.own, UNWRITTEN, kind)]
    if program.collective.kind in ONE_TENSOR:
        tensor = np.full(elements, UNWRITTEN, kind) if given is None else given.copy()
        return [tensor, tensor, *own]
    blocks = program.output_chunks(rank) // program.chunks
    return [np.zeros(0, kind) if given is None else given.copy(), np.full(blocks * elements, UNWRITTEN, kind), *own]


class Played:
    """Ranks that perform their plans in any order; what was sent is copied at any time from when both ends are posted
    until one of them waits for it.
    """

    def __init__(self, which: ProgramLayout, plans: list[Plan], inputs: list[Array | None], elements: int, seed: int):
        self.plans, self.chance = plans, random.Random(seed)
        self.memory = memory_of(which, plans, inputs, elements)
        self.sends: dict[tuple[int, int, int], Any] = {}
        self.receives: dict[tuple[int, int, int], Any] = {}
        self.done: set[tuple[int, int, int]] = set()

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
