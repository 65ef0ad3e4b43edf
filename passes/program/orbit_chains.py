"""Send what a rank of a template forwards on the channel on which it arrived.

A chain is a message, the message that forwards its data, the message that forwards these, and so on. On rings, and in
the phases of a torus, it goes straight on: what arrives over one connection leaves over one other. All its messages
have one channel, so one threadblock receives and forwards them. A chain that is too long for a threadblock is cut: what
arrives at a cut is received by one threadblock, and sent by another.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.editing import take
from collc.ir.frozen import frozen
from collc.ir.group import Translations
from collc.ir.laid_out import run_counts
from collc.ir.machine import execute, partners, receivers
from collc.ir.ragged import first_of_group, inverse
from collc.ir.symmetric_program import SymmetricProgram

from .orbit_channels import Messages, Room
from .orbit_messages import message_conflicts, message_order, one_by_one, relays, waiting_as_needed, waiting_for

__all__ = ["along_chains", "is_cyclic"]

_ROUNDS = 16


def is_cyclic(program: SymmetricProgram) -> bool:
    """Return whether the ranks of a template are one ring: there longer chains are possible (:mod:`.orbit_relays`)."""
    return program.width == 1 and isinstance(program.group, Translations) and len(program.group.shape) == 1


def along_chains(program: SymmetricProgram, room: Room) -> SymmetricProgram | None:
    """Return the program with few channels, and each chain on one of them if it fits there.

    Messages become single instructions, on all ranks. None if that needs too many, if there are more channels than a
    runtime has, or more blocks even if all are joined in pairs, or if messages arrive in another order.
    """
    whole = None if is_cyclic(program) or program.width > 1 else _in_single_runs(program, room.count)
    if whole is None:
        return None
    messages = Messages.of(whole, room).by_ranks(program.num_ranks)
    chains = _Chains.of(whole, messages)
    most, apart = room.steps, attrs.evolve(room, threadblocks=None)
    for _ in range(_ROUNDS):
        if most is not None and most < 2:
            return None
        number, channel, begin = chains.channels(most)
        found = messages.on(number, channel)
        few = room.threadblocks is None or int(number.sum()) + bool(whole.batched.local.any()) <= room.threadblocks
        if not few or found.limits_exceeded(apart) or not found.in_order:
            return None
        longest = int(found.steps.max(initial=0))
        if room.steps is None or most is None or longest <= room.steps:
            placed = found.program(whole)
            return _piece_after_piece(placed, begin[found.rows]) or placed
        most = min(most * room.steps // longest, most - 1)  # a message may be several steps
    return None


def _in_single_runs(program: SymmetricProgram, most: int | None) -> SymmetricProgram | None:
    """Return the program with each message divided into single runs.

    None if there are over twice as many runs, because fusing saves no more than half of them, or if one has over
    ``most`` chunks. None too for numbered programs: their messages are sets of many chunks in one run.
    """
    seed = program.seed
    if program.fixed or len(program.numbering) or (most is not None and int(seed.count.max(initial=0)) > most):
        return None
    if not program.joined.any():
        return program
    if seed.num_instructions * program.group.order > 2 * int(run_counts(program, most).sum()):
        return None
    return one_by_one(program)


@frozen(eq=False)
class _Chains:
    """The ``courses`` of a template's chains: each is a list of chains, and a chain the messages that leave, in order.

    Chains of one course go over the same connections; ``course`` is that of each connection. ``arrival`` is the other
    end of each message that leaves.
    """

    messages: Messages
    courses: list[list[list[int]]]
    course: Array
    arrival: Array

    @classmethod
    def of(cls, program: SymmetricProgram, messages: Messages) -> _Chains:
        arrival = receivers(partners(program.batched))
        received, sent = _straight(messages, *relays(program, messages.conflicts))
        course = _courses(messages, received, sent)
        before = dict(zip(sent.tolist(), received.tolist(), strict=True))
        chain_of: dict[int, list[int]] = {}  # message -> its chain, known at both ends
        courses: list[list[list[int]]] = [[] for _ in range(int(course.max(initial=-1)) + 1)]
        for message in messages.sent[lexsort([messages.order[messages.sent]])].tolist():
            chain = chain_of.get(before.get(message, -1))
            if chain is None:
                chain = []
                courses[course[messages.link[message]]].append(chain)
            chain.append(message)
            chain_of[int(arrival[message])] = chain
        return cls(messages, courses, course, arrival)

    def channels(self, most: int | None) -> tuple[Array, Array, Array]:
        """Return the number of channels of each connection, which of them each message uses, and when its piece begins.

        Each has at most ``most`` messages of a connection, and one more for each chain: its last message is received
        apart.
        """
        number = np.ones(len(self.course), dtype=np.int64)
        which, begin = np.zeros(len(self.messages.kind), dtype=np.int64), self.messages.order.copy()
        for k, chains in enumerate(self.courses):
            bins = self._placed(chains, most)
            number[self.course == k] = len(bins)
            for channel, pieces in enumerate(bins):
                for piece in pieces:
                    which[piece] = which[self.arrival[piece]] = channel
                    begin[piece] = begin[self.arrival[piece]] = self.messages.order[piece[0]]
        return number, which, begin

    def _placed(self, chains: list[list[int]], most: int | None) -> list[list[list[int]]]:
        """Return the pieces of chains on each channel: the longest first, each on the channel with fewest messages."""
        if most is None:
            return [chains]
        pieces = sorted((piece for chain in chains for piece in _cut(chain, most - 1)), key=lambda piece: -len(piece))
        links = {int(link) for piece in pieces for link in self.messages.link[piece]}
        least = -(-sum(len(piece) + 1 for piece in pieces) // (most * max(len(links), 1)))
        for number in range(least, len(pieces) + 1):
            bins: list[list[list[int]]] = [[] for _ in range(number)]
            load = [dict[int, int]() for _ in bins]
            for piece in pieces:
                used = self._load(piece)
                k = min(range(len(bins)), key=lambda k: max(load[k].get(link, 0) + n for link, n in used.items()))
                bins[k].append(piece)
                for link, n in used.items():
                    load[k][link] = load[k].get(link, 0) + n
            if max((n for one in load for n in one.values()), default=0) <= most:
                return bins
        raise AssertionError("a channel has room for each piece")

    def _load(self, piece: list[int]) -> dict[int, int]:
        """Return the messages of a piece by connection, and one more on each."""
        links, numbers = np.unique(self.messages.link[piece], return_counts=True)
        return dict(zip(links.tolist(), (numbers + 1).tolist(), strict=True))


def _piece_after_piece(program: SymmetricProgram, begin: Array) -> SymmetricProgram | None:
    """Return the program whose blocks finish one piece after the other; None if ranks would wait for each other.

    ``begin`` says for each message when its piece begins.
    """
    order = message_order(program)
    later, earlier = message_conflicts(program, order)
    block = program.seed.block
    rows = lexsort((order, begin, block))
    place = inverse(rows)
    apart = block[later] != block[earlier]
    if (place[later] < place[earlier])[~apart].any():
        return None
    turned = attrs.evolve(program, seed=take(program.seed, rows))
    turned = waiting_for(turned, place[later[apart]], place[earlier[apart]])
    execution = execute(turned.batched)
    return None if execution.deadlock else waiting_as_needed(turned, inverse(execution.finished))


def _cut(chain: list[int], most: int) -> Iterator[list[int]]:
    """Yield a chain in pieces of at most ``most`` messages, about equally long."""
    pieces = -(-len(chain) // most)
    for k in range(pieces):
        yield chain[len(chain) * k // pieces : len(chain) * (k + 1) // pieces]


def _straight(messages: Messages, received: Array, sent: Array) -> tuple[Array, Array]:
    """Return the pairs (arrival, send) of relays that go straight on, one send for each arrival.

    What arrives over a connection goes straight on over the one that forwards most of it; each forwards for one.
    """
    pair, number = np.unique(np.stack([messages.link[received], messages.link[sent]]), axis=1, return_counts=True)
    onward, taken = dict[int, int](), set[int]()
    for k in lexsort([-number]).tolist():
        into, out = pair[:, k].tolist()
        if into not in onward and out not in taken:
            onward[into] = out
            taken.add(out)
    straight = np.array([onward.get(link, -1) for link in messages.link[received].tolist()], dtype=np.int64)
    kept = np.flatnonzero(straight == messages.link[sent])
    kept = kept[lexsort((messages.order[sent[kept]], received[kept]))]
    kept = kept[first_of_group(received[kept])]
    return received[kept], sent[kept]


def _courses(messages: Messages, received: Array, sent: Array) -> Array:
    """Number the connections, those that relays join alike."""
    course = np.arange(len(messages.carries))
    for into, out in sorted(set(zip(*(messages.link[ends].tolist() for ends in (received, sent)), strict=True))):
        course[course == course[out]] = course[into]
    found: Array = np.unique(course, return_inverse=True)[1]
    return found
