"""What a builder of a cluster asks of a topology, beside its costs: how many links leave a rack, what failures cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from collc.frontends import coll
from collc.passes.finder.database import Row

from ..processes.workers import Work

if TYPE_CHECKING:
    from collc.passes.finder.failures import After

__all__ = ["NO_QUESTION", "Facts", "Questions", "equals", "facts", "fewest_between_racks"]


@attrs.frozen
class Questions:
    """The questions: ``rack`` is the number of nodes in a rack, None without racks; ``robust`` is whether failures are
    evaluated."""

    rack: int | None = None
    robust: bool = False

    def __bool__(self) -> bool:
        return self.rack is not None or self.robust


NO_QUESTION = Questions()


@attrs.frozen
class Facts:
    """The answers for one topology; None without the question.

    ``between_racks`` counts the directed links between racks in the best assignment that was found, and
    ``between_racks_bound`` is a number that no assignment can go below. ``after_link`` and ``after_node`` are the costs
    after the worst failure.
    """

    between_racks: int | None = None
    between_racks_bound: int | None = None
    after_link: After | None = None
    after_node: After | None = None


def facts(rows: Iterable[Row], questions: Questions, work: Work) -> dict[Row, Facts]:
    """Return the answers for every row."""
    if not questions:
        return {}
    known = list(dict.fromkeys(rows))
    found = work.run(_facts, [(row, questions) for row in known], [row.expression for row in known])
    return dict(zip(known, found, strict=True))


def _facts(row: Row, questions: Questions) -> Facts:
    topology, found = coll.topology(row.expression), Facts()
    if questions.rack is not None:
        from collc.passes.finder.racks import assign_racks

        racks = assign_racks(topology, questions.rack, row.alltoall_rate)
        found = attrs.evolve(found, between_racks=racks.links, between_racks_bound=racks.bound)
    if questions.robust:
        from collc.passes.finder.failures import after_failures

        cut, lost = after_failures(topology)
        found = attrs.evolve(found, after_link=cut, after_node=lost)
    return found


def equals(row: Row, rows: Sequence[Row]) -> list[Row]:
    """Return the row and those that can take its place: of equal costs, no lower rate, and links as it has them."""
    return [row] + [
        other for other in rows
        if (other.T_L, other.T_B, other.allreduce_T_B) == (row.T_L, row.T_B, row.allreduce_T_B) and other != row
        and other.bidirectional >= row.bidirectional
        and (row.alltoall_rate is None or (other.alltoall_rate or 0) >= row.alltoall_rate)
    ]  # fmt: skip


def fewest_between_racks(row: Row, rows: Sequence[Row], known: Mapping[Row, Facts]) -> Row:
    """Return the one of equal rows with the fewest links between racks; of equals the first, which is ``row``."""
    return min(equals(row, rows), key=lambda one: (known[one].between_racks or 0) if one in known else 0)
