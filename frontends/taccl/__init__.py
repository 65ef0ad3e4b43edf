"""Reader of a topology of TACCL as JSON, as `TACCL` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_KEYS = re.compile(r'"(?:gpus_per_node|node_betas_list|node_invbws_list|remote_invbw|intranode_sketch)"\s*:')


def sniff(head: str) -> bool:
    """Return whether a text begins like this format: an object with keys of a profile, or of a sketch.

    >>> sniff('{"name": "DGX2_1MB", "gpus_per_node": 16}'), sniff('{"nodes": []}')
    (True, False)
    """
    return head.lstrip().startswith("{") and _KEYS.search(head) is not None


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of a profile: one machine, its NICs linked to ``fabric``."""
    from ..importing.several import only
    from .reader import machine_in

    return machine_in(only(sources, "taccl"), figures)
