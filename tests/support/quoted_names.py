"""Whether the language reads names of nodes in quotes, which imported networks have."""

from __future__ import annotations

from imported import same_after_writing

from collc.frontends import coll
from collc.frontends.importing.coll_text import node_text
from collc.frontends.importing.model import Imported
from collc.ir.diagnostic import CollcError
from collc.ir.topology import Topology

__all__ = ["written"]


def _are_read() -> bool:
    try:
        coll.format_text('topology t { rank "a-b"; }')
    except CollcError:
        return False
    return True


def written(network: Imported) -> Topology:
    """Return the topology of a network, which its `.coll` text gives too if the language reads its names."""
    if all(node_text(name) == name for name in (*network.ranks, *network.switches)) or _are_read():
        return same_after_writing(network)
    return network.topology("pod")
