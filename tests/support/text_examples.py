"""A schedule and a program small enough to be read in full."""

from __future__ import annotations

import strategies

from collc.ir.collective import Collective
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.schedule import Schedule

__all__ = ["GATHER", "PROGRAM", "RING", "SCHEDULE"]

RING = strategies.uniring(3)
GATHER = Collective("allgather", 3)
SCHEDULE = Schedule(RING, GATHER, 2, [0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [2, 2, 2], [0, 1, 1])
PROGRAM = Program.build(
    Collective("allreduce", 2, size=64), 1, [0, 2], [(0, 1, -1, 0), (0, -1, 1, 0), (1, 0, 0, 0)],
    [
        [(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, 2, [])],
        [(Opcode.RECV, Buffer.INPUT, 0, Buffer.OUTPUT, 0, 2, [0])],
        [
            (Opcode.RECV_REDUCE_COPY, Buffer.INPUT, 0, Buffer.SCRATCH, 0, 2, []),
            (Opcode.SEND, Buffer.SCRATCH, 0, Buffer.INPUT, 0, 2, []),
        ],
    ],
    name="tiny",
)  # fmt: skip
