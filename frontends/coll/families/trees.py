"""Trees: the double binary tree that NCCL runs allreduce on."""

from __future__ import annotations

import numpy as np

from collc.ir.graph.two_trees import two_trees
from collc.ir.topology import Topology

__all__ = ["double_binary_tree"]


def double_binary_tree(m: int) -> Topology:
    """Return the two trees of :func:`collc.ir.graph.two_trees.two_trees`, every edge a link each way: at most 4 a rank.

    Where both trees have an edge between two ranks there are parallel links. Links stand rank by rank, heads
    ascending. The direct-connect paper's baseline (section 8.2).

    >>> net = double_binary_tree(8)
    >>> net.num_links, int(net.out_degree.max()), net.diameter
    (28, 4, 3)
    """
    ranks, links = np.arange(m), []
    for parent in two_trees(m):
        edges = np.stack([ranks, parent], axis=1)[parent >= 0]
        links += [edges, edges[:, ::-1]]
    both = np.concatenate(links)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    return Topology("double_binary_tree", m, both[:, 0], both[:, 1])


def double_binary_tree_size(m: int) -> tuple[int, int]:
    return m, 4 * (m - 1)
