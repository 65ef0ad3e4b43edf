"""Join contiguous transfers of one step into one message."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.opcodes import USES

__all__ = ["LOCAL", "RECEIVING", "SENDING", "join_messages"]

#: the kind of a threadblock, column ``kind`` of the draft's instructions
SENDING, RECEIVING, LOCAL = 0, 1, 2


def join_messages(t: dict[str, Array], sequence: Array) -> tuple[dict[str, Array], Array]:
    """Join instructions, sorted by block, with the instruction before them that they continue in the same step.

    A message is joined if its send and its receive both continue those of one other message.
    """
    joined = np.concatenate([[False], _continues(t)])
    before = np.concatenate([[-1], t["rank_order"][:-1]])
    message = (t["kind"] != LOCAL) & joined
    # At each end, the message before; both ends must agree.
    ends = np.full((2, int(t["rank_order"].max()) + 1), -1, dtype=np.int64)
    ends[t["kind"][message], t["rank_order"][message]] = before[message]
    agree = (ends[0] == ends[1]) & (ends[0] >= 0)
    joined &= ~message | agree[t["rank_order"]]
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(t["count"], heads)
    return {c: count if c == "count" else values[heads] for c, values in t.items()}, sequence[heads]


def _continues(t: dict[str, Array]) -> Array:
    """Return for each row but the first whether it continues the row before: same block, step and opcode, contiguous
    places.
    """
    same = np.ones(len(t["rank"]) - 1, dtype=bool)
    for column in ("rank", "kind", "peer", "channel", "time", "opcode"):
        same &= t[column][1:] == t[column][:-1]
    for end, used in USES.items():
        buffer, offset = t[f"{end}_buffer"], t[f"{end}_offset"]
        next_to = (buffer[1:] == buffer[:-1]) & (offset[:-1] + t["count"][:-1] == offset[1:])
        same &= next_to | ~used[t["opcode"][1:]]
    return same
