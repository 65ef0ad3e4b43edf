"""Combine one-sided operations of a block into fewer."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import SIGNALS, WAITS, Op, table
from collc.ir.one_sided.program import OneSided, Transport
from collc.ir.one_sided.waves import levels
from collc.ir.ragged import first_of_group

from ..base import Pass
from ..ranges import Range
from .merging import Limits, forwarded, joined_links, merged
from .nops import with_nops
from .order import Order, levels_of, moments, order_of
from .pulling import pulled
from .rows import BLOCK, OPCODE, Rows, joined, program_of, rows_of
from .scratch import trimmed, without_unread
from .steps import Step, steps_of, to_rows

__all__ = ["CombineOperations"]


_SYNCHRONIZES = SIGNALS | WAITS | table(Op.SEM_ACQUIRE, Op.SEM_RELEASE, Op.BARRIER, Op.FLUSH)
_COUNTS = table(Op.SIGNAL, Op.WAIT, Op.PWS, Op.PWSF)
_OTHERS = table(Op.BARRIER, Op.RLXSIGNAL, Op.RLXWAIT)
_JOINED = (Op.WAIT, Op.SIGNAL, Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_SHAKEN = 4  #: operations that handshakes may add to a block


@frozen
class CombineOperations(Pass):
    """Combine one-sided operations of a block into fewer.

    Several puts become one put, several sums into one place one sum with several sources, a sum and its puts one
    operation; waits join, and so do signals. All blocks of a rank become one, which waits once in each step of the
    communication and signals once, if that pays: it runs at most as many operations as the longest chain of operations
    that wait for each other, and one more for each block less. Where all ranks begin with inputs that others only add,
    these read them instead.
    """

    name: ClassVar[str] = "combine-operations"
    summary: ClassVar[str] = "combine one-sided operations of a block into fewer"
    takes: ClassVar[type] = OneSided
    gives: ClassVar[type] = OneSided

    max_link_ids: int = attrs.field(
        default=8, metadata={"help": "most channels of one signal or wait", "range": Range(1)}
    )
    max_items: int = attrs.field(
        default=10, metadata={"help": "most sources, and most destinations, of one operation", "range": Range(2)}
    )
    max_operations: int | None = attrs.field(
        default=None, metadata={"help": "most operations of a block that joining makes", "range": Range(1)}
    )
    join: bool = attrs.field(default=True, metadata={"help": "join blocks of a rank where that saves operations"})

    pull: bool = attrs.field(
        default=True, metadata={"help": "let sums read the inputs of peers where that saves a message"}
    )

    def run(self, ir: OneSided) -> OneSided:
        order = order_of(ir)
        if order is None or not ir.together:
            return ir
        ports = bool((ir.channel_transport == Transport.PORT).any())
        work = _Work(ir, order, Limits(self.max_link_ids, self.max_items, whole=ports))
        apart = with_nops(work.apart())
        if not self.join:
            return _tidy(apart)
        together = _tidy(self._joined(ir, work, apart))
        return _tidy(pulled(together)) if self.pull else together

    def _joined(self, ir: OneSided, work: _Work, apart: OneSided) -> OneSided:
        """Return the program with joined blocks on the ranks where they pay.

        If they do not pay on the rank with the fewest operations, they are not tried on others.
        """
        ranks = work.in_steps()
        if not len(ranks):
            return apart
        counts = np.bincount(work.rank, minlength=ir.num_ranks)[ranks]
        least = int(ranks[np.argmin(counts)])
        tried = with_nops(work.together(np.array([least])))
        fits = self.max_operations is None or _fits(apart, tried, self.max_operations)[least]
        if not fits or not _pays(ir, apart, tried, self.max_operations)[least]:
            return apart
        together = with_nops(work.together(ranks))
        join = _pays(ir, apart, together, self.max_operations)
        parts = [rows_of(one) for one in (apart, together)]
        chosen = [
            part.take(np.flatnonzero(join[one.rank] == k))
            for k, (part, one) in enumerate(zip(parts, (apart, together), strict=True))
        ]
        both = joined(chosen)
        return program_of(ir, both.by_block(np.arange(len(both))))


class _Work:
    """The operations of a program without nops, and how to join them."""

    def __init__(self, program: OneSided, order: Order, limits: Limits):
        self.program, self.limits = program, limits
        rows = rows_of(program)
        moment, depth = moments(program, order), _depths(program, order)
        kept = np.flatnonzero(rows.fixed[:, OPCODE] != Op.NOP)
        self.rows = rows.take(kept)
        self.moment, self.depth, self.rank = moment[kept], depth[kept], program.rank[kept]

    def apart(self) -> OneSided:
        """Return the program with operations joined in each block; most stretches have nothing to join."""
        rows, kept = joined_links(self.rows, _stretches(self.rows, self.depth), self.limits.links)
        depth, moment = self.depth[kept], self.moment[kept]
        stretch = _stretches(rows, depth)
        busy = np.flatnonzero(_joinable(rows, stretch)[stretch])
        if not len(busy):
            return program_of(self.program, rows)
        steps = steps_of(rows.take(busy), moment[busy].tolist(), depth[busy].tolist())
        ends = np.append(np.flatnonzero(first_of_group(stretch[busy])), len(busy)).tolist()
        parts = [merged(steps[low:high], self.limits) for low, high in pairwise(ends)]
        idle = np.ones(len(rows), dtype=bool)
        idle[busy] = False
        new = to_rows([one for part in parts for one in part])
        both = joined([rows.take(np.flatnonzero(idle)), new])
        key = np.concatenate([stretch[idle], np.repeat(stretch[busy[ends[:-1]]], list(map(len, parts)))])
        return program_of(self.program, without_unread(self.program, both.take(lexsort([key]))))

    def together(self, ranks: Array) -> OneSided:
        """Return the program in which the first block of each of these ranks has the operations of all."""
        chosen = np.zeros(self.program.num_ranks, dtype=bool)
        chosen[ranks] = True
        rows = np.flatnonzero(chosen[self.rank])
        first = self.program.rank_blocks
        found: list[Step] = []
        steps = steps_of(self.rows.take(rows), self.moment[rows].tolist(), self.depth[rows].tolist())
        ends = np.searchsorted(self.rank[rows], [ranks, ranks + 1]).T.tolist()
        for rank, (low, high) in zip(ranks.tolist(), ends, strict=True):
            for one in merged(forwarded(_by_depth(steps[low:high]), self.limits.whole), self.limits):
                one.fixed = [int(first[rank]), *one.fixed[1:]]
                found.append(one)
        both = joined([self.rows.take(np.flatnonzero(~chosen[self.rank])), to_rows(found)])
        return program_of(self.program, without_unread(self.program, both.by_block(np.arange(len(both)))))

    def in_steps(self) -> Array:
        """Return the ranks with several blocks on which no channel carries two signals in one step.

        A channel does where data travel in pieces: joined blocks would wait for all pieces of a step.
        """
        rows = self.rows
        operation = np.repeat(np.arange(len(rows)), rows.link_count)
        opcode = rows.fixed[operation, OPCODE]
        entry = np.flatnonzero(_COUNTS[opcode])
        key = (rows.links[entry] * 2 + (opcode[entry] == Op.WAIT)) * np.int64(self.depth.max(initial=0) + 1)
        key += self.depth[operation[entry]]
        order = lexsort([key])
        twice = entry[order][1:][key[order][1:] == key[order][:-1]]
        fits = np.diff(self.program.rank_blocks) > 1
        fits[self.rank[operation[twice]]] = False
        fits[self.rank[_OTHERS[rows.fixed[:, OPCODE]]]] = False
        return np.flatnonzero(fits)


def _stretches(rows: Rows, depth: Array) -> Array:
    """Return the number of each operation's stretch: what stands between others of a block, in one step."""
    synchronizes = _SYNCHRONIZES[rows.fixed[:, OPCODE]]
    fresh = first_of_group(rows.fixed[:, BLOCK]) | first_of_group(synchronizes) | first_of_group(depth)
    return np.cumsum(fresh) - 1


def _joinable(rows: Rows, stretch: Array) -> Array:
    """Return the stretches with operations that may join."""
    opcode, number = rows.fixed[:, OPCODE], int(stretch.max(initial=-1)) + 1

    def count(*ops: Op) -> Array:
        return np.bincount(stretch[np.isin(opcode, ops)], minlength=number)

    repeated = np.logical_or.reduce([count(op) > 1 for op in (*_JOINED, Op.PUT, Op.PPKT, Op.RPPKT, Op.RE, Op.REPKT)])
    sums, packed = count(Op.RE, Op.RES, Op.REPKT, Op.RESPKT) > 0, count(Op.UPKT) > 0
    found: Array = repeated | (sums & (count(Op.PUT, Op.PPKT) > 0)) | (packed & (count(Op.PPKT, Op.RE) > 0))
    return found


def _depths(program: OneSided, order: Order) -> Array:
    """Return the most messages, one after the other, that come before each operation."""
    away = program.rank[order.earlier] != program.rank[order.later]
    depth = levels(program.block_start.astype(np.int64), order.later, order.earlier, away.astype(np.int64))
    assert depth is not None, "the order of a program has no circle"
    return depth


def _by_depth(steps: list[Step]) -> list[Step]:
    """Return the operations of one block for all: step by step, first waits, then data, then signals.

    Data keep an order that respects all former semaphores, which are gone.
    """
    kept = [one for one in steps if one.op not in (Op.SEM_ACQUIRE, Op.SEM_RELEASE)]
    return sorted(kept, key=lambda one: (one.depth, _phase(one), one.moment, one.row))


def _phase(one: Step) -> int:
    return 0 if one.op is Op.WAIT else 2 if one.op is Op.SIGNAL else 1


def _pays(program: OneSided, apart: OneSided, together: OneSided, most: int | None) -> Array:
    """Return on which ranks joined blocks pay."""
    longest = [_longest(one) for one in (apart, together)]
    saved = np.maximum(np.diff(program.rank_blocks) - 1, 0)
    join: Array = longest[1] <= np.maximum(_chain(apart) + saved, longest[0])
    return join if most is None else join & _fits(apart, together, most)


def _fits(apart: OneSided, together: OneSided, most: int) -> Array:
    """Return on which ranks the longest joined block fits, or is no longer than blocks were."""
    found: Array = _longest(together) <= np.maximum(most - _SHAKEN, _longest(apart))
    return found


def _longest(program: OneSided) -> Array:
    """Return the operations of the longest block of each rank."""
    found = np.zeros(program.num_ranks, dtype=np.int64)
    np.maximum.at(found, program.block_rank, np.diff(program.block_start.astype(np.int64)))
    return found


def _chain(program: OneSided) -> int:
    """Return the operations of the longest chain in which each waits for the one before it."""
    order = order_of(program)
    if order is None:
        return 0
    return int(levels_of(program, order).max(initial=-1)) + 1


def _tidy(program: OneSided) -> OneSided:
    """Return the program without empty blocks, and without unused semaphores."""
    rows = rows_of(program)
    blocks = np.bincount(rows.fixed[:, BLOCK], minlength=program.num_blocks) > 0
    of_semaphore = np.repeat(np.isin(rows.fixed[:, OPCODE], (Op.SEM_ACQUIRE, Op.SEM_RELEASE)), rows.link_count)
    used = np.zeros(len(program.semaphore_rank), dtype=bool)
    used[rows.links[of_semaphore]] = True
    number = np.cumsum(used) - 1
    links = rows.links.copy()
    links[of_semaphore] = number[links[of_semaphore]]
    fixed = rows.fixed.copy()
    fixed[:, BLOCK] = (np.cumsum(blocks) - 1)[fixed[:, BLOCK]]
    return trimmed(
        program, attrs.evolve(rows, links=links, fixed=fixed), block_rank=program.block_rank[blocks],
        semaphore_rank=program.semaphore_rank[used], semaphore_value=program.semaphore_value[used],
    )  # fmt: skip
