"""Send own shards from beside received ones: a rank copies them there first, so that one message holds all."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.program import Buffer
from collc.ir.ragged import starts

__all__ = ["Ends", "gathered", "grouped"]


def grouped(*columns: Array) -> Array:
    """Number the runs of equal rows of columns, from 0."""
    fresh = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    number: Array = starts(fresh)[: len(columns[0])]
    return number


@frozen(eq=False)
class Ends:
    """The places of messages at both ends: ``send`` and ``receive`` are (buffer, offset), a row for each message."""

    send: tuple[Array, Array]
    receive: tuple[Array, Array]

    def continues(self, group: Array, count: Array) -> Array:
        """Return for each message but the first whether it continues the one before: same group, adjacent places."""
        same: Array = group[1:] == group[:-1]
        for buffer, offset in (self.send, self.receive):
            same &= (buffer[1:] == buffer[:-1]) & (offset[:-1] + count[:-1] == offset[1:])
        return same


def gathered(group: Array, count: Array, own: Array, now: Ends, then: Ends) -> Array:
    """Return which of the ``own`` messages to send from the place of a copy, so that there are fewer instructions.

    Rows are messages; those of one step and connection are neighbours and have one number in ``group``. ``now`` are the
    places if ranks send own shards from the input, ``then`` if from their copies. Adjacent messages become one if the
    sends and receives that this saves are more than the copies into scratch that it needs. A copy to the output is
    needed anyway.
    """
    if not own.any():
        return own
    before, after = (ends.continues(group, count) for ends in (now, then))
    run = starts(~after)
    saved = np.bincount(run[1:][after & ~before], minlength=int(run[-1]) + 1)
    copies = np.bincount(run[own & (then.send[0] == Buffer.SCRATCH)], minlength=len(saved))
    shorter: Array = own & (2 * saved > copies)[run]
    return shorter
