"""Streams between boxes: which interval of which shard leaves and enters by which NIC, and in which round.

All that box i sends to box j is a line. Every NIC of box i carries its share of it, in proportion to its bandwidth:
first data of its own rank, then what other ranks of the box have more than their own NICs carry. The line is cut where
shards and the shares of NICs end and, in every share alike, where slices of rounds end. What all NICs send of a slice
is a line again, and the receiving NICs take their shares of it.
"""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.ragged import owners, starts

from .cluster import Cluster
from .rounds import Rounds

__all__ = ["Slices", "Streams", "fluid", "streams"]


@frozen(eq=False)
class Slices:
    """Pair ``pair[i]`` (source box times boxes, plus target box) sends ``start[i] .. end[i]`` of its data in round
    ``round[i]``, in units of weight. Sorted by pair and start; slices of a pair follow one another. ``number`` counts
    the rounds.
    """

    pair: Array
    round: Array
    start: Array
    end: Array
    number: int

    @classmethod
    def of(cls, rounds: Rounds, pieces: int, tail: int = 0) -> Slices:
        """Return the slices of rounds, of which those of more than 1/``pieces`` of all are cut, and those whose weight
        is less than ``tail`` become one, the last.
        """
        long = rounds.weight >= max(tail, 1)
        limit = max(-(-rounds.total // pieces), 1)
        cuts = np.where(long, -(-rounds.weight // limit), 1)
        first = np.where(long, starts(np.where(long, cuts, 0))[:-1], int(cuts[long].sum()))
        box = np.arange(rounds.target.shape[1])
        row, sender = np.nonzero(rounds.amount)
        each = cuts[row]
        of, part = owners(each), np.arange(int(each.sum())) - np.repeat(starts(each)[:-1], each)
        row, sender = row[of], sender[of]
        amount, count = rounds.amount[row, sender], cuts[row]
        size = amount * (part + 1) // count - amount * part // count
        pair = sender * len(box) + rounds.target[row, sender]
        total = int(cuts[long].sum()) + int(not long.all())
        weight = np.zeros(total, dtype=np.int64)
        np.maximum.at(weight, first[row] + part, size)
        number = _rising_and_falling(weight)[first[row] + part]
        order = np.lexsort((number, pair))
        pair, number, size = pair[order], number[order], size[order]
        ends = np.cumsum(size)
        before = ends - size
        base = before[np.searchsorted(pair, pair)]
        return cls(pair, number, before - base, ends - base, total)


def _rising_and_falling(weight: Array) -> Array:
    """Return the place of each round in an order in which weights rise and then fall: while the first round's data go
    to their NICs, and the last one's to their ranks, the fabric waits.

    >>> _rising_and_falling(np.array([9, 1, 5, 2])).tolist()
    [2, 0, 1, 3]
    """
    place = np.empty(len(weight), dtype=np.int64)
    ascending = np.argsort(weight, kind="stable")
    place[np.concatenate([ascending[::2], ascending[1::2][::-1]])] = np.arange(len(weight))
    return place


def fluid(between: Array, pieces: int) -> Slices:
    """Return slices in which all pairs of boxes send at the same time, 1/``pieces`` of their data in every round."""
    boxes = len(between)
    pair = np.flatnonzero(between.ravel() * ~np.eye(boxes, dtype=bool).ravel())
    amount = between.ravel()[pair].astype(np.int64)
    piece = np.arange(pieces)
    start, end = (amount[:, None] * at // pieces for at in (piece, piece + 1))
    return Slices(
        np.repeat(pair, pieces), np.tile(piece, len(pair)), start.ravel(), end.ravel(), pieces if len(pair) else 0
    )


@frozen(eq=False)
class Streams:
    """Pieces of shards: ``start[i] .. end[i]`` of the shard from ``source[i]`` to ``target[i]``, in 1/``scale`` of a
    unit of weight, leaves the box by rank ``leaves[i]`` and enters the other by rank ``enters[i]`` in ``round[i]``.
    """

    source: Array
    target: Array
    start: Array
    end: Array
    leaves: Array
    enters: Array
    round: Array
    scale: int

    def __len__(self) -> int:
        return len(self.source)


def streams(cluster: Cluster, demand: Array, slices: Slices) -> Streams:
    """Return the pieces of all shards between boxes with a positive weight. ``demand`` has shape (ranks, ranks)."""
    n, boxes, scale = len(demand), len(cluster), cluster.scale
    box = cluster.box_of
    between = cluster.between(demand)
    np.fill_diagonal(between, 0)
    source, target = np.nonzero((demand > 0) & (box[:, None] != box))
    pair = box[source] * boxes + box[target]
    # ranks of a box send to different ranks of the other at the same time, so that no rank receives from all at once;
    # boxes that rotate do the same
    turn = (target - source - (box[target] - box[source]) % boxes) % max(map(len, cluster.boxes.ranks))
    order = np.lexsort((target, turn, source, pair))
    source, target, pair = source[order], target[order], pair[order]
    amount = demand[source, target] * scale
    share = _Shares.of(cluster, between, pair, source, amount)
    ends = np.cumsum(amount)
    ahead = ends - amount
    ahead = ahead - ahead[np.searchsorted(pair * n + source, pair * n + source)]  # of the same pair and source
    rows, at, skipped, length, leaves = _leaving(share, pair, source, amount, ahead)
    cuts, slice_, moved = share.sent(cluster, slices)
    of, lo, hi = _cut(at, at + length, cuts)
    place = np.searchsorted(cuts, lo, side="right")
    rows, skipped, leaves, slice_ = rows[of], skipped[of] + lo - at[of], leaves[of], slice_[place]
    at, length = lo + moved[place], hi - lo
    cuts, enters = share.received(cluster, slices)
    of, lo, hi = _cut(at, at + length, cuts)
    row, start = rows[of], skipped[of] + lo - at[of]
    return Streams(
        source[row], target[row], start, start + hi - lo, leaves[of],
        enters[np.searchsorted(cuts, lo, side="right")], slices.round[slice_[of]], scale,
    )  # fmt: skip


def _leaving(
    share: _Shares, pair: Array, source: Array, amount: Array, ahead: Array
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Return (shard, place on the pair's line, how much of the shard is before it, length, NIC) of every piece that one
    NIC carries; ``ahead`` is what its source sends to the box before each shard.
    """
    room = share.room[pair, source]
    own_end = np.clip(room - ahead, 0, amount)  # of every shard, what the rank's own NIC carries
    own = np.flatnonzero(own_end)
    excess = np.flatnonzero(own_end < amount)
    begun = share.excess[pair[excess], source[excess]] + np.maximum(ahead[excess] - room[excess], 0)
    of, lo, hi = _cut(begun, begun + amount[excess] - own_end[excess], share.lacking_ends)
    nic = share.lacking_nic[np.searchsorted(share.lacking_ends, lo, side="right")]
    row = excess[of]
    moved = share.base[pair[row], nic] + share.held[pair[row], nic] + lo - share.lacking[pair[row], nic]
    rows = np.concatenate([own, row])
    at = np.concatenate([share.base[pair, source][own] + ahead[own], moved])
    skipped = np.concatenate([0 * own, own_end[row] + lo - begun[of]])
    length = np.concatenate([own_end[own], hi - lo])
    return rows, at, skipped, length, np.concatenate([source[own], nic])


@frozen(eq=False)
class _Shares:
    """All lines, one after another, in 1/scale of a unit of weight; arrays of shape (pairs of boxes, ranks).

    ``base``: where the share of a rank's NIC begins; ``room``: its length. ``held``: how much of the rank's own data it
    carries. ``excess`` and ``lacking``: the ends before each rank of what ranks have too much, and NICs too little, on
    lines of their own; the NICs that lack data, ``lacking_nic``, do so up to ``lacking_ends``.
    """

    pair_base: Array
    between: Array
    base: Array
    room: Array
    held: Array
    excess: Array
    lacking: Array
    lacking_ends: Array
    lacking_nic: Array

    @classmethod
    def of(cls, cluster: Cluster, between: Array, pair: Array, source: Array, amount: Array) -> _Shares:
        boxes, n, scale = len(cluster), len(cluster.out), cluster.scale
        total = between.ravel().astype(np.int64)
        sender = np.repeat(np.arange(boxes), boxes)
        is_here = cluster.box_of[None, :] == sender[:, None]
        unit = cluster.shares[0]
        room = np.where(is_here, total[:, None] * unit, 0)
        have = np.zeros_like(room)
        np.add.at(have, (pair, source), amount)
        pair_base = starts(total * scale)
        base = pair_base[:-1, None] + (np.cumsum(room, axis=1) - room)
        over, short = np.maximum(have - room, 0), np.maximum(room - have, 0)
        # of every pair as much too much as too little: both lines are as long
        excess, lacking = (starts(x.ravel())[:-1].reshape(x.shape) for x in (over, short))
        some = np.flatnonzero(short.ravel())
        return cls(
            pair_base, between, base, room, np.minimum(have, room), excess, lacking,
            (lacking.ravel() + short.ravel())[some], some % n,
        )  # fmt: skip

    def sent(self, cluster: Cluster, slices: Slices) -> tuple[Array, Array, Array]:
        """Return, ascending, where the slices of all NICs end, the slice, and how far its data move to its own line.

        The lines of slices of a pair are where the pair's line is, one slice after another, in each the NICs in order.
        """
        row, nic, share = _each_rank(cluster, slices.pair // len(cluster), cluster.shares[0])
        pair, start = slices.pair[row], slices.start[row]
        length = slices.end[row] - start
        ends = self.base[pair, nic] + (start + length) * share
        before = starts(length * share)[:-1]
        line = self.pair_base[pair] + start * cluster.scale + before - before[np.searchsorted(row, row)]
        order = np.argsort(ends, kind="stable")
        return ends[order], row[order], (line - ends + length * share)[order]

    def received(self, cluster: Cluster, slices: Slices) -> tuple[Array, Array]:
        """Return, ascending, where on the slices' lines the shares of the receiving NICs end, and these NICs."""
        row, nic, share = _each_rank(cluster, slices.pair % len(cluster), cluster.shares[1])
        length = (slices.end - slices.start)[row] * share
        before = starts(length)[:-1]
        first = before[np.searchsorted(row, row)]
        ends = self.pair_base[slices.pair[row]] + slices.start[row] * cluster.scale + before - first + length
        order = np.argsort(ends, kind="stable")
        return ends[order], nic[order]


def _each_rank(cluster: Cluster, box: Array, shares: Array) -> tuple[Array, Array, Array]:
    """Return (row, rank, share of the rank in 1/scale of the box) for each rank with bandwidth of each row's box."""
    able = [np.array([rank for rank in ranks if shares[rank]]) for ranks in cluster.boxes.ranks]
    row = owners(np.array([len(ranks) for ranks in able])[box])
    rank = np.concatenate([able[one] for one in box.tolist()]) if len(row) else np.arange(0)
    return row, rank, shares[rank]


def _cut(start: Array, end: Array, at: Array) -> tuple[Array, Array, Array]:
    """Cut intervals of a line at these ascending places: return (interval, start, end) of every piece, in order."""
    first, last = np.searchsorted(at, start, side="right"), np.searchsorted(at, end, side="left")
    count = last - first + 1
    of = owners(count)
    number = np.arange(len(of)) - np.repeat(starts(count)[:-1], count)
    place = first[of] + number
    ends = np.append(at, 0)
    lo = np.where(number == 0, start[of], ends[np.maximum(place - 1, 0)])
    hi = np.where(number == count[of] - 1, end[of], ends[np.minimum(place, len(at))])
    return of, lo, hi
