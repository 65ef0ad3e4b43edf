"""Several programs of one collective behind one function, and the calls that reach each of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import attrs

from collc.ir.collective import Collective
from collc.ir.symmetric_program import AnyProgram

from ..base import Window
from .results import DTYPES, vector_elements

__all__ = ["Selected"]

#: bytes of all ranks' vectors together in the largest default call of a run
_MOST_BYTES = 1 << 28


@attrs.frozen(eq=False)
class Selected:
    """Programs with their windows, ascending: the choices of one emitted function."""

    parts: tuple[tuple[Window, AnyProgram], ...]

    @property
    def collective(self) -> Collective:
        """The collective that all algorithms perform."""
        return self.parts[0][1].collective

    @property
    def name(self) -> str:
        """The first algorithm's name, which is the function's."""
        return self.parts[0][1].name

    @property
    def num_ranks(self) -> int:
        """Ranks of the collective."""
        return self.parts[0][1].num_ranks

    def edges(self, dtypes: Iterable[str]) -> list[int]:
        """Return the counts on both sides of every change of algorithm, for each element type, if small enough."""
        found = []
        for (before, _), (_, _) in pairwise(self.parts):
            for dtype in dtypes:
                unit = DTYPES.get(dtype, 4) * vector_elements(self.collective, 1)
                last = (before.high or 0) // unit
                if (last + 1) * unit * self.num_ranks <= _MOST_BYTES:
                    found += [last, last + 1]
        return list(dict.fromkeys(found))

    def untried(self) -> list[AnyProgram]:
        """Return the programs that the counts of :meth:`edges` do not reach; they need calls of their own."""
        return [
            program
            for (before, _), (_, program) in pairwise(self.parts)
            if ((before.high or 0) + 8 * self.num_ranks) * self.num_ranks > _MOST_BYTES
        ]
