"""Topologies as networkx graphs, and what they claim."""

from __future__ import annotations

import networkx as nx
import numpy as np

from collc.frontends.coll import topology
from collc.ir.topology import Topology


def links(graph: Topology) -> list[tuple[int, int]]:
    return sorted(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))


def as_graph(net: Topology) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(net.num_nodes))
    graph.add_edges_from(links(net))
    return graph


def isomorphic(expression: str, graph: nx.Graph) -> bool:
    """Whether a topology is a graph of networkx; undirected edges are one link each way, parallel links count."""
    directed = nx.MultiDiGraph(graph) if graph.is_directed() else nx.MultiDiGraph(graph.to_directed())
    count = nx.algorithms.isomorphism.numerical_multiedge_match("n", 1)
    return nx.is_isomorphic(as_graph(topology(expression)), directed, edge_match=count)


def claims_hold(net: Topology) -> bool:
    """Whether translation by every element maps link r*d + g to link (r + x)*d + g, ends and class included."""
    assert net.symmetry is not None and net.degree is not None
    d, ranks = net.degree, np.arange(net.num_ranks)
    if not np.array_equal(net.src, np.repeat(ranks, d)):
        return False
    heads = net.dst.astype(np.int64).reshape(net.num_ranks, d)
    kinds = net.link_class.reshape(net.num_ranks, d)
    for x in range(net.num_ranks):
        moved = net.symmetry.translate(ranks, np.array(x))
        same = net.symmetry.translate(heads.ravel(), np.array(x)).reshape(heads.shape) == heads[moved]
        if not same.all() or (kinds != kinds[moved]).any():
            return False
    return True
