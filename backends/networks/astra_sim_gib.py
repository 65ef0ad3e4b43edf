"""The YAML of ASTRA-sim's analytical network in the unit of its arithmetic, in which a GB/s is 2^30 bytes a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import astra_sim

if TYPE_CHECKING:
    from collc.ir.topology import Topology

__all__ = ["write"]


def write(topology: Topology) -> str:
    """Return the YAML; raise C0780 for a network that is no product of rings, complete graphs and switches."""
    return astra_sim.write(topology, 1 << 30, "2^30 B/s")
