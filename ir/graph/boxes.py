"""The boxes of a cluster: groups of ranks that share faster links, or a switch, than all ranks together.

NCCL knows which GPUs are in one machine. Here it follows from the links. Four rules are tried in turn, and the first
that divides the ranks into at least two groups of at least two decides:

* *faster links*: a group is joined by links of at least some bandwidth, the least that divides. Links of ranks count
  first; all links then, since uplinks may be the slow ones.
* *links between ranks*: a group is joined by links that pass no switch, as the boards of a HammingMesh.
* *a switch of its own*: a group hangs from the same switches, as the hosts of a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array, lowest_joined
from ..frozen import frozen
from ..shown import counted
from ..topology import Topology

__all__ = ["Boxes", "boxes_of", "one_box"]


@frozen(eq=False)
class Boxes:
    """The boxes of a network, ascending by their lowest rank.

    ``ranks[b]`` are the ranks of box b, ascending. ``gates[b]`` are those with links out of the box and into it, each
    of which stands for a NIC: all ranks if none has such links of its own. ``inside`` is a mask of links: those that
    join a box. ``box_of`` maps ranks to boxes. ``rule`` says by which links the boxes were found.
    """

    ranks: tuple[tuple[int, ...], ...]
    gates: tuple[tuple[int, ...], ...]
    inside: Array
    box_of: Array
    rule: str

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def nics(self) -> int:
        """The number of NICs that every box has."""
        return min(len(gates) for gates in self.gates)

    @property
    def size(self) -> int | None:
        """The ranks of a box; None if boxes differ."""
        sizes = {len(ranks) for ranks in self.ranks}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def text(self) -> str:
        """The boxes in words, for remarks.

        >>> from collc.frontends.coll import topology
        >>> boxes_of(topology("dgx_a100(2)")).text
        '2 boxes of 8 ranks with 8 NICs each, joined by links of at least 300 GB/s'
        """
        sizes = sorted({len(ranks) for ranks in self.ranks})
        size = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return f"{counted(len(self), 'box')} of {size} ranks with {counted(self.nics, 'NIC')} each, {self.rule}"


def boxes_of(topology: Topology) -> Boxes | None:
    """Return the boxes of a network; None if no rule divides its ranks.

    >>> from collc.frontends.coll import topology
    >>> boxes_of(topology("mi250(2)")).size, boxes_of(topology("leaf_spine(4, 8, 2)")).size
    (16, 8)
    >>> boxes_of(topology("torus(4, 4)")) is None
    True
    """
    if topology.num_ranks < 4 or (topology.is_direct and topology.is_uniform):
        return None
    for kept, rule in _joining(topology):
        part = _components(topology, kept)
        _, box_of, sizes = np.unique(part[: topology.num_ranks], return_inverse=True, return_counts=True)
        if len(sizes) > 1 and sizes.min() > 1:
            return _boxes(topology, kept, part, rule, box_of)
    return None


def one_box(topology: Topology) -> Boxes:
    """Return all ranks as one box."""
    part = np.zeros(topology.num_nodes, dtype=np.int64)
    box_of = np.zeros(topology.num_ranks, dtype=np.int64)
    return _boxes(topology, np.ones(topology.num_links, dtype=bool), part, "all ranks", box_of)


def _joining(topology: Topology) -> Iterator[tuple[Array, str]]:
    """Yield masks of the links that may join boxes, in the order of the rules, each with words for it."""
    ranks = topology.num_ranks
    at_rank = (topology.src < ranks).astype(int) + (topology.dst < ranks)
    speeds = sorted({kind.bandwidth for kind in topology.classes})
    number = np.array([speeds.index(kind.bandwidth) for kind in topology.classes])[topology.link_class]
    for chosen, always in ((at_rank > 0, at_rank == 0), (at_rank >= 0, at_rank < 0)):
        for speed in np.unique(number[chosen]).tolist()[1:]:
            speed_of = float(speeds[speed])
            unit = f"{speed_of / 1e9:g} GB/s" if topology.unit == "B/s" else f"{speed_of:g} link units"
            yield always | (number >= speed), f"joined by links of at least {unit}"
    if not topology.is_direct:
        yield at_rank == 2, "joined by links between ranks"
        yield at_rank == 1, "each with switches of its own"


def _components(topology: Topology, kept: Array) -> Array:
    """Return for every node the lowest node that links of ``kept`` join it with, in either direction."""
    ends = (end[kept].astype(np.int64) for end in (topology.src, topology.dst))
    return lowest_joined(topology.num_nodes, *ends)


def _boxes(topology: Topology, kept: Array, part: Array, rule: str, box_of: Array) -> Boxes:
    same = (part[topology.src] == part[topology.dst]) & (part[topology.src] < topology.num_ranks)
    order = np.argsort(box_of, kind="stable")
    ranks = [group.tolist() for group in np.split(order, np.flatnonzero(np.diff(box_of[order])) + 1)]
    leaving, entering = (np.isin(np.arange(topology.num_ranks), ends[~same]) for ends in (topology.src, topology.dst))
    open_ = leaving & entering
    gates = [[rank for rank in group if open_[rank]] or group for group in ranks]
    first = [group[0] for group in ranks]
    assert first == sorted(first), "components are numbered by their lowest node, which is a rank"
    return Boxes(tuple(map(tuple, ranks)), tuple(map(tuple, gates)), kept & same, box_of.reshape(-1), rule)
