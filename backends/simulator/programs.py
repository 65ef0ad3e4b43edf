"""Programs -> traffic: who sends to whom, as early as the order of instructions and their waits allow.

A program has no steps. Here a message belongs to the step after the last of those that must have arrived before it is
sent; what else a threadblock does takes no time, and messages of one step between two ranks are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.machine import connections, execute, partners
from collc.ir.program import Opcode, Program
from collc.ir.topology import Topology

from .traffic import Traffic

__all__ = ["program_traffic"]

Array = np.ndarray[Any, np.dtype[Any]]


def program_traffic(program: Program, topology: Topology) -> Traffic:
    """Return what a program sends, on a network that has its ranks.

    The program must be one that completes. Raises ValueError for a network of another number of ranks.
    """
    if topology.num_ranks != program.num_ranks:
        raise ValueError(f"the network has {topology.num_ranks} ranks, not {program.num_ranks}")
    sends = np.flatnonzero(np.isin(program.opcode, [int(op) for op in Opcode if op.sends]))
    step = np.array(_steps(program), dtype=np.int64)[sends]
    links = connections(program)
    link = links.outward[program.block[sends]]
    src, dst = links.src[link].astype(np.int64), links.dst[link].astype(np.int64)
    ranks = program.num_ranks
    key, row = np.unique((step * ranks + src) * ranks + dst, return_inverse=True)
    amount = np.zeros(len(key), dtype=np.int64)
    np.add.at(amount, row, program.count[sends].astype(np.int64))
    pair, to = np.divmod(key, max(ranks, 1))
    at, come = np.divmod(pair, max(ranks, 1))
    used, at = np.unique(at, return_inverse=True)  # a step without messages takes no time
    return Traffic(
        topology, program.collective, program.chunks * ranks, step=at, src=come, dst=to, amount=amount,
        times=np.ones(len(used), dtype=np.int64), scheduler=program.scheduler or "program",
    )  # fmt: skip


def _steps(program: Program) -> list[int]:
    """Return for every instruction the step in which what it sends is sent."""
    receives = np.isin(program.opcode, [int(op) for op in Opcode if op.receives]).tolist()
    block, start, deps = program.block.tolist(), program.dep_start.tolist(), program.deps.tolist()
    sender = partners(program).tolist()
    step = [0] * program.num_instructions
    for row in execute(program).finished.tolist():
        # An earlier send of the threadblock is no reason to wait; what it waited for is.
        before = step[row - 1] if row and block[row - 1] == block[row] else 0
        ready = max([before, *(step[d] for d in deps[start[row] : start[row + 1]])])
        step[row] = max(ready, step[sender[row]] + 1) if receives[row] and sender[row] >= 0 else ready
    return step
