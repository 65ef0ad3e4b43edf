"""Groups that move a network's ranks without fixing any: the routes of a few sources give those of all."""

from __future__ import annotations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.group import Group, Translations
from collc.ir.topology import Topology

__all__ = ["Action", "free_action"]


@attrs.frozen(eq=False)
class Action:
    """A group that acts freely: rank g*ranks + i is the image of rank i under element g, and so are links.

    ``ranks`` and ``links`` count those of one element: ranks 0 .. ranks-1 represent all sources, and links 0 ..
    links-1 all classes of links. Every class has a link for every element.
    """

    group: Group
    ranks: int
    links: int

    def move_ranks(self, ranks: Array, by: Array) -> Array:
        """Return where elements ``by`` take ranks; the arrays broadcast."""
        moved: Array = self.group.translate(ranks // self.ranks, by) * self.ranks + ranks % self.ranks
        return moved

    def move_links(self, links: Array, by: Array) -> Array:
        """Return where elements ``by`` take links; the arrays broadcast."""
        moved: Array = self.group.translate(links // self.links, by) * self.links + links % self.links
        return moved


def free_action(topology: Topology) -> Action:
    """Return the group of a Cayley digraph, of a line graph that of its base, else the group of one element.

    The claim of the topology is checked on every link.
    """
    group = _known_group(topology)
    if group is not None and topology.num_ranks % group.order == 0 and topology.num_links % group.order == 0:
        action = Action(group, topology.num_ranks // group.order, topology.num_links // group.order)
        if _holds(topology, action):
            return action
    return Action(Translations((1,)), topology.num_ranks, topology.num_links)


def _known_group(topology: Topology) -> Group | None:
    if topology.symmetry is not None or topology.origin is None or topology.origin.name != "line":
        return topology.symmetry
    bases = topology.origin.bases
    return _known_group(bases[0]) if bases else None


def _holds(topology: Topology, action: Action) -> bool:
    links = np.arange(topology.num_links)
    first, by = links % action.links, links // action.links
    ends = ((topology.src, topology.src[first]), (topology.dst, topology.dst[first]))
    moved = all(np.array_equal(mine, action.move_ranks(base.astype(np.int64), by)) for mine, base in ends)
    return moved and np.array_equal(topology.link_class, topology.link_class[first])
