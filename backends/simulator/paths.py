"""Routes through a network as columns: given routes, and all shortest routes of pairs of nodes."""

from __future__ import annotations

from math import lcm

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error
from collc.ir.ragged import group_starts, owners, ranges
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .numbers import common_unit, latency_numbers, total

__all__ = ["SplitRoutes", "given_routes", "shortest_routes"]

_BATCH_WORDS = 1 << 20  # words of bitsets in one batch
_BATCH_PAIRS = 1 << 16  # pairs of nodes in one batch
_LARGEST_UNIT = 1 << 40  # the largest unit for which shares have 64 bits


@attrs.frozen(eq=False)
class SplitRoutes:
    """Route r uses ``link[e]`` with the share ``part[e]/unit`` of its data, for e in start[r] .. start[r+1].

    A route may divide among several sequences of links of equal length. ``hops`` counts the links from end to end,
    ``cables`` those at a switch, and ``latency`` sums their latencies (in whole numbers of :func:`latency_numbers`). If
    the sequences differ, the largest counts. With a unit of 1 a share of 0 is a link that the route uses and another
    loads.
    """

    start: Array
    link: Array
    part: Array
    unit: int
    hops: Array
    cables: Array
    latency: Array

    def __len__(self) -> int:
        return len(self.start) - 1


def at_switch(topology: Topology) -> Array:
    """Return whether each link begins or ends at a switch."""
    return (topology.src >= topology.num_ranks) | (topology.dst >= topology.num_ranks)


def given_routes(topology: Topology, routes: Routes) -> SplitRoutes:
    """Return the routes of a schedule: a message goes undivided over its links; links that it shares may not count."""
    start, link = routes.start.astype(np.int64), routes.links.astype(np.int64)
    hops = np.diff(start)
    latency, cables = latency_numbers(topology)[0][topology.link_class], at_switch(topology).astype(np.int64)
    sums = (_sum_over_routes(start, link, column) for column in (cables, latency))
    part = routes.carries.astype(np.int64) if len(routes.carries) else np.broadcast_to(np.int64(1), len(link))
    return SplitRoutes(start, link, part, 1, hops, *sums)


def _sum_over_routes(start: Array, link: Array, value: Array) -> Array:
    """Return the sum over each route of a number of its links; a product if all links have the same number."""
    if (value == value[:1]).all():
        return np.diff(start) * (value[0] if len(value) else 0)
    hops = np.diff(start)
    return total(owners(hops), value[link], len(hops))


# ---- shortest routes


def shortest_routes(topology: Topology, src: Array, dst: Array, lengths: tuple[int, int] = (1, 1)) -> SplitRoutes:
    """Return all shortest routes of each pair of different nodes, divided evenly at every node among the next links.

    ``lengths`` are those of a link between ranks and of a link at a switch. Raises C0301 if there is no route. A batch
    holds the pairs of some targets.
    """
    length = np.where(at_switch(topology), lengths[1], lengths[0])
    words = max(1, _BATCH_WORDS // max(topology.num_links, 1))
    joined, neighbours = _neighbours(topology, length, src, dst)
    batches, at = [neighbours], 0
    order = np.argsort(dst, kind="stable")
    order = order[~joined[order]]
    while at < len(order):
        last = int(np.searchsorted(dst[order], dst[order[at]] + 64 * words))
        rows = order[at : min(last, at + _BATCH_PAIRS)]
        targets, column = np.unique(dst[rows], return_inverse=True)
        far = _distances(topology, length, targets, src[rows], column)
        if (far[src[rows], column] < 0).any():
            row = int(rows[np.argmax(far[src[rows], column] < 0)])
            raise _unreachable(topology, int(src[row]), int(dst[row]))
        batches.append(_follow(topology, length, rows, src[rows], column, far))
        at += len(rows)
    return _merge(topology, batches, len(src))


def _unreachable(topology: Topology, a: int, b: int) -> Exception:
    return error(
        "C0301",
        f"topology `{topology.name}` is not strongly connected: "
        f"rank {topology.names[a]} has no route to rank {topology.names[b]}",
        notes=["a message between them needs a route"],
        hint="add the missing links, or write `<->` where a link should go both ways",
    )


def _distances(topology: Topology, length: Array, targets: Array, src: Array, column: Array) -> Array:
    """Return the distance of every node to every target at ``[node, column]``; -1 beyond the farthest source.

    All targets at once, in order of distance: a bitset holds the targets that a node reaches at one distance.
    """
    nodes, number = topology.num_nodes, np.arange(len(targets))
    start = np.zeros((nodes, (len(targets) + 63) // 64), dtype=np.uint64)
    start[targets, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    reached, fresh, by_length = start.copy(), {0: start}, _LinksByTail.of(topology, length)
    far = np.full((nodes, len(targets)), -1, dtype=np.int32)
    far[targets, number] = 0
    distances = sorted(by_length)
    while distances and (far[src, column] < 0).any():
        distance = distances.pop(0)
        arriving = np.zeros_like(reached)
        for each, links in by_length.items():
            if distance - each in fresh:
                arriving[links.tails] |= np.bitwise_or.reduceat(
                    fresh[distance - each][links.heads], links.first, axis=0
                )
        arriving &= ~reached
        fresh = {d: bits for d, bits in fresh.items() if d > distance - max(by_length)}
        nodes_now = np.flatnonzero(arriving.any(axis=1))
        if len(nodes_now):
            reached |= arriving
            fresh[distance] = arriving
            bits = np.unpackbits(arriving[nodes_now].view(np.uint8), axis=1, bitorder="little")[:, : len(targets)]
            far[nodes_now] += (distance + 1) * bits.astype(np.int32)
            distances = sorted({*distances, *(distance + each for each in by_length)})
    return far


@attrs.frozen(eq=False)
class _LinksByTail:
    """The links of one length, by tail: those from node ``tails[i]`` end at ``heads[first[i]]`` and after."""

    tails: Array
    first: Array
    heads: Array

    @classmethod
    def of(cls, topology: Topology, length: Array) -> dict[int, _LinksByTail]:
        """Return the links by length."""
        found = {}
        for each in np.unique(length).tolist():
            links = np.flatnonzero(length == each)
            links = links[np.argsort(topology.src[links], kind="stable")]
            tails, first = np.unique(topology.src[links], return_index=True)
            found[each] = cls(tails, first, topology.dst[links].astype(np.int64))
        return found


@attrs.frozen(eq=False)
class _Batch:
    """The routes of the pairs ``rows``. ``link`` and ``part`` (in 1/unit) are of ``pair``, a number in the batch."""

    rows: Array
    pair: Array
    link: Array
    part: Array
    unit: int
    hops: Array
    cables: Array
    latency: Array


def _neighbours(topology: Topology, length: Array, src: Array, dst: Array) -> tuple[Array, _Batch]:
    """Return which pairs are joined by links of the least length, and their routes."""
    links = np.flatnonzero(length == length.min(initial=1))
    key = topology.src[links].astype(np.int64) * topology.num_nodes + topology.dst[links]
    links = links[np.argsort(key, kind="stable")]
    key, pair_key = np.sort(key), src * topology.num_nodes + dst
    first, count = np.searchsorted(key, pair_key), np.searchsorted(key, pair_key, side="right")
    count -= first
    joined = count > 0
    rows = np.flatnonzero(joined)
    first, count = first[rows], count[rows]
    pair, link = owners(count), links[ranges(first, count)]
    unit, latencies = lcm(*np.unique(count).tolist()), latency_numbers(topology)[0]
    latency = _combine(np.maximum, pair, latencies[topology.link_class[link]], len(rows))
    cables = _combine(np.maximum, pair, at_switch(topology)[link].astype(np.int64), len(rows))
    return joined, _Batch(rows, pair, link, (unit // count)[pair], unit, np.ones_like(rows), cables, latency)


@attrs.frozen(eq=False)
class _States:
    """How far messages have come: a share ``part`` of pair ``pair`` is at ``node``, after these hops and latencies."""

    pair: Array
    node: Array
    part: Array
    hops: Array
    cables: Array
    latency: Array

    def rows(self, keep: Array) -> _States:
        return _States(*(getattr(self, f.name)[keep] for f in attrs.fields(_States)))

    def merged(self, other: _States, nodes: int) -> _States:
        """Return both, with one state for each pair and node: the sum of the shares, the maximum of the rest."""
        both = [np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in attrs.fields(_States)]
        keys, place = np.unique(both[0] * nodes + both[1], return_inverse=True)
        pair, node = np.divmod(keys, nodes)
        functions = (np.add, np.maximum, np.maximum, np.maximum)
        columns = zip(functions, both[2:], strict=True)
        return _States(pair, node, *(_combine(function, place, column, len(keys)) for function, column in columns))


def _combine(function: np.ufunc, place: Array, values: Array, size: int) -> Array:
    """Combine values (none negative) that share a place."""
    found = np.zeros(size, dtype=values.dtype)
    function.at(found, place, values)
    return found


def _follow(topology: Topology, length: Array, rows: Array, src: Array, column: Array, far: Array) -> _Batch:
    """Follow the pairs link by link, the states farthest from their target first.

    So all shares of a pair are at a node before they go on. Shares are whole numbers of 1/unit. The unit grows where
    messages divide.
    """
    latencies, none = latency_numbers(topology)[0], np.zeros(len(rows), dtype=np.int64)
    states = _States(np.arange(len(rows)), src, none + 1, none, none, none.astype(latencies.dtype))
    switched = at_switch(topology)
    entries, unit = list[tuple[Array, Array, Array, int]](), 1
    while (farthest := (distance := far[states.node, column[states.pair]]).max(initial=0)) > 0:
        now, rest = states.rows(distance == farthest), states.rows(distance < farthest)
        of, link = _onward(topology, length, now, column, far)
        fan = np.bincount(of, minlength=len(now.node))
        split = lcm(*np.unique(fan).tolist())
        unit *= split
        wide = object if unit > _LARGEST_UNIT else now.part.dtype
        share = (now.part.astype(wide) * split // fan)[of]
        entries.append((now.pair[of], link, share, unit))
        moved = _States(
            now.pair[of], topology.dst[link].astype(np.int64), share, now.hops[of] + 1,
            now.cables[of] + switched[link], now.latency[of] + latencies[topology.link_class[link]],
        )  # fmt: skip
        states = moved.merged(attrs.evolve(rest, part=rest.part.astype(wide) * split), topology.num_nodes)
    pair, link, part = (np.concatenate([none[:0], *(e[i] for e in entries)]) for i in range(3))
    scale = np.concatenate([none[:0], *(np.full(len(e[0]), unit // e[3], dtype=part.dtype) for e in entries)])
    return _Batch(rows, pair, link, part * scale, unit, states.hops, states.cables, states.latency)


def _onward(topology: Topology, length: Array, now: _States, column: Array, far: Array) -> tuple[Array, Array]:
    """Return (state, link) for every link from a state's node on a shortest route."""
    start, links = topology.out_links
    first = start[now.node]
    count = start[now.node + 1] - first
    of, link = owners(count), links[ranges(first, count)]
    target, after = column[now.pair[of]], far[topology.dst[link], column[now.pair[of]]]
    nearer = (after >= 0) & (after + length[link] == far[now.node[of], target])
    return of[nearer], link[nearer]


def _merge(topology: Topology, batches: list[_Batch], pairs: int) -> SplitRoutes:
    """Return the routes of all batches, by pair, over one denominator."""
    unit, dtype = lcm(*(batch.unit for batch in batches)), latency_numbers(topology)[0].dtype
    none = np.zeros(0, dtype=np.int64)
    hops, cables, latency = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64), np.zeros(pairs, dtype)
    for batch in batches:
        hops[batch.rows], cables[batch.rows], latency[batch.rows] = batch.hops, batch.cables, batch.latency
    pair = np.concatenate([none, *(batch.rows[batch.pair] for batch in batches)])
    order = np.argsort(pair, kind="stable")
    link = np.concatenate([none, *(batch.link for batch in batches)])[order]
    part = np.concatenate([none, *(_scaled(batch.part, unit // batch.unit, unit) for batch in batches)])[order]
    pair = pair[order]
    part, unit = common_unit(part, unit)
    start = group_starts(pair, pairs)
    return SplitRoutes(start, link, part, unit, hops, cables, latency)


def _scaled(part: Array, by: int, unit: int) -> Array:
    return (part.astype(object) if unit > _LARGEST_UNIT else part) * by
