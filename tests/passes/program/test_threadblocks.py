"""Threadblocks that sends and receives share: which of them, and what that makes of the fullest."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program
from collc.passes.program import threadblocks
from collc.passes.program.threadblocks import BalanceThreadblocks

DEPTH = 8
LOADS = st.lists(st.integers(1, DEPTH), min_size=2, max_size=4)


def star(sent: list[int], received: list[int], copied: int = 0) -> Program:
    """Return a program in which rank 0 exchanges a message of so many chunks with each other rank, and copies some."""
    peers = range(1, len(sent) + 1)
    blocks = [(0, peer, -1, 0) for peer in peers] + [(0, -1, peer, 0) for peer in peers]
    rows = [[(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, count, ())] for count in sent]
    rows += [[(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, DEPTH * k, n, ())] for k, n in enumerate(received)]
    if copied:
        blocks.append((0, -1, -1, 0))
        rows.append([(Opcode.COPY, Buffer.INPUT, 0, Buffer.OUTPUT, 0, copied, ())])
    for k, peer in enumerate(peers):
        blocks += [(peer, 0, -1, 0), (peer, -1, 0, 0)]
        rows.append([(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, received[k], ())])
        rows.append([(Opcode.RECV, Buffer.INPUT, 0, Buffer.SCRATCH, 0, sent[k], ())])
    ranks = len(sent) + 1
    return Program.build(Collective("allgather", ranks), DEPTH, [DEPTH * len(sent)] + [DEPTH] * len(sent), blocks, rows)


def pairs(program: Program) -> list[tuple[int, int]]:
    """Return what rank 0's threadblocks receive and send in chunks, the fullest receives first; 0 for nothing."""
    mine = np.flatnonzero(program.block_rank == 0)
    load = [
        [int(program.count[(program.block == b) & (program.opcode == code)].sum()) for b in mine]
        for code in (Opcode.RECV, Opcode.SEND)
    ]
    return sorted(zip(*load, strict=True), reverse=True)


@settings(max_examples=examples(40))
@given(st.data(), LOADS)
def test_where_all_share_the_fullest_block_is_as_empty_as_can_be(data: st.DataObject, sent: list[int]) -> None:
    """Against all ways to pair them."""
    received = data.draw(st.lists(st.integers(1, DEPTH), min_size=len(sent), max_size=len(sent)))
    made = BalanceThreadblocks(max_threadblocks=len(sent), fifo_depth=DEPTH).run(star(sent, received))
    least = min(max(map(sum, zip(received, way, strict=True))) for way in permutations(sent))
    assert max(map(sum, pairs(made))) == least


def test_where_some_share_the_fullest_receives_join_the_emptiest_sends() -> None:
    made = BalanceThreadblocks(max_threadblocks=4, fifo_depth=DEPTH).run(star([3, 1, 2], [5, 7, 6]))
    assert pairs(made) == [(7, 1), (6, 2), (5, 0), (0, 3)]


def test_equal_loads_are_paired_in_the_order_of_blocks() -> None:
    """The emptiest is the last of those that are alike, so the same program comes of the same input."""
    made = BalanceThreadblocks(max_threadblocks=3, fifo_depth=DEPTH).run(star([1, 1, 1], [1, 1, 1]))
    mine = made.block_rank == 0
    assert made.recv_peer[mine].tolist() == [3, 2, 1] and made.send_peer[mine].tolist() == [1, 2, 3]


def test_no_more_share_than_there_are_pairs() -> None:
    with pytest.raises(CollcError) as caught:
        BalanceThreadblocks(max_threadblocks=2, fifo_depth=DEPTH).run(star([1, 2, 3], [1, 2, 3]))
    assert caught.value.diagnostics[0].code == "C0509"


@pytest.mark.parametrize("depth", [1, 2, DEPTH])
def test_shared_blocks_that_are_too_long_are_refused_before_an_execution(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of more chunks than a connection holds are cut, so they are several steps."""
    monkeypatch.setattr(threadblocks, "execute", None)
    steps = 7 // depth + (7 % depth > 0) + 1
    this = BalanceThreadblocks(max_threadblocks=4, fifo_depth=depth, max_steps=steps - 1)
    with pytest.raises(CollcError, match=f"would have at least {steps} steps; the limit is {steps - 1}"):
        this.run(star([3, 1, 2], [5, 7, 6]))


def test_no_more_than_31_blocks_of_a_rank_send_on_one_channel() -> None:
    """The runtimes have room for 32, and keep one."""
    made = BalanceThreadblocks().run(star([1] * 32, [1] * 32))
    for peer in (made.send_peer, made.recv_peer):
        used = made.channel[(made.block_rank == 0) & (peer >= 0)]
        assert np.bincount(used).tolist() == [31, 1]


def test_local_copies_join_the_emptiest_block() -> None:
    made = BalanceThreadblocks(max_threadblocks=2, fifo_depth=DEPTH).run(star([3, 1], [2, 2], copied=1))
    copying = made.block[made.opcode == Opcode.COPY]
    assert made.send_peer[copying].tolist() == [2]


def test_blocks_that_share_send_no_more_than_a_connection_holds() -> None:
    """One chunk where nobody says how many; where nothing is shared messages stay whole."""
    assert int(BalanceThreadblocks(max_threadblocks=2).run(star([3, 2], [3, 2])).count.max()) == 1
    assert int(BalanceThreadblocks(max_threadblocks=2, fifo_depth=2).run(star([3, 2], [3, 2])).count.max()) == 2
    assert int(BalanceThreadblocks(max_threadblocks=4).run(star([3, 2], [3, 2])).count.max()) == 3
