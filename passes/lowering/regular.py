"""Lower a schedule of all ranks to the program of one, if a group of ranks moves it (:mod:`collc.ir.regular`)."""

from __future__ import annotations

import numpy as np

from collc.ir.arrays import lexsort
from collc.ir.ragged import first_of_group
from collc.ir.regular import moved_by_ranks
from collc.ir.schedule import Schedule
from collc.ir.symmetric import MOST_LISTED
from collc.ir.symmetric_program import SymmetricProgram

from .template import lower_template

__all__ = ["joins", "lower_by_ranks"]

#: transfers of an allgather up to which passes work on all ranks: they fuse and pack more than in a template
_MOST_ALLGATHER = 1 << 18


def lower_by_ranks(s: Schedule, orbits: bool) -> SymmetricProgram | None:
    """Return the program of one rank of a long schedule, and the group that moves it; None if that does not pay.

    It pays if messages have two transfers or more. If passes work on it by ``orbits``, and files list all ranks, it
    does not pay in a reduce-scatter, nor in an allgather of up to 2^18 transfers: passes on all ranks fuse more there.
    """
    kind = s.collective.kind
    short = len(s) <= (_MOST_ALLGATHER if orbits and kind == "allgather" else MOST_LISTED)
    if short or (orbits and kind == "reduce-scatter") or not joins(s):
        return None
    if "by ranks" not in s.found:
        moved = moved_by_ranks(s)
        s.found["by ranks"] = None if moved is None else lower_template(moved)
    found: SymmetricProgram | None = s.found["by ranks"]
    return found


def joins(s: Schedule) -> bool:
    """Return whether messages have two transfers or more on average."""
    order = lexsort((s.route, s.step))
    return 2 * int(np.count_nonzero(first_of_group(s.step[order]) | first_of_group(s.route[order]))) <= len(s)
