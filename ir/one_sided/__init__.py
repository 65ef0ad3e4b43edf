"""One-sided programs: what MSCCL++ executes. A rank writes into its peers' buffers and tells them by signals."""

from __future__ import annotations

from .opcodes import Op
from .program import Channel, Item, OneSided, Operation

__all__ = ["Channel", "Item", "OneSided", "Op", "Operation"]
