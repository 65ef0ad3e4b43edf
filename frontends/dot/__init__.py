"""Reader of a graph in Graphviz's language, as `Graphviz` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["read", "sniff"]

#: comments and lines of a preprocessor, then the head of a graph: a word, perhaps a name, and the brace
_HEAD = re.compile(
    r"(?:\s+|//[^\n]*|/\*.*?\*/|#[^\n]*)*+(?:strict\s+)?(?:di)?graph\b(?:\s|/\*.*?\*/)*+"
    r'(?:[\w.-]+|"(?:[^"\\]|\\.)*+"|<[^{}]*>)?\s*\{',
    re.IGNORECASE | re.DOTALL,
)


def sniff(head: str) -> bool:
    """Return whether a text begins like this format: `graph` or `digraph`, a name, and a brace.

    >>> sniff("// links\\nstrict digraph pod {"), sniff("topology graph {")
    (True, False)
    """
    return _HEAD.match(head) is not None


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of a graph; one of several graphs is chosen by its name."""
    from ..importing.several import only
    from .reader import graph_in

    return graph_in(only(sources, "dot"), figures)
