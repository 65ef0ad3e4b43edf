"""Messages that a rank forwards: which of them can be fused, and why others are not."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import Array, are_among, distinct, lexsort
from collc.ir.program import Opcode, Program
from collc.ir.shown import counted

from ..analysis.timing import Times
from .pairing import Pairs

__all__ = ["followed", "most_forwarded", "why_not_fused", "without_delay"]

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


def without_delay(
    program: Program, times: Times, clashes: tuple[Array, Array], relays: tuple[Array, Array], through: bool = False
) -> tuple[Array, Array]:
    """Return the pairs (receive, send) of ``relays`` whose fusion delays no other instruction.

    The receive does not wait for its send, and no other instruction that accesses the data waits for the send. If data
    go ``through``, the send ends with the receive, because data leave while they arrive, or as much later as its
    threadblock is free after the receive begins.
    """
    i, j = relays
    soon = times.begin.take(j) <= times.end.take(i)
    i, j = i.compress(soon), j.compress(soon)
    later, earlier = clashes
    send_of = np.full(program.num_instructions, -1, dtype=np.int64)
    send_of[i] = j
    sent = times.end.take(j)
    if through:
        free = np.where(program.step.take(j) > 0, times.end[np.maximum(j - 1, 0)], 0)
        sent = np.maximum(times.end[i], free + sent - times.begin[j])
    fused_end = np.zeros(program.num_instructions, dtype=np.int64)
    fused_end[i] = sent
    other = (send_of.take(earlier) >= 0) & (send_of.take(earlier) != later) & (later != earlier)
    before_sent = times.begin.take(later) < fused_end.take(earlier)
    delayed = np.zeros(program.num_instructions, dtype=bool)
    delayed[earlier.compress(other & before_sent)] = True
    return i[~delayed[i]], j[~delayed[i]]


def followed(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> Array:
    """Return for each receive the first send of its joined block that forwards its data; -1 if there is none."""
    follow = np.full(program.num_instructions, -1, dtype=np.int64)
    i, j = flow
    together = pairs.host[program.block[i]] == pairs.host[program.block[j]]
    i, j = i[together][::-1], j[together][::-1]  # the first send overwrites later ones
    follow[i] = j
    return follow


def most_forwarded(program: Program, flow: tuple[Array, Array]) -> int:
    """Return how many messages can be fused with a send in blocks joined in pairs, those that forward most first."""
    into, out = (program.block[rows] for rows in flow)
    pairs, number = np.unique(np.stack([into, out]), axis=1, return_counts=True)
    free_in, free_out, fused = set(pairs[0].tolist()), set(pairs[1].tolist()), 0
    for k in lexsort([-number]).tolist():
        a, b = pairs[:, k].tolist()
        if a in free_in and b in free_out:
            fused += int(number[k])
            free_in.remove(a)
            free_out.remove(b)
    return fused
