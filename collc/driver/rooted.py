"""Several roots of a collective: the automorphisms that move its plan are checked on the network."""

from __future__ import annotations

import attrs

from collc.ir.graph.rooted import moved_wrongly
from collc.ir.shown import counted
from collc.ir.spec import CollectiveRequest
from collc.ir.verify import Check, Report

from ..messages.internal import InternalError
from .result import CollectiveResult, Settings

__all__ = ["with_moves_checked"]


def with_moves_checked(result: CollectiveResult, request: CollectiveRequest, settings: Settings) -> CollectiveResult:
    """Return a result with a report on the moves of its plan to other roots, if it has any.

    Raises InternalError if a move is no automorphism: calls of other roots would use other links. The files of the
    targets are compared with the same moves.
    """
    roots, collective = request.roots, request.problem.collective
    if roots is None or settings.verify == "off":
        return result
    flaw = next(moved_wrongly(request.problem.topology, roots), None)
    if flaw is not None:
        raise InternalError(f"the roots of `{roots.name}` are moved wrongly: {flaw}", collective=request.name)
    others = len(roots.orbit(collective.root or 0)) - 1
    moved = f"{counted(len(roots.moves), 'move')} of ranks, each an automorphism of the network"
    check = Check("automorphisms", True, f"the plan serves {counted(others, 'other root')} by {moved}")
    report = Report("roots", collective.kind, collective.num_ranks, (check,))
    return attrs.evolve(result, reports=(*result.reports, report))
