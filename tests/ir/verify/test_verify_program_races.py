"""Races: what the verifier says against reachability in the graph of all single-chunk events."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest
from built_programs import direct, find, random_program, ring, with_deps
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.layout import layout
from collc.ir.machine import execute, partners
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.ragged import inverse
from collc.ir.verify import _order, _races, verify_program
from collc.ir.verify._accesses import accesses

IN, OUT, SCRATCH = Buffer
SEND, RECV, COPY = Opcode.SEND, Opcode.RECV, Opcode.COPY
FORWARD = Opcode.RECV_COPY_SEND


def events(program: Program) -> networkx.DiGraph:
    """Return what must come before what: nodes (instruction, chunk), a nop being one chunk."""
    graph = networkx.DiGraph()
    size = [max(int(c), 1) for c in program.count]
    partner = partners(program).tolist()
    for i in range(program.num_instructions):
        networkx.add_path(graph, [(i, k) for k in range(size[i])])
        graph.add_node((i, 0))
        before = program.dependencies(i) + ([i - 1] if program.step[i] else [])
        graph.add_edges_from(((d, size[d] - 1), (i, 0)) for d in before)
        if partner[i] >= 0:
            graph.add_edges_from(((partner[i], k), (i, k)) for k in range(size[i]))
    return graph


def touches(program: Program, i: int) -> list[tuple[tuple[int, int, int], int, bool]]:
    """Return (location, chunk of the instruction, is a write) for each access of an instruction."""
    op, rank = Opcode(int(program.opcode[i])), int(program.block_rank[program.block[i]])
    src, dst = (
        (rank, int(getattr(program, f"{end}_buffer")[i]), int(getattr(program, f"{end}_offset")[i]))
        for end in ("src", "dst")
    )
    writes = op.writes_dst and not (op is COPY and src == dst)
    used = [(src, False)] * op.reads_src + [(dst, False)] * op.reads_dst + [(dst, True)] * writes
    return [((r, b, at + k), k, w) for (r, b, at), w in used for k in range(int(program.count[i]))]


def racing(program: Program) -> set[tuple[int, int]]:
    """Return the pairs of instructions that race, found the slow way."""
    graph = events(program)
    after = {node: networkx.descendants(graph, node) for node in graph}
    seen: dict[tuple[int, int, int], list[tuple[int, int, bool]]] = {}
    for i in range(program.num_instructions):
        for location, chunk, write in touches(program, i):
            seen.setdefault(location, []).append((i, chunk, write))
    pairs = set()
    for some in seen.values():
        for (i, a, writes), (j, b, also) in itertools.combinations(some, 2):
            apart = program.block[i] != program.block[j] and (writes or also)
            if apart and (j, b) not in after[i, a] and (i, a) not in after[j, b]:
                pairs.add((min(i, j), max(i, j)))
    return pairs


def verdict(program: Program, inplace: bool = False):
    (check,) = (c for c in verify_program(program, inplace=inplace).checks if c.name == "races")
    return check


@pytest.mark.slow
@given(
    st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 12), st.integers(1, 40), st.integers(0, 3),
    st.sampled_from([1, 2, 4096]), st.sampled_from([1, 3, 1 << 24]), st.sampled_from([1, 9, 1 << 19]),
)  # fmt: skip
@settings(deadline=None, max_examples=examples(200))
def test_exactly_the_racing_programs_race(seed, ranks, messages, size, waits, bits, clocks, rows):
    program = random_program(seed, ranks, messages, size=size, waits=waits, widest=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_order, "CLOCKS", clocks)
        patch.setattr("collc.ir.verify._races.BITS", bits)
        patch.setattr("collc.ir.verify._races._ROWS", rows)
        check = verdict(program)
    pairs = racing(program)
    assert check.ok == (not pairs), check.detail
    if pairs:
        named = {(i, j) for i, j in pairs if all(f"{program.place(k)} (" in check.detail for k in (i, j))}
        assert named


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 12), st.integers(1, 30))
@settings(deadline=None)
def test_ranks_have_no_conflict_in_common(seed, ranks, messages, rows):
    """The pairs of some ranks at a time are those of all at once, in the same order."""
    program = random_program(seed, ranks, messages, waits=1)
    where = layout(program, inplace=True)
    touched, time = accesses(program, where), inverse(execute(program).finished)
    one = _races._of_some(program, touched, time)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_races, "_ROWS", rows)
        several = _races._conflicts(program, touched, time)
    assert np.array_equal(one.before, several.before) and np.array_equal(one.after, several.after)


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 12))
@settings(deadline=None)
def test_relations_are_reachability(seed, ranks, messages):
    program = random_program(seed, ranks, messages)
    order = _order.Order(program, execute(program).finished, partners(program))
    graph = events(program)
    pairs = [
        (i, j)
        for i, j in itertools.permutations(range(program.num_instructions), 2)
        if program.block[i] != program.block[j]
        and program.block_rank[program.block[i]] == program.block_rank[program.block[j]]
        and order.time[i] < order.time[j]
    ]
    if not pairs:
        return
    before, after = (_order.np.array(column) for column in zip(*pairs, strict=True))
    within, through = order._by_clocks(before, after), order.through_ranks(before, after)
    assert (order.within_rank(before, after) == within).all() and (within >= order._directly(before, after)).all()
    local = graph.copy()
    block_rank = program.block_rank[program.block]
    local.remove_edges_from([(x, y) for x, y in graph.edges if block_rank[x[0]] != block_rank[y[0]]])
    for (i, j), clocks, relation in zip(pairs, within.tolist(), through.tolist(), strict=True):
        last = max(int(program.count[i]), 1) - 1
        strongly = networkx.has_path(graph, (i, last), (j, 0))
        if last:
            assert (relation == _order.STRONG) == strongly
        assert (relation != _order.UNORDERED) == networkx.has_path(
            graph, (i, 0), (j, max(int(program.count[j]), 1) - 1)
        )
        assert clocks == networkx.has_path(local, (i, last), (j, 0))
        assert strongly or not clocks


def _there_and_back(written: int) -> Program:
    """Rank 0 sends scratch chunks 1 to 3 to rank 1, which sends them on as they come; rank 0 writes them back."""
    blocks = [(0, 1, -1, 0), (0, -1, 1, 0), (1, 0, 0, 0)]
    return Program.build(
        Collective("allgather", 2), 1, [5, 5], blocks,
        [
            [(SEND, SCRATCH, 1, IN, 0, 3, ())],
            [(RECV, IN, 0, SCRATCH, written, 3, ())],
            [(FORWARD, IN, 0, SCRATCH, 0, 3, ())],
        ],
    )  # fmt: skip


def test_fused_instructions_order_only_chunk_by_chunk():
    # chunk k comes back after chunk k was sent; what lies further on may not have been sent yet
    assert verdict(_there_and_back(1)).ok
    assert verdict(_there_and_back(0)).ok
    check = verdict(_there_and_back(2))
    assert not check.ok
    assert check.detail == (
        "out of place: rank 0, threadblock 0, step 0 (send) reads scratch chunk 2 of rank 0 and rank 0, threadblock 1, "
        "step 0 (recv) writes it, but only messages forwarded chunk by chunk order them: a "
        "dependency of the second on the first is missing"
    )


def test_storing_before_sending_on_orders_all():
    program = _there_and_back(2)
    rows = [
        [(SEND, SCRATCH, 1, IN, 0, 3, ())],
        [(RECV, IN, 0, SCRATCH, 2, 3, ())],
        [(RECV, IN, 0, SCRATCH, 0, 3, ()), (SEND, SCRATCH, 0, IN, 0, 3, ())],
    ]
    blocks = [(0, 1, -1, 0), (0, -1, 1, 0), (1, 0, 0, 0)]
    stored = Program.build(program.collective, 1, [5, 5], blocks, rows)
    assert verdict(stored).ok


def test_a_missing_dependency_is_a_race():
    program = direct("allreduce", 4, 2)
    adds = find(program, rank=2, block=0, step=1)
    assert program.opcode[adds] == Opcode.REDUCE and len(program.dependencies(adds)) == 3
    for missing in program.dependencies(adds):
        check = verdict(with_deps(program, adds, [d for d in program.dependencies(adds) if d != missing]))
        assert not check.ok
        assert f"{program.place(missing)} (recv) writes" in check.detail and "scratch chunk" in check.detail
        assert "rank 2, threadblock 0, step" in check.detail and "their order is undefined" in check.detail


def test_a_race_may_exist_only_in_place():
    """The own block of the output serves as a place to land; in place it is what another block is sending."""
    blocks, code = [], []
    for rank, peer in ((0, 1), (1, 0)):
        blocks += [(rank, peer, -1, 0), (rank, -1, peer, 0)]
        code.append([(SEND, IN, 0, IN, 0, 1, ())])
        code.append(
            [
                (RECV, IN, 0, OUT, rank, 1, ()),
                (COPY, OUT, rank, OUT, peer, 1, ()),
                (COPY, IN, 0, OUT, rank, 1, ()),
            ]
        )
    program = Program.build(Collective("allgather", 2), 1, [0, 0], blocks, code)
    assert verify_program(program, inplace=False).ok
    check = verdict(program, inplace=True)
    assert not check.ok and "rank 0, threadblock 0, step 0 (send) reads" in check.detail
    assert "input chunk 0 = output chunk 0 of rank 0" in check.detail
    both = verdict(program, inplace=None)
    assert not both.ok and both.detail.startswith("in place: ") and "out of place" not in both.detail


def test_copying_a_place_onto_itself_may_meet_reads_but_no_writes():
    onto_itself = [(COPY, SCRATCH, 0, SCRATCH, 0, 1, ())]
    blocks = [(0, -1, -1, 0), (0, -1, -1, 1)]
    for other, good in (((COPY, SCRATCH, 0, OUT, 0, 1, ()), True), ((COPY, IN, 0, SCRATCH, 0, 1, ()), False)):
        program = Program.build(Collective("allgather", 1), 1, [1], blocks, [onto_itself, [other]])
        assert verdict(program).ok == good


def test_an_instruction_may_not_overlap_itself():
    rows = [(COPY, SCRATCH, 0, SCRATCH, 1, 2, ())]
    program = Program.build(Collective("allgather", 1), 1, [4], [(0, -1, -1, 0)], [rows])
    check = verdict(program)
    assert not check.ok
    assert "rank 0, threadblock 0, step 0 (copy) reads scratch chunk 0 of rank 0" in check.detail
    assert "2 chunks that overlap" in check.detail


def test_right_programs_do_not_race():
    for kind in ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"):
        for ranks in range(1, 6):
            assert verdict(ring(kind, ranks, 2), inplace=None).ok
            assert verdict(direct(kind, ranks, 2), inplace=None).ok
