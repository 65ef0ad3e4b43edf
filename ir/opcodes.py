"""What instructions do, by opcode: one opcode at a time, and as tables that a column of opcodes indexes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from .arrays import Array

__all__ = [
    "FUSED", "LOCAL", "READS_DST", "READS_SRC", "RECEIVES", "REDUCES", "SENDS", "STORES", "USES", "WRITES_DST",
    "Opcode", "table",
]  # fmt: skip


class Opcode(IntEnum):
    """What an instruction does, chunk by chunk; all locations are on the executing rank (msccl-xml notes, 1.4).

    "in" is what arrives from the threadblock's receive peer, "out" what leaves to its send peer.
    """

    NOP = 0  #                      waits for its dependencies
    SEND = 1  #                     out <- src
    RECV = 2  #                     dst <- in
    COPY = 3  #                     dst <- src
    REDUCE = 4  #                   dst <- src + dst
    RECV_COPY_SEND = 5  #           dst <- in; out <- in
    RECV_REDUCE_COPY = 6  #         dst <- src + in
    RECV_REDUCE_SEND = 7  #         out <- src + in
    RECV_REDUCE_COPY_SEND = 8  #    dst <- src + in; out <- src + in

    @property
    def sends(self) -> bool:
        """Whether it sends chunks to the send peer."""
        return self in _SENDS

    @property
    def receives(self) -> bool:
        """Whether it takes chunks that arrive from the receive peer."""
        return self in _RECEIVES

    @property
    def reads_src(self) -> bool:
        """Whether it reads its src location."""
        return self in _READS

    @property
    def writes_dst(self) -> bool:
        """Whether it writes its dst location."""
        return self in _WRITES

    @property
    def reads_dst(self) -> bool:
        """Whether it reads its dst location before it writes there."""
        return self is Opcode.REDUCE

    @property
    def reduces(self) -> bool:
        """Whether it combines two operands by the collective's operation."""
        return self in _REDUCES


_SENDS = frozenset({1, 5, 7, 8})
_RECEIVES = frozenset({2, 5, 6, 7, 8})
_READS = frozenset({1, 3, 4, 6, 7, 8})
_WRITES = frozenset({2, 3, 4, 5, 6, 8})
_REDUCES = frozenset({4, 6, 7, 8})


def table(*opcodes: Opcode) -> Array:
    """Return a read-only table of whether each opcode is one of these.

    >>> table(Opcode.SEND)[[0, 1, 2]].tolist()
    [False, True, False]
    """
    found = np.array([opcode in opcodes for opcode in Opcode])
    found.flags.writeable = False
    return found


#: table[opcode], which an array of opcodes indexes too: ``SENDS[columns["opcode"]]``. A Program has the same as masks.
SENDS = table(*(op for op in Opcode if op.sends))
RECEIVES = table(*(op for op in Opcode if op.receives))
READS_SRC = table(*(op for op in Opcode if op.reads_src))
READS_DST = table(*(op for op in Opcode if op.reads_dst))
WRITES_DST = table(*(op for op in Opcode if op.writes_dst))
REDUCES = table(*(op for op in Opcode if op.reduces))
#: opcodes that overwrite dst without reading it
STORES = table(*(op for op in Opcode if op.writes_dst and not op.reads_dst))
#: opcodes that receive, and add or forward the data
FUSED = table(*(op for op in Opcode if op.receives and (op.sends or op.reduces)))
#: opcodes without messages
LOCAL = table(*(op for op in Opcode if not op.sends and not op.receives))
#: the opcodes that use the location ``src`` or ``dst``
USES = {"src": READS_SRC, "dst": WRITES_DST}
