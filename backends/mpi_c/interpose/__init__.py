"""MPI-C for programs that stay as they are: a library to be preloaded, which takes over their collectives.

``source`` writes its text, ``build`` compiles it, ``report`` reads what its ranks say. Only the first is loaded here.
"""

from __future__ import annotations

from .source import INTERPOSED, Served, interposed, interposing, listed, require_distinct, require_range

__all__ = ["INTERPOSED", "Served", "interposed", "interposing", "listed", "require_distinct", "require_range"]
