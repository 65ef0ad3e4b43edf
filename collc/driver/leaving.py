"""Collectives that no scheduler or target can do: a launcher leaves them to the library that they would replace."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.diagnostic import Diagnostic, Kind, warning

from .compilation import Failure, joined
from .result import CollectiveResult

__all__ = ["without_impossible"]

#: what the diagnostics are about where a request is in order, but cannot be scheduled or written for its target
_IMPOSSIBLE = (Kind.INFEASIBLE, Kind.LIMIT, Kind.MISFIT, Kind.SIZE)


def without_impossible(
    outcomes: Sequence[CollectiveResult | Failure], library: str
) -> tuple[list[CollectiveResult], list[Diagnostic]]:
    """Return the results of collectives, and a warning (C0089) for each that is left to ``library``: "the MPI", "gloo".

    Raises all mistakes if one is of another kind, or if no collective is left to serve.
    """
    results = [one for one in outcomes if isinstance(one, CollectiveResult)]
    failures = [one for one in outcomes if isinstance(one, Failure)]
    if failures and not (results and all(map(_is_impossible, failures))):
        raise joined([one.mistake for one in failures])
    return results, [_left(one, library) for one in failures]


def _is_impossible(failure: Failure) -> bool:
    return all(found.kind in _IMPOSSIBLE for found in failure.mistake.diagnostics)


def _left(failure: Failure, library: str) -> Diagnostic:
    first = failure.mistake.diagnostics[0]
    hint = f"{first.hint}; --strict refuses the file" if first.hint else "--strict refuses the file"
    message = f"`{failure.name}` is left to {library}: {first.message} [{first.code}]"
    return warning("C0089", message, span=first.span, notes=first.notes, hint=hint)
