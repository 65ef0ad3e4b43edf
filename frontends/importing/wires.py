"""PCIe switches that are only wires: trees of devices without them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from typing import TypeVar

__all__ = ["without_wires"]

_Node = TypeVar("_Node", bound=Hashable)


def without_wires(
    nodes: Sequence[_Node], above: dict[_Node, _Node], bandwidth: dict[_Node, Fraction], bridges: Collection[_Node]
) -> list[_Node]:
    """Return the nodes of a forest without the bridges that have one node below them, or none.

    ``nodes`` has parents before children; ``above`` is the parent of each node but the roots, ``bandwidth`` of its link
    to that. Both are changed: a node below a left out bridge is linked to what is above the bridge, with the smaller
    bandwidth of the two links.

    >>> above, bandwidth = {"switch": "cpu", "gpu": "switch"}, {"switch": Fraction(12), "gpu": Fraction(24)}
    >>> without_wires(["cpu", "switch", "gpu"], above, bandwidth, {"switch"}), above["gpu"], bandwidth["gpu"]
    (['cpu', 'gpu'], 'cpu', Fraction(12, 1))
    """
    below = defaultdict[_Node, list[_Node]](list)
    kept = list[_Node]()
    for node in reversed(nodes):
        children = below.pop(node, [])
        parent = above.get(node)
        if node in bridges and len(children) <= 1 and parent is not None:
            for child in children:
                above[child], bandwidth[child] = parent, min(bandwidth[child], bandwidth[node])
                below[parent].append(child)
            continue
        kept.append(node)
        if parent is not None:
            below[parent].append(node)
    return kept[::-1]
