"""Packing: several messages of places apart become one, through scratch, and what is computed stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import complete, torus
from sampling import examples
from strategies import connected, schedules

import collc as api
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.machine import partners, receivers
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.spec import Problem
from collc.ir.validate import structure
from collc.ir.verify import verify_program
from collc.passes.base import remarks
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.coalesce_packing import Group, _groups, saves_time, without_gaps
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.torus.pat import PAT

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
EVERY = (*KINDS, "alltoall", "gather", "scatter")


def lowered(schedule):
    return Lower().run(Discretize().run(schedule))


def assert_right(program, depth=2):
    """In place and out of place, whole messages and chunk by chunk, with FIFOs of ``depth`` messages."""
    assert structure(program) == []
    assert verify_program(program, fifo_depth=depth, split=1).failed == ()
    assert verify_program(program, fifo_depth=depth).failed == ()


def messages(program):
    return int((program.opcode == Opcode.SEND).sum())


@settings(max_examples=examples(30))
@given(schedules(kinds=EVERY))
def test_only_messages_that_need_copies_are_left_out_at_once(schedule):
    """Without a size, messages are packed only if that takes no copies: their places then have no gaps."""
    program = lowered(schedule)
    partner, code = partners(program), program.opcode
    other = np.where(program.receives, partner, receivers(partner))
    alike = np.concatenate([[False], (code[1:] == code[:-1]) & (program.block[1:] == program.block[:-1])])
    joined = alike & (code == Opcode.SEND) & (other >= 1) & alike[other] & (np.append(-1, other[:-1]) == other - 1)
    free = [group for group in _groups(program, joined, other) if group.copies == (0, 0)]
    kept = _groups(program, without_gaps(program, joined, other), other)
    assert [group for group in kept if group.copies == (0, 0)] == free


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(schedules(kinds=EVERY), st.sampled_from([None, 2, 5]))
def test_packing_keeps_what_is_computed(schedule, most):
    """Trees, switches, any root and collective; everything that may be packed is, within a runtime's count."""
    program = lowered(schedule)
    plain = Coalesce(pack="never", max_count=most).run(program)
    packed = Coalesce(pack="always", max_count=most).run(program)
    assert_right(packed)
    assert messages(packed) <= messages(plain)
    if most is not None:
        sends = packed.opcode == Opcode.SEND
        assert int(packed.count[sends].max(initial=0)) <= max(most, int(program.count.max(initial=0)))


@settings(max_examples=examples(15))
@given(connected(max_ranks=6, extra=8), st.sampled_from(KINDS))
def test_other_passes_take_what_was_packed(topology, kind):
    root = 0 if kind in ("broadcast", "reduce") else None
    program = lowered(BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root))))
    packed = Coalesce(pack="always").run(program)
    assert_right(BalanceThreadblocks(channels=2, max_count=3).run(packed))


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(connected(min_ranks=2, max_ranks=6, extra=8), st.sampled_from([None, 3]))
def test_an_alltoall_may_change_the_order_of_its_parts(topology, most):
    """What relays send lies in scratch, in another order than it goes: parts of messages change places."""
    program = lowered(Flow().run(Problem(topology, Collective("alltoall", topology.num_ranks))))
    assert_right(Coalesce(pack="always", max_count=most).run(program))


@pytest.mark.slow
@pytest.mark.parametrize("topology", [
    "diamond()", "mesh(3, 3)", "mesh(3, 4)", "kautz(2, 2)", "kautz(2, 3)", "line(complete(4))",
    "line(complete_bipartite(2), 2)", "cayley(metacyclic(8, 4, 3), {5, 17, 20, 30})",
])  # fmt: skip
def test_an_alltoall_of_a_size_is_packed(topology):
    text = f"topology t = {topology}; collective c = alltoall on t {{ size: 1 MiB }}; schedule c using flow;"
    made = api.compile_source(text, target="mpi-c", verify="each").collectives["c"]
    assert any("packed in scratch" in remark for remark in made.remarks)


def relayed(first):
    """Rank 0 gives rank 1 two chunks, ``first`` before the other, and rank 1 gives them rank 2 the other way round.

    They lie apart on rank 1, one where a third chunk was. Its second send has no wait of its own: the first waits for
    the later arrival.
    """
    i, o, s = Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH
    order, late = (first, 1 - first), 4
    code = [
        [(Opcode.SEND, i, 2, i, 0, 1, ()), (Opcode.COPY, i, 0, o, 0, 3, ())],
        [(Opcode.SEND, i, c, i, 0, 1, ()) for c in order],
        [(Opcode.RECV, i, 0, s, 2 * c, 1, (10,) if c else ()) for c in order],
        [(Opcode.SEND, s, 2 * c, i, 0, 1, (late + 1,) if c != first else ()) for c in reversed(order)],
        [(Opcode.RECV, i, 0, o, 2, 1, ()), (Opcode.SEND, o, 2, i, 0, 1, ()), (Opcode.COPY, o, 2, s, 2, 1, ())],
        [(Opcode.COPY, s, 2 * c, o, c, 1, (late + (c != first),)) for c in (0, 1)],
        [(Opcode.RECV, i, 0, o, c, 1, ()) for c in reversed(order)],
        [(Opcode.RECV, i, 0, o, 2, 1, ())],
    ]
    blocks = [
        (0, 1, -1, 1), (0, 1, -1, 0), (1, -1, 0, 0), (1, 2, -1, 0), (1, 2, 0, 1), (1, -1, -1, 0), (2, -1, 1, 0),
        (2, -1, 1, 1),
    ]  # fmt: skip
    return Program.build(Collective("broadcast", 3, root=0), 1, [0, 3, 0], blocks, code)


@pytest.mark.parametrize("first", [0, 1])
def test_waits_that_the_order_of_parts_implied_are_kept(first):
    assert_right(relayed(first))
    packed = Coalesce(pack="always").run(relayed(first))
    assert_right(packed)
    assert messages(packed) == 4


def added():
    """Rank 1 adds two arrivals to its own data; a block that has awaited the second copies the first sum."""
    i, o, s = Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH
    code = [
        [(Opcode.SEND, i, 0, i, 0, 1, ())],
        [(Opcode.SEND, i, c, i, 0, 1, ()) for c in (0, 1)],
        [(Opcode.RECV, i, 0, s, 0, 1, ()), (Opcode.REDUCE, s, 0, o, 0, 1, (10,)),
         (Opcode.RECV, i, 0, s, 1, 1, ()), (Opcode.REDUCE, s, 1, o, 1, 1, ())],
        [(Opcode.COPY, s, 1, s, 2, 1, (5,)), (Opcode.COPY, o, 0, s, 3, 1, ())],
        [(Opcode.RECV, i, 0, s, 4, 1, ()), (Opcode.COPY, i, 0, o, 0, 2, ())],
    ]  # fmt: skip
    blocks = [(0, 1, -1, 1), (0, 1, -1, 0), (1, -1, 0, 0), (1, -1, -1, 0), (1, -1, 0, 1)]
    return Program.build(Collective("reduce", 2, root=1), 1, [0, 5], blocks, code)


def test_waits_that_the_order_of_receives_and_sums_implied_are_kept():
    """Receive, add, receive, add becomes two receives, then two sums; who waited for the second receive waits on."""
    assert_right(added())
    joined = Coalesce(pack="never").run(added())
    assert_right(joined)
    assert joined.num_instructions == added().num_instructions - 3


def strided(size=None):
    """Rank 0 gives rank 1 the even chunks of 8 on one channel, the odd ones on another."""
    i, o = Buffer.INPUT, Buffer.OUTPUT
    sends = [[(Opcode.SEND, i, at, i, 0, 1, ()) for at in range(odd, 8, 2)] for odd in (0, 1)]
    receives = [[(Opcode.RECV, i, 0, o, at, 1, ()) for at in range(odd, 8, 2)] for odd in (0, 1)]
    copies = [(Opcode.COPY, i, 0, o, 0, 8, ())]
    blocks = [(0, 1, -1, 0), (0, 1, -1, 1), (0, -1, -1, 0), (1, -1, 0, 0), (1, -1, 0, 1)]
    broadcast = Collective("broadcast", 2, root=0, size=size)
    return Program.build(broadcast, 4, [0, 0], blocks, [*sends, copies, *receives])


def jumbled():
    """Rank 0 gives rank 1 all of 4 chunks, the even ones first."""
    i, o = Buffer.INPUT, Buffer.OUTPUT
    sends = [(Opcode.SEND, i, at, i, 0, 1, ()) for at in (0, 2, 1, 3)]
    receives = [(Opcode.RECV, i, 0, o, at, 1, ()) for at in (0, 2, 1, 3)]
    blocks = [(0, 1, -1, 0), (0, -1, -1, 0), (1, -1, 0, 0)]
    return Program.build(
        Collective("broadcast", 2, root=0), 2, [0, 0], blocks, [sends, [(Opcode.COPY, i, 0, o, 0, 4, ())], receives]
    )


def test_one_message_through_scratch():
    """Four messages of a chunk become one of four: each side copies what does not lie together."""
    with remarks() as told:
        packed = Coalesce(pack="always").run(strided())
    assert_right(packed)
    assert told == ["coalesce: 2 messages instead of 8, packed in scratch"]
    assert packed.scratch.tolist() == [8, 8] and messages(packed) == 2
    assert int((packed.opcode == Opcode.COPY).sum()) == 17


def test_what_only_needs_another_order_needs_no_copies():
    """So it is joined at every size."""
    joined = Coalesce().run(jumbled())
    assert_right(joined)
    assert messages(joined) == 1 and joined.scratch.tolist() == [0, 0] and joined.num_instructions == 3
    assert messages(Coalesce(pack="never").run(jumbled())) == 4


def test_packed_where_it_pays_at_the_collectives_size():
    """Small calls are packed, large ones are not, and without a size nothing is; `size` and `never` go before."""
    sent = {size: messages(Coalesce().run(strided(size))) for size in (None, 64, 1 << 16, 1 << 30)}
    assert sent == {None: 8, 64: 2, 1 << 16: 2, 1 << 30: 8}
    assert messages(Coalesce(size=1 << 30).run(strided(64))) == 8
    assert messages(Coalesce(size=64, start=1).run(strided())) == 8
    assert messages(Coalesce(pack="never").run(strided(64))) == 8


def test_what_is_packed_at_a_size_is_no_later_in_the_model():
    """The group decides by itself: 3 starts saved against 8 quarters and two copies of all bytes at memory speed."""
    chunk = (3 * 8 - 8 * 2) * (1 << 16) // 8  # where both are as long, had a message a byte a chunk
    group = Group(0, 0, 4, 1, (4, 4))
    assert saves_time(group, 4 * chunk - 1, 1 << 16) and not saves_time(group, 4 * chunk, 1 << 16)


@given(st.integers(2, 40), st.integers(1, 40), st.integers(1, 80), st.integers(1, 1 << 20), st.integers(1, 1 << 18))
def test_what_pays_is_what_the_model_says(number, copies, count, chunk, start):
    """k messages at a start each against one, the copies' starts and bytes at memory speed; one size decides."""
    group = Group(0, 0, number, count, (copies, 0))
    alone, together = 8 * number * start, 8 * start + 2 * copies * start + count * chunk
    assert saves_time(group, chunk, start) == (together < alone)
    assert saves_time(group, chunk, start) <= saves_time(group, chunk / 2, start)


def test_what_is_in_place_at_one_end_is_not_copied_there():
    """PAT's allgather stages what it receives: what lies together at an end is sent from there."""
    schedule = PAT().run(Problem(complete(8), Collective("allgather", 8)))
    plain, packed = (Coalesce(pack=how).run(lowered(schedule)) for how in ("never", "always"))
    assert_right(packed)
    assert messages(packed) <= messages(plain)


def test_a_threadblock_takes_the_copies():
    """Copies of a rank may all land in one threadblock, which holds so many steps."""
    schedule = BFB().run(Problem(torus(3, 3), Collective("allgather", 9)))
    free = Coalesce(pack="always").run(lowered(schedule))
    tight = Coalesce(pack="always", max_steps=6).run(lowered(schedule))
    assert_right(tight)
    assert messages(free) < messages(tight) or messages(free) == messages(Coalesce(pack="never").run(lowered(schedule)))
    local = np.isin(tight.opcode, [Opcode.COPY, Opcode.REDUCE])
    assert int(np.bincount(tight.block_rank[tight.block][local], minlength=9).max()) <= 6


@pytest.mark.parametrize("runtime", ["executor", "msccl", "rccl"])
def test_a_file_of_packed_messages_is_right(runtime):
    """At 4 KiB an allgather packs what goes over a link in a step; the file is read back and executed."""
    text = "topology t = torus(8); collective c = allgather on t { size: 1 KiB }; schedule c using swing;"
    made = api.compile_source(text, target=f"msccl-xml{{runtime={runtime}}}").collectives["c"]
    assert all(report.ok for report in made.reports)
    assert any("packed in scratch" in remark for remark in made.remarks)


def test_an_impossible_way_of_packing():
    for options in ({"pack": "sometimes"}, {"start": 0}, {"size": 0}):
        with pytest.raises(CollcError) as caught:
            Coalesce(**options).run(strided())
        assert caught.value.diagnostics[0].code == ("C0599" if "pack" in options else "C0508")
