"""Execution traces of MLCommons Chakra, which ASTRA-sim executes."""

from __future__ import annotations

from .target import Chakra

__all__ = ["Chakra"]
