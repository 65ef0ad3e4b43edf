"""Whether a one-sided program is well formed: columns of one length, numbers in range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..program import Buffer
from ..validate import Flaw, Flaws, flaws
from .opcodes import WORDS, Op, table

if TYPE_CHECKING:
    from .program import OneSided

__all__ = ["STAGES"]

_CHANNELS = ("channel_rank", "channel_peer", "channel_transport", "channel_buffer")
_OPERATIONS = ("opcode", "transport", "share", "shares", "number", "blocks", "loop", "sources")
_ITEMS = ("item_rank", "item_buffer", "item_offset", "item_count", "item_channel")
_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_SWITCH = 2
_MOST_THREADS = 1024


def _rows(table: str, bad: Array, message: Callable[[int], str]) -> Flaws:
    """Yield one flaw for the first bad row, with the number of others."""
    if count := int(np.count_nonzero(bad)):
        row = int(np.argmax(bad))
        yield Flaw(message(row) + (f" (and {count - 1} more like it)" if count > 1 else ""), table, row)


def _outside(table: str, column: Array, limit: int, what: str, low: int = 0) -> Flaws:
    found = f"{low} to {limit - 1} do" if limit > low else "there is none"
    return _rows(table, (column < low) | (column >= limit), lambda row: f"{what} {column[row]} does not exist: {found}")


def _at(program: OneSided, bad: Array, message: Callable[[int], str]) -> Flaws:
    """Yield one flaw for the first bad operation."""
    return _rows("operations", bad, lambda row: f"{program.place(row)} ({WORDS[program.opcode[row]]}): {message(row)}")


# ---- columns


def _tables(program: OneSided) -> Flaws:
    yield from flaws(program.collective)
    if program.chunks < 1:
        yield Flaw(f"{program.chunks} chunks of a shard: at least 1 is needed")
    if not 1 <= program.threads <= _MOST_THREADS:
        yield Flaw(f"{program.threads} threads of a block: 1 to {_MOST_THREADS} are possible")
    if program.alignment < 1:
        yield Flaw(f"an alignment of {program.alignment} bytes: at least 1 is needed")
    for name in ("inputs", "outputs", "scratch"):
        if len(getattr(program, name)) != program.num_ranks:
            yield Flaw(f"{name} of {len(getattr(program, name))} ranks, needed of {program.num_ranks}")
    yield from _lengths(program)


def _lengths(program: OneSided) -> Flaws:
    groups = (
        ("channels", _CHANNELS), ("semaphores", ("semaphore_rank", "semaphore_value")),
        ("loops", ("loop_unit", "loop_chunks")), ("operations", _OPERATIONS), ("items", _ITEMS),
    )  # fmt: skip
    count = {}
    for what, names in groups:
        lengths = {name: len(getattr(program, name)) for name in names}
        count[what] = lengths[names[0]]
        if len(set(lengths.values())) > 1:
            yield Flaw(f"columns of {what} differ in length: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
    yield from _starts(program.group_start, count["channels"], len(program.groups), "group_start")
    yield from _starts(program.block_start, program.num_blocks, count["operations"], "block_start")
    yield from _starts(program.link_start, count["operations"], len(program.links), "link_start")
    yield from _starts(program.item_start, count["operations"], count["items"], "item_start")


def _starts(start: Array, count: int, end: int, what: str) -> Flaws:
    if len(start) != count + 1:
        yield Flaw(f"{what} needs {count + 1} entries, found {len(start)}")
    elif start[0] != 0 or start[-1] != end or (start[1:] < start[:-1]).any():
        yield Flaw(f"{what} does not run from 0 to {end} without decreasing")


# ---- numbers


def _ranges(program: OneSided) -> Flaws:
    ranks = program.num_ranks
    for name in ("inputs", "outputs", "scratch"):
        column = getattr(program, name)
        yield from _rows("ranks", column < 0, lambda row, c=column, n=name: f"{c[row]} chunks of {n}")  # type: ignore[misc]
    for what, column in (
        ("channels", program.channel_rank), ("semaphores", program.semaphore_rank), ("blocks", program.block_rank),
    ):  # fmt: skip
        yield from _outside(what, column, ranks, "rank")
        if (column[1:] < column[:-1]).any():
            yield Flaw(f"{what} are not sorted by rank")
    switch = program.channel_transport == _SWITCH
    yield from _outside("channels", program.channel_transport, _SWITCH + 1, "transport")
    yield from _outside("channels", program.channel_buffer, len(Buffer), "buffer")
    yield from _outside("channels", np.where(switch, 0, program.channel_peer), ranks, "peer")
    alone = ~switch & (program.channel_peer == program.channel_rank)
    yield from _rows("channels", alone, lambda row: f"rank {program.channel_rank[row]} has a channel to itself")
    yield from _outside("channels", program.groups, ranks, "rank of a switch")
    yield from _rows("semaphores", program.semaphore_value < 0, lambda row: f"value {program.semaphore_value[row]}")
    for what, column in (("unit", program.loop_unit), ("chunks", program.loop_chunks)):
        yield from _rows("loops", column < 1, lambda row, c=column, w=what: f"{w} {c[row]}: at least 1 is needed")  # type: ignore[misc]
    yield from _operations(program)
    yield from _items(program)


def _operations(program: OneSided) -> Flaws:
    for what, column, low, limit in (
        ("operation", program.opcode, 0, len(Op)),
        ("transport", program.transport, -1, _SWITCH + 1),
        ("loop", program.loop, -1, len(program.loop_unit)),
    ):
        yield from _outside("operations", column, limit, what, low)
    share, shares = program.share, program.shares
    yield from _rows(
        "operations", (shares < 1) | (share < 0) | (share >= shares), lambda row: f"share {share[row]} of {shares[row]}"
    )
    items = np.diff(program.item_start.astype(np.int64))
    yield from _rows(
        "operations", (program.sources < 0) | (program.sources > items),
        lambda row: f"{program.sources[row]} sources of {items[row]} items",
    )  # fmt: skip


def _items(program: OneSided) -> Flaws:
    yield from _outside("items", program.item_rank, program.num_ranks, "rank")
    yield from _outside("items", program.item_buffer, len(Buffer), "buffer")
    yield from _outside("items", program.item_channel, len(program.channel_rank), "channel", -1)
    for name, low in (("offset", 0), ("count", 1)):
        column = getattr(program, f"item_{name}")
        yield from _rows(
            "items", column < low, lambda row, c=column, n=name, k=low: f"{n} {c[row]}: at least {k} is needed"  # type: ignore[misc]
        )  # fmt: skip


# ---- references


def _links(program: OneSided) -> Flaws:
    of, links, rank = program.link_operation, program.links.astype(np.int64), program.rank
    semaphore = _SEMAPHORES[program.opcode[of]]
    for rows, owner, what in (
        (~semaphore, program.channel_rank, "channel"), (semaphore, program.semaphore_rank, "semaphore"),
    ):  # fmt: skip
        outside = rows & ((links < 0) | (links >= len(owner)))
        yield from _of(program, of, outside, lambda k, w=what: f"{w} {links[k]} does not exist")  # type: ignore[misc]
        inside = np.flatnonzero(rows & ~outside)
        foreign = np.zeros(len(links), dtype=bool)
        foreign[inside] = owner[links[inside]] != rank[of[inside]]
        yield from _of(program, of, foreign, lambda k, w=what: f"{w} {links[k]} is of another rank")  # type: ignore[misc]
    of, channel = program.item_operation, program.item_channel.astype(np.int64)
    through = np.flatnonzero(channel >= 0)
    foreign = np.zeros(len(channel), dtype=bool)
    at = channel[through]
    foreign[through] = (program.channel_rank[at] != rank[of[through]]) | (program.channel_transport[at] != _SWITCH)
    yield from _of(program, of, foreign, lambda k: f"channel {channel[k]} is no switch channel of its rank")


def _of(program: OneSided, of: Array, bad: Array, message: Callable[[int], str]) -> Flaws:
    """Yield one flaw for the operation of the first bad row of its links or items."""
    if bad.any():
        first = int(np.argmax(bad))
        wrong = np.zeros(program.num_operations, dtype=bool)
        wrong[of[bad]] = True
        yield from _at(program, wrong, lambda _: message(first))


def _loops(program: OneSided) -> Flaws:
    """Check that the operations of each loop are adjacent and in one block."""
    loop, block = program.loop, program.block
    begins = np.ones(len(loop), dtype=bool)
    begins[1:] = (loop[1:] != loop[:-1]) | (block[1:] != block[:-1])
    first = np.flatnonzero(begins & (loop >= 0))
    _, begun = np.unique(loop[first], return_index=True)
    again = np.zeros(len(loop), dtype=bool)
    again[np.delete(first, begun)] = True
    yield from _at(program, again, lambda row: f"loop {loop[row]} has begun before and ended")


STAGES: tuple[Callable[[OneSided], Iterator[Flaw]], ...] = (_tables, _ranges, _links, _loops)
