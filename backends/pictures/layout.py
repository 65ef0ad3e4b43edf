"""Where the nodes of a network are drawn: tori as grids, boxes as boxes with switches between, other networks round.

Places are integers, so that they are the same on every machine; the page draws circles itself. A switch that joins
only the ranks of its box is below them. Other switches are above what they join. Boxes that are many are drawn one at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.graph.boxes import boxes_of
from collc.ir.graph.node_sets import NodeSets
from collc.ir.topology import Topology

__all__ = ["MOST_LINKS", "MOST_NODES", "Layout", "layout_of"]

#: larger networks are not drawn
MOST_NODES, MOST_LINKS = 4096, 20_000
#: more boxes, or boxes of more nodes in all, are drawn one at a time
_MOST_BOXES, _MOST_BOXED = 12, 200
_ROW, _WIDE = 8, 32  # ranks in a row of one of several boxes, and of the only box that is drawn

_GRIDS = ("torus", "mesh", "twisted_torus", "hyperx", "tpu_v4")
_RINGS = ("torus", "twisted_torus", "tpu_v4", "biring", "uniring", "circulant")
_ASLANT = 8  # ranks in a line aslant, at most
_SAME = ("transpose", "bidirectional", "degraded", "in_network", "relabel")


@attrs.frozen
class Layout:
    """A ``shape`` (``grid``, ``boxes``, ``round`` or ``none``) and the places ``x`` and ``y`` of all nodes.

    ``boxes`` are the nodes of each box, ranks first; ``kind[b]`` is the first box that is like box b. If it is
    ``folded``, boxes are drawn one at a time and have the same places. Places of a round network are empty. Neighbors
    are ``cell`` apart. In a grid that ``wraps``, links from one end of a line to the other are drawn as their ends.
    """

    shape: str
    x: tuple[int, ...] = ()
    y: tuple[int, ...] = ()
    boxes: tuple[tuple[int, ...], ...] = ()
    kind: tuple[int, ...] = ()
    folded: bool = False
    cell: int = 1
    wraps: bool = False


def layout_of(topology: Topology) -> Layout:
    """Return where the nodes of a network are drawn.

    >>> from collc.frontends.coll import topology
    >>> layout_of(topology("torus(2, 3)")).x, layout_of(topology("biring(5)")).shape
    ((0, 1, 2, 0, 1, 2), 'round')
    """
    if topology.num_nodes > MOST_NODES or topology.num_links > MOST_LINKS:
        return Layout("none")
    sizes = _sizes(topology) if topology.is_direct else None
    if sizes is not None and (len(sizes) > 1 or (topology.origin and topology.origin.name == "mesh")):
        return _grid(sizes, _wraps(topology))
    found = boxes_of(topology)
    boxes = found.ranks if found is not None else tuple(NodeSets(topology).boxes.values())
    if not boxes and topology.is_direct:
        return Layout("round")
    return _boxed(topology, boxes or (tuple(range(topology.num_ranks)),))


# ---- grids


def _sizes(topology: Topology) -> tuple[int, ...] | None:
    """Return the sides of a grid whose ranks are numbered with the last side fastest; None for other networks."""
    origin = topology.origin
    if origin is None:
        return None
    numbers = tuple(one for one in origin.arguments if isinstance(one, int))
    found: tuple[int, ...] | None = None
    if origin.name in _GRIDS:
        found = numbers[:3] if origin.name == "tpu_v4" else numbers
    elif origin.name in ("hypercube", "twisted_hypercube") and numbers:
        found = (2,) * numbers[0]
    elif origin.name == "hamming" and len(numbers) == 2:
        found = (numbers[1],) * numbers[0]
    elif origin.name in ("product", "power"):
        sides = [_sizes(base) or (base.num_ranks,) for base in origin.bases]
        found = tuple(side for one in sides for side in one) * (origin.times if origin.name == "power" else 1)
    elif origin.name in _SAME and origin.bases and origin.name != "relabel":
        found = _sizes(origin.bases[0])
    if found is None or prod(found) != topology.num_ranks:
        return None
    return tuple(side for side in found if side > 1) or (1,)


def _wraps(topology: Topology) -> bool:
    """Return whether a grid has rings as lines."""
    origin = topology.origin
    if origin is None:
        return False
    return origin.name in _RINGS or any(_wraps(base) for base in origin.bases)


def _grid(sizes: tuple[int, ...], wraps: bool) -> Layout:
    """Return the places of a grid: the last side goes right, the one before down, the third aslant, as in a cube.

    Further sides, and a long third one, are blocks beside each other with a gap. The side aslant moves by one unit each
    way, so ``cell`` units are between neighbors of the first two.
    """
    aslant = 2 if len(sizes) > 2 and sizes[-3] <= _ASLANT else -1
    place, cell = np.arange(prod(sizes)), sizes[-3] + 1 if aslant > 0 else 1
    axes, extent, axis = np.zeros((2, len(place)), dtype=np.int64), [cell, cell], 0
    for number, side in enumerate(reversed(sizes)):
        place, at = np.divmod(place, side)
        if number == aslant:
            axes += at
            continue
        gap = cell * (number > 1)
        axes[axis] += at * (extent[axis] + gap)
        extent[axis] = (extent[axis] + gap) * side - gap
        axis = 1 - axis
    x, y = axes if extent[0] >= extent[1] else axes[::-1]
    return Layout("grid", tuple(x.tolist()), tuple(y.tolist()), cell=cell, wraps=wraps)


# ---- boxes


def _boxed(topology: Topology, ranks: Sequence[tuple[int, ...]]) -> Layout:
    level = _levels(topology)
    owner = _owners(topology, ranks, level)
    boxes = tuple(
        (*own, *(node for node in range(topology.num_ranks, topology.num_nodes) if owner[node] == number))
        for number, own in enumerate(ranks)
    )
    folded = len(boxes) > _MOST_BOXES or (len(boxes) > 1 and topology.num_nodes > _MOST_BOXED)
    x, y = np.zeros(topology.num_nodes, dtype=np.int64), np.zeros(topology.num_nodes, dtype=np.int64)
    apart = np.array(owner)[topology.src] != np.array(owner)[topology.dst]
    leaving = {*topology.src[apart].tolist(), *topology.dst[apart].tolist()}
    wide = _ROW if len(boxes) > 1 and not folded else _WIDE
    shared = [node for node in range(topology.num_ranks, topology.num_nodes) if owner[node] < 0]
    top = len({level[node] for node in shared})
    right = 0
    for own, box in zip(ranks, boxes, strict=True):
        above = [node for node in box[len(own) :] if node in leaving]
        below = [node for node in box[len(own) :] if node not in leaving]
        rows = [*_rows(above, level), *_ranks_in(own, wide), *reversed(_rows(below, level))]
        width = _place_box(rows, x, y, (0 if folded else right, top))
        right = max(right, width) if folded else right + width + 1
    _place_shared(shared, level, x, y, right)
    return Layout("boxes", tuple(x.tolist()), tuple(y.tolist()), boxes, _kinds(topology, boxes), folded)


def _levels(topology: Topology) -> list[int]:
    """Return the least number of links from a rank to every node, either direction; 0 for ranks."""
    level = [0 if node < topology.num_ranks else -1 for node in range(topology.num_nodes)]
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for depth in range(1, topology.num_switches + 1):
        fresh = {b for a, b in ends if level[a] == depth - 1 and level[b] < 0}
        fresh |= {a for a, b in ends if level[b] == depth - 1 and level[a] < 0}
        for node in fresh:
            level[node] = depth
        if not fresh:
            break
    return [one if one >= 0 else 1 for one in level]


def _owners(topology: Topology, ranks: Sequence[tuple[int, ...]], level: Sequence[int]) -> list[int]:
    """Return the box of every node, -1 for switches that nodes of several boxes are linked to."""
    owner = [-1] * topology.num_nodes
    for number, own in enumerate(ranks):
        for rank in own:
            owner[rank] = number
    below: dict[int, set[int]] = {}
    for a, b in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        for upper, lower in ((a, b), (b, a)):
            if level[upper] == level[lower] + 1:
                below.setdefault(upper, set()).add(lower)
    for node in sorted(range(topology.num_ranks, topology.num_nodes), key=lambda one: (level[one], one)):
        owners = {owner[one] for one in below.get(node, ())}
        if len(owners) == 1:
            owner[node] = owners.pop()
    return owner


def _rows(switches: Sequence[int], level: Sequence[int]) -> list[list[int]]:
    """Return switches in rows, those furthest from ranks first."""
    found = sorted({level[node] for node in switches}, reverse=True)
    return [[node for node in switches if level[node] == row] for row in found]


def _ranks_in(ranks: Sequence[int], wide: int) -> list[list[int]]:
    """Return ranks in rows: one if they are few, else a rectangle twice as wide as high."""
    width = len(ranks) if len(ranks) <= wide else min(ceil((2 * len(ranks)) ** 0.5), _WIDE)
    return [list(ranks[at : at + width]) for at in range(0, len(ranks), max(width, 1))]


def _place_box(rows: Sequence[Sequence[int]], x: Array, y: Array, corner: tuple[int, int]) -> int:
    """Place the rows of a box, the first one on top; return its width."""
    left, top = corner
    width = max(map(len, rows), default=1)
    for number, row in enumerate(rows):
        y[list(row)] = top + number
        if len(row) == width or (number and len(rows[number - 1]) > len(row) and row[0] == rows[number - 1][-1] + 1):
            x[list(row)] = left + np.arange(len(row))
        else:
            _spread(row, x, left, width)
    return width


def _place_shared(shared: Sequence[int], level: Sequence[int], x: Array, y: Array, right: int) -> None:
    for number, row in enumerate(sorted({level[node] for node in shared}, reverse=True)):
        nodes = [node for node in shared if level[node] == row]
        _spread(nodes, x, 0, max(right - 1, 1))
        y[nodes] = number


def _spread(nodes: Sequence[int], x: Array, left: int, width: int) -> None:
    """Place nodes evenly over a width, at least one apart where they fit."""
    for number, node in enumerate(nodes):
        x[node] = left + ((2 * number + 1) * width) // (2 * len(nodes))


def _kinds(topology: Topology, boxes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return for every box the first box with as many ranks, switches, and links of each class inside and out."""
    owner = np.full(topology.num_nodes, -1)
    for number, box in enumerate(boxes):
        owner[list(box)] = number
    src, dst = owner[topology.src], owner[topology.dst]
    count = np.zeros((len(boxes), 3, len(topology.classes)), dtype=np.int64)
    for place, (ends, chosen) in enumerate(((src, src == dst), (src, src != dst), (dst, src != dst))):
        here = chosen & (ends >= 0)
        np.add.at(count, (ends[here], place, topology.link_class[here]), 1)
    first: dict[tuple[object, ...], int] = {}
    found = []
    for number, box in enumerate(boxes):
        ranks = sum(node < topology.num_ranks for node in box)
        found.append(first.setdefault((ranks, len(box), count[number].tobytes()), number))
    return tuple(found)
