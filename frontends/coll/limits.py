"""Limits on what a file may describe, checked before anything is built; ``--node-limit`` sets them all."""

from __future__ import annotations

import attrs

from collc.ir.diagnostic import CollcError, Span, error

__all__ = [
    "DEFAULT_NODE_LIMIT", "LARGEST_NODE_LIMIT", "STATEMENTS_PER_NODE", "Limits", "count_text", "limit_hint",
    "too_large",
]  # fmt: skip

DEFAULT_NODE_LIMIT = 20_000
#: The largest node limit that a message suggests: a torus of a million nodes takes 150 MB to read.
LARGEST_NODE_LIMIT = 10**7
#: Links allowed for each node of the node limit: complete(1024) has a million, and 1,280,000 are allowed by default.
_LINKS_PER_NODE = 64
#: All topologies of a file together may be this many times as large as one may be.
_TOPOLOGIES = 8
#: Statements that one body may execute for each node of the node limit: 4,000,000 by default.
STATEMENTS_PER_NODE = 200

#: Calls of functions that a file may make for each node of the node limit: 4,000,000 by default.
_CALLS_PER_NODE = 200


@attrs.define
class Limits:
    """The limits of a file; ``--node-limit`` sets ``nodes``, and the others are multiples of it."""

    nodes: int = DEFAULT_NODE_LIMIT
    used_nodes: int = 0
    used_links: int = 0

    @property
    def links(self) -> int:
        """The most links that topologies may have."""
        return self.nodes * _LINKS_PER_NODE

    @property
    def statements(self) -> int:
        """The most statements that one body may execute."""
        return self.nodes * STATEMENTS_PER_NODE

    @property
    def calls(self) -> int:
        """The most calls of functions."""
        return self.nodes * _CALLS_PER_NODE

    def claim(self, what: str, nodes: int, links: int, span: Span | None) -> None:
        """Count a topology's size; raise C0310 if it, or all topologies together, are too large."""
        for count, noun, limit in ((nodes, "nodes", self.nodes), (links, "links", self.links)):
            if count > limit:
                found = f"{what} has {count_text(count)} {noun}, the limit is {limit}"
                raise too_large(found, span, _needed(nodes, links))
        self.used_nodes, self.used_links = self.used_nodes + nodes, self.used_links + links
        if self.used_nodes > _TOPOLOGIES * self.nodes or self.used_links > _TOPOLOGIES * self.links:
            total = f"{self.used_nodes} nodes and {self.used_links} links"
            most = f"{_TOPOLOGIES * self.nodes} and {_TOPOLOGIES * self.links}"
            needed = _needed(-(-self.used_nodes // _TOPOLOGIES), -(-self.used_links // _TOPOLOGIES))
            raise too_large(f"the topologies up to here have {total}, the limits are {most}", span, needed)


def _needed(nodes: int, links: int) -> int:
    """Return the node limit that would allow this many."""
    return max(nodes, -(-links // _LINKS_PER_NODE))


def count_text(number: int) -> str:
    """Return a number, or that it is beyond any limit."""
    return f"{number}" if number <= 10**12 else "more than 10^12"


def too_large(message: str, span: Span | None, needed: int | None = None, code: str = "C0310") -> CollcError:
    """Return the error for too much; its hint is the ``needed`` node limit, if it can be set."""
    return error(code, message, span=span, hint=limit_hint(needed))


def limit_hint(needed: int | None = None) -> str:
    """Return how to raise the node limit (to ``needed``, if that is known), or that no machine could hold so much.

    >>> limit_hint(30_000), limit_hint(10**20)
    ('`--node-limit 30000` raises the limit', 'use fewer: about 10000000 nodes are the most that fit into memory')
    """
    if needed is None:
        return "`--node-limit` raises the limit"
    if needed <= LARGEST_NODE_LIMIT:
        return f"`--node-limit {needed}` raises the limit"
    return f"use fewer: about {LARGEST_NODE_LIMIT} nodes are the most that fit into memory"
