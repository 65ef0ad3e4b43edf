"""Problem -> the topology file of NCCL for a virtual machine, from the PCI tree of one machine."""

from __future__ import annotations

from .target import NcclTopo

__all__ = ["NcclTopo"]
