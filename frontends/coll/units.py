"""The units of the language, exact: sizes in bytes, bandwidths in bytes per second, times in seconds."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.diagnostic import nearest

__all__ = ["BANDWIDTH", "SIZE", "TIME", "UNITS", "unit_hint"]

SIZE, BANDWIDTH, TIME = "size", "bandwidth", "time"


def _units() -> dict[str, tuple[str, Fraction]]:
    table = {"B": (SIZE, Fraction(1)), "bps": (BANDWIDTH, Fraction(1, 8)), "B/s": (BANDWIDTH, Fraction(1))}
    for power, letter in enumerate("KMGT", start=1):
        decimal, binary = Fraction(1000) ** power, Fraction(1024) ** power
        table[f"{letter}B"] = SIZE, decimal
        table[f"{letter}iB"] = SIZE, binary
        table[f"{letter}bps"] = BANDWIDTH, decimal / 8
        table[f"{letter}B/s"] = BANDWIDTH, decimal
        table[f"{letter}iB/s"] = BANDWIDTH, binary
    for power, name in enumerate(("s", "ms", "us", "ns")):
        table[name] = TIME, Fraction(1, 1000**power)
    return table


#: unit -> (measure, multiple of the base unit)
UNITS = _units()

#: foreign spellings whose nearest unit by letters would be the wrong one
_ELSEWHERE = {
    "µs": "us", "μs": "us", "usec": "us", "sec": "s", "msec": "ms", "nsec": "ns", "kB": "KB", "k": "KB", "K": "KiB",
    "M": "MiB", "G": "GiB", "T": "TiB", "KBps": "KB/s", "MBps": "MB/s", "GBps": "GB/s", "TBps": "TB/s", "Kb/s": "Kbps",
    "Mb/s": "Mbps", "Gb/s": "Gbps", "Tb/s": "Tbps", "Kbit/s": "Kbps", "Mbit/s": "Mbps", "Gbit/s": "Gbps", "b/s": "bps",
    "KB/sec": "KB/s", "MB/sec": "MB/s", "GB/sec": "GB/s", "Gbit": "Gbps", "Mbit": "Mbps", "Gb": "Gbps", "Mb": "Mbps",
}  # fmt: skip


def unit_hint(unit: str) -> str | None:
    """Return a hint with the unit that was probably meant.

    >>> unit_hint("Gb/s"), unit_hint("gbps")
    ('did you mean `Gbps`?', 'did you mean `Gbps`?')
    """
    if unit in _ELSEWHERE:
        return f"did you mean `{_ELSEWHERE[unit]}`?"
    same = [known for known in UNITS if known.lower() == unit.lower()]
    return f"did you mean `{same[0]}`?" if same else nearest(unit, UNITS)
