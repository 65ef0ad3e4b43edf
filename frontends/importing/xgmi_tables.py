"""The titled tables of `rocm-smi` and `amd-smi` as text: weights, hops, link types, bandwidths, access."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from collc.ir.diagnostic import Source, Span
from collc.ir.shown import counted

from .model import Draft
from .pasted import Line, Word
from .squares import Shape, Square, squares, table_lines
from .xgmi import Box

__all__ = ["read_tables"]

_GPU = re.compile(r"GPU\d{1,6}")
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_NAME = re.compile(f"{_GPU.pattern}|{_BUS.pattern}")
_SHAPE = Shape(
    first=_NAME,
    sure=_NAME,
    name=lambda text: bool(_NAME.fullmatch(text)),
    cell=re.compile(r"\d+(?:-\d+)?|SELF|XGMI|PCIE|UNKNOWN|N/A|True|False|ENABLED|DISABLED|X"),
    heading=lambda text: False,
    beside=re.compile(r"(?!)"),
)
#: words of a title -> what its table has
_TITLES = tuple(
    (re.compile(rf"\b(?:{words})\b".replace(" ", r"[\s|*]+"), re.IGNORECASE), what)
    for words, what in (
        ("weight", "weight"), ("hops", "hops"), ("link type", "kind"), ("bandwidth|bw table", "bandwidth"),
        ("accessibility|access table", "access"),
    )
)  # fmt: skip
_FAR = 12  # lines between a title and its table


def read_tables(draft: Draft, sources: Sequence[Source]) -> tuple[Box, list[Line], dict[int, int]]:
    """Return what the tables of one machine say, the lines beside them, and the index of each GPU by its number.

    Mistakes go into the draft. GPUs that the text names by their PCIe address are numbered in its order, and a note
    has the addresses.
    """
    texts = table_lines(sources)
    tables, rest = squares(texts, _SHAPE)
    beside = {id(line) for line in rest}
    titled = [(what, table) for table in tables if (what := _title(texts, beside, table))]
    box = Box(draft, titled[0][1].columns[0].span if titled else Span(sources[0], 1, 1, 1, 2))
    names = list(dict.fromkeys(name for _, table in titled for name in table.names))
    if all(_GPU.fullmatch(name) for name in names):
        names.sort(key=_number)
        box.gpus, numbers = names, [_number(name) for name in names]
    else:
        box.gpus, numbers = [f"GPU{i}" for i in range(len(names))], list(range(len(names)))
        draft.note("PCIe addresses: " + ", ".join(f"{gpu} {name}" for gpu, name in zip(box.gpus, names, strict=True)))
    _put_all(box, {name: i for i, name in enumerate(names)}, titled)
    return box, rest, {number: i for i, number in enumerate(numbers)}


def _number(name: str) -> int:
    return int(name.removeprefix("GPU"))


def _title(texts: Sequence[Line], beside: set[int], table: Square) -> str | None:
    """Return what a table has, by the nearest line with words above it that is in no table."""
    for at in range(table.begins - 1, max(table.begins - _FAR, 0) - 1, -1):
        if id(texts[at]) in beside:
            return _subject(texts[at].text) or _subject(_unwrapped(texts, beside, at))
    return None


def _subject(title: str) -> str | None:
    return next((what for pattern, what in _TITLES if pattern.search(title)), None)


def _unwrapped(texts: Sequence[Line], beside: set[int], at: int) -> str:
    """Return a line behind the line above it, which a terminal may have broken inside or between words."""
    if not at or id(texts[at - 1]) not in beside:
        return ""
    above, below = texts[at - 1].text, texts[at].text
    return f"{above}{below} {above} {below}"


def _put_all(box: Box, index: dict[str, int], titled: Sequence[tuple[str, Square]]) -> None:
    seen = set[str]()
    for what, table in titled:
        if what in seen:
            box.draft.warn("C0942", "ignored another table with this title", table.columns[0].span)
        else:
            _put(box, index, what, table)
        seen.add(what)


def _put(box: Box, index: dict[str, int], what: str, table: Square) -> None:
    rows = {row.label.text: row for row in table.rows}
    for name in table.names:
        row = rows.get(name)
        if row is None or len(row.cells) < len(table.names):
            word = table.columns[0] if row is None else (row.cells or (row.label,))[-1]
            found = "no row" if row is None else f"{counted(len(row.cells), 'cell')} in the row"
            message = f"found {found} of {name}, needed {counted(len(table.names), 'cell')}"
            box.draft.wrong("C0924", message, word.span, hint="is the text cut off?")
            continue
        for other, cell in zip(table.names, row.cells, strict=True):
            box.put(what, (index[name], index[other]), cell.text, partial(_place, cell))


def _place(cell: Word) -> Span:
    return cell.span
