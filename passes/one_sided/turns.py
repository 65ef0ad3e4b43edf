"""An order in which the operations of a one-sided program can run: one launch, in rounds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import lcm

from collc.ir.diagnostic import error
from collc.ir.one_sided.opcodes import FLAGS, PACKET_READS, PACKET_WRITES, SIGNALS, WAITS, Op
from collc.ir.one_sided.program import Item, OneSided, Operation

__all__ = ["CONTROL", "Span", "rounds", "spans"]

#: operations without data
CONTROL = frozenset({
    Op.NOP, Op.BARRIER, Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT, Op.FLUSH, Op.SEM_ACQUIRE, Op.SEM_RELEASE,
})  # fmt: skip

#: rank, buffer, first chunk, chunks: what an operation does of an item, in chunks that no slice divides
Span = tuple[int, int, int, int]


def spans(items: Sequence[Item], operation: Operation, scale: int) -> list[Span]:
    """Return the part of each item that a block does: its slice, in ``scale`` chunks for each chunk of the program."""
    share, shares = operation.share, operation.shares
    return [
        (
            item.rank, int(item.buffer), item.offset * scale + item.count * scale * share // shares,
            item.count * scale // shares,
        )
        for item in items
    ]  # fmt: skip


def rounds(program: OneSided) -> tuple[list[list[int]], int]:
    """Return the rows of the operations with data, round by round, and the chunks of a slice's unit.

    In a round every block runs one operation if it need not wait for another of the round; so in a program without
    races no two of them touch one place. Every chunk of the program is that many of the spans' chunks. A loop runs
    once. Raises C0577 if no order runs all operations.
    """
    launch = _Launch(program)
    launch.run()
    return launch.rounds, launch.scale


class _Launch:
    """The state of one launch: where each block is, counts of channels and semaphores, and which packets are there."""

    def __init__(self, program: OneSided):
        self.program, self.operations = program, program.operations()
        self.scale = lcm(1, *(operation.shares for operation in self.operations))
        starts = program.block_start.tolist()
        self.place, self.end = starts[:-1], starts[1:]
        self.partner = program.partner.tolist()
        self.inbound: Counter[int] = Counter()
        self.semaphores = program.semaphore_value.tolist()
        self.packets: set[tuple[int, int]] = set()
        self.arrived: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.rounds: list[list[int]] = []

    def run(self) -> None:
        """Run rounds until all blocks have ended."""
        waiting = list(range(len(self.place)))
        while waiting := [block for block in waiting if self.place[block] < self.end[block]]:
            while sum(self.controls(block) for block in waiting):
                pass
            open_ = [block for block in waiting if self.place[block] < self.end[block]]
            ready = [block for block in open_ if self.has_data(block)]
            if open_ and not ready:
                raise self.stuck(open_)
            if ready:
                self.rounds.append([self.place[block] for block in ready])
            for block in ready:
                self.finish(self.operations[self.place[block]])
                self.place[block] += 1

    def controls(self, block: int) -> bool:
        """Run the operations of a block up to the next one with data or that waits; return whether one ran."""
        first = self.place[block]
        while self.place[block] < self.end[block]:
            operation = self.operations[self.place[block]]
            if operation.op is Op.BARRIER:
                if not self.join(block, operation):
                    break
            elif operation.op in CONTROL and self.may_run(operation):
                self.finish(operation)
                self.place[block] += 1
            else:
                break
        return bool(self.place[block] > first)

    def has_data(self, block: int) -> bool:
        """Return whether the next operation of a block has data, and those that it needs are there."""
        operation = self.operations[self.place[block]]
        return operation.op not in CONTROL and self.may_run(operation)

    def stuck(self, waiting: Sequence[int]) -> Exception:
        places = [self.place[block] for block in waiting]
        notes = [f"{self.program.place(row)}: `{self.program.word(row)}` waits" for row in places[:4]]
        return error("C0577", "the one-sided program never ends", notes=notes, hint="`collc verify` says why")

    def join(self, block: int, operation: Operation) -> bool:
        """Let a block arrive at a barrier; the last one lets all go on."""
        key = (int(self.program.block_rank[block]), operation.number)
        if block not in self.arrived[key]:
            self.arrived[key].append(block)
        if len(self.arrived[key]) < operation.blocks:
            return False
        for other in self.arrived.pop(key):
            self.place[other] += 1
        return True

    def may_run(self, operation: Operation) -> bool:
        if WAITS[operation.op]:
            return all(self.inbound[link] >= count for link, count in Counter(operation.links).items())
        if operation.op is Op.SEM_ACQUIRE:
            return all(self.semaphores[link] >= count for link, count in Counter(operation.links).items())
        return not FLAGS[operation.op] or self.packets.issuperset(self.packets_read(operation))

    def packets_read(self, operation: Operation) -> Iterator[tuple[int, int]]:
        if PACKET_READS[operation.op]:
            plain = 0 if operation.op in (Op.UPKT, Op.RPPKT, Op.GSTOREPKT) else 1
            yield from _chunks(spans(operation.src, operation, self.scale)[plain:])

    def finish(self, operation: Operation) -> None:
        """Count what an operation signals, and note the packets that it writes."""
        if SIGNALS[operation.op]:
            self.inbound.update(self.partner[link] for link in operation.links)
        elif WAITS[operation.op]:
            self.inbound.subtract(operation.links)
        elif operation.op in (Op.SEM_ACQUIRE, Op.SEM_RELEASE):
            for link in operation.links:
                self.semaphores[link] += 1 if operation.op is Op.SEM_RELEASE else -1
        if PACKET_WRITES[operation.op]:
            plain = 0 if operation.op in (Op.PPKT, Op.CPKT, Op.RPPKT) else 1
            self.packets.update(_chunks(spans(operation.dst, operation, self.scale)[plain:]))


def _chunks(found: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield rank and chunk of scratch of all spans."""
    return ((rank, chunk) for rank, _, first, count in found for chunk in range(first, first + count))
