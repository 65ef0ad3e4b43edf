"""Ways through a network as columns: routes that were given, and all shortest ways of pairs of nodes."""

from __future__ import annotations

from math import lcm
from typing import Any

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .numbers import common_unit, latency_numbers, total

__all__ = ["Paths", "given", "shortest"]

Array = np.ndarray[Any, np.dtype[Any]]

_BLOCK = 1 << 20  # words of bitsets that are worked on together
_PAIRS = 1 << 16  # pairs that are
_PARTS = 1 << 40  # parts of a message up to which 64 bits are used


@attrs.frozen(eq=False)
class Paths:
    """Path p uses ``link[e]`` with the share ``part[e]/unit`` of what it carries, for e in start[p] .. start[p+1].

    ``hops`` counts the links from end to end, ``cables`` those at a switch and ``wait`` their latencies (in whole
    numbers of :func:`latency_numbers`), the most where ways of equal length differ.
    """

    start: Array
    link: Array
    part: Array
    unit: int
    hops: Array
    cables: Array
    wait: Array

    def __len__(self) -> int:
        return len(self.start) - 1


def at_switch(topology: Topology) -> Array:
    """Return for every link whether it begins or ends at a switch."""
    return (topology.src >= topology.num_ranks) | (topology.dst >= topology.num_ranks)


def given(topology: Topology, routes: Routes) -> Paths:
    """Return the routes of a schedule: every message whole over its links."""
    start, link = routes.start.astype(np.int64), routes.links.astype(np.int64)
    hops = np.diff(start)
    waits, cables = latency_numbers(topology)[0][topology.link_class], at_switch(topology).astype(np.int64)
    along = (_along(start, link, column) for column in (cables, waits))
    return Paths(start, link, np.broadcast_to(np.int64(1), len(link)), 1, hops, *along)


def _along(start: Array, link: Array, value: Array) -> Array:
    """Return the sums of a number of every link over routes; where all links have one number, without looking."""
    if (value == value[:1]).all():
        return np.diff(start) * (value[0] if len(value) else 0)
    hops = np.diff(start)
    return total(np.repeat(np.arange(len(hops)), hops), value[link], len(hops))


# ---- shortest ways


def shortest(topology: Topology, src: Array, dst: Array, lengths: tuple[int, int] = (1, 1)) -> Paths:
    """Return all shortest ways of each pair of different nodes, divided evenly at every node among the links onward.

    ``lengths`` are those of links between ranks and of links at a switch. Raises C0301 where there is no way. Pairs are
    taken in blocks of equal targets, all of a block at once.
    """
    length = np.where(at_switch(topology), lengths[1], lengths[0])
    words = max(1, _BLOCK // max(topology.num_links, 1))
    joined, beside = _neighbours(topology, length, src, dst)
    pieces, at = [beside], 0
    order = np.argsort(dst, kind="stable")
    order = order[~joined[order]]
    while at < len(order):
        last = int(np.searchsorted(dst[order], dst[order[at]] + 64 * words))
        rows = order[at : min(last, at + _PAIRS)]
        targets, column = np.unique(dst[rows], return_inverse=True)
        far = _far_from(topology, length, targets, src[rows], column)
        if (far[src[rows], column] < 0).any():
            row = int(rows[np.argmax(far[src[rows], column] < 0)])
            raise _unreachable(topology, int(src[row]), int(dst[row]))
        pieces.append(_walk(topology, length, rows, src[rows], column, far))
        at += len(rows)
    return _joined(topology, pieces, len(src))


def _unreachable(topology: Topology, a: int, b: int) -> Exception:
    return error(
        "C0301",
        f"topology `{topology.name}` is not strongly connected: "
        f"rank {topology.names[a]} has no path to rank {topology.names[b]}",
        notes=["a message between them needs a way"],
        hint="add the missing links, or write `<->` where a link should go both ways",
    )


def _far_from(topology: Topology, length: Array, targets: Array, src: Array, column: Array) -> Array:
    """Return how far every node is from the targets at ``[node, column]``; -1 where that is farther than any source.

    All targets at once, nearest nodes first: the targets that come to be as far from a node are a bitset.
    """
    nodes, number = topology.num_nodes, np.arange(len(targets))
    start = np.zeros((nodes, (len(targets) + 63) // 64), dtype=np.uint64)
    start[targets, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    reached, fresh, ahead = start.copy(), {0: start}, _Ahead.of(topology, length)
    far = np.full((nodes, len(targets)), -1, dtype=np.int32)
    far[targets, number] = 0
    waiting = sorted(ahead)
    while waiting and (far[src, column] < 0).any():
        distance = waiting.pop(0)
        arriving = np.zeros_like(reached)
        for each, links in ahead.items():
            if distance - each in fresh:
                arriving[links.tails] |= np.bitwise_or.reduceat(
                    fresh[distance - each][links.heads], links.first, axis=0
                )
        arriving &= ~reached
        fresh = {d: bits for d, bits in fresh.items() if d > distance - max(ahead)}
        come = np.flatnonzero(arriving.any(axis=1))
        if len(come):
            reached |= arriving
            fresh[distance] = arriving
            bits = np.unpackbits(arriving[come].view(np.uint8), axis=1, bitorder="little")[:, : len(targets)]
            far[come] += (distance + 1) * bits.astype(np.int32)
            waiting = sorted({*waiting, *(distance + each for each in ahead)})
    return far


@attrs.frozen(eq=False)
class _Ahead:
    """The links of one length, by tail: those from node ``tails[i]`` end at ``heads[first[i]]`` and after."""

    tails: Array
    first: Array
    heads: Array

    @classmethod
    def of(cls, topology: Topology, length: Array) -> dict[int, _Ahead]:
        """Return the links of every length."""
        found = {}
        for each in np.unique(length).tolist():
            links = np.flatnonzero(length == each)
            links = links[np.argsort(topology.src[links], kind="stable")]
            tails, first = np.unique(topology.src[links], return_index=True)
            found[each] = cls(tails, first, topology.dst[links].astype(np.int64))
        return found


@attrs.frozen(eq=False)
class _Piece:
    """The ways of the pairs ``rows``: entries by number in the piece, with shares of ``unit``; the rest by pair."""

    rows: Array
    pair: Array
    link: Array
    part: Array
    unit: int
    hops: Array
    cables: Array
    wait: Array


def _neighbours(topology: Topology, length: Array, src: Array, dst: Array) -> tuple[Array, _Piece]:
    """Return which pairs are joined by links than which none is shorter, and the ways of those."""
    links = np.flatnonzero(length == length.min(initial=1))
    key = topology.src[links].astype(np.int64) * topology.num_nodes + topology.dst[links]
    links = links[np.argsort(key, kind="stable")]
    key, wanted = np.sort(key), src * topology.num_nodes + dst
    first, count = np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")
    count -= first
    joined = count > 0
    rows = np.flatnonzero(joined)
    first, count = first[rows], count[rows]
    pair = np.repeat(np.arange(len(rows)), count)
    link = links[np.arange(len(pair)) + np.repeat(first - np.cumsum(count) + count, count)]
    unit, waits = lcm(*np.unique(count).tolist()), latency_numbers(topology)[0]
    wait = _gathered(np.maximum, pair, waits[topology.link_class[link]], len(rows))
    cables = _gathered(np.maximum, pair, at_switch(topology)[link].astype(np.int64), len(rows))
    return joined, _Piece(rows, pair, link, (unit // count)[pair], unit, np.ones_like(rows), cables, wait)


@attrs.frozen(eq=False)
class _States:
    """Where messages have come to: of pair ``pair`` a share ``part`` is at ``node``, with this much behind it."""

    pair: Array
    node: Array
    part: Array
    hops: Array
    cables: Array
    wait: Array

    def rows(self, keep: Array) -> _States:
        return _States(*(getattr(self, f.name)[keep] for f in attrs.fields(_States)))

    def merged(self, other: _States, nodes: int) -> _States:
        """Return both, what is of one pair at one node as one state: shares add up, of the rest the most counts."""
        both = [np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in attrs.fields(_States)]
        keys, place = np.unique(both[0] * nodes + both[1], return_inverse=True)
        pair, node = np.divmod(keys, nodes)
        how = (np.add, np.maximum, np.maximum, np.maximum)
        return _States(pair, node, *(_gathered(h, place, c, len(keys)) for h, c in zip(how, both[2:], strict=True)))


def _gathered(how: np.ufunc, place: Array, values: Array, size: int) -> Array:
    """Combine values (none negative) that share a place."""
    found = np.zeros(size, dtype=values.dtype)
    how.at(found, place, values)
    return found


def _walk(topology: Topology, length: Array, rows: Array, src: Array, column: Array, far: Array) -> _Piece:
    """Follow the pairs link by link, what is farthest from its target first; what is nearer waits.

    So all that comes to a node has come before it goes on. Shares are whole numbers of 1/unit, and the unit grows where
    messages divide.
    """
    waits, none = latency_numbers(topology)[0], np.zeros(len(rows), dtype=np.int64)
    states = _States(np.arange(len(rows)), src, none + 1, none, none, none.astype(waits.dtype))
    switched = at_switch(topology)
    entries, unit = list[tuple[Array, Array, Array, int]](), 1
    while (left := (distance := far[states.node, column[states.pair]]).max(initial=0)) > 0:
        now, rest = states.rows(distance == left), states.rows(distance < left)
        of, link = _onward(topology, length, now, column, far)
        fan = np.bincount(of, minlength=len(now.node))
        split = lcm(*np.unique(fan).tolist())
        unit *= split
        wide = object if unit > _PARTS else now.part.dtype
        share = (now.part.astype(wide) * split // fan)[of]
        entries.append((now.pair[of], link, share, unit))
        come = _States(
            now.pair[of], topology.dst[link].astype(np.int64), share, now.hops[of] + 1,
            now.cables[of] + switched[link], now.wait[of] + waits[topology.link_class[link]],
        )  # fmt: skip
        states = come.merged(attrs.evolve(rest, part=rest.part.astype(wide) * split), topology.num_nodes)
    pair, link, part = (np.concatenate([none[:0], *(e[i] for e in entries)]) for i in range(3))
    scale = np.concatenate([none[:0], *(np.full(len(e[0]), unit // e[3], dtype=part.dtype) for e in entries)])
    return _Piece(rows, pair, link, part * scale, unit, states.hops, states.cables, states.wait)


def _onward(topology: Topology, length: Array, now: _States, column: Array, far: Array) -> tuple[Array, Array]:
    """Return (state, link) for every link from a state's node on a shortest way."""
    start, links = topology.out_links
    first = start[now.node]
    count = start[now.node + 1] - first
    of = np.repeat(np.arange(len(count)), count)
    link = links[np.arange(len(of)) + np.repeat(first - np.cumsum(count) + count, count)]
    target, after = column[now.pair[of]], far[topology.dst[link], column[now.pair[of]]]
    nearer = (after >= 0) & (after + length[link] == far[now.node[of], target])
    return of[nearer], link[nearer]


def _joined(topology: Topology, pieces: list[_Piece], pairs: int) -> Paths:
    """Put the pieces together, by pair, over one denominator."""
    unit, waits = lcm(*(piece.unit for piece in pieces)), latency_numbers(topology)[0]
    none = np.zeros(0, dtype=np.int64)
    hops, cables, wait = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64), np.zeros(pairs, waits.dtype)
    for piece in pieces:
        hops[piece.rows], cables[piece.rows], wait[piece.rows] = piece.hops, piece.cables, piece.wait
    pair = np.concatenate([none, *(piece.rows[piece.pair] for piece in pieces)])
    order = np.argsort(pair, kind="stable")
    link = np.concatenate([none, *(piece.link for piece in pieces)])[order]
    part = np.concatenate([none, *(_scaled(piece.part, unit // piece.unit, unit) for piece in pieces)])[order]
    pair = pair[order]
    part, unit = common_unit(part, unit)
    start = np.searchsorted(pair, np.arange(pairs + 1))
    return Paths(start, link, part, unit, hops, cables, wait)


def _scaled(part: Array, by: int, unit: int) -> Array:
    return (part.astype(object) if unit > _PARTS else part) * by
