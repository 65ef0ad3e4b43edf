"""Reader of a network of dimensions as YAML, as ASTRA-sim's analytical backends read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_KEYS = re.compile(r"^[ \t>]*[\"']?(topology|npus_count)[\"']?[ \t]*:", re.MULTILINE)


def sniff(head: str) -> bool:
    """Return whether a text has the keys `topology` and `npus_count`."""
    return {found[1] for found in _KEYS.finditer(head)} == {"topology", "npus_count"}


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that one text describes."""
    from .dimensions import network

    return network(sources, figures)
