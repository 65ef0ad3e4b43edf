"""Line graphs: what the all-to-all of the base says about theirs.

H = L(G) has a rank for every link of G and a link for every two links of G that follow each other. On the way from rank
a to rank b of H data enter the ranks in between, which are links of G that form a walk from a's head to b's tail, and
at last b. Let G have d links in and out of every node, and let p be prices on its links. Then

    price of every link of H into rank b:  q(a, b) = p(b)

makes the cheapest way from a to b cost the cheapest walk in G from a's head to b's tail, and p(b) more, while all links
of H cost d times what all links of G cost (less p(b) where link b of G is a loop, for it is no neighbour of its own).
Prices prove a bound on the rate of LP (3), so for all G, with N ranks of H, D(x, y) = d^2 - (links of G from y to x)
for the ranks of H whose data go from node x to y, x other than y, and l(D) the load of a busiest link of G that routes
D as well as can be,

    1 / f_H  >=  (l(D) + N - 1) / d.

The links from y to x count because a rank sends nothing to itself, not even around a circle. They are few: l(D) is at
least d^2 / f_G less what they would need, which is at most the load of a routing that takes each link's end back to its
beginning. Equality needs flows at every node of G that leave each in-link evenly for all out-links: often there are
such flows, as on many products, but not always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from collc.ir.topology import Topology

__all__ = ["base_of", "lifted", "passing"]

Array = np.ndarray[Any, np.dtype[Any]]


def base_of(topology: Topology) -> Topology | None:
    """Return G where the topology is L(G), links of G numbered like its ranks, and all nodes have d > 1 links each way.

    Ranks with the same out-neighbours end at one node of G; no two such sets may meet otherwise (Heuchenne). Nothing
    is returned for other topologies, for such as have switches or links that differ, and where G has one node.

    >>> ring = Topology.from_links("pairs", 4, [(0, 1), (0, 2), (1, 0), (1, 3), (2, 1), (2, 2), (3, 0), (3, 3)])
    >>> base_of(ring) is None
    True
    """
    degree, ranks = topology.degree, topology.num_ranks
    if degree is None or degree < 2 or ranks <= degree or ranks % degree or not topology.is_direct:
        return None
    if not topology.is_uniform:
        return None
    out = np.sort(topology.dst[topology.out_links[1]].astype(np.int64).reshape(ranks, degree), axis=1)
    followers, head = np.unique(out, axis=0, return_inverse=True)
    if followers.size != ranks or len(np.unique(followers)) != ranks:
        return None
    tail = np.empty(ranks, dtype=np.int64)
    tail[followers.ravel()] = np.repeat(np.arange(len(followers)), degree)
    return Topology("base", len(followers), tail, head.ravel())


def passing(base: Topology) -> Array:
    """Return D: how many pairs of ranks of L(G) send from node x of G to node y, at ``[x, y]``, zero where x is y."""
    n, degree = base.num_ranks, base.num_links // base.num_ranks
    pairs = np.full((n, n), degree * degree, dtype=np.int64)
    np.subtract.at(pairs, (base.dst.astype(np.int64), base.src.astype(np.int64)), 1)
    np.fill_diagonal(pairs, 0)
    return pairs


def lifted(topology: Topology, price: Callable[[Topology, Array], Array]) -> Array | None:
    """Return a price for every link of L(G), from prices of G, or nothing where the topology is no such graph.

    ``price`` returns good prices of the links of a base for data between its nodes.
    """
    base = base_of(topology)
    return None if base is None else price(base, passing(base))[topology.dst.astype(np.int64)]
