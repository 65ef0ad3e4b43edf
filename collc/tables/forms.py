"""Tables as CSV, Markdown and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from fractions import Fraction

from .columns import Cell, Column, Kind, Table

__all__ = ["csv_text", "markdown_text", "objects", "rational"]

_RIGHT: frozenset[Kind] = frozenset({"integer", "number", "rational"})
#: what a spreadsheet takes for the beginning of a formula
_FORMULA = re.compile(r"[=+\-@\t\r]")


def csv_text(table: Table) -> str:
    """Return a table as CSV (RFC 4180): a header line of the columns' keys, then a line a row.

    All columns are there, whatever the rows. Lines end with a line feed, as other tools expect. None is empty, a flag 1
    or 0, a rational `31/32`. A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    lines: list[list[Cell]] = [[column.key for column in table.columns]]
    lines += [[_field(row.get(column.key)) for column in table.columns] for row in table.rows]
    return "".join(map(_line, lines))


def _line(fields: Sequence[Cell]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerow(fields)  # quotes what holds either character
    return stream.getvalue().removesuffix("\r\n") + "\n"


def _field(value: Cell) -> Cell:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return "" if value is None else value


def markdown_text(table: Table) -> str:
    """Return a table for GitHub: headings, numbers to the right, optional columns only where they have values."""
    columns = table.shown
    cells = [[_escaped(column.show(row.get(column.key))) for column in columns] for row in table.rows]
    heads = [_escaped(column.heading) for column in columns]
    widths = [max(3, *(len(line[i]) for line in [heads, *cells])) for i in range(len(columns))]
    rule = [_rule(column, width) for column, width in zip(columns, widths, strict=True)]
    lines = [_padded(heads, columns, widths), rule, *(_padded(line, columns, widths) for line in cells)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _padded(line: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    each = zip(line, columns, widths, strict=True)
    return [text.rjust(width) if column.kind in _RIGHT else text.ljust(width) for text, column, width in each]


def _rule(column: Column, width: int) -> str:
    return "-" * (width - 1) + ":" if column.kind in _RIGHT else "-" * width


def _escaped(text: str) -> str:
    r"""Return a text as one cell of Markdown.

    >>> _escaped("a|b <c>\n")
    'a\\|b &lt;c&gt; '
    """
    text = re.sub(r"[\r\n]+", " ", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`|])", r"\\\1", text)


def objects(table: Table) -> list[dict[str, object]]:
    """Return the rows for JSON, without optional columns that have no value in them; rationals are strings."""
    return [
        {c.key: _value(row.get(c.key)) for c in table.columns if not c.optional or row.get(c.key) not in (None, "")}
        for row in table.rows
    ]


def _value(value: Cell) -> object:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def rational(name: str, value: Fraction | None) -> dict[str, object]:
    """Return an exact value for JSON, as a string beside a float.

    >>> rational("T_B", Fraction(3, 4))
    {'T_B': '3/4', 'T_B_float': 0.75}
    """
    if value is None:
        return {name: None, f"{name}_float": None}
    return {name: str(value), f"{name}_float": float(value)}
