"""Topology -> text of another program: graphs for networkx and Graphviz, networks for ASTRA-sim and NCCL.

A text holds the whole network, or the writer refuses the topology and says why. So what reads a text back gets the same
network, link by link. A cabling list is for people: it has all links, in the order of cables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["FORMS", "Form", "write_network"]


class Form(NamedTuple):
    """A form of a network: the module whose ``write`` returns the text, and a summary."""

    module: str
    summary: str


#: name -> how a topology is written
FORMS: dict[str, Form] = {
    "nodelink": Form("nodelink", "node-link JSON of networkx"),
    "graphml": Form("graphml", "GraphML, as networkx writes it"),
    "dot": Form("dot", "Graphviz"),
    "astra-sim": Form("astra_sim", "YAML of ASTRA-sim's analytical network: rings, complete graphs and switches"),
    "astra-sim-gib": Form(
        "astra_sim_gib", "the same for ASTRA-sim's own arithmetic, in which a GB/s is 2^30 bytes a second"
    ),
    "nccl-topo": Form("nccl_topo", "XML of NCCL's topology dump: one box of GPUs"),
    "cabling": Form("cabling", "CSV with a line for each cable: node, port, peer, port of the peer"),
}


def write_network(topology: Topology, form: str) -> str:
    """Return the text of a topology in one of :data:`FORMS`; raise C0780 or C0781 if the form cannot hold it.

    >>> from collc.frontends.coll import topology
    >>> print(write_network(topology("biring(3) with { bandwidth: 25 GB/s, latency: 1 us }"), "astra-sim"), end="")
    # biring(3): 3 ranks
    topology: [ Ring ]
    npus_count: [ 3 ]
    bandwidth: [ 25 ]  # GB/s
    latency: [ 1000 ]  # ns
    """
    text: str = import_module(f"{__name__}.{FORMS[form].module}").write(topology)
    return text
