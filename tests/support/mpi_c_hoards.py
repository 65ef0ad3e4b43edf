"""Programs that no buffering of the MPI may be needed for."""

from __future__ import annotations

from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program

I, O, S = Buffer  # noqa: E741
NONE = (I, 0)


def recursive_doubling_allreduce(ranks: int) -> Program:
    """Everyone sends all it has to a partner and adds what the partner sends, in the place it sends from."""
    blocks, code, rows = [], [], 0
    for r in range(ranks):
        waits: list[int] = []
        distance = 1
        while distance < ranks:
            blocks.append((r, r ^ distance, r ^ distance, 0))
            code.append([(Opcode.COPY, I, 0, O, 0, ranks, [])] if distance == 1 else [])
            code[-1].append((Opcode.SEND, O, 0, *NONE, ranks, waits))
            code[-1].append((Opcode.RECV_REDUCE_COPY, O, 0, O, 0, ranks, []))
            rows += len(code[-1])
            waits, distance = [rows - 1], distance * 2
    return Program.build(Collective("allreduce", ranks), 1, [0] * ranks, blocks, code, name="doubling")


def hoarded(messages: int) -> Program:
    """A broadcast 0 -> 1 of ``messages`` messages and one more, sent after them on another channel, which rank 1 takes
    before all others."""
    total = 2 * messages
    late = [(Opcode.SEND, I, 0, *NONE, 1, [messages])]
    sends = [(Opcode.COPY, I, 0, O, 0, total, []), *((Opcode.SEND, I, k + 1, *NONE, 1, []) for k in range(messages))]
    first = [(Opcode.RECV, *NONE, O, 0, 1, [])]
    taken = [(Opcode.RECV, *NONE, O, k + 1, 1, [] if k else [messages + 2]) for k in range(messages)]
    rest = (Opcode.SEND, I, messages + 1, *NONE, total - messages - 1, [])
    taken.append((Opcode.RECV, *NONE, O, messages + 1, total - messages - 1, []))
    blocks = [(0, 1, -1, 0), (0, 1, -1, 1), (1, -1, 0, 1), (1, -1, 0, 0)]
    late[0] = (*late[0][:6], [messages])
    sends.append(rest)
    first_row = len(sends) + len(late)
    taken[0] = (*taken[0][:6], [first_row])
    return Program.build(
        Collective("broadcast", 2, 0), messages, [0, 0], blocks, [sends, late, first, taken], name="hoarded"
    )
