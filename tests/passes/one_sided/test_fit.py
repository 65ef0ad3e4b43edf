"""Blocks that do not fit become successive ones; programs stay right, whatever the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_sided_programs import SHAPES, ring, ring_of_packets

from collc.backends.mscclpp_json.limits import counted_operations, linked, reached
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Kind
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Channel, Item, OneSided, Operation, Transport
from collc.ir.program import Buffer
from collc.ir.validate import structure
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.one_sided import waiters
from collc.passes.one_sided.fit import FitOperations

IN, OUT, SCRATCH = Buffer
MEMORY = Transport.MEMORY
NOP = Operation(Op.NOP)


def right(program: OneSided) -> OneSided:
    """Return a program that is well formed and right."""
    assert not structure(program)
    report = verify(program)
    assert report.ok, report.failed
    return program


def test_a_program_that_fits_is_unchanged() -> None:
    program = ring_of_packets(8)
    assert FitOperations().run(program) is program


@pytest.mark.parametrize("ranks", [8, 12])
def test_rings_are_cut_where_steps_end(ranks: int) -> None:
    program = ring(ranks)
    fitting = right(FitOperations().run(program))
    assert int(counted_operations(fitting).max()) <= 64 < int(counted_operations(program).max())
    first = fitting.operations()[: int(fitting.block_start[1])]
    assert [one.op for one in first[-3:]] == [Op.NOP, Op.SIGNAL, Op.SEM_RELEASE], "no nop more than the step has"
    second = fitting.operations()[int(fitting.block_start[1]) :][:3]
    assert [one.op for one in second] == [Op.SEM_ACQUIRE, Op.WAIT, Op.NOP]
    assert fitting.num_blocks == ranks * -(-int(counted_operations(program).max()) // 62)


@given(st.integers(3, 6), st.integers(8, 40), st.booleans())
def test_any_number_of_operations_keeps_the_program_right(ranks: int, most: int, packets: bool) -> None:
    program = ring_of_packets(ranks) if packets else ring(ranks)
    fitting = right(FitOperations(max_operations=most).run(program))
    assert int(counted_operations(fitting).max()) <= most
    kept = [one for one in fitting.operations() if one.op not in (Op.NOP, Op.SEM_ACQUIRE, Op.SEM_RELEASE)]
    due = [one for one in program.operations() if one.op is not Op.NOP]
    assert [(one.op, one.src, one.dst) for one in kept] == [(one.op, one.src, one.dst) for one in due]


def test_existing_semaphores_keep_their_operations() -> None:
    program = FitOperations(max_operations=20).run(ring(4))
    again = right(FitOperations(max_operations=10).run(program))
    assert len(again.semaphore_rank) == again.num_blocks - 4


@pytest.mark.parametrize("most", [8, 11, 16, 23, 40])
@pytest.mark.parametrize("name", SHAPES)
def test_pairs_of_blocks_are_numbered_as_one_after_the_other(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs without flushes may be handled as those with flushes are: the result is the same."""
    program = ring(8) if name == "ring" else SHAPES[name]()
    results = []
    for quick in (True, False):
        with monkeypatch.context() as within:
            if not quick:
                within.setattr(waiters, "_with_own_channels", waiters._with_flushed_channels)
            try:
                results.append(FitOperations(max_operations=most).run(program))
            except CollcError as refused:
                results.append(str(refused))
    assert results[0] == results[1]


def test_more_blocks_than_run_at_once_are_refused_with_the_numbers() -> None:
    with pytest.raises(CollcError, match="C0572") as refused:
        FitOperations(max_blocks=1).run(ring(8))
    (one,) = refused.value.diagnostics
    assert one.kind is Kind.LIMIT and one.excess is not None and (one.excess.found, one.excess.allowed) == (2, 1)
    assert "2 blocks at once, 1 run at once" in one.message and "protocol=LL" in str(one.hint)
    with remarks() as found:
        FitOperations(max_blocks=2).run(ring(8))
    assert found == ["fit-operations: a rank uses 2 blocks of 2 that run at once, 8 blocks cut"]


# ---- wide operations


def star(peers: int) -> OneSided:
    """Return an allreduce in place: rank 0 sends to all at once, and all to all; one block a rank, two waits."""
    ranks = peers + 1
    channels = [Channel(rank, peer, MEMORY) for rank in range(ranks) for peer in range(ranks) if peer != rank]
    row = {(one.rank, one.peer): number for number, one in enumerate(channels)}
    blocks = []
    for rank in range(ranks):
        others = [peer for peer in range(ranks) if peer != rank]
        links = tuple(row[rank, peer] for peer in others)
        own = Item(rank, IN, 0, ranks)
        slots = [Item(rank, SCRATCH, ranks * number, ranks) for number in range(peers)]
        there = tuple(Item(peer, SCRATCH, ranks * (rank - (rank > peer)), ranks) for peer in others)
        blocks.append((rank, [
            Operation(Op.RLXSIGNAL, MEMORY, links), Operation(Op.RLXWAIT, MEMORY, links), NOP,
            Operation(Op.PUT, MEMORY, (), (own,) * peers, there), NOP, Operation(Op.SIGNAL, MEMORY, links),
            Operation(Op.WAIT, MEMORY, links), NOP, Operation(Op.RE, src=(own, *slots), dst=(own,)),
        ]))  # fmt: skip
    return OneSided.build(
        Collective("allreduce", ranks), 1, [(ranks, ranks, ranks * peers)] * ranks, channels, blocks, inplace=True
    )


@pytest.mark.parametrize("peers", [3, 9, 11])
def test_wide_operations_become_several(peers: int) -> None:
    program = star(peers)
    fitting = right(FitOperations().run(program))
    operations = fitting.operations()
    assert all(len(one.links) <= 8 and len(one.src) <= 10 and len(one.dst) <= 10 for one in operations)
    assert (fitting is program) == (peers <= 8)


def test_blocks_with_many_channels_are_cut() -> None:
    program = star(18)
    fitting = FitOperations().run(program)
    for rows in (linked(fitting), reached(fitting)):
        blocks = rows[:, 0].tolist()
        assert max(blocks.count(block) for block in set(blocks)) <= 16
    assert fitting.num_blocks > program.num_blocks


@pytest.mark.parametrize(("most", "links"), [(8, 2), (11, 3), (16, 6), (23, 3), (23, 8)])
@pytest.mark.parametrize("name", ["ring", "allgather", "alltoall", "star"])
def test_cuts_of_peers_leave_no_block_with_too_many_channels(name: str, most: int, links: int) -> None:
    """A block has a channel to each part of a peer's block, and these parts come by cutting."""
    program = {"ring": lambda: ring(8), "star": lambda: star(5), **SHAPES}[name]()
    fitting = right(FitOperations(max_operations=most, max_links=links, max_link_ids=2, max_items=2).run(program))
    assert int(counted_operations(fitting).max()) <= most
    for rows in (linked(fitting), reached(fitting)):
        kinds = list(map(tuple, rows[:, :2].tolist()))
        assert max(map(kinds.count, set(kinds))) <= links


def test_sums_to_many_peers_store_and_then_put() -> None:
    own, slots = Item(0, IN, 0, 1), [Item(0, SCRATCH, k, 1) for k in range(12)]
    there = [Item(1, SCRATCH, k, 1) for k in range(12)]
    operation = Operation(Op.RES, MEMORY, (), (own, *slots), (own, *there))
    program = OneSided.build(Collective("allreduce", 2), 1, [(2, 2, 12)] * 2, [], [(0, [operation])])
    found = [one for one in FitOperations().run(program).operations() if one.op is not Op.NOP]
    assert [one.op for one in found] == [Op.RE, Op.RES, Op.PUT]
    assert found[0].src + found[1].src[1:] == (own, *slots) and found[1].src[0] == own
    assert found[1].dst[1:] + found[2].dst == tuple(there) and set(found[2].src) == {own}


def test_what_cannot_be_split_is_refused() -> None:
    slots = [Item(0, SCRATCH, k, 1) for k in range(12)]
    operation = Operation(Op.RECPKT, src=(Item(0, IN, 0, 1), *slots), dst=(Item(0, IN, 0, 1), slots[0]))
    program = OneSided.build(Collective("allreduce", 2), 1, [(2, 2, 12)] * 2, [], [(0, [operation])], packets=True)
    with pytest.raises(CollcError, match="C0573"):
        FitOperations().run(program)
    loop = [Operation(Op.NOP, loop=0)] * 70
    long = OneSided.build(Collective("allreduce", 2), 1, [(2, 2, 0)] * 2, [], [(0, loop)], loops=[(16, 1)])
    with pytest.raises(CollcError, match="C0573"):
        FitOperations().run(long)


def test_pipelines_are_not_cut() -> None:
    body = [Operation(Op.NOP, loop=0)] * 6
    program = OneSided.build(
        Collective("allreduce", 2), 1, [(2, 2, 0)] * 2, [], [(0, [*[NOP] * 5, *body, *[NOP] * 5])], loops=[(16, 1)]
    )
    fitting = FitOperations(max_operations=10).run(program)
    assert int(counted_operations(fitting).max()) <= 10
    inside = [fitting.block[row] for row, one in enumerate(fitting.operations()) if one.loop == 0]
    assert len(inside) == 6 and len(set(inside)) == 1


def test_parts_of_two_blocks_have_semaphores_of_their_own() -> None:
    """One block copies chunk after chunk to scratch, another copies each on when it is there."""
    count, rank = 9, 0
    copies, onward = [], []
    for k in range(count):
        slot = Item(rank, SCRATCH, k, 1)
        copies += [Operation(Op.COPY, src=(Item(rank, IN, k, 1),), dst=(slot,)), NOP]
        copies += [Operation(Op.SEM_RELEASE, links=(0,))]
        onward += [Operation(Op.SEM_ACQUIRE, links=(0,)), NOP]
        onward += [Operation(Op.COPY, src=(slot,), dst=(Item(rank, OUT, k, 1),))]
    program = OneSided.build(
        Collective("allreduce", 1), count, [(count, count, count)], [], [(0, copies), (0, onward)], semaphores=[(0, 0)]
    )
    fitting = right(FitOperations(max_operations=10).run(right(program)))
    assert int(counted_operations(fitting).max()) <= 10 and fitting.num_blocks >= 6
    for op in (Op.SEM_RELEASE, Op.SEM_ACQUIRE):
        uses = [(one.links, int(fitting.block[row])) for row, one in enumerate(fitting.operations()) if one.op is op]
        assert len({links for links, _ in uses}) == len(set(uses)), "one block for each semaphore"
