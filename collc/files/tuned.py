"""What ``--tune`` timed: compiled collectives against a library's own, one line each (``tune.c``, ``tuner.cpp``)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Sequence

from collc.ir.frozen import frozen

from .trust import digest_of, is_ours, make_folder

__all__ = ["TUNED", "Timed", "is_tuned_file", "read_tuned", "tuned_path"]

#: the folder of these files in the cache of launches
TUNED = "tuned"
#: lines are short and few; a larger file is not one of these
_MOST_BYTES = 1 << 20
_LINE = re.compile(r"([a-z-]{1,31})\t(\d{1,9})\t(\d{1,9})\t(\d{1,15})\t(\d{1,15}\.\d{3})\t(\d{1,15}\.\d{3})")


@frozen
class Timed:
    """Microseconds of a ``kind`` of collective of up to ``size`` bytes, of ``ranks`` ranks on ``nodes`` nodes."""

    kind: str
    ranks: int
    nodes: int
    size: int
    built_in: float
    compiled: float

    @property
    def is_compiled(self) -> bool:
        """Whether calls use the compiled collective: unless the library's own was faster."""
        return not self.built_in < self.compiled


def tuned_path(cache: str, library: str, *facts: str) -> str:
    """Return the path of the file for a library on this machine, in a folder that only this user can write.

    The library may be any file that ranks execute; ``facts`` are what the times depend on besides. Raises OSError if
    there can be no such folder.
    """
    parts = f"{digest_of(library)} {platform.node()} {os.cpu_count()}{''.join(f' {fact}' for fact in facts)}"
    name = hashlib.sha256(parts.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(make_folder(cache, TUNED), f"{name}.tsv")


def read_tuned(path: str, cache: str) -> list[Timed]:
    """Return what a file says, by kind, ranks, nodes and size; of equal calls the last line.

    Nothing of a file that others can write. Lines of another form are left out.
    """
    rows = {(row.kind, row.ranks, row.nodes, row.size): row for row in map(_timed, _lines(path, cache)) if row}
    return [rows[key] for key in sorted(rows)]


def is_tuned_file(path: str, cache: str) -> bool:
    """Return whether a file would be used, and all its lines say something."""
    lines = _lines(path, cache)
    return bool(lines) and all(map(_timed, lines))


def _lines(path: str, cache: str) -> Sequence[str]:
    try:
        if not is_ours(path, cache) or os.path.getsize(path) > _MOST_BYTES:
            return []
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read().splitlines()
    except OSError:
        return []


def _timed(line: str) -> Timed | None:
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    kind, ranks, nodes, size, built_in, compiled = found.groups()
    return Timed(kind, int(ranks), int(nodes), int(size), float(built_in), float(compiled))
