"""The words in a matrix of `nvidia-smi topo`: names of devices, and what stands between two of them."""

from __future__ import annotations

import re
from enum import Enum, IntEnum

from ..importing.squares import Shape

__all__ = ["NEEDED", "SHAPE", "Level", "Other", "gpu_number", "meaning", "nvlinks_text"]

#: what a cell may say, for messages
NEEDED = "X, NV#, PIX, PXB, PHB, NODE or SYS"


class Level(IntEnum):
    """How far two devices are from each other on PCIe, the closest first."""

    PIX = 1
    PXB = 2
    PHB = 3
    NODE = 4
    SYS = 5


class Other(Enum):
    """What else a cell may say: the device itself, a status of `topo -p2p`, or that the driver does not know."""

    SELF = "self"
    STATUS = "status"
    UNKNOWN = "unknown"


#: drivers before 384 printed SOC for SYS, and PSB for the bridge on a board with two GPUs
_LEVELS = {**Level.__members__, "SOC": Level.SYS, "PSB": Level.PIX}
_SELF = ("X", "x", "\N{MULTIPLICATION SIGN}", "SELF", "Self", "self")
_STATUSES = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")
_UNKNOWN = ("N/A", "ERR!", "ERR", "UNKNOWN", "Unknown", "?")
_NVLINKS = re.compile(r"NV(\d{1,4})")
_CELL = re.compile(
    "|".join([_NVLINKS.pattern.replace("(", "(?:"), *map(re.escape, (*_LEVELS, *_SELF, *_STATUSES, *_UNKNOWN))])
)
#: words above the other columns; a terminal may have broken them
_HEADINGS = ("CPU", "NUMA", "Affinity", "GPU", "ID", "Memory", "Node")
_GPU = re.compile(r"GPU(\d{1,6})")
_NAME = re.compile(r"[A-Za-z][\w.-]*\d[\w.-]*")


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and not _CELL.fullmatch(text)


SHAPE = Shape(
    first=_GPU,
    sure=re.compile(r"(?:GPU|NIC|mlx\d_)\d+"),
    name=_is_name,
    cell=_CELL,
    heading=lambda text: any(text in word for word in _HEADINGS),
    beside=re.compile(r"\d[\d,-]*|N/A"),
)


def meaning(text: str) -> int | Level | Other | None:
    """Return what a cell says: the number of NVLinks, the distance on PCIe, or another word; None if it is unknown.

    >>> meaning("NV12"), meaning("SOC"), meaning("OK"), meaning("NVX")
    (12, <Level.SYS: 5>, <Other.STATUS: 'status'>, None)
    """
    if text in _LEVELS:
        return _LEVELS[text]
    if found := _NVLINKS.fullmatch(text):
        return int(found[1]) or Other.UNKNOWN
    if text in _SELF:
        return Other.SELF
    if text in _STATUSES:
        return Other.STATUS
    return Other.UNKNOWN if text in _UNKNOWN else None


def nvlinks_text(count: int) -> str:
    """Return how the matrix writes a number of NVLinks.

    >>> nvlinks_text(18)
    'NV18'
    """
    return f"NV{count}"


def gpu_number(name: str) -> int | None:
    """Return the number of a GPU; None for another device.

    >>> gpu_number("GPU7"), gpu_number("mlx5_0")
    (7, None)
    """
    found = _GPU.fullmatch(name)
    return int(found[1]) if found else None
