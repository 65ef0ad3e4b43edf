"""Hints for units that do not exist, or that measure another thing than their place needs.

A hint is a quantity to write in place of the one found. Imported when a mistake was found.
"""

from __future__ import annotations

import re
from fractions import Fraction

from collc.ir.frozen import frozen

from ..units import BANDWIDTH, SIZE, TIME
from .printer import number_text
from .values import Quantity

__all__ = ["other_measure", "other_notation", "unknown_unit"]

_LISTED = {
    SIZE: "sizes are in B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)",
    BANDWIDTH: "bandwidths are in Gbps (bits) or GB/s (bytes), with K, M, G or T",
    TIME: "times are in ns, us, ms or s",
}
_ALL = "units are B, KB, KiB, .. for sizes, Gbps, GB/s, .. for bandwidths, ns, us, ms, s for times"
_TIMES = {
    "µs": "us", "μs": "us", "usec": "us", "usecs": "us", "mus": "us", "microseconds": "us", "microsecond": "us",
    "u": "us",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "msecs": "ms", "milliseconds": "ms",
    "nsec": "ns", "nsecs": "ns", "nanoseconds": "ns", "n": "ns", "nanos": "ns", "micros": "us", "millis": "ms",
}  # fmt: skip
_ELEMENTS = re.compile(r"(elem(ent)?|float|double|int|value|word|number|item|entrie|param(eter)?)s?\d*", re.IGNORECASE)
_NOUNS = frozenset({
    "ranks", "gpus", "nodes", "boxes", "links", "hosts", "gpu", "rank", "node", "x", "do", "then", "times", "dims",
})  # fmt: skip
_DATA = re.compile(
    r"(?P<prefix>k|m|g|t|kilo|mega|giga|tera)?(?P<binary>i|bi)?(?P<base>bits?|bytes?|b|o)?(?P<rate>/s|ps|/sec)?(?P<plural>s)?",
    re.IGNORECASE,
)


@frozen
class _Data:
    """A unit of data or of data per second, read as a person would; ``bits`` is None if it may be bits or bytes."""

    prefix: str
    binary: bool
    bits: bool | None
    rate: bool

    @classmethod
    def of(cls, unit: str) -> _Data | None:
        found = _DATA.fullmatch(unit)
        if not found:
            return None
        prefix, base = (found["prefix"] or "")[:1].upper(), found["base"] or ""
        bits = None if not base else base == "b" if len(base) == 1 else base.lower().startswith("bit")
        if base == "b" and (not found["prefix"] or found["prefix"].islower()):
            bits = None
        return cls(prefix, bool(found["binary"]), bits, bool(found["rate"]))


def unknown_unit(value: Fraction, unit: str, needs: tuple[str, ...] = ()) -> str:
    """Return what to write for a number with a unit that does not exist; ``needs`` are the measures that fit here.

    >>> unknown_unit(Fraction(64), "Mb", ("size",))
    'a size is in bytes: write `64 MB`, or `8 MB` for 64 megabits'
    >>> unknown_unit(Fraction(64), "Mb", ("bandwidth",)), unknown_unit(Fraction(3), "µs")
    ('write `64 Mbps`', 'write `3 us`')
    """
    if unit.lower() in _TIMES or unit.lower() in ("ns", "us", "ms", "s"):
        if not needs or TIME in needs:
            return f"write `{_text(value, _TIMES.get(unit.lower(), unit.lower()))}`"
        return _LISTED[needs[0]]
    if re.fullmatch(r"(x\d+)+", unit):
        return f"write `{_number(value)}{unit.replace('x', ', ')}`"
    if unit == "ps" and BANDWIDTH in needs and value > 0:
        return f"a rate is in bytes per second: write `{_text(1000 / value, 'GB/s')}`"
    if unit in _NOUNS:
        return f"write `{_number(value)}` alone"
    data = _Data.of(unit)
    if data is not None and needs in ((SIZE,), ()) and not data.rate and not (data.bits and not needs):
        return _size(value, data)
    if data is not None and (not needs or BANDWIDTH in needs):
        return _bandwidth(value, data)
    if data is not None and SIZE in needs:
        return _size(value, data)
    if _ELEMENTS.fullmatch(unit) and SIZE in needs:
        return f"a size is in bytes: {_number(value)} elements of 4 bytes are `{_text(4 * value, 'B')}`"
    return _LISTED[needs[0]] if len(needs) == 1 else _ALL


def _number(value: Fraction) -> str:
    return number_text(value) if value >= 0 else f"-{number_text(-value)}"


def _text(value: Fraction, unit: str) -> str:
    return f"{_number(value)} {unit}"


def _size(value: Fraction, data: _Data) -> str:
    if data.rate:
        return f"a size has no `/s`: write `{_text(value, _bytes(data))}`"
    if data.bits:
        words = {"": "", "K": "kilo", "M": "mega", "G": "giga", "T": "tera"}[data.prefix]
        whole, eighth = _text(value, _bytes(data)), _text(value / 8, _bytes(data))
        return f"a size is in bytes: write `{whole}`, or `{eighth}` for {_number(value)} {words}bit{'s' * (value != 1)}"
    if data.binary or not data.prefix:
        return f"write `{_text(value, _bytes(data))}`"
    decimal, binary = _text(value, f"{data.prefix}B"), _text(value, f"{data.prefix}iB")
    power = {"K": 1, "M": 2, "G": 3, "T": 4}[data.prefix]
    shown = "" if power == 1 else f"^{power}"
    return f"write `{decimal}` (1000{shown} bytes) or `{binary}` (1024{shown} bytes)"


def _bytes(data: _Data) -> str:
    return f"{data.prefix}{'i' if data.binary and data.prefix else ''}B"


def _bandwidth(value: Fraction, data: _Data) -> str:
    bits, rate = _text(value, f"{data.prefix}bps"), _text(value, f"{_bytes(data)}/s")
    if data.bits:
        return f"write `{bits}`"
    if data.bits is None:
        return f"write `{bits}` (bits) or `{rate}` (bytes)"
    return f"write `{rate}`"


_EXPONENT = re.compile(r"[eE](\d{1,2})")
_TIMES_SIGN = re.compile(r"[xX×](\d+)")


def other_notation(value: Fraction, unit: str) -> str | None:
    """Return what to write for a number in another notation, whose letters are read as a unit.

    >>> other_notation(Fraction(1), "e6"), other_notation(Fraction(1), "GB")
    ('numbers have no exponent: write `1000000`', None)
    """
    if (found := _EXPONENT.fullmatch(unit)) and int(found[1]) <= 20:
        return f"numbers have no exponent: write `{_number(value * 10 ** int(found[1]))}`"
    if re.fullmatch(r"(_\d{3})+", unit):
        return f"numbers have no `_`: write `{_number(value)}{unit.replace('_', '')}`"
    if value == 0 and re.fullmatch(r"[xX][0-9a-fA-F]{1,15}", unit):
        return f"numbers are decimal: write `{int(unit[1:], 16)}`"
    if found := _TIMES_SIGN.fullmatch(unit):
        return f"write `{_number(value)}, {found[1]}` for two sizes, `{_number(value)} * {found[1]}` for a product"
    return None


def other_measure(found: Quantity, needs: tuple[str, ...]) -> str:
    """Return what to write where a quantity measures another thing than one of ``needs``.

    >>> other_measure(Quantity(Fraction(10**11), "size", "100 GB"), ("bandwidth",))
    'write `100 GB/s`, which is `800 Gbps`'
    """
    number, _, unit = found.written.partition(" ")
    pair = (found.measure, next((need for need in needs if {need, found.measure} == {SIZE, BANDWIDTH}), ""))
    if not unit or not pair[1]:
        return _LISTED[needs[0]] if len(needs) == 1 else f"{_LISTED[needs[0]]}; {_LISTED[needs[1]]}"
    if pair == (SIZE, BANDWIDTH):
        bits = "" if "i" in unit else f", which is `{_text(8 * Fraction(number), unit.replace('B', 'bps'))}`"
        return f"write `{number} {unit}/s`{bits}"
    if unit.endswith("/s"):
        return f"write `{number} {unit.removesuffix('/s')}`"
    return f"a size is in bytes: write `{_text(Fraction(number) / 8, unit.replace('bps', 'B'))}`"
