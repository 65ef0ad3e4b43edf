"""Program -> C99 over MPI point-to-point, and the means to build and run it here."""

from __future__ import annotations

from .emit import MpiC

__all__ = ["MpiC"]
