"""Reader of a machine as hwloc sees it, with distances, as `lstopo --of xml` prints or writes it."""

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
_ROOT = re.compile(r"<topology(?=[\s>])")


def sniff(head: str) -> bool:
    """Return whether a text begins like this format.

    >>> sniff('<topology version="2.0"><object type="Machine">'), sniff('<system version="1">')
    (True, False)
    """
    head = _COLOURS.sub("", head)
    return bool(_ROOT.search(head) and "<object" in head) or "hwloc.dtd" in head[:400] or "hwloc2.dtd" in head[:400]


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe; mistakes raise CollcError."""
    from .network import read_machine

    return read_machine(sources, figures)
