"""Link capacities as numbers of trees, and the packed trees."""

from __future__ import annotations

from fractions import Fraction

import attrs

from collc.ir.graph.cuts import FlowNetwork
from collc.ir.topology import Topology

__all__ = ["Tree", "flow_network", "link_capacities"]


@attrs.frozen
class Tree:
    """``weight`` equal trees that carry data from ``root`` to all ranks; edges are (parent, child), parents first."""

    root: int
    weight: int
    edges: tuple[tuple[int, int], ...]


def link_capacities(topology: Topology, per_unit: Fraction) -> list[int]:
    """Return how many whole trees each link holds: floor(U b), where U is the number for a unit of bandwidth."""
    whole = [int(kind.bandwidth * per_unit) for kind in topology.classes]
    return [whole[number] for number in topology.link_class.tolist()]


def flow_network(topology: Topology, capacity: list[int]) -> FlowNetwork:
    """Return the network of all nodes, ranks first, with parallel links added up."""
    ends = zip(topology.src.tolist(), topology.dst.tolist(), capacity, strict=True)
    return FlowNetwork(topology.num_nodes, (end for end in ends if end[2]))
