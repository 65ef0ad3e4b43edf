"""Reader of a topology of msccl-tools as JSON, as `msccl-tools` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_TYPE = re.compile(r'"(?:msccl|sccl)_type"\s*:')


def sniff(head: str) -> bool:
    """Return whether a text begins like this format: an object with `msccl_type`.

    >>> sniff('{"msccl_type": "topology", "name": "DGX1"}'), sniff('{"name": "DGX1"}')
    (True, False)
    """
    return head.lstrip().startswith("{") and _TYPE.search(head) is not None


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of a topology, or of the topology in an algorithm."""
    from ..importing.several import only
    from .reader import network_in

    return network_in(only(sources, "msccl-tools"), figures)
