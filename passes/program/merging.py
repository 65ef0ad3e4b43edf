"""Find an order of instructions for joined threadblocks, and the receives and sends that can be fused.

The module simulates one execution, instruction by instruction, in the program's order as far as possible. It respects
what every execution respects: program order, messages, conflicting accesses, finite FIFOs. It also respects what the
merged program adds: a block executes one instruction at a time, and a fused receive and send are one instruction. If no
instruction can start, it gives up one fused pair or one joined block, and continues. At worst all blocks are separate.

If the program's order respects all this already, as on rings, the simulation would find this order. So columns check
the order, and nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

import numpy as np

from collc.ir.arrays import Array, distinct_pairs, lexsort
from collc.ir.frozen import frozen
from collc.ir.machine import Connections, connections, message_links, partners, receivers
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.ragged import group_starts, inverse

__all__ = ["Merged", "merge"]

#: turns between two reports of progress
_TURNS = 4096


@frozen(eq=False)
class Merged:
    """The result of merging: ``order`` lists all instructions in a correct order.

    ``follow`` is for each receive the send it is fused with (-1: none), ``host`` for each block the block it joined.
    """

    order: Array
    follow: Array
    host: Array


def merge(
    program: Program, due: Array | None, order: Callable[[], Array], clashes: tuple[Array, Array], follow: Array,
    host: Array, depth: int, patient: bool = False,
) -> Merged | None:  # fmt: skip
    """Simulate the program with blocks joined by ``host`` and receives fused with sends by ``follow``.

    ``order`` returns the places of the instructions. If these agree with times, ``due`` has the times: mostly they
    decide, and the order is not computed.
    ``clashes`` are the program's conflicts (:func:`..analysis.hazards.conflicts`). A connection holds ``depth`` chunks.
    The sender of a larger message waits until it is received. If it is ``patient``, it does something else until the
    receiver is ready: then joined blocks that send to each other do not deadlock. Returns None if even separate blocks
    do: no order is correct with such small FIFOs.
    """
    given = None if due is None else _order_by_time(program, due, clashes, follow, host, depth)
    if given is None:
        place = order()
        given = _given_order(program, place, clashes, follow, depth)
    if given is not None:
        return Merged(given, follow, host)
    simulation = _Simulation(program, place, clashes, follow, host, depth, patient)
    if not simulation.run():
        return None
    return Merged(
        np.array(simulation.done, dtype=np.int64), np.array(simulation.follow, dtype=np.int64),
        np.array(simulation.host),
    )  # fmt: skip


def _order_by_time(
    program: Program, due: Array, clashes: tuple[Array, Array], follow: Array, host: Array, depth: int
) -> Array | None:
    """Return the order of times with each fused send at its receive; None if other orders of one time may differ.

    In all orders that agree with the times, the blocks then do the same: the instructions of a joined block have
    different times, those that wait for each other too, and connections have room for all that is sent at one time.
    """
    lead = _inverse(follow)
    leader = np.where(lead < 0, np.arange(len(lead)), lead)
    time, block = due[leader], host[program.block]
    by_time = lexsort((lead >= 0, leader, time, block))
    same = (np.diff(block[by_time]) == 0) & (np.diff(time[by_time]) == 0) & (np.diff(leader[by_time]) != 0)
    before, after = _edges(program, clashes, partners(program))
    level = (time[before] >= time[after]) & (leader[before] != leader[after])
    if same.any() or level.any() or not _fits(program, time, depth):
        return None
    return lexsort((lead >= 0, leader, time))


def _given_order(
    program: Program, order: Array, clashes: tuple[Array, Array], follow: Array, depth: int
) -> Array | None:
    """Return the program's order with each fused send at its receive; None if something would have to wait.

    Then every instruction can start at its turn. So the simulation would start the instructions in this order.
    """
    lead = _inverse(follow)
    turn = order[np.where(lead < 0, np.arange(len(lead)), lead)]
    before, after = _edges(program, clashes, partners(program))
    if (turn[before] > turn[after]).any() or not _fits(program, turn, depth):
        return None
    return lexsort((lead >= 0, turn))


def _fits(program: Program, turn: Array, depth: int) -> bool:
    """Return whether no connection ever holds more than ``depth`` chunks, if instructions run at their turns.

    Of one turn, receives come last. One connection comes after the other, and each is empty at its end.
    """
    count, (source, into) = program.count.astype(np.int64), message_links(program, connections(program))
    sends, receives = np.flatnonzero(into >= 0), np.flatnonzero(source >= 0)
    connection = np.concatenate([into[sends], source[receives]])
    by_turn = lexsort((np.arange(len(connection)) >= len(sends), turn[np.concatenate([sends, receives])], connection))
    held = np.cumsum(np.concatenate([count[sends], -count[receives]])[by_turn])
    return bool((held <= depth).all())


def _edges(program: Program, clashes: tuple[Array, Array], partner: Array) -> tuple[Array, Array]:
    """Return pairs of instructions, the second of which comes after the first in every execution."""
    later, earlier = clashes
    inner = np.flatnonzero(np.diff(program.block) == 0)
    received = np.flatnonzero(partner >= 0)
    before = np.concatenate([earlier, inner, partner[received]])
    after = np.concatenate([later, inner + 1, received])
    other = before != after
    return before[other], after[other]


class _Simulation:
    """The state of the execution. A fused pair has the number of its receive; any other instruction is its own pair."""

    def __init__(
        self, program: Program, order: Array, clashes: tuple[Array, Array], follow: Array, host: Array, depth: int,
        patient: bool = False,
    ):  # fmt: skip
        n, links = program.num_instructions, connections(program)
        self.host, self.follow = host.tolist(), follow.tolist()
        self.block: list[int] = program.block.tolist()
        self.lead = _inverse(follow).tolist()  # send -> the receive it is fused with
        self.paired = bytearray((follow >= 0) | (np.array(self.lead, dtype=np.int64) >= 0))  # now, or once
        self.rows: list[int] = program.block_start.tolist()  # block -> its first instruction
        self.members: dict[int, list[int]] = {}  # block that others joined -> these blocks and itself
        for b, h in enumerate(self.host):
            self.members.setdefault(h, []).append(b)
        self._messages(program, links, depth)
        self._neighbours(program, clashes, partners(program))
        self.busy = [-1] * program.num_blocks  # block -> the pair that it cannot finish yet
        self.parked: dict[int, list[int]] = {}  # busy block -> its other pairs that are ready
        self.starved: dict[int, list[int]] = {}  # full connection -> pairs that are ready to send
        self.patient = patient
        self.put_off: dict[int, int] = {}  # receive of a large message that is not ready -> the pair that would send it
        self.place = order.tolist()
        by_place = lexsort((np.arange(n), order))
        self.key: list[int] = inverse(by_place).tolist()  # instruction -> its turn; one that is urgent: itself - n
        self.turn = [*by_place.tolist(), *range(n)]  # turn -> instruction, negative ones from the end
        self.heap: list[int] = []  # turns of pairs that are ready
        self.halves: list[tuple[int, int]] = []  # receives that are ready, but whose fused send is not
        self.unfinished: list[tuple[int, int]] = []  # fused pairs that have begun, and may keep their block busy
        self.finished: list[int] = []
        self.begun = bytearray(n)
        self.done: list[int] = []

    def _messages(self, program: Program, links: Connections, depth: int) -> None:
        """Note for each instruction its connections and the other end of its messages, and how much each may find."""
        count, partner = program.count.astype(np.int64), partners(program)
        source, into = message_links(program, links)
        receiver = receivers(partner)
        large = (into >= 0) & (count > depth)
        self.source, self.into, self.count = source.tolist(), into.tolist(), count.tolist()
        self.held = [0] * len(links)  # chunks sent and not received
        self.room = np.where(large, 0, depth - count).tolist()  # chunks that a send may find in its connection
        self.waits_for = np.where(large, receiver, -1).tolist()  # send -> the receive without which it does not finish
        self.held_up = np.where(np.append(large, False)[partner], partner, -1).tolist()  # receive -> that send

    def _neighbours(self, program: Program, clashes: tuple[Array, Array], partner: Array) -> None:
        """Note for each instruction which come after it, and how many come before."""
        n = program.num_instructions
        a, b = distinct_pairs(*_edges(program, clashes, partner))
        self.start = group_starts(a, n).tolist()
        self.after = b.tolist()
        self.missing = np.bincount(b, minlength=n).tolist()

    def run(self) -> bool:
        """Execute all instructions; return whether all have finished."""
        n = len(self.place)
        for i in np.flatnonzero(np.array(self.missing) == 0).tolist():
            self._offer(i)
        self._advance()
        while len(self.done) < n:
            if not self._relax():
                return False
            self._advance()
        return True

    # ---- what is ready

    def _offer(self, x: int) -> None:
        """Add an instruction's pair to the ready ones, if all its predecessors have finished."""
        i = x if self.lead[x] < 0 else self.lead[x]
        if self.missing[i]:
            return
        j = self.follow[i]
        if j >= 0 and self.missing[j] > 1:  # the receive itself is one
            heappush(self.halves, (self.place[i], i))
        else:
            heappush(self.heap, self.key[i])

    def _wake(self, rows: Iterable[int]) -> None:
        for i in rows:
            if not self.begun[i]:
                heappush(self.heap, self.key[i])

    def _advance(self) -> None:
        """Execute pairs and finish them, until none is ready. One loop with local names: it takes most of the time."""
        block, host, busy, lead, follow = self.block, self.host, self.busy, self.lead, self.follow
        source, into, count, held, room = self.source, self.into, self.count, self.held, self.room
        waits_for, held_up, begun, done = self.waits_for, self.held_up, self.begun, self.done
        start, after, missing, turn, key = self.start, self.after, self.missing, self.turn, self.key
        paired, finished, heap = self.paired, self.finished, self.heap
        starved, parked, halves, place = self.starved, self.parked, self.halves, self.place
        patient, put_off = self.patient, self.put_off
        turns = 0
        while finished or heap:
            if turns % _TURNS == 0:
                progress("merging instructions", len(done), len(key))
            turns += 1
            if finished:
                i = finished.pop()
                j, here = follow[i], host[block[i]]
            else:
                i = turn[heappop(heap)]
                if begun[i] or lead[i] >= 0:
                    continue
                j, here = follow[i], host[block[i]]
                send = i if j < 0 else j
                if busy[here] >= 0:
                    parked.setdefault(here, []).append(i)
                    continue
                receiver = waits_for[send]
                if patient and receiver >= 0:
                    if missing[receiver] > 1:
                        put_off[receiver] = i
                        continue
                    there = host[block[receiver]]
                    if busy[there] >= 0:
                        parked.setdefault(there, []).append(i)
                        continue
                link = into[send]
                if link >= 0:
                    if held[link] > room[send]:
                        starved.setdefault(link, []).append(i)
                        continue
                    held[link] += count[send]
                begun[i] = 1
                done.append(i)
                if j >= 0:
                    begun[j] = 1
                    done.append(j)
                if receiver >= 0:
                    busy[here] = i
                    if j >= 0:
                        heappush(self.unfinished, (place[i], i))
                    self._hurry(receiver)
                    continue
            # the pair has finished: release its successors, and the sender of its message
            released = -1
            if busy[here] == i:
                busy[here] = -1
                released = waits_for[i if j < 0 else j]
                self._wake(parked.pop(here, ()))
            link = source[i]
            if link >= 0:
                held[link] -= count[i]
                if link in starved:
                    self._wake(starved.pop(link))
            for x in (i,) if j < 0 else (i, j):
                for b in after[start[x] : start[x + 1]]:
                    if b != released:
                        missing[b] = left = missing[b] - 1
                        if left == 1 and b in put_off:
                            heappush(heap, key[put_off.pop(b)])
                        if not paired[b]:
                            if not left:
                                heappush(heap, key[b])
                        elif not missing[first := b if lead[b] < 0 else lead[b]]:  # as in `_offer`
                            send = follow[first]
                            if send >= 0 and missing[send] > 1:
                                heappush(halves, (place[first], first))
                            else:
                                heappush(heap, key[first])
            sender = held_up[i]
            if sender >= 0:
                pair = lead[sender] if lead[sender] >= 0 else sender
                if busy[host[block[pair]]] == pair:
                    finished.append(pair)

    def _hurry(self, receiver: int) -> None:
        """Let the receive of a large message, whose send has begun, come before all else."""
        n, pair = len(self.key), self.lead[receiver]
        self.key[receiver] = receiver - n
        if pair >= 0:
            self.key[pair] = pair - n
        self.missing[receiver] -= 1
        self._offer(receiver)

    # ---- giving up

    def _relax(self) -> bool:
        """Give up one fused pair or one joined block that blocks progress; return whether there was any."""
        while self.halves:
            i = heappop(self.halves)[1]
            if not self.begun[i] and self.follow[i] >= 0:
                self._separate(i)
                return True
        waiting = [i for rows in self.starved.values() for i in rows if not self.begun[i] and self.follow[i] >= 0]
        if waiting:
            self._separate(min(waiting, key=self.place.__getitem__))
            return True
        while self.unfinished:
            i = heappop(self.unfinished)[1]
            if self.follow[i] >= 0 and self.busy[self.host[self.block[i]]] == i:
                self._release(i)
                return True
        blocked = [(self.place[i], host) for host, rows in self.parked.items() for i in rows if not self.begun[i]]
        for _, host in sorted(blocked):
            if any(self.block[i] != self.block[self.busy[host]] for i in self.parked[host]):
                self._divide(host)
                return True
        return False

    def _separate(self, i: int) -> None:
        """Separate a receive from its fused send."""
        self.lead[self.follow[i]] = -1
        self.follow[i] = -1
        heappush(self.heap, self.key[i])

    def _release(self, i: int) -> None:
        """Separate a pair that has begun: its data have arrived, whenever the send happens."""
        send = self.follow[i]
        self.lead[send] = self.follow[i] = -1
        self.busy[self.host[self.block[i]]] = send
        self.finished.append(i)

    def _divide(self, host: int) -> None:
        """Separate the blocks of a joined block."""
        send = self.busy[host]  # its pair was separated before
        self.busy[host] = -1
        for b in self.members.pop(host):
            self.host[b] = b
            for i in range(self.rows[b], self.rows[b + 1]):
                if self.follow[i] >= 0:
                    self.lead[self.follow[i]] = self.follow[i] = -1
                    if not self.begun[i]:
                        self._offer(i)
        self.busy[self.block[send]] = send
        self._wake(self.parked.pop(host, ()))


def _inverse(follow: Array) -> Array:
    """Return for each send the receive that it is fused with (-1: none)."""
    lead = np.full(len(follow), -1, dtype=np.int64)
    fused = np.flatnonzero(follow >= 0)
    lead[follow[fused]] = fused
    return lead
