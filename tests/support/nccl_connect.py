"""A second interpreter of NCCL's graph files: from texts to rings, with regular expressions and plain lists.

It knows less than the model in the package: it takes files of NCCL 2.22 and later whose GPUs have no ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["connected"]


def connected(texts: Sequence[str], nodes: Sequence[Sequence[int]], net: str = "") -> list[list[int]]:
    """Return the rings of all channels, doubled, from rank 0 on.

    ``nodes`` are the ranks of every node. GPUs are numbered by order, or in a network without a GPU as in the whole.
    """
    paths = []
    for text, ranks in zip(texts, nodes, strict=True):
        graph = re.findall(r"<graph .*?</graph>", text, re.DOTALL)[0]
        channels = re.findall(r"<channel>(.*?)</channel>", graph, re.DOTALL)
        orders = [[int(dev, 16) for dev in re.findall('<gpu dev="([^"]*)"', channel)] for channel in channels]
        known = sorted(orders[0])
        paths.append([[ranks[known.index(gpu)] for gpu in order] for order in orders])
        if 'crossnic="2"' in graph and len(orders) % 2 == 0 and len(paths) % 2 == 0:
            paths[-1] = [paths[-1][channel ^ 1] for channel in range(len(orders))]
    found = []
    for channel in range(len(paths[0])):
        ring = [rank for node in paths for rank in node[channel]]
        start = ring.index(0)
        found.append(ring[start:] + ring[:start])
    return found * 2
