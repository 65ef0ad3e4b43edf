"""Each rule of the executor, and a mistake that breaks it: the check that should refuses it, and says where it is."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from one_sided_faults import blocks_of, rebuilt
from one_sided_judge import judge
from one_sided_programs import (
    IN,
    MEMORY,
    NOP,
    OUT,
    PORT,
    SCRATCH,
    SHAPES,
    copy,
    credits,
    item,
    on,
    producers,
    ring,
    ring_of_packets,
    two_blocks,
)

from collc.ir.collective import Collective
from collc.ir.one_sided import Channel, OneSided, Op, Operation
from collc.ir.verify import verify


def failures(program):
    return {check.name: check.detail for check in verify(program).failed}


def edited(name: str, rank: int, step: int, new: Callable[[Operation], list[Operation]], block: int = 0) -> OneSided:
    """Return a program of a shape in which one operation is replaced by others."""
    program = SHAPES[name]()
    blocks = blocks_of(program)
    rows = [rows for of, rows in blocks if of == rank][block]
    rows[step : step + 1] = new(rows[step])
    return rebuilt(program, blocks)


def gone(row: Operation) -> list[Operation]:
    return []


def with_(**fields: object) -> Callable[[Operation], list[Operation]]:
    return lambda row: [row._replace(**fields)]


def moved(side: str, **fields: int) -> Callable[[Operation], list[Operation]]:
    """Return what changes the first item of a side."""
    return lambda row: [row._replace(**{side: (getattr(row, side)[0]._replace(**fields), *getattr(row, side)[1:])})]


#: name -> (shape, rank, step, change, check that fails, part of its detail)
TIMING = {
    "no nop before a signal": (
        "ring", 0, 4, gone, "races", "no nop stands between the first and rank 0, block 0, operation 4 (signal)",
    ),
    "no nop after a wait": (
        "ring", 1, 7, gone, "races", "no nop stands between it and rank 1, block 0, operation 6 (wait)",
    ),
    "no wait": ("ring", 1, 6, gone, "leftover signals", "does not wait for its data"),
    "no signal": ("ring", 0, 5, gone, "deadlock", "from rank 0, which gives 3"),
    "another slot": ("ring", 1, 8, moved("src", offset=1), "single reduction", "which is another chunk"),
    "a signal that orders nothing": ("ring", 0, 5, with_(op=Op.RLXSIGNAL), "races", "only relaxed signals order them"),
    "a wait that orders nothing": ("ring", 1, 6, with_(op=Op.RLXWAIT), "races", "only relaxed signals order them"),
    "no ready from the peer": ("allgather", 0, 1, gone, "leftover signals", "launch 2"),
    "nobody says when reads are over": (
        "reads", 0, 5, with_(op=Op.RLXSIGNAL), "races", "which may end the launch before that",
    ),
    "a flush of nothing": ("reused source", 0, 7, with_(dst=()), "races", "(put) reads scratch chunk 0 of rank 0"),
    "a source that its user gets back": ("allgather over ports", 0, 4, with_(op=Op.PWS), "races", "through its port"),
    "an acquire without a nop": ("semaphores", 1, 1, gone, "races", "operation 0 (sem_acquire)", 1),
    # the thread that waits is the one that releases
    "a release without a nop": ("semaphores", 1, 2, gone, "", ""),
    "packets that a port sends before they are packed": (
        "packed for a port", 0, 1, gone, "races", "(cpkt) writes packets 0 of rank 0 and",
    ),
    "no barrier": ("barrier", 1, 0, gone, "channels", "joins 2 blocks, but 1 blocks use barrier 3", 1),
    "a semaphore that is not released": ("semaphores", 1, 3, gone, "deadlock", "waits for a semaphore"),
    "a semaphore that rises": (
        "semaphores", 1, 3, lambda row: [row, row], "leftover signals", "begins at 0 and ends at 1",
    ),
    "a get with two offsets": ("gets", 0, 3, moved("dst", offset=1), "single reduction", "which is another chunk"),
    "a put over memory channels that should signal": ("allgather", 0, 4, with_(op=Op.PWS), "", ""),
    "a share that another block does too": ("shares", 1, 2, with_(share=0), "postcondition", "no data", 2),
    "the neighbour's slice": ("reads", 0, 3, moved("src", offset=1), "single reduction", "which is another chunk"),
    "a sum of the same twice": (
        "reads", 0, 3, lambda row: [row._replace(src=(*row.src[:2], row.src[1]))], "single reduction",
        "contributes twice",
    ),
    "packets of one slot from two ranks": (
        "packets to all", 1, 0, lambda row: [row._replace(dst=(row.dst[0]._replace(offset=6), row.dst[1]))], "packets",
        "both write packets 6 of rank 0",
    ),
    "a slot that nobody fills": ("packets around", 0, 1, lambda row: [
        row._replace(src=(row.src[0], row.src[1]._replace(offset=3)))], "deadlock", "waits for packets"),
    "data where packets are": ("packets around", 0, 0, lambda row: [
        copy(item(0, IN), item(0, SCRATCH)), row], "packets", "without packets, but packets are there"),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMING)
def test_mistakes_of_timing_and_of_values(name):
    shape, rank, step, change, check, detail, *block = TIMING[name]
    program = edited(shape, rank, step, change, *block)
    found = failures(program)
    if not check:
        assert found == {}  # the signal that follows does what that of the put does not
        return
    assert check in found, found
    assert detail in found[check]


@pytest.mark.parametrize(
    "name", [name for name, row in TIMING.items() if row[4] in ("races", "deadlock", "postcondition")]
)
def test_brute_force_knows_these_mistakes(name):
    shape, rank, step, change, _, _, *block = TIMING[name]
    # of orders that hardly ever happen only the model knows
    rare = {
        "no nop after a wait", "a wait that orders nothing", "an acquire without a nop", "a slot that nobody fills",
        "nobody says when reads are over",
    }  # fmt: skip
    if name not in rare:
        assert judge(edited(shape, rank, step, change, *block), 60) != ""


# ---- form


def test_what_the_executor_does_not_have():
    for program, message in (
        (edited("ring", 0, 8, with_(src=())), "rank 0, block 0, operation 8 (res) has 0 sources, needed 1"),
        (edited("ring", 0, 3, lambda r: [r._replace(dst=r.src)]), "has destination 0 in its own memory, but needs"),
        (edited("ring", 0, 3, lambda r: [r._replace(dst=r.dst * 2)]), "has 1 sources and 2 destinations"),
        (edited("ring", 0, 3, moved("src", count=2)), "has items of different numbers of chunks"),
        (edited("ring", 0, 3, with_(transport=PORT)), "has 0 channels for 1 destinations"),
        (edited("ring", 0, 5, with_(links=())), "names no channel or semaphore"),
        (edited("ring", 0, 5, with_(transport=PORT)), "names a channel of another transport"),
        (edited("reads", 0, 3, with_(transport=PORT)), "does not work over ports"),
        (edited("packets around", 0, 0, with_(transport=PORT)), "has 0 channels for 1 destinations"),
        (edited("packets around", 0, 0, moved("dst", buffer=OUT)), "has packets outside of scratch"),
        (edited("semaphores", 0, 2, lambda r: [NOP._replace(op=Op.BARRIER)]), "joins no blocks"),
        (edited("ports", 0, 3, moved("dst", rank=0)), "has destination 0 in its own memory"),
        (edited("switch", 0, 3, with_(transport=MEMORY)), "needs transport switch"),
        (edited("loops", 0, 2, with_(shares=2)), "has a share, which a loop does not keep to"),
        (edited("loops", 0, 2, lambda r: [r._replace(src=(r.src[0]._replace(count=1),),
                                                     dst=(r.dst[0]._replace(count=1),))]), "than the 2 chunks"),
        (attrs.evolve(ring_of_packets(3), packets=False), "moves packets, but the program has none"),
        (attrs.evolve(ring(3), double_scratch=True), "does not find the half of this launch"),
        (attrs.evolve(ring(3), collective=Collective("allreduce", 3, op="max")), "`op: max` is no sum"),
        (attrs.evolve(ring(3), threads=0), "0 threads of a block"),
    ):  # fmt: skip
        found = failures(program)
        assert list(found) == ["structure"] and message in found["structure"], (message, found)


def test_a_loop_of_sums_in_a_context_that_is_used_again():
    src, dst = (item(0, IN, 0, 2), item(0, SCRATCH, 0, 2)), (item(0, OUT, 0, 2),)
    add = Operation(Op.RE, src=src, dst=dst, loop=0)
    program = OneSided.build(
        Collective("broadcast", 1, root=0), 2, [(2, 2, 2)], [], [(0, [add])], loops=[(4096, 2)], reuse=True
    )
    assert "adds scratch and other buffers in a loop" in failures(program)["structure"]
    assert list(failures(attrs.evolve(program, reuse=False))) == ["single reduction"]


def test_what_leaves_its_buffer():
    assert failures(edited("ring", 0, 3, moved("dst", offset=2)))["bounds"] == (
        "rank 0, block 0, operation 3 (put) accesses scratch chunks 2 to 2 of rank 1, whose scratch has chunks 0 to 1"
    )
    small = attrs.evolve(ring(3), outputs=[3, 2, 3])
    assert "rank 1 has 2 chunks of output, but the collective has 3" in failures(small)["bounds"]


def test_a_put_takes_all_its_sources_from_the_buffer_of_the_first():
    program = edited("allgather", 0, 4, lambda row: [
        row._replace(src=(row.src[0], item(0, OUT, 0)))
    ])  # fmt: skip
    assert failures(program) == {}  # it reads chunk 0 of the input
    other = edited("allgather", 0, 4, lambda row: [row._replace(src=(row.src[0], item(0, OUT, 1)))])
    assert "accesses input chunks 1 to 1 of rank 0" in failures(other)["bounds"]


def test_out_of_place_the_input_is_kept():
    program = edited("allgather", 0, 3, lambda row: [row, copy(item(0, OUT), item(0, IN))])
    assert "writes input chunk 0 of rank 0" in failures(program)["out-of-place input is not written"]


# ---- channels


def test_channels_pair_and_have_one_waiter():
    program = ring(3)
    lonely = attrs.evolve(program, channel_peer=[1, 2, 2, 0, 0, 0])
    assert "pairs with none" in failures(lonely)["channels"]
    two = SHAPES["semaphores"]()
    blocks = blocks_of(two)
    blocks[2][1].insert(0, on(Op.WAIT, 1))
    assert "they race for its signals" in failures(rebuilt(two, blocks))["channels"]


def test_threads_of_one_block_share_no_channel():
    channels = [Channel(0, 1, MEMORY)] * 2 + [Channel(1, 0, MEMORY)] * 2
    rows = [on(Op.SIGNAL, 0, 1), on(Op.SIGNAL, 1, 0), on(Op.WAIT, 0), on(Op.WAIT, 1), on(Op.WAIT, 0), on(Op.WAIT, 1)]
    other = [row._replace(links=tuple(link + 2 for link in row.links)) for row in rows]
    program = OneSided.build(Collective("allreduce", 2), 1, [(2, 2, 0)] * 2, channels, [(0, rows), (1, other)])
    assert "with threads 0 and 1 and no nop between them" in failures(program)["channels"]


def test_two_launches_without_a_handshake():
    """A rank may be in the next launch while its peer is still in this one."""
    ready = (Op.RLXSIGNAL, Op.RLXWAIT)
    for shape, message in (
        ("semaphores", "may have begun the next launch and writes it before that"),
        ("allgather", "which may not have begun this launch: its user may still use that buffer"),
    ):
        blocks = [(rank, [row for row in rows if row.op not in ready]) for rank, rows in blocks_of(SHAPES[shape]())]
        program = rebuilt(SHAPES[shape](), blocks)
        found = failures(program)
        assert list(found) == ["races"] and message in found["races"]
        assert judge(program, 60) != ""
        assert failures(attrs.evolve(program, together=True)) == {}
        assert judge(attrs.evolve(program, together=True), 20) == ""


def test_a_ring_proves_by_its_data_that_slots_are_free():
    blocks = [(rank, rows[3:]) for rank, rows in blocks_of(ring(3))]
    assert failures(rebuilt(ring(3), blocks)) == {}
    assert judge(rebuilt(ring(3), blocks), 60) == ""


def test_the_order_of_two_releases_is_unknown():
    assert failures(producers()) == {}
    one = failures(producers(needed=1))
    assert "races" in one or "leftover signals" in one


def test_a_credit_protects_a_slot():
    program = credits()
    blocks = blocks_of(program)
    for rank, step in ((0, 6), (0, 6)):
        del next(rows for of, rows in blocks if of == rank)[step]
    del blocks[2][1][4]
    found = failures(rebuilt(program, blocks))
    assert "races" in found, found


def test_barriers_of_all_blocks():
    assert failures(two_blocks(barrier=True, shares=3)) == {}
    wrong = two_blocks(barrier=True)
    blocks = [(rank, [row._replace(blocks=1) if row.op is Op.BARRIER else row for row in rows])
              for rank, rows in blocks_of(wrong)]  # fmt: skip
    assert "joins 1 blocks, but 2 blocks use barrier 3" in failures(rebuilt(wrong, blocks))["channels"]


def test_a_place_of_an_operation_without_thread_order():
    program = edited("alltoall", 0, 4, lambda row: [row, copy(item(0, OUT, 0), item(0, OUT, 1))])
    assert "races" in failures(program)
    apart = edited("alltoall", 0, 4, lambda row: [row._replace(share=0, shares=2), row._replace(share=1, shares=2)])
    assert failures(apart) == {}
    apart = edited("alltoall", 0, 4, lambda row: [
        copy(item(0, IN, 0, 2), item(0, OUT, 0, 2)), row,
    ])  # fmt: skip
    assert "without a nop between them" in failures(apart)["races"]
    shifted = edited("alltoall", 0, 4, lambda row: [row, copy(item(0, OUT, 0, 2), item(0, OUT, 1, 2))])
    assert any("with different threads" in text for text in failures(shifted).values())
