"""The output of `amd-smi topology` as text; also of `amd-smi static`, if the text has it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from collc.ir.diagnostic import Source

from ..importing.model import Draft
from ..importing.xgmi import Box
from ..importing.xgmi_tables import read_tables

__all__ = ["read_text"]

_GPU = re.compile(r"[^\w]*GPU:\s*(\d{1,6})\s*")
_MODEL = re.compile(r"[^\w]*(?:MARKET_NAME|TARGET_GRAPHICS_VERSION):\s*(\S.*)")
_NODE = re.compile(r"[^\w]*NODE:\s*(\d{1,6})\s*")


def read_text(draft: Draft, sources: Sequence[Source]) -> Box:
    """Return what the text says of one machine; mistakes go into the draft."""
    box, rest, index = read_tables(draft, sources)
    gpu: int | None = None
    for line in rest:
        if found := _GPU.fullmatch(line.text):
            gpu = index.get(int(found[1]))
        elif gpu is not None and (model := _MODEL.fullmatch(line.text)):
            box.name(gpu, model[1].strip())
        elif gpu is not None and (node := _NODE.fullmatch(line.text)):
            box.nodes[gpu] = int(node[1])
    return box
