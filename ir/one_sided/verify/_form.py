"""Check that every operation has the items and channels that the executor needs, and that it does what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from ...arrays import Array, lexsort
from ...program import Buffer
from ...ragged import nth, owners
from ..opcodes import FLAGS, SWITCHES, Op, table
from ..program import OneSided, Transport

__all__ = [
    "MOST", "POSTS", "SLOTS", "bounds", "channels", "doing", "input_writes", "nth_item", "operations", "slots",
    "summary", "threads",
]  # fmt: skip

#: the most problems that are described
MOST = 100

_LOCAL, _REMOTE, _SWITCH, _NONE = 0, 1, 2, -1
_KINDS = ("in its own memory", "in a peer's memory", "of a switch")

#: operation -> kinds of its first, second and later sources and destinations, and the fewest of both
_SHAPES: dict[Op, tuple[tuple[int, int, int], tuple[int, int, int], int, int]] = {
    Op.COPY: ((_LOCAL, _NONE, _NONE), (_LOCAL, _NONE, _NONE), 1, 1),
    Op.FLUSH: ((_NONE,) * 3, (_LOCAL,) * 3, 0, 0),
    Op.GET: ((_REMOTE,) * 3, (_LOCAL,) * 3, 1, 1),
    Op.RE: ((_LOCAL,) * 3, (_LOCAL, _NONE, _NONE), 1, 1),
    Op.RES: ((_LOCAL,) * 3, (_LOCAL, _REMOTE, _REMOTE), 1, 1),
    Op.RRE: ((_LOCAL, _REMOTE, _REMOTE), (_LOCAL, _NONE, _NONE), 1, 1),
    Op.RRES: ((_LOCAL, _REMOTE, _REMOTE), (_LOCAL, _REMOTE, _REMOTE), 1, 1),
    Op.CPKT: ((_LOCAL, _NONE, _NONE), (_LOCAL, _NONE, _NONE), 1, 1),
    Op.UPKT: ((_LOCAL, _NONE, _NONE), (_LOCAL, _NONE, _NONE), 1, 1),
    Op.RPPKT: ((_LOCAL, _NONE, _NONE), (_REMOTE,) * 3, 1, 1),
    Op.REPKT: ((_LOCAL,) * 3, (_LOCAL, _NONE, _NONE), 1, 1),
    Op.RESPKT: ((_LOCAL,) * 3, (_LOCAL, _REMOTE, _REMOTE), 1, 1),
    Op.RECPKT: ((_LOCAL,) * 3, (_LOCAL, _LOCAL, _NONE), 1, 2),
    Op.RECSPKT: ((_LOCAL,) * 3, (_LOCAL, _LOCAL, _REMOTE), 1, 2),
    Op.GLRES: ((_SWITCH, _NONE, _NONE), (_SWITCH, _NONE, _NONE), 1, 1),
    Op.GSTORE: ((_LOCAL, _NONE, _NONE), (_SWITCH, _NONE, _NONE), 1, 1),
    Op.GSTOREPKT: ((_LOCAL, _NONE, _NONE), (_SWITCH, _NONE, _NONE), 1, 1),
    **dict.fromkeys((Op.PUT, Op.PWS, Op.PWSF, Op.PPKT), ((_LOCAL,) * 3, (_REMOTE,) * 3, 1, 1)),
}  # fmt: skip

#: [operation, source or destination, first, second or later item]: the kind of memory
_KIND = np.full((len(Op), 2, 3), _NONE)
#: [operation, source or destination]: the fewest items
_FEWEST = np.zeros((len(Op), 2), dtype=np.int64)
for _op, (_src, _dst, _sources, _destinations) in _SHAPES.items():
    _KIND[_op] = _src, _dst
    _FEWEST[_op] = _sources, _destinations

#: [operation, source or destination, first, second or later item]: whether it holds packets
SLOTS = np.zeros((len(Op), 2, 3), dtype=bool)
SLOTS[Op.PPKT, 1] = SLOTS[Op.RPPKT, 1] = True
SLOTS[[Op.UPKT, Op.RPPKT, Op.GSTOREPKT], 0, 0] = True
SLOTS[[Op.CPKT, Op.GSTOREPKT], 1, 0] = True
SLOTS[[Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT], 0, 1:] = True
SLOTS[Op.RESPKT, 1, 1:] = SLOTS[Op.RECSPKT, 1, 1:] = True
SLOTS[Op.RECPKT, 1, 1] = True

_PAIRWISE = table(Op.PUT, Op.PWS, Op.PWSF, Op.PPKT, Op.GET)
_LINKED = table(
    Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT, Op.FLUSH, Op.SEM_ACQUIRE, Op.SEM_RELEASE,
)  # fmt: skip
#: what blocks leave to the proxy of a port
POSTS = table(Op.PUT, Op.PWS, Op.PWSF, Op.PPKT, Op.RPPKT)
_REACHES = table(
    Op.PUT, Op.PWS, Op.PWSF, Op.GET, Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT, Op.FLUSH, Op.RES, Op.RRE, Op.RRES,
    Op.PPKT, Op.RPPKT, Op.RESPKT, Op.RECSPKT,
)  # fmt: skip
_OVER_PORTS = table(
    Op.PUT, Op.PWS, Op.PWSF, Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT, Op.FLUSH, Op.PPKT,
    Op.RPPKT,
)  # fmt: skip
#: operations that take the class of a source's offset from another item when they run in a loop
_FOLDS = table(Op.RE, Op.RES)


def summary(problems: Sequence[str], most: int = 3) -> str:
    """Return the first problems in one line, and the number of others.

    >>> summary(["one", "two", "three"], most=2)
    'one; two; and 1 more'
    """
    more = [f"and {len(problems) - most} more"] if len(problems) > most else []
    return "; ".join([*problems[:most], *more])


def doing(program: OneSided, operation: int) -> str:
    """Return ``rank R, block B, operation I (put)``."""
    return f"{program.place(operation)} ({program.word(operation)})"


def kinds(program: OneSided) -> Array:
    """Return whether each item is local, remote or of a switch."""
    of = program.item_operation
    return np.where(
        program.item_channel >= 0, _SWITCH, np.where(program.item_rank != program.rank[of], _REMOTE, _LOCAL)
    )


def nth_item(program: OneSided) -> Array:
    """Return the number of each item among the sources or destinations of its operation."""
    number = nth(np.diff(program.item_start.astype(np.int64)))
    return np.where(program.item_is_source, number, number - program.sources[program.item_operation].astype(np.int64))


def operations(program: OneSided) -> list[str]:
    """Return the operations that the executor does not have in this form."""
    checks = (_items, _counts, _reach, _switches, _packets, _in_loops, _sums)
    for check in checks:
        if problems := list(islice(check(program), MOST)):
            return problems
    return []


def _wrong(program: OneSided, bad: Array, why: Callable[[int], str]) -> Iterator[str]:
    for row in np.flatnonzero(bad).tolist():
        yield f"{doing(program, row)} {why(row)}"


def _any(program: OneSided, of: Array, bad: Array) -> Array:
    """Return the operations of which some item (or link) is bad."""
    found = np.zeros(program.num_operations, dtype=bool)
    found[of[bad]] = True
    return found


def _items(program: OneSided) -> Iterator[str]:
    of, number, side = program.item_operation, nth_item(program), (~program.item_is_source).astype(np.int64)
    needed, found = _KIND[program.opcode[of], side, np.minimum(number, 2)], kinds(program)
    for k in np.flatnonzero(needed != found)[:MOST].tolist():
        what = ("source", "destination")[side[k]]
        if needed[k] == _NONE:
            yield f"{doing(program, int(of[k]))} has a {what} {number[k]}, which it does not take"
        else:
            yield (
                f"{doing(program, int(of[k]))} has {what} {number[k]} {_KINDS[found[k]]}, but needs one "
                f"{_KINDS[needed[k]]}"
            )
    has = np.stack([program.sources.astype(np.int64), np.diff(program.item_start.astype(np.int64)) - program.sources])
    for side_, what in enumerate(("sources", "destinations")):
        few = has[side_] < _FEWEST[program.opcode, side_]
        yield from _wrong(
            program, few,
            lambda row, s=side_, w=what: f"has {has[s][row]} {w}, needed {_FEWEST[program.opcode[row], s]}",  # type: ignore[misc]
        )  # fmt: skip
    yield from _wrong(
        program, _PAIRWISE[program.opcode] & (has[0] != has[1]),
        lambda row: f"has {has[0][row]} sources and {has[1][row]} destinations, which go in pairs",
    )  # fmt: skip


def _counts(program: OneSided) -> Iterator[str]:
    """Check that items have as many chunks as those that the executor takes the size from."""
    of, number = program.item_operation, nth_item(program)
    first = program.item_start.astype(np.int64)[of]
    pair = np.where(_PAIRWISE[program.opcode[of]], first + number, first)
    uneven = (program.item_count != program.item_count[np.minimum(pair, len(of) - 1)]) if len(of) else of > 0
    uneven &= program.opcode[of] != Op.FLUSH
    yield from _wrong(program, _any(program, of, uneven), lambda _: "has items of different numbers of chunks")


def _reach(program: OneSided) -> Iterator[str]:
    """Check the transport of operations, and that channels of ports lead to the ranks that they write to."""
    op, transport, links = program.opcode, program.transport, np.diff(program.link_start.astype(np.int64))
    reaches = _REACHES[op]
    yield from _wrong(
        program, reaches & ~np.isin(transport, (Transport.MEMORY, Transport.PORT)),
        lambda _: "names no transport: memory or port",
    )  # fmt: skip
    port = transport == Transport.PORT
    yield from _wrong(program, port & reaches & ~_OVER_PORTS[op], lambda _: "does not work over ports")
    yield from _wrong(program, _LINKED[op] & (links < 1), lambda _: "names no channel or semaphore")
    most = program.threads
    yield from _wrong(program, links > most, lambda row: f"names {links[row]} channels, one a thread of {most}")
    yield from _wrong(program, (op == Op.FLUSH) & ~port, lambda _: "needs channels of ports")
    yield from _wrong(program, (op == Op.BARRIER) & (program.blocks < 1), lambda _: "joins no blocks")
    destinations = np.diff(program.item_start.astype(np.int64)) - program.sources
    posts = port & POSTS[op]
    yield from _wrong(
        program, posts & (links != destinations),
        lambda row: f"has {links[row]} channels for {destinations[row]} destinations",
    )  # fmt: skip
    of, link = program.link_operation, program.links.astype(np.int64)
    channel = np.flatnonzero(reaches[of])
    other = np.zeros(len(link), dtype=bool)
    other[channel] = program.channel_transport[link[channel]] != transport[of[channel]]
    yield from _wrong(program, _any(program, of, other), lambda _: "names a channel of another transport")
    yield from _peers(program, posts & (links == destinations))


def _peers(program: OneSided, posts: Array) -> Iterator[str]:
    of, number, source = program.item_operation, nth_item(program), program.item_is_source
    item = np.flatnonzero(posts[of] & ~source)
    link = program.links.astype(np.int64)[program.link_start.astype(np.int64)[of[item]] + number[item]]
    away = np.zeros(len(of), dtype=bool)
    away[item] = program.channel_peer[link] != program.item_rank[item]
    yield from _wrong(program, _any(program, of, away), lambda _: "writes to another rank than its channel's peer")


def _switches(program: OneSided) -> Iterator[str]:
    of, channel = program.item_operation, program.item_channel.astype(np.int64)
    through = np.flatnonzero(channel >= 0)
    other = np.zeros(len(of), dtype=bool)
    other[through] = program.channel_buffer[channel[through]] != program.item_buffer[through]
    yield from _wrong(program, _any(program, of, other), lambda _: "names a buffer that its channel does not join")
    yield from _wrong(
        program, SWITCHES[program.opcode] & (program.transport != Transport.SWITCH), lambda _: "needs transport switch"
    )


def _packets(program: OneSided) -> Iterator[str]:
    if not program.packets:
        yield from _wrong(program, FLAGS[program.opcode], lambda _: "moves packets, but the program has none")
    slot, of = slots(program), program.item_operation
    outside = slot & (program.item_buffer != Buffer.SCRATCH)
    yield from _wrong(program, _any(program, of, outside), lambda _: "has packets outside of scratch")
    if program.double_scratch:
        plain = ~slot & (kinds(program) != _LOCAL) & (program.item_buffer == Buffer.SCRATCH)
        yield from _wrong(
            program, _any(program, of, plain),
            lambda _: "reaches a peer's scratch without packets, so it does not find the half of this launch",
        )  # fmt: skip


def slots(program: OneSided) -> Array:
    """Return which items hold packets; a port sends packets that are packets already."""
    side, of = (~program.item_is_source).astype(np.int64), program.item_operation
    posted = (program.opcode[of] == Op.PPKT) & (program.transport[of] == Transport.PORT)
    found: Array = SLOTS[program.opcode[of], side, np.minimum(nth_item(program), 2)] | posted
    return found


def _in_loops(program: OneSided) -> Iterator[str]:
    inside, of = program.loop >= 0, program.item_operation
    if not inside.any():
        return
    yield from _wrong(program, inside & FLAGS[program.opcode], lambda _: "moves all its packets in each turn of a loop")
    yield from _wrong(program, inside & (program.shares > 1), lambda _: "has a share, which a loop does not keep to")
    chunks = program.loop_chunks.astype(np.int64)[np.maximum(program.loop[of], 0)]
    other = inside[of] & (program.item_count != chunks) & (program.opcode[of] != Op.FLUSH)
    yield from _wrong(
        program, _any(program, of, other),
        lambda row: f"has items of other sizes than the {program.loop_chunks[program.loop[row]]} chunks of its loop",
    )  # fmt: skip
    if program.reuse:
        first = program.item_start.astype(np.int64)[of] + program.sources[of].astype(np.int64)
        scratch = program.item_buffer == Buffer.SCRATCH
        mixed = inside[of] & _FOLDS[program.opcode[of]] & program.item_is_source
        mixed &= scratch != scratch[np.minimum(first, len(of) - 1)]
        yield from _wrong(
            program, _any(program, of, mixed),
            lambda _: "adds scratch and other buffers in a loop, which wraps the wrong offsets if resources are reused",
        )  # fmt: skip


def _sums(program: OneSided) -> Iterator[str]:
    collective = program.collective
    if collective.reduces and collective.op != "sum":
        yield f"`op: {collective.op}` is no sum, and the executor only adds"


# ---- buffers


def bounds(program: OneSided, size: Array, touched: tuple[Array, Array]) -> list[str]:
    """Return the items that leave their buffer; ``touched`` is the buffer and offset of each as the executor has it."""
    problems: list[str] = []
    rank, count = program.item_rank.astype(np.int64), program.item_count.astype(np.int64)
    buffer, offset = touched
    channel = program.item_channel.astype(np.int64)
    last = size[rank, buffer] - count
    for k in np.flatnonzero(channel >= 0).tolist():
        a, b = program.group_start[channel[k] : channel[k] + 2].tolist()
        last[k] = min((int(size[r, buffer[k]]) for r in program.groups[a:b].tolist()), default=-1) - count[k]
    of = program.item_operation
    for k in np.flatnonzero((offset < 0) | (offset > last))[:MOST].tolist():
        name, there = Buffer(int(buffer[k])).name.lower(), int(last[k] + count[k])
        has = f"has chunks 0 to {there - 1}" if there > 0 else "has none"
        problems.append(
            f"{doing(program, int(of[k]))} accesses {name} chunks {offset[k]} to {int(offset[k] + count[k]) - 1} "
            f"of rank {rank[k]}, whose {name} {has}"
        )
    return problems


def input_writes(program: OneSided) -> list[str]:
    """Return the operations that write into an input buffer."""
    wrong = ~program.item_is_source & (program.item_buffer == Buffer.INPUT) & (
        program.opcode[program.item_operation] != Op.FLUSH
    )  # fmt: skip
    of = program.item_operation
    return [
        f"{doing(program, int(of[k]))} writes input chunk {program.item_offset[k]} of rank {program.item_rank[k]}"
        for k in np.flatnonzero(wrong)[:MOST].tolist()
    ]


# ---- channels, semaphores, barriers

_WAITS = table(Op.WAIT, Op.RLXWAIT)
#: 1: posts or signals; 2: waits; 3: releases; 4: acquires; 0: uses no channel
_DIRECTION = np.zeros(len(Op), dtype=np.int64)
_DIRECTION[POSTS] = 1
_DIRECTION[[Op.SIGNAL, Op.RLXSIGNAL]] = 1
_DIRECTION[[Op.WAIT, Op.RLXWAIT]] = 2
_DIRECTION[Op.SEM_RELEASE], _DIRECTION[Op.SEM_ACQUIRE] = 3, 4


def channels(program: OneSided) -> list[str]:
    """Return where channels have no partner, blocks race for signals, or a barrier joins the wrong number of blocks."""
    return list(islice(_channels(program), MOST))


def threads(program: OneSided, row: Array, block: Array, phase: Array) -> list[str]:
    """Return the channels and semaphores that several threads of a block use at once, in an unknown order.

    Event e is operation ``row[e]`` of ``block[e]``, between nops number ``phase[e]`` and ``phase[e]`` + 1.
    """
    count = np.diff(program.link_start.astype(np.int64))[row]
    event, thread = owners(count), nth(count)
    link = program.links.astype(np.int64)[program.link_start.astype(np.int64)[row][event] + thread]
    idle = POSTS[program.opcode[row]] & (program.transport[row] != Transport.PORT)
    kind = np.where(idle, 0, _DIRECTION[program.opcode[row]])[event]
    key = np.stack([kind, link, block[event], phase[event]])
    order = lexsort((thread, *key[::-1]))
    same = (key[:, order[1:]] == key[:, order[:-1]]).all(axis=0) & (kind[order[1:]] > 0)
    wrong = np.flatnonzero(same & (thread[order[1:]] != thread[order[:-1]]))
    return [
        f"{doing(program, int(row[event[order[k]]]))} and {doing(program, int(row[event[order[k + 1]]]))} use one "
        f"channel with threads {thread[order[k]]} and {thread[order[k + 1]]} and no nop between them"
        for k in wrong[:MOST].tolist()
    ]


def _channels(program: OneSided) -> Iterator[str]:
    of, link = program.link_operation, program.links.astype(np.int64)
    op, block = program.opcode[of], program.block[of]
    used = np.flatnonzero(~np.isin(op, (Op.SEM_ACQUIRE, Op.SEM_RELEASE)))
    lonely = used[(program.partner[link[used]] < 0) & (program.channel_transport[link[used]] != _SWITCH)]
    for k in lonely.tolist():
        peer, rank = program.channel_peer[link[k]], program.channel_rank[link[k]]
        yield (
            f"{doing(program, int(of[k]))} uses a channel to rank {peer} that pairs with none: rank {peer} has fewer "
            f"channels to rank {rank}"
        )
    waits = np.flatnonzero(_WAITS[op])
    yield from _two_waiters(program, link[waits], block[waits], of[waits])
    yield from _barriers(program)


def _two_waiters(program: OneSided, link: Array, block: Array, of: Array) -> Iterator[str]:
    order = lexsort([link])
    again = (link[order][1:] == link[order][:-1]) & (block[order][1:] != block[order][:-1])
    for k in np.flatnonzero(again).tolist():
        one, other = int(of[order[k]]), int(of[order[k + 1]])
        yield f"{doing(program, one)} and {doing(program, other)} wait on one channel: they race for its signals"


def _barriers(program: OneSided) -> Iterator[str]:
    rows = np.flatnonzero(program.opcode == Op.BARRIER)
    users: dict[tuple[int, int], dict[int, list[int]]] = {}
    for row in rows.tolist():
        key = int(program.rank[row]), int(program.number[row])
        users.setdefault(key, {}).setdefault(int(program.block[row]), []).append(row)
    for of_block in users.values():
        lists = list(of_block.values())
        first = lists[0][0]
        for row in (row for rows_ in lists for row in rows_):
            if program.blocks[row] != len(of_block):
                yield (
                    f"{doing(program, row)} joins {program.blocks[row]} blocks, but {len(of_block)} blocks use barrier "
                    f"{program.number[row]}"
                )
                break
        else:
            for rows_ in lists[1:]:
                if len(rows_) != len(lists[0]):
                    yield (
                        f"{doing(program, rows_[0])} is one of {len(rows_)} uses of its barrier in its block, but "
                        f"{doing(program, first)} is one of {len(lists[0])}"
                    )


del _op, _src, _dst, _sources, _destinations
