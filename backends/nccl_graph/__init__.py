"""NCCL's graph files: the rings of a schedule for unmodified NCCL, one file for each node that differs."""

from __future__ import annotations

from .target import NcclGraph

__all__ = ["NcclGraph"]
