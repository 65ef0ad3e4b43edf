"""Reader of switches, hosts and cables of an InfiniBand fabric, as `ibnetdiscover` prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["completes", "read", "sniff"]

_BLOCK = re.compile(r"^[ \t>]*(Switch|Ca|Rt)[ \t]+[0-9]+[ \t]+\"", re.MULTILINE)
_PORT = re.compile(r"^[ \t>]*(SW|CA|RT)[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+0x[0-9a-f]{8,16}[ \t]", re.MULTILINE)


def sniff(head: str) -> bool:
    """Return whether a text has a block of a node, or lines of ``ibnetdiscover --ports``."""
    return bool(_BLOCK.search(head) or _PORT.search(head))


def completes(head: str) -> bool:
    """Return whether a text belongs to the fabric of the one before it: each may be a subnet of the same hosts."""
    return sniff(head)


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network in the texts: one subnet each, or parts of one; hosts of one name are the same."""
    from .fabric import network

    return network(sources, figures)
