"""NCCL's tree algorithm: a chain in every box, and two binary trees across boxes, for each NIC.

A channel has a chain through all ranks of each box, which begins at the rank with the channel's NIC. These first ranks
are joined by the two trees of :mod:`collc.ir.graph.two_trees`, each of which carries half of the channel's data: a box
that is inside one tree is a leaf of the other. Data are reduced up the trees and sent down again, piece after piece.

With N boxes, and NICs as the slowest links, an allreduce of M bytes takes 2 M / (NICs x bandwidth) seconds for all
N >= 4 (Jeaugey, Massively Scale Your Deep Learning Training with NCCL 2.4, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.pieces import best_pieces
from collc.ir.graph.boxes import Boxes
from collc.ir.graph.two_trees import depths, two_trees
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest
from collc.ir.spec import Problem

from ...applying import not_scheduled
from ...base import Pass, remark
from ...knobs import Knob
from ...ranges import Range
from ..operations import require_commutative, require_routes
from ..torus.box_rings import box_chains
from ..torus.box_routing import BoxRouter, require_boxes

__all__ = ["BoxTrees"]

_KINDS = ("allreduce",)
_MOST_PIECES = 1 << 12
_MOST_CHANNELS = 64


@attrs.frozen
class BoxTrees(Pass):
    """Synthesize NCCL's trees for an allreduce on a cluster of boxes.

    Raises C0530 (a collective it cannot do), C0532 (an impossible number of pieces), C0586 (an impossible number of
    channels), C0587 (no boxes), C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "box-trees"
    summary: ClassVar[str] = "pipelined allreduce by chains in boxes and two binary trees across them, as in NCCL"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob("pieces", "pieces", "pieces", lambda this, given, make: make().pieces, noted=True, word="piece"),
    )

    channels: int | None = attrs.field(
        default=None,
        metadata={
            "help": "chains in every box, each with two trees across boxes (default: one a NIC)",
            "range": Range(1, _MOST_CHANNELS, "C0586"),
        },
    )
    pieces: int | None = attrs.field(
        default=None,
        metadata={
            "help": "number of pipelined pieces (default: the number with the least predicted time)",
            "range": Range(1, _MOST_PIECES, "C0532", divides="half"),
        },
    )

    def run(self, ir: Problem) -> Forest:
        return self._piped(self.grow(ir))

    def _piped(self, forest: Forest) -> Forest:
        most = max(_MOST_PIECES // forest.parts, 1)
        return attrs.evolve(forest, pieces=best_pieces(forest, most=most) if self.pieces is None else self.pieces)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.pieces is None

    def resized(self, ir: Problem, known: Scheduled) -> Forest:
        assert isinstance(known, Forest), "this scheduler returns a forest"
        return self._piped(attrs.evolve(known, collective=ir.collective))

    def in_pieces(self, pieces: int) -> BoxTrees:
        return attrs.evolve(self, pieces=pieces)

    def grow(self, problem: Problem) -> Forest:
        """Return the trees in one piece."""
        topology = problem.topology
        boxes = self._boxes(problem)
        channels = boxes.nics if self.channels is None else self.channels
        trees = _trees(boxes, box_chains(topology, boxes, channels))
        remark(f"box-trees: {len(trees)} trees of {channels} channels on {boxes.text}")
        return _forest(problem, boxes, channels, trees)

    def require(self, ir: Problem) -> None:
        self._boxes(ir)

    def _boxes(self, ir: Problem) -> Boxes:
        """Return the boxes of the network; raise CollcError unless the trees take the collective on it."""
        if ir.collective.kind != "allreduce":
            raise not_scheduled("C0530", self.name, ir, ("allreduce",))
        require_commutative(self.name, ir.collective)
        require_routes(ir.topology, ir.collective)
        return require_boxes(self.name, ir.topology)


@attrs.frozen(eq=False)
class _Tree:
    """A tree of one channel: its root, and its edges, parents before children."""

    channel: int
    root: int
    parent: Array
    child: Array


def _trees(boxes: Boxes, chains: Sequence[Sequence[tuple[int, ...]]]) -> list[_Tree]:
    """Return the two trees of every channel."""
    both = two_trees(len(boxes))
    return [_tree(channel, chain, above) for channel, chain in enumerate(chains) for above in both]


def _tree(channel: int, chain: Sequence[tuple[int, ...]], above: Array) -> _Tree:
    """Return the tree that joins the chains of all boxes at their first ranks, as ``above`` joins boxes."""
    edges = list[tuple[int, int]]()
    order = np.argsort(depths(above), kind="stable").tolist()
    for box in order:
        path = chain[box]
        if above[box] >= 0:
            edges.append((chain[int(above[box])][0], path[0]))
        edges += pairwise(path)
    parent, child = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return _Tree(channel, chain[order[0]][0], parent, child)


def _forest(problem: Problem, boxes: Boxes, channels: int, trees: Sequence[_Tree]) -> Forest:
    """Return the trees inward and outward; each carries an equal share of the vector."""
    by = BoxRouter(problem.topology, channels, boxes=boxes)
    up = [by.keys(one.child, one.parent, 0, one.channel) for one in trees]
    down = [by.keys(one.parent, one.child, 0, one.channel) for one in trees]
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *up, *down])
    known, route = np.unique(keys, return_inverse=True)
    both, count = [*trees, *trees], 2 * len(trees)
    return Forest(
        problem.topology, problem.collective, len(trees), root=[one.root for one in both],
        weight=np.ones(count, dtype=np.int64), tree=np.repeat(np.arange(count), [len(one.child) for one in both]),
        parent=np.concatenate([one.parent for one in both]), child=np.concatenate([one.child for one in both]),
        route=route, routes=by.routes(known), inward=np.repeat([1, 0], len(trees)), whole=True, scheduler="box-trees",
    )  # fmt: skip
