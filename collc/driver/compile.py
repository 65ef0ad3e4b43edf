"""Compiling a collective by the scheduler it names, or by the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from collc.backends.base import Target
from collc.ir.levels import Executable
from collc.ir.spec import CollectiveRequest

from .decided import compile_decided
from .relaying import with_relays, without_relays
from .result import CollectiveResult, Observer, Settings

__all__ = ["compile_collective"]


def compile_collective(
    request: CollectiveRequest,
    targets: Sequence[Target],
    settings: Settings,
    observer: Observer | None = None,
    start: Executable | None = None,
) -> CollectiveResult:
    """Compile one collective for every target, sharing the passes that the targets' pipelines have in common.

    Without a target it makes the schedule, and the program on first use. ``start`` is an IR that was read; it replaces
    synthesis. Raises CollcError for the user's mistakes, InternalError for collc's.
    """
    from .direct import emit_direct, needs_schedule, without_schedule

    request = without_relays(with_relays(request), targets)
    scheduled = [target for target in targets if needs_schedule(target)]
    if len(scheduled) < len(targets):
        whole = compile_collective(request, scheduled, settings, observer, start) if scheduled else None
        return emit_direct(whole or without_schedule(request, settings), targets, settings, observer)
    if request.schedule.scheduler != "auto" or start is not None:
        return compile_decided(request, targets, settings, observer, start)
    from .automatic import compile_automatic

    return compile_automatic(request, targets, settings, observer)
