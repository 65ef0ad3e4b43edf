"""Compiling with the scheduler ``auto``: choose an algorithm, compile it, and take the next best if it does not fit.

The limits of a runtime apply to programs, so they show only after the choice. The driver excludes a candidate that
exceeds them, notes the reason, and chooses again. It emits the fastest candidate that can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from collc.backends.base import Target, Window
from collc.ir.diagnostic import CollcError, Diagnostic, Kind, Severity
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.passes.schedulers import SCHEDULERS, usual

from ..registry.classes import pass_class
from ..registry.options import build
from .decided import compile_decided, emit_selected
from .placing import Places
from .result import CollectiveResult, CompiledKey, Kept, Observer, Settings
from .spans import Span, Timing, noted, span

if TYPE_CHECKING:
    from ..selection import Algorithm, Choice, Interval, Selector

__all__ = ["compile_automatic"]

#: diagnostics of a target that refuses one schedule and may take another
_UNFIT = (Kind.LIMIT, Kind.MISFIT, Kind.SIZE)


def compile_automatic(
    request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
    kept: Kept | None = None,
) -> CollectiveResult:  # fmt: skip
    """Compile a collective by its fastest candidate; for a range of sizes, by all that are the fastest at some size.

    ``kept`` holds what compilations of the same collective for other sizes have measured and compiled. Raises C0045,
    C0046 (wrong options of `auto`), and if no candidate fits, what compiling the best one raises.
    """
    if _has_scheduler(settings):
        return compile_decided(_with_schedule(request, _usual(request.problem)), targets, settings, observer)
    own = _own(request, targets)
    if own is not None:
        return compile_decided(_with_schedule(request, own), targets, settings, observer)
    from ..selection import Auto, Memory, Selector

    kept = kept or Kept(request, Memory())
    auto = build(Auto, "scheduler `auto`", request.schedule.options, span=request.schedule.span)
    if observer:
        observer.begins(request.name, "auto")
    spent: Span | None = None
    try:
        with span("auto", "choice") as spent:
            lists = any(not target.limits.templates for target in targets)
            selector = Selector(request.problem, auto, request.name, kept.memory, lists=lists)
    except CollcError as mistake:
        raise Places(request).placed(mistake) from mistake.__cause__
    finally:
        selection = None if spent is None else noted(request.name, spent)
    assert selection is not None, "the choice has a span"
    attempts = _Attempts(request, targets, settings, observer, selector, kept.compiled)
    result = attempts.first_that_fits()
    chosen = set(map(id, result.timings))
    refused = (one for one in attempts.timings if id(one) not in chosen)
    timings = (selection, *refused, *result.timings)
    return attrs.evolve(result, timings=timings, kept=kept if settings.remembers else None)


def _has_scheduler(settings: Settings) -> bool:
    """Return whether the pipeline of the command line begins with a scheduler."""
    elements = settings.recipe.elements
    return bool(elements) and elements is not None and pass_class(elements[0].name, elements[0].span).takes is Problem


def _usual(problem: Problem) -> ScheduleRequest:
    return ScheduleRequest(usual(problem.collective.name))


def _own(request: CollectiveRequest, targets: Sequence[Target]) -> ScheduleRequest | None:
    """Return the scheduler that all targets name, with the options that they share; None if they name none, or the
    request has options of `auto`.
    """
    names = {target.scheduler for target in targets}
    if len(names) != 1 or None in names or request.schedule.options:
        return None
    (name,) = names
    if request.problem.collective.name not in SCHEDULERS[str(name)].collectives:
        return None
    options = {target.scheduler_options for target in targets}
    return ScheduleRequest(str(name), options.pop() if len(options) == 1 else ())


def _with_schedule(request: CollectiveRequest, schedule: ScheduleRequest) -> CollectiveRequest:
    return attrs.evolve(request, schedule=attrs.evolve(schedule, span=request.schedule.span))


class _Unfit(Exception):
    """A target refuses an algorithm, or its number of pieces: ``other`` has fewer."""

    def __init__(
        self, algorithm: Algorithm, reason: str, mistake: CollcError | None = None, other: Algorithm | None = None
    ) -> None:
        super().__init__()
        self.algorithm, self.reason, self.mistake, self.other = algorithm, reason, mistake, other


class _Attempts:
    """Compilations of one collective by the algorithms that its selector chooses, each run once.

    ``timings`` are those of all steps, also of compilations that raised an error.
    """

    def __init__(
        self, request: CollectiveRequest, targets: Sequence[Target], settings: Settings, observer: Observer | None,
        selector: Selector, compiled: dict[CompiledKey, CollectiveResult],
    ):  # fmt: skip
        self.request, self.targets, self.settings, self.observer = request, targets, settings, observer
        self.selector, self.results = selector, compiled
        self.timings: list[Timing] = []

    def first_that_fits(self) -> CollectiveResult:
        """Return the result of the best choice that all targets take; if there is none, raise the error of the best."""
        excluded: dict[Algorithm, str] = {}
        first: CollcError | None = None
        while True:
            choice = self.selector.choose(excluded)
            try:
                return self.compile(choice)
            except _Unfit as unfit:
                first = first or unfit.mistake
                if first is not None and self.selector.is_last(excluded):
                    raise first from None
                excluded[unfit.algorithm] = unfit.reason

    def compile(self, choice: Choice) -> CollectiveResult:
        if not choice.ranged:
            return attrs.evolve(self.compile_one(choice.intervals[0], None), choice=choice)
        found = [self.compile_one(interval, _window(interval)) for interval in choice.intervals]
        return self.joined(choice, found)

    def compile_one(self, interval: Interval, window: Window | None) -> CollectiveResult:
        """Return the result of one algorithm, for calls of a window or for all calls; raise _Unfit."""
        from ..selection.selector import reason_of

        algorithm = interval.algorithm
        key = algorithm, window, self.size_if_planned(algorithm)
        if key not in self.results:
            self.require_worth_trying(algorithm)
            timings: list[Timing] = []
            try:
                self.results[key] = compile_decided(
                    self.requested(algorithm), self.targets, self.settings, self.observer,
                    ready=self.selector.ready, window=window, timings=timings,
                )  # fmt: skip
            except CollcError as mistake:
                if mistake.is_only(*_UNFIT):
                    raise _Unfit(algorithm, reason_of(mistake), mistake) from None
                raise
            finally:
                self.timings += timings
        self.require_as_measured(algorithm, self.results[key], window)
        return self.results[key]

    def requested(self, algorithm: Algorithm) -> CollectiveRequest:
        """Return the request with an algorithm in place of `auto`."""
        chosen = _with_schedule(self.request, ScheduleRequest(algorithm.scheduler, algorithm.requested()))
        return attrs.evolve(chosen, problem=self.selector.measured_problem(algorithm, chosen.problem))

    def size_if_planned(self, algorithm: Algorithm) -> int | None:
        """Return the size of the collective if what is compiled may depend on it."""
        from ..selection.memory import size_if_planned

        problem = self.request.problem
        if self.targets or self.settings.recipe.elements != ():
            return problem.collective.size
        return size_if_planned(algorithm.scheduler_pass(), problem)

    def require_worth_trying(self, algorithm: Algorithm) -> None:
        """Raise _Unfit before the passes run if they would write out the trees in fewer pieces, whatever the target.

        Those are a candidate then, as if the trees had been compiled in fewer pieces.
        """
        lowered = bool(self.targets) and all(target.level == "program" for target in self.targets)
        most = self.selector.pieces_written(algorithm) if lowered and self.settings.recipe.elements is None else None
        if most is not None:
            self.require_pieces(algorithm, most)

    def require_as_measured(self, algorithm: Algorithm, result: CollectiveResult, window: Window | None) -> None:
        """Raise _Unfit if the trees fit only in fewer pieces, and add those as a candidate.

        The result is already that of the candidate if only the number of pieces was reduced, for one target.
        """
        if result.forest is None:
            return
        try:
            self.require_pieces(algorithm, pieces := result.forest.pieces)
        except _Unfit as unfit:
            alone = len(result.plans) == 1 and pieces > 1
            if alone and unfit.other is not None and result.plans[0].passes[0] == algorithm.scheduler_pass():
                key = unfit.other, window, self.size_if_planned(unfit.other)
                self.results.setdefault(key, attrs.evolve(result, request=self.requested(unfit.other)))
            raise

    def require_pieces(self, algorithm: Algorithm, fitting: int) -> None:
        """Raise _Unfit if fewer pieces fit than were measured, and add those as a candidate."""
        measured = self.selector.pieces.get(algorithm)
        if measured is None or fitting >= measured:
            return
        other = self.selector.add_pieces(algorithm, fitting)
        raise _Unfit(algorithm, f"more pieces than fit, which are {fitting}", other=other)

    def joined(self, choice: Choice, found: Sequence[CollectiveResult]) -> CollectiveResult:
        """Return one result for all sizes: the first algorithm's, with the files and reports of all."""
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
            elif files := tuple(a for one in found for t, artifacts in one.emitted if t is target for a in artifacts):
                result = attrs.evolve(result, emitted=(*result.emitted, (target, files)))
        if self.targets and not result.emitted:
            raise CollcError([attrs.evolve(w, severity=Severity.ERROR) for w in warnings], 3)
        return result


def _window(interval: Interval) -> Window:
    return Window(interval.algorithm.name, interval.low, interval.high, interval.label)
