"""The threadblocks of a program: what each of their instructions does, and for what it waits."""

from __future__ import annotations

import numpy as np

from collc.ir.program import INSTRUCTION_COLUMNS, Opcode, Program

from ..simulator.programs import instruction_steps
from .numbers import Json, integers

__all__ = ["BLOCKS", "MOST_INSTRUCTIONS", "program_of"]

#: instructions of a page with one collective, at most; a longer program is shown for its first ranks
MOST_INSTRUCTIONS = 12_000
BLOCKS = {"rank": "block_rank", "send": "send_peer", "recv": "recv_peer", "channel": "channel"}


def program_of(program: Program) -> dict[str, Json]:
    """Return the columns of the first ``ranks`` ranks, whose instructions a page can hold.

    ``wave`` is the step in which an instruction can run at the earliest, as the order and the dependencies allow.
    """
    ranks = _ranks(program)
    blocks = int(program.rank_blocks[ranks])
    rows = int(program.block_start[blocks])
    waves = np.array(instruction_steps(program)[:rows], dtype=np.int64)
    deps = int(program.dep_start[rows])
    found: dict[str, Json] = {name: integers(getattr(program, column)[:blocks]) for name, column in BLOCKS.items()}
    found |= {name: integers(getattr(program, name)[:rows]) for name in INSTRUCTION_COLUMNS}
    return found | {
        "ranks": ranks, "of": program.num_ranks, "chunks": program.chunks, "scratch": integers(program.scratch[:ranks]),
        "start": integers(program.block_start[: blocks + 1]), "wave": waves.tolist(),
        "dep_start": integers(program.dep_start[: rows + 1]), "deps": integers(program.deps[:deps]),
        "opcodes": [one.name.lower().replace("_", "-") for one in Opcode],
    }  # fmt: skip


def _ranks(program: Program) -> int:
    """Return the number of first ranks whose instructions a page can hold; at least one if the program has ranks."""
    end = program.block_start[program.rank_blocks].astype(np.int64)
    return max(int(np.searchsorted(end, MOST_INSTRUCTIONS, side="right")) - 1, min(1, program.num_ranks))
