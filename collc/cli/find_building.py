"""The columns of ``collc find`` that a builder of a cluster wants: racks, failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tools.building import Facts
from ..tools.finding import Frontier

if TYPE_CHECKING:
    from collc.passes.finder.database import Row
    from collc.passes.finder.failures import After
    from collc.tables.columns import Cell, Column

__all__ = ["extra_cells", "extra_columns", "extra_head", "extra_object"]


def extra_columns(found: Frontier) -> tuple[Column, ...]:
    """Return the columns of CSV and Markdown."""
    from collc.tables.listed import RACKED, ROBUST

    questions = found.wanted.questions
    return (*(RACKED if questions.rack else ()), *(ROBUST if questions.robust else ()))


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


def extra_object(row: Row, found: Frontier) -> dict[str, Cell]:
    """Return the keys of a row in JSON and CSV."""
    questions, known = found.wanted.questions, found.facts.get(row, Facts())
    cells: dict[str, Cell] = {}
    if questions.rack:
        cells |= {"links_between_racks": known.between_racks, "links_between_racks_bound": known.between_racks_bound}
    for kind, after in (("link", known.after_link), ("node", known.after_node)):
        if after is not None:
            bandwidth = after.T_B
            cells |= {
                f"{kind}_failure": after.state, f"T_L_{kind}_failure": after.T_L,
                f"T_B_{kind}_failure": None if bandwidth is None else str(bandwidth),
                f"T_B_{kind}_failure_float": None if bandwidth is None else float(bandwidth),
            }  # fmt: skip
    return cells
