"""MPI-C for unmodified programs: a preloaded library that serves their collective calls.

``source`` writes its text, ``build`` compiles it, ``report`` reads the reports of its ranks. This module imports only
``source``.
"""

from __future__ import annotations

from .source import INTERPOSED, Served, interposed, interposing, listed, require_distinct, require_range

__all__ = ["INTERPOSED", "Served", "interposed", "interposing", "listed", "require_distinct", "require_range"]
