"""Compiling with the scheduler ``auto``: choose, compile what was chosen, and take the next best where it does not fit.

A runtime's limits show when a program is made for it. A candidate that they rule out is left out, with the reason, and
the choice is made again: what is emitted is the fastest of those that can run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from collc.backends.base import Target, Window
from collc.ir.diagnostic import CollcError, Diagnostic, Severity
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.passes import AUTO

from .driver import CollectiveResult, Observer, Settings, Timing, compile_decided, emit_selected
from .fitting import LIMITS
from .internal import InternalError
from .options import build
from .registry import pass_class

if TYPE_CHECKING:
    from .selection import Algorithm, Choice, Interval, Selector

__all__ = ["compile_automatic"]

#: what else says that one schedule is too much where another may not be: too many rows, waits that never end
_UNFIT = LIMITS | {"C0594", "C0630", "C0633", "C0808"}


def compile_automatic(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None
) -> CollectiveResult:
    """Compile a collective by the fastest of its candidates, or for a range of sizes by all that are it somewhere.

    Raises C0045, C0046 (options of `auto` that cannot be), and what compiling the best candidate raises where none
    fits.
    """
    if _has_scheduler(settings):
        return compile_decided(_decided(request, _usual(request.problem)), targets, settings, observer)
    from .selection import Auto, Selector

    auto = build(Auto, "scheduler `auto`", request.schedule.options, span=request.schedule.span)
    if observer:
        observer.begins(request.name, "auto")
    begin = time.perf_counter()
    try:
        selector = Selector(request.problem, auto, request.name)
    except CollcError as mistake:
        raise _placed(mistake, request) from mistake.__cause__
    spent = Timing(request.name, "auto", time.perf_counter() - begin)
    made = _Attempts(request, targets, settings, observer, selector).first_that_fits()
    return attrs.evolve(made, timings=(spent, *made.timings))


def _has_scheduler(settings: Settings) -> bool:
    """Whether a pipeline on the command line begins with a scheduler of its own."""
    elements = settings.recipe.elements
    return bool(elements) and elements is not None and pass_class(elements[0].name, elements[0].span).takes is Problem


def _usual(problem: Problem) -> ScheduleRequest:
    return ScheduleRequest(AUTO.get(problem.collective.kind, "bfb"))


def _decided(request: CollectiveRequest, schedule: ScheduleRequest) -> CollectiveRequest:
    return attrs.evolve(request, schedule=attrs.evolve(schedule, span=request.schedule.span))


def _placed(mistake: CollcError, request: CollectiveRequest) -> CollcError:
    """Return a mistake with the place of the collective where it has none of its own; one of ours as it is."""
    if isinstance(mistake, InternalError):
        return mistake
    found = [d if d.span else attrs.evolve(d, span=request.span) for d in mistake.diagnostics]
    return CollcError(found, mistake.exit_status)


class _Unfit(Exception):
    """An algorithm that some target cannot take, or not as it is."""

    def __init__(self, algorithm: Algorithm, reason: str, mistake: CollcError | None = None) -> None:
        super().__init__()
        self.algorithm, self.reason, self.mistake = algorithm, reason, mistake


class _Attempts:
    """Compilations of one collective by what its selector chooses, each done once."""

    def __init__(
        self, request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
        selector: Selector,
    ):  # fmt: skip
        self.request, self.targets, self.settings, self.observer = request, targets, settings, observer
        self.selector = selector
        self.done: dict[tuple[Algorithm, Window | None], CollectiveResult] = {}

    def first_that_fits(self) -> CollectiveResult:
        """Return the result for the best choice that all targets can take; raise why the best cannot."""
        excluded: dict[Algorithm, str] = {}
        first: CollcError | None = None
        while True:
            choice = self.selector.choose(excluded)
            try:
                return self.compiled(choice)
            except _Unfit as unfit:
                first = first or unfit.mistake
                if first is not None and self.selector.is_last(excluded):
                    raise first from None
                excluded[unfit.algorithm] = unfit.reason

    def compiled(self, choice: Choice) -> CollectiveResult:
        if not choice.ranged:
            return attrs.evolve(self.one(choice.intervals[0], None), choice=choice)
        found = [self.one(interval, _window(interval)) for interval in choice.intervals]
        return self.joined(choice, found)

    def one(self, interval: Interval, window: Window | None) -> CollectiveResult:
        """Return the result of one algorithm, for calls of a window or for all; raise _Unfit."""
        from .selection.selector import reason_of

        algorithm = interval.algorithm
        key = algorithm, window
        if key not in self.done:
            request = _decided(self.request, ScheduleRequest(algorithm.scheduler, algorithm.requested()))
            try:
                self.done[key] = compile_decided(
                    request, self.targets, self.settings, self.observer, ready=self.selector.ready, window=window
                )
            except CollcError as mistake:
                if all(d.code in _UNFIT for d in mistake.diagnostics):
                    raise _Unfit(algorithm, reason_of(mistake), mistake) from None
                raise
        self.require_as_measured(algorithm, self.done[key])
        return self.done[key]

    def require_as_measured(self, algorithm: Algorithm, made: CollectiveResult) -> None:
        """Raise _Unfit where trees fit in fewer pieces only, which then are a candidate of their own."""
        asked = dict(algorithm.options).get("pieces")
        if made.forest is None or not isinstance(asked, int) or made.forest.pieces >= asked:
            return
        self.selector.add_pieces(made.forest.pieces)
        raise _Unfit(algorithm, f"more pieces than fit, which are {made.forest.pieces}")

    def joined(self, choice: Choice, found: Sequence[CollectiveResult]) -> CollectiveResult:
        """Return one result of the algorithms of all sizes: the first's, with the files and reports of all."""
        warnings: dict[Diagnostic, None] = dict.fromkeys(w for one in found for w in one.warnings)
        result = attrs.evolve(
            found[0], emitted=(), choice=choice, warnings=tuple(warnings), window=None, selected=(),
            algorithms=tuple(attrs.evolve(one, selected=()) for one in found),
            remarks=tuple(dict.fromkeys(text for one in found for text in one.remarks)),
            reports=tuple(r for one in found for r in one.reports),
            timings=tuple(t for one in found for t in one.timings),
        )  # fmt: skip
        for target in self.targets:
            if target.selects:
                parts = [(one.window, ir) for one in found for t, ir in one.selected if t is target and one.window]
                result = emit_selected(target, parts, result, self.observer)
            elif files := tuple(a for one in found for t, made in one.emitted if t is target for a in made):
                result = attrs.evolve(result, emitted=(*result.emitted, (target, files)))
        if self.targets and not result.emitted:
            raise CollcError([attrs.evolve(w, severity=Severity.ERROR) for w in warnings], 3)
        return result


def _window(interval: Interval) -> Window:
    return Window(interval.algorithm.name, interval.low, interval.high, interval.label)
