"""Nodes that flows cannot tell apart, folded into one: the smallest cuts of a large network from a small one.

A partition into cells is *equitable* if every node of a cell has as many arcs of each kind to (and from) every other
cell as all other nodes of its cell. If arcs of a kind have equal capacity and nodes of a cell equal supply, then a flow
between cells, spread in proportion to capacities, is a flow between nodes. So a sink that is a cell of its own gets as
much in the network of cells. The nodes that still reach it beside a largest flow do not depend on the flow: they are
whole cells. So the cut with most nodes is the same one too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs
import numpy as np

from ..arrays import Array
from ..ragged import inverse
from .bypass import Bypass
from .cuts import Cut, FlowNetwork
from .refinement import Budget, Graph, individualize, mix

__all__ = ["Folding"]

#: refinement ends by itself: each round splits a cell
_UNLIMITED = 1 << 62


@attrs.frozen(eq=False)
class Folding:
    """The cells of a network's nodes: ``cell[v]`` is that of a node, of ``num_cells``; ranks have the first ones.

    Row f stands for ``count[f]`` arcs of ``kind[f]`` from cell ``tail[f]`` to another cell ``head[f]``.
    """

    cell: Array
    num_cells: int
    rank_cells: int
    tail: Array
    head: Array
    kind: Array
    count: Array

    @classmethod
    def of(cls, num_ranks: int, node: Array, arcs: Array, kind: Array, alone: Sequence[int]) -> Folding:
        """Return few cells of nodes of equal classes ``node``; those ``alone`` are cells of their own.

        ``arcs`` are (2, A) tails and heads, ``kind`` their kinds. Classes of ranks and of switches differ. If hashes of
        colours collide so that the cells are not equitable, every node is a cell of its own.
        """
        colours = mix(node.astype(np.uint64))
        for place, one in enumerate(alone):
            colours = individualize(colours, one, place)
        graph = Graph.of(len(node), int(kind.max(initial=-1)) + 1, arcs[0], arcs[1], kind)
        refined = graph.refine(colours, Budget(_UNLIMITED))
        assert refined is not None, "there is no trace to differ from"
        cell = _numbered(refined[0])
        if not _is_equitable(cell, node, arcs, kind):
            cell = np.arange(len(node))
        return cls._by_cell(num_ranks, cell, arcs, kind)

    @classmethod
    def _by_cell(cls, num_ranks: int, cell: Array, arcs: Array, kind: Array) -> Folding:
        ends = cell[arcs]
        apart = ends[0] != ends[1]
        rows = np.stack([*ends[:, apart], kind[apart]])
        (tail, head, kinds), count = np.unique(rows, axis=1, return_counts=True)
        ranks = int(cell[:num_ranks].max(initial=-1)) + 1
        return cls(cell, int(cell.max(initial=-1)) + 1, ranks, tail, head, kinds, count)

    def violated(self, supply: Sequence[int], capacity: Sequence[int], sinks: Collection[int], most: int) -> list[Cut]:
        """Return the cuts of :meth:`FlowNetwork.violated` in the network of all nodes.

        ``supply`` is that of every node, equal within cells, ``capacity`` that of an arc of every kind. ``sinks`` are
        cells of their own.
        """
        bypass = Bypass(self.rank_cells, self.num_cells, self.tail.tolist(), self.head.tolist())
        folded = (n * capacity[kind] for n, kind in zip(self.count.tolist(), self.kind.tolist(), strict=True))
        network = FlowNetwork(self.num_cells, bypass.arcs(list(folded)))
        total = [0] * self.num_cells
        for cell, amount in zip(self.cell.tolist(), supply, strict=True):
            total[cell] += amount
        cuts = network.violated(total, self.cell[list(sinks)].tolist(), most)
        return [Cut(self._nodes(bypass.whole(cut.nodes)), cut.value) for cut in cuts]

    def _nodes(self, cells: Collection[int]) -> tuple[int, ...]:
        inside = np.zeros(self.num_cells, dtype=bool)
        inside[list(cells)] = True
        return tuple(np.flatnonzero(inside[self.cell]).tolist())


def _numbered(colours: Array) -> Array:
    """Return the colours numbered in the order of their first nodes."""
    _, first, place = np.unique(colours, return_index=True, return_inverse=True)
    number: Array = inverse(np.argsort(first, kind="stable"))[place.ravel()]
    return number


def _is_equitable(cell: Array, node: Array, arcs: Array, kind: Array) -> bool:
    """Return whether nodes of a cell have one class and, for every kind, as many arcs to and from every other cell."""
    size = np.bincount(cell)
    least = np.full(len(size), node.max(initial=0))
    np.minimum.at(least, cell, node)
    if (least[cell] != node).any():
        return False
    return all(_is_regular(cell, size, near, cell[far], kind) for near, far in ((arcs[0], arcs[1]), (arcs[1], arcs[0])))


def _is_regular(cell: Array, size: Array, near: Array, far: Array, kind: Array) -> bool:
    """Return whether of every cell no node or all nodes have arcs of a kind to a cell ``far``, all as many."""
    apart = cell[near] != far
    (nodes, other, kinds), times = np.unique(
        np.stack([near[apart], far[apart], kind[apart]]), axis=1, return_counts=True
    )
    rows, first, place, members = np.unique(
        np.stack([cell[nodes], other, kinds]), axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    return bool((members == size[rows[0]]).all() and (times == times[first][place.ravel()]).all())
