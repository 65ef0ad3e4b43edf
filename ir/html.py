"""Tables for notebooks, for ``_repr_html_``. Every text is escaped, since names come from foreign files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .shown import clipped

__all__ = ["html_table"]

_MOST_ROWS = 60
_MOST_CELL = 300
# No colors: a notebook's own theme, light or dark, applies.
_CELL = 'style="text-align:left;padding:0.15em 0.8em;border-bottom:1px solid currentColor"'


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a caption, at most 60 rows; every text is escaped.

    >>> html_table("a<b", ("x",), [(1,)])[:66]
    '<table style="border-collapse:collapse"><caption style="text-align'
    >>> "<b" in html_table("a<b", ("x",), [("<b>",)])
    False
    """
    listed = list(rows)
    lines = [_row("th", head) if head else "", *(_row("td", row) for row in listed[:_MOST_ROWS])]
    if len(listed) > _MOST_ROWS:
        lines.append(_row("td", [f"... {len(listed) - _MOST_ROWS} more"]))
    caption = f'<caption style="text-align:left">{_text(title)}</caption>'
    return f'<table style="border-collapse:collapse">{caption}{"".join(lines)}</table>'


def _row(cell: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{cell} {_CELL}>{_text(value)}</{cell}>' for value in values)}</tr>"


def _text(value: object) -> str:
    return escape(clipped(str(value), _MOST_CELL))
