"""Check whether all threadblocks of a rank can run at once, as the machine model assumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..program import Program
from ._structure import MOST, summary
from .report import Check

if TYPE_CHECKING:
    from ..one_sided.program import OneSided

__all__ = ["residency"]


def residency(program: Program | OneSided, multiprocessors: int) -> Check:
    """Return whether no rank has more threadblocks than its device runs at once, which is at least 1.

    A launch is not cooperative: a threadblock without a multiprocessor starts when another has finished, and that one
    may wait for it. The order of starts is unknown, so there must be a multiprocessor for each.
    """
    blocks = np.diff(program.rank_blocks)
    most = int(blocks.max(initial=0))
    problems = [
        f"rank {rank} has {blocks[rank]} threadblocks where {multiprocessors} run at once: threadblock "
        f"{multiprocessors} has no place, and others may wait for it for ever"
        for rank in np.flatnonzero(blocks > multiprocessors)[:MOST].tolist()
    ]
    found = f"{most} threadblocks of a rank run at once on {multiprocessors} multiprocessors"
    return Check("residency", not problems, summary(problems) if problems else found)
