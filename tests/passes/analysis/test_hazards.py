"""Conflicts of accesses, kept from pass to pass, against those found address by address."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import schedules, torus

from collc.ir import waves
from collc.ir.collective import Collective
from collc.ir.editing import take
from collc.ir.layout import layout, locations
from collc.ir.machine import partners
from collc.ir.program import Opcode, Program
from collc.ir.spec import Problem
from collc.ir.verify import verify_program
from collc.passes.analysis import hazards
from collc.passes.analysis.arrange import Rearrangement, merge_rows, reblock
from collc.passes.analysis.hazards import (
    conflicts,
    is_synchronized,
    known_conflicts,
    needed,
    note_conflicts,
    sequential_order,
    synchronize,
    with_all_dependencies,
)
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce, _are_depths, _message_depths
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "alltoall")

programs = schedules(kinds=KINDS).map(lambda schedule: Lower().run(Discretize().run(schedule)))


def found_plainly(program: Program, order: np.ndarray) -> set[tuple[int, int]]:
    """Return the neighbouring conflicts of different instructions, address by address."""
    pairs: set[tuple[int, int]] = set()
    idle_in_place = np.zeros(program.num_instructions, dtype=bool)
    for inplace in (True, False):
        src, dst = (column.tolist() for column in locations(program, layout(program, inplace)))
        touched: dict[int, list[tuple[int, int, bool]]] = {}
        for i in range(program.num_instructions):
            idle = program.opcode[i] == Opcode.COPY and src[i] == dst[i]
            idle_in_place[i] |= inplace and idle
            for used, low, write in (
                (program.reads_src[i], src[i], False), (program.reads_dst[i], dst[i], False),
                (program.writes_dst[i], dst[i], True),
            ):  # fmt: skip
                for address in range(low, low + int(program.count[i])) if used and not idle else ():
                    touched.setdefault(address, []).append((int(order[i]), i, write))
        for listed in touched.values():
            listed.sort(key=lambda access: (access[0], access[2]))
            for k, (_, i, write) in enumerate(listed):
                before = next((x for x in reversed(listed[:k]) if x[2]), None)
                after = next((x for x in listed[k + 1 :] if x[2]), None) if not write else None
                new = [(i, before[1])] if before else []
                new += [(after[1], i)] if after else []
                pairs |= {p for p in new if inplace or idle_in_place[list(p)].any()}
    return {(a, b) for a, b in pairs if a != b}


def pairs_of(found: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return {(a, b) for a, b in zip(*(column.tolist() for column in found), strict=True) if a != b}


def forgetful(program: Program) -> Program:
    """Return the same program, of which nothing is known."""
    return attrs.evolve(program)


@settings(max_examples=examples(40))
@given(programs, st.integers(1, 3))
def test_conflicts_that_passes_note_are_those_of_their_result(program: Program, channels: int) -> None:
    """Lowered, with messages joined, and in other blocks."""
    for one in (
        program, Coalesce(pack="never").run(program), BalanceThreadblocks(channels=channels).run(program),
        BalanceThreadblocks(channels=3, max_count=2).run(Coalesce(pack="never", max_count=2).run(program)),
    ):  # fmt: skip
        assert "conflicts" in one.found or not one.num_instructions or one is program
        due = found_plainly(one, sequential_order(one))
        assert pairs_of(known_conflicts(one)) == due
        assert pairs_of(conflicts(forgetful(one), sequential_order(one))) == due


@settings(max_examples=examples(40))
@given(programs, st.data())
def test_noted_conflicts_of_another_order_are_not_taken(program: Program, data: st.DataObject) -> None:
    """Any order is asked for, correct or not."""
    order = np.array(data.draw(st.permutations(range(program.num_instructions))), dtype=np.int64)
    conflicts(program, sequential_order(program))
    assert pairs_of(conflicts(program, order)) == found_plainly(program, order)


def test_the_verifier_finds_conflicts_that_were_noted_wrongly() -> None:
    """It looks at the accesses itself; what is known of a program under one name is known under another."""
    schedule = BFB().run(Problem(torus(3, 3), Collective("allreduce", 9)))
    program = Lower().run(Discretize().run(schedule))
    assert program.renamed("c").found["conflicts"] is program.found["conflicts"]
    assert program.renamed("c").name == "c" and program.renamed(program.name) is program
    assert verify_program(BalanceThreadblocks(channels=2).run(program)).ok
    note_conflicts(program, *(column[:0] for column in known_conflicts(program)))
    assert "races" in [check.name for check in verify_program(BalanceThreadblocks(channels=2).run(program)).failed]


@settings(max_examples=examples(40))
@given(programs, st.integers(0, 2**32 - 1))
def test_a_rearranged_program_is_synchronized(program: Program, seed: int) -> None:
    """Instructions move to random blocks of their ranks; dependencies are those found after they have."""
    order, ranks = sequential_order(program), program.num_ranks
    owner = 2 * program.rank + np.random.default_rng(seed).integers(0, 2, program.num_instructions)
    none = np.full(2 * ranks, -1)
    blocks = {"block_rank": np.repeat(np.arange(ranks), 2), "send_peer": none, "recv_peer": none, "channel": none + 1}
    rows = np.lexsort((order, owner))
    due = synchronize(take(program, rows, owner[rows], blocks), order[rows])
    found = reblock(program, order, blocks, owner)
    assert found == due
    moves = Rearrangement.of(program, order)
    number = moves.num_dependencies(moves.dependencies(owner))
    assert number[rows].tolist() == due.num_dependencies.tolist()


@settings(max_examples=examples(40))
@given(programs)
def test_merged_rows_have_the_dependencies_of_their_accesses(program: Program) -> None:
    joined = np.zeros(program.num_instructions, dtype=bool)
    coalesce = Coalesce(pack="never")
    with_notes = coalesce.run(program)
    assert with_notes == coalesce.run(forgetful(program))
    merged = merge_rows(program, joined)
    assert merged is not None and merged == merge_rows(forgetful(program), joined)
    assert pairs_of(known_conflicts(with_notes)) == found_plainly(with_notes, sequential_order(with_notes))


@settings(max_examples=examples(40))
@given(programs)
def test_wide_programs_are_merged_alike_with_and_without_notes(program: Program) -> None:
    """With notes, the merged program is built once and executed; what another added to it is not forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "MIN_BLOCKS", 0)
        patch.setattr(waves, "MIN_WIDTH", 0)
        coalesce = Coalesce(pack="never")
        assert is_synchronized(program) and not is_synchronized(forgetful(program))
        assert coalesce.run(program) == coalesce.run(forgetful(program))
        more = with_all_dependencies(program)
        note_conflicts(more, *known_conflicts(program))
        joined = np.zeros(program.num_instructions, dtype=bool)
        assert not is_synchronized(more)
        assert merge_rows(more, joined) == merge_rows(forgetful(more), joined)


@given(programs, st.integers(0, 2**32 - 1))
def test_expected_depths_are_taken_only_if_they_are_right(program: Program, seed: int) -> None:
    partner = partners(program)
    depth = _message_depths(forgetful(program), partner)
    assert _are_depths(program, partner, depth)
    if program.num_instructions:
        planted = depth.copy()
        planted[np.random.default_rng(seed).integers(0, len(depth))] += 1
        assert not _are_depths(program, partner, planted)
        program = forgetful(program)
        program.found["expected depths"] = planted
        assert _message_depths(program, partner).tolist() == depth.tolist()


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30), st.integers(1, 4))
def test_the_last_dependency_on_each_block_is_kept_unless_an_earlier_row_implies_it(
    pairs: list[tuple[int, int]], size: int
) -> None:
    block = np.arange(12) // size
    pairs = [(later, earlier) for later, earlier in pairs if later != earlier]
    later, earlier = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    due = set()
    for a, b in pairs:
        same = [(x, y) for x, y in pairs if block[x] == block[a] and block[y] == block[b] and x <= a]
        if block[a] != block[b] and not any(y > b or (y == b and x < a) for x, y in same):
            due.add((a, b))
    dependent, dependency = needed(block, later, earlier)
    assert list(zip(dependent.tolist(), dependency.tolist(), strict=True)) == sorted(due)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hazards, "_WORD", 0)  # as if the numbers of a pair did not fit one word
        slow = needed(block, later, earlier)
    assert (slow[0].tolist(), slow[1].tolist()) == (dependent.tolist(), dependency.tolist())
