"""Sending what is contiguous and goes in one step in one message."""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.program import Opcode

__all__ = ["LOCAL", "RECEIVING", "SENDING", "join_messages"]

Array = np.ndarray[Any, np.dtype[Any]]

#: what a threadblock does, as column ``kind`` of instructions in the making
SENDING, RECEIVING, LOCAL = 0, 1, 2

_READS = np.array([op.reads_src for op in Opcode])
_WRITES = np.array([op.writes_dst for op in Opcode])


def join_messages(t: dict[str, Array], sequence: Array) -> tuple[dict[str, Array], Array]:
    """Join instructions, sorted by block, to those before them of the same block and step that they continue.

    A message is joined where both its send and its receive follow those of one other message.
    """
    joined = np.concatenate([[False], _continues(t)])
    before = np.concatenate([[-1], t["rank_order"][:-1]])
    message = (t["kind"] != LOCAL) & joined
    # A message is named by its number; either end says which it would follow, and both must agree.
    ends = np.full((2, int(t["rank_order"].max()) + 1), -1, dtype=np.int64)
    ends[t["kind"][message], t["rank_order"][message]] = before[message]
    agree = (ends[0] == ends[1]) & (ends[0] >= 0)
    joined &= ~message | agree[t["rank_order"]]
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(t["count"], heads)
    return {c: count if c == "count" else values[heads] for c, values in t.items()}, sequence[heads]


def _continues(t: dict[str, Array]) -> Array:
    """Return for each row but the first whether it continues the one before: block, step and opcode, both places."""
    same = np.ones(len(t["rank"]) - 1, dtype=bool)
    for column in ("rank", "kind", "peer", "channel", "time", "opcode"):
        same &= t[column][1:] == t[column][:-1]
    for used, end in ((_READS, "src"), (_WRITES, "dst")):
        buffer, offset = t[f"{end}_buffer"], t[f"{end}_offset"]
        next_to = (buffer[1:] == buffer[:-1]) & (offset[:-1] + t["count"][:-1] == offset[1:])
        same &= next_to | ~used[t["opcode"][1:]]
    return same
