"""Execute one launch: which events complete, and in which order.

A block executes its operations one after the other. That its threads go on apart between two nops can only help: more
signals and packets never block anything. Blocks that acquire one semaphore get its releases in the worst order.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...arrays import Array
from ...frozen import frozen
from ..opcodes import PACKET_READS, SIGNALS, WAITS, Op
from ..program import OneSided, Transport
from ..waves import levels
from ._events import Events
from ._form import doing
from ._messages import Messages, Uses
from ._packets import Packets

__all__ = ["Outcome", "execute", "gives"]

_PLAIN, _WAIT, _SIGNAL, _BARRIER, _PACKETS, _ACQUIRE, _RELEASE = range(7)


@frozen(eq=False)
class Outcome:
    """``level[e]`` is the least number of events, less 1, that end with event e and follow each other; -1: stuck.

    ``stuck`` says for each block that cannot go on what it waits for. ``signals[c]`` are the signals that channel c
    has received, ``waits[c]`` those that it has waited for; ``values`` are the changes of semaphores.
    """

    level: Array
    stuck: list[str]
    signals: list[int]
    waits: list[int]
    values: list[int]


def gives(program: OneSided) -> Array:
    """Return which operations signal channels: a put with a signal over memory channels does not."""
    found: Array = SIGNALS[program.opcode] & ~(
        np.isin(program.opcode, (Op.PWS, Op.PWSF)) & (program.transport == Transport.MEMORY)
    )
    return found


def _kinds(program: OneSided) -> Array:
    """Return what each operation waits for or signals."""
    op = program.opcode
    kind = np.full(len(op), _PLAIN)
    kind[WAITS[op]] = _WAIT
    kind[gives(program)] = _SIGNAL
    kind[op == Op.BARRIER] = _BARRIER
    kind[PACKET_READS[op]] = _PACKETS
    kind[op == Op.SEM_ACQUIRE] = _ACQUIRE
    kind[op == Op.SEM_RELEASE] = _RELEASE
    return kind


def execute(program: OneSided, seen: Events, slots: Packets, messages: Messages) -> Outcome:
    """Return the outcome of one launch whose channels and semaphores begin balanced.

    If it is known which signal ends each wait, levels are longest paths. Otherwise, and if some block never ends, the
    blocks run one after the other.
    """
    known = not (len(messages.several) or len(messages.lacking) or messages.contested)
    if known and not (program.opcode == Op.BARRIER).any():
        uses = messages.uses
        needs = np.diff(slots.start)
        later = np.concatenate([uses.event[messages.take], np.repeat(seen.event[slots.reader], needs)])
        earlier = np.concatenate([uses.event[messages.give], slots.writer])
        level = levels(seen.start, later, earlier)
        if level is not None:
            return Outcome(level, [], *_counts(program, uses))
    return _Run(program, seen, slots).outcome()


def _counts(program: OneSided, uses: Uses) -> tuple[list[int], list[int], list[int]]:
    """Return the signals and waits of each channel, and the changes of semaphores, if all events complete."""
    channels, semaphores = len(program.channel_rank), len(program.semaphore_rank)
    given, taken = (
        np.bincount(uses.where[some], minlength=channels + semaphores) for some in (uses.gives, uses.takes)
    )  # fmt: skip
    return given[:channels].tolist(), taken[:channels].tolist(), (given - taken)[channels:].tolist()


def _append(levels: list[int], level: int) -> None:
    """Append the level that as many signals have come by."""
    levels.append(max(level, levels[-1]) if levels else level)


class _Run:
    def __init__(self, program: OneSided, seen: Events, slots: Packets):
        self.program, self.seen = program, seen
        self.kind = _kinds(program)[seen.row].tolist()
        self.row = seen.row.tolist()
        self.links = program.links.tolist()
        self.first_link = program.link_start.tolist()
        self.partner = program.partner.tolist()
        self.level = [-1] * len(self.row)
        self.signals: list[list[int]] = [[] for _ in self.partner]  # levels of the signals that channels received
        self.waits = [0] * len(self.partner)
        self.releases: list[list[int]] = [[] for _ in program.semaphore_value]
        self.acquires: dict[tuple[int, int], int] = defaultdict(int)  # by semaphore and block
        self.value = program.semaphore_value.tolist()
        self.others = self._others()
        self.need = self._needs(slots)
        self.barriers: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        self.asleep: dict[tuple[int, int], list[int]] = defaultdict(list)  # what is waited for -> blocks
        self.readers: dict[int, list[int]] = defaultdict(list)  # event -> blocks that wait for its packets
        self.queue = list(range(program.num_blocks - 1, -1, -1))
        self.at = seen.start[:-1].tolist()
        self.time = [-1] * program.num_blocks
        self.taken = [0] * program.num_blocks  # signals that the current wait of each block has taken
        self.heard = [-1] * program.num_blocks  # the latest level of those
        self.rank = program.block_rank.tolist()

    def _others(self) -> dict[tuple[int, int], int]:
        """Return for each semaphore and block how often other blocks acquire it."""
        of_block: dict[tuple[int, int], int] = defaultdict(int)
        total: dict[int, int] = defaultdict(int)
        block = self.seen.block.tolist()
        for event, kind in enumerate(self.kind):
            if kind == _ACQUIRE:
                for semaphore in self._links(event):
                    of_block[semaphore, block[event]] += 1
                    total[semaphore] += 1
        return {key: total[key[0]] - count for key, count in of_block.items()}

    def _needs(self, slots: Packets) -> dict[int, list[int]]:
        """Return for each event that reads packets the events that write them."""
        found: dict[int, list[int]] = defaultdict(list)
        event, start, writer = self.seen.event[slots.reader].tolist(), slots.start.tolist(), slots.writer.tolist()
        for k, reader in enumerate(event):
            found[reader] += writer[start[k] : start[k + 1]]
        return found

    def _links(self, event: int) -> list[int]:
        row = self.row[event]
        found: list[int] = self.links[self.first_link[row] : self.first_link[row + 1]]
        return found

    def outcome(self) -> Outcome:
        end = self.seen.start[1:].tolist()
        while self.queue:
            block = self.queue.pop()
            while self.at[block] < end[block]:
                event = self.at[block]
                kind = self.kind[event]
                if kind == _PLAIN:
                    self._done(event, block, self.time[block])
                    continue
                latest = self._try(event, kind, block)
                if latest is None:
                    break
                self._done(event, block, latest)
                if kind != _WAIT:
                    self._wake(event, kind)
        stuck = [b for b in range(len(self.at)) if self.at[b] < end[b]]
        change = [len(got) for got in self.releases]
        for (semaphore, _), count in self.acquires.items():
            change[semaphore] -= count
        return Outcome(
            np.array(self.level, dtype=np.int64), [self._stuck(b) for b in stuck],
            [len(got) for got in self.signals], self.waits, change,
        )  # fmt: skip

    def _done(self, event: int, block: int, latest: int) -> None:
        self.level[event] = self.time[block] = max(latest, self.time[block]) + 1
        self.at[block] += 1
        if event in self.readers:
            self.queue += self.readers.pop(event)

    def _try(self, event: int, kind: int, block: int) -> int | None:
        """Return the latest level that an event comes after, or None if it waits."""
        latest = self.time[block]
        if kind == _WAIT:
            return self._wait(event, block, latest)
        if kind == _BARRIER:
            return self._barrier(event, block)
        if kind == _PACKETS:
            for writer in self.need[event]:
                if self.level[writer] < 0:
                    self.readers[writer].append(block)
                    return None
                latest = max(latest, self.level[writer])
        if kind == _ACQUIRE:
            return self._acquire(event, block, latest)
        return latest

    def _wait(self, event: int, block: int, latest: int) -> int | None:
        links = self._links(event)
        for k in range(self.taken[block], len(links)):
            link = links[k]
            if self.waits[link] >= len(self.signals[link]):
                self.asleep[_WAIT, link].append(block)
                self.taken[block] = k
                return None
            self.heard[block] = max(self.heard[block], self.signals[link][self.waits[link]])
            self.waits[link] += 1
        latest = max(latest, self.heard[block])
        self.taken[block], self.heard[block] = 0, -1
        return latest

    def _acquire(self, event: int, block: int, latest: int) -> int | None:
        links = self._links(event)
        for semaphore in links:
            before = self.others[semaphore, block] + self.acquires[semaphore, block] + links.count(semaphore)
            needed = before - self.value[semaphore]
            if needed > len(self.releases[semaphore]):
                self.asleep[_ACQUIRE, semaphore].append(block)
                return None
            if needed > 0:
                latest = max(latest, self.releases[semaphore][needed - 1])
        for semaphore in links:
            self.acquires[semaphore, block] += 1
        return latest

    def _barrier(self, event: int, block: int) -> int | None:
        row = self.row[event]
        key = self.rank[block], int(self.program.number[row])
        here = self.barriers[key]
        if any(b == block for _, b, _ in here):
            return None
        here.append((event, block, self.time[block]))
        if len(here) < int(self.program.blocks[row]):
            return None
        latest = max(time for _, _, time in here)
        for other, b, _ in here[:-1]:
            self._done(other, b, latest)
            self.queue.append(b)
        here.clear()
        return latest

    def _wake(self, event: int, kind: int) -> None:
        if kind == _SIGNAL:
            for link in self._links(event):
                to = self.partner[link]
                _append(self.signals[to], self.level[event])
                self.queue += self.asleep.pop((_WAIT, to), ())
        elif kind == _RELEASE:
            for semaphore in self._links(event):
                _append(self.releases[semaphore], self.level[event])
                self.queue += self.asleep.pop((_ACQUIRE, semaphore), ())

    def _stuck(self, block: int) -> str:
        event = self.at[block]
        row, kind = self.row[event], self.kind[event]
        return f"{doing(self.program, row)} {self._why(event, kind)}"

    def _why(self, event: int, kind: int) -> str:
        program = self.program
        if kind == _WAIT:
            for link in self._links(event)[self.taken[int(self.seen.block[event])] :]:
                if self.waits[link] >= len(self.signals[link]):
                    rank, peer = program.channel_rank[link], program.channel_peer[link]
                    given = len(self.signals[link])
                    return (
                        f"waits for signal {self.waits[link] + 1} of channel {link - self._first_channel(int(rank))} "
                        f"from rank {peer}, which gives {given}"
                    )
        if kind == _BARRIER:
            return "waits for other blocks of its barrier"
        if kind == _PACKETS:
            writer = next(w for w in self.need[event] if self.level[w] < 0)
            return f"waits for packets of {doing(program, self.row[writer])}"
        return "waits for a semaphore"

    def _first_channel(self, rank: int) -> int:
        return int(np.searchsorted(self.program.channel_rank, rank))
