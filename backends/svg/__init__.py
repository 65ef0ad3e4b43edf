"""Network, trees, loads and goodput of a collective as SVG files."""

from __future__ import annotations

from .target import Svg

__all__ = ["Svg"]
