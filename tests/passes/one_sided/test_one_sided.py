"""Programs as puts, signals and packets: the model of the executor accepts each, and counts are those of plans."""

from __future__ import annotations

from itertools import product

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_sided_faults import blocks_of, rebuilt
from programs import allpairs_allreduce, by_hand, recursive_doubling_allgather, ring_allreduce, scratch_sum
from sampling import every, examples
from strategies import schedules

import collc
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided import OneSided, Op
from collc.ir.program import Buffer, Program
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.one_sided.combine import CombineOperations
from collc.passes.one_sided.fit import FitOperations
from collc.passes.one_sided.handshake import Handshake
from collc.passes.one_sided.lower import LowerOneSided
from collc.passes.one_sided.nops import with_nops
from collc.passes.one_sided.place import PlaceMessages
from collc.passes.program.coalesce import Coalesce
from collc.passes.schedule.discretize import Discretize

USES = [
    {"packets": packets, "inplace": inplace, "ranks_per_node": node}
    for packets, inplace, node in product((False, True), (False, True), (None, 2))
]
AFTER = (PlaceMessages(), CombineOperations(max_operations=64), Handshake())


def test_passes_run_in_this_order() -> None:
    order = ("one-sided", "place-messages", "combine-operations", "handshake")
    assert (LowerOneSided.name, *(one.name for one in AFTER)) == order


def levels(program: Program, **options: bool | int | None) -> list[OneSided]:
    """Return what each pass leaves."""
    found = [LowerOneSided(**options).run(program)]
    for one in AFTER:
        found.append(one.run(found[-1]))
    return found


def require_right(program: OneSided) -> None:
    report = verify(program)
    assert report.ok, [check.detail for check in report.checks if not check.ok]


def longest(program: OneSided) -> int:
    return int(np.diff(program.block_start.astype(np.int64)).max())


def compiled(network: str, kind: str, scheduler: str = "") -> Program:
    root = ", root: 0" if kind in ("broadcast", "reduce", "gather", "scatter") else ""
    text = f"topology net = {network}; collective c = {kind} on net {{ size: 1 MiB{root} }};"
    using = f"schedule c using {scheduler};" if scheduler else ""
    target = "mpi-c" if kind in ("gather", "scatter") else "msccl-xml"
    done = collc.compile_source(text + using, target=target, verify="off")
    assert done.program is not None
    return done.program


@pytest.mark.quick
@pytest.mark.parametrize("number", range(len(by_hand())))
def test_every_pass_leaves_a_correct_program(number: int) -> None:
    for use in USES:
        for level in levels(by_hand()[number], **use):
            require_right(level)


def test_sums_in_scratch_stay_apart_from_packets() -> None:
    """A chunk of packets is twice as large as a plain one."""
    for use in USES:
        for level in levels(scratch_sum(), **use):
            require_right(level)


CASES = [
    (network, kind, scheduler)
    for network, kinds, schedulers in (
        ("torus(3, 2)", ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce"), ("bfb", "forest", "bine")),
        ("biring(5)", ("allreduce", "allgather", "reduce-scatter"), ("ring", "swing", "pat", "trivance", "bucket")),
        ("hypercube(3)", ("allreduce",), ("recursive-doubling", "rabenseifner", "double-binary-tree", "ring")),
        ("biring(2)", ("allreduce", "alltoall", "broadcast"), ("",)),
        ("complete(5)", ("allreduce", "alltoall", "gather", "scatter", "reduce-scatter"), ("",)),
        ("uniring(3)", ("allreduce", "alltoall", "broadcast", "reduce", "gather", "scatter"), ("", "exact")),
        ("uniring(4)", ("alltoall", "broadcast", "allgather"), ("general",)),
        ("torus(3, 2)", ("alltoall", "gather"), ("flow",)),
    )
    for kind, scheduler in product(kinds, schedulers)
]  # fmt: skip


@pytest.mark.parametrize(("network", "kind", "scheduler"), every(3, CASES))
def test_every_scheduler(network: str, kind: str, scheduler: str) -> None:
    try:
        program = compiled(network, kind, scheduler)
    except CollcError:
        return  # the scheduler does not take the collective on this network
    for use in USES:
        require_right(levels(program, **use)[-1])


@settings(max_examples=examples(24), deadline=None)
@given(schedules(), st.sampled_from(USES), st.booleans())
def test_random_schedules(schedule, use, joined) -> None:  # type: ignore[no-untyped-def]
    sums = attrs.evolve(schedule.collective, op="sum", dtype="float32")
    program = Lower().run(Discretize().run(attrs.evolve(schedule, collective=sums)))
    if not program.num_instructions:
        return
    for level in levels(Coalesce().run(program) if joined else program, **use):
        require_right(level)


# ---- counts


@pytest.mark.parametrize("inplace", [False, True])
def test_a_ring_of_packets_has_three_operations_for_each_peer(inplace: bool) -> None:
    last = levels(ring_allreduce(8), packets=True, inplace=inplace)[-1]
    assert longest(last) == 21
    assert set(last.scratch.tolist()) == {14}
    assert last.num_blocks == 8


@pytest.mark.parametrize("ranks", [3, 4, 7, 8])
def test_a_ring_of_signals_has_five_operations_a_step(ranks: int) -> None:
    """The worked example of the notes has ten for each peer and 3 at the start; the last wait needs no nop."""
    last = levels(ring_allreduce(ranks), packets=False, inplace=True)[-1]
    assert longest(last) == 10 * (ranks - 1) + 2
    assert set(last.scratch.tolist()) == {ranks - 1}


def test_all_pairs_are_one_block_with_few_operations() -> None:
    packets = levels(allpairs_allreduce(8), packets=True, inplace=True)[-1]
    assert (packets.num_blocks, longest(packets), set(packets.scratch.tolist())) == (8, 9, {14})
    signals = levels(allpairs_allreduce(8), packets=False, inplace=True)[-1]
    assert (signals.num_blocks, longest(signals), set(signals.scratch.tolist())) == (8, 7, {0})


def test_a_direct_allgather_needs_no_scratch() -> None:
    last = levels(compiled("complete(8)", "allgather"), packets=False, inplace=True)[-1]
    assert (last.num_blocks, longest(last), set(last.scratch.tolist())) == (8, 7, {0})


def test_packets_need_no_handshake_where_data_come_back() -> None:
    for program in (ring_allreduce(4), recursive_doubling_allgather(8)):
        last = levels(program, packets=True)[-1]
        assert not np.isin(last.opcode, (Op.RLXSIGNAL, Op.RLXWAIT, Op.SIGNAL, Op.WAIT)).any()
        assert not last.together


# ---- choices


@pytest.mark.parametrize(("size", "packets"), [("1 MiB", True), ("64 MiB", False)])
def test_the_largest_message_decides_about_packets(size: str, packets: bool) -> None:
    text = f"topology net = uniring(32); collective c = allreduce on net {{ size: {size} }};"
    program = collc.compile_source(text, target="msccl-xml", verify="off").program
    assert program is not None
    with remarks() as notes:
        assert LowerOneSided().run(program).packets is packets
    assert any("largest message" in text for text in notes)


def test_ports_join_nodes_and_memory_joins_ranks_of_one() -> None:
    program = LowerOneSided(packets=False, ranks_per_node=2).run(ring_allreduce(4))
    node = program.channel_rank // 2 == program.channel_peer // 2
    assert node.tolist() == (program.channel_transport == 0).tolist()


# ---- blocks that share operations


@pytest.mark.parametrize("use", every(2, USES))
def test_blocks_share_operations(use: dict[str, bool | int | None]) -> None:
    for program in (ring_allreduce(4), recursive_doubling_allgather(8)):
        last = levels(program, **use)[-2]
        shared = Handshake(shares=3).run(last)
        assert shared.num_blocks == 3 * last.num_blocks
        require_right(shared)


def test_blocks_whose_slices_differ_meet_at_barriers() -> None:
    """Recursive doubling sends the chunks together that arrived apart."""
    last = levels(recursive_doubling_allgather(8), packets=False)[-2]
    shared = Handshake(shares=2).run(last)
    assert (shared.opcode == Op.BARRIER).any()
    require_right(shared)
    with pytest.raises(CollcError, match="barrier"):
        Handshake(shares=2, max_barriers=0).run(last)


# ---- planted faults


def without(program: OneSided, row: int) -> OneSided:
    """Return the program without one operation."""
    blocks = blocks_of(program)
    block = int(program.block[row])
    del blocks[block][1][row - int(program.block_start[block])]
    return rebuilt(program, blocks)


def after_greeting(program: OneSided, row: int) -> bool:
    """Return whether an operation follows the wait for the start of peers.

    Another plan may use the same scratch, so that wait stands even where the data of the launch before imply it.
    """
    return bool(program.opcode[row - 1] == Op.RLXWAIT)


@pytest.mark.parametrize("program", [ring_allreduce(3), allpairs_allreduce(4)], ids=["ring", "all pairs"])
def test_every_nop_signal_and_wait_is_needed(program: Program) -> None:
    last = levels(program, packets=False, inplace=True)[-1]
    needed = np.isin(last.opcode, (Op.NOP, Op.WAIT, Op.SIGNAL, Op.RLXWAIT, Op.RLXSIGNAL)) & (last.rank == 0)
    rows = [row for row in np.flatnonzero(needed).tolist() if not after_greeting(last, row)]
    assert len(rows) > 4
    for row in rows:
        assert not verify(without(last, row)).ok, last.place(row)
    assert with_nops(last) == last


def test_swapped_slots_are_refused() -> None:
    program = levels(ring_allreduce(4), packets=True)[-1]
    offset = program.item_offset.astype(np.int64)
    slot = np.flatnonzero((program.item_buffer == Buffer.SCRATCH) & (program.item_rank == 1))
    pair = {int(offset[slot].min()): int(offset[slot].max())}
    written = slot[program.rank[program.item_operation[slot]] == 0]
    offset[written] = [pair.get(one, one) for one in offset[written].tolist()]
    assert not verify(attrs.evolve(program, item_offset=offset)).ok


def test_a_message_lands_only_where_the_receiver_has_read() -> None:
    """Ranks that exchange a shard in place would overwrite what the other has not yet sent."""
    program = compiled("biring(2)", "alltoall")
    apart, together = (levels(program, packets=False, inplace=inplace)[1] for inplace in (False, True))
    assert not apart.scratch.any()
    assert together.scratch.all()
    require_right(together)


# ---- inputs that are read in place


def test_inputs_that_are_only_added_are_read_where_they_are() -> None:
    last = levels(allpairs_allreduce(8), packets=False, inplace=True)[-1]
    assert {Op(one).word for one in last.opcode.tolist()} == {"rlxsignal", "rlxwait", "nop", "rres", "signal", "wait"}
    summed = levels(compiled("complete(5)", "reduce-scatter"), packets=False)[-1]
    assert (longest(summed), int(summed.scratch.max())) == (7, 0)
    assert len(summed.channel_rank) == 20
    require_right(summed)


def test_inputs_that_change_are_not_read_in_place() -> None:
    """In place every rank of a one-step allreduce overwrites what the others read."""
    program = compiled("biring(2)", "allreduce", "recursive-doubling")
    for inplace in (False, True):
        last = levels(program, packets=False, inplace=inplace)[-1]
        assert (last.opcode == Op.RRE).any() is np.bool_(not inplace)
        require_right(last)


def test_blocks_that_flush_ports_can_be_cut() -> None:
    """The executor's own put with flush takes the address of a list for an offset, so no program has one."""
    last = levels(ring_allreduce(8), packets=False, ranks_per_node=2)[-1]
    assert (last.opcode == Op.FLUSH).any()
    assert not (last.opcode == Op.PWSF).any()
    cut = FitOperations(max_operations=64).run(last)
    assert longest(cut) <= 64 < longest(last)
    require_right(cut)


def test_blocks_that_meet_at_barriers_can_be_cut() -> None:
    """Parts of cut blocks meet at barriers of their own, of which a rank has few."""
    shared = Handshake(shares=2).run(levels(compiled("torus(4, 4)", "allreduce", "bfb"), packets=False)[-2])
    assert (shared.opcode == Op.BARRIER).any()
    require_right(FitOperations(max_operations=16, max_barriers=64).run(shared))
    with pytest.raises(CollcError, match="blocks of a rank meet at") as refused:
        FitOperations(max_operations=16, max_barriers=1).run(shared)
    assert [one.code for one in refused.value.diagnostics] == ["C0574"]
