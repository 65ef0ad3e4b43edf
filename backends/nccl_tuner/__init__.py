"""Tuning -> the CSV of NCCL's tuner plugins: which of NCCL's own algorithms at which size."""

from __future__ import annotations

from .target import NcclTuner

__all__ = ["NcclTuner"]
