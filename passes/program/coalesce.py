"""Send contiguous chunks in one message, and pack other chunks if that saves time."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.diagnostic import error
from collc.ir.editing import take, with_dependencies
from collc.ir.frozen import frozen
from collc.ir.machine import linearization, partners, receivers
from collc.ir.program import Opcode, Program
from collc.ir.progress import progress
from collc.ir.ragged import group_starts, inverse, starts, stretches
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.waves import Needed, Waves, waves

from ..analysis.arrange import completes_merged, merge_rows
from ..analysis.hazards import conflicts, known_conflicts, ordered_by, synchronize, with_all_dependencies
from ..base import Pass, remark
from ..ranges import AT_LEAST_1
from .coalesce_packing import Group, pack, saves_time, without_gaps
from .orbit_messages import with_joined_copies
from .orbit_numbering import divided_for_runs

__all__ = ["Coalesce", "count_messages", "least_messages"]

#: how many instructions one arrival may take: receive, copy the other operand, add
_PERIODS = (2, 3)
_PACKS = ("auto", "never", "always")


@frozen
class Coalesce(Pass):
    """Join consecutive messages of a connection that are contiguous at both ends, and contiguous local copies.

    Two messages are joined if both could be sent at the same time, counted in messages from the start. So no data wait
    for later data. If that would cause a deadlock, only messages without dependencies are joined.

    With ``pack``, the other messages of a connection that could be sent at the same time are copied into scratch, sent
    in one message, and copied or added from scratch if they are not contiguous at the receiver. The message has the
    order of the sender's or the receiver's buffer if that saves copies. ``auto`` packs messages that arrive earlier
    that way by the model of :mod:`.coalesce_packing`, at the collective's size. It packs none if the collective has no
    size, because packing delays large calls. No rank gets more copies than ``max-steps`` allows one threadblock.

    Messages of a template are sets of chunks, which lie in other places on every rank. They are divided into those that
    could be sent at different times. Adjacent copies from input to scratch are one message. Chunks with free numbers
    are numbered so that messages lie in few runs. None are packed.
    """

    name: ClassVar[str] = "coalesce"
    summary: ClassVar[str] = "send contiguous chunks in one message"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program

    max_count: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks of a message", "range": AT_LEAST_1}
    )
    pack: Literal["auto", "never", "always"] = attrs.field(
        default="auto",
        metadata={"help": "pack messages that are not contiguous: auto (if that saves time), never, always"},
    )
    size: int | None = attrs.field(
        default=None,
        metadata={"help": "bytes of a call, for `pack: auto` (default: the collective's size)", "range": AT_LEAST_1},
    )
    start: int = attrs.field(
        default=1 << 16,
        metadata={"help": "latency of a message, in bytes that a link moves in that time", "range": AT_LEAST_1},
    )
    max_steps: int | None = attrs.field(
        default=None, metadata={"help": "the most steps of a threadblock", "range": AT_LEAST_1}
    )

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return self.pack == "auto"

    def run(self, ir: AnyProgram) -> AnyProgram:
        if self.pack not in _PACKS:
            raise error("C0599", f"coalesce packs {', '.join(_PACKS)}, found `{self.pack}`", exit_status=2)
        if isinstance(ir, SymmetricProgram):
            return divided_for_runs(with_joined_copies(ir), self.max_count)
        joined = self._coalesced(ir)
        return joined if self.pack == "never" else self._packed(joined)

    def _coalesced(self, ir: Program) -> Program:
        given, ir = ir, _with_repeats_grouped(ir)
        partner = partners(ir)
        contiguous = _contiguous(ir)
        depth = _message_depths(ir, partner)
        together = contiguous & (np.concatenate([[-1], depth[:-1]]) == depth)
        joined = self._joined(ir, partner, together)
        merged = merge_rows(ir, joined)
        if merged is not None:
            merged.found["expected depths"] = depth.compress(~joined)  # joined messages have one depth
        if merged is None:
            ready = contiguous & (ir.num_dependencies == 0)
            merged = merge_rows(ir, self._joined(ir, partner, ready))
        return given if merged is None else merged

    def _packed(self, program: Program) -> Program:
        """Pack messages of one connection that could be sent at the same time, if that saves time."""
        size = program.collective.size if self.size is None else self.size
        partner, code = partners(program), program.opcode
        before = np.concatenate([[-1], code[:-1]])
        plain = (code == Opcode.SEND) | (code == Opcode.RECV) | (code == Opcode.RECV_REDUCE_COPY)
        same_block = np.concatenate([[False], program.block[1:] == program.block[:-1]])
        depth = _message_depths(program, partner)
        joinable = plain & (before == code) & same_block & (np.concatenate([[-1], depth[:-1]]) == depth)
        chunk = (size or 0) / (program.collective.whole * program.chunks)

        def is_packed(group: Group) -> bool:
            if self.pack == "always" or group.copies == (0, 0):
                return True
            return bool(size) and saves_time(group, chunk, self.start)

        joined = self._joined(program, partner, joinable)
        other = _other_ends(program, partner)
        if self.pack == "auto" and not size:
            joined = without_gaps(program, joined, other)
        packed = pack(program, joined, other, is_packed, self.max_steps)
        if packed is None:
            return program
        sends = [int(p.sends.sum()) for p in (packed, program)]
        remark(f"coalesce: {sends[0]} messages instead of {sends[1]}, packed in scratch")
        return packed

    def _joined(self, program: Program, partner: Array, joinable: Array) -> Array:
        """Return the rows to join to the row before: joinable at both ends, and not too long."""
        other = _other_ends(program, partner)
        # Both rows must match consecutive rows at the other end.
        paired = (other >= 1) & joinable.take(other) & (np.concatenate([[-1], other[:-1]]) == other - 1)
        joined = joinable & (program.local | paired)
        fused = program.sends & program.receives
        joined &= ~fused & ~fused.take(other)
        return joined if self.max_count is None else self._limit(program, joined, other)

    def _limit(self, program: Program, joined: Array, other: Array) -> Array:
        """Break runs where their sum exceeds the limit; a send and its receive break at the same place."""
        result = joined.copy()
        total, most = 0, self.max_count or 0
        rows = _in_long_runs(program, joined, most)
        for i, count, continues in zip(rows.tolist(), program.count[rows].tolist(), joined[rows].tolist(), strict=True):
            total = total + count if continues else count
            if continues and total > most:
                result[i] = False
                if other[i] >= 0:
                    result[other[i]] = False
                total = count
        return result


def _in_long_runs(program: Program, joined: Array, most: int) -> Array:
    """Return the rows without receives in the runs of joined rows that have more than ``most`` chunks together."""
    rows = np.flatnonzero(~program.receives)
    heads = np.append(np.flatnonzero(~joined.take(rows)), len(rows))
    long = np.diff(starts(program.count.take(rows))[heads]) > most
    found: Array = rows[np.repeat(long, np.diff(heads))]
    return found


def _other_ends(program: Program, partner: Array) -> Array:
    """Return the receive of each send and the send of each receive, -1 for all other instructions."""
    return np.where(program.receives, partner, receivers(partner))


def _with_repeats_grouped(program: Program) -> Program:
    """Group repeated instructions: receive, add, receive, add becomes receive, receive, add, add.

    Every row must continue the row of its kind before it, and no two rows with a conflict may change their order.
    """
    later, earlier = known_conflicts(program)
    same_block = program.block.take(later) == program.block.take(earlier)
    place = _grouped_places(program, later.compress(same_block), earlier.compress(same_block))
    if place is None:
        return program
    after = _permuted(with_all_dependencies(program), place)
    finished = linearization(after)
    return program if len(finished) < len(place) else synchronize(after, inverse(finished))


def _grouped_places(program: Program, later: Array, earlier: Array) -> Array | None:
    """Return the place of each row if repeated instructions are grouped; None if no row moves.

    ``later`` and ``earlier`` are the conflicts within blocks.
    """
    place = np.arange(program.num_instructions)
    for turn, period in enumerate(_PERIODS):
        progress("grouping messages", turn, len(_PERIODS))
        moved = _grouped(program, place, period)
        wrong = np.zeros(program.num_blocks, dtype=bool)
        wrong[program.block[later[moved[later] < moved[earlier]]]] = True
        place = np.where(wrong.take(program.block), place, moved)
    return None if (place == np.arange(len(place))).all() else place


def _permuted(program: Program, place: Array) -> Program:
    """Return the program with every row at its ``place`` in the same block, and with the same dependencies."""
    return with_dependencies(take(program, np.argsort(place)), place[program.dependent], place[program.deps])


def _grouped(program: Program, place: Array, period: int) -> Array:
    """Return the places of rows, with repetitions of this period grouped by kind."""
    follows = _contiguous(program, period)
    follows &= place == np.arange(len(place))
    message = ~program.local
    result = place.copy()
    for start, stop in stretches(follows):
        first = start - period
        length = (stop - first) // period * period
        # the order of messages must not change
        if (
            length >= 2 * period
            and message[first:start].sum() <= 1
            and (place[first:start] == np.arange(first, start)).all()
        ):
            rows = np.arange(length)
            result[first : first + length] = first + rows % period * (length // period) + rows // period
    return result


def _contiguous(program: Program, distance: int = 1) -> Array:
    """Return for each row whether it continues the row ``distance`` before it: same block and opcode, contiguous
    places.
    """
    d, result = distance, np.zeros(program.num_instructions, dtype=bool)
    if program.num_instructions <= d:
        return result
    code = program.opcode
    same = (code[d:] == code[:-d]) & (program.block[d:] == program.block[:-d])
    length = program.count[:-d].astype(np.int64)
    for end in ("src", "dst"):
        buffer, offset = getattr(program, f"{end}_buffer"), getattr(program, f"{end}_offset")
        next_to = (buffer[d:] == buffer[:-d]) & (offset[:-d] + length == offset[d:])
        same &= next_to | ~program.uses(end)[d:]
    result[d:] = same & (code[d:] != Opcode.NOP)
    return result


def _message_depths(program: Program, partner: Array) -> Array:
    """Return for each instruction the most messages on a chain of dependencies that ends at it."""
    expected: Array | None = program.found.get("expected depths")
    if expected is not None and _are_depths(program, partner, expected):
        return expected
    order = waves(program)
    return _depths_one_by_one(program, partner) if order is None else _depths_by_waves(program, partner, order)


def _are_depths(program: Program, partner: Array, depth: Array) -> bool:
    """Return whether numbers are the depths of a program that completes: whether each follows from those before it."""
    before = np.concatenate([[-1], depth[:-1]])
    before[program.block_start[:-1][np.diff(program.block_start.astype(np.int64)) > 0]] = -1
    least = np.maximum(before, np.append(depth, -1).take(partner) + 1)
    of_deps, of_dependent = depth.take(program.deps), depth[program.dependent]
    raised = np.zeros(len(depth), dtype=bool)
    raised[program.dependent.compress(of_deps == of_dependent)] = True
    follows = (least == depth) | ((least < depth) & raised)
    return bool((of_deps <= of_dependent).all() and follows.all())


def _depths_by_waves(program: Program, partner: Array, order: Waves) -> Array:
    """Return the depths, wave by wave: instructions of a wave need only those of earlier waves."""
    n = program.num_instructions
    depth = np.full(n + 1, -1, dtype=np.int64)  # the last entry stands for "no instruction"
    before = np.where(program.step > 0, np.arange(n) - 1, n)
    source = np.where(partner >= 0, partner, n)
    needed = Needed(program, order)
    for a, b in zip(order.start[:-1].tolist(), order.start[1:].tolist(), strict=True):
        row = order.instruction[a:b]
        now = np.maximum(depth.take(before.take(row)), depth.take(source.take(row)) + 1)
        needed.raise_to(now, depth, a)
        depth[row] = now
    return depth[:-1]


def _depths_one_by_one(program: Program, partner: Array) -> Array:
    """Return the depths of any program."""
    depth = [0] * program.num_instructions
    dep_start, deps, source = program.dep_start.tolist(), program.deps.tolist(), partner.tolist()
    first = set(program.block_start.tolist())
    for i in linearization(program).tolist():
        now = depth[i - 1] if i not in first else 0
        for k in range(dep_start[i], dep_start[i + 1]):
            if depth[deps[k]] > now:
                now = depth[deps[k]]
        if source[i] >= 0 and depth[source[i]] >= now:
            now = depth[source[i]] + 1
        depth[i] = now
    return np.array(depth, dtype=np.int64)


# ---- how many messages are left


def least_messages(program: Program) -> int:
    """Return a number of messages that ``Coalesce(pack="never")`` never goes below, from the places of neighbours."""
    joinable = _contiguous(program)
    for period in _PERIODS:
        joinable |= _contiguous(program, period)
    return int((program.sends & ~joinable).sum())


def count_messages(program: Program, order: Array) -> int:
    """Return the number of messages after ``Coalesce(pack="never")`` of a program without dependencies.

    ``order`` gives each instruction its place in a correct sequential execution, as for
    :func:`..analysis.hazards.synchronize`. The function neither builds nor executes the program: conflicts of accesses
    determine the dependencies.
    """
    later, earlier = conflicts(program, order)
    moved = _ordered_repeats_grouped(program, later, earlier)
    if moved is not None:
        program, order, later, earlier = moved
    partner, after = partners(program), ordered_by(program, later, earlier)
    depth = _message_depths(after, partner)
    contiguous = _contiguous(program)
    joined = Coalesce()._joined(program, partner, contiguous & (np.concatenate([[-1], depth[:-1]]) == depth))
    edges = _Edges.of(program, partner, later, earlier)
    # Joined rows have equal depth, and a message increases it. So a cycle has instructions of one depth only.
    inner = edges.subset(depth[edges.later] == depth[edges.earlier])
    if not (inner.agree(joined, order) or completes_merged(after, joined) or inner.is_acyclic(joined)):
        ready = contiguous & (after.num_dependencies == 0)
        joined = Coalesce()._joined(program, partner, ready)
        if not (edges.agree(joined, order) or edges.is_acyclic(joined)):
            joined[:] = False
    return int(program.sends[~joined].sum())


def _ordered_repeats_grouped(
    program: Program, later: Array, earlier: Array
) -> tuple[Program, Array, Array, Array] | None:
    """Return the program of :func:`_with_repeats_grouped`, its order and its conflicts.

    None if no row moves, or if instructions would depend on each other in a cycle.
    """
    same_block = program.block[later] == program.block[earlier]
    place = _grouped_places(program, later[same_block], earlier[same_block])
    if place is None:
        return None
    after, later, earlier = _permuted(program, place), place[later], place[earlier]
    order = _Edges.of(after, partners(after), later, earlier).order()
    return None if order is None else (after, order, later, earlier)


@frozen(eq=False)
class _Edges:
    """The order between instructions: ``later[k]`` after ``earlier[k]``."""

    number: int
    later: Array
    earlier: Array

    @classmethod
    def of(cls, program: Program, partner: Array, later: Array, earlier: Array) -> _Edges:
        """Collect conflicts between blocks, messages, and the order within blocks."""
        block, number = program.block, program.num_instructions
        between = block[later] != block[earlier]
        received = np.flatnonzero(partner >= 0)
        second = np.flatnonzero(block[1:] == block[:-1]) + 1
        pairs = [(later[between], earlier[between]), (received, partner[received]), (second, second - 1)]
        ends = [np.concatenate(column) for column in zip(*pairs, strict=True)]
        return cls(number, ends[0], ends[1])

    def subset(self, keep: Array) -> _Edges:
        return _Edges(self.number, self.later[keep], self.earlier[keep])

    def order(self, group: Array | None = None) -> Array | None:
        """Return the position of each instruction, or group of them, in an order that respects all edges; None if the
        edges form a cycle.
        """
        later, earlier, number = self.later, self.earlier, self.number
        if group is not None:
            later, earlier, number = group[later], group[earlier], int(group[-1]) + 1 if len(group) else 0
            later, earlier = later[later != earlier], earlier[later != earlier]
        by_earlier = lexsort([earlier])
        start = group_starts(earlier[by_earlier], number).tolist()
        after, left = later[by_earlier].tolist(), np.bincount(later, minlength=number).tolist()
        free = [i for i in range(number) if not left[i]]
        for i in free:
            for k in range(start[i], start[i + 1]):
                left[after[k]] -= 1
                if not left[after[k]]:
                    free.append(after[k])
        return inverse(np.array(free, dtype=np.int64)) if len(free) == number else None

    def agree(self, joined: Array, order: Array) -> bool:
        """Return whether ``order`` remains correct if every row that is ``joined`` is merged into the row before."""
        group = np.cumsum(~joined) - 1
        head = order[np.flatnonzero(~joined)][group]
        apart = group[self.later] != group[self.earlier]
        return bool((head[self.later[apart]] > head[self.earlier[apart]]).all())

    def is_acyclic(self, joined: Array) -> bool:
        """Return whether any order exists if every row that is ``joined`` is merged into the row before."""
        return self.order(np.cumsum(~joined) - 1) is not None
