"""Tiers of a fabric, and the connected parts of a network."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["parts", "tier_name"]

_TIERS = ("leaf", "spine", "core")


def tier_name(height: int) -> str:
    """Return the name of the tier of links that go up from a height: 0 is a host, 1 a switch with hosts.

    >>> [tier_name(height) for height in range(5)]
    ['leaf', 'spine', 'core', 'tier4', 'tier5']
    """
    return _TIERS[height] if height < len(_TIERS) else f"tier{height + 1}"


def parts(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return for each node a node that stands for its connected part; links join in both directions.

    >>> parts("abcd", [("a", "b"), ("c", "b")])
    {'a': 'b', 'b': 'b', 'c': 'b', 'd': 'd'}
    """
    parent = {node: node for node in nodes}

    def top(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in links:
        parent[top(a)] = top(b)
    return {node: top(node) for node in parent}
