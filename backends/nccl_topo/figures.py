"""The bandwidths that NCCL plans with, by what its topology files say (``src/graph/topo.h`` of NCCL 2.30), in GB/s.

They lie below the nominal figures of the hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

__all__ = ["CPUS", "GT", "MAKES", "NVLINKS", "XGMIS", "cpu_class", "pcie_link", "pcie_rate"]

#: GT/s of a lane -> its code; a link has width x code / 80 GB/s
GT: dict[str, int] = {"2.5": 15, "5": 30, "8": 60, "16": 120, "32": 240, "64": 480}
_WIDTHS = (16, 8, 4, 2, 1)

#: compute capability -> GB/s of an NVLink
NVLINKS = {80: Fraction(20), 90: Fraction(206, 10), 100: Fraction(401, 10), 86: Fraction(12), 60: Fraction(18)}
#: GPU -> GB/s of an xGMI link
XGMIS = {"gfx942": Fraction(48), "gfx90a": Fraction(36), "gfx908": Fraction(24)}

Attributes = Mapping[str, str]

#: GB/s between CPUs -> the attributes of a CPU with such links
CPUS: dict[Fraction, Attributes] = {
    Fraction(16): {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "25", "modelid": "1"},
    Fraction(22): {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "143"},
    Fraction(40): {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "207"},
    Fraction(10): {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "85"},
    Fraction(6): {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "79"},
    Fraction(32): {"arch": "ppc64"},
}

#: make of a CPU -> its attributes; of Intel's, Sapphire Rapids
MAKES: dict[str, Attributes] = {
    "amd": CPUS[Fraction(16)],
    "intel": CPUS[Fraction(22)],
    "arm": {"arch": "arm64"},
    "power": CPUS[Fraction(32)],
}


def pcie_rate(speed: str, width: int) -> Fraction:
    """Return the GB/s of a PCIe link of a speed in GT/s.

    >>> pcie_rate("16", 16), pcie_rate("32", 8)
    (Fraction(24, 1), Fraction(24, 1))
    """
    return Fraction(width * GT[speed], 80)


def pcie_link(rate: Fraction) -> tuple[str, int] | None:
    """Return the speed and the width of a link of these GB/s, the widest; None if there is none.

    >>> pcie_link(Fraction(24)), pcie_link(Fraction(25))
    (('16', 16), None)
    """
    return next(((speed, width) for width in _WIDTHS for speed in GT if pcie_rate(speed, width) == rate), None)


def cpu_class(rate: Fraction | None) -> Attributes | None:
    """Return the attributes of CPUs whose links have these GB/s (None: no links); None if there are none."""
    return CPUS[Fraction(16)] if rate is None else CPUS.get(rate)
