"""What the phases of all blocks know, by vector clocks: how many phases of every agent are over, and who has begun.

A *node* is a row of such numbers: the maximum of the nodes that it learns from, and of single numbers besides. Phases
of a block that learn nothing new share a node. Nodes of one level do not learn from each other, so they are computed
together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays import Array, distinct, lexsort
from ...frozen import frozen
from ...ragged import first_of_group, group_starts, owners, ranges, starts
from ..opcodes import PACKET_WRITES, Op
from ..program import OneSided
from ..waves import Spread, arranged
from ._events import PARTS, Events
from ._messages import Messages
from ._packets import Packets

__all__ = ["Clocks", "Posts"]

_END = np.iinfo(np.int64).max
_WORD = 64
#: bytes of the numbers of nodes that are computed at a time
_MOST_BYTES = 1 << 27


@frozen(eq=False)
class Posts:
    """The puts over ports: those of ``agents`` (channel, block), one after the other.

    ``over`` says of each use of a channel by an agent (use, agent, steps) how many puts it follows; ``flushes`` are the
    uses that wait until these are over.
    """

    agents: int
    over: dict[int, tuple[int, int]]
    flushes: Array


class Clocks:
    """Row r of a block (see :class:`.Order`) knows what node ``node[r]`` knows, and how far its own block is.

    :meth:`numbers` are what nodes know of agents, ``begun`` the ranks that have begun, as bits of words. Event e
    knows the ranks of ``begun[knower[e]]``. ``last`` are the nodes of the blocks' ends.
    """

    def __init__(
        self, program: OneSided, seen: Events, level: Array, slots: Packets, base: Array, known: Array,
        messages: Messages, posts: Posts, kind: type[np.signedinteger[Any]],  # Any: the width
    ):  # fmt: skip
        self.program, self.seen, self.level, self.slots = program, seen, level, slots
        self.base, self.known, self.messages, self.posts = base, known, messages, posts
        self.block = owners(np.diff(base))
        self.agents = posts.agents
        self._pairs: list[tuple[Array, Array]] = []
        self._weak: list[tuple[Array, Array]] = []  # pairs of which only the ranks that have begun are learned
        self._sets: list[tuple[Array, Array, Array]] = []
        self._kind = kind
        self._all: Array | None = None  # the numbers of all agents, if they are few
        self._learned: tuple[Array, Array, Array]  # node, agent and number, by agent
        self._spreading: Spread
        self._list_learned()
        self._number()
        self._link()
        self._arrange()
        self._compute()

    # ---- what is learned

    def _list_learned(self) -> None:
        """List what threads learn: in which row, at which event, and from which use; flushes learn from themselves."""
        uses, flushes = self.messages.uses, self.posts.flushes
        use = np.concatenate([self.messages.take, flushes])
        self._row = self.known[uses.event[use]]
        self._event, self._thread = uses.event[use], uses.thread[use]
        self._source = np.concatenate([self.messages.give, flushes + len(uses.event)])
        self._ordered = np.append(
            uses.ordered[self.messages.take] & uses.ordered[self.messages.give], np.ones(len(flushes), dtype=bool)
        )
        self._readers = self.seen.event[self.slots.reader]

    def _number(self) -> None:
        """Number the nodes: of blocks' starts, flushes, messages that tell more than their row, rows, blocks' ends."""
        program, uses, blocks = self.program, self.messages.uses, self.program.num_blocks
        rows, level = int(self.base[-1]), self.level
        learns = np.zeros(rows, dtype=bool)
        learns[self._row] = True
        learns[self.known[self._readers]] = True
        op = program.opcode[self.seen.row]
        parts = np.flatnonzero(PARTS[op])
        parts = parts[learns[self.known[parts]] | (op[parts] == Op.BARRIER)]
        ends = self.base[1:] - 1
        ends = ends[learns[ends]]
        self._telling = distinct(self.messages.give)
        self._extra = self._extras(self._telling)
        agent = np.zeros(len(uses.event), dtype=bool)
        agent[list(self.posts.over)] = True
        more = agent[self._telling] | (self._extra[1] > 0)
        richer = np.flatnonzero(more)
        counts = (blocks, len(self.posts.flushes), len(richer), len(parts), len(ends))
        first = starts(counts).tolist()
        of_level = (
            np.full(first[2], -1, dtype=np.int64), level[uses.event[self._telling[richer]]], level[parts],
            np.full(len(ends), _END),
        )  # fmt: skip
        self.levels = np.concatenate(of_level)
        # the nodes of uses that have one: of what they give, then of what they flush
        self._own = np.full(2 * len(uses.event), -1, dtype=np.int64)
        self._own[self.posts.flushes + len(uses.event)] = np.arange(first[1], first[2])
        self._own[self._telling[richer]] = np.arange(first[2], first[3])
        self._richer = richer
        row = np.full(rows, -1, dtype=np.int64)
        row[self.base[:-1]] = np.arange(blocks)
        row[self.known[parts] + 1] = np.arange(first[3], first[4])
        self.node = row[np.maximum.accumulate(np.where(row >= 0, np.arange(rows), 0))] if rows else row
        self.last = self.node[self.base[1:] - 1]
        self.last[self.block[ends]] = np.arange(first[4], first[5])
        self._targets(op, parts, first[3], ends, first[4])

    def _extras(self, telling: Array) -> tuple[Array, Array, Array]:
        """Return of each use that gives which entries its own thread has learned in this phase: first, count, order."""
        uses = self.messages.uses
        threads, events = np.int64(int(uses.thread.max(initial=0)) + 1), np.int64(len(self.seen.row) + 1)
        key = (self._row * threads + self._thread) * events + self._event
        order = lexsort([key])
        event = uses.event[telling]
        begin = (self.known[event] * threads + uses.thread[telling]) * events
        low, high = (np.searchsorted(key[order], one) for one in (begin, begin + event))
        return low, high - low, order

    def _targets(self, op: Array, parts: Array, first: int, ends: Array, first_end: int) -> None:
        """List (row, node): which nodes learn what is learned in a row. All blocks of a barrier learn from all."""
        row, node = self.known[parts], np.arange(first, first + len(parts))
        barrier = op[parts] == Op.BARRIER
        rows, nodes = [row[~barrier], ends], [node[~barrier], np.arange(first_end, first_end + len(ends))]
        groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for k in np.flatnonzero(barrier).tolist():
            of = int(self.seen.row[parts[k]])
            groups[int(self.program.rank[of]), int(self.program.number[of]), int(self.level[parts[k]])].append(k)
        for group in groups.values():
            rows.append(np.tile(row[group], len(group)))
            nodes.append(np.repeat(node[group], len(group)))
        self._to_row, self._to_node = np.concatenate(rows), np.concatenate(nodes)
        order = lexsort([self._to_row])
        self._to_row, self._to_node = self._to_row[order], self._to_node[order]
        self._first_to = group_starts(self._to_row, int(self.base[-1]))

    # ---- who learns from whom

    def _link(self) -> None:
        self._learn_row(self._to_node, self._to_row, 1)
        entry, to = self._heard(self._row)
        self._learn(to, entry)
        low, count, order = (self._extra[0][self._richer], self._extra[1][self._richer], self._extra[2])
        telling = self._telling[self._richer]
        own = self._own[telling]
        self._learn_row(own, self.known[self.messages.uses.event[telling]], 0)
        self._learn(np.repeat(own, count), order[ranges(low, count)])
        ends = (0, len(self.messages.uses.event))
        over = [(int(self._own[use + end]), *found) for use, found in self.posts.over.items() for end in ends]
        steps = [found for found in over if found[0] >= 0]
        if steps:
            node, agent, value = (np.array(column, dtype=np.int64) for column in zip(*steps, strict=True))
            self._sets.append((node, agent, value))

    def _heard(self, row: Array) -> tuple[Array, Array]:
        """Return (entry, node) for what is learned in rows, one entry for each row given."""
        count = self._first_to[row + 1] - self._first_to[row]
        return owners(count), self._to_node[ranges(self._first_to[row], count)]

    def _learn_row(self, node: Array, row: Array, over: int) -> None:
        """Let nodes learn what rows know, whose own blocks are ``over`` phases further."""
        self._pairs.append((node, self.node[row]))
        self._sets.append((node, self.block[row], row - self.base[self.block[row]] + over))

    def _learn(self, node: Array, entry: Array) -> None:
        """Let nodes learn what entries of the list have learned."""
        source, ordered = self._source[entry], self._ordered[entry]
        own = self._own[source]
        plain = own < 0
        event = self.messages.uses.event
        row = self.known[event[source % max(len(event), 1)]]
        self._pairs.append((node[ordered & ~plain], own[ordered & ~plain]))
        self._learn_row(node[ordered & plain], row[ordered & plain], 0)
        weak = ~ordered
        self._weak.append((node[weak], np.where(plain, self.node[row], own)[weak]))

    # ---- numbers by level

    def _arrange(self) -> None:
        """Sort the nodes by level, and so that the k-th pairs of a level are of successive nodes."""
        later, earlier = (np.concatenate(column) for column in zip(*self._pairs, strict=True))
        place = arranged(self.levels, later)
        self.levels = np.sort(self.levels)
        self.node, self.last = place[self.node], place[self.last]
        self._place = place
        by = lexsort([place[later]])
        self._later, self._earlier = place[later[by]], place[earlier[by]]
        self._sets = [(place[node], agent, value) for node, agent, value in self._sets]
        self._weak = [(place[node], place[other]) for node, other in self._weak]

    # ---- numbers of agents

    def numbers(self, node: Array, agent: Array) -> Array:
        """Return what nodes know of agents, elementwise; both are columns of one length."""
        found = np.zeros(len(node), dtype=self._kind)
        order = lexsort([agent])
        for first, last, value in self.of_agents(distinct(agent)):
            some = order[slice(*np.searchsorted(agent[order], [first, last]).tolist())]
            found[some] = value[node[some], agent[some] - first]
        return found

    def of_agents(self, some: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield (first, last, numbers): what all nodes know of the agents ``first`` to ``last`` (exclusive).

        All together would fill the memory: 3 GiB for an allreduce of 256 ranks. So a few agents are taken at a time,
        and the next ones overwrite their numbers. With ``some``, groups without one of these agents are left out.
        """
        if self._all is not None:
            yield 0, self.agents, self._all
            return
        width = max(_MOST_BYTES // max(len(self.levels) * np.dtype(self._kind).itemsize, 1), 1)
        space = np.empty(len(self.levels) * min(width, self.agents), dtype=self._kind)
        for first in range(0, self.agents, width):
            last = min(first + width, self.agents)
            if some is not None and not ((some >= first) & (some < last)).any():
                continue
            value = space[: len(self.levels) * (last - first)].reshape(-1, last - first)
            value[:] = 0
            low, high = np.searchsorted(self._learned[1], [first, last]).tolist()
            node, agent, number = (column[low:high] for column in self._learned)
            self._spreading.into(value, node, agent - first, number)
            if last - first == self.agents:
                self._all = value
            yield first, last, value

    def _compute(self) -> None:
        node, agent, number = (np.concatenate(column) for column in zip(*self._sets, strict=True))
        by = lexsort([agent])
        self._learned = node[by], agent[by], number[by]
        self._spreading = Spread(self.levels, self._later, self._earlier)
        self._compute_begun()

    def _compute_begun(self) -> None:
        program, blocks = self.program, self.program.num_blocks
        words = -(-program.num_ranks // _WORD)
        op = program.opcode[self.seen.row]
        packets = PACKET_WRITES[op]
        packets[self._readers] = True
        events = np.flatnonzero(packets)
        events = events[lexsort([self.level[events]])]
        nodes = len(self.levels)
        self.knower = self.node[self.known]
        self.knower[events] = np.arange(nodes, nodes + len(events))
        self.begun = np.zeros((nodes + len(events), words), dtype=np.uint64)
        rank = program.block_rank.astype(np.int64)
        start = self._place[np.arange(blocks)]
        self.begun[start, rank // _WORD] = np.uint64(1) << (rank % _WORD).astype(np.uint64)
        if not program.together:
            self._spread(events, nodes)

    def _spread(self, events: Array, nodes: int) -> None:
        """Compute who has begun, level by level: of nodes, then of events with packets."""
        reader, writer = self._readers, self.slots.writer
        count = np.diff(self.slots.start)
        entry, to = self._heard(self.known[reader])
        writers = self.knower[writer[ranges(self.slots.start[:-1][entry], count[entry])]]
        pairs = [(self._later, self._earlier), *self._weak, (np.repeat(self._place[to], count[entry]), writers)]
        later, earlier = (np.concatenate(column) for column in zip(*pairs, strict=True))
        by = lexsort([later])
        later, earlier = later[by], earlier[by]
        by = lexsort([self.knower[reader]])
        needed = writer[ranges(self.slots.start[:-1][by], count[by])]
        accesses = _Accesses(self.knower[reader[by]], count[by], self.knower[needed])
        levels = distinct(np.concatenate([self.levels[later], self.level[events]]))
        ends = np.searchsorted(self.levels[later], levels, side="right").tolist()
        stops = np.searchsorted(self.level[events], levels, side="right").tolist()
        row = self.node[self.known[events]]
        low = first = 0
        for end, stop in zip(ends, stops, strict=True):
            if end > low:
                of = later[low:end]
                fresh = np.flatnonzero(first_of_group(of))
                self.begun[of[fresh]] |= np.bitwise_or.reduceat(self.begun[earlier[low:end]], fresh, axis=0)
            if stop > first:
                self.begun[nodes + first : nodes + stop] = self.begun[row[first:stop]]
                accesses.read(self.begun, nodes + first, nodes + stop)
            low, first = end, stop


class _Accesses:
    """Access k of the event ``event[k]``, ascending, needs the packets of the next ``count[k]`` ``writers``."""

    def __init__(self, event: Array, count: Array, writers: Array):
        self.event, self.writers = event, writers
        self.start = starts(count)

    def read(self, begun: Array, first: int, last: int) -> None:
        """Let the events from ``first`` to ``last`` learn from packets: of an access what all its writers know."""
        low, high = np.searchsorted(self.event, [first, last]).tolist()
        if high > low:
            a, b = int(self.start[low]), int(self.start[high])
            common = np.bitwise_and.reduceat(begun[self.writers[a:b]], self.start[low:high] - a, axis=0)
            fresh = np.flatnonzero(first_of_group(self.event[low:high]))
            begun[self.event[low:high][fresh]] |= np.bitwise_or.reduceat(common, fresh, axis=0)
