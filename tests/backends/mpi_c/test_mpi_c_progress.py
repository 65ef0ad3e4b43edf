"""What the engine must allow: no program may depend on the MPI buffering its messages."""

from __future__ import annotations

import random

import attrs
import programs
import pytest
from built_programs import direct, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi_c_hoards import hoarded, recursive_doubling_allreduce
from sampling import examples

import collc
from collc.backends.mpi_c import progress, progress_in_turn
from collc.backends.mpi_c.progress import Allowance, allowance
from collc.backends.mpi_c.progress_buffers import Buffers, Run
from collc.backends.mpi_c.progress_one_by_one import OneByOne
from collc.backends.mpi_c.progress_waves import InWaves
from collc.backends.mpi_c.scratch import lay_out
from collc.ir.collective import KINDS
from collc.ir.diagnostic import CollcError
from collc.ir.machine import connections
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.verify import verify_program
from collc.ir.waves import Waves, all_waves

I, O, S = Buffer  # noqa: E741


# ---- a model of the engine that takes its steps in any order, with an MPI that completes sends as late as it may


class Model:
    def __init__(self, program: Program, allowed: Allowance, in_place: bool, seed: int):
        self.p, self.a, self.draw = program, allowed, random.Random(seed)
        self.copied = allowed.copied | (allowed.copied_in_place if in_place else frozenset())
        self.at, self.end = program.block_start[:-1].tolist(), program.block_start[1:].tolist()
        self.phase = ["ready"] * program.num_blocks
        links = connections(program)
        self.inward, self.outward = links.inward.tolist(), links.outward.tolist()
        self.sent: dict[int, list[int]] = {}
        self.posted: dict[int, list[int]] = {}
        self.slots, self.sending = [0] * program.num_blocks, [0] * program.num_blocks
        self.reading: dict[int, tuple[int, int, int, int]] = {}
        self.in_place, self.done = in_place, set()

    def place(self, i: int, end: str) -> tuple[int, int, int, int]:
        rank = int(self.p.block_rank[self.p.block[i]])
        buffer, offset = int(getattr(self.p, f"{end}_buffer")[i]), int(getattr(self.p, f"{end}_offset")[i])
        if self.in_place and buffer == Buffer.INPUT:
            shift = rank * self.p.chunks if self.p.collective.kind == "allgather" else 0
            buffer, offset = int(Buffer.OUTPUT), offset + shift
        return rank, buffer, offset, offset + int(self.p.count[i])

    def read_by_others(self, place: tuple[int, int, int, int]) -> bool:
        return any(overlap(place, other) for other in self.reading.values())

    def moves(self) -> list[tuple[str, int]]:
        found = [("begin", b) for b in range(self.p.num_blocks) if self.phase[b] == "ready" and self.may_begin(b)]
        found += [("complete", b) for b in range(self.p.num_blocks) if self.phase[b] == "arrived" and self.may_write(b)]
        return found + [("match", c) for c, queue in self.sent.items() if queue and self.posted.get(c)]

    def traits(self, i: int) -> tuple[Opcode, bool, bool]:
        op = Opcode(self.p.opcode[i])
        leaves = op.sends and (op is Opcode.RECV_REDUCE_SEND or i in self.copied)
        adds = op.receives and op.reads_src and op.writes_dst and overlap(self.place(i, "src"), self.place(i, "dst"))
        return op, leaves, op.receives and (leaves or adds)

    def may_begin(self, b: int) -> bool:
        i = self.at[b]
        if i == self.end[b] or not all(d in self.done for d in self.p.dependencies(i)):
            return False
        op, leaves, lands = self.traits(i)
        if op.sends and self.sending[b] == self.a.sends[b]:
            return False
        if (leaves or lands) and self.slots[b] == self.a.slots[b]:
            return False
        return not (op.writes_dst and not lands and self.read_by_others(self.place(i, "dst")))

    def may_write(self, b: int) -> bool:
        op, _, lands = self.traits(self.at[b])
        return not (op.writes_dst and lands and self.read_by_others(self.place(self.at[b], "dst")))

    def step(self, kind: str, which: int) -> None:
        if kind == "match":
            send, receive = self.sent[which].pop(0), self.posted[which].pop(0)
            sender = int(self.p.block[send])
            self.sending[sender] -= 1
            self.slots[sender] -= self.traits(send)[1]
            self.reading.pop(send, None)
            self.phase[int(self.p.block[receive])] = "arrived"
            return
        i = self.at[which]
        op, leaves, lands = self.traits(i)
        if kind == "begin":
            self.slots[which] += leaves or lands
            assert not (leaves or lands) or self.p.count[i] <= self.a.slot_chunks[which]
            if op.receives:
                self.phase[which] = "receiving"
                self.posted.setdefault(self.inward[which], []).append(i)
                return
        self.slots[which] -= lands and not leaves
        self.phase[which], self.at[which] = "ready", i + 1
        self.done.add(i)
        if op.sends:
            self.sending[which] += 1
            self.sent.setdefault(self.outward[which], []).append(i)
            if not leaves:
                self.reading[i] = self.place(i, "dst" if op.writes_dst else "src")

    def ends(self) -> bool:
        while moves := self.moves():
            self.step(*self.draw.choice(moves))
        return self.at == self.end


def overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    return a[:2] == b[:2] and a[2] < b[3] and b[2] < a[3]


def right_in_place(program: Program) -> bool:
    return program.collective.kind in ("allreduce", "allgather", "alltoall", "reduce", "broadcast")


def allow(program: Program) -> tuple[Program, Allowance]:
    assert verify_program(program).ok
    laid_out, _ = lay_out(program)
    return laid_out, allowance(laid_out)


EXAMPLES = [
    programs.ring_allreduce(4), programs.ring_allreduce(3, 2, fused=False), programs.ring_reduce_scatter(5),
    programs.recursive_doubling_allgather(4, 2), programs.allpairs_allreduce(3), programs.alltoall(4),
    programs.reduce_chain(4), programs.scratch_sum(3), recursive_doubling_allreduce(4), hoarded(12),
]  # fmt: skip


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.name)
@settings(max_examples=examples(20))
@given(st.integers(0, 1000))
def test_every_order_ends(program: Program, seed: int) -> None:
    laid_out, allowed = allow(program)
    for in_place in (False, True) if right_in_place(program) else (False,):
        assert Model(laid_out, allowed, in_place, seed).ends()


@given(st.sampled_from(KINDS), st.integers(1, 4), st.integers(1, 2), st.integers(0, 1000))
def test_every_order_of_every_collective_ends(kind: str, ranks: int, chunks: int, seed: int) -> None:
    laid_out, allowed = allow(direct(kind, ranks, chunks))
    for in_place in (False, True) if right_in_place(laid_out) else (False,):
        assert Model(laid_out, allowed, in_place, seed).ends()


def needs(run: Run) -> tuple[list[int], list[int], list[int], set[int]]:
    return list(run.slots), list(run.slot_chunks), list(run.sends), run.copied


def both_ways(program: Program, in_place: bool, copied: frozenset[int] = frozenset()) -> list[object]:
    buffers = Buffers.of(program, in_place)
    runs = OneByOne(program, buffers, copied), InWaves(program, buffers, copied, all_waves(program))
    return [needs(run.run()) for run in runs]


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.name)
def test_waves_find_what_one_instruction_after_another_finds(program: Program) -> None:
    laid_out, _ = lay_out(program)
    for in_place in (False, True) if right_in_place(program) else (False,):
        one, other = both_ways(laid_out, in_place)
        assert one == other


@given(st.sampled_from(KINDS), st.integers(1, 5), st.integers(1, 3), st.sets(st.integers(0, 40)))
def test_waves_find_the_same_for_every_collective(kind: str, ranks: int, chunks: int, some: set[int]) -> None:
    laid_out, _ = lay_out(direct(kind, ranks, chunks))
    copied = frozenset(i for i in some if i < laid_out.num_instructions and laid_out.sends[i])
    for in_place in (False, True) if right_in_place(laid_out) else (False,):
        one, other = both_ways(laid_out, in_place, copied)
        assert one == other


@pytest.mark.parametrize(
    "network",
    ["jellyfish(20, 4, 1)", "without(dgx_a100(3), {gpu[1,3]})", "hypercube(4)", "generalized_kautz(3, 18)"],
)
@pytest.mark.parametrize("kind", ["allreduce", "alltoall", "allgather"])
def test_waves_find_the_same_for_messages_of_runs(kind: str, network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def compared(program: Program, buffers: Buffers, copied: frozenset[int], order: Waves) -> InWaves:
        found.append((needs(OneByOne(program, buffers, copied).run()), InWaves(program, buffers, copied, order)))
        return found[-1][1]

    monkeypatch.setattr(progress, "waves", all_waves)
    monkeypatch.setattr(progress, "InWaves", compared)
    collc.compile_source(f"topology n = {network}; collective g = {kind} on n {{ size: 1 MiB }};", target="mpi-c")
    assert found and all(needs(run) == expected for expected, run in found)


def test_a_read_that_is_forgotten_is_found() -> None:
    laid_out, _ = lay_out(programs.alltoall(4))
    run = InWaves(laid_out, Buffers.of(laid_out, True), frozenset(), all_waves(laid_out))
    run.delays = attrs.evolve(run.delays, start=run.delays.start * 0)  # no send delays a write
    one, _ = both_ways(laid_out, True)
    assert needs(run.run()) != one


def test_a_program_that_deadlocks_is_refused_in_waves() -> None:
    stuck = attrs.evolve(programs.ring_allreduce(4), recv_peer=[1, 2, 3, 0])
    run = InWaves(stuck, Buffers.of(stuck, False), frozenset(), all_waves(stuck))
    with pytest.raises(CollcError, match="deadlocks"):
        run.run()


def test_ranks_that_swap_data_in_place_send_copies() -> None:
    laid_out, allowed = allow(programs.alltoall(4))
    assert not allowed.copied
    # One of each pair is enough: the other can then receive, and be received from.
    assert len(allowed.copied_in_place) == 6
    assert all(laid_out.opcode[i] == Opcode.SEND for i in allowed.copied_in_place)
    careless = attrs.evolve(allowed, copied_in_place=frozenset())
    assert Model(laid_out, careless, False, 0).ends()
    assert not any(Model(laid_out, careless, True, seed).ends() for seed in range(5))


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda p: p.name)
def test_nothing_is_copied_without_need(program: Program) -> None:
    _, allowed = allow(program)
    assert not allowed.copied
    assert not allowed.copied_in_place or program.name == "alltoall"


def test_a_ring_of_sums_needs_two_slots() -> None:
    laid_out, allowed = allow(programs.ring_reduce_scatter(5, 3))
    assert set(allowed.slots) == {2} and set(allowed.slot_chunks) == {3}
    single = attrs.evolve(allowed, slots=(1,) * 5)
    assert not any(Model(laid_out, single, False, seed).ends() for seed in range(5))


def test_blocks_that_add_nothing_have_no_slots() -> None:
    _, allowed = allow(ring("allgather", 4))
    assert set(allowed.slots) == {0}


@pytest.mark.parametrize("messages", [2, 8, 9, 30])
def test_as_many_sends_are_in_flight_as_the_program_needs(messages: int) -> None:
    laid_out, allowed = allow(hoarded(messages))
    assert allowed.sends[0] == max(messages, min(8, messages + 1))
    fewer = attrs.evolve(allowed, sends=(messages - 1, 1, 0, 0))
    assert not Model(laid_out, fewer, False, 0).ends()


@pytest.fixture
def swapping(monkeypatch: pytest.MonkeyPatch) -> tuple[Program, Buffers]:
    """Ranks that swap shards in place wait in pairs, and each copy lets only a few threadblocks continue."""
    found = []

    def kept(program: Program, buffers: Buffers, copied: frozenset[int], order: Waves) -> InWaves:
        found.append((program, buffers))
        return InWaves(program, buffers, copied, order)

    monkeypatch.setattr(progress, "waves", all_waves)
    monkeypatch.setattr(progress, "InWaves", kept)
    collc.compile_source("topology n = complete(9); collective g = alltoall on n { size: 9 KiB };", target="mpi-c")
    return found[-1]


def test_copies_in_turn_are_those_of_one_instruction_after_another(swapping: tuple[Program, Buffers]) -> None:
    program, buffers = swapping
    one, other = (
        needs(run.run())
        for run in (
            OneByOne(program, buffers, frozenset()), InWaves(program, buffers, frozenset(), all_waves(program))
        )
    )  # fmt: skip
    assert len(one[3]) >= 36 and one == other


def test_copies_in_another_order_are_found(swapping: tuple[Program, Buffers], monkeypatch: pytest.MonkeyPatch) -> None:
    program, buffers = swapping
    monkeypatch.setattr(progress_in_turn, "heappop", list.pop)  # the last block, not the least
    changed = InWaves(program, buffers, frozenset(), all_waves(program)).run()
    assert needs(changed) != needs(OneByOne(program, buffers, frozenset()).run())
