"""Targets that take no schedule: they take the problem, the choice among a library's own algorithms, or an account."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs

from collc.backends.base import Target
from collc.ir.account import Account
from collc.ir.diagnostic import CollcError
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.tuning import Tuning

from .maker import Maker
from .result import CollectiveResult, Emitted, Observer, Settings
from .session import Session

__all__ = ["describes", "emit_direct", "needs_schedule", "without_schedule"]


def needs_schedule(target: Target) -> bool:
    """Return whether a target takes a schedule, a program or a one-sided program."""
    return target.level in ("program", "one-sided", "schedule")


def describes(target: Target) -> bool:
    """Return whether a target takes an account of what was compiled."""
    return target.level == "account"


def emit_direct(
    result: CollectiveResult, targets: Sequence[Target], settings: Settings, observer: Observer | None
) -> CollectiveResult:
    """Return a result with the files of the targets that take no schedule, in the order of ``targets``."""
    session = Session(result.request, settings, observer)
    emission = Maker(session).emission
    emitted: list[Emitted] = [*result.emitted]
    for target in targets:
        if not needs_schedule(target):
            given = _input(result, target, session)
            write, check = partial(target.emit, given), partial(target.check, given)
            emitted.append(emission.emit(target, None, write, check))
    emitted.sort(key=lambda pair: targets.index(pair[0]))
    return attrs.evolve(
        result, emitted=tuple(emitted), reports=(*result.reports, *session.reports),
        timings=(*result.timings, *session.timings),
    )  # fmt: skip


def without_schedule(request: CollectiveRequest, settings: Settings) -> CollectiveResult:
    """Return the result of a collective that no target needs a schedule of."""
    return CollectiveResult(request.name, request, settings, None, None)


def _input(result: CollectiveResult, target: Target, session: Session) -> Problem | Tuning | Account:
    """Return what a target takes; raise the mistakes in the way with their places."""
    request = result.request
    try:
        target.require(request.problem.collective)
    except CollcError as mistake:
        raise session.places.of_target(mistake, target) from None
    if target.level == "problem":
        return request.problem
    if describes(target):
        from .accounts import account_of

        return session.timed("account", lambda: account_of(result), kind="account")
    from ..selection.native import tuning_of

    try:
        return session.timed("tuning", lambda: tuning_of(request.problem, request.name, target.request), kind="choice")
    except CollcError as mistake:
        raise session.places.of_target(mistake, target) from None
