"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages.width import width

__all__ = ["table"]


def table(
    rows: Sequence[Sequence[str]], *, head: Sequence[str] = (), right: Sequence[int] = (), indent: str = ""
) -> str:
    """Return rows in columns two blanks apart; columns numbered in ``right`` are right-aligned."""
    lines = [list(head), *map(list, rows)] if head else [list(row) for row in rows]
    if not lines:
        return ""
    widths = [max(width(line[i]) for line in lines if i < len(line)) for i in range(max(map(len, lines)))]
    return "".join(indent + _line(line, widths, right).rstrip() + "\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    padded = []
    for i, cell in enumerate(cells):
        blank = " " * (widths[i] - width(cell))
        padded.append(blank + cell if i in right else cell + blank)
    return "  ".join(padded)
