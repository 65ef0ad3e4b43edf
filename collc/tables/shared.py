"""Columns that several tables have, and how values of a kind are shown."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..messages.quantities import show_bandwidth, show_size, show_time
from .columns import Cell, Column, plain

__all__ = [
    "ALGBW",
    "BUSBW",
    "BYTES",
    "KIND",
    "NAME",
    "RANKS",
    "SCHEDULER",
    "exact",
    "exact_time",
    "gigabytes",
    "microseconds",
    "per_byte",
    "percent",
    "seconds",
    "share",
    "size",
    "times",
]


def size(value: Cell) -> str:
    """Return bytes in a binary unit."""
    return show_size(int(value)) if isinstance(value, int) else ""


def microseconds(value: Cell) -> str:
    """Return microseconds as a time with its unit."""
    return show_time(value / 1e6) if isinstance(value, (int, float)) else ""


def seconds(value: Cell) -> str:
    """Return seconds as a time with its unit."""
    return show_time(value) if isinstance(value, (int, float)) else ""


def gigabytes(value: Cell) -> str:
    """Return GB/s as a bandwidth with its unit."""
    return show_bandwidth(value * 1e9) if isinstance(value, (int, float)) else ""


def exact_time(value: Cell) -> str:
    """Return exact seconds as a time with its unit."""
    return show_time(float(value)) if isinstance(value, Fraction) else ""


def per_byte(value: Cell) -> str:
    """Return exact seconds a byte in nanoseconds."""
    return f"{float(value * 10**9):.4g} ns/B" if isinstance(value, Fraction) else ""


def share(value: Cell) -> str:
    """Return a part of 1 with four digits."""
    return f"{float(value):.4f}" if isinstance(value, (int, float, Fraction)) else ""


def times(value: Cell) -> str:
    """Return a ratio as a factor."""
    return f"{value:.2f}x" if isinstance(value, (int, float)) else ""


def percent(value: Cell) -> str:
    """Return a part of 1 in percent, with its sign."""
    return f"{100 * value:+.2f} %" if isinstance(value, (int, float)) else ""


NAME = Column("name", "collective", "text", "the collective's name in the file")
KIND = Column("collective", "kind", "text", "what the collective does: allreduce, allgather, ..")
RANKS = Column("ranks", "ranks", "integer", "number of ranks")
SCHEDULER = Column("scheduler", "scheduler", "text", "the scheduler")
BYTES = Column("size_bytes", "size", "integer", "M, bytes of the whole vector", size)
ALGBW = Column("algbw_GBps", "algbw", "number", "M over the time, in GB/s", gigabytes)
BUSBW = Column("busbw_GBps", "busbw", "number", "the bus bandwidth of nccl-tests, in GB/s", gigabytes)


def exact(
    key: str, heading: str, help: str, optional: bool = False, short: bool = True, show: Callable[[Cell], str] = plain
) -> tuple[Column, Column]:
    """Return the column of an exact value, and of the same as a float; people see the exact one if it is ``short``.

    ``show`` is how they see the float.
    """
    return (
        Column(key, heading, "rational", help, optional=optional, hidden=not short),
        Column(f"{key}_float", heading, "number", f"{key} as a float", show, optional=optional, hidden=short),
    )
