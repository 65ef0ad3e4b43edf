"""The testbed: network namespaces with rate-limited links, as a direct-connect network for MPI programs."""

from __future__ import annotations

from .available import obstacle
from .network import Network, network
from .plan import Plan, plan

__all__ = ["Network", "Plan", "network", "obstacle", "plan"]
