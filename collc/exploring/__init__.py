"""The IR after every pass, side by side: what `collc explore` writes."""

from __future__ import annotations

from .changes import Change, changes
from .page import MOST_ROWS, page
from .rows import Row, rows
from .stages import Stage, Stages

__all__ = ["MOST_ROWS", "Change", "Row", "Stage", "Stages", "changes", "page", "rows"]
