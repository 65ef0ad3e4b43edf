"""Lists of hosts as Slurm writes them: ``n[001-016,020],login1,rack[1-2]n[1-4]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import prod

__all__ = ["MOST_HOSTS", "HostListError", "expand"]

#: More hosts than this are refused before any is listed.
MOST_HOSTS = 1 << 18
_MOST_DIGITS = 18
_LONGEST = 255

_PIECE = re.compile(r"[^\[\],\s]+")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_BLANKS = re.compile(r"\s*")

#: a range of numbers: the first, the last, and the digits of the first
_Run = tuple[int, int, int]


class HostListError(ValueError):
    """A text that is no list of hosts: ``start`` and ``end`` are the offsets of what is wrong, ``hint`` a remedy."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None):
        super().__init__(message)
        self.start, self.end, self.hint = start, end, hint


def expand(text: str, most: int = MOST_HOSTS) -> list[str]:
    """Return the hosts of a list, in its order; a host that is named twice stands in it twice.

    A number has the leading zeros of the first one of its range. Of several ranges in one name the last changes
    fastest. Raises HostListError for another text, and for more than ``most`` hosts.

    >>> expand("n[08-10,12], rack[1-2]n[1-2]")
    ['n08', 'n09', 'n10', 'n12', 'rack1n1', 'rack1n2', 'rack2n1', 'rack2n2']
    """
    entries, position = list[list[list[_Run] | str]](), 0
    count = 0
    while True:
        position = _after_blanks(text, position)
        start = position
        parts, position = _entry(text, position)
        entries.append(parts)
        count += prod(sum(b - a + 1 for a, b, _ in part) for part in parts if isinstance(part, list))
        if count > most:
            message = f"found {_many(count)} hosts, needed at most {most}"
            raise HostListError(message, start, position, "look for a wrong range")
        position = _after_blanks(text, position)
        if position == len(text):
            return [name for parts in entries for name in _names(parts)]
        if text[position] != ",":
            message = f"found `{text[position]}`, needed `,` or the end of the list"
            raise HostListError(message, position, position + 1, "separate hosts by commas")
        position += 1


def _many(count: int) -> str:
    return str(count) if count <= 10**12 else "more than 10^12"


def _after_blanks(text: str, position: int) -> int:
    return _BLANKS.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty text


def _entry(text: str, position: int) -> tuple[list[list[_Run] | str], int]:
    """Return the parts of one name, texts and ranges in turns, and the offset after it."""
    start, parts = position, list[list[_Run] | str]()
    while position < len(text):
        if text[position] == "[":
            runs, position = _ranges(text, position)
            parts.append(runs)
        elif piece := _PIECE.match(text, position):
            parts.append(piece[0])
            position = piece.end()
        else:
            break
    if not parts:
        found = f"`{text[position]}`" if position < len(text) else "the end of the list"
        message = f"found {found}, needed the name of a host"
        raise HostListError(message, start, max(position, start + 1), "a list of hosts is `n[001-016],login1`")
    if sum(len(part) if isinstance(part, str) else max(run[2] for run in part) for part in parts) > _LONGEST:
        raise HostListError(f"found a name of more than {_LONGEST} characters", start, position)
    return parts, position


def _ranges(text: str, opened: int) -> tuple[list[_Run], int]:
    """Return the ranges between brackets, and the offset after the closing one."""
    closed = text.find("]", opened)
    if closed < 0:
        raise HostListError("found `[` without `]`", opened, len(text), "close it with `]`")
    runs, position = list[_Run](), opened + 1
    while True:
        position = _after_blanks(text, position)
        match = _RANGE.match(text, position)
        if match is None:
            raise _no_number(text, position, closed)
        runs.append(_run(match))
        position = _after_blanks(text, match.end())
        if text[position] == "]":
            return runs, position + 1
        if text[position] != ",":
            raise _no_number(text, position, closed)
        position += 1


def _no_number(text: str, position: int, closed: int) -> HostListError:
    message = f"found `{text[position]}` in brackets, needed numbers and ranges of numbers"
    return HostListError(message, position, min(position + 1, closed + 1), "ranges are `[001-016,020]`")


def _run(match: re.Match[str]) -> _Run:
    low, high = match[1], match[2] or match[1]
    if len(high) > _MOST_DIGITS or len(low) > _MOST_DIGITS:
        raise HostListError(f"found a number of more than {_MOST_DIGITS} digits", *match.span())
    first, last = int(low), int(high)
    if last < first:
        raise HostListError(f"found the range `{match[0]}` backwards", *match.span(), f"write `{high}-{low}`")
    return first, last, len(low)


def _names(parts: list[list[_Run] | str]) -> Iterator[str]:
    choices = [[part] if isinstance(part, str) else list(_numbers(part)) for part in parts]
    return ("".join(name) for name in product(*choices))


def _numbers(runs: list[_Run]) -> Iterator[str]:
    for first, last, width in runs:
        for number in range(first, last + 1):
            yield f"{number:0{width}}"
