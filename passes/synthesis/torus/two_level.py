"""The two-level algorithm of clusters: reduce-scatter in every box, the same across boxes on each rail, then back.

In a box every rank sends each other rank its share at once. Then the ranks of one number, one in each box, form a rail:
they exchange what their boxes have reduced, by a ring or by PAT. An allgather is the same backwards in time, an
allreduce both. So of N boxes each sends (N - 1) / N of the vector, where rings through all ranks, g in a
box, send (N g - 1) / (N g) of it out of each.

The data are sent in pieces: while one is exchanged across boxes, the next is exchanged inside.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import Subject, error
from collc.ir.graph.boxes import Boxes
from collc.ir.shown import counted
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ...base import remark
from ...ranges import Range
from .base import TorusPass
from .box_routing import BoxRouter, require_boxes
from .build import Plan
from .chunks import ScatteredPart, Stage
from .lines import Line, ring_line
from .pat import pat_line

__all__ = ["TwoLevel"]

_MOST_PIECES = 64
#: the numbers of pieces to choose from, ascending
_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@attrs.frozen
class TwoLevel(TorusPass):
    """Synthesize the two-level algorithm on boxes of one size.

    Raises C0532 (an impossible number of pieces), C0587 (no boxes of one size), C0591 (a collective it cannot do),
    C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "two-level"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather inside boxes, and across them rail by rail"
    pipelined: ClassVar[bool] = True
    most_pieces: ClassVar[int | None] = _MOST_PIECES

    across: Literal["ring", "pat"] = attrs.field(
        default="ring",
        metadata={"help": "the algorithm between boxes: a ring, or PAT in log2 of the boxes steps"},
    )
    pipeline: int | None = attrs.field(
        default=None,
        metadata={
            "help": "pieces of the data (default: the number with the least predicted time)",
            "range": Range(1, _MOST_PIECES, "C0532", divides="shard"),
        },
    )

    def pieces(self, ir: Problem) -> int:
        """Return the number of pieces; raise C0301 if ranks cannot reach each other."""
        ir.topology.require_connected(self.name)
        return self.pipeline or _pieces(ir.topology, ir.collective, *self._levels(ir.topology))

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pipeline is None

    def num_pieces(self, ir: Problem) -> int:
        return self.pieces(ir)

    def in_pieces(self, pieces: int) -> TwoLevel:
        return attrs.evolve(self, pipeline=pieces)

    def _require(self, ir: Problem) -> None:
        self._levels(ir.topology)

    def _plan(self, ir: Problem) -> Plan:
        boxes, lines = self._levels(ir.topology)
        pieces = self.pipeline or _pieces(ir.topology, ir.collective, boxes, lines)
        remark(f"two-level: {counted(pieces, 'piece')} on {boxes.text}")
        shape, place = tuple(line.size for line in lines), np.concatenate([np.array(ranks) for ranks in boxes.ranks])
        parts = [
            ScatteredPart(shape, piece, piece + 1, place=place, lines=lines, stages=_stages(lines, piece, self.across))
            for piece in range(pieces)
        ]
        return Plan(ir, BoxRouter(ir.topology, boxes=boxes), pieces, parts, self.name)

    def _levels(self, topology: Topology) -> tuple[Boxes, tuple[Line, Line]]:
        """Return the boxes, and the lines across and inside."""
        boxes = require_boxes(self.name, topology)
        if boxes.size is None:
            sizes = " and ".join(map(str, sorted({len(ranks) for ranks in boxes.ranks})))
            raise error(
                "C0587",
                f"two-level needs boxes of one size; `{topology.name}` has boxes of {sizes} ranks",
                notes=[f"it has {boxes.text}"], hint="`forest` and `box-trees` take any boxes", exit_status=3,
                about=(Subject.SCHEDULER, Subject.TOPOLOGY),
            )  # fmt: skip
        return boxes, (_ACROSS[self.across](len(boxes)), _at_once(boxes.size))


@cache
def _at_once(size: int) -> Line:
    """Return the line of one substep in which every coordinate sends each other one its shard."""
    at = np.arange(size)
    own = np.eye(size, dtype=bool)
    return Line(1, np.where(own, 1, 0), np.where(own, -1, at[None, :]))


_ACROSS: dict[str, Callable[[int], Line]] = {
    "ring": lambda size: ring_line(size, 1),
    "pat": lambda size: pat_line(size, size.bit_length()),
}


def _stages(lines: tuple[Line, Line], piece: int, across: str) -> tuple[Stage, ...]:
    """Return the stages of a piece: inside, then across; each piece is a step after the one before."""
    inside = Stage(piece, 1, 0)
    substeps = lines[0].substeps
    if across == "ring":  # all substeps are alike
        return inside, Stage(piece + 1, 0, 0, substeps)
    return inside, *(Stage(piece + 1 + substep, 0, substep) for substep in range(substeps))


def _pieces(topology: Topology, collective: Collective, boxes: Boxes, lines: tuple[Line, Line]) -> int:
    """Return the number of pieces with the least time of a phase, by the links of ranks alone.

    With P pieces, step s has piece s inside its box, and pieces s - 1, s - 2, .. in the substeps across. A step takes
    the latency and the longer of both. The least of equal numbers is taken.
    """
    across, inside = lines
    alpha = max(kind.latency for kind in topology.classes) or DEFAULT_ALPHA
    scale = Fraction(1) if topology.unit == "B/s" else DEFAULT_BANDWIDTH / (topology.node_bandwidth or 1)
    size = Fraction(collective.size or USUAL_SIZE) / scale
    near, far = _speeds(topology, boxes)
    in_box = size * (inside.size - 1) / inside.size / near
    amounts = [int(across.traffic(substep)[2].max()) for substep in range(across.substeps)]
    shares = [size * amount / (across.size * inside.size * far) for amount in amounts]

    before = [Fraction(0), *accumulate(shares)]

    def time(pieces: int) -> Fraction:
        last = len(shares)
        windows = [before[min(step, last)] - before[max(step - pieces, 0)] for step in range(pieces + last)]
        longer = sum((max(in_box, window) for window in windows[:pieces]), sum(windows[pieces:], Fraction(0)))
        return alpha * len(windows) + longer / pieces

    return min(_TRIED, key=time)


def _speeds(topology: Topology, boxes: Boxes) -> tuple[Fraction, Fraction]:
    """Return the least bandwidth out of a rank inside its box, and of a rank's share of the links out of the box.

    A rank without links into its box, or a box without links of ranks out of it, counts with the other ones.
    """
    near = [Fraction(0)] * topology.num_ranks
    out = [Fraction(0)] * len(boxes)
    ranks = np.flatnonzero(topology.src < topology.num_ranks)
    for link, rank, inside in zip(ranks.tolist(), topology.src[ranks].tolist(), boxes.inside[ranks], strict=True):
        if inside:
            near[rank] += topology.bandwidth(link)
        else:
            out[int(boxes.box_of[rank])] += topology.bandwidth(link)
    slowest = min(total / len(group) for total, group in zip(out, boxes.ranks, strict=True))
    least = min(near) or min(topology.egress(rank) for rank in range(topology.num_ranks))
    return least, slowest or least
