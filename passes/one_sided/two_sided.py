"""From a one-sided program to a program of sends and receives: what MSCCL, oneCCL and MPI run.

A put becomes a send and a receive. Operations run in rounds, each without conflicts if the program has no races. The
sends of a round stand before its receives, so no connection holds more than one message, and no two ranks wait for each
other. Signals, semaphores and barriers vanish; what they order becomes dependencies between instructions of one rank
that touch one chunk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count as counting
from itertools import zip_longest

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.frozen import frozen
from collc.ir.layout import layout
from collc.ir.one_sided.opcodes import ADDS, PACKET_READS, SIGNALS, SWITCHES, WAITS, Op
from collc.ir.one_sided.program import OneSided, Operation
from collc.ir.opcodes import Opcode
from collc.ir.program import Buffer, Program

from .turns import Span, rounds, spans

__all__ = ["two_sided"]

_PUTS = frozenset({Op.PUT, Op.PWS, Op.PWSF, Op.PPKT, Op.RPPKT})
_COPIES = frozenset({Op.COPY, Op.CPKT, Op.UPKT})
#: the threadblock that serves reads of a peer: no block of the one-sided program does
_SERVES = -1


def two_sided(program: OneSided) -> Program:
    """Return the program whose ranks send and receive what a one-sided program without races moves in one launch.

    A block becomes a threadblock if it sends to one peer and receives from one at most, else one for each peer. Scratch
    keeps its places. The result is right in the in-place mode of the program; the other mode is not its promise.

    Raises C0576 for operations of switches, and for sums that overlap their sources in part; C0577 for a program that
    never ends.
    """
    found, scale = rounds(program)
    listing = _Listing(program, program.operations(), scale)
    for rows in found:
        listing.add(rows)
    return _Threadblocks(program, listing.moves, scale).built()


# ---- what one launch moves


@attrs.frozen
class _Move:
    """An instruction of a rank that a block executes.

    ``src`` and ``dst`` are places (buffer, chunk) on the rank. Send and receive of one message have its ``connection``:
    the sending rank and block, and the receiving rank and block.
    """

    opcode: Opcode
    rank: int
    block: int
    src: tuple[int, int] | None
    dst: tuple[int, int] | None
    count: int
    connection: tuple[int, int, int, int] | None = None


class _Listing:
    """The moves of a launch, listed operation by operation."""

    def __init__(self, program: OneSided, operations: Sequence[Operation], scale: int):
        self.program, self.operations, self.scale = program, operations, scale
        self.blocks, self.block = program.block.tolist(), program.block_id.tolist()
        self.rank, self.end = program.block_rank.tolist(), program.block_start.tolist()[1:]
        self.peer, self.partner = program.channel_peer.tolist(), program.partner.tolist()
        self.waiting = dict(reversed(list(self.links(WAITS))))
        self.readers = dict(reversed(list(self.slots())))
        self.receivers: dict[tuple[int, int, int], int] = {}
        self.moves: list[_Move] = []
        self.group: list[tuple[list[_Move], list[_Move]]] = []

    def links(self, which: object) -> Iterator[tuple[int, int]]:
        """Yield each channel that an operation of a kind names, and the number of its block."""
        for row, operation in enumerate(self.operations):
            if which[operation.op]:  # type: ignore[index]
                yield from ((link, self.block[self.blocks[row]]) for link in operation.links)

    def slots(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield rank and first chunk of each slot that a block reads packets of, and the number of the block."""
        for row, operation in enumerate(self.operations):
            if PACKET_READS[operation.op]:
                for span in spans(operation.src, operation, self.scale):
                    yield (span[0], span[2]), self.block[self.blocks[row]]

    def add(self, rows: Sequence[int]) -> None:
        """List the moves of a round: of the k-th messages of all operations first the sends, then the receives."""
        groups = [self.groups(row, self.operations[row]) for row in rows]
        for together in zip_longest(*groups, fillvalue=([], [])):
            for side in range(2):
                self.moves += [move for group in together for move in group[side]]

    def groups(self, row: int, operation: Operation) -> list[tuple[list[_Move], list[_Move]]]:
        """Return the moves of an operation, one group for each message that leaves: up to the send, and the receive."""
        self.group = [([], [])]
        op = operation.op
        if SWITCHES[op]:
            raise self.refused(row, "a switch adds or multicasts")
        src, dst = (spans(items, operation, self.scale) for items in (operation.src, operation.dst))
        if op in _COPIES:
            self.local(row, Opcode.COPY, src[0], dst[0])
        elif op in _PUTS:
            for k, there in enumerate(dst):
                self.message(row, src[min(k, len(src) - 1)], there)
        elif op is Op.GET:
            for there, here in zip(src, dst, strict=True):
                self.message(row, there, here)
        elif ADDS[op]:
            self.sum(row, src, dst)
        else:
            raise self.refused(row, "no message does the same")
        return self.group

    def refused(self, row: int, why: str) -> CollcError:
        what = f"{self.program.place(row)}: `{self.program.word(row)}`: {why}"
        hint = "only targets of one-sided programs take it"
        return error("C0576", "sends and receives cannot express the one-sided program", notes=[what], hint=hint)

    def local(self, row: int, opcode: Opcode, src: Span, dst: Span) -> None:
        """List a copy or reduction, unless it copies a place to itself."""
        if opcode is Opcode.COPY and src[:3] == dst[:3]:
            return
        block = self.block[self.blocks[row]]
        self.group[-1][0].append(_Move(opcode, src[0], block, src[1:3], dst[1:3], src[3]))

    def sum(self, row: int, src: Sequence[Span], dst: Sequence[Span]) -> None:
        """List the sum of sources in the first destination; the others get copies of it."""
        total, rest = dst[0], list(src)
        if total in rest:
            rest.remove(total)
        else:
            first = next(span for span in rest if span[0] == total[0])
            rest.remove(first)
            self.local(row, Opcode.COPY, first, total)
        if any(_overlap(total, span) for span in rest):
            raise self.refused(row, "the sum overlaps a source in part")
        for span in rest:
            if span[0] == total[0]:
                self.local(row, Opcode.REDUCE, span, total)
            else:
                self.message(row, span, total, adds=True)
        for span in dst[1:]:
            if span[0] == total[0]:
                self.local(row, Opcode.COPY, total, span)
            else:
                self.message(row, total, span)

    def message(self, row: int, src: Span, dst: Span, adds: bool = False) -> None:
        """List a send and the receive of its message, which adds to the destination or replaces it."""
        here, reads = self.block[self.blocks[row]], dst[0] == self.rank[self.blocks[row]]
        if src[0] == dst[0]:
            raise self.refused(row, "a rank reaches its own buffer as that of a peer")
        ends = (src[0], _SERVES - self.blocks[row], dst[0], here) if reads else self.connection(row, here, dst)
        opcode = Opcode.RECV_REDUCE_COPY if adds else Opcode.RECV
        send = _Move(Opcode.SEND, src[0], ends[1], src[1:3], None, src[3], ends)
        receive = _Move(opcode, dst[0], ends[3], dst[1:3] if adds else None, dst[1:3], src[3], ends)
        self.group[-1][0].append(send)
        self.group[-1][not reads].append(receive)
        if not reads:
            self.group.append(([], []))

    def connection(self, row: int, here: int, dst: Span) -> tuple[int, int, int, int]:
        """Return the connection from a block to a peer; the block that waits for its first message receives all."""
        pair = self.rank[self.blocks[row]], here, dst[0]
        if pair not in self.receivers:
            self.receivers[pair] = self.receiver(row, dst)
        return (*pair, self.receivers[pair])

    def receiver(self, row: int, dst: Span) -> int:
        """Return the number of the block that waits for what an operation writes to a peer."""
        if (dst[0], dst[2]) in self.readers and dst[1] == Buffer.SCRATCH:
            return self.readers[dst[0], dst[2]]
        for operation in self.operations[row : self.end[self.blocks[row]]]:
            if SIGNALS[operation.op]:
                for link in operation.links:
                    if self.peer[link] == dst[0] and self.partner[link] in self.waiting:
                        return self.waiting[self.partner[link]]
        return _SERVES


def _overlap(a: Span, b: Span) -> bool:
    return a[:2] == b[:2] and a[2] < b[2] + b[3] and b[2] < a[2] + a[3]


# ---- threadblocks


@frozen
class _Part:
    """A threadblock: its rank, its block, and the connections that it sends and receives on."""

    rank: int
    block: int
    sends: tuple[int, int, int, int] | None = None
    receives: tuple[int, int, int, int] | None = None

    @property
    def peers(self) -> tuple[int, int]:
        """Its send and receive peer, -1 for none."""
        return -1 if self.sends is None else self.sends[2], -1 if self.receives is None else self.receives[0]


class _Threadblocks:
    """Moves, divided over threadblocks with one send peer and one receive peer at most."""

    def __init__(self, program: OneSided, moves: Sequence[_Move], scale: int):
        self.program, self.moves, self.scale = program, list(moves), scale
        self.reads = _reads(moves)
        of_block: defaultdict[tuple[int, int], list[_Move]] = defaultdict(list)
        for move in moves:
            of_block[move.rank, move.block].append(move)
        self.parts = [part for key in sorted(of_block) for part in _parts(key, of_block[key])]
        self.channels = _channels(self.parts)
        if self.channels is None:
            self.parts = [alone for part in self.parts for alone in _apart(part)]
            self.channels = _channels(self.parts)

    def built(self) -> Program:
        """Return the program."""
        assert self.channels is not None
        of = [*self.assigned()]
        rows: list[list[int]] = [[] for _ in self.parts]
        for number, part in enumerate(of):
            rows[part].append(number)
        rows = [self.fused(found) for found in rows]
        place = {number: row for row, number in enumerate(number for found in rows for number in found)}
        needs = self.dependencies(of, sorted(place))
        blocks = [(part.rank, *part.peers, self.channels[k]) for k, part in enumerate(self.parts)]
        instructions = [
            [(*_instruction(self.moves[n]), sorted(place[d] for d in needs[n])) for n in found] for found in rows
        ]
        one = self.program
        return Program.build(
            one.collective, one.chunks * self.scale, (one.scratch * self.scale).tolist(), blocks, instructions,
            name=one.name, scheduler=one.scheduler,
        )  # fmt: skip

    def fused(self, numbers: Sequence[int]) -> list[int]:
        """Return the moves of a threadblock with a receive and the sum or copy of its message as one move."""
        found: list[int] = []
        for number in numbers:
            before = self.moves[found[-1]] if found else None
            joined = before and self.joined(before, self.moves[number], number)
            if joined:
                self.moves[number] = joined
                found.pop()
            found.append(number)
        return found

    def joined(self, receive: _Move, then: _Move, number: int) -> _Move | None:
        """Return one move that does both; None if there is none."""
        if receive.opcode is not Opcode.RECV or receive.count != then.count or then.connection is not None:
            return None
        if then.opcode is Opcode.REDUCE and then.dst == receive.dst:
            return attrs.evolve(receive, opcode=Opcode.RECV_REDUCE_COPY, src=then.src)
        if then.src != receive.dst or not self.is_last_read(then, number):
            return None
        if then.opcode is Opcode.REDUCE:
            return attrs.evolve(receive, opcode=Opcode.RECV_REDUCE_COPY, src=then.dst, dst=then.dst)
        return attrs.evolve(receive, dst=then.dst)

    def is_last_read(self, move: _Move, number: int) -> bool:
        """Return whether scratch that a move reads is written before it is read again, if ever."""
        if move.src is None or move.src[0] != Buffer.SCRATCH:
            return False
        chunks = range(move.src[1], move.src[1] + move.count)
        return not any(self.reads.get((move.rank, chunk), {}).get(number) for chunk in chunks)

    def assigned(self) -> Iterator[int]:
        """Yield the threadblock of each move: its connection's, or for a local one the last one of its block."""
        by_end = {
            (end, part.rank): k for k, part in enumerate(self.parts) for end in (part.sends, part.receives) if end
        }
        last = {(part.rank, part.block): k for k, part in reversed(list(enumerate(self.parts)))}
        for move in self.moves:
            if move.connection is not None:
                last[move.rank, move.block] = by_end[move.connection, move.rank]
            yield last[move.rank, move.block]

    def dependencies(self, of: Sequence[int], numbers: Sequence[int]) -> dict[int, set[int]]:
        """Return the moves of other threadblocks that each move must wait for: they touch a chunk, and one writes it.

        Of each threadblock only the last such move counts, because it runs its moves in order.
        """
        address = self.addresses()
        writer: dict[int, int] = {}
        readers: defaultdict[int, list[int]] = defaultdict(list)
        needs: dict[int, set[int]] = {}
        for number in numbers:
            move, before = self.moves[number], set[int]()
            reads, writes = address(move.rank, move.src, move.count), address(move.rank, move.dst, move.count)
            before.update(writer[chunk] for chunk in (*reads, *writes) if chunk in writer)
            before.update(reader for chunk in writes for reader in readers.pop(chunk, ()))
            for chunk in reads:
                readers[chunk].append(number)
            writer.update((chunk, number) for chunk in writes)
            latest = {of[other]: other for other in sorted(before)}
            needs[number] = {other for part, other in latest.items() if part != of[number]}
        return needs

    def addresses(self) -> _Addresses:
        """Return the addresses of places, with input and output at one address as the in-place mode says."""
        one = self.program
        sizes = Program.build(one.collective, one.chunks * self.scale, (one.scratch * self.scale).tolist(), (), ())
        return _Addresses(layout(sizes, one.inplace).base.tolist())


@frozen
class _Addresses:
    """The address of the first chunk of each buffer of each rank."""

    base: list[list[int]]

    def __call__(self, rank: int, place: tuple[int, int] | None, count: int) -> range:
        if place is None:
            return range(0)
        first = self.base[rank][place[0]] + place[1]
        return range(first, first + count)


def _reads(moves: Sequence[_Move]) -> dict[tuple[int, int], dict[int, bool]]:
    """Return, by rank and chunk of scratch, each move that reads it, and whether another reads the value later."""
    found: defaultdict[tuple[int, int], dict[int, bool]] = defaultdict(dict)
    read_later: dict[tuple[int, int], bool] = {}
    for number, move in reversed(list(enumerate(moves))):
        adds = move.opcode in (Opcode.REDUCE, Opcode.RECV_REDUCE_COPY)
        read_later.update(dict.fromkeys(_scratch(move.rank, move.dst, move.count), adds))
        for key in _scratch(move.rank, move.src, move.count):
            found[key][number] = read_later.get(key, False)
            read_later[key] = True
    return found


def _scratch(rank: int, place: tuple[int, int] | None, count: int) -> Iterator[tuple[int, int]]:
    """Yield rank and chunk of a place in scratch; nothing for another."""
    if place is not None and place[0] == Buffer.SCRATCH:
        yield from ((rank, chunk) for chunk in range(place[1], place[1] + count))


def _instruction(move: _Move) -> tuple[Opcode, Buffer, int, Buffer, int, int]:
    src, dst = move.src or (0, 0), move.dst or (0, 0)
    return move.opcode, Buffer(src[0]), src[1], Buffer(dst[0]), dst[1], move.count


def _parts(key: tuple[int, int], moves: Sequence[_Move]) -> Iterator[_Part]:
    """Yield the threadblocks of a block: one if it has one peer a side, else one for each peer."""
    found = dict.fromkeys(move.connection for move in moves if move.connection is not None)
    sends = [end for end in found if end[:2] == key]
    receives = [end for end in found if end[2:] == key]
    if len(sends) <= 1 and len(receives) <= 1:
        yield _Part(*key, next(iter(sends), None), next(iter(receives), None))
        return
    for end in sends:
        back = next((other for other in receives if other[0] == end[2]), None)
        if back is not None:
            receives.remove(back)
        yield _Part(*key, end, back)
    yield from (_Part(*key, None, end) for end in receives)


def _apart(part: _Part) -> Iterator[_Part]:
    """Yield a threadblock for each direction."""
    if part.sends is None or part.receives is None:
        yield part
    else:
        yield _Part(part.rank, part.block, part.sends, None)
        yield _Part(part.rank, part.block, None, part.receives)


def _channels(parts: Sequence[_Part]) -> list[int] | None:
    """Return the channel of each threadblock; None if threadblocks that need one channel share a connection.

    Both ends of a connection have one channel; two threadblocks of a rank with one peer on one side have two.
    """
    groups = _connected(parts)
    used: set[tuple[int, int, str, int]] = set()
    channels = [0] * len(parts)
    for members in groups:
        ends = [end for k in members for end in _ends(parts[k])]
        if len(set(ends)) < len(ends):
            return None
        channel = next(c for c in counting() if used.isdisjoint((*end, c) for end in ends))
        used.update((*end, channel) for end in ends)
        for k in members:
            channels[k] = channel
    return channels


def _ends(part: _Part) -> Iterator[tuple[int, int, str]]:
    for side, peer in zip(("send", "receive"), part.peers, strict=True):
        if peer >= 0:
            yield part.rank, peer, side


def _connected(parts: Sequence[_Part]) -> list[list[int]]:
    """Return the threadblocks that connections join, group by group, in order of their first one."""
    group = list(range(len(parts)))

    def root(k: int) -> int:
        while group[k] != k:
            group[k] = group[group[k]]
            k = group[k]
        return k

    sender = {part.sends: k for k, part in enumerate(parts) if part.sends is not None}
    for k, part in enumerate(parts):
        if part.receives is not None:
            a, b = sorted((root(k), root(sender[part.receives])))
            group[b] = a
    found: defaultdict[int, list[int]] = defaultdict(list)
    for k in range(len(parts)):
        found[root(k)].append(k)
    return list(found.values())
