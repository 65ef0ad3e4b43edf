"""Reader of topology files of NCCL and RCCL, full or hints only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ROOT = re.compile(r"<system(?=[\s/>])")


def sniff(head: str) -> bool:
    """Return whether a text begins like this format.

    >>> sniff('<system version="1">'), sniff('<topology version="2.0">')
    (True, False)
    """
    head = _COLOURS.sub("", head)
    found = _ROOT.search(head)
    return bool((found and re.search(r"<cpu(?=[\s/>])", head)) or (found and 'version="' in head[found.end() :][:40]))


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe; mistakes raise CollcError."""
    from .reading import read_machine

    return read_machine(sources, figures)
