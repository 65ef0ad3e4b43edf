"""What packets prove besides that they came: that their writer has read what their data come from.

A thread reads an element before it writes the packet that depends on it. So packets prove reads of packets, as far as
all elements of a slot were needed, and element by element reads of any source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property, reduce
from operator import or_

import numpy as np

from ...arrays import Array, lexsort, lowest_joined
from ...ragged import owners
from ..opcodes import Op, table
from ..program import OneSided
from ._events import Events
from ._packets import Packets

__all__ = ["Proofs"]

#: operations that write packets whose elements come from the same elements of all sources
_WRITES = table(Op.CPKT, Op.RPPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT)

#: an event that reads or writes packets, the number of its item if these go in pairs, or (agent, step) of a port's put
Key = tuple[int, int]


class _Sets:
    """Sets of what packets prove, as bits: ``of[event]`` of an event that reads packets.

    Events prove nothing of events that no packets join with them. So each ``part`` of joined events has bits of its
    own: the sets of a plan of 256 ranks would fill the memory otherwise. ``bit[key]`` is the part and the number of the
    bit of an event and item, or of the put of a port.
    """

    def __init__(self, part: list[int]):
        self.part = part
        self.bit: dict[Key, tuple[int, int]] = {}
        self.of: dict[int, int] = {}
        self._bits: dict[int, int] = {}

    def set_of(self, key: Key, event: int) -> int:
        """Return the set of one member, which is an event, or what one does."""
        found = self.bit.get(key)
        if found is None:
            part = self.part[event]
            found = self.bit[key] = part, self._bits.get(part, 0)
            self._bits[part] = found[1] + 1
        return 1 << found[1]

    def proves(self, event: int, key: Key) -> bool:
        """Return whether an event proves what a key names."""
        part, bit = self.bit.get(key, (-1, 0))
        return part == self.part[event] and bool(self.of.get(event, 0) >> bit & 1)


class Proofs:
    """What packets prove; ``posted`` are the agents and steps of puts over ports, by event and item."""

    def __init__(
        self, program: OneSided, seen: Events, slots: Packets, level: Array, posted: dict[Key, tuple[int, int]]
    ):
        self.program, self.seen, self.slots, self.posted = program, seen, slots, posted
        self.op = program.opcode[seen.row].tolist()
        self.readers = seen.event[slots.reader]
        self.order = lexsort([level[self.readers]]).tolist()
        self._known: dict[tuple[int, int], int] = {}  # of ended ranks and a part

    def _closed(self, rows: Array, step: Callable[[_Sets, int, int], int]) -> _Sets:
        """Return what each event that reads packets proves, by ``rows`` of pairs of a reader and a writer."""
        slots, readers, kept = self.slots, self.readers.tolist(), rows.tolist()
        reader = self.readers[owners(np.diff(slots.start))]
        found = _Sets(lowest_joined(len(self.op), reader[rows], slots.writer[rows]).tolist())
        start, writer, number = slots.start.tolist(), slots.writer.tolist(), slots.number.tolist()
        for k in self.order:
            event = readers[k]
            proved = found.of.get(event, 0) | found.set_of((event, 0), event)
            for j in range(start[k], start[k + 1]):
                if kept[j]:
                    proved |= found.of.get(writer[j], 0) | step(found, writer[j], number[j])
            found.of[event] = proved
        return found

    @cached_property
    def _reads(self) -> _Sets:
        """Which packets are read, and which puts of ports are over."""

        def step(found: _Sets, writer: int, number: int) -> int:
            post = self.posted.get((writer, number))
            return found.set_of(_port(post), writer) if post else 0

        return self._closed(self.slots.whole, step)

    @cached_property
    def _ends(self) -> dict[int, dict[int, int]]:
        """What the packets of a part prove when a rank has ended, by part and rank."""
        found: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        rank = self.program.block_rank[self.seen.block].tolist()
        for event, proved in self._reads.of.items():
            found[self._reads.part[event]][rank[event]] |= proved
        return found

    def read_at_end(self, ended: int, event: int) -> bool:
        """Return whether ranks that have ended, as bits, prove that an event has read its packets."""
        return self._at_end(ended, (event, 0))

    def over_at_end(self, ended: int, post: tuple[int, int]) -> bool:
        """Return whether ranks that have ended, as bits, prove that a put (agent, step) of a port is over."""
        return self._at_end(ended, _port(post))

    def _at_end(self, ended: int, key: Key) -> bool:
        part, bit = self._reads.bit.get(key, (-1, 0))
        if (ended, part) not in self._known:
            proved = self._ends.get(part, {}).items()
            self._known[ended, part] = reduce(or_, (bits for rank, bits in proved if ended >> rank & 1), 0)
        return bool(self._known[ended, part] >> bit & 1)

    @cached_property
    def _elements(self) -> _Sets:
        """Which events have read the same elements before, where slots are read as written."""

        def step(found: _Sets, writer: int, number: int) -> int:
            if self.op[writer] == Op.PPKT:
                return found.set_of((writer, number), writer)
            pairs = _WRITES[self.op[writer]] and (writer, number) not in self.posted
            return found.set_of((writer, 0), writer) if pairs else 0

        return self._closed(self.slots.equal, step)

    def reads_before(self, writer: int, reader: int, number: int) -> bool:
        """Return whether an event reads every element of an item before another writes the same elements."""
        return self._elements.proves(writer, (reader, number if self.op[reader] == Op.PPKT else 0))


def _port(post: tuple[int, int]) -> Key:
    """Return the key of a put of a port, which no event has."""
    agent, step = post
    return -1 - agent, step
