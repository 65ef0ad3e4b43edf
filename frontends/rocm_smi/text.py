"""The output of `rocm-smi --showtopo` as text; also of `--shownodesbw` and `--showproductname`, if the text has it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from collc.ir.diagnostic import Source

from ..importing.model import Draft
from ..importing.xgmi import Box
from ..importing.xgmi_tables import read_tables

__all__ = ["read_text"]

_LINE = r"[^\w]*GPU\s?\[?(\d{1,6})\]?\s*:\s*"
_NODE = re.compile(_LINE + r"(?:\(Topology\)\s*)?Numa Node:\s*(\d{1,6})\s*", re.IGNORECASE)
_MODEL = re.compile(_LINE + r"(?:Card (?:series|model)|GFX Version):\s*(\S.*)", re.IGNORECASE)


def read_text(draft: Draft, sources: Sequence[Source]) -> Box:
    """Return what the text says of one machine; mistakes go into the draft."""
    box, rest, index = read_tables(draft, sources)
    for line in rest:
        if (node := _NODE.fullmatch(line.text)) and int(node[1]) in index:
            box.nodes[index[int(node[1])]] = int(node[2])
        elif (model := _MODEL.fullmatch(line.text)) and int(model[1]) in index:
            box.name(index[int(model[1])], model[2].strip())
    return box
