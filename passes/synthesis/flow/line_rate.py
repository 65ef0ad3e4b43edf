"""Line graphs: bounds on their all-to-all rate from the base.

H = L(G) has a rank for every link of G and a link for every two links of G that follow each other. A route from rank a
to rank b of H enters the ranks in between, which are links of G that form a walk from a's head to b's tail, and at last
b. Let G have d links in and out of every node, and let p be prices on its links. Then

    price of every link of H into rank b:  q(a, b) = p(b)

makes the cheapest route from a to b cost the cheapest walk in G from a's head to b's tail, plus p(b). All links of H
together cost d times the links of G (less p(b) if link b of G is a loop, since a loop does not follow itself). Prices
prove a bound on the rate of LP (3). Let H have N ranks, let D(x, y) = d^2 - (links of G from y to x) be the ranks of H
whose data go from node x to y, x other than y, and let l(D) be the least load of the busiest link of G that routes D.
Then for all G,

    1 / f_H  >=  (l(D) + N - 1) / d.

The links from y to x count because a rank sends no data to itself, not even around a cycle. They are few: l(D) is at
least d^2 / f_G minus their load, which is at most the load of a routing from each link's end back to its beginning.
Equality needs flows at every node of G that divide each in-link evenly among all out-links. Many products have such
flows, but not all graphs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import Topology

__all__ = ["base_of", "line_graph_prices", "pairs_between"]


def base_of(topology: Topology) -> Topology | None:
    """Return G where the topology is L(G), links of G numbered like its ranks, and all nodes have d > 1 links each way.

    Ranks with the same out-neighbours end at one node of G; two such sets are equal or disjoint (Heuchenne). Returns
    None for other topologies, for those with switches or different links, and if G has one node.

    >>> pairs = Topology.from_links("pairs", 4, [(0, 1), (0, 2), (1, 0), (1, 3), (2, 1), (2, 2), (3, 0), (3, 3)])
    >>> base_of(pairs).num_ranks, base_of(base_of(pairs)) is None
    (2, True)
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


def pairs_between(base: Topology) -> Array:
    """Return D: how many pairs of ranks of L(G) send from node x of G to node y, at ``[x, y]``, zero where x is y."""
    n, degree = base.num_ranks, base.num_links // base.num_ranks
    pairs = np.full((n, n), degree * degree, dtype=np.int64)
    np.subtract.at(pairs, (base.dst.astype(np.int64), base.src.astype(np.int64)), 1)
    np.fill_diagonal(pairs, 0)
    return pairs


def line_graph_prices(topology: Topology, price: Callable[[Topology, Array], Array]) -> Array | None:
    """Return a price for every link of L(G), from prices of G, or None if the topology is not a line graph.

    ``price`` returns good prices of the links of a base for data between its nodes.
    """
    base = base_of(topology)
    return None if base is None else price(base, pairs_between(base))[topology.dst.astype(np.int64)]
