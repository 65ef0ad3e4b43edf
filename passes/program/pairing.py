"""Choose the threadblocks to join, and their channels: the block that receives data should forward them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from collc.ir.arrays import Array, distinct, distinct_pairs, lexsort
from collc.ir.frozen import frozen
from collc.ir.machine import Connections, connections
from collc.ir.program import Opcode, Program
from collc.ir.ragged import first_of_group, owners, ranges, starts

from ..analysis.timing import Times

__all__ = ["PER_CHANNEL", "Pairs", "flow_channels", "flows", "pair_blocks"]

#: blocks of a rank that may send (or receive) on one channel: the runtimes' 32 less a spare one
PER_CHANNEL = 31


def flows(program: Program, clashes: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pairs (receive, send) in which the send sends just what the receive has stored, all of it.

    ``clashes`` are the program's :func:`.hazards.conflicts`.
    """
    if not program.num_instructions:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    later, earlier = clashes
    sends = program.opcode.take(later) == Opcode.SEND
    j, i = distinct_pairs(later.compress(sends), earlier.compress(sends))
    single = np.bincount(j, minlength=program.num_instructions).take(j) == 1
    same = (program.src_buffer[j] == program.dst_buffer[i]) & (program.src_offset.take(j) == program.dst_offset.take(i))
    good = single & same & (program.count[j] == program.count[i]) & (program.receives & ~program.sends)[i]
    return i.compress(good), j.compress(good)


@frozen(eq=False)
class Pairs:
    """``host[b]`` is the block that block b joins (b: none); ``channel[b]`` is the channel of block b.

    ``find_channel`` returns these channels. Most candidates do not need them.
    """

    host: Array
    find_channel: Callable[[], Array]

    @property
    def channel(self) -> Array:
        """The channel of each block."""
        return self.find_channel()


class _Classes:
    """Connections that must share a channel, because one block receives on one of them and sends on the other.

    Of a template, a connection leads from one of its ranks to any rank: that is an image of one of them.
    """

    def __init__(self, program: Program, links: Connections):
        self.root = list(range(len(links)))
        self.ends = [{pair} for pair in zip(links.src.tolist(), links.dst.tolist(), strict=True)]
        self.out = [{rank: 1} for rank in links.src.tolist()]
        self.into = [{rank: 1} for rank in (links.dst % program.num_ranks).tolist()]

    def find(self, x: int) -> int:
        while self.root[x] != x:
            self.root[x] = self.root[self.root[x]]
            x = self.root[x]
        return x

    def join(self, a: int, b: int, own: bool = False) -> bool:
        """Let two connections share a channel, unless their classes contain parallel connections, or a rank would have
        too many connections on the channel: the two of a block may be its ``own``, and share it then already.
        """
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if len(self.ends[a]) < len(self.ends[b]):
            a, b = b, a
        if not self.ends[a].isdisjoint(self.ends[b]):
            return False
        if not (own or (_fits(self.out[a], self.out[b]) and _fits(self.into[a], self.into[b]))):
            return False
        self.root[b] = a
        self.ends[a] |= self.ends[b]
        for used, more in ((self.out[a], self.out[b]), (self.into[a], self.into[b])):
            _add(used, more)
        return True


def pair_blocks(
    program: Program, flow: tuple[Array, Array], few: bool, steps: Array, most: int | None = None, fused: bool = True,
    times: Times | None = None, copies: bool = True, long_first: bool = False,
) -> Pairs:  # fmt: skip
    """Return the sending and receiving blocks to join, chosen by the data that they forward, most first.

    With ``few``, blocks that forward no data are paired too, with the same peer if possible, or (with ``times``) first
    those that work at different times. With ``copies``, local blocks join another block, with ``times`` one that needs
    their data. Blocks have ``steps``; joined blocks have at most ``most`` (None: any number). A ``fused`` receive and
    send count as one step. With ``long_first``, blocks that are too long to join that of the same peer take the
    shortest ones before others do.
    """
    links = connections(program)
    forwards = _weights(program, flow)
    if most is not None:  # blocks only grow: what is too long now is so at its turn
        into, out, pairs = forwards
        fits = steps.take(into) + steps.take(out) - pairs * fused <= most
        forwards = into.compress(fits), out.compress(fits), pairs.compress(fits)
    classes, host = _Classes(program, links), list(range(program.num_blocks))
    free_in = ((program.recv_peer >= 0) & (program.send_peer < 0)).tolist()
    free_out = ((program.send_peer >= 0) & (program.recv_peer < 0)).tolist()
    size, inward, outward = steps.tolist(), links.inward.tolist(), links.outward.tolist()

    def join(a: int, b: int, saved: int) -> None:
        if most is not None and size[a] + size[b] - saved * fused > most:
            return
        if classes.join(inward[a], outward[b]):
            host[max(a, b)] = min(a, b)
            free_in[a] = free_out[b] = False
            size[min(a, b)] += size[max(a, b)] - saved * fused

    _join_own(program, links, classes)
    for a, b, pairs_of_both in _listed(forwards):
        if free_in[a] and free_out[b]:
            join(a, b, pairs_of_both)
    if few and (most is None or _shortest(steps, free_in) + _shortest(steps, free_out) <= most):
        if long_first and most is not None:
            for a, b in _of_long(program, free_in, free_out, size, most):
                if free_in[a] and free_out[b]:
                    join(a, b, 0)
        for pairs_of_blocks in _pairs_without_data(program, times, free_in, free_out):
            for a, b in pairs_of_blocks:
                if free_in[a] and free_out[b]:
                    join(a, b, 0)
    hosts = np.array(host, dtype=np.int64)
    if copies:
        _place_local(program, hosts, np.array(size, dtype=np.int64), most, times is not None)
    return Pairs(hosts, cache(lambda: _colour(program, links, classes)))


def _pairs_without_data(
    program: Program, times: Times | None, free_in: list[bool], free_out: list[bool]
) -> Iterator[list[tuple[int, int]]]:
    """Yield lists of pairs of free blocks: with the same peer first, or (with ``times``) by when they work."""
    if times is not None:
        yield _by_turns(program, times, free_in, free_out)
        return
    for same in (True, False):
        yield _leftovers(program, free_in, free_out, same)


def flow_channels(program: Program, flow: tuple[Array, Array]) -> Array:
    """Return a channel for each block: a connection shares its channel with the one that forwards most of its data."""
    links = connections(program)
    classes = _Classes(program, links)
    _join_own(program, links, classes)
    used_in, used_out = np.zeros((2, len(links)), dtype=bool)
    for a, b, _ in _listed(_weights(program, flow)):
        inward, outward = int(links.inward[a]), int(links.outward[b])
        if not (used_in[inward] or used_out[outward]) and classes.join(inward, outward):
            used_in[inward] = used_out[outward] = True
    return _colour(program, links, classes)


def _join_own(program: Program, links: Connections, classes: _Classes) -> None:
    """Let the two connections of a block share a channel, as they must."""
    for b in np.flatnonzero((program.recv_peer >= 0) & (program.send_peer >= 0)).tolist():
        classes.join(int(links.inward[b]), int(links.outward[b]), own=True)


def _shortest(steps: Array, free: list[bool]) -> int:
    """Return the steps of the shortest of the free blocks, 0 if there is none."""
    return int(steps[np.array(free, dtype=bool)].min()) if any(free) else 0


def _listed(columns: tuple[Array, ...]) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _weights(program: Program, flow: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Return (receiving blocks, sending blocks, messages forwarded), most chunks first."""
    receives, sends = flow
    into, out = program.block[receives], program.block[sends]
    order = lexsort((out, into))
    into, out = into[order], out[order]
    first = np.flatnonzero(first_of_group(into) | first_of_group(out))
    messages = np.diff(np.append(first, len(order)))
    chunks = np.diff(starts(program.count.take(sends[order]))[np.append(first, len(order))])
    into, out = into[first], out[first]
    chosen = lexsort((out, into, -chunks))
    return into[chosen], out[chosen], messages[chosen]


def _leftovers(program: Program, free_in: list[bool], free_out: list[bool], same: bool) -> list[tuple[int, int]]:
    """Return pairs of a rank's receiving and sending blocks, with the ``same`` peer or with any."""
    found: list[tuple[int, int]] = []
    if not (any(free_in) and any(free_out)):
        return found
    sends, receives = program.send_peer.tolist(), program.recv_peer.tolist()
    for rank in range(program.num_ranks):
        blocks = range(int(program.rank_blocks[rank]), int(program.rank_blocks[rank + 1]))
        receiving, sending = ([b for b in blocks if free[b]] for free in (free_in, free_out))
        found += [(a, b) for a in receiving for b in sending if not same or receives[a] == sends[b]]
    return found


def _of_long(
    program: Program, free_in: list[bool], free_out: list[bool], size: list[int], most: int
) -> list[tuple[int, int]]:  # fmt: skip
    """Return pairs of free blocks, one of which is too long to join one of its peer, and the other is not.

    The longest block comes first, with the shortest others.
    """
    fitting = {
        block
        for pair in _leftovers(program, free_in, free_out, same=True)
        if size[pair[0]] + size[pair[1]] <= most
        for block in pair
    }
    pairs = [
        pair
        for pair in _leftovers(program, free_in, free_out, same=False)
        if (pair[0] in fitting) != (pair[1] in fitting)
    ]
    return sorted(pairs, key=lambda pair: (-max(size[b] for b in pair), min(size[b] for b in pair), pair))


def _by_turns(program: Program, times: Times, free_in: list[bool], free_out: list[bool]) -> list[tuple[int, int]]:
    """Return pairs of a rank's receiving and sending blocks: those that least work at the same time first.

    The shared time counts in eighths of the shorter work. Among equals come first those whose sends wait for most of
    the receives, then those with the same peer.
    """
    waits = _waits(program)
    pairs = [pair for same in (True, False) for pair in _leftovers(program, free_in, free_out, same)]
    shared = _shared_work(program, times, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    order = sorted(range(len(pairs)), key=lambda k: (shared[k], -waits.get(pairs[k], 0)))
    return [pairs[k] for k in order]


def _waits(program: Program) -> dict[tuple[int, int], int]:
    """Return how many dependencies the instructions of one block have on those of another: (needed, dependent)."""
    blocks = np.stack([program.block[program.deps], program.block[program.dependent]])
    pairs, number = np.unique(blocks, axis=1, return_counts=True)
    return dict(zip(zip(*pairs.tolist(), strict=True), number.tolist(), strict=True))


def _shared_work(program: Program, times: Times, pairs: Array) -> list[int]:
    """Return for each pair of blocks for how many eighths of the shorter work both work at the same time."""
    work = times.end - times.begin
    before = starts(work)
    begin, size = program.block_start[:-1].astype(np.int64), np.diff(program.block_start.astype(np.int64))
    total = before[begin + size] - before[begin]
    row, pair = ranges(begin[pairs[:, 0]], size[pairs[:, 0]]), owners(size[pairs[:, 0]])
    other = pairs[pair, 1]
    place = np.searchsorted(distinct(times.begin), times.begin)  # small numbers, so that keys do not overflow
    keys = program.block * program.num_instructions + place

    def worked(until: Array) -> Array:
        """Return how long the other block has worked until these times."""
        key = other * program.num_instructions + np.searchsorted(distinct(times.begin), until, side="right") - 1
        k = np.searchsorted(keys, key, side="right") - 1
        done = before[k] - before[begin[other]] + np.minimum(until, times.end[k]) - times.begin[k]
        result: Array = np.where(k < begin[other], 0, done)
        return result

    both = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(both, pair, worked(times.end[row]) - worked(times.begin[row]))
    shared: list[int] = (8 * both // np.maximum(total[pairs].min(axis=1), 1)).tolist()
    return shared


def _place_local(program: Program, host: Array, size: Array, most: int | None, beside: bool) -> None:
    """Let blocks without peers join a block of their rank: the shortest, or (``beside``) one that waits for most of
    their instructions.
    """
    waits = _waits(program) if beside else {}
    local = np.flatnonzero((program.send_peer < 0) & (program.recv_peer < 0))
    for b in local.tolist():
        rank = int(program.block_rank[b])
        blocks = range(int(program.rank_blocks[rank]), int(program.rank_blocks[rank + 1]))
        others = [x for x in blocks if x != b and host[x] == x and (most is None or size[x] + size[b] <= most)]
        if others:
            needed = {x: sum(waits.get((b, y), 0) for y in blocks if host[y] == x) for x in others}
            best = min(others, key=lambda x: (-needed[x], int(size[x]), x))
            host[host == b] = best  # with the blocks that b hosts
            size[best] += size[b]


def _colour(program: Program, links: Connections, classes: _Classes) -> Array:
    """Return the channel of each block; connections of one class share a channel, the lowest that is free.

    Two connections of one pair of ranks never share a channel. No rank sends to, or receives from, more than 31 ranks
    on one channel.
    """
    group = [classes.find(x) for x in range(len(links))]
    members: dict[int, list[int]] = {}
    for x, g in enumerate(group):
        members.setdefault(g, []).append(x)
    taken: list[set[tuple[int, int]]] = []
    sending: list[dict[int, int]] = []
    receiving: list[dict[int, int]] = []
    channel = np.zeros(len(group), dtype=np.int64)
    for rows in sorted(members.values()):
        root = classes.find(rows[0])
        pairs, out, into = classes.ends[root], classes.out[root], classes.into[root]
        c = 0
        while c < len(taken) and not (
            taken[c].isdisjoint(pairs) and _fits(sending[c], out) and _fits(receiving[c], into)
        ):
            c += 1
        if c == len(taken):
            taken.append(set())
            sending.append({})
            receiving.append({})
        taken[c] |= pairs
        _add(sending[c], out)
        _add(receiving[c], into)
        channel[rows] = c
    result = np.zeros(program.num_blocks, dtype=np.int64)
    for end in (links.inward, links.outward):
        result = np.where(end >= 0, np.append(channel, 0)[end], result)
    return result


def _add(used: dict[int, int], more: dict[int, int]) -> None:
    for rank, n in more.items():
        used[rank] = used.get(rank, 0) + n


def _fits(used: dict[int, int], more: dict[int, int]) -> bool:
    return all(used.get(rank, 0) + n <= PER_CHANNEL for rank, n in more.items())
