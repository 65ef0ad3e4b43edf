"""Reader of a graph in GraphML, as `networkx.write_graphml` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

#: what may stand before the root, and the root with any prefix
_ROOT = re.compile(r"(?:\s|<\?[^>]*\?>|<!--.*?-->|<![^>]*>)*<(?:[\w.-]+:)?graphml[\s/>]", re.DOTALL)


def sniff(head: str) -> bool:
    """Return whether a text begins like this format: its root element is `graphml`.

    >>> sniff('<?xml version="1.0"?><graphml>'), sniff("<system/>")
    (True, False)
    """
    return _ROOT.match(head) is not None


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of a graph; one of several graphs is chosen by its id."""
    from ..importing.several import only
    from .reader import graph_in

    return graph_in(only(sources, "graphml"), figures)
