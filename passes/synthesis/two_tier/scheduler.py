"""All-to-all between boxes with a fast inside, as FAST does it (arXiv 2505.09764), exact up to the size of a part.

Three things overlap. Inside the source box, data move to the NICs that have less than their share. Boxes exchange in
one-to-one rounds (:mod:`.rounds`), each NIC its share (:mod:`.streams`). Inside the target box, data go on to their
rank. The links of the busiest box to the fabric wait only in the first and the last step. So the time of the fabric is
the largest of the boxes' sums over their bandwidth, however uneven the data are.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.diagnostic import Excess, Subject, error
from collc.ir.frozen import frozen
from collc.ir.ragged import owners, starts
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import MOST_LISTED, SymmetricSchedule

from ...applying import not_scheduled
from ...base import Pass, remark
from ...knobs import CHUNKS, Knob
from ...ranges import Range
from ..one_box import template_of
from ..operations import require_routes
from ..torus.box_routing import BoxRouter, require_boxes
from .cluster import Cluster
from .rounds import Rounds, box_rounds
from .streams import Slices, Streams, fluid, streams

__all__ = ["TwoTier", "plan"]

_MOST_PARTS = 1 << 16
_MOST_PIECES = 256
#: the most pieces that are chosen if all boxes send at the same time: each piece cuts the data of every pair of boxes
_MOST_FLUID = 32
_MOST_ROWS = 1 << 25
#: parts of every shard to try first; then parts are 2^-k of what a NIC carries in a round, for k to ``_FINEST``
_ALIKE = (1, 2, 3, 4, 6, 8, 12, 16)
_FINEST = 9
#: how much more than their share links may carry for fewer parts
_CLOSE = Fraction(1, 500)
#: rounds that together carry less than this are one
_TAIL = Fraction(1, 128)
#: sums of weights beyond this are planned with fewer digits
_MOST_WEIGHT = 1 << 44
#: a weight of 1 is a multiple of this number of units if possible: its half, third, .. are whole then
_UNITS = 5040


@attrs.frozen
class TwoTier(Pass):
    """Synthesize an all-to-all, even or uneven, on a cluster of boxes.

    A large one on alike boxes is a template: the transfers of one box, and their rotation.

    Raises C0503 (another collective), C0562 (number of chunks), C0563 (too large), C0587 (no boxes), C0589 (an
    impossible number of pieces).
    """

    name: ClassVar[str] = "two-tier"
    summary: ClassVar[str] = "all-to-all across boxes in balanced one-to-one rounds, even or uneven"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    takes_fewer: ClassVar[bool] = True
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    rounds: bool = attrs.field(
        default=True,
        metadata={"help": "exchange one-to-one between boxes; `false`: all boxes at once, each in its proportion"},
    )
    slices: int | None = attrs.field(
        default=None,
        metadata={
            "help": "no round carries more than 1/slices of the data of the busiest box (default: of least time)",
            "range": Range(1, _MOST_PIECES, "C0589"),
        },
    )
    chunks: int | None = attrs.field(
        default=None,
        metadata={
            "help": "maximum chunks per shard (default: as many as keep all NICs within 0.2 %)",
            "range": Range(1, _MOST_PARTS, "C0562", divides="shard"),
        },
    )

    def with_chunks(self, chunks: int) -> TwoTier:
        return attrs.evolve(self, chunks=min(chunks, _MOST_PARTS))

    def plans_by_size(self, ir: Problem) -> bool:
        return self.slices is None

    def require(self, ir: Problem) -> None:
        if ir.collective.kind != "alltoall":
            raise not_scheduled("C0503", self.name, ir, ("alltoall", "alltoallv"))
        require_routes(ir.topology, ir.collective)
        require_boxes(self.name, ir.topology)

    def run(self, ir: Problem) -> Schedule | SymmetricSchedule:
        self.require(ir)
        cluster = Cluster.of(ir.topology, require_boxes(self.name, ir.topology))
        demand = _demand(ir)
        sliced = plan(cluster, demand, self.rounds, self._pieces(ir, cluster, demand))
        moved = streams(cluster, demand, sliced)
        parts, lo, hi = _parts(cluster, demand, moved, sliced.number, self.chunks)
        router = BoxRouter(ir.topology, boxes=cluster.boxes)
        hops = _hops(cluster, demand, moved, parts, lo, hi, router)
        if len(hops.step) > _MOST_ROWS:
            raise error(
                "C0563",
                f"an all-to-all on `{ir.topology.name}` has {len(hops.step)} transfers, more than {_MOST_ROWS}",
                hint="use fewer `chunks`, or a smaller `slices`", exit_status=3,
                excess=Excess("transfers", len(hops.step), _MOST_ROWS), about=(Subject.TOPOLOGY,),
            )  # fmt: skip
        self._state(cluster, demand, hops, parts)
        found = hops.schedule(ir, router, parts)
        template = template_of(found) if len(found) > MOST_LISTED else None
        return found if template is None else template

    def _pieces(self, ir: Problem, cluster: Cluster, demand: Array) -> int:
        if self.slices is not None:
            return self.slices
        most = _MOST_PIECES if self.rounds and cluster.is_even else _MOST_FLUID
        found = [1 << k for k in range(most.bit_length())]
        return min(found, key=lambda pieces: (_predicted(ir, cluster, demand, pieces), pieces))

    def _state(self, cluster: Cluster, demand: Array, hops: _Hops, parts: int) -> None:
        """State the rounds, the bound of the fabric, and how much moves inside boxes."""
        across = ~hops.inside & (cluster.box_of[hops.src] != cluster.box_of[hops.dst])
        number = len(distinct(hops.step[across]))
        vector = int(demand.sum(axis=1).max())
        least = cluster.fabric_time(demand) / vector
        relayed = float(hops.moved_inside(demand, parts) / int(demand.sum()))
        how = "one-to-one rounds" if self.rounds and cluster.is_even else "rounds of all boxes at once"
        remark(
            f"two-tier: {number} {how} on {cluster.boxes.text}; the fabric alone takes {float(least):.4g} per byte; "
            f"{relayed:.1%} of the data change the NIC or the rank inside a box"
        )
        if self.rounds and not cluster.is_even:
            remark("two-tier: boxes differ in bandwidth, so all send at the same time")


def plan(cluster: Cluster, demand: Array, rounds: bool, pieces: int, tail: Fraction = _TAIL) -> Slices:
    """Return what each pair of boxes exchanges in which round; ``tail`` is the share of all that the last may carry
    besides.
    """
    between = cluster.between(demand)
    np.fill_diagonal(between, 0)
    if not rounds or not cluster.is_even:
        return fluid(between, pieces)
    found = box_rounds(between)
    return Slices.of(found, pieces, _shortest(found, tail))


def _shortest(rounds: Rounds, tail: Fraction) -> int:
    """Return the least weight of a round if all shorter ones together carry at most ``tail`` of all."""
    ascending = np.sort(rounds.weight)
    short = int(np.searchsorted(np.cumsum(ascending), int(rounds.total * tail), side="right"))
    return int(ascending[short]) if short < len(ascending) else 1


def _demand(ir: Problem) -> Array:
    """Return the weights as a matrix of ranks, in units so small that fractions of them do not matter; of weights that
    are too large digits are lost, but none that is positive becomes 0.
    """
    n = ir.topology.num_ranks
    weight = ir.collective.weight.reshape(n, n).astype(np.int64)
    common = int(np.gcd.reduce(weight.ravel())) or 1
    weight = weight // common
    if (room := _MOST_WEIGHT // (int(weight.sum()) * _UNITS)) > 0:
        return weight * (_UNITS << (room.bit_length() - 1))
    extra = max(int(weight.sum()).bit_length() - _MOST_WEIGHT.bit_length(), 0)
    return np.where(weight > 0, np.maximum(weight >> extra, 1), 0)


def _predicted(ir: Problem, cluster: Cluster, demand: Array, pieces: int) -> Fraction:
    """Return the seconds that depend on the number of pieces: a latency for each, and a first and a last step in which
    the busiest ranks pass on their data inside boxes while the fabric waits.
    """
    topology = ir.topology
    alpha = max(kind.latency for kind in topology.classes) or DEFAULT_ALPHA
    size = ir.collective.size
    scale = unit_seconds(topology) * Fraction(_USUAL_SIZE if size is None else size, int(demand.sum(axis=1).max()) or 1)
    far = np.where(cluster.box_of[:, None] != cluster.box_of, demand, 0)
    inside = cluster.inside_bandwidth()
    if not inside:
        return alpha * pieces
    ramp = sum(Fraction(int(far.sum(axis=axis).max(initial=0))) for axis in (0, 1)) / inside
    return alpha * pieces + ramp * scale / pieces


#: a step's worth of data is worth a latency where nothing says how much data there are
_USUAL_SIZE = 64 << 20


# ---- parts of shards


def _parts(
    cluster: Cluster, demand: Array, moved: Streams, rounds: int, most: int | None
) -> tuple[int, Array, Array]:  # fmt: skip
    """Return into how many parts shards are cut, and the first and the last (exclusive) part of each piece."""
    best: tuple[Fraction, int, Array, Array] | None = None
    least = cluster.fabric_time(demand)
    for parts in _resolutions(cluster, demand, rounds, most or _MOST_PARTS):
        whole = int(np.lcm.reduce(distinct(parts))) if parts.size else 1
        each = parts[moved.source, moved.target]
        lo, hi = (_rounded(demand, moved, ends, each) * (whole // each) for ends in (moved.start, moved.end))
        time = _fabric_time(cluster, demand, moved, rounds, whole, lo, hi)
        if best is None or time < best[0]:
            best = time, whole, lo, hi
        if time <= least * (1 + _CLOSE):
            break
    assert best is not None
    return best[1:]


def _resolutions(cluster: Cluster, demand: Array, rounds: int, most: int) -> Iterator[Array]:
    """Yield into how many parts to cut each shard, ascending: first all alike, then large shards in more than small
    ones, so that a part is a fraction of what a NIC carries in a round.
    """
    for parts in [number for number in _ALIKE if number <= most]:
        yield np.full(demand.shape, parts, dtype=np.int64)
    between = cluster.between(demand)
    np.fill_diagonal(between, 0)
    busiest = max(int(between.sum(axis=axis).max(initial=0)) for axis in (0, 1))
    carried = max(busiest // (max(rounds, 1) * max(map(len, cluster.boxes.ranks))), 1)
    highest = most.bit_length() - 1
    for fraction in range(_FINEST + 1):
        needed = (demand << fraction) // carried
        bits = np.ceil(np.log2(np.maximum(needed, 1))).astype(np.int64)
        yield np.int64(1) << np.minimum(bits, highest)


def _rounded(demand: Array, moved: Streams, at: Array, parts: Array) -> Array:
    """Return places in shards in whole parts, to the nearest one; ``parts`` are those of each piece's shard."""
    length = demand[moved.source, moved.target] * moved.scale
    shift = max(int(length.max(initial=0)).bit_length() + int(parts.max(initial=1)).bit_length() - 61, 0)
    if shift:  # far below a part
        return _nearest(at >> shift, np.maximum(length >> shift, 1), parts)
    return _nearest(at, length, parts)


def _nearest(at: Array, length: Array, parts: Array) -> Array:
    found: Array = np.minimum((2 * at * parts + length) // (2 * length), parts)
    return found


def _fabric_time(
    cluster: Cluster, demand: Array, moved: Streams, rounds: int, parts: int, lo: Array, hi: Array
) -> Fraction:
    """Return the sum over rounds of the time of the busiest NIC, sending or receiving."""
    n = len(demand)
    amount = (hi - lo) * demand[moved.source, moved.target]
    total = np.zeros(rounds, dtype=np.float64)
    for nic, units in ((moved.leaves, cluster.out), (moved.enters, cluster.into)):
        load = np.bincount(moved.round * n + nic, amount, rounds * n).reshape(rounds, n)
        total = np.maximum(total, (load / np.maximum(units, 1)).max(axis=1, initial=0))
    return Fraction(float(total.sum())) / (parts * cluster.unit)


# ---- transfers


@frozen(eq=False)
class _Hops:
    """Parts ``lo .. hi`` of the shard from ``source`` to ``target`` go from rank ``src`` to rank ``dst`` in ``step``,
    ``inside`` a box on their way to another or from it.
    """

    source: Array
    target: Array
    lo: Array
    hi: Array
    src: Array
    dst: Array
    step: Array
    inside: Array

    def moved_inside(self, demand: Array, parts: int) -> Fraction:
        """Return what moves inside boxes on its way to others, in units of weight."""
        amount = ((self.hi - self.lo) * demand[self.source, self.target])[self.inside]
        return Fraction(int(amount.sum()), parts)

    def schedule(self, ir: Problem, router: BoxRouter, parts: int) -> Schedule:
        order = np.lexsort((self.lo, self.target, self.source, self.step))
        keys = router.keys(self.src, self.dst, 0, 0)[order]
        used = distinct(keys)
        return Schedule(
            ir.topology, ir.collective, parts, step=self.step[order],
            action=np.full(len(order), Action.COPY, dtype=np.uint8),
            shard=(self.source * ir.topology.num_ranks + self.target)[order], lo=self.lo[order], hi=self.hi[order],
            route=np.searchsorted(used, keys), routes=router.routes(used), scheduler=TwoTier.name,
        )  # fmt: skip


def _hops(
    cluster: Cluster, demand: Array, moved: Streams, parts: int, lo: Array, hi: Array, router: BoxRouter
) -> _Hops:  # fmt: skip
    """Return all transfers. A piece of round r reaches its NIC in step r, the other box in r + 1, its rank in r + 2."""
    some = np.flatnonzero(lo < hi)
    far = (moved.source[some], moved.target[some], lo[some], hi[some])
    leaves, enters = moved.leaves[some], moved.enters[some]
    first = np.unique(moved.round[some], return_inverse=True)[1].reshape(-1)  # no round is without data
    source, target = np.nonzero(demand >= 0)
    near = source != target
    crossing = cluster.box_of[source] != cluster.box_of[target]
    empty = near & crossing & (demand[source, target] == 0)
    idle = (source[empty], target[empty], *_all(int(empty.sum()), parts))
    gates = [_gates(cluster, units) for units in (cluster.out, cluster.into)]
    shift = int(bool(len(some)) and bool((leaves != far[0]).any()))  # a first step only if some data change the NIC
    legs = [
        (far, far[0], leaves, first + shift - 1, True), (far, leaves, enters, first + shift, False),
        (far, enters, far[1], first + shift + 1, True),
        (idle, idle[0], gates[0][idle[0]], 0 * idle[0] + shift - 1, True),
        (idle, gates[0][idle[0]], gates[1][idle[1]], 0 * idle[0] + shift, False),
        (idle, gates[1][idle[1]], idle[1], 0 * idle[0] + shift + 1, True),
    ]  # fmt: skip
    columns: list[tuple[Array, ...]] = []
    for data, src, dst, step, inside in legs:
        rows = np.flatnonzero(src != dst)
        columns.append((*(x[rows] for x in data), src[rows], dst[rows], step[rows], np.full(len(rows), inside)))
    between = _Hops(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    between = attrs.evolve(between, step=between.step - between.step.min(initial=0))
    within = _Room.beside(cluster, demand, between, parts, router).filled(
        source[near & ~crossing], target[near & ~crossing]
    )
    joined = {f.name: np.concatenate([getattr(one, f.name) for one in (between, within)]) for f in attrs.fields(_Hops)}
    return _Hops(**joined)


def _all(count: int, parts: int) -> tuple[Array, Array]:
    return np.zeros(count, dtype=np.int64), np.full(count, parts, dtype=np.int64)


def _gates(cluster: Cluster, units: Array) -> Array:
    """Return for every rank the rank by which its data leave or enter: itself if it has bandwidth, else the next."""
    found = np.arange(len(units))
    for ranks in cluster.boxes.ranks:
        able = [rank for rank in ranks if units[rank]]
        for place, rank in enumerate(ranks):
            if not units[rank]:
                found[rank] = able[place % len(able)]
    return found


class _Room:
    """What links inside boxes can carry besides, step by step, while the fabric is busy; in parts times weights.

    ``left`` has shape (links, steps).
    """

    def __init__(self, demand: Array, parts: int, router: BoxRouter, left: Array):
        self.demand, self.parts, self.router, self.left = demand, parts, router, left

    @classmethod
    def beside(cls, cluster: Cluster, demand: Array, hops: _Hops, parts: int, router: BoxRouter) -> _Room:
        """Return the room that transfers between boxes leave."""
        n, links, steps = len(demand), cluster.topology.num_links, int(hops.step.max(initial=-1)) + 1
        amount = ((hops.hi - hops.lo) * demand[hops.source, hops.target]).astype(np.float64)
        time = np.zeros(steps)
        fabric = np.flatnonzero(~hops.inside)
        for ends, units in ((hops.src, cluster.out), (hops.dst, cluster.into)):
            load = np.bincount(ends[fabric] * steps + hops.step[fabric], amount[fabric], n * steps).reshape(n, steps)
            time = np.maximum(time, (load / np.maximum(units, 1)[:, None]).max(axis=0, initial=0))
        near = np.flatnonzero(hops.inside)
        keys, place = np.unique(router.keys(hops.src[near], hops.dst[near], 0, 0), return_inverse=True)
        routes = router.routes(keys)
        place = place.reshape(-1)
        link = routes.links[routes.places(place)].astype(np.int64)
        row = near[owners(routes.lengths[place])]
        load = np.bincount(link * steps + hops.step[row], amount[row], links * steps).reshape(links, steps)
        speeds = np.array([float(kind.bandwidth / cluster.unit) for kind in cluster.topology.classes])
        return cls(demand, parts, router, speeds[cluster.topology.link_class][:, None] * time - load)

    def filled(self, source: Array, target: Array) -> _Hops:
        """Return transfers inside boxes, large ones first, each in the steps with the most room, whole if it fits."""
        rows: list[tuple[int, int, int, int, int]] = []
        order = np.lexsort((target, source, -self.demand[source, target]))
        source, target = source[order], target[order]
        keys = self.router.keys(source, target, 0, 0)
        used = distinct(keys)
        routes = self.router.routes(used)
        for s, t, route in zip(source.tolist(), target.tolist(), np.searchsorted(used, keys).tolist(), strict=True):
            placed = self._placed(routes.links_of(route), int(self.demand[s, t]))
            rows += [(s, t, lo, hi, step) for lo, hi, step in placed]
        s_, t_, lo_, hi_, step_ = np.array(rows, dtype=np.int64).reshape(-1, 5).T
        return _Hops(s_, t_, lo_, hi_, s_, t_, step_, np.zeros(len(s_), dtype=bool))

    def _placed(self, links: list[int], weight: int) -> list[tuple[int, int, int]]:
        """Return the parts of a shard over these links by step, and take their room."""
        parts = self.parts
        room = self.left[links].min(axis=0)
        if not len(room) or not weight:
            return [(0, parts, 0)]
        best = int(np.argmax(room))
        if room[best] >= weight * parts or parts == 1:
            chosen, counts = np.array([best]), np.array([parts])
        else:
            # as many parts in each step as fit; what does not fit anywhere is spread over all
            whole = np.maximum(np.floor(room / weight), 0).astype(np.int64)
            chosen = np.argsort(-whole, kind="stable")
            before = starts(whole[chosen])[:-1]
            counts = np.clip(parts - before, 0, whole[chosen])
            rest = parts - int(counts.sum())
            counts += rest // len(counts) + (np.arange(len(counts)) < rest % len(counts))
        self.left[np.array(links)[:, None], chosen] -= counts * float(weight)
        ends = np.cumsum(counts)
        found = zip((ends - counts).tolist(), ends.tolist(), chosen.tolist(), strict=True)
        return [(lo, hi, step) for lo, hi, step in found if lo < hi]
