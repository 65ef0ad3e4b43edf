"""Tables -> columns, and flaws of columns -> the lines with the mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Array, as_column
from ..diagnostic import Diagnostic
from ..schedule import Routes
from ..validate import Flaw
from .reader import Line, Table
from .scan import Tokens, slabs
from .source import Text, shown

__all__ = ["blame", "columns", "lists", "rows"]


def columns(text: Text, table: Table, words: Mapping[str, Sequence[str]] = {}) -> dict[str, Array]:
    """Return the columns of a table of integers; the values of a column in ``words`` are those words."""
    pieces: dict[str, list[Array]] = {name: [] for name in table.columns}
    found = 0
    for tokens in slabs(text, table.begin, table.end):
        which = _rectangle(tokens, table.columns)
        found += len(which)
        for place, name in enumerate(table.columns):
            values = _column(tokens, which[:, place].copy(), name, words.get(name))
            pieces[name].append(as_column(values))
    table.check_rows(text, found)
    return {name: as_column(np.concatenate(p)) if p else as_column(()) for name, p in pieces.items()}


def _rectangle(tokens: Tokens, names: Sequence[str]) -> Array:
    """Return the tokens as rows and columns; blank lines do not count."""
    count = np.diff(tokens.lines)
    wrong = (count != len(names)) & (count != 0)
    if wrong.any():
        line = int(np.argmax(wrong))
        needed = f"a row has {len(names)} values ({' '.join(names)}), found {count[line]}"
        if count[line] < len(names):
            raise tokens.fail_at_end(int(tokens.lines[line + 1]) - 1, needed)
        first, last = int(tokens.lines[line]) + len(names), int(tokens.lines[line + 1])
        raise tokens.fail("C0802", first, needed, last - first)
    return np.arange(len(tokens.start)).reshape(-1, len(names))


def _column(tokens: Tokens, which: Array, name: str, words: Sequence[str] | None) -> Array:
    if words is None:
        return tokens.numbers(which)
    values = tokens.words(which, words)
    if (values < 0).any():
        token = int(which[np.argmax(values < 0)])
        found, needed = shown(tokens.string(token)), " or ".join(f"`{w}`" for w in words)
        raise tokens.fail("C0802", token, f"expected {needed} as {name}, found {found}")
    return values


def lists(text: Text, table: Table) -> Routes:
    """Return a table whose rows are lists of integers."""
    counts, values = [], []
    for tokens in slabs(text, table.begin, table.end):
        count = np.diff(tokens.lines)
        counts.append(count[count > 0])
        values.append(as_column(tokens.numbers(np.arange(len(tokens.start)))))
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), *counts])
    table.check_rows(text, len(lengths) - 1)
    return Routes(np.cumsum(lengths), np.concatenate([as_column(()), *values]))


def rows(text: Text, table: Table) -> list[Line]:
    """Return the lines of a table that are not blank, for tables that hold more than integers."""
    result, begin = [], table.begin
    while begin < table.end:
        end = text.line_end(begin)
        line = Line(text, begin, end)
        if line.kind != "end":
            result.append(line)
        begin = end + 1
    table.check_rows(text, len(result))
    return result


_INSTRUCTION = re.compile(r"^[ \t\r]*[0-9]+[ \t\r]*:.*", re.MULTILINE)
_NOT_BLANK = re.compile(r"^[ \t]*[^ \t\r\n].*", re.MULTILINE)


def blame(text: Text, flaw: Flaw, tables: Mapping[str, Table], block: int) -> Diagnostic:
    """Return the diagnostic of a flaw: at its row if that is in a table, otherwise at its block (an offset)."""
    table, start, end = tables.get(flaw.table), block, text.line_end(block)
    if table is not None and flaw.row >= 0:
        line = _INSTRUCTION if flaw.table == "instructions" else _NOT_BLANK
        for number, match in enumerate(line.finditer(text.text, table.begin, table.end)):
            if number == flaw.row:
                start, end = match.span()
                break
    written = text.text[start:end]
    start += len(written) - len(written.lstrip())
    return Diagnostic("C0806", str(flaw), span=text.span(start, start + len(written.strip())))
