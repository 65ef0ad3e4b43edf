"""Which signal or release each wait or acquire learns from, in every interleaving.

A *use* is a channel or semaphore of an event: thread k of the block acts on the k-th. Of what one block gives, the k-th
wait learns from the k-th. If several blocks give, k signals came, so of one block all that the others cannot be.
"""

from __future__ import annotations

from copy import copy

import attrs
import numpy as np

from ...arrays import Array, lexsort
from ...frozen import frozen
from ...ragged import first_of_group, nth, owners, ranges, starts
from ..opcodes import PUBLISHES, SIGNALS, WAITS, Op, table
from ..program import OneSided, Transport
from ._events import Events

__all__ = ["Limits", "Messages", "Uses"]

_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_PUTS = table(Op.PWS, Op.PWSF)

#: of a use that waits for what several blocks give: how many of each do not come after it
Limits = dict[int, dict[int, int]]


@frozen(eq=False)
class Uses:
    """The uses of all events, event by event: use u is of ``event[u]`` by ``thread[u]``, and names ``link[u]``.

    ``gives`` and ``takes`` are those that give and take signals or releases; ``where`` is the channel that receives
    them, or the semaphore, with a number of its own. ``ordered`` says whether they publish or learn what came before.
    """

    event: Array
    thread: Array
    link: Array
    port: Array
    gives: Array
    takes: Array
    where: Array
    ordered: Array

    @classmethod
    def of(cls, program: OneSided, seen: Events) -> Uses:
        """Return the uses of all events."""
        first = program.link_start.astype(np.int64)
        count = np.diff(first)[seen.row]
        event, thread = owners(count), nth(count)
        link = program.links.astype(np.int64)[ranges(first[seen.row], count)]
        op = program.opcode[seen.row][event]
        port = program.transport[seen.row][event] == Transport.PORT
        gives = (SIGNALS[op] & (port | ~_PUTS[op])) | (op == Op.SEM_RELEASE)
        takes = WAITS[op] | (op == Op.SEM_ACQUIRE)
        semaphore, channels = _SEMAPHORES[op], len(program.channel_rank)
        to = program.partner[np.where(semaphore, 0, link)] if channels else link
        where = np.where(semaphore, channels + link, np.where(gives, to, link))
        ordered = port | PUBLISHES[op] | (op == Op.WAIT) | semaphore
        return cls(event, thread, link, port, gives & (where >= 0), takes, where, ordered)


class Messages:
    """Pairs of a use that takes and a use that gives: ``take[k]`` learns what ``give[k]`` knew.

    ``several`` are the uses that take what several blocks give, ``lacking`` those that take more than is given.
    ``contested`` is whether several blocks take from one channel or semaphore.
    """

    def __init__(self, program: OneSided, seen: Events, uses: Uses):
        self.uses, self.block = uses, seen.block[uses.event]
        channels, blocks = len(program.channel_rank), program.num_blocks
        given, taken = np.flatnonzero(uses.gives), np.flatnonzero(uses.takes)
        self._give, group, self._first = self._by_block(given, blocks)
        self._sources = starts(np.bincount(group, minlength=channels + len(program.semaphore_rank)))
        order, group, first = self._by_block(taken, blocks)
        self.contested = bool((np.diff(group) == 0).any())
        where = uses.where[order]
        free = np.append(np.zeros(channels, dtype=np.int64), program.semaphore_value)[where]
        least = ranges(0, np.diff(first)) + 1 - free
        source, end = self._sources[where], self._sources[where + 1]
        total = self._first[end] - self._first[source]
        self.lacking = order[least > total]
        alone = np.flatnonzero((end - source == 1) & (least >= 1) & (least <= total))
        self.take, self.give = order[alone], self._give[self._first[source[alone]] + least[alone] - 1]
        some = end - source > 1
        self.several = order[some]
        self._least = least[some].tolist()
        self._alone = self.take, self.give
        self._add({})

    def limited(self, limits: Limits) -> Messages:
        """Return the messages with what is known to come after uses that wait for what several blocks give."""
        found = copy(self)
        found._add(limits)
        return found

    def relaxed(self) -> Messages:
        """Return the messages with relaxed signals and waits as others are."""
        found = copy(self)
        found.uses = attrs.evolve(self.uses, ordered=np.ones_like(self.uses.ordered))
        return found

    def _by_block(self, some: Array, blocks: int) -> tuple[Array, Array, Array]:
        """Return uses sorted by where and block, where each such group is, and its first use and the end of all."""
        key = self.uses.where[some] * np.int64(blocks) + self.block[some]
        order = some[lexsort([key])]
        fresh = np.flatnonzero(first_of_group(self.uses.where[order]) | first_of_group(self.block[order]))
        return order, self.uses.where[order[fresh]], np.append(fresh, len(order))

    def giving(self, use: int) -> dict[int, Array]:
        """Return for each block the uses that give what a use takes."""
        where = int(self.uses.where[use])
        groups = range(int(self._sources[where]), int(self._sources[where + 1]))
        return {
            int(self.block[self._give[self._first[k]]]): self._give[self._first[k] : self._first[k + 1]] for k in groups
        }

    def _add(self, limits: Limits) -> None:
        """Add the pairs of what several blocks give."""
        pairs: list[tuple[int, int]] = []
        for use, least in zip(self.several.tolist(), self._least, strict=True):
            giving = self.giving(use)
            given = limits.get(use) or {block: len(uses) for block, uses in giving.items()}
            total = sum(given.values())
            numbers = ((block, least - (total - count)) for block, count in given.items())
            pairs += [(use, int(giving[block][number - 1])) for block, number in numbers if 1 <= number <= given[block]]
        if pairs:
            more = np.array(pairs, dtype=np.int64).T
            self.take, self.give = (np.append(*column) for column in zip(self._alone, more, strict=True))
