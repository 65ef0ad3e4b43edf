"""Integer columns -> lines of text, the inverse of the scanner: digit by digit for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..arrays import Array

__all__ = ["render"]

_ROWS = 1 << 16  # rows rendered at once
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)


def render(columns: Sequence[Array | tuple[Array, Sequence[str]]], indent: str) -> str:
    """Return one line for each row. The values of a column with words become those words.

    A value that is negative or has no word (a sound IR has none) is written as a number.

    >>> render([np.array([0, 10]), (np.array([1, 0]), ("copy", "reduce"))], "  ")
    '  0 reduce\\n  10 copy\\n'
    """
    split = [column if isinstance(column, tuple) else (column, ()) for column in columns]
    rows = len(split[0][0])
    if all(_plain(values, words) for values, words in split):
        return "".join(_slab(split, slice(at, at + _ROWS), indent) for at in range(0, rows, _ROWS))
    return "".join(f"{indent}{line}\n" for line in map(" ".join, zip(*map(_spelled, split), strict=True)))


def _plain(values: Array, words: Sequence[str]) -> bool:
    return len(values) == 0 or (int(values.min()) >= 0 and (not words or int(values.max()) < len(words)))


def _spelled(column: tuple[Array, Sequence[str]]) -> Iterator[str]:
    known = dict(enumerate(column[1]))
    return (known.get(value) or str(value) for value in column[0].tolist())


def _slab(columns: Sequence[tuple[Array, Sequence[str]]], rows: slice, indent: str) -> str:
    values = [column[rows].astype(np.int64) for column, _ in columns]
    widths = [
        np.array([len(word) for word in words])[value] if words else np.searchsorted(_POWERS, value, side="right") + 1
        for value, (_, words) in zip(values, columns, strict=True)
    ]
    length = len(indent) + np.sum(widths, axis=0) + len(columns)
    stop = np.cumsum(length)
    text = np.full(int(stop[-1]), ord(" "), dtype=np.uint8)
    text[stop - 1] = ord("\n")
    end = stop - length + len(indent)
    for value, width, (_, words) in zip(values, widths, columns, strict=True):
        end = end + width  # the end of this column's text in every row
        if words:
            _write_words(text, end - width, value, words)
        else:
            _write_numbers(text, end, value, width)
        end = end + 1
    return text.tobytes().decode("ascii")


def _write_numbers(text: Array, end: Array, value: Array, width: Array) -> None:
    for place in range(int(width.max())):
        if place:
            live = width > place
            end, value, width = end[live], value[live], width[live]
        rest = value // 10
        text[end - 1 - place] = value - rest * 10 + ord("0")
        value = rest


def _write_words(text: Array, start: Array, value: Array, words: Sequence[str]) -> None:
    for index, word in enumerate(words):
        some = start[value == index]
        for place, character in enumerate(word.encode("ascii")):
            text[some + place] = character
