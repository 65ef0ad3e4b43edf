"""Reader of the matrix of GPUs and NICs, and of the speeds of NVLinks, as `nvidia-smi` prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["completes", "read", "sniff"]

_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ROW = re.compile(r"\bGPU\d{1,6}[\s|*>]+(?:X|x|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB)[\s|*]")
_STATUS = re.compile(r"\bGPU \d{1,6}: [^\n]*(?:\(UUID: GPU-|\n[\s>|]*(?:Link \d+: |NVML: ))")


def sniff(head: str) -> bool:
    """Return whether a text begins like this format."""
    text = _CODES.sub("", head)
    return bool(_ROW.search(text) or _STATUS.search(text))


def completes(head: str) -> bool:
    """Return whether a text has no matrix, so that it belongs to the matrix of another text."""
    return not _ROW.search(_CODES.sub("", head))


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe: one machine, its matrix first or last.

    Raises CollcError with the mistakes: C0924 for text that is not understood, C0923 for a model or a speed that is
    missing, C0960 for the speeds of NVLinks without the matrix, C0961 for more NVLinks than the model has.
    """
    from .network import network

    return network(sources, figures)
