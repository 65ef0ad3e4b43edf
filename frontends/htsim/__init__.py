"""Reader of a tree of switches as tiers, as htsim reads it from `.topo` files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_KEYS = re.compile(r"^[ \t>]*(nodes|tiers|podsize)[ \t]+[0-9]", re.MULTILINE | re.IGNORECASE)


def sniff(head: str) -> bool:
    """Return whether a text has at least two of the keys `Nodes`, `Tiers` and `Podsize` with a number."""
    return len({found[1].lower() for found in _KEYS.finditer(head)}) >= 2


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that one text describes."""
    from .tiers import network

    return network(sources, figures)
