"""Checks of imported networks: connected, and the same after writing and reading the `.coll` file."""

from __future__ import annotations

from collc.frontends import coll
from collc.frontends.importing import read
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.figures import Figures
from collc.frontends.importing.model import Imported
from collc.ir.diagnostic import Source
from collc.ir.topology import Topology

__all__ = ["connected", "imported", "same_after_writing"]


def imported(text: str, format: str | None = None, figures: Figures | None = None, path: str = "node.txt") -> Imported:
    """Return the network in a text; its format is recognized if it is not given."""
    return read([Source(path, text)], figures, format)


def connected(topology: Topology) -> bool:
    """Return whether every rank reaches every rank."""
    ranks = topology.num_ranks
    return bool((topology.hops_from(0)[:ranks] >= 0).all() and (topology.hops_to(0)[:ranks] >= 0).all())


def same_after_writing(network: Imported) -> Topology:
    """Return the topology of a network, which its `.coll` text must give too, in canonical form."""
    expected = network.topology("pod")
    text = topology_text(network, "pod")
    assert coll.format_text(text) == text
    found = coll.load("pod.coll", text=text).topologies["pod"]
    assert found == expected, "the text gives another network"
    return expected
