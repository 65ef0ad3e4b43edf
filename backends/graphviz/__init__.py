"""The network and the trees of a collective as graphs for Graphviz."""

from __future__ import annotations

from .target import Dot

__all__ = ["Dot"]
