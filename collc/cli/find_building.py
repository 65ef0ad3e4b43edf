"""The columns of the text of ``collc find`` that a builder of a cluster wants: racks, failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tools.building import Facts
from ..tools.finding import Frontier

if TYPE_CHECKING:
    from collc.passes.finder.database import Row
    from collc.passes.finder.failures import After

__all__ = ["extra_cells", "extra_head"]


def extra_head(found: Frontier) -> tuple[str, ...]:
    """Return the headings in the text."""
    questions = found.wanted.questions
    racks, failures = ("between racks", "at least"), ("without a link", "without a node")
    return (*(racks if questions.rack else ()), *(failures if questions.robust else ()))


def extra_cells(row: Row, found: Frontier) -> tuple[str, ...]:
    """Return the cells of a row in the text."""
    questions, known = found.wanted.questions, found.facts.get(row, Facts())
    racks = (str(known.between_racks), str(known.between_racks_bound))
    failures = (_cost(known.after_link), _cost(known.after_node))
    return (*(racks if questions.rack else ()), *(failures if questions.robust else ()))


def _cost(after: After | None) -> str:
    if after is None:
        return ""
    return f"{after.T_L}, {after.T_B}" if after.state == "computed" else after.state
