"""The testbed: a direct-connect network of network namespaces with rate-limited links, for MPI programs to run on."""

from __future__ import annotations

from .available import obstacle
from .network import Network, network
from .plan import Plan, plan

__all__ = ["Network", "Plan", "network", "obstacle", "plan"]
