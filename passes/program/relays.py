"""Why relays are not fused: for each message that a rank forwards, the reason why its send stays a send."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, are_among, distinct
from collc.ir.program import Opcode, Program
from collc.ir.shown import counted

__all__ = ["why_not_fused"]

_PARTS = "join or split received messages"
_AGAIN = "send data again that another send forwards"
_DELAYS = "would delay the received data, because their threadblock is busy"
_APART = "are in threadblocks that would take longer or break a limit if joined"


def why_not_fused(
    program: Program, clashes: tuple[Array, Array], relays: tuple[Array, Array], prompt: tuple[Array, Array],
    fused: Array,
) -> str:  # fmt: skip
    """Return how many of the messages that ranks forward are fused with a receive, and the reasons for the others.

    ``relays`` are the pairs (receive, send) of equal messages, ``prompt`` those whose fusion delays nothing, ``fused``
    the receives that are fused. ``clashes`` are the program's :func:`.hazards.conflicts`.
    """
    later, earlier = clashes
    forwards = (program.opcode.take(later) == Opcode.SEND) & program.receives.take(earlier)
    sends = distinct(later.compress(forwards))
    if not len(sends):
        return "fuse: no rank forwards what it receives"
    receive = np.full(program.num_instructions, -1, dtype=np.int64)
    receive[relays[1]] = relays[0]
    is_prompt = are_among(sends, prompt[1])
    equal, taken = receive[sends] >= 0, are_among(receive[sends], fused)
    done = min(len(fused), len(sends))
    reasons = {
        _PARTS: ~equal, _DELAYS: equal & ~is_prompt & ~taken, _APART: is_prompt & ~taken,
    }  # fmt: skip
    numbers = {reason: int(which.sum()) for reason, which in reasons.items()}
    numbers[_AGAIN] = len(sends) - done - sum(numbers.values())
    others = [f"{number} {reason}" for reason, number in numbers.items() if number]
    text = f"fuse: {done} of {counted(len(sends), 'forwarded message')} fused with their receives"
    return "; ".join([text, *others])
