"""Where a name is declared, in the file or in one that it includes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from collc.frontends.source import read
from collc.ir.diagnostic import CollcError, Source, Span

from .context import context_at
from .names import Declared, Kind, declared, nearest
from .places import word_at

__all__ = ["all_names", "definition", "included"]

_INCLUDE = re.compile(r"\b(include|import)\s*\"([^\"\n]*)\"")
_MOST_FILES = 100  # that are read for names

#: the text before a word -> the kinds of declarations that it means first
_MEANT: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    (r"\b(schedule|emit)\s+\Z", ("collective",)), (r"\bon\s+\Z", ("topology",)), (r"=\s*\Z", ("kind", "value")),
    (r"\bcall\s+\Z", ("block",)),
)  # fmt: skip


def included(source: Source, include_path: Sequence[str] = ()) -> list[Source]:
    """Return the ``.coll`` files that a text includes, and those that they include; files that are missing are not."""
    found: dict[str, Source] = {}
    pending = [source]
    while pending and len(found) < _MOST_FILES:
        this = pending.pop(0)
        for match in _INCLUDE.finditer(this.text):
            path = _path(match[2], this.path, include_path)
            if match[1] == "import" or path is None or (real := os.path.realpath(path)) in found:
                continue
            try:
                found[real] = read(path, regular=True)
            except CollcError:
                continue
            pending.append(found[real])
    return list(found.values())


def all_names(source: Source, include_path: Sequence[str] = ()) -> list[Declared]:
    """Return the declarations of a text, then those of the files that it includes."""
    return [one for each in (source, *included(source, include_path)) for one in declared(each)]


def definition(source: Source, offset: int, include_path: Sequence[str] = ()) -> Span | None:
    """Return where the name at an offset is declared, or the beginning of the file that is named there."""
    line = source.line_at(offset)
    start = source.start_of(line)
    for match in _INCLUDE.finditer(source.line(line)):
        if match.start(2) - 1 <= offset - start <= match.end(2) + 1:
            path = _path(match[2], source.path, include_path)
            return None if path is None else Span(Source(path, ""), 1, 1, 1, 1)
    ends = word_at(source.text, offset)
    if ends is None or context_at(source.text, offset).quoted:
        return None
    before = context_at(source.text, ends[0]).before
    kinds = next((kinds for pattern, kinds in _MEANT if re.search(pattern, before)), ())
    for name, at in _parts(source.text[ends[0] : ends[1]], ends[0], offset):
        place = (line, at - start + 1)
        for each in (source, *included(source, include_path)):
            if one := nearest(declared(each), name, *place, kinds):
                return one.span
    return None


def _parts(word: str, start: int, offset: int) -> list[tuple[str, int]]:
    """Return a word, and the part of it at the offset if it has hyphens: ``n-m`` is also a difference."""
    found = [(word, start)]
    for match in re.finditer(r"[A-Za-z_]\w*", word):
        if match.start() <= offset - start <= match.end():
            found.append((match[0], start + match.start()))
    return found


def _path(name: str, origin: str, include_path: Sequence[str]) -> str | None:
    folders = (os.path.dirname(origin), *include_path)
    return next((path for folder in folders if os.path.isfile(path := os.path.join(folder, name))), None)
