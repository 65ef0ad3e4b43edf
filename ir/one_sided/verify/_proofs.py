"""What packets prove besides that they came: that their writer has read what their data come from.

A thread reads an element before it writes the packet that depends on it. So packets prove reads of packets, as far as
all elements of a slot were needed, and element by element reads of any source.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arrays import Array, lexsort
from ..opcodes import Op, table
from ..program import OneSided
from ._events import Events
from ._packets import Packets

__all__ = ["Proofs"]

#: operations that write packets whose elements come from the same elements of all sources
_WRITES = table(Op.CPKT, Op.RPPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT)

#: an event that reads or writes packets, the number of its item if these go in pairs, or (agent, step) of a port's put
Key = tuple[int, int]


class Proofs:
    """Sets of what packets prove, as bits: ``bit[event, item]`` of an event, ``ports[agent, step]`` of a port's put.

    ``posted`` are the agents and steps of puts over ports, by event and item.
    """

    def __init__(
        self, program: OneSided, seen: Events, slots: Packets, level: Array, posted: dict[Key, tuple[int, int]]
    ):
        self.program, self.seen, self.slots, self.posted = program, seen, slots, posted
        self.op = program.opcode[seen.row].tolist()
        readers = seen.event[slots.reader]
        self.readers = readers.tolist()
        self.order = lexsort([level[readers]]).tolist()
        self.bit: dict[Key, int] = {}
        self.ports: dict[tuple[int, int], int] = {}

    def _of(self, key: Key) -> int:
        return 1 << self.bit.setdefault(key, len(self.bit) + len(self.ports))

    def _put(self, post: tuple[int, int]) -> int:
        return 1 << self.ports.setdefault(post, len(self.bit) + len(self.ports))

    def _closed(self, rows: list[bool], step: Callable[[int, int], int]) -> dict[int, int]:
        """Return for each event that reads packets what it proves, by ``rows`` of pairs of a reader and a writer."""
        start, writer, number = self.slots.start.tolist(), self.slots.writer.tolist(), self.slots.number.tolist()
        found: dict[int, int] = {}
        for k in self.order:
            event = self.readers[k]
            proved = found.get(event, 0) | self._of((event, 0))
            for j in range(start[k], start[k + 1]):
                if rows[j]:
                    proved |= found.get(writer[j], 0) | step(writer[j], number[j])
            found[event] = proved
        return found

    def reads(self) -> list[int]:
        """Return for each rank what its packets prove at its end: which packets are read, and which puts are over."""

        def step(writer: int, number: int) -> int:
            post = self.posted.get((writer, number))
            return self._put(post) if post else 0

        ends = [0] * self.program.num_ranks
        rank = self.program.block_rank[self.seen.block]
        for event, proved in self._closed(self.slots.whole.tolist(), step).items():
            ends[int(rank[event])] |= proved
        return ends

    def elements(self) -> dict[int, int]:
        """Return for each event which events have read the same elements before it, where slots are read as written."""

        def step(writer: int, number: int) -> int:
            if self.op[writer] == Op.PPKT:
                return self._of((writer, number))
            return self._of((writer, 0)) if _WRITES[self.op[writer]] and (writer, number) not in self.posted else 0

        return self._closed(self.slots.equal.tolist(), step)
