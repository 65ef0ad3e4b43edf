"""Programs by hand whose scratch is hard to lay out."""

from __future__ import annotations

from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program

I, O, S = Buffer  # noqa: E741
NONE = (I, 0)


def relay(order: list[int], shift: int, chunks: int) -> Program:
    """A broadcast 0 -> 1 -> 2 through scratch: rank 1 gets chunks one by one, in ``order``, and passes them on to rank
    2's scratch (from ``shift`` on) in one message, whatever lies next to what."""
    total = len(order)
    assert total == 3 * chunks
    root = [(Opcode.COPY, I, 0, O, 0, total, ())]
    root += [(Opcode.SEND, I, k, *NONE, 1, ()) for k in order]
    middle = [(Opcode.RECV, *NONE, S, at, 1, ()) for at in range(total)]
    middle += [(Opcode.COPY, S, at, O, k, 1, ()) for at, k in enumerate(order)]
    middle.append((Opcode.SEND, S, 0, *NONE, total, ()))
    last = [(Opcode.RECV, *NONE, S, shift, total, ())]
    last += [(Opcode.COPY, S, shift + at, O, k, 1, ()) for at, k in enumerate(order)]
    blocks = [(0, 1, -1, 0), (1, 2, 0, 0), (2, -1, 1, 0)]
    return Program.build(
        Collective("broadcast", 3, 0), chunks, [0, total, shift + total], blocks, [root, middle, last], name="relay"
    )


def reused(chunks: int) -> Program:
    """A broadcast 0 -> 1 in which every chunk passes through the one scratch chunk of rank 1."""
    total = 2 * chunks
    root = [(Opcode.COPY, I, 0, O, 0, total, ()), *((Opcode.SEND, I, k, *NONE, 1, ()) for k in range(total))]
    other = []
    for k in range(total):
        other += [(Opcode.RECV, *NONE, S, 0, 1, ()), (Opcode.COPY, S, 0, O, k, 1, ())]
    return Program.build(Collective("broadcast", 2, 0), chunks, [0, 1], [(0, 1, -1, 0), (1, -1, 0, 0)], [root, other])
