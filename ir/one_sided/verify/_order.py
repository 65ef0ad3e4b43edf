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
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Array
from ...ragged import starts
from ..opcodes import Op
from ..program import OneSided, Transport
from ._clocks import Clocks, Posts
from ._events import Events
from ._form import POSTS
from ._messages import Limits, Messages, Uses
from ._packets import Packets
from ._proofs import Proofs

__all__ = ["Order"]

#: more than any phase: an agent of a rank has finished when the rank has
_ALL = np.iinfo(np.int32).max

#: how often the order is found anew, knowing what comes after a wait for signals of several blocks
PASSES = 4


class Order:
    """The order of the events of one launch.

    Agents are the blocks, then the (channel, block) pairs of ports. Event e is in phase ``phase[e]`` (from 1) of its
    block and knows what row ``known[e]`` knows: the phases of every agent that are over (:meth:`over`). Its put number
    k over a port (``posted``) is step ``posted[e, k][1]`` of agent ``posted[e, k][0]``. ``end`` and ``end_begun`` are
    what each rank knows at its end: the phases of every agent, and the ranks that have begun, as bits.
    """

    def __init__(
        self, program: OneSided, seen: Events, level: Array, slots: Packets, messages: Messages, relaxed: bool = False
    ):  # fmt: skip
        self.program, self.seen, self._messages = program, seen, messages
        self.op = program.opcode[seen.row]
        phase, phases = seen.phases(program)
        self.phase = phase + 1
        self.base = starts(phases)
        self.known = self.base[seen.block] + phase
        self._ports()
        self._type = _type_of(max(int(phases.max(initial=0)), *(step for _, step in self.posted.values()), 0))
        self._twice: list[Array] = []
        self._level, self._slots = level, slots
        self._follow(messages.relaxed() if relaxed else messages)
        self._finish()

    # ---- what runs in which order

    def _ports(self) -> None:
        """Number the puts over ports by agent."""
        program, seen = self.program, self.seen
        port = POSTS[self.op] & (program.transport[seen.row] == Transport.PORT)
        self.posted: dict[tuple[int, int], tuple[int, int]] = {}
        self.agent: dict[tuple[int, int], int] = {}
        steps: dict[int, int] = defaultdict(int)
        links, first = program.links, program.link_start
        for event in np.flatnonzero(port).tolist():
            row = seen.row[event]
            for k, link in enumerate(links[first[row] : first[row + 1]].tolist()):
                key = link, int(seen.block[event])
                agent = self.agent.setdefault(key, program.num_blocks + len(self.agent))
                steps[agent] += 1
                self.posted[event, k] = agent, steps[agent]
        self.agents = program.num_blocks + len(self.agent)

    def _posts(self, uses: Uses) -> Posts:
        """Return which puts over ports each use of their channels follows."""
        over: dict[int, tuple[int, int]] = {}
        flushes: list[int] = []
        if self.agent:
            program, row = self.program, self.seen.row
            count: dict[int, int] = defaultdict(int)
            destinations = np.diff(program.item_start.astype(np.int64)) - program.sources
            for use in np.flatnonzero(uses.port).tolist():
                event, thread = int(uses.event[use]), int(uses.thread[use])
                agent = self.agent.get((int(uses.link[use]), int(self.seen.block[event])))
                if agent is None:
                    continue
                count[agent] += (event, thread) in self.posted
                flushed = self.op[event] == Op.FLUSH and thread < destinations[row[event]]
                if flushed or self.op[event] == Op.PWSF:
                    flushes.append(use)
                if flushed or uses.gives[use]:
                    over[use] = agent, count[agent]
        return Posts(self.agents, over, np.array(flushes, dtype=np.int64))

    def _follow(self, messages: Messages) -> None:
        posts, limits = self._posts(messages.uses), Limits()
        for _ in range(PASSES):
            self._clocks = Clocks(
                self.program, self.seen, self._level, self._slots, self.base, self.known, messages, posts, self._type
            )
            found = self._limits(messages)
            if found == limits:
                break
            limits = found
            messages = messages.limited(limits)

    def _limits(self, messages: Messages) -> Limits:
        """Return for each use that takes what several blocks give how many of each do not come after it."""
        uses, several = messages.uses, messages.several.tolist()
        found: Limits = {use: {} for use in several}
        groups = [(use, *given) for use in several for given in messages.giving(use).items()]
        if not groups:
            return found
        event = [uses.event[giving] for _, _, giving in groups]
        taker = np.repeat(uses.event[[use for use, _, _ in groups]], [len(one) for one in event])
        before = self.over(self.known[np.concatenate(event)], self.seen.block[taker]) < self.phase[taker]
        ends = np.cumsum([len(one) for one in event])[:-1]
        for (use, giver, _), given in zip(groups, np.split(before, ends), strict=True):
            found[use][giver] = int(given.sum())
        return found

    def _finish(self) -> None:
        """Find what each rank knows when all its blocks have ended."""
        program, found = self.program, self._clocks
        ranks, blocks = program.num_ranks, program.num_blocks
        self.end = np.zeros((ranks, self.agents), dtype=np.int32)
        self.end_begun = [1 << rank for rank in range(ranks)]
        first = program.rank_blocks.tolist()
        lasts = [found.last[first[rank] : first[rank + 1]] for rank in range(ranks)]
        for low, high, value in found.of_agents():
            for rank, last in enumerate(lasts):
                self.end[rank, low:high] = value[last].max(axis=0, initial=0)
        for rank, last in enumerate(lasts):
            self.end_begun[rank] |= _bits(np.bitwise_or.reduce(found.begun[last], axis=0))
        self.end[program.block_rank, np.arange(blocks)] = _ALL
        if program.together:
            self.end[:] = self.end.max(axis=0, initial=0)
            self.end_begun = [(1 << ranks) - 1] * ranks

    @cached_property
    def in_time(self) -> Order:
        """The order of events in time, in which relaxed signals count as others do."""
        return Order(self.program, self.seen, self._level, self._slots, self._messages, relaxed=True)

    # ---- questions

    def over(self, row: Array, agent: Array) -> Array:
        """Return how many phases of an agent are over, as rows know it; both are columns of one length."""
        block = self._clocks.block[row]
        number: Array = np.where(
            agent == block, row - self.base[block], self._clocks.numbers(self._clocks.node[row], agent)
        )
        return number

    def over_after(self, row: int, agent: int) -> int:
        """Return how many phases of an agent are over, as the row after this one knows it, or else the block's end."""
        found, block = self._clocks, int(self._clocks.block[row])
        if agent == block:
            return row + 1 - int(self.base[block])
        ends = row + 1 == self.base[block + 1]
        node = found.last[block] if ends else found.node[row + 1]
        return int(found.numbers(np.array([node]), np.array([agent]))[0])

    def beginners(self, events: Array) -> tuple[list[int], Array]:
        """Return sets of ranks, as bits, and of each event which of these have begun this launch when it happens."""
        if self.program.together:
            return [(1 << self.program.num_ranks) - 1], np.zeros(len(events), dtype=np.int64)
        found = self._clocks.begun[self._clocks.knower[events]]
        order = np.lexsort(found.T)
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (found[order[1:]] != found[order[:-1]]).any(axis=1)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(fresh) - 1
        return [_bits(row) for row in found[order[fresh]]], number

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

    @cached_property
    def proofs(self) -> Proofs:
        """What packets prove."""
        return Proofs(self.program, self.seen, self._slots, self._level, self.posted)

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


def _bits(words: Array) -> int:
    """Return words of bits as one number."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")
