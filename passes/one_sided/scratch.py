"""Scratch that operations do not need: what they never read, and what they never use."""

from __future__ import annotations

from typing import Any

import numpy as np

from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Buffer

from .accesses import accesses
from .rows import OPCODE, Rows, program_of

__all__ = ["trimmed", "without_unread"]


def without_unread(program: OneSided, rows: Rows) -> Rows:
    """Return the operations without those that only store data in scratch that no operation reads."""
    found = accesses(program, rows)
    needed = np.zeros(int(found.location.max(initial=0)) + 1, dtype=bool)
    needed[found.location[~found.write | (rows.items[found.item, 1] != Buffer.SCRATCH)]] = True
    idle = np.isin(rows.fixed[:, OPCODE], (Op.UPKT, Op.COPY))
    idle[found.operation[found.write & needed[found.location]]] = False
    return rows.take(np.flatnonzero(~idle)) if idle.any() else rows


def trimmed(program: OneSided, rows: Rows, **changed: Any) -> OneSided:  # Any: fields of OneSided, each of its type
    """Return the program of these operations with no more scratch than they use."""
    used = rows.items[:, 1] == Buffer.SCRATCH
    most = int(rows.items[used, 2:4].sum(axis=1).max(initial=0))
    return program_of(program, rows, scratch=np.full(program.num_ranks, most), **changed)
