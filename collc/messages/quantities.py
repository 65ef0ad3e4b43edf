"""Sizes, times and bandwidths of the command line: ``1MiB``, ``10us``, ``100Gbps``. Exact."""

from __future__ import annotations

import re
from fractions import Fraction

from collc.ir.diagnostic import error, nearest
from collc.ir.quantities import SIZES, show_bandwidth, show_size, show_size_about, show_time

__all__ = [
    "bandwidth", "gamma", "show_bandwidth", "show_size", "show_size_about", "show_time", "size", "time",
]  # fmt: skip

TIMES = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": Fraction(1)}
BANDWIDTHS: dict[str, Fraction] = {
    **{f"{name}/s": Fraction(value) for name, value in SIZES.items()},
    **{f"{p}bps": Fraction(10 ** (3 * i), 8) for i, p in enumerate(("", "K", "M", "G", "T"))},
}

TIMES_PER_BYTE = {"ps/B": Fraction(1, 10**12), **{f"{name}/B": time for name, time in TIMES.items() if name != "s"}}

_NUMBER = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z/]*)\s*", re.ASCII)


def size(text: str, option: str) -> int:
    """Return bytes. A bare number is bytes.

    >>> size("1MiB", "--size")
    1048576
    """
    value = _quantity(text, option, "a size such as 64MiB", {"": 1, **SIZES})
    if value.denominator != 1:
        raise error("C0020", f"{option} `{text}` is not a whole number of bytes", exit_status=2)
    return int(value)


def time(text: str, option: str) -> Fraction:
    """Return seconds.

    >>> time("10us", "--alpha")
    Fraction(1, 100000)
    """
    return _quantity(text, option, "a time such as 10us", TIMES)


def bandwidth(text: str, option: str) -> Fraction:
    """Return bytes per second, more than 0.

    >>> bandwidth("100Gbps", "--bandwidth")
    Fraction(12500000000, 1)
    """
    value = _quantity(text, option, "a bandwidth such as 100Gbps or 25GB/s", BANDWIDTHS)
    if value == 0:
        raise error("C0020", f"{option} must be more than 0, found `{text}`", exit_status=2)
    return value


def gamma(text: str, option: str) -> Fraction:
    """Return the seconds to add a byte, from a time per byte or the bytes added per second; 0 for `0`.

    >>> gamma("2ps/B", "--gamma") == gamma("500GB/s", "--gamma") == Fraction(1, 500 * 10**9)
    True
    """
    if text.strip().endswith("/B") or text.strip() == "0":
        return _quantity(text, option, _GAMMA, {"": Fraction(0), **TIMES_PER_BYTE})
    value = _quantity(text, option, _GAMMA, {**TIMES_PER_BYTE, **BANDWIDTHS})
    if value == 0:
        raise error("C0020", f"{option} must be more than 0 bytes per second, found `{text}`", exit_status=2)
    return 1 / value


_GAMMA = "a time per byte such as 0.002ns/B, or a rate such as 500GB/s"


def _quantity(text: str, option: str, need: str, units: dict[str, Fraction] | dict[str, int]) -> Fraction:
    match = _NUMBER.fullmatch(text)
    if match and match[2] in units:
        return Fraction(match[1]) * units[match[2]]
    hint = _nearest_unit(match[2], units) if match and match[2] else None
    raise error(
        "C0020",
        f"{option} needs {need}, found `{text}`",
        hint=hint or f"units are {_listed(units)}",
        exit_status=2,
    )


def _nearest_unit(found: str, units: dict[str, Fraction] | dict[str, int]) -> str | None:
    """Return a hint: the unit with the same letters in any case, else the nearest."""
    same = [unit for unit in units if unit.lower() == found.lower()]
    return f"did you mean `{same[0]}`?" if same else nearest(found, units)


def _listed(units: dict[str, Fraction] | dict[str, int]) -> str:
    return ", ".join(unit for unit in units if unit)
