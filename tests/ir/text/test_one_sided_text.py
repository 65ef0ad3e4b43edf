"""The text of one-sided programs: what is printed is read back, and mistakes are named where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_sided_programs import ring, ring_of_packets

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided import Channel, Item, OneSided, Op, Operation
from collc.ir.one_sided.program import Transport
from collc.ir.program import Buffer
from collc.ir.text import parse_ir, print_ir
from collc.ir.validate import structure

RANKS = 3
NUMBERS = st.integers(0, 5)


@st.composite
def items(draw, rank, switches):
    channel = draw(st.sampled_from([-1, *switches]))
    owner = rank if channel >= 0 else draw(st.integers(0, RANKS - 1))
    return Item(owner, draw(st.sampled_from(Buffer)), draw(NUMBERS), draw(st.integers(1, 3)), channel)


@st.composite
def programs(draw):
    """Return well-formed programs, most of which make no sense."""
    channels = [Channel(rank, (rank + k) % RANKS, draw(st.sampled_from((Transport.MEMORY, Transport.PORT))))
                for rank in range(RANKS) for k in (1, 2)]  # fmt: skip
    channels += [Channel(rank, -1, Transport.SWITCH, draw(st.sampled_from(Buffer)), (0, 1, 2)) for rank in range(RANKS)]
    channels.sort(key=lambda c: c.rank)
    semaphores = [(rank, draw(NUMBERS)) for rank in range(RANKS)]
    blocks = []
    for rank in draw(st.lists(st.integers(0, RANKS - 1), max_size=4).map(sorted)):
        mine = [row for row, channel in enumerate(channels) if channel.rank == rank]
        switches = [row for row in mine if channels[row].transport == Transport.SWITCH]
        blocks.append((rank, draw(st.lists(operations(rank, mine, switches), max_size=4))))
    settings = draw(st.fixed_dictionaries({
        name: st.booleans() for name in ("packets", "inplace", "double_scratch", "together", "reuse")
    }))  # fmt: skip
    sizes = [tuple(draw(NUMBERS) for _ in range(3)) for _ in range(RANKS)]
    return OneSided.build(
        Collective("allgather", RANKS), draw(st.integers(1, 3)), sizes, channels, blocks, semaphores=semaphores,
        threads=draw(st.integers(1, 1024)), alignment=draw(st.integers(1, 64)), name=draw(st.text(max_size=5)),
        scheduler=draw(st.sampled_from(["", "ring", "a b"])), **settings,
    )  # fmt: skip


@st.composite
def operations(draw, rank, mine, switches):
    op = draw(st.sampled_from(Op))
    links = [rank] if op in (Op.SEM_ACQUIRE, Op.SEM_RELEASE) else draw(st.lists(st.sampled_from(mine), max_size=2))
    shares = draw(st.integers(1, 3))
    sides = [tuple(draw(st.lists(items(rank, switches), max_size=3))) for _ in range(2)]
    barrier = (draw(NUMBERS), draw(NUMBERS)) if op is Op.BARRIER else (0, 0)
    transport = draw(st.sampled_from(Transport))
    return Operation(op, transport, tuple(links), *sides, draw(st.integers(0, shares - 1)), shares, *barrier)


@given(programs())
def test_what_is_printed_is_read_back(program):
    assert structure(program) == []
    text = print_ir(program)
    assert parse_ir(text) == program and print_ir(parse_ir(text)) == text


def test_loops_and_rings_are_read_back():
    turn = Operation(Op.COPY, src=(Item(0, Buffer.INPUT, 0, 2),), dst=(Item(0, Buffer.SCRATCH, 0, 2),), loop=1)
    looped = OneSided.build(
        Collective("allreduce", 1), 2, [(2, 2, 2)], [], [(0, [turn])], loops=[(4096, 1), (8192, 2)]
    )  # fmt: skip
    for program in (ring(2), ring(5), ring_of_packets(3), looped):
        assert parse_ir(print_ir(program)) == program


TEXT = print_ir(ring(3))
MISTAKES = [
    ("put memory", "putt memory", "C0802", "18:7", "expected an operation or `}`, found `putt`"),
    ("-> rank 1 scratch 0", "-> rank 9 scratch 0", "C0806", "18:7", "rank 9 does not exist: 0 to 2 do"),
    ("signal memory on 1", "signal memory on 7", "C0806", "15:7", "channel 7 does not exist"),
    ("signal memory on 1", "signal memory on 5", "C0806", "15:7", "channel 5 is of another rank"),
    ("block 0 {", "block 1 {", "C0802", "14:11", "expected block 0: blocks count from 0 in order, found `1`"),
    ("channel memory peer 1", "channel memory peer 0", "C0806", "12:5", "rank 0 has a channel to itself"),
    ("threads 1024", "threads 2000", "C0806", "5:1", "1 to 1024 are possible"),
    ("with inplace", "with in-place", "C0802", "10:8", "`inplace`"),
    ("input 3 output 3 scratch 2 {", "input 3 scratch 2 {", "C0802", "11:18", "expected `output`, found `scratch`"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "place", "message"), MISTAKES)
def test_a_mistake_is_named_where_it_is(old, new, code, place, message):
    assert old in TEXT
    with pytest.raises(CollcError) as caught:
        parse_ir(TEXT.replace(old, new, 1), "x.ir")
    first = caught.value.diagnostics[0]
    assert (first.code, str(first.span)) == (code, f"x.ir:{place}"), first
    assert message in first.message


def test_every_prefix_of_a_text_is_refused_or_read():
    for end in range(0, len(TEXT) - 2, 37):
        with pytest.raises(CollcError):
            parse_ir(TEXT[:end])
