"""Cut blocks into successive ones whose operations fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise, takewhile
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct_rows, lexsort
from collc.ir.diagnostic import Excess, error
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided
from collc.ir.ragged import first_of_group, inverse, starts
from collc.ir.shown import counted

from ..base import Pass, remark
from ..ranges import Range
from .barriers import with_own_barriers
from .splitting import split_operations
from .waiters import with_own_links

__all__ = ["FitOperations"]

#: semaphores of an operation
_MAX_SEMAPHORES = 16
#: operations before the last possible cut among which a border of a step is looked for
_STEP = 8

_JOINS = table(Op.NOP, Op.BARRIER)
_WAITS = table(Op.WAIT, Op.RLXWAIT, Op.SEM_ACQUIRE)
_SIGNALS = table(Op.SIGNAL, Op.RLXSIGNAL, Op.SEM_RELEASE)
_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_FEWER = "use packets (`protocol=LL`), which need fewer operations, fewer chunks, or fewer `instances` or `shares`"


@frozen
class FitOperations(Pass):
    """Cut blocks with too many operations, channels or remote buffers into successive blocks, joined by semaphores.

    A block ends with `nop, sem_release`, the next begins with `sem_acquire, nop`; a nop that stands there already is
    enough. Cuts are where steps end, if that takes no more blocks. Operations with too many channels or items become
    several. Operations are counted as the executor counts them, nops and pipelines included. Raises C0572 if a rank has
    more blocks than run at once, C0573 for an operation that cannot be split, and C0574 if cut blocks meet at more
    barriers than exist.
    """

    name: ClassVar[str] = "fit-operations"
    summary: ClassVar[str] = "cut blocks into successive ones whose operations fit"
    takes: ClassVar[type] = OneSided
    gives: ClassVar[type] = OneSided

    max_operations: int = attrs.field(
        default=64, metadata={"help": "the most operations of a block", "range": Range(8)}
    )
    max_links: int = attrs.field(
        default=16, metadata={"help": "the most channels, and remote buffers, of a block and type", "range": Range(2)}
    )
    max_link_ids: int = attrs.field(
        default=8, metadata={"help": "the most channels of an operation", "range": Range(1)}
    )
    max_items: int = attrs.field(
        default=10, metadata={"help": "the most sources, and destinations, of an operation", "range": Range(2)}
    )
    max_blocks: int | None = attrs.field(
        default=None, metadata={"help": "the most blocks of a rank, all of which run at once", "range": Range(1)}
    )
    max_barriers: int = attrs.field(default=16, metadata={"help": "the most barriers of a rank", "range": Range(1)})

    def run(self, ir: OneSided) -> OneSided:
        fitting = split_operations(ir, self.max_link_ids, _MAX_SEMAPHORES, self.max_items)
        blocks = fitting.num_blocks
        # The parts of a block have channels of their own to those of another, so cuts on one rank may take others.
        while cuts := _Cuts(fitting, self.max_operations, self.max_links).found:
            fitting = _cut(fitting, cuts, self.max_barriers)
        self._require_resident(fitting, fitting.num_blocks - blocks)
        return fitting

    def _require_resident(self, ir: OneSided, cuts: int) -> None:
        blocks = np.diff(ir.rank_blocks)
        most, limit = int(blocks.max(initial=0)), self.max_blocks
        if limit is not None and most > limit:
            rank = int(np.argmax(blocks))
            notes = [f"{cuts} of them because blocks have at most {self.max_operations} operations"] if cuts else []
            raise error(
                "C0572", f"rank {rank} needs {most} blocks at once, {limit} run at once", notes=notes, hint=_FEWER,
                exit_status=3, excess=Excess("blocks", most, limit),
            )  # fmt: skip
        if cuts or limit is not None:
            of = "" if limit is None else f" of {limit} that run at once"
            cutting = f", {cuts} blocks cut" if cuts else ""
            remark(f"fit-operations: a rank uses {counted(most, 'block')}{of}{cutting}")


# ---- where to cut


class _Cuts:
    """The operations before which blocks are cut, ascending, with the nops that a cut needs on both sides."""

    def __init__(self, ir: OneSided, max_operations: int, max_links: int):
        self.most, self.max_links = max_operations, max_links
        self.start = ir.block_start.astype(np.int64).tolist()
        self.weight = _weights(ir)
        # A flush stays with the put before it: it flushes what its own block posted.
        self.inside = (_inside(ir) | (ir.opcode == Op.FLUSH)).tolist()
        self.opens = _opens(ir).tolist()
        self.pending = _last_pending(ir).tolist()
        counts = np.add.reduceat(np.append(self.weight, 0), ir.block_start[:-1].astype(np.int64)) if len(
            self.weight) else np.zeros(ir.num_blocks, dtype=np.int64)  # fmt: skip
        counts = np.where(np.diff(ir.block_start.astype(np.int64)) > 0, counts, 0)
        self.total = starts(self.weight).tolist()
        self.links = _Links(ir, max_links)
        over = (counts > max_operations) | self.links.over
        #: operation -> (whether a nop ends the block before it, whether one begins the block with it)
        self.found: dict[int, tuple[bool, bool]] = {}
        for block in np.flatnonzero(over).tolist():
            self._cut(ir, block)

    def _cut(self, ir: OneSided, block: int) -> None:
        first, last = self.start[block], self.start[block + 1]
        near, far = (self._positions(first, last, step) for step in (_STEP, 0))
        if near is None or (far is not None and len(far) < len(near)):
            near = far
        if near is None:
            counts = self.total[last] - self.total[first]
            raise error(
                "C0573", f"rank {ir.block_rank[block]}, block {ir.block_id[block]} has a pipeline that does not fit "
                f"{self.most} operations", hint="use a shorter pipeline", exit_status=3,
                excess=Excess("operations", counts, self.most),
            )  # fmt: skip
        begins = first
        for at in near:
            self.found[at] = self.pending[at] >= begins, not self.opens[at]
            begins = at

    def _positions(self, first: int, last: int, step: int) -> list[int] | None:
        """Return where to cut a block, each time as late as possible, or at most ``step`` operations earlier."""
        found: list[int] = []
        begins = first
        while not self._fits(begins, last, found, ends=True):
            fitting = (at for at in self._candidates(begins, last) if self._fits(begins, at, found))
            best = next(fitting, None)
            if best is None:
                return None
            near = takewhile(lambda at, most=best: most - at <= step, chain([best], fitting))  # type: ignore[misc]
            begins = next((at for at in near if self.opens[at] and self.pending[at] < begins), best)
            found.append(begins)
        return found

    def _candidates(self, begins: int, last: int) -> Iterator[int]:
        """Yield the operations before which a block from ``begins`` on may be cut, the last one first."""
        return (at for at in range(min(begins + self.most, last - 1), begins, -1) if not self.inside[at])

    def _fits(self, begins: int, at: int, found: list[int], ends: bool = False) -> bool:
        """Return whether the operations from ``begins`` to ``at`` fit a block, with what its borders add."""
        head = 0 if not found else 1 + (not self.opens[begins])
        tail = 0 if ends else 1 + (self.pending[at] >= begins)
        return self.total[at] - self.total[begins] + head + tail <= self.most and self.links.fit(begins, at)


def _weights(ir: OneSided) -> Array:
    """Return how many operations each counts as: the first of a pipeline counts the pipeline too."""
    loop = ir.loop.astype(np.int64)
    begins = (loop >= 0) & (np.diff(loop, prepend=-1) != 0)
    found: Array = 1 + begins.astype(np.int64)
    return found


def _inside(ir: OneSided) -> Array:
    """Return which operations stand in a pipeline, after its first one."""
    loop = ir.loop.astype(np.int64)
    found: Array = (loop >= 0) & (np.diff(loop, prepend=-1) == 0)
    return found


def _opens(ir: OneSided) -> Array:
    """Return from which operations on only waits stand before the next nop of the block, outside of pipelines."""
    joins, waits = _JOINS[ir.opcode] & (ir.loop < 0), _WAITS[ir.opcode] & (ir.loop < 0)
    rows = np.arange(ir.num_operations)
    others = np.where(waits, ir.num_operations, rows)
    # The next operation that is no wait, in the same block.
    following = np.minimum.accumulate(others[::-1])[::-1] if len(rows) else rows
    within = following < ir.block_start[1:].astype(np.int64)[ir.block] if len(rows) else rows.astype(bool)
    found: Array = within & joins[np.minimum(following, max(ir.num_operations - 1, 0))]
    return found


def _last_pending(ir: OneSided) -> Array:
    """Return for each operation the last one before it that is no signal and that no nop follows; -1 if none."""
    rows = np.arange(ir.num_operations)
    join = np.maximum.accumulate(np.where(_JOINS[ir.opcode] & (ir.loop < 0), rows, -1))
    act = np.maximum.accumulate(np.where(_JOINS[ir.opcode] | _SIGNALS[ir.opcode], -1, rows))
    last = np.where(act > join, act, -1)
    return np.concatenate([[-1], last])[: ir.num_operations]


class _Links:
    """The channels and remote buffers of blocks, and whether those of some operations fit one block."""

    def __init__(self, ir: OneSided, most: int):
        self.most = most
        rows = _used(ir)
        blocks = ir.block[rows[:, 0]] if len(rows) else np.zeros(0, dtype=np.int64)
        keys = distinct_rows(np.column_stack([blocks, rows[:, 1:]]))
        fresh = np.flatnonzero(first_of_group(keys[:, 0]) | first_of_group(keys[:, 1]))
        kinds, counts = keys[fresh], np.diff(np.append(fresh, len(keys)))
        self.over = np.zeros(ir.num_blocks, dtype=bool)
        self.over[kinds[counts > most, 0]] = True
        self.of: dict[int, list[tuple[int, int, int]]] = {}
        for row in rows[self.over[blocks]].tolist() if len(rows) else ():
            self.of.setdefault(row[0], []).append(tuple(row[1:]))

    def fit(self, begins: int, at: int) -> bool:
        """Return whether the channels and remote buffers of operations fit one block."""
        if not self.of:
            return True
        used = {key for row in range(begins, at) for key in self.of.get(row, ())}
        counts: dict[int, int] = {}
        for kind, _, _ in used:
            counts[kind] = counts.get(kind, 0) + 1
        return max(counts.values(), default=0) <= self.most


def _used(ir: OneSided) -> Array:
    """Return (operation, kind, number, number) of every channel and remote buffer that an operation uses.

    A kind is a transport of channels, or of remote buffers; the numbers are a channel, or a rank and a buffer.
    """
    of = ir.link_operation
    own = ~_SEMAPHORES[ir.opcode[of]]
    links = ir.links.astype(np.int64)[own]
    channels = np.column_stack([of[own], ir.channel_transport[links], links, np.zeros_like(links)])
    item = ir.item_operation
    switch = ir.item_channel != NO_CHANNEL
    behind = ir.item_channel[switch].astype(np.int64)
    switches = np.column_stack([item[switch], ir.channel_transport[behind], behind, np.zeros_like(behind)])
    remote = ~switch & (ir.item_rank != ir.rank[item])
    at = item[remote]
    buffers = np.column_stack([at, 8 + ir.transport[at].astype(np.int64), ir.item_rank[remote], ir.item_buffer[remote]])
    return np.concatenate([channels, switches, buffers]).astype(np.int64)


# ---- cutting

_NOP, _ACQUIRE, _RELEASE = -1, -2, -3
_NEW = {_NOP: Op.NOP, _ACQUIRE: Op.SEM_ACQUIRE, _RELEASE: Op.SEM_RELEASE}


def _cut(ir: OneSided, cuts: dict[int, tuple[bool, bool]], max_barriers: int) -> OneSided:
    """Return the program with blocks cut before operations, joined by a semaphore each."""
    rows, lengths = _rows(ir, cuts)
    source = np.array(rows, dtype=np.int64)
    old, kept = np.maximum(source, 0), source >= 0
    block = ir.block[np.array(list(cuts), dtype=np.int64)]
    pieces = np.bincount(block, minlength=ir.num_blocks) + 1
    columns: Columns = {
        name: np.where(kept, getattr(ir, name).astype(np.int64)[old], default)
        for name, default in (("transport", -1), ("share", 0), ("shares", 1), ("number", 0), ("blocks", 0),
                              ("loop", -1), ("sources", 0))
    }  # fmt: skip
    opcode = ir.opcode.astype(np.int64)[old]
    for mark, op in _NEW.items():
        opcode[source == mark] = op
    items = np.where(kept, np.diff(ir.item_start.astype(np.int64))[old], 0)
    cut = attrs.evolve(
        ir, block_rank=np.repeat(ir.block_rank, pieces), block_start=starts(lengths), opcode=opcode,
        item_start=starts(items), **columns, **_with_semaphores(ir, source, ir.block_rank[block]),
    )  # fmt: skip
    origin = np.repeat(np.arange(ir.num_blocks), pieces)
    return with_own_barriers(with_own_links(cut, origin), origin, max_barriers)


def _rows(ir: OneSided, cuts: dict[int, tuple[bool, bool]]) -> tuple[list[int], list[int]]:
    """Return the operations of the new blocks, new ones as marks, and how many each block has."""
    rows: list[int] = []
    lengths: list[int] = []
    start = ir.block_start.astype(np.int64).tolist()
    ordered = sorted(cuts)
    place = 0
    for first, last in pairwise(start):
        begin, size = first, len(rows)
        while place < len(ordered) and ordered[place] < last:
            at = ordered[place]
            ends, opens = cuts[at]
            rows += [*range(begin, at), *([_NOP] if ends else []), _RELEASE]
            lengths.append(len(rows) - size)
            size = len(rows)
            rows += [_ACQUIRE, *([_NOP] if opens else [])]
            begin, place = at, place + 1
        rows += range(begin, last)
        lengths.append(len(rows) - size)
    return rows, lengths


def _with_semaphores(ir: OneSided, source: Array, ranks: Array) -> Columns:
    """Return the columns of semaphores and links, with a new semaphore of its rank for each cut."""
    every = np.concatenate([ir.semaphore_rank.astype(np.int64), ranks.astype(np.int64)])
    order = lexsort([every])
    place = inverse(order)
    values = np.concatenate([ir.semaphore_value.astype(np.int64), np.zeros(len(ranks), dtype=np.int64)])
    old = _SEMAPHORES[ir.opcode[ir.link_operation]]
    links = ir.links.astype(np.int64).copy()
    links[old] = place[links[old]]
    kept = source >= 0
    joins = (source == _ACQUIRE) | (source == _RELEASE)
    counts = np.where(kept, np.diff(ir.link_start.astype(np.int64))[np.maximum(source, 0)], joins.astype(np.int64))
    begin = starts(counts)
    merged = np.zeros(int(begin[-1]), dtype=np.int64)
    new = np.zeros(len(merged), dtype=bool)
    new[begin[:-1][joins]] = True
    merged[~new] = links
    # The k-th release and the k-th acquire are those of cut k.
    number = np.cumsum(source == _RELEASE) - 1
    merged[begin[:-1][joins]] = place[len(ir.semaphore_rank) + number[joins]]
    return {
        "semaphore_rank": every[order], "semaphore_value": values[order], "link_start": begin, "links": merged,
    }  # fmt: skip
