"""Breadth-first broadcast schedules (section 6 and appendix E of the direct-connect paper), exact and without a solver.

At step t every node u receives the shards of all nodes at distance t, through the in-links that lie on shortest paths.
LP (1) of the paper divides each shard among them; :mod:`.balance` solves it in integers. Nodes whose shards may use
their in-links in the same pattern share one solution, so symmetric networks are cheap.

Links may differ in bandwidth and latency (:mod:`.heterogeneous`). Data still travel breadth first by hops, as d(v,u) in
LP (14) counts them: a slow link on a shortest path is avoided only if there is another. The user may fix the number of
chunks per shard (:mod:`.chunked`). Shards may differ in size (:mod:`.uneven`).

With parallel links beside single ones (a torus with a side of 2) the optimal breadth-first schedule is not
bandwidth-optimal. There :mod:`.relaxed` lets data arrive after their first chance, in the same number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import lcm
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, fit
from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.progress import progress
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import MOST_LISTED, SymmetricSchedule
from collc.ir.topology import Topology

from ...applying import not_scheduled, require_direct
from ...base import Pass, remark
from ...knobs import CHUNKS, Knob
from ...ranges import Range
from ..operations import require_commutative

# Judging a problem needs no algorithm: functions import those that they run.
if TYPE_CHECKING:
    from collc.ir.symmetric import AnySchedule

    from .balance import Balance, Histogram
    from .division import Division, Kinds

__all__ = ["BFB"]
Batch = tuple[int, Array, Array, Array, Array, int]  # step, shard, link, lo, hi, parts

_MOST_PARTS = 2**62
#: transfers up to which parts are rounded to see which schedule is faster
_MOST_ROUNDED = 1 << 17
_ALLGATHERS = ("allgather", "reduce-scatter", "allreduce")
_BROADCASTS = ("broadcast", "reduce")


@frozen
class BFB(Pass):
    """Synthesize the optimal breadth-first schedule: as many steps as the diameter, links balanced exactly.

    With ``relax`` (the default) data may arrive later than breadth first if that takes less bandwidth time. Different
    links are balanced by time, for data of ``size`` bytes if latencies differ. ``chunks`` fixes the number of chunks
    per shard.

    On a topology with a symmetry one receiver is solved (:mod:`.symmetric`), except for broadcast and reduce; schedules
    of more than 2^20 transfers stay templates.

    Allgather and broadcast are built directly; reduce-scatter and reduce on the transpose, then reversed
    (Corollary 1.1);
    allreduce is reduce-scatter, then allgather. Raises C0301 (not strongly connected), C0501 (switches), C0503 (a
    collective it cannot do), C0504 (more parts than can be counted), C0550 (an impossible number of chunks or
    bytes), C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "bfb"
    summary: ClassVar[str] = (
        "breadth-first broadcast with exactly balanced links, for any strongly connected network of ranks"
    )
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule
    varies: ClassVar[tuple[Knob, ...]] = (CHUNKS,)

    collective: str | None = attrs.field(
        default=None, metadata={"help": "schedule only this half of an allreduce: allgather or reduce-scatter"}
    )

    relax: bool = attrs.field(
        default=True, metadata={"help": "use later steps where parallel links would otherwise be unbalanced"}
    )

    chunks: int | None = attrs.field(
        default=None,
        metadata={
            "help": "equal chunks per shard (default: parts of any size)",
            "range": Range(1, code="C0550", divides="shard"),
        },
    )

    size: int | None = attrs.field(
        default=None,
        metadata={
            "help": "bytes to balance for where links differ in latency (default: the collective's size; "
            "without a size, latencies are ignored)",
            "range": Range(1, code="C0550"),
        },
    )

    template: bool | None = attrs.field(
        default=None,
        metadata={"help": "on a symmetric network, keep one shard's transfers (default: above 16,384 transfers)"},
    )

    def turned(self, collective: Collective, found: Collective) -> Collective:
        return self._phase(collective)

    def _keeps(self, schedule: SymmetricSchedule) -> bool:
        return len(schedule) > MOST_LISTED if self.template is None else self.template

    def plans_by_size(self, ir: Problem) -> bool:
        return self.size is None and len({kind.latency for kind in ir.topology.classes}) > 1

    def with_chunks(self, chunks: int) -> BFB:
        return attrs.evolve(self, chunks=chunks)

    def run(self, ir: Problem) -> AnySchedule:
        self.require(ir)
        topology, collective = ir.topology, self._phase(ir.collective)
        schedule = self._scheduled(topology, collective)
        if isinstance(schedule, SymmetricSchedule) and not self._keeps(schedule):
            return schedule.unfold()
        if self.template and not isinstance(schedule, SymmetricSchedule):
            remark(f"bfb: no template, because collc knows no group of `{topology.name}`")
        return schedule

    def require(self, ir: Problem) -> None:
        problem = Problem(ir.topology, self._phase(ir.collective))
        require_commutative(self.name, problem.collective)
        if problem.collective.kind not in (*_ALLGATHERS, *_BROADCASTS):
            raise not_scheduled("C0503", self.name, problem, (*_ALLGATHERS, *_BROADCASTS))
        require_direct("C0501", self.name, problem)
        ir.topology.require_connected(problem.collective.kind)

    def _scheduled(self, topology: Topology, collective: Collective) -> AnySchedule:
        from ...schedule.compose import compose

        if collective.kind in ("allgather", "broadcast"):
            return self._forwards(topology, collective)
        if collective.kind == "allreduce":
            gather = attrs.evolve(collective, kind="allgather")
            return compose(self._backwards(topology, gather), self._forwards(topology, gather))
        return self._backwards(topology, collective.reversed())

    def _phase(self, collective: Collective) -> Collective:
        if self.collective is None:
            return collective
        if self.collective not in ("allgather", "reduce-scatter"):
            raise error(
                "C0511",
                f"bfb cannot schedule `{self.collective}` as half of an allreduce",
                hint="choose `allgather` or `reduce-scatter`",
                option="collective",
            )
        return attrs.evolve(collective, kind=self.collective, root=None)

    def _forwards(self, topology: Topology, collective: Collective) -> AnySchedule:
        from .relaxed import relaxed_breadth_first

        if collective.weights is not None:
            return self._uneven(topology, collective)
        relaxed = relaxed_breadth_first(topology, collective) if self.relax else None
        if relaxed is not None and (self.chunks is None or self.chunks % relaxed.parts == 0):
            return relaxed
        plain = self._plain(topology, collective)
        if relaxed is None or self.chunks is None or len(relaxed) > _MOST_ROUNDED:
            return plain
        from collc.ir.costs.cost import cost

        from ...schedule.rounding import round_parts

        whole = relaxed.unfold() if isinstance(relaxed, SymmetricSchedule) else relaxed
        rounded = attrs.evolve(round_parts(whole, self.chunks), discrete=False)
        return min(plain, rounded, key=lambda schedule: cost(schedule).time_per_byte)

    def _uneven(self, topology: Topology, collective: Collective) -> Schedule:
        """Schedule shards that differ in size; a number of chunks rounds the exact division."""
        from ...schedule.rounding import round_parts
        from .uneven import uneven_breadth_first

        exact = uneven_breadth_first(topology, collective, self._division(topology, collective), _slots(topology))
        if self.chunks is None or self.chunks % exact.parts == 0:
            return exact
        return attrs.evolve(round_parts(exact, self.chunks), discrete=False)

    def _plain(self, topology: Topology, collective: Collective) -> AnySchedule:
        division = self._division(topology, collective)
        if topology.symmetry is not None and collective.root is None:
            return SymmetricSchedule(_seed(topology, collective, division))
        return _breadth_first(topology, collective, division)

    def _backwards(self, topology: Topology, forward: Collective) -> AnySchedule:
        """Schedule ``forward`` on the transpose and reverse it: Corollary 1.1."""
        from ...schedule.reverse import Reverse, reverse

        if topology.reverse_links is not None:
            return Reverse().run(self._forwards(topology, forward))
        if forward.weights is not None:
            back = reverse(self._uneven(topology.transpose(), forward))
            return attrs.evolve(back, topology=topology)
        if topology.symmetry is not None and forward.root is None:
            seed = _seed(topology, forward, self._division(topology, forward), transposed=True)
            return SymmetricSchedule(attrs.evolve(reverse(seed), topology=topology))
        transpose = topology.transpose()
        back = reverse(_breadth_first(transpose, forward, self._division(transpose, forward)))
        return attrs.evolve(back, topology=topology)

    def _division(self, topology: Topology, collective: Collective) -> Division:
        from .division import division_for

        size = collective.size if self.size is None else self.size
        return division_for(topology, collective, self.chunks, size)


def _breadth_first(topology: Topology, collective: Collective, division: Division) -> Schedule:
    """Return the optimal BFB schedule of an allgather or broadcast."""
    slots = _slots(topology)
    if collective.root is None:
        masks, width = _masks(topology, slots)
        jobs = _allgather_jobs(topology, masks, width)
        batches = list(_solve(*jobs, slots, division, division.kinds(topology, slots)))
    else:
        batches = list(_broadcast(topology, slots, division, collective.root))
    return _columns(topology, collective, batches)


def _seed(topology: Topology, collective: Collective, division: Division, transposed: bool = False) -> Schedule:
    """Return the template of the optimal BFB allgather on a topology with a symmetry, or on its transpose."""
    from .symmetric import shard_0

    batches = list(shard_0(topology, division, transposed))
    return _columns(topology.transpose() if transposed else topology, collective, batches)


def _common_parts(topology: Topology, batches: list[Batch]) -> int:
    parts = lcm(1, *(batch[5] for batch in batches))
    if parts * topology.num_ranks > _MOST_PARTS:  # a link may carry a part of every shard
        raise error(
            "C0504",
            f"balancing the links exactly would cut every shard into {parts} parts",
            notes=["the limit is 2^62 parts"],
            hint="give a number of chunks: `using bfb { chunks: 16 }`",
            exit_status=3,
        )
    return parts


def _slots(topology: Topology) -> Array:
    """Return the in-links of every node as a row, padded with -1, without loops."""
    _, links = topology.in_links
    links = links[topology.src[links] != topology.dst[links]]
    degree = np.bincount(topology.dst[links], minlength=topology.num_ranks)
    slots = np.full((topology.num_ranks, int(degree.max(initial=0))), -1, dtype=fit(-1, topology.num_links))
    slots[np.arange(slots.shape[1]) < degree[:, None]] = links
    return slots


def _masks(topology: Topology, slots: Array) -> tuple[Array, int]:
    """Return for every node u and shard v which in-links of u lie on a shortest path from v, as bits of a mask.

    Shape (N, N), a row per u. Masks of more than 63 links are Python integers (object dtype).
    """
    hops = np.ascontiguousarray(topology.distances.T)
    width = slots.shape[1]
    kind: type = object if width > 63 else fit(0, (1 << width) - 1)
    masks: Array = np.zeros(hops.shape, dtype=kind)
    for slot in range(width):
        tail = topology.src[slots[:, slot]]
        usable = (hops[tail] + 1 == hops) & (slots[:, slot] >= 0)[:, None]
        masks |= usable.astype(kind) * (1 << slot)
    return masks, width


def _allgather_jobs(topology: Topology, masks: Array, width: int) -> tuple[Array, Array, int, list[int]]:
    """Sort every node's shards by (distance, mask, shard).

    Returns shards (N, N-1) and their keys (same shape); a key is distance * base + the mask, or + its number in the
    list of masks if that is not empty.
    """
    hops = topology.distances.T
    if width > 63 or int(hops.max()) << width >= 2**63:
        known, number = np.unique(masks, return_inverse=True)
        base, known_masks = len(known), [int(m) for m in known]
        key = hops.astype(np.int64) * base + number.reshape(masks.shape)
    else:
        base, known_masks = 1 << width, []
        key = (hops.astype(np.int64) << width) | masks
    key = key.astype(fit(0, int(key.max())))  # narrow keys sort by radix
    order = np.argsort(key, axis=1, kind="stable")[:, 1:]  # the first is the node itself, at distance 0
    order = order.astype(fit(0, topology.num_ranks))
    return order, np.take_along_axis(key, order, axis=1), base, known_masks


def _solve(
    shards: Array, keys: Array, base: int, known_masks: list[int], slots: Array, division: Division, kinds: Array
) -> Iterator[Batch]:
    """Balance every node's steps; equal histograms of masks over links of equal kinds are solved once."""
    patterns: dict[tuple[bytes, Kinds], list[int]] = {}
    for node, row in enumerate(keys):
        patterns.setdefault((row.tobytes(), tuple(kinds[node].tolist())), []).append(node)
    # (step, histogram, kinds) -> its nodes, and where their shards for it begin
    places: dict[tuple[int, Histogram, Kinds], tuple[list[int], list[int]]] = {}
    for (_, kind), nodes in patterns.items():
        for step, first, histogram in _histograms(keys[nodes[0]], base, known_masks):
            where, begin = places.setdefault((step, histogram, kind), ([], []))
            where += nodes
            begin += [first] * len(nodes)
    solved: dict[tuple[Histogram, Kinds], Balance] = {}
    for number, ((step, histogram, kind), (where, begin)) in enumerate(places.items()):
        progress("balancing steps", number, len(places))
        if (histogram, kind) not in solved:
            solved[histogram, kind] = division.divide(histogram, kind)
        share = solved[histogram, kind]
        rows = np.array(where)[:, None]
        shard = shards[rows, np.array(begin)[:, None] + share.job]
        link = slots[rows, share.slot]
        lo, hi = (np.broadcast_to(x, shard.shape) for x in (share.lo, share.hi))  # views: they take no memory
        yield step, shard.ravel(), link.ravel(), lo, hi, share.parts


def _histograms(keys: Array, base: int, known_masks: list[int]) -> Iterator[tuple[int, int, Histogram]]:
    """Split one node's sorted shards into steps: (step, first shard, histogram of masks); steps count from 0."""
    if not len(keys):
        return
    begin = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()]
    runs = zip(keys[begin].tolist(), begin, [*begin[1:], len(keys)], strict=True)
    for hop, group in groupby(runs, key=lambda run: run[0] // base):
        row = list(group)
        masks = (run[0] % base for run in row)
        sizes = (end - at for _, at, end in row)
        yield (
            hop - 1,
            row[0][1],
            tuple(zip((known_masks[m] for m in masks) if known_masks else masks, sizes, strict=True)),
        )


def _broadcast(topology: Topology, slots: Array, division: Division, root: int) -> Iterator[Batch]:
    """Give every node all shards from the root, each step's vector divided evenly among the usable in-links."""
    n, kinds = topology.num_ranks, division.kinds(topology, slots)
    hops = topology.hops_from(root)
    usable = (hops[topology.src[slots]] + 1 == hops[:, None]) & (slots >= 0)
    for node in range(n):
        if node == root:
            continue
        mask = sum(1 << slot for slot in np.flatnonzero(usable[node]).tolist())
        share = division.divide(((mask, n),), tuple(kinds[node].tolist()))
        yield int(hops[node]) - 1, share.job, slots[node][share.slot], share.lo, share.hi, share.parts


def _columns(topology: Topology, collective: Collective, batches: list[Batch]) -> Schedule:
    """Put the batches in step order into columns no wider than needed."""
    parts = _common_parts(topology, batches)
    batches.sort(key=lambda batch: batch[0])  # stable: nodes stay in order within a step
    rows = sum(len(batch[1]) for batch in batches)
    step = np.empty(rows, dtype=fit(0, max((batch[0] for batch in batches), default=0)))
    shard = np.empty(rows, dtype=fit(0, max(topology.num_ranks - 1, 0)))
    link = np.empty(rows, dtype=fit(0, max(topology.num_links - 1, 0)))
    lo, hi = np.empty(rows, dtype=fit(0, parts)), np.empty(rows, dtype=fit(0, parts))
    at = 0
    for batch in batches:
        here = slice(at, at + len(batch[1]))
        scale = parts // batch[5]
        step[here], shard[here], link[here] = batch[0], batch[1], batch[2]
        lo[here], hi[here] = (batch[3] * scale).ravel(), (batch[4] * scale).ravel()
        at = here.stop
    return Schedule(
        topology, collective, parts, step=step, action=np.zeros(rows, dtype=np.uint8) + Action.COPY,
        shard=shard, lo=lo, hi=hi, route=link, scheduler="bfb",
    )  # fmt: skip
