"""MPI-C for unmodified programs: a preloaded library that serves their collective calls.

``source`` writes its text, ``build`` compiles it, ``report`` reads the reports of its ranks. This module has the names
of ``source``, which is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .source import (
        INTERPOSED,
        Served,
        exchanged_pairs,
        interposed,
        interposing,
        listed,
        require_distinct,
        require_range,
    )

__all__ = [
    "INTERPOSED", "Served", "exchanged_pairs", "interposed", "interposing", "listed", "require_distinct",
    "require_range",
]  # fmt: skip


def _attribute(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import source

    return getattr(source, name)


if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__ = _attribute
