"""The scheduler ``nccl-rings``: the rings of most bandwidth that stock NCCL can execute."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Subject, error
from collc.ir.schedule import Forest, Routes
from collc.ir.shown import counted
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...applying import not_scheduled
from ...base import Pass, remark
from ...knobs import Knob
from ...ranges import Range
from ..operations import require_commutative, require_routes

# Judging a problem needs no search: functions import those that they run.
if TYPE_CHECKING:
    from collc.ir.graph.nics import Cabling
    from collc.ir.levels import Scheduled

    from .rings import Rings

__all__ = ["NcclRings"]

_KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce")
_MOST_RINGS = 32
_MOST_PIECES = 1 << 12
_MOST_RANKS = 1 << 16


@attrs.frozen
class NcclRings(Pass):
    """Synthesize rings that visit the boxes of a cluster one after the other, and in each box every rank once.

    These are the rings that NCCL's graph files can hold. All of them carry equal shares of the data. In a broadcast or
    reduce a ring is the chain from its root, or to it, in pieces.

    Raises C0530 (a collective it cannot do), C0532 (an impossible number of pieces), C0586 (an impossible number of
    rings or ranks), C0588 (no ring), C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "nccl-rings"
    summary: ClassVar[str] = "the rings of most bandwidth that stock NCCL can execute, box by box and NIC by NIC"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob("pieces", "pieces", "pieces", lambda this, given, make: make().pieces, noted=True, word="piece"),
    )

    rings: int | Literal["auto"] = attrs.field(
        default="auto",
        metadata={
            "help": "number of rings (default: the fewest, at most 32, of the most bandwidth)",
            "range": Range(1, _MOST_RINGS, "C0586"),
        },
    )
    node: int | None = attrs.field(
        default=None,
        metadata={
            "help": "ranks of a box, which follow each other (default: as names and links tell)",
            "range": Range(1, _MOST_RANKS, "C0586"),
        },
    )
    fabric: bool = attrs.field(
        default=False, metadata={"help": "rings of a single box pass the fabric, as in a cluster of equal boxes"}
    )
    pieces: int | None = attrs.field(
        default=None,
        metadata={
            "help": "pieces of a broadcast or reduce (default: the number with the least predicted time)",
            "range": Range(1, _MOST_PIECES, "C0532", divides="shard"),
        },
    )

    def run(self, ir: Problem) -> Forest:
        return self._piped(self.grow(ir))

    def _piped(self, forest: Forest) -> Forest:
        from collc.ir.costs.pieces import best_pieces

        if forest.collective.root is None:
            return forest if self.pieces is None else attrs.evolve(forest, pieces=self.pieces)
        most = max(_MOST_PIECES // forest.parts, 1)
        return attrs.evolve(forest, pieces=best_pieces(forest, most=most) if self.pieces is None else self.pieces)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pieces is None and ir.collective.root is not None

    def resized(self, ir: Problem, known: Scheduled) -> Forest:
        assert isinstance(known, Forest), "this scheduler returns a forest"
        return self._piped(attrs.evolve(known, collective=ir.collective))

    def in_pieces(self, pieces: int) -> NcclRings:
        return attrs.evolve(self, pieces=pieces)

    def require(self, ir: Problem) -> None:
        if ir.collective.kind not in _KINDS:
            raise not_scheduled("C0530", self.name, ir, _KINDS)
        require_commutative(self.name, ir.collective)
        require_routes(ir.topology, ir.collective)

    def grow(self, ir: Problem) -> Forest:
        """Return the chains of all rings in one piece; raise C0588 if there is no ring."""
        self.require(ir)
        if ir.topology.num_ranks == 1:
            return _forest(ir, np.zeros((1, 1), dtype=np.int64), ((),))
        rings = self._best(ir)
        return _forest(ir, np.array(rings.orders, dtype=np.int64), rings.routes)

    def _best(self, ir: Problem) -> Rings:
        from collc.ir.graph.nics import cabling

        from .rings import best_rings

        ir.topology.require_connected(self.name)
        cables = cabling(ir.topology, self.node)
        count = None if self.rings == "auto" else self.rings
        rings = best_rings(cables, count, _MOST_RINGS, self.fabric)
        if rings is None:
            raise self._no_ring(ir.topology, cables)
        remark(f"nccl-rings: {_words(ir.topology, rings)}, through {cables.text}; {self._proof(ir.topology, rings)}")
        return rings

    def _proof(self, topology: Topology, rings: Rings) -> str:
        """Return what is known of better rings."""
        if rings.total == rings.bound:
            return "no rings have more: they fill the smallest cut"
        if rings.exhausted:
            which = f"{_MOST_RINGS} equal rings or fewer" if self.rings == "auto" else f"{self.rings} equal rings"
            return f"no {which} have more; the bound of unequal ones is {_speed(topology, rings.bound)}"
        return f"the search is not exhaustive, and no rings have more than {_speed(topology, rings.bound)}"

    def _no_ring(self, topology: Topology, cables: Cabling) -> Exception:
        several = len(cables) > 1 or self.fabric
        need = "in every box a path through all its ranks, from NIC to NIC" if several else "a cycle through all ranks"
        return error(
            "C0588",
            f"`nccl-rings` finds no ring on `{topology.name}`",
            notes=[f"it needs {need}, over links and switches but no further ranks", f"it sees {cables.text}"],
            hint="`node` says how many ranks are in a box; `forest` schedules any network, but not for `nccl-graph`",
            exit_status=3, about=(Subject.SCHEDULER, Subject.TOPOLOGY),
        )  # fmt: skip


def _words(topology: Topology, rings: Rings) -> str:
    return f"{counted(len(rings.orders), 'ring')} of {_speed(topology, rings.rate)}"


def _speed(topology: Topology, rate: Fraction) -> str:
    return f"{float(rate) / 1e9:.5g} GB/s" if topology.unit == "B/s" else f"{float(rate):.5g} link units"


def _forest(ir: Problem, orders: Array, routes: tuple[tuple[tuple[int, ...], ...], ...]) -> Forest:
    """Return the chains along all rings, (rings, ranks): inward and outward, as the collective needs.

    Route i of a ring leads from its rank i to the next one.
    """
    kind, root, (rings, ranks) = ir.collective.kind, ir.collective.root, orders.shape
    starts = np.tile(np.arange(ranks), (rings, 1)) if root is None else np.argwhere(orders == root)[:, 1:]
    ring = np.repeat(np.arange(rings), starts.shape[1])
    place = starts.ravel()
    hop = np.arange(ranks - 1)
    columns = []
    for inward in ([1] if kind != "allgather" and kind != "broadcast" else []) + (
        [0] if kind not in ("reduce-scatter", "reduce") else []
    ):
        # Data of an outward chain follow the ring; an inward chain is listed from its root, against the ring.
        tail = (place[:, None] - 1 - hop if inward else place[:, None] + hop) % ranks
        ends = orders[ring[:, None], tail], orders[ring[:, None], (tail + 1) % ranks]
        parent, child = ends[::-1] if inward else ends
        columns.append((np.full(len(ring), inward), orders[ring, place], parent, child, ring[:, None] * ranks + tail))
    inward_, root_, parent_, child_, route_ = (np.concatenate(one) for one in zip(*columns, strict=True))
    trees = len(root_)
    return Forest(
        ir.topology, ir.collective, rings, root=root_, weight=np.ones(trees, dtype=np.int64),
        tree=np.repeat(np.arange(trees), ranks - 1), parent=parent_.ravel(), child=child_.ravel(), route=route_.ravel(),
        routes=Routes.of([links for one in routes for links in one]), inward=inward_, scheduler=NcclRings.name,
    )  # fmt: skip
