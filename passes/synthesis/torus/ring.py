"""Rings: every rank forwards shards to the next, N - 1 steps to scatter and N - 1 to gather, with all links busy.

If the network has several rings without common links, each carries its share; the two directions of a ring count as two
rings. Known are two Hamiltonian cycles of a 2-D torus, the two rings of ``shifted_ring``, and the parallel links of
``biring(m, d)``. With ``schedule: bfb`` (ShiftedBFBRing, section 8.2 of the direct-connect paper) shards take the
shorter direction: floor(N / 2) steps a phase in the same bandwidth time.

On a cluster of boxes, ``rings`` of 2 and more are rings in one direction, each by a NIC of its own at every crossing
(:mod:`.box_rings`), as in NCCL.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array, are_among, distinct
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.graph.boxes import Boxes, boxes_of, one_box
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...base import remark
from ...ranges import Range
from .base import TEMPLATE, TorusPass
from .box_rings import box_rings
from .box_routing import BoxRouter
from .build import Plan
from .chunks import ScatteredPart, Stage
from .cycles import one_cycle, two_cycles, two_exist
from .lines import Line, ring_line, short_ring_line
from .routing import Router, router
from .shape import grid, logical_shape

__all__ = ["Ring"]

_MOST_RINGS = 64


@attrs.frozen
class Ring(TorusPass):
    """Synthesize the ring algorithm over the cycles that the network has.

    Raises C0586 (an impossible number of rings), C0591 (a collective it cannot do), C0593 (an operation that needs an
    order), C0595 (no ring), C0597 (no second ring).
    """

    name: ClassVar[str] = "ring"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather over rings: in both directions, or by each NIC"

    schedule: Literal["traditional", "bfb"] = attrs.field(
        default="traditional",
        metadata={"help": "once around the ring in N - 1 steps, or breadth first: the shorter direction, half as many"},
    )
    rings: int | Literal["auto", "nics"] = attrs.field(
        default="auto",
        metadata={
            "help": "link-disjoint rings (default: all known); between boxes, each has its own NIC; "
            "`nics`: one for each NIC",
            "range": Range(1, _MOST_RINGS, "C0586"),
        },
    )
    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def _plan(self, ir: Problem) -> Plan:
        boxes = self._boxes(ir.topology)
        if boxes is not None:
            return self._box_plan(ir, boxes)
        n = ir.topology.num_ranks
        cycles, by = self._cycles(ir.topology)
        both = not ir.topology.is_direct or _linked(ir.topology, np.roll(cycles[0], -1), cycles[0])
        lanes = range(by.lanes if len(cycles) == 1 else 1)
        if isinstance(self.rings, int):
            cycles, lanes = cycles[: self.rings], lanes[: self.rings]
        shorter = self.schedule == "bfb" and both
        directions = (1,) if (n % 2 and shorter) or not both else (1, -1)
        parts: list[ScatteredPart] = []
        for index, ((number, cycle), lane, direction) in enumerate(product(enumerate(cycles), lanes, directions)):
            link = number if len(cycles) > 1 else int(direction < 0)  # in a dimension of 2: which of the two links
            # Gathered data travel against their line. They follow the sums: a rank that completes a sum forwards it.
            for line_way, forwards in ((direction, True),) if shorter else ((direction, True), (-direction, False)):
                line, stages = _round(n, line_way, shorter)
                parts.append(
                    ScatteredPart((n,), index, index + 1, link, lane, cycle, forwards, shorter or not forwards,
                                  lines=(line,), stages=stages)
                )  # fmt: skip
        return Plan(ir, by, index + 1, parts, self.name)

    def _require(self, ir: Problem) -> None:
        if self._boxes(ir.topology) is not None:
            return
        cycles, by = self._cycles(ir.topology)
        if isinstance(self.rings, int) and max(len(cycles), by.lanes if len(cycles) == 1 else 1) < self.rings:
            raise self._no_second(ir.topology)

    def _boxes(self, topology: Topology) -> Boxes | None:
        """Return the boxes that several rings go through; None for rings that the network's construction gives."""
        if self.rings in ("auto", 1) or (topology.is_direct and topology.is_uniform and self._has_cycles(topology)):
            return None
        return boxes_of(topology) or one_box(topology)

    def _has_cycles(self, topology: Topology) -> bool:
        try:
            return bool(self._cycles(topology))
        except CollcError:
            return False

    def _box_plan(self, ir: Problem, boxes: Boxes) -> Plan:
        """Return the plan of rings in one direction, which cross boxes by different NICs."""
        n = ir.topology.num_ranks
        rings = boxes.nics if self.rings == "nics" else int(self.rings)
        remark(f"ring: {rings} rings through {boxes.text}")
        stages, parts = (Stage(0, 0, 0, n - 1),), list[ScatteredPart]()
        for ring, place in enumerate(box_rings(ir.topology, boxes, rings)):
            for direction, gathers in (
                (1, False),
                (-1, True),
            ):  # data travel in one direction: gathered ones against their line
                parts.append(
                    ScatteredPart((n,), ring, ring + 1, 0, ring, place, not gathers, gathers,
                                  lines=(ring_line(n, direction),), stages=stages)
                )  # fmt: skip
        return Plan(ir, BoxRouter(ir.topology, rings, boxes=boxes), rings, parts, self.name)

    def _cycles(self, topology: Topology) -> tuple[list[Array], Router]:
        """Return the cycles to use and their router; raise C0595 if there is no cycle."""
        shape = logical_shape(topology, self.shape)
        if grid(topology, shape) is not None:
            for cycles in (two_cycles(shape) or [], [one_cycle(shape)], [one_cycle(shape, flipped=True)]):
                if cycles and all(_linked(topology, cycle, np.roll(cycle, -1)) for cycle in cycles):
                    return self._shifted(topology) or (cycles, router(topology, shape))
        in_order = np.arange(topology.num_ranks)
        if not topology.is_direct or _linked(topology, in_order, np.roll(in_order, -1)):
            return [in_order], Router(topology, _parallel(topology))
        raise error(
            "C0595",
            f"`ring` finds no ring through all ranks of `{topology.name}`",
            notes=["it tries cycles of a torus or mesh, and the ranks in numeric order"],
            hint="use `bucket`, which has rings of single dimensions, or `forest`, which needs no particular links",
            exit_status=3,
            about=(Subject.SCHEDULER, Subject.TOPOLOGY),
        )

    def _no_second(self, topology: Topology) -> CollcError:
        shape = logical_shape(topology, self.shape)
        why = "`ring` knows two of 2-D tori, of `shifted_ring`, and of rings with parallel links"
        if len(shape) == 2:
            rows, columns = max(shape), min(shape)
            why = f"a torus of r x c has two where r = c k and gcd(r, c - 1) = 1: here r is {rows}, c is {columns}"
            if two_exist(rows, columns):
                why = f"on a torus of {rows} x {columns} they need all links, including the wrap-around links"
        count = "two" if self.rings == 2 else self.rings
        return error(
            "C0597", f"`ring` finds no {count} rings without a common link on `{topology.name}`", notes=[why],
            hint="leave `rings` out, or use `bucket`, which uses all links of any torus", exit_status=3,
            option="rings", about=(Subject.TOPOLOGY,),
        )  # fmt: skip

    def _shifted(self, topology: Topology) -> tuple[list[Array], Router] | None:
        """Return the two rings of ``shifted_ring``, recognized by the links of rank 0."""
        n = topology.num_ranks
        offsets = distinct(topology.dst[topology.src == 0].astype(np.int64)).tolist()
        if topology.symmetry is None or len(offsets) != 4 or topology.degree != 4 or offsets[0] != 1:
            return None
        if logical_shape(topology) != (n,) or np.gcd(offsets[1], n) != 1:
            return None
        at = np.arange(n)
        cycles = [at, at * offsets[1] % n]
        if not all(_linked(topology, cycle, np.roll(cycle, -1)) for cycle in cycles):
            return None
        return cycles, Router(topology)


def _round(size: int, direction: int, shorter: bool) -> tuple[Line, tuple[Stage, ...]]:
    """Return the line and stages of a part on a ring, once around or in the shorter direction."""
    if not shorter:
        return ring_line(size, direction), (Stage(0, 0, 0, size - 1),)
    far = size // 2
    stages = [Stage(0, 0, 0, far)] if size % 2 else [Stage(0, 0, 0), Stage(1, 0, 1, far - 1)]
    return short_ring_line(size, direction), tuple(stage for stage in stages if stage.length)


def _parallel(topology: Topology) -> int:
    """Return the least number of links between two linked nodes."""
    _, count = np.unique(topology.src.astype(np.int64) * topology.num_nodes + topology.dst, return_counts=True)
    return int(count.min(initial=1 << 30))


def _linked(topology: Topology, src: Array, dst: Array) -> bool:
    """Return whether there is a link from each source to its target."""
    nodes = topology.num_nodes
    return bool(are_among(src * nodes + dst, topology.src.astype(np.int64) * nodes + topology.dst).all())
