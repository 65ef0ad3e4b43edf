"""Trees -> steps: every piece follows the one before it through its tree."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.diagnostic import error
from collc.ir.schedule import Forest, Schedule

from .base import Pass

__all__ = ["Stream"]

#: a schedule's transfers are written out, some 40 bytes each while that is done
_MOST_TRANSFERS = 1 << 26


@attrs.frozen
class Stream(Pass):
    """Write out the steps of a forest: piece after piece, as :meth:`Forest.to_steps` has it.

    Raises C0545 for an impossible number of pieces, C0546 where there would be more than 2^26 transfers.
    """

    name: ClassVar[str] = "stream"
    summary: ClassVar[str] = "send what trees carry in pieces that follow each other"
    takes: ClassVar[type] = Forest
    gives: ClassVar[type] = Schedule

    pieces: int | None = attrs.field(
        default=None, metadata={"help": "pieces of what every tree carries; unless given, what the forest says"}
    )

    def run(self, ir: Forest) -> Schedule:
        pieces = ir.pieces if self.pieces is None else self.pieces
        most = ((1 << 63) - 1) // ir.parts
        if not 1 <= pieces <= most:
            hint = "write `stream{pieces=8}`"
            raise error("C0545", f"found {pieces} pieces, needed 1 to {most}", hint=hint, exit_status=3)
        transfers = _transfers(ir)
        if transfers * pieces > _MOST_TRANSFERS:
            fit = _MOST_TRANSFERS // transfers
            raise error(
                "C0546",
                f"{transfers} transfers in each of {pieces} pieces are more than the {_MOST_TRANSFERS} a schedule has",
                hint=f"use at most {fit} pieces: `stream{{pieces={fit}}}`"
                if fit
                else "use fewer ranks, or fewer trees",
                exit_status=3,
            )
        return ir.to_steps(pieces)


def _transfers(forest: Forest) -> int:
    """Return a bound on a piece's transfers: edges, and where trees carry the vector what it is cut in besides."""
    if not forest.whole:
        return len(forest.tree)
    shards = forest.collective.num_ranks
    # A share of w/parts meets at most 2 + w N / parts shards.
    edges = np.bincount(forest.tree, minlength=forest.num_trees).tolist()
    weights = forest.weight.tolist()
    return sum(n * min(shards, 2 + w * shards // forest.parts) for n, w in zip(edges, weights, strict=True))
