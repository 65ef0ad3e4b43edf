"""Compiling a collective by the scheduler it names, or by the fastest; with relays and without where targets differ."""

from __future__ import annotations

from collections.abc import Sequence

from collc.backends.base import Target
from collc.ir.levels import Executable
from collc.ir.spec import CollectiveRequest

from .decided import compile_decided
from .direct import needs_schedule
from .relaying import alone_of, with_relays
from .result import CollectiveResult, Observer, Settings
from .spans import span

__all__ = ["compile_collective"]


def compile_collective(
    request: CollectiveRequest,
    targets: Sequence[Target],
    settings: Settings,
    observer: Observer | None = None,
    start: Executable | None = None,
    shown: Sequence[Target] = (),
) -> CollectiveResult:
    """Compile one collective for every target, sharing the passes that the targets' pipelines have in common.

    Without a target it makes the schedule, and the program on first use. If there are targets ``shown``, that is the
    schedule of the first one's files. ``start`` is an IR that was read; it replaces synthesis. Raises CollcError for
    the user's mistakes, InternalError for collc's.
    """
    with span(request.name, "collective"):
        found = _compiled_for(request, targets, settings, observer, start, shown)
        if request.roots is None:
            return found
        from .rooted import with_moves_checked

        return with_moves_checked(found, request, settings)


def _compiled_for(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
    start: Executable | None, shown: Sequence[Target],
) -> CollectiveResult:  # fmt: skip
    if request.schedule.scheduler == "auto" and start is None and request.problem.topology.in_network:
        from .switch_choice import SwitchChoice

        return SwitchChoice(request, settings, observer, _with_relays_or_without).compiled(targets, shown)
    return _with_relays_or_without(request, targets, settings, observer, shown, start)


def _with_relays_or_without(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
    shown: Sequence[Target] = (), start: Executable | None = None,
) -> CollectiveResult:  # fmt: skip
    request = with_relays(request)
    alone = None if start is not None else alone_of(request)
    if alone is None:
        return _compiled(request, targets, settings, observer, start)
    from .relay_choice import RelayChoice

    return RelayChoice(request, alone, settings, observer, _compiled).compiled(targets, shown)


def _compiled(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
    start: Executable | None = None,
) -> CollectiveResult:  # fmt: skip
    from .direct import describes, emit_direct, without_schedule

    scheduled = [target for target in targets if needs_schedule(target)]
    if len(scheduled) < len(targets):
        whole = None
        if scheduled:
            whole = _compiled(request, scheduled, settings, observer, start)
        elif any(describes(target) for target in targets):
            from .accounts import compile_described

            whole = compile_described(
                request, settings, lambda shown, chosen: _compiled(request, shown, chosen, observer, start)
            )
        return emit_direct(whole or without_schedule(request, settings), targets, settings, observer)
    if request.schedule.scheduler != "auto" or start is not None:
        return compile_decided(request, targets, settings, observer, start)
    from .automatic import compile_automatic

    return compile_automatic(request, targets, settings, observer)
