"""Channels and semaphores of blocks that were cut: one for each pair of a part that signals and a part that waits.

Two blocks that wait on one channel would race for its signals, and of two blocks that signal either may be the first.
The order of signals and waits is known here, so each pair of parts gets a channel of its own, on both of its ends. The
same holds for semaphores, which some blocks release and others acquire.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct, lexsort
from collc.ir.one_sided.opcodes import SIGNALS, WAITS, Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.ragged import by_appearance, first_of_group, inverse, starts

__all__ = ["with_own_links"]

#: operations that post over a port, in the order of the channel
_POSTS = table(Op.PUT, Op.RPPKT, Op.FLUSH)
_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)


class _Use(NamedTuple):
    """A use of a channel: its place in the column of links, its block, and whether it signals."""

    place: int
    block: int
    signals: bool


def with_own_links(ir: OneSided, origin: Array) -> OneSided:
    """Return the program in which one block signals each channel and one waits on it, if the order is known.

    ``origin`` is the block that each block was a part of. Parts run one after the other. Other channels are unchanged:
    those with several signalling blocks, and those that are not flushed at once. The same for semaphores.
    """
    return _with_own_semaphores(_with_own_channels(ir, origin), origin)


def _with_own_channels(ir: OneSided, origin: Array) -> OneSided:
    op, partner, links = ir.opcode[ir.link_operation], ir.partner, ir.links.astype(np.int64)
    if (_POSTS & ~SIGNALS)[op].any():
        return _with_flushed_channels(ir, origin)
    waits, signals = np.flatnonzero(WAITS[op]), np.flatnonzero(SIGNALS[op])
    waits, signals = waits[partner[links[waits]] >= 0], signals[partner[links[signals]] >= 0]
    channel, places = np.concatenate([links[waits], partner[links[signals]]]), np.concatenate([waits, signals])
    number = _numbers(ir, channel, places, np.arange(len(places)) < len(waits), origin)
    moving = np.flatnonzero(number)
    if not len(moving):
        return ir
    one = np.minimum(channel, partner[channel])[moving]
    pairs = distinct(one)
    pair, most = np.searchsorted(pairs, one), np.zeros(len(pairs), dtype=np.int64)
    np.maximum.at(most, pair, number[moving])
    owner, places = ir.channel_rank.astype(np.int64), places[moving]
    far = ir.rank[ir.link_operation[places]] != owner[one]
    links[places] = len(owner) + 2 * (starts(most)[pair] + number[moving] - 1) + far
    return _with_copies(ir, links, np.repeat(np.stack([pairs, partner[pairs]], axis=1), most, axis=0).ravel())


def _with_flushed_channels(ir: OneSided, origin: Array) -> OneSided:
    waits, gives = _uses(ir)
    moved: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    partner = ir.partner.tolist()
    for channel in sorted(waits):
        other = partner[channel]
        given = gives.get(other, [])
        if other >= 0 and _several(waits[channel], given) and _known(ir, waits[channel], given, origin):
            moved[min(channel, other), max(channel, other)] += _moves(ir, waits[channel], given)
    return _moved(ir, dict(sorted(moved.items()))) if moved else ir


def _with_own_semaphores(ir: OneSided, origin: Array) -> OneSided:
    op, links = ir.opcode[ir.link_operation], ir.links.astype(np.int64)
    places = np.flatnonzero(_SEMAPHORES[op])
    semaphore = links[places]
    number = _numbers(ir, semaphore, places, op[places] == Op.SEM_ACQUIRE, origin)
    number[ir.semaphore_value[semaphore] > 0] = 0
    most = np.zeros(len(ir.semaphore_rank), dtype=np.int64)
    np.maximum.at(most, semaphore, number)
    links[places] = np.where(number > 0, len(most) + starts(most)[semaphore] + number - 1, semaphore)
    ranks = np.concatenate([ir.semaphore_rank.astype(np.int64), np.repeat(ir.semaphore_rank, most)])
    values = np.concatenate([ir.semaphore_value.astype(np.int64), np.zeros(int(most.sum()), dtype=np.int64)])
    order = lexsort([ranks])
    links[places] = inverse(order)[links[places]]
    return attrs.evolve(ir, links=links, semaphore_rank=ranks[order], semaphore_value=values[order])


def _numbers(ir: OneSided, group: Array, places: Array, takes: Array, origin: Array) -> Array:
    """Return for each use of a channel or semaphore the number of its pair of blocks: one that takes, one that gives.

    The k-th use that takes is paired with the k-th that gives, in groups where that is known: several parts of one
    block take, or give, those of one block only, and as often. Other uses have number 0.
    """
    number, count = np.zeros(len(places), dtype=np.int64), int(group.max(initial=-1)) + 1
    block = ir.block[ir.link_operation[places]]
    sides = [side[lexsort([group[side]])] for side in (np.flatnonzero(takes), np.flatnonzero(~takes))]
    lengths = [np.bincount(group[side], minlength=count) for side in sides]
    several = _differ(group, block, sides, count)
    known = several & ~_differ(group, origin[block], sides, count) & (lengths[0] == lengths[1])
    take, give = (side[known[group[side]]] for side in sides)
    number[take] = number[give] = by_appearance(group[take], block[take] * np.int64(ir.num_blocks) + block[give])[0]
    return number


def _differ(group: Array, values: Array, sides: list[Array], count: int) -> Array:
    """Return the groups in which one of the sides, sorted by group, has different values."""
    found = np.zeros(count, dtype=bool)
    for side in sides:
        again = ~first_of_group(group[side])[1:]
        found[group[side][1:][again & (values[side][1:] != values[side][:-1])]] = True
    return found


def _uses(ir: OneSided) -> tuple[dict[int, list[_Use]], dict[int, list[_Use]]]:
    """Return the waits on each channel, and its signals and posts, in order."""
    waits: dict[int, list[_Use]] = defaultdict(list)
    gives: dict[int, list[_Use]] = defaultdict(list)
    op = ir.opcode[ir.link_operation]
    blocks = ir.block[ir.link_operation].tolist()
    links, takes, signals = ir.links.tolist(), WAITS[op].tolist(), SIGNALS[op].tolist()
    posts = _POSTS[op].tolist()
    for place, link in enumerate(links):
        if takes[place]:
            waits[link].append(_Use(place, blocks[place], False))
        elif signals[place] or posts[place]:
            gives[link].append(_Use(place, blocks[place], signals[place]))
    return waits, gives


def _several(waits: list[_Use], gives: list[_Use]) -> bool:
    return any(len({use.block for use in uses}) > 1 for uses in (waits, gives))


def _known(ir: OneSided, waits: list[_Use], gives: list[_Use], origin: Array) -> bool:
    """Return whether the order of waits and signals is known: parts of one block wait, parts of one block signal."""
    ends = ({int(origin[use.block]) for use in uses} for uses in (waits, gives))
    counted = len(waits) == sum(use.signals for use in gives)
    return all(len(one) == 1 for one in ends) and counted and _flushed_at_once(ir, gives)


def _flushes(ir: OneSided, use: _Use) -> bool:
    return int(ir.opcode[ir.link_operation[use.place]]) == Op.FLUSH


def _flushed_at_once(ir: OneSided, gives: list[_Use]) -> bool:
    """Return whether no signal is flushed, or each by the next operation on its channel, in its block.

    Relaxed signals send nothing that a flush would wait for.
    """
    gives = [use for use in gives if int(ir.opcode[ir.link_operation[use.place]]) != Op.RLXSIGNAL]
    flushes = [_flushes(ir, use) for use in gives]
    if not any(flushes):
        return True
    pairs = list(zip(gives[::2], gives[1::2], strict=False))
    alternate = flushes == [False, True] * len(pairs) and all(use.signals for use in gives[::2])
    return alternate and all(put.block == flush.block for put, flush in pairs)


def _moves(ir: OneSided, waits: list[_Use], gives: list[_Use]) -> list[tuple[int, int]]:
    """Return (place in the column of links, number of the new channel) of all uses but those of the first pair."""
    pairs = [(use.block, one.block) for use, one in zip(waits, (u for u in gives if u.signals), strict=True)]
    numbered = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    numbers = [numbered[pair] for pair in pairs]
    moves = [(use.place, number) for use, number in zip(waits, numbers, strict=True)]
    signal = 0
    for use in gives:
        # A post uses the channel of the signal that follows it, a flush that of the signal before it.
        moves.append((use.place, numbers[min(signal - _flushes(ir, use), len(numbers) - 1)]))
        signal += use.signals
    return [(place, number) for place, number in moves if number]


def _moved(ir: OneSided, moved: dict[tuple[int, int], list[tuple[int, int]]]) -> OneSided:
    """Return the program with new channels after those of their ranks, and the moved uses on them."""
    links, ends = ir.links.astype(np.int64).copy(), list[int]()
    owner = ir.channel_rank.astype(np.int64)
    count = len(owner)
    of_rank = ir.rank[ir.link_operation]
    for (one, other), moves in moved.items():
        for number in range(1, max(number for _, number in moves) + 1):
            first = count + len(ends)
            ends += [one, other]
            for place, moving in moves:
                if moving == number:
                    links[place] = first + int(of_rank[place] != owner[one])
    return _with_copies(ir, links, np.array(ends, dtype=np.int64))


def _with_copies(ir: OneSided, links: Array, copied: Array) -> OneSided:
    """Return the program with copies of channels, which ``links`` name by numbers behind all others."""
    owner = ir.channel_rank.astype(np.int64)
    source = np.concatenate([np.arange(len(owner)), copied])
    order = lexsort([owner[source]])
    row = np.append(inverse(order), NO_CHANNEL)
    own = ~_SEMAPHORES[ir.opcode[ir.link_operation]]
    links[own] = row[links[own]]
    return _with_channels(ir, source[order], links, row[ir.item_channel.astype(np.int64)])


def _with_channels(ir: OneSided, rows: Array, links: Array, item_channel: Array) -> OneSided:
    """Return the program with these rows of its channels; those that were copied join no group."""
    assert not (ir.channel_transport[rows[np.bincount(rows)[rows] > 1]] == Transport.SWITCH).any()
    counts = np.diff(ir.group_start.astype(np.int64))[rows]
    groups = [ir.groups[ir.group_start[row] : ir.group_start[row + 1]] for row in rows.tolist()]
    names = ("channel_rank", "channel_peer", "channel_transport", "channel_buffer")
    return attrs.evolve(
        ir, links=links, item_channel=item_channel, group_start=starts(counts),
        groups=np.concatenate(groups) if groups else ir.groups, **{name: getattr(ir, name)[rows] for name in names},
    )  # fmt: skip
