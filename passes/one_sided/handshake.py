"""Let ranks wait until the buffers of their peers may be written, and have been read."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct_pairs, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import PACKET_READS, PACKET_WRITES, Op, table
from collc.ir.one_sided.program import OneSided
from collc.ir.progress import counting
from collc.ir.ragged import first_of_group, owners, ranges

from ..base import Pass
from ..ranges import Range
from .greeting import Greetings
from .nops import with_nops
from .order import Order, last_clocks, order_of, sequence_of
from .rows import packet_items, rows_of
from .shares import shared_among

__all__ = ["Handshake"]

_READS = table(Op.GET, Op.RRE, Op.RRES, Op.GLRES)
_JOINS = table(Op.NOP, Op.BARRIER)


@frozen
class Handshake(Pass):
    """Let ranks wait until the buffers of their peers may be written, and have been read.

    Nothing orders the launches of different ranks. So a rank may write into a peer's buffers, or read them, only when
    it knows that the peer has begun the launch. It knows from any signal that the peer sent, or that others sent after
    one of the peer's. Otherwise the peer signals at its start. Packets in double scratch need that knowledge only at
    the end of the launch before. A rank whose buffers are read waits for its readers at its end (mscclpp notes,
    section 4). Then every block becomes ``shares`` blocks, which do a slice of each operation, on channels of their
    own.
    """

    name: ClassVar[str] = "handshake"
    summary: ClassVar[str] = "let ranks wait until the buffers of their peers may be written, and have been read"
    takes: ClassVar[type] = OneSided
    gives: ClassVar[type] = OneSided

    max_link_ids: int = attrs.field(
        default=8, metadata={"help": "most channels of one signal or wait", "range": Range(1)}
    )

    max_barriers: int = attrs.field(default=16, metadata={"help": "barriers of a rank", "range": Range(0)})
    shares: int = attrs.field(
        default=1, metadata={"help": "blocks that share each operation, each on its slice", "range": Range(1)}
    )

    def run(self, ir: OneSided) -> OneSided:
        if not ir.together:
            return ir
        greetings = Greetings(ir, self.max_link_ids)
        for operation, peer in _unmet(ir):
            greetings.begin(operation, peer)
        for operation, peer in _readers(ir):
            greetings.end(operation, peer)
        program = with_nops(attrs.evolve(greetings.result(), together=False))
        return shared_among(program, self.shares, self.max_barriers)


def _remote(program: OneSided) -> tuple[Array, Array, Array]:
    """Return (operation, peer, whether packets in double scratch) of the accesses to other ranks, in order."""
    operation = program.item_operation
    peer = program.item_rank.astype(np.int64)
    if (program.item_channel >= 0).any():
        return _remote_of_switches(program)
    away = np.flatnonzero(peer != program.rank[operation])
    delayed = packet_items(rows_of(program))[away] & program.double_scratch
    return operation[away], peer[away], delayed


def _remote_of_switches(program: OneSided) -> tuple[Array, Array, Array]:
    """Return :func:`_remote` of a program with items behind switches: they are on all ranks that a switch joins."""
    operation, channel = program.item_operation, program.item_channel.astype(np.int64)
    start = program.group_start.astype(np.int64)
    size = np.where(channel >= 0, start[channel + 1] - start[channel], 1)
    item = owners(size)
    behind = program.groups[np.where(channel[item] >= 0, start[channel[item]] + ranges(np.zeros_like(size), size), 0)]
    peer = np.where(channel[item] >= 0, behind, program.item_rank[item]).astype(np.int64)
    delayed = (packet_items(rows_of(program)) & program.double_scratch)[item]
    away = peer != program.rank[operation[item]]
    return operation[item][away], peer[away], delayed[away]


def _readers(program: OneSided) -> list[tuple[int, int]]:
    """Return each block's last operation that reads a peer's buffers, with the peer, unless the peer learns of it."""
    operation, peer, _ = _remote(program)
    reads = _READS[program.opcode[operation]]
    last = {
        (block, rank): row
        for row, block, rank in zip(
            *(c[reads].tolist() for c in (operation, program.block[operation], peer)), strict=True
        )
    }
    order = order_of(program) if last else None
    if order is None:
        return [(row, rank) for (_, rank), row in last.items()]
    known = np.zeros((program.num_ranks, program.num_blocks), dtype=np.int64)
    np.maximum.at(known, program.block_rank, last_clocks(program, order))
    return [(row, rank) for (block, rank), row in last.items() if known[rank, block] <= row]


def _unmet(program: OneSided) -> list[tuple[int, int]]:
    """Return (operation, peer) of each access for which the peer must signal at its start."""
    operation, peer, delayed = _remote(program)
    order = order_of(program)
    listed = [column.tolist() for column in _first_needs(program, operation[~delayed], peer[~delayed])]
    known = _Known(program, list(zip(*listed, strict=True)))
    if order is None:
        known.finish()
    else:
        known.follow(order, whole=bool(delayed.any()))
    known.end(operation[delayed], peer[delayed])
    return known.unmet


def _first_needs(program: OneSided, operation: Array, peer: Array) -> tuple[Array, Array]:
    """Return the first operation of each block with each peer, in order; later ones need nothing more."""
    operation, peer = distinct_pairs(operation, peer)
    key = program.block[operation] * np.int64(program.num_ranks) + peer
    by = lexsort([key])
    first = np.sort(by[first_of_group(key[by])])
    return operation[first], peer[first]


class _Known:
    """Which ranks each block knows to have begun the launch, as one bit for each rank.

    What one thread learns its block knows after the next nop. Packets that an operation forwards tell what it read.
    """

    def __init__(self, program: OneSided, needs: list[tuple[int, int]]):
        self.program, self.block, self.rank = program, program.block, program.block_rank.tolist()
        self.joins = np.cumsum(_JOINS[program.opcode]).tolist()
        self.forwards = (PACKET_WRITES & PACKET_READS)[program.opcode].tolist()
        self.state = [1 << rank for rank in self.rank]
        self.learned = [0] * len(self.rank)
        self.needs: list[list[tuple[int, int]]] = [[] for _ in self.rank]
        for operation, peer in reversed(needs):
            self.needs[int(self.block[operation])].append((operation, peer))
        self.unmet: list[tuple[int, int]] = []

    def follow(self, order: Order, whole: bool) -> None:
        """Let knowledge travel with every signal, release and packet, until all needs are met or to the end."""
        joins, learned, state, needs = self.joins, self.learned, self.state, self.needs
        block, since = self.block.tolist(), [0] * len(learned)
        sent = np.full(len(self.forwards), -1, dtype=np.int64)
        sent[order.earlier] = 0  # other operations have no news for others
        rows, known, left = sequence_of(self.program, order), sent.tolist(), sum(map(bool, needs))
        for row, before in zip(counting(rows.tolist(), "which ranks have begun"), order.waits(rows), strict=True):
            if not (left or whole):
                break
            one = block[row]
            if joins[row] > since[one]:
                state[one] |= learned[one]
                since[one] = joins[row]
            if needs[one] and needs[one][-1][0] <= row:
                self.meet(one, row)
                left -= not needs[one]
            if type(before) is int:
                news = known[before]
            else:
                news = 0
                for other in before:  # type: ignore[union-attr]
                    news |= known[other]
            learned[one] |= news
            if known[row] >= 0:
                known[row] = state[one] | news if self.forwards[row] else state[one]
        self.finish()

    def finish(self) -> None:
        """Meet the needs that are left."""
        for one, needs in enumerate(self.needs):
            if needs:
                self.meet(one, needs[0][0])

    def meet(self, block: int, until: int) -> None:
        """Meet the needs of a block's operations up to ``until``: the peer is known, or is to signal."""
        needs = self.needs[block]
        while needs and needs[-1][0] <= until:
            operation, peer = needs.pop()
            if not self.state[block] >> peer & 1:
                self.unmet.append((operation, peer))
                self.state[block] |= 1 << peer

    def end(self, operation: Array, peer: Array) -> None:
        """Meet the needs at the end of launches: what any block of the rank knows then is enough."""
        known: dict[int, int] = {}
        for rank, state, learned in zip(self.rank, self.state, self.learned, strict=True):
            known[rank] = known.get(rank, 0) | state | learned
        for row, other in zip(operation.tolist(), peer.tolist(), strict=True):
            rank = self.rank[int(self.block[row])]
            if not known[rank] >> other & 1:
                self.unmet.append((row, other))
                known[rank] |= 1 << other
