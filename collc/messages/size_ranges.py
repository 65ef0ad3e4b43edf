"""Lists of sizes on the command line: ``1KiB,64KiB``, ranges ``1MiB..1GiB`` and ``1MiB..1GiB:4``, and both together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from collc.ir.diagnostic import CollcError, Source, Span, error

from .quantities import size

__all__ = ["sizes"]

_DOTS, _RATIO = "..", 2
_OTHER_RANGE = re.compile(r"\s*(\d+\s*[KMGT]?i?B?)\s*(?:-+|\.\.\.|to|:)\s*(\d+\s*[KMGT]?i?B)\s*", re.ASCII)
_NEED = "`1KiB..1GiB`, or `1KiB..1GiB:4` for powers of 4"


def sizes(text: str, option: str) -> list[int]:
    """Return the bytes of sizes and ranges separated by commas, each once, in the order of the text.

    A range has both ends, and between them the first end times powers of two, or of the number after the colon. Raises
    C0020, with a caret into a text of several parts.

    >>> sizes("1KiB..4KiB,1MiB", "--size"), sizes("1..20:4", "--size")
    ([1024, 2048, 4096, 1048576], [1, 4, 16, 20])
    """
    if "," not in text and _DOTS not in text and _other_range(text) is None:
        return [size(text, option)]
    source, found = Source(f"<{option}>", text), dict[int, None]()
    for part, start in _parts(text):
        span = _span(source, part, start)
        try:
            found |= dict.fromkeys(_of_part(part, start, source, option))
        except CollcError as mistake:
            (only,) = mistake.diagnostics
            raise error(only.code, only.message, span=only.span or span, hint=only.hint, exit_status=2) from None
    return list(found)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the texts between commas, each with its place."""
    start = 0
    for part in text.split(","):
        yield part, start
        start += len(part) + 1


def _of_part(part: str, start: int, source: Source, option: str) -> list[int]:
    if (meant := _other_range(part)) is not None:
        message = f"{option} needs a size or a range, found `{part.strip()}`"
        raise error("C0020", message, span=_span(source, part, start), hint=f"write `{meant}`")
    return _range(part, start, source, option) if _DOTS in part else [size(part, option)]


def _other_range(part: str) -> str | None:
    """Return the range that is meant by two sizes with another sign between them.

    >>> _other_range("1KiB-1GiB"), _other_range("1 KiB ... 1 GiB"), _other_range("1KiB..1GiB")
    ('1KiB..1GiB', '1KiB..1GiB', None)
    """
    match = _OTHER_RANGE.fullmatch(part)
    return re.sub(r"\s", "", f"{match[1]}{_DOTS}{match[2]}") if match else None


def _range(part: str, start: int, source: Source, option: str) -> list[int]:
    lower, upper = part.split(_DOTS, 1)
    upper, colon, ratio = upper.partition(":")
    low = _end(lower, start, source, option)
    high = _end(upper, start + len(lower) + len(_DOTS), source, option)
    factor = _factor(ratio, start + len(part) - len(ratio), source, option) if colon else _RATIO
    if low < 1:
        message = f"{option} needs a range from at least 1 byte, found `{lower.strip()}`"
        hint = f"write 0 as a size of its own: `0,1{_DOTS}{upper.strip()}`"
        raise error("C0020", message, span=_span(source, lower, start), hint=hint)
    if high < low:
        message = f"{option} needs a range with an end of at least its start, found `{part.strip()}`"
        raise error("C0020", message, hint=f"write `{upper.strip()}{_DOTS}{lower.strip()}`")
    found = [low]
    while found[-1] < high:
        found.append(min(found[-1] * factor, high))
    return found


def _end(text: str, start: int, source: Source, option: str) -> int:
    try:
        return size(text, option)
    except CollcError as mistake:
        (only,) = mistake.diagnostics
        hint = f"a range is {_NEED}" if not text.strip() else only.hint
        raise error("C0020", only.message, span=_span(source, text, start), hint=hint) from None


def _factor(text: str, start: int, source: Source, option: str) -> int:
    if text.isascii() and text.strip().isdigit() and len(text) < 10 and int(text) >= _RATIO:
        return int(text)
    message = f"{option} needs a whole factor of at least {_RATIO} after `:`, found `{text.strip()}`"
    raise error("C0020", message, span=_span(source, text, start), hint=f"a range is {_NEED}")


def _span(source: Source, text: str, start: int) -> Span:
    """Return the place of a text without the blanks around it, at least one column."""
    first = start + len(text) - len(text.lstrip())
    end = max(start + len(text.rstrip()), first + 1)
    return Span(source, 1, first + 1, 1, end + 1)
