"""Reader of a graph as node-link JSON, as `networkx.node_link_data` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

_NODES = re.compile(r'"nodes"\s*:\s*\[\s*[\[{\]"\d]')
_EDGES = re.compile(r'"(?:edges|links)"\s*:\s*\[\s*[{\]]')
_FLAG = re.compile(r'\s*\{\s*"(?:directed|multigraph)"\s*:\s*(?:true|false)\b')


def sniff(head: str) -> bool:
    """Return whether a text begins like this format: an object with nodes, or with edges that are objects.

    >>> sniff('{"directed": true, "nodes": [{"id": 0}]}'), sniff('{"links": [[0, 1], [1, 0]]}')
    (True, False)
    """
    return bool(_FLAG.match(head) or (head.lstrip().startswith("{") and (_NODES.search(head) or _EDGES.search(head))))


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of a graph: node-link JSON of networkx, or of d3 with nodes numbered."""
    from ..importing.several import only
    from .reader import graph_in

    return graph_in(only(sources, "nodelink"), figures)
