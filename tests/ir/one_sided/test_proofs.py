"""What packets prove: against a search through all packets, and in sets no larger than what packets join."""

from __future__ import annotations

from itertools import product

import pytest
from one_sided_programs import SHAPES, ring_of_packets

from collc.ir.arrays import Array
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided
from collc.ir.one_sided.verify._events import Events, events, lengths, parts_needed, shortest
from collc.ir.one_sided.verify._memory import Memory
from collc.ir.one_sided.verify._messages import Messages, Uses
from collc.ir.one_sided.verify._order import Order
from collc.ir.one_sided.verify._packets import Packets, packets
from collc.ir.one_sided.verify._proofs import _WRITES
from collc.ir.one_sided.verify._run import execute

PACKED = [*sorted(name for name in SHAPES if "packets" in name), "ring of eight"]


def program(name: str) -> OneSided:
    return ring_of_packets(8) if name == "ring of eight" else SHAPES[name]()


def ordered(one: OneSided) -> tuple[Events, Packets, Order]:
    turns = lengths(one, 1 / shortest(one)) if len(one.loop_unit) else []
    memory = Memory.of(one, parts_needed(one, turns))
    seen = events(one, memory, turns)
    problems, slots = packets(one, seen, memory)
    assert not problems
    messages = Messages(one, seen, Uses.of(one, seen))
    return seen, slots, Order(one, seen, execute(one, seen, slots, messages).level, slots, messages)


def before(slots: Packets, readers: list[int], event: int, rows: Array) -> set[tuple[int, int]]:
    """Return (writer, item) of all packets that an event needs, also through others, and itself as (event, 0)."""
    found: set[tuple[int, int]] = {(event, 0)}
    for k in (k for k, reader in enumerate(readers) if reader == event):
        for j in range(int(slots.start[k]), int(slots.start[k + 1])):
            if rows[j]:
                found.add((int(slots.writer[j]), int(slots.number[j])))
                if int(slots.writer[j]) in readers:
                    found |= before(slots, readers, int(slots.writer[j]), rows)
    return found


@pytest.mark.quick
@pytest.mark.parametrize("name", PACKED)
def test_elements_are_read_before_as_a_search_finds(name: str) -> None:
    one = program(name)
    seen, slots, order = ordered(one)
    readers = seen.event[slots.reader].tolist()
    op = one.opcode[seen.row].tolist()
    kinds = set()
    for writer, reader, number in product(sorted(set(readers)), range(len(op)), range(2)):
        needed = before(slots, readers, writer, slots.equal)
        if op[reader] == Op.PPKT:
            due = (reader, number) in needed
        else:
            pairs = _WRITES[op[reader]]
            due = reader == writer or any(
                event == reader and (reader in readers or (pairs and (reader, item) not in order.posted))
                for event, item in needed
            )
        kinds.add(due)
        assert order.proofs.reads_before(writer, reader, number) == due
    assert kinds == {True, False}


@pytest.mark.quick
@pytest.mark.parametrize("name", PACKED)
def test_ranks_that_have_ended_prove_what_their_packets_need(name: str) -> None:
    one = program(name)
    seen, slots, order = ordered(one)
    readers = seen.event[slots.reader].tolist()
    rank = one.block_rank[seen.block].tolist()
    of_rank = [set().union(*(before(slots, readers, e, slots.whole) for e in readers if rank[e] == r), {(-1, 0)})
               for r in range(one.num_ranks)]  # fmt: skip
    for ended, event in product(range(1 << min(one.num_ranks, 3)), sorted(set(readers))):
        known = [who for r, who in enumerate(of_rank) if ended >> r & 1]
        assert order.proofs.read_at_end(ended, event) == any(e == event for who in known for e, _ in who)


@pytest.mark.quick
def test_events_that_no_packets_join_share_no_bits() -> None:
    """On a ring each shard goes around by packets of its own, so a set has as many bits as a shard has readers."""
    sizes = []
    for ranks in (4, 8):
        _, _, order = ordered(ring_of_packets(ranks))
        order.proofs.reads_before(0, 0, 0)
        sets = order.proofs._elements
        sizes.append(max(proved.bit_length() for proved in sets.of.values()))
        assert len({sets.part[event] for event in sets.of}) > 1
    assert sizes[1] <= 3 * sizes[0]
