"""The bandwidths that NCCL and RCCL plan with, which their topology files leave out.

NCCL v2.30 (`src/graph/topo.h`, `topo.cc`) and RCCL (`topo.h`). They are below the nominal bandwidths.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ..importing.figures import gigabytes

__all__ = [
    "INSIDE", "PARTS", "SLOWEST_SOCKETS", "between_sockets", "network", "nvlink", "pcie", "xgmi",
]  # fmt: skip

#: between two ports of one device
INSIDE = gigabytes(5000)
#: between two parts of one GPU
PARTS = gigabytes(2618)
#: between CPUs of an unknown model
SLOWEST_SOCKETS = gigabytes(6)

#: transfers a second -> hundreds of Mb/s of one lane
_LANES = {"2.5": 15, "5": 30, "8": 60, "16": 120, "32": 240, "64": 480}
_UNKNOWN_LANES = 60
_SPEED = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))? ?GT/s(?: PCIe)?", re.IGNORECASE)


def pcie(speed: str | None, width: int) -> tuple[Fraction, bool]:
    """Return the bandwidth of a PCIe link, and whether its speed is known; a width of 0 lanes counts as 16.

    >>> pcie("16.0 GT/s PCIe", 16), pcie("", 0)
    ((Fraction(24000000000, 1), True), (Fraction(12000000000, 1), False))
    """
    found = _SPEED.fullmatch(speed or "")
    number = f"{int(found[1])}.{found[2] or ''}".rstrip("0").rstrip(".") if found else ""
    return gigabytes(Fraction(_LANES.get(number, _UNKNOWN_LANES) * (width or 16), 80)), number in _LANES


def nvlink(sm: int) -> Fraction:
    """Return the bandwidth of one NVLink of a GPU with compute capability ``sm`` (90 is 9.0).

    >>> nvlink(90)
    Fraction(20600000000, 1)
    """
    if sm == 86:
        return gigabytes(12)
    table = ((100, "40.1"), (90, "20.6"), (70, "20"), (60, "18"))
    return gigabytes(next((rate for least, rate in table if sm >= least), "20"))


def xgmi(gcn: str) -> Fraction:
    """Return the bandwidth of one xGMI link of a GPU of an architecture: ``gfx942``, or ``910`` in older files.

    >>> xgmi("gfx942") == xgmi("942"), xgmi("910") == xgmi("gfx90a")
    (True, True)
    """
    name = gcn.lower().removeprefix("gfx")
    if name.startswith(("94", "95")):
        return gigabytes(48)
    return gigabytes(36 if name in ("910", "90a") else 24)


def between_sockets(arch: str, vendor: str, family: int, model: int) -> Fraction | None:
    """Return the bandwidth between two CPUs in each direction; None for a CPU that NCCL does not know.

    >>> between_sockets("x86_64", "GenuineIntel", 6, 143)
    Fraction(22000000000, 1)
    """
    if arch != "x86_64":
        known = {"arm64": 6, "aarch64": 6, "ppc64": 32, "ppc64le": 32}
        return gigabytes(known[arch]) if arch in known else None
    if vendor == "GenuineIntel":
        return gigabytes(_intel(family, model))
    if vendor in ("CentaurHauls", "Shanghai"):
        return gigabytes(9 if (family, model) == (7, 0x5B) else 6)
    return gigabytes(16) if vendor == "AuthenticAMD" else None


def _intel(family: int, model: int) -> int:
    """Return GB/s between Intel CPUs; Granite Rapids and Sierra Forest have smaller numbers than Emerald Rapids."""
    if family != 6:
        return 6
    if model >= 0xCF or model in (0xAD, 0xAE, 0xAF):
        return 40
    return next((rate for least, rate in ((0x8F, 22), (0x55, 10)) if model >= least), 6)


def network(megabits: Fraction) -> Fraction:
    """Return the bandwidth of a NIC with a speed in Mb/s.

    >>> network(Fraction(400_000))
    Fraction(50000000000, 1)
    """
    return gigabytes(megabits / 8000)
