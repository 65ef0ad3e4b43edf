"""The part of :mod:`.progress_waves` in which only copies help: one write is freed after another.

Ranks that swap data in place wait for each other, pair by pair, and each pair needs a copy. After each copy only a few
blocks continue, so waves of all blocks would take as many times their length.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from .progress_buffers import ARRIVED, READY, RECEIVING

if TYPE_CHECKING:
    from collc.ir.arrays import Array

    from .progress_waves import InWaves

__all__ = ["free_in_turn"]


def free_in_turn(run: InWaves, stalled: Array) -> None:
    """Free the least of the stalled blocks, and execute what can then continue, until a block lacks sends or slots.

    All blocks are stalled before and after, or done.
    """
    turn = _Turn(run, stalled.tolist())
    while turn.waiting and not turn.lacking():
        turn.free(heappop(turn.waiting))


class _Turn:
    """Blocks that wait because of a read, the least first, and those that may lack sends or slots."""

    def __init__(self, run: InWaves, waiting: list[int]):
        self.run, self.waiting, self.limited = run, waiting, list[int]()
        heapify(waiting)

    def lacking(self) -> bool:
        """Return whether a block lacks sends or slots: those found before may have got them since."""
        while self.limited:
            block = self.limited[-1]
            if self._obstacle(block) in ("sends", "slots"):
                return True
            self.limited.pop()
        return False

    def free(self, block: int) -> None:
        """Send copies in place of what delays a block's write, if it still waits for that."""
        run = self.run
        if run.at[block] == run.end[block] or self._obstacle(block) != "read":
            return
        self._advance([*run.free(int(run.at[block])), block])

    def _obstacle(self, block: int) -> str:
        """Return why a block cannot continue: ``message``, ``needs``, ``sends``, ``read``, ``slots``, or ""."""
        run, i = self.run, self.run.at[block]
        if i == run.end[block] or run.phase[block] == RECEIVING:
            return "message"
        read = run.writes[i] and run.reads[i] > 0
        if run.phase[block] == ARRIVED:
            return "read" if read and run.lands_in_slot[i] else ""
        if run.needs[i]:
            return "needs"
        if run.is_sent[i] and run.sending[block] == run.sends[block]:
            return "sends"
        if read and not run.lands_in_slot[i]:
            return "read"
        return "slots" if run.takes_slot[i] and run.in_slot[block] == run.slots[block] else ""

    def _advance(self, blocks: list[int]) -> None:
        """Execute until neither some blocks, nor those that they wake, can continue."""
        while blocks:
            block = blocks.pop()
            while not (obstacle := self._obstacle(block)):
                self._step(block, blocks)
            if obstacle == "read":
                heappush(self.waiting, block)
            elif obstacle in ("sends", "slots"):
                self.limited.append(block)

    def _step(self, block: int, woken: list[int]) -> None:
        """Begin or complete a block's instruction."""
        run, i = self.run, int(self.run.at[block])
        if run.phase[block] == READY:
            run.in_slot[block] += run.takes_slot[i]
            if run.receives[i]:
                run.phase[block] = RECEIVING
                if run.partner[i] >= 0 and run.done[run.partner[i]]:
                    self._match(i, woken)
                return
        self._hand_over(i, block, woken)

    def _hand_over(self, i: int, block: int, woken: list[int]) -> None:
        run = self.run
        sent, leaves = run.is_sent[i], run.leaves_slot[i]
        run.in_slot[block] -= run.takes_slot[i] and not (sent and leaves)
        run.phase[block] = READY
        run.at[block] += 1
        run.done[i] = True
        run.finished += 1
        for dependent in run.dependents.at(i):
            run.needs[dependent] -= 1
            if not run.needs[dependent]:
                woken.append(int(run.block[dependent]))
        if sent:
            run.sending[block] += 1
            if not leaves:
                run.fly(i, 1)
            receive = int(run.receiver[i])
            if receive >= 0 and run.at[run.block[receive]] == receive and run.phase[run.block[receive]] == RECEIVING:
                self._match(receive, woken)

    def _match(self, receive: int, woken: list[int]) -> None:
        run, send, block = self.run, int(self.run.partner[receive]), int(self.run.block[receive])
        sender = int(run.block[send])
        run.sending[sender] -= 1
        run.in_slot[sender] -= run.leaves_slot[send]
        if run.flying[send]:
            woken += run.fly(send, -1)
        run.phase[block] = ARRIVED
        woken += [block, sender]
