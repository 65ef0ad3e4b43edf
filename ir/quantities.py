"""Sizes as the API takes them, bytes or a text with a unit; sizes, times and bandwidths as tables show them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import SupportsIndex

from .diagnostic import error, nearest
from .shown import clipped

__all__ = ["SIZES", "in_bytes", "show_bandwidth", "show_size", "show_size_about", "show_time", "sizes_in_bytes"]

#: unit -> bytes
SIZES = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip

_SIZE = r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z]*)\s*"  # not compiled at every start


def in_bytes(size: int | str) -> int:
    """Return a size in bytes. Raises C0020 for anything but a whole number of bytes of at least 0.

    >>> in_bytes("64 MiB"), in_bytes("1.5KiB"), in_bytes(1000)
    (67108864, 1536, 1000)
    """
    if isinstance(size, str):
        return _parsed(size)
    if isinstance(size, bool) or not isinstance(size, SupportsIndex) or size.__index__() < 0:
        raise error(
            "C0020", f"found size {clipped(repr(size))}, needed bytes, or a text such as `64MiB`", exit_status=2
        )
    return size.__index__()


def sizes_in_bytes(sizes: int | str | Iterable[int | str]) -> tuple[int, ...]:
    """Return one size or several in bytes.

    >>> sizes_in_bytes(["1KiB", 5]), sizes_in_bytes("1KiB,1MB")
    ((1024, 5), (1024, 1000000))
    """
    if isinstance(sizes, str):
        return tuple(in_bytes(part) for part in sizes.split(","))
    return tuple(in_bytes(one) for one in sizes) if isinstance(sizes, Iterable) else (in_bytes(sizes),)


def _parsed(text: str) -> int:
    match = re.fullmatch(_SIZE, text, re.ASCII)
    if match is None or (match[2] and match[2] not in SIZES):
        same = [unit for unit in SIZES if match is not None and unit.lower() == match[2].lower()]
        known = f"did you mean `{same[0]}`?" if same else nearest(match[2], SIZES) if match else None
        hint = known or f"units are {', '.join(SIZES)}"
        message = f"found size `{clipped(text)}`, needed bytes, or a size such as `64MiB`"
        raise error("C0020", message, hint=hint, exit_status=2)
    value = Fraction(match[1]) * SIZES.get(match[2], 1)
    if value.denominator != 1:
        raise error("C0020", f"`{clipped(text)}` is not a whole number of bytes", exit_status=2)
    return int(value)


# ---- for tables


def show_size(value: int) -> str:
    """Return bytes in the largest binary unit that divides them.

    >>> show_size(1048576), show_size(1500)
    ('1 MiB', '1500 B')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % SIZES[unit] == 0:
            return f"{value // SIZES[unit]} {unit}"
    return f"{value} B"


def show_size_about(value: int) -> str:
    """Return bytes in three digits of a binary unit.

    >>> show_size_about(98266), show_size_about(500)
    ('96 KiB', '500 B')
    """
    for unit in ("GiB", "MiB", "KiB"):
        if value >= SIZES[unit]:
            return f"{value / SIZES[unit]:.3g} {unit}"
    return f"{value} B"


def show_time(seconds: float) -> str:
    """Return seconds with four digits in a suitable unit.

    >>> show_time(0.00012345)
    '123.5 us'
    """
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def show_bandwidth(value: float) -> str:
    """Return bytes per second in GB/s."""
    return f"{value / 1e9:.4g} GB/s"
