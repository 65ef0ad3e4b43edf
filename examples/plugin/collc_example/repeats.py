"""A pass: a frozen class whose fields are its options. collc verifies its result."""

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.schedule import Schedule
from collc.passes.base import Pass, remark


@attrs.frozen
class DropRepeats(Pass):
    """Leave out transfers of data that another transfer has brought before; none if data are reduced."""

    name: ClassVar[str] = "drop-repeats"
    summary: ClassVar[str] = "leave out transfers of data that are there already"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    def run(self, ir: Schedule) -> Schedule:
        """Return the schedule with the first of equal transfers to a rank only, in the same order."""
        if ir.collective.reduces:
            return ir
        _, first = np.unique(np.stack([ir.dst, ir.shard, ir.lo, ir.hi]), axis=1, return_index=True)
        remark(f"drop-repeats: {len(ir) - len(first)} transfers brought nothing new")
        return ir.rows(np.sort(first))
