"""Lower a program to puts into the buffers of peers, and signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, lexsort
from collc.ir.frozen import frozen
from collc.ir.layout import layout, locations
from collc.ir.machine import partners, receivers
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided, Transport
from collc.ir.opcodes import table
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.progress import counting
from collc.ir.ragged import first_of_group, starts

from ..base import Pass, remark
from ..ranges import Range
from .connecting import Channels, channels
from .joints import Joints, joints
from .nops import with_nops
from .rows import Place, Rows, columns_of, emit, joined

__all__ = ["LowerOneSided"]

#: the largest message in packets, in bytes: what a block writes in the time of the signals that packets save
_MOST_PACKETS = 1 << 16
#: the order of the operations of one instruction
_ACQUIRE, _WAIT, _FIRST, _SECOND, _SIGNAL, _RELEASE, _STEPS = range(7)

_STORES = table(Opcode.RECV, Opcode.RECV_COPY_SEND)
_ADDS = table(Opcode.RECV_REDUCE_COPY, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND)


@frozen
class LowerOneSided(Pass):
    """Lower a program to puts into the buffers of peers, and signals (mscclpp notes, section 6).

    Every message lands in scratch of its own. Ranks of one node reach each other by memory, others by ports. A
    dependency between blocks becomes a semaphore. Blocks stay unchanged. With ``packets``, data travel with flags
    (protocol LL) in place of signals; by default the pass uses packets if the request has a size, and no message is
    larger than 64 KiB. The result relies on launches that all ranks begin together.
    """

    name: ClassVar[str] = "one-sided"
    summary: ClassVar[str] = "lower a program to puts into the buffers of peers, and signals"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = OneSided

    packets: bool | None = attrs.field(
        default=None, metadata={"help": "send packets with flags, without signals (default: if messages are small)"}
    )
    ranks_per_node: int | None = attrs.field(
        default=None,
        metadata={"help": "ranks of a node, which share memory (default: all)", "range": Range(1)},
    )
    inplace: bool = attrs.field(default=False, metadata={"help": "serve calls in place, not out of place"})
    double_scratch: bool = attrs.field(
        default=True, metadata={"help": "let packets use the halves of scratch in turn, so that launches overlap"}
    )

    def run(self, ir: Program) -> OneSided:
        packets = self._sends_packets(ir)
        lowering = _Lowering(ir, channels(ir, self._domains(ir)), packets, self.inplace)
        return with_nops(lowering.program(double_scratch=packets and self.double_scratch))

    def _domains(self, ir: Program) -> Array:
        return np.arange(ir.num_ranks) // (self.ranks_per_node or ir.num_ranks)

    def _sends_packets(self, ir: Program) -> bool:
        if self.packets is not None:
            return self.packets
        if ir.collective.size is None or not ir.sends.any():
            return False
        chunk = -(-ir.collective.size // max(ir.collective.whole * ir.chunks, 1))
        largest = int(ir.count[ir.sends].max()) * chunk
        word = "packets" if largest <= _MOST_PACKETS else "signals"
        remark(f"one-sided: {word}, because the largest message has {largest} bytes (packets: up to {_MOST_PACKETS})")
        return largest <= _MOST_PACKETS


class _Lowering:
    """A program, and where each of its instructions finds what arrives and puts what leaves."""

    def __init__(self, program: Program, ends: Channels, packets: bool, inplace: bool):
        self.source, self.ends, self.packets, self.inplace = program, ends, packets, inplace
        self.block, self.rank = program.block.astype(np.int64), program.rank
        self.count = program.count.astype(np.int64)
        self.peer = program.send_peer.astype(np.int64)[self.block]
        self.receiver = receivers(partners(program))
        self.outward, self.inward = ends.outward[self.block], ends.inward[self.block]
        self.by_port = program.sends & (ends.transport[self.outward] == Transport.PORT)
        self.parts: list[Rows] = []
        self.keys: list[Array] = []
        self._place()

    def _place(self) -> None:
        """Give each message a slot in scratch, and each sum that is only sent a place.

        A chunk of packets is twice as large as a plain one, and both kinds begin at the start of scratch. So plain
        chunks begin behind twice the slots.
        """
        program, op = self.source, self.source.opcode
        aside = (op == Opcode.RECV_REDUCE_SEND) & self.packets
        staged = self.by_port & (op != Opcode.RECV_COPY_SEND) & self.packets
        self.slot, landed = _consecutive(self.rank, np.where(program.receives, self.count, 0), program.num_ranks)
        self.stage, stages = _consecutive(self.rank, np.where(staged, self.count, 0), program.num_ranks)
        self.spare, spares = _largest(self.block, self.rank, np.where(aside, self.count, 0), program.num_ranks)
        own, slots = int(program.scratch.max(initial=0)), int((landed + stages).max(initial=0))
        self.stage += landed[self.rank]
        if self.packets:
            self.plain = 2 * slots
            self.spare += self.plain + own
            plain = own + int(spares.max(initial=0))
            self.scratch = self.plain + plain if plain else slots
        else:
            self.plain, self.scratch = 0, own + slots
            self.slot += own

    # ---- places of instructions

    def _end(self, rows: Array, end: str) -> Place:
        """Return the location ``src`` or ``dst`` of instructions."""
        buffer, offset = (getattr(self.source, f"{end}_{part}")[rows].astype(np.int64) for part in ("buffer", "offset"))
        offset = np.where(buffer == Buffer.SCRATCH, offset + self.plain, offset)
        return self.rank[rows], buffer, offset, self.count[rows]

    def _scratch(self, rows: Array, offset: Array) -> Place:
        return self.rank[rows], Buffer.SCRATCH, offset[rows], self.count[rows]

    def _landed(self, rows: Array) -> Place:
        return self._scratch(rows, self.slot)

    def _remote(self, rows: Array) -> Place:
        """Return where the peers let the messages of sending instructions land."""
        return self.peer[rows], Buffer.SCRATCH, self.slot[self.receiver[rows]], self.count[rows]

    def _stored(self, rows: Array) -> Place:
        """Return where instructions that receive, add and send store the sum."""
        rank, buffer, offset, count = self._end(rows, "dst")
        aside = self.source.opcode[rows] == Opcode.RECV_REDUCE_SEND
        other = self.spare if self.packets else self.slot
        return rank, np.where(aside, Buffer.SCRATCH, buffer), np.where(aside, other[rows], offset), count

    # ---- operations

    def _add(
        self, mask: Array, step: int, op: Op, remote: bool = False, src: Sequence[Callable[[Array], Place]] = (),
        dst: Sequence[Callable[[Array], Place]] = (), link: Array | None = None,
    ) -> None:  # fmt: skip
        """Add an operation at a step of each instruction of the mask; places are functions of the instructions."""
        rows = np.flatnonzero(mask)
        if len(rows):
            transport = np.where(self.by_port[rows], Transport.PORT, Transport.MEMORY) if remote else Transport.LOCAL
            if link is not None and not remote:
                transport = self.ends.transport[link[rows]]
            self.parts.append(emit(
                self.block[rows], op, transport, links=None if link is None else link[rows],
                src=[place(rows) for place in src], dst=[place(rows) for place in dst],
            ))  # fmt: skip
            self.keys.append(rows * _STEPS + step)

    def _local(self) -> None:
        """Add copies and sums within a rank; a copy onto itself moves nothing."""
        program, op = self.source, self.source.opcode
        source, target = (partial(self._end, end=end) for end in ("src", "dst"))
        src, dst = locations(program, layout(program, self.inplace))
        self._add((op == Opcode.COPY) & (src != dst), _FIRST, Op.COPY, src=[source], dst=[target])
        self._add(op == Opcode.REDUCE, _FIRST, Op.RE, src=[target, source], dst=[target])

    def _signalled(self) -> None:
        """Add what sends and receives do with signals."""
        program, op = self.source, self.source.opcode
        source, target = (partial(self._end, end=end) for end in ("src", "dst"))
        port, sends, adds = self.by_port, program.sends, _ADDS[op]
        self._add(program.receives, _WAIT, Op.WAIT, link=self.inward)
        self._add(_STORES[op], _FIRST, Op.COPY, src=[self._landed], dst=[target])
        self._add(adds & sends & ~port, _FIRST, Op.RES, True, [source, self._landed], [self._stored, self._remote])
        self._add(adds & ~(sends & ~port), _FIRST, Op.RE, src=[source, self._landed], dst=[self._stored])
        senders: list[tuple[Opcode, Callable[[Array], Place]]]
        senders = [(Opcode.SEND, source), (Opcode.RECV_COPY_SEND, self._landed)]
        for opcode, place in senders:
            self._add((op == opcode) & ~port, _SECOND, Op.PUT, True, [place], [self._remote])
            self._post((op == opcode) & port, place)
        self._post(adds & port, self._stored)
        self._add(sends & ~port, _SIGNAL, Op.SIGNAL, link=self.outward)

    def _post(self, mask: Array, place: Callable[[Array], Place]) -> None:
        """Add puts with signals over ports, which wait until their sources may be overwritten.

        The executor's ``pwsf`` takes the address of a list for the offset of its source, and its ``flush`` flushes once
        for each destination, which it does not write.
        """
        self._add(mask, _SECOND, Op.PWS, True, [place], [self._remote], self.outward)
        self._add(mask, _SIGNAL, Op.FLUSH, True, [], [place], self.outward)

    def _packed(self) -> None:
        """Add what sends and receives do with packets."""
        op, port = self.source.opcode, self.by_port
        source, target = (partial(self._end, end=end) for end in ("src", "dst"))
        staged = partial(self._scratch, offset=self.stage)
        adds, sends, memory = _ADDS[op], self.source.sends, ~port
        given: list[Callable[[Array], Place]] = [source, self._landed]
        self._add((op == Opcode.SEND) & memory, _FIRST, Op.PPKT, True, [source], [self._remote])
        self._add((op == Opcode.SEND) & port, _FIRST, Op.CPKT, src=[source], dst=[staged])
        self._add(adds & ~sends, _FIRST, Op.REPKT, src=given, dst=[target])
        self._add(adds & sends & memory, _FIRST, Op.RESPKT, True, given, [self._stored, self._remote])
        self._add(adds & port, _FIRST, Op.RECPKT, src=given, dst=[self._stored, staged])
        forwards = op == Opcode.RECV_COPY_SEND
        self._add(forwards & memory, _FIRST, Op.RPPKT, True, [self._landed], [self._remote])
        self._add(forwards & port, _FIRST, Op.RPPKT, True, [self._landed], [self._remote], self.outward)
        self._add(port & ~forwards, _SECOND, Op.RPPKT, True, [staged], [self._remote], self.outward)
        self._add(_STORES[op], _SECOND, Op.UPKT, src=[self._landed], dst=[target])

    def _joints(self, known: Joints) -> None:
        """Add an acquire before each instruction that depends on another block, and a release after the other one."""
        acquires, releases = (known.dependent, _ACQUIRE, Op.SEM_ACQUIRE), (known.dependency, _RELEASE, Op.SEM_RELEASE)
        for rows, step, op in (acquires, releases):
            self.parts.append(emit(self.block[rows], op, links=known.semaphore))
            self.keys.append(rows * _STEPS + step)

    def program(self, double_scratch: bool) -> OneSided:
        """Return the one-sided program, without nops."""
        program, known = self.source, joints(self.source)
        messages = self._packed if self.packets else self._signalled
        for add in counting((self._local, partial(self._joints, known), messages), "kinds of operations"):
            add()
        rows = joined(self.parts).take(lexsort([np.concatenate(self.keys)]))
        into, out = _sizes(program)
        sizes = {
            name: np.full(program.num_ranks, size)
            for name, size in (("inputs", into), ("outputs", out), ("scratch", self.scratch))
        }
        columns: Columns = {**sizes, **self.ends.columns, **columns_of(rows, program.num_blocks)}
        return OneSided(
            program.collective, program.chunks, semaphore_rank=known.rank,
            semaphore_value=np.zeros_like(known.rank), loop_unit=[], loop_chunks=[], block_rank=program.block_rank,
            packets=self.packets, inplace=self.inplace, double_scratch=double_scratch, together=True,
            name=program.name, scheduler=program.scheduler, **columns,
        )  # fmt: skip


def _sizes(program: Program) -> tuple[int, int]:
    """Return the chunks of input and output: the most of any rank, because all ranks of a plan have the same."""
    ranks = range(program.num_ranks)
    return max(1, *map(program.input_chunks, ranks)), max(1, *map(program.output_chunks, ranks))


def _consecutive(rank: Array, count: Array, ranks: int) -> tuple[Array, Array]:
    """Return the offset of each row's chunks on its rank, one row after the other, and the chunks of each rank."""
    total = np.bincount(rank, count, ranks).astype(np.int64)
    order = lexsort([rank])
    offset = np.empty(len(rank), dtype=np.int64)
    offset[order] = starts(count[order])[:-1] - starts(total)[rank[order]]
    return offset, total


def _largest(block: Array, rank: Array, count: Array, ranks: int) -> tuple[Array, Array]:
    """Return the offset on its rank of the place that all rows of a block share, and the chunks of each rank."""
    first = first_of_group(block)
    most = np.maximum.reduceat(count, np.flatnonzero(first)) if len(block) else count
    offset, total = _consecutive(rank[first], most, ranks)
    return offset[np.cumsum(first) - 1] if len(block) else offset, total
