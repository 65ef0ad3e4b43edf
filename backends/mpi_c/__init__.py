"""Program -> C99 over MPI point-to-point; builds and runs it on this machine."""

from __future__ import annotations

from .emit import MpiC

__all__ = ["MpiC"]
