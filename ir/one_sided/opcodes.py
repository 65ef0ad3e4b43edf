"""The operations of one-sided programs, and what each reads, writes and signals, as tables that a column indexes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..arrays import Array

__all__ = [
    "ADDS", "FLAGS", "PACKET_READS", "PACKET_WRITES", "PUBLISHES", "SIGNALS", "SWITCHES", "WAITS", "WORDS", "Op",
    "table",
]  # fmt: skip


class Op(IntEnum):
    """What an operation does; the word of each is its name in plans (mscclpp notes, 2.4).

    ``src`` and ``dst`` are its items in order. "slot" is an item in scratch that holds packets.
    """

    NOP = 0  #             joins the threads of its block
    BARRIER = 1  #         joins the blocks of its rank that name the same number
    COPY = 2  #            dst <- src, local
    PUT = 3  #             remote dst <- local src, item by item
    PWS = 4  #             put, then signal; ports only
    PWSF = 5  #            put, then signal, then wait until the source may be overwritten; ports only
    GET = 6  #             local dst <- remote src, item by item
    SIGNAL = 7  #          adds 1 to the peer's count of each channel; the peer sees all writes before it
    WAIT = 8  #            waits for one more signal of each channel
    RLXSIGNAL = 9  #       a signal that orders nothing
    RLXWAIT = 10  #        a wait that orders nothing
    FLUSH = 11  #          waits until puts of a port have left; nothing without dst items
    RE = 12  #             dst <- sum of src, local
    RES = 13  #            the same, and writes the sum to the remote dst
    RRE = 14  #            dst <- local src[0] + remote src[1:]
    RRES = 15  #           the same, and writes the sum to the remote dst
    PPKT = 16  #           remote slot <- src, as packets
    CPKT = 17  #           local slot <- src, as packets
    UPKT = 18  #           dst <- slot, when its packets are there
    RPPKT = 19  #          remote slots <- slot, when its packets are there
    REPKT = 20  #          dst[0] <- src[0] + slots, when their packets are there
    RESPKT = 21  #         the same, and sends the sum to the remote slots dst[1:]
    RECPKT = 22  #         REPKT, and the sum into the local slot dst[1]
    RECSPKT = 23  #        the same, and sends the sum to the remote slots dst[2:]
    GLRES = 24  #          all members' dst <- sum of all members' src, through a switch
    GSTORE = 25  #         all members' dst <- local src, through a switch
    GSTOREPKT = 26  #      all members' slots <- local slot, through a switch
    SEM_ACQUIRE = 27  #    lowers each semaphore by 1, when it is above 0
    SEM_RELEASE = 28  #    raises each semaphore by 1

    @property
    def word(self) -> str:
        """Its name in plans and in the textual IR."""
        return self.name.lower()


WORDS = tuple(op.word for op in Op)


def table(*ops: Op) -> Array:
    """Return a read-only table of whether each operation is one of these.

    >>> table(Op.PUT)[[0, 3]].tolist()
    [False, True]
    """
    found = np.array([op in ops for op in Op])
    found.flags.writeable = False
    return found


#: operations that add 1 to the peers' counts of their channels
SIGNALS = table(Op.SIGNAL, Op.RLXSIGNAL, Op.PWS, Op.PWSF)
#: signals that publish the writes before them
PUBLISHES = table(Op.SIGNAL, Op.PWS, Op.PWSF)
#: operations that wait for a count of their channels
WAITS = table(Op.WAIT, Op.RLXWAIT)
#: operations that add their sources
ADDS = table(
    Op.RE, Op.RES, Op.RRE, Op.RRES, Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT, Op.GLRES,
)  # fmt: skip
#: operations that wait for the packets of some of their sources
PACKET_READS = table(Op.UPKT, Op.RPPKT, Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT, Op.GSTOREPKT)
#: operations that write packets
PACKET_WRITES = table(Op.PPKT, Op.CPKT, Op.RPPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT, Op.GSTOREPKT)
#: operations with packets on some side
FLAGS = PACKET_READS | PACKET_WRITES
#: operations that a switch executes
SWITCHES = table(Op.GLRES, Op.GSTORE, Op.GSTOREPKT)
