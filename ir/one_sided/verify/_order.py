"""What happens before what in every interleaving of one launch, and of launches that follow each other.

A block is a row of *phases*, which nops and barriers part. An operation of a phase comes after those of earlier phases
of its block, because all threads have met; two of one phase run side by side. A signal publishes the phases before it,
and what it follows on its own thread; what a wait learns holds for the next phase, and at once on its own thread. Puts
of a port run behind the block that posts them, in the order of the port: each (channel, block) is an agent of its own.

Relaxed signals and packets carry no order. But that they came proves that their ranks have begun this launch, and so
have finished the one before, and all that their users did before: sets of such ranks travel with every message. Packets
also prove that the packets are read which their data come from, and that the put of a port is over that sent them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Array
from ...ragged import starts
from ..opcodes import PACKET_WRITES, PUBLISHES, SIGNALS, WAITS, Op, table
from ..program import OneSided, Transport
from ._events import PARTS, Events
from ._form import POSTS
from ._packets import Packets
from ._proofs import Proofs
from ._run import gives

__all__ = ["Order"]

_ACTS = PARTS | SIGNALS | WAITS | table(Op.SEM_ACQUIRE, Op.SEM_RELEASE, Op.FLUSH)
#: more than any phase: an agent of a rank has finished when the rank has
_ALL = np.iinfo(np.int32).max

# as integers, which are quicker to compare than members
_NOP, _BARRIER, _WAIT, _PWS, _PWSF, _FLUSH, _RELEASE, _ACQUIRE = map(
    int, (Op.NOP, Op.BARRIER, Op.WAIT, Op.PWS, Op.PWSF, Op.FLUSH, Op.SEM_RELEASE, Op.SEM_ACQUIRE)
)
_PORT = int(Transport.PORT)
#: how often the order is found anew, knowing what comes after a wait for signals of several blocks
PASSES = 4

#: what a message brings: a row of phases (None: nothing), and the ranks that have begun, as bits
_Message = tuple[Array | None, int]


class Order:
    """The order of the events of one launch.

    Agents are the blocks, then the (channel, block) pairs of ports. Event e is in phase ``phase[e]`` (from 1) of its
    block and knows what row ``known[e]`` of ``clock`` holds: the phases of every agent that are over. Its put number k
    over a port (``posted``) is step ``posted[e, k][1]`` of agent ``posted[e, k][0]``. ``begun`` are the ranks that have
    begun, as bits: of each row, and of events with packets, which know more, in ``fresh``. ``end`` and ``end_begun``
    are what each rank knows at its end.
    """

    def __init__(self, program: OneSided, seen: Events, level: Array, slots: Packets, relaxed: bool = False):
        self.program, self.seen, self.relaxed = program, seen, relaxed
        row = seen.row
        self.op = program.opcode[row]
        phase, phases = seen.phases(program)
        self.phase = phase + 1
        self.base = starts(phases)
        self.known = self.base[seen.block] + phase
        self._ports()
        self._groups()
        self.number = _type_of(max(int(phases.max(initial=0)), *(step for _, step in self.posted.values()), 0))
        self.clock = np.zeros((int(self.base[-1]), self.agents), dtype=self.number)
        self.begun: list[int] = [0] * len(self.clock)
        self.fresh: dict[int, int] = {}
        #: of a wait (event, thread) for what several blocks give: how many of each do not come after it
        self.limits: dict[tuple[int, int], dict[int, int]] = {}
        self.last_clock: list[Array] = []
        self.last_begun: list[int] = []
        self._twice: list[Array] = []
        self._level, self._slots = level, slots
        self._follow(level, slots)
        self._finish()

    # ---- what runs in which order

    def _ports(self) -> None:
        """Number the puts over ports by agent."""
        program, seen = self.program, self.seen
        port = POSTS[self.op] & (program.transport[seen.row] == Transport.PORT)
        self.posted: dict[tuple[int, int], tuple[int, int]] = {}
        self.agent: dict[tuple[int, int], int] = {}
        steps: dict[int, int] = defaultdict(int)
        for event in np.flatnonzero(port).tolist():
            for k, link in enumerate(self._links(event)):
                key = link, int(seen.block[event])
                agent = self.agent.setdefault(key, program.num_blocks + len(self.agent))
                steps[agent] += 1
                self.posted[event, k] = agent, steps[agent]
        self.agents = program.num_blocks + len(self.agent)

    def _links(self, event: int) -> list[int]:
        links, start, row = self._linked
        return links[start[row[event]] : start[row[event] + 1]]

    @cached_property
    def _linked(self) -> tuple[list[int], list[int], list[int]]:
        return self.program.links.tolist(), self.program.link_start.tolist(), self.seen.row.tolist()

    def _groups(self) -> None:
        """Count the signals of each channel, and releases of each semaphore, by the block that gives them."""
        program, seen = self.program, self.seen
        self.given: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        partner = program.partner.tolist()
        op, block = self.op.tolist(), seen.block.tolist()
        for event in np.flatnonzero(gives(program)[seen.row] | (self.op == _RELEASE)).tolist():
            released = int(op[event] == _RELEASE)
            for link in self._links(event):
                self.given[released, link if released else partner[link]][block[event]] += 1

    def _follow(self, level: Array, slots: Packets) -> None:
        acts = np.flatnonzero(_ACTS[self.op] | PACKET_WRITES[self.op] | self._reads(slots) | self._posts())
        order = acts[np.argsort(level[acts], kind="stable")].tolist()
        for _ in range(PASSES if any(len(givers) > 1 for givers in self.given.values()) else 1):
            self.last_clock.clear()
            self.last_begun.clear()
            walk = _Walk(self, slots)
            walk.follow(order, level)
            limits = walk.limits()
            if limits == self.limits:
                break
            self.limits = limits

    def _reads(self, slots: Packets) -> Array:
        found = np.zeros(len(self.op), dtype=bool)
        found[self.seen.event[slots.reader]] = True
        return found

    def _posts(self) -> Array:
        found = np.zeros(len(self.op), dtype=bool)
        found[[event for event, _ in self.posted]] = True
        return found

    def _finish(self) -> None:
        """Find what each rank knows when all its blocks have ended."""
        program = self.program
        ranks, blocks = program.num_ranks, program.num_blocks
        self.end = np.zeros((ranks, self.agents), dtype=np.int32)
        self.end_begun = [1 << rank for rank in range(ranks)]
        for block, rank in enumerate(program.block_rank.tolist()):
            self.end[rank] = np.maximum(self.end[rank], self.last_clock[block])
            self.end_begun[rank] |= self.last_begun[block]
        self.end[program.block_rank, np.arange(blocks)] = _ALL
        if program.together:
            self.end[:] = self.end.max(axis=0, initial=0)
            self.end_begun = [(1 << ranks) - 1] * ranks

    @cached_property
    def in_time(self) -> Order:
        """The order of events in time, in which relaxed signals count as others do."""
        return Order(self.program, self.seen, self._level, self._slots, relaxed=True)

    # ---- questions

    def has_begun(self, event: int) -> int:
        """Return the ranks that have begun this launch when an event happens, as bits."""
        if self.program.together:
            return (1 << self.program.num_ranks) - 1
        return self.fresh.get(event, self.begun[int(self.known[event])])

    def earlier(self, begun: int, launches: int) -> Array:
        """Return the phases of every agent that are over in the launch ``launches`` before one that these began."""
        found = np.zeros(self.agents, dtype=np.int32)
        for rank in range(self.program.num_ranks):
            if begun >> rank & 1:
                np.maximum(found, self._over(rank, launches), out=found)
        return found

    def finished(self, begun: int, launches: int) -> int:
        """Return the ranks that have finished the launch ``launches`` before one that these began; all are bits."""
        for _ in range(launches - 1):
            begun |= _union(self.end_begun, begun)
        return begun

    def proved(self, finished: int) -> int:
        """Return as bits of :attr:`proofs` what these ranks, which have finished a launch, prove of that launch."""
        return _union(self._ends, finished)

    def reads_before(self, writer: int, reader: int, number: int) -> bool:
        """Return whether an event reads every element of an item before another writes the same elements."""
        proved = self._elements.get(writer, 0)
        key = reader, number if self.op[reader] == Op.PPKT else 0
        return key in self.proofs.bit and bool(proved >> self.proofs.bit[key] & 1)

    @cached_property
    def proofs(self) -> Proofs:
        """What packets prove."""
        return Proofs(self.program, self.seen, self._slots, self._level, self.posted)

    @cached_property
    def _ends(self) -> list[int]:
        return self.proofs.reads()

    @cached_property
    def _elements(self) -> dict[int, int]:
        return self.proofs.elements()

    def _over(self, rank: int, launches: int) -> Array:
        """Return what a rank knows, at the end of a launch, of the one ``launches`` - 1 before."""
        if launches == 1:
            found: Array = self.end[rank]
            return found
        if not self._twice:
            self._twice = [self.earlier(begun, 1) for begun in self.end_begun]
        return self._twice[rank]


def _type_of(largest: int) -> type[np.signedinteger[Any]]:  # Any: the width
    """Return the shortest type of numbers beyond ``largest``: most clocks fit bytes, and there are many of them."""
    return next((kind for kind in (np.int8, np.int16) if largest + 1 < np.iinfo(kind).max), np.int32)


def _union(sets: Sequence[int], chosen: int) -> int:
    """Return the union of the sets whose numbers are chosen; all are bits."""
    found = 0
    for number, members in enumerate(sets):
        if chosen >> number & 1:
            found |= members
    return found


class _Walk:
    """Follows the events by level, and fills in the clocks."""

    def __init__(self, order: Order, slots: Packets):
        self.order, self.program, self.seen = order, order.program, order.seen
        blocks = self.program.num_blocks
        self.row = order.base[:-1].tolist()  # the current row of each block
        self.rank = self.program.block_rank.tolist()
        self.learned: list[list[_Message]] = [[] for _ in range(blocks)]
        self.on_thread: list[dict[int, list[_Message]]] = [{} for _ in range(blocks)]
        self.messages: dict[tuple[int, int], dict[int, list[_Message]]] = defaultdict(dict)
        self.taken: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.when: dict[tuple[int, int], dict[int, list[Array]]] = defaultdict(dict)  # the clocks of messages
        self.waited: list[tuple[tuple[int, int], int, int, int, int]] = []  # from where, event, thread, block, phase
        self.steps = [0] * order.agents
        self.block = self.seen.block.tolist()
        self.op = order.op.tolist()
        self.src_row = self.seen.row.tolist()
        self.links, self.first_link = self.program.links.tolist(), self.program.link_start.tolist()
        self.signals, self.waits, self.writes = SIGNALS.tolist(), WAITS.tolist(), PACKET_WRITES.tolist()
        self.publishes = PUBLISHES.tolist()
        self.partner = self.program.partner.tolist()
        self.transport = self.program.transport.tolist()
        self.free = self.program.semaphore_value.tolist()
        self.needs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for k, event in enumerate(self.seen.event[slots.reader].tolist()):
            self.needs[event].append((int(slots.start[k]), int(slots.start[k + 1])))
        self.writer = slots.writer.tolist()
        for block in range(blocks):
            self.order.begun[self.row[block]] = 1 << self.rank[block]

    def follow(self, events: list[int], level: Array) -> None:
        met: set[int] = set()
        barriers = self._barriers(level)
        for event in events:
            op = self.op[event]
            if op == _NOP:
                self._part(self.block[event])
            elif op == _BARRIER:
                if event not in met:
                    group = barriers[event]
                    met.update(group)
                    self._meet([self.block[e] for e in group])
            else:
                self._act(event, op)
        for block in range(len(self.row)):
            clock, begun = self._joined(block)
            self.order.last_clock.append(clock)
            self.order.last_begun.append(begun)

    def _barriers(self, level: Array) -> dict[int, list[int]]:
        """Return the events of all blocks that meet at each event of a barrier."""
        program = self.program
        groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for event in np.flatnonzero(self.order.op == _BARRIER).tolist():
            key = self.rank[self.block[event]], int(program.number[self.src_row[event]]), int(level[event])
            groups[key].append(event)
        return {event: group for group in groups.values() for event in group}

    # ---- phases

    def _joined(self, block: int) -> tuple[Array, int]:
        """Return what all threads of a block know together."""
        row = self.row[block]
        clock, begun = self.order.clock[row].copy(), self.order.begun[row]
        for brought, ranks in self.learned[block]:
            begun |= ranks
            if brought is not None:
                np.maximum(clock, brought, out=clock)
        clock[block] = row - int(self.order.base[block]) + 1
        return clock, begun

    def _enter(self, block: int, clock: Array, begun: int) -> None:
        self.learned[block].clear()
        self.on_thread[block].clear()
        self.row[block] += 1
        self.order.clock[self.row[block]], self.order.begun[self.row[block]] = clock, begun

    def _part(self, block: int) -> None:
        row = self.row[block]
        if self.learned[block]:
            self._enter(block, *self._joined(block))
            return
        if self.on_thread[block]:
            self.on_thread[block].clear()
        clock = self.order.clock
        clock[row + 1] = clock[row]
        clock[row + 1, block] += 1
        self.order.begun[row + 1] = self.order.begun[row]
        self.row[block] = row + 1

    def _meet(self, blocks: list[int]) -> None:
        known = [self._joined(block) for block in blocks]
        clock, begun = known[0][0], 0
        for other, ranks in known:
            np.maximum(clock, other, out=clock)
            begun |= ranks
        for block in blocks:
            self._enter(block, clock, begun)

    # ---- messages

    def _act(self, event: int, op: int) -> None:
        block, row = self.block[event], self.src_row[event]
        links = self.links[self.first_link[row] : self.first_link[row + 1]]
        port = self.transport[row] == _PORT
        if event in self.needs:
            self._receive(event, block)
        elif self.writes[op]:
            self.order.fresh[event] = self.order.begun[self.row[block]]
        if self.waits[op] or op == _ACQUIRE:
            self._hear(event, op, links, port)
            return
        for thread, link in enumerate(links):
            if port and (event, thread) in self.order.posted:
                agent, step = self.order.posted[event, thread]
                self.steps[agent] = step
            if self.signals[op] and (port or op not in (_PWS, _PWSF)):
                ordered = self.publishes[op] or port or self.order.relaxed
                self._give((0, self.partner[link]), block, self._payload(block, thread, link, ordered, port))
            elif op == _RELEASE:
                self._give((1, link), block, self._payload(block, thread, -1, True, False))
            if op == _PWSF or (op == _FLUSH and thread < self._destinations(row)):
                self._flush(block, thread, link)

    def _hear(self, event: int, op: int, links: list[int], port: bool) -> None:
        """Take a signal of each channel, or a release of each semaphore."""
        for thread, link in enumerate(links):
            if op == _ACQUIRE:
                self._take((1, link), event, thread, self.free[link], True)
            else:
                self._take((0, link), event, thread, 0, op == _WAIT or port or self.order.relaxed)

    def _destinations(self, row: int) -> int:
        program = self.program
        return int(program.item_start[row + 1]) - int(program.item_start[row]) - int(program.sources[row])

    def _payload(self, block: int, thread: int, link: int, ordered: bool, port: bool) -> _Message:
        row = self.row[block]
        begun, clock = self.order.begun[row], self.order.clock[row]
        extra = self.on_thread[block].get(thread, ())
        for _, ranks in extra:
            begun |= ranks
        if not ordered:
            return None, begun
        agent = self.order.agent.get((link, block)) if port else None
        if extra or agent is not None:
            clock = clock.copy()
            for brought, _ in extra:
                if brought is not None:
                    np.maximum(clock, brought, out=clock)
            if agent is not None:
                clock[agent] = self.steps[agent]
        return clock, begun

    def _give(self, where: tuple[int, int], block: int, message: _Message) -> None:
        self.messages[where].setdefault(block, []).append(message)
        if len(self.order.given[where]) > 1:
            self.when[where].setdefault(block, []).append(self.order.clock[self.row[block]])

    def limits(self) -> dict[tuple[int, int], dict[int, int]]:
        """Return for each wait for what several blocks give how many of each do not come after it."""
        found = {}
        for where, event, thread, block, phase in self.waited:
            giving = self.when[where].items()
            found[event, thread] = {giver: sum(int(c[block]) < phase for c in clocks) for giver, clocks in giving}
        return found

    def _take(self, where: tuple[int, int], event: int, thread: int, free: int, ordered: bool) -> None:
        """Learn what every interleaving implies: k signals came, so of one block all that the others cannot be."""
        block, taken = self.block[event], self.taken[where]
        taken[block] += 1
        least = taken[block] - free
        given: Mapping[int, int] = self.order.given[where]
        if len(given) == 1:
            (giver,) = given
            if least >= 1:
                self._learn(block, thread, self.messages[where][giver][least - 1], ordered)
            return
        if given:
            self.waited.append((where, event, thread, block, int(self.order.phase[event])))
            given = self.order.limits.get((event, thread), given)
        total = sum(given.values())
        for giver, count in given.items():
            number = least - (total - count)
            if number >= 1:
                self._learn(block, thread, self.messages[where][giver][number - 1], ordered)

    def _learn(self, block: int, thread: int, message: _Message, ordered: bool) -> None:
        if not ordered:
            message = None, message[1]
        self.learned[block].append(message)
        self.on_thread[block].setdefault(thread, []).append(message)

    def _flush(self, block: int, thread: int, link: int) -> None:
        agent = self.order.agent.get((link, block))
        if agent is not None:
            clock = np.zeros(self.order.agents, dtype=self.order.number)
            clock[agent] = self.steps[agent]
            self.learned[block].append((clock, 0))
            self.on_thread[block].setdefault(thread, []).append((clock, 0))

    def _receive(self, event: int, block: int) -> None:
        """Learn from packets which ranks have begun: of one element only those whose packets it needs."""
        fresh, all_ = self.order.fresh, 0
        begun = self.order.begun[self.row[block]]
        for a, b in self.needs[event]:
            every = -1
            for k in range(a, b):
                every &= fresh[self.writer[k]]
                all_ |= fresh[self.writer[k]]
            begun |= every
        fresh[event] = begun
        self.learned[block].append((None, all_))
