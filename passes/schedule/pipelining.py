"""Write out the steps of a forest, with pieces pipelined along the trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import distinct
from collc.ir.diagnostic import Excess, error
from collc.ir.pipelining import first_steps
from collc.ir.schedule import Forest, Schedule
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest

from ..base import Pass
from ..knobs import Knob
from ..ranges import Range

__all__ = ["Pipelining", "pieces_to_write"]

#: the most transfers of a schedule; each takes about 40 bytes while the pass runs
_MOST_TRANSFERS = 1 << 26
#: the most transfers if the user gave no number of pieces
_USUAL_TRANSFERS = 1 << 22


def _num_pieces(this: Pipelining, given: Forest | SymmetricForest, make: Callable[[], object]) -> int:
    return given.pieces if this.pieces is None else this.pieces


def _most_pieces(forest: Forest | SymmetricForest, limits: Mapping[str, int]) -> int:
    """Return the largest number of pieces to try, at least 1.

    Each piece costs a rank at least one instruction for every route and step of the trees that begins or ends there.
    """
    edges = len(forest) if isinstance(forest, SymmetricForest) else len(forest.tree)
    most = _USUAL_TRANSFERS // max(edges, 1)
    if "max_steps" in limits and "max_threadblocks" in limits:
        forest = forest.unfold() if isinstance(forest, SymmetricForest) else forest
        most = min(most, limits["max_steps"] * limits["max_threadblocks"] // max(_messages(forest), 1))
    return max(most, 1)


def pieces_to_write(forest: Forest | SymmetricForest) -> int:
    """Return an upper bound on the pieces in which a compilation writes out trees, whatever the target.

    It takes the trees' own number if that is worth trying. It halves that number until there are not too many
    transfers, which is not done here for a template: some of its trees are written out, or all.
    """
    pieces = min(forest.pieces, _most_pieces(forest, {}))
    transfers = _transfers(forest) if isinstance(forest, Forest) else 1
    while pieces > 1 and transfers * pieces > _MOST_TRANSFERS:
        pieces //= 2
    return pieces


def _messages(forest: Forest) -> int:
    """Return a lower bound on the most messages that a rank sends or receives per piece."""
    routes = forest.routes
    used = distinct(first_steps(forest) * np.int64(len(routes)) + forest.route) % max(len(routes), 1)
    ends = np.concatenate([routes.tails(forest.topology)[used], routes.heads(forest.topology)[used]])
    return int(np.bincount(ends, minlength=1).max())


@attrs.frozen
class Pipelining(Pass):
    """Write out the steps of a forest, piece after piece (:meth:`Forest.to_steps`).

    With ``templates``, the steps of a template are those of its own trees, if the group is one of vectors that
    moves the first ranks to the next ones, box after box. Other groups' trees are written out.

    Raises C0545 for an impossible number of pieces, C0546 for more than 2^26 transfers.
    """

    name: ClassVar[str] = "pipelining"
    summary: ClassVar[str] = "write out a forest step by step, piece after piece"
    takes: ClassVar[type] = Forest
    gives: ClassVar[type] = Schedule
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob(
            "pieces", "pieces", "pieces", _num_pieces,
            free=True, kept_by=("pieces",), single="in one piece", most=_most_pieces, word="piece",
        ),
    )  # fmt: skip

    takes_templates: ClassVar[bool] = True
    for_orbits: ClassVar[bool] = True

    pieces: int | None = attrs.field(
        default=None,
        metadata={"help": "number of pieces (default: the forest's number)", "range": Range(1, code="C0545")},
    )

    templates: bool = attrs.field(
        default=False, metadata={"help": "write out the steps of a template's own trees, which a group moves"}
    )

    def of_all_ranks(self) -> Pipelining:
        return attrs.evolve(self, templates=False)

    def run(self, ir: Forest | SymmetricForest) -> Schedule | SymmetricSchedule:
        if not isinstance(ir, SymmetricForest):
            return self._steps(ir)
        found = SymmetricSchedule(self._steps(ir.seed), ir.group) if self.templates else None
        return found if found is not None and found.movable else self._steps(ir.unfold())

    def _steps(self, ir: Forest) -> Schedule:
        pieces = ir.pieces if self.pieces is None else self.pieces
        most = ((1 << 63) - 1) // ir.parts
        if not 1 <= pieces <= most:
            hint = f"use at most {most}"
            raise error("C0545", f"found {pieces} pieces, needed 1 to {most}", hint=hint, option="pieces")
        transfers = _transfers(ir)
        if transfers * pieces > _MOST_TRANSFERS:
            fit = _MOST_TRANSFERS // transfers
            raise error(
                "C0546",
                f"{pieces} pieces of {transfers} transfers each are more than the {_MOST_TRANSFERS} transfers of a "
                "schedule",
                hint=f"use at most {fit} pieces: `pipelining{{pieces={fit}}}`"
                if fit
                else "use fewer ranks or fewer trees",
                exit_status=3,
                excess=Excess("transfers", transfers * pieces, _MOST_TRANSFERS),
                option="pieces",
            )
        return ir.to_steps(pieces)


def _transfers(forest: Forest) -> int:
    """Return an upper bound on a piece's transfers: edges, times the shards of a share if trees carry the vector."""
    if not forest.whole:
        return len(forest.tree)
    shards = forest.collective.num_shards
    # A share of w/parts meets at most 2 + w N / parts shards.
    edges = np.bincount(forest.tree, minlength=forest.num_trees).tolist()
    weights = forest.weight.tolist()
    return sum(n * min(shards, 2 + w * shards // forest.parts) for n, w in zip(edges, weights, strict=True))
