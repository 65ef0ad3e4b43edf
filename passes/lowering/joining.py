"""Join contiguous transfers of one step into one message."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.opcodes import USES
from collc.ir.program import Buffer, Opcode
from collc.ir.ragged import ranges

__all__ = ["LOCAL", "RECEIVING", "SENDING", "join_messages"]

#: the kind of a threadblock, column ``kind`` of the draft's instructions
SENDING, RECEIVING, LOCAL = 0, 1, 2


def join_messages(t: dict[str, Array], sequence: Array) -> tuple[dict[str, Array], Array]:
    """Join instructions, sorted by block, with the instruction before them that they continue in the same step.

    A message is joined if its send and its receive both continue those of one other message. It then acts as early as
    that one, so it may not be joined if it adds to data that another message of the step stores first.
    """
    joined = np.concatenate([[False], _continues(t)])
    before = np.concatenate([[-1], t["rank_order"][:-1]])
    message = (t["kind"] != LOCAL) & joined
    # At each end, the message before; both ends must agree.
    ends = np.full((2, int(t["rank_order"].max()) + 1), -1, dtype=np.int64)
    ends[t["kind"][message], t["rank_order"][message]] = before[message]
    agree = (ends[0] == ends[1]) & (ends[0] >= 0)
    joined &= ~message | agree[t["rank_order"]]
    while (early := _before_first(t, joined)).any():
        joined &= ~(message & np.isin(t["rank_order"], t["rank_order"][early]))
    heads = np.flatnonzero(~joined)
    count = np.add.reduceat(t["count"], heads)
    return {c: count if c == "count" else values[heads] for c, values in t.items()}, sequence[heads]


def _before_first(t: dict[str, Array], joined: Array) -> Array:
    """Return which joined rows add to data before the row that stores these first, and so must not be joined."""
    receives = (t["kind"] == RECEIVING) & np.isin(t["opcode"], (Opcode.RECV, Opcode.RECV_REDUCE_COPY))
    at_home = (t["src_buffer"] == t["dst_buffer"]) & (t["src_offset"] == t["dst_offset"])
    adds = joined & receives & at_home & (t["opcode"] == Opcode.RECV_REDUCE_COPY)
    found = np.zeros(len(joined), dtype=bool)
    if not adds.any():
        return found
    acts = t["rank_order"][~joined][np.cumsum(~joined) - 1]
    span = int((t["dst_offset"] + t["count"]).max()) + 1
    place = (t["rank"].astype(np.int64) * len(Buffer) + t["dst_buffer"]) * span + t["dst_offset"]
    first = np.flatnonzero(receives & ~(at_home & (t["opcode"] == Opcode.RECV_REDUCE_COPY)))
    first = first[np.argsort(place[first], kind="stable")]
    row = np.flatnonzero(adds)
    begin = np.searchsorted((place + t["count"])[first], place[row], side="right")
    count = np.maximum(np.searchsorted(place[first], place[row] + t["count"][row]) - begin, 0)
    before, row = first[ranges(begin, count)], np.repeat(row, count)
    found[row[(t["time"][before] == t["time"][row]) & (acts[before] > acts[row])]] = True
    return found


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
