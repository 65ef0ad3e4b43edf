"""The places of mistakes that passes and targets find: the option, the scheduler, the collective, the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Span, Subject
from collc.ir.frozen import frozen
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, Option, ScheduleRequest

from ..messages.internal import InternalError
from ..messages.places import usage_status
from ..registry.classes import scheduler_pass
from ..registry.elements import Element

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.ir.verify import Check

__all__ = ["Places", "wrong_by_hand"]

_WORDS = {
    Subject.COLLECTIVE: "the collective", Subject.TOPOLOGY: "the network", Subject.SCHEDULER: "the scheduler",
    Subject.TARGET: "the target",
}  # fmt: skip

_EMITTED = (Subject.TARGET, Subject.COLLECTIVE)


@frozen(eq=False)
class Places:
    """The places of one request, and of the ``elements`` of the pipeline of the command line."""

    request: CollectiveRequest
    elements: Sequence[Element] = ()

    def placed(self, mistake: CollcError, name: str = "", target: Target | None = None) -> CollcError:
        """Return a mistake of the pass ``name`` with its places; the collective's if it names no other.

        If a pass exceeds a limit of a ``target``, the mistake is about the target. A wrong option is a mistake of usage
        if it stands on the command line.
        """
        if isinstance(mistake, InternalError):
            return mistake
        limited = [self._about_target(d, target) if target else d for d in mistake.diagnostics]
        found = [self._placed(d, name) for d in limited]
        if found == list(mistake.diagnostics):
            return mistake
        options = all(d.option for d in found) and mistake.exit_status == 1
        return CollcError(found, usage_status(d.span for d in found) if options else mistake.exit_status)

    def _placed(self, diagnostic: Diagnostic, name: str) -> Diagnostic:
        if diagnostic.span is not None:
            return diagnostic
        places = list(self._places(diagnostic, name))
        first = places[0].span if places else self.request.span
        others = [other for other in places[1:] if first is None or not _same_line(first, other.span)]
        return attrs.evolve(diagnostic, span=first, related=(*diagnostic.related, *others))

    def of_target(self, mistake: CollcError, target: Target) -> CollcError:
        """Return a mistake of a target with its places: that of the option, else of the target's name."""
        if isinstance(mistake, InternalError):
            return mistake
        found = [d if d.about else attrs.evolve(d, about=_EMITTED) for d in mistake.diagnostics]
        return self.placed(CollcError(found, mistake.exit_status), target.name, target)

    def _about_target(self, diagnostic: Diagnostic, target: Target) -> Diagnostic:
        """Return a mistake with what the target allows instead, if it exceeds a limit that an option may change."""
        if diagnostic.excess is None or diagnostic.option or diagnostic.span:
            return diagnostic
        option, hint = target.instead(diagnostic.excess)
        about = diagnostic.about or _EMITTED
        return attrs.evolve(diagnostic, option=option, about=about, hint=hint or diagnostic.hint)

    def _places(self, diagnostic: Diagnostic, name: str) -> Iterator[Related]:
        """Yield the places that a diagnostic is about, the first one first."""
        option = self._option(diagnostic.option, name) if diagnostic.option else None
        if option is None and diagnostic.option:
            option = _written([*self._emits, *self.request.options], diagnostic.option)
        if option is not None and option.place:
            yield Related(f"option `{option.name}`", option.place)
        element = next((one for one in self.elements if one.name == name and one.span), None)
        if option is None and not diagnostic.about and element is not None and element.span:
            yield Related(f"pass `{name}`", element.span)
            yield Related(_WORDS[Subject.COLLECTIVE], self.request.kind_span or element.span)
        if Subject.SCHEDULER in diagnostic.about and (chosen := self._transfer(diagnostic)) is not None:
            yield Related("the transfer", chosen)
        for subject in diagnostic.about:
            span = self._span(subject, name)
            if span is not None:
                yield Related(_WORDS[subject], span)

    def _option(self, word: str, name: str) -> Option | None:
        """Return an option of a pass as the user wrote it: on the command line, else in the file."""
        written = [option for element in self.elements if element.name == name for option in element.options]
        if not name or scheduler_pass(self.request.schedule.scheduler) == name:
            written += self.request.schedule.options
        return _written(written, word)

    @property
    def _emits(self) -> Sequence[Option]:
        return [option for emit in self.request.emits for option in emit.options]

    def _transfer(self, diagnostic: Diagnostic) -> Span | None:
        """Return the transfer with the largest number of a channel or threadblock, if such numbers are too many."""
        schedule, excess = self.request.schedule, diagnostic.excess
        placement = schedule.schedule.placement if isinstance(schedule.schedule, Schedule) else None
        columns = {"channels": ("channel",), "threadblocks": ("sender", "receiver")}
        if placement is None or schedule.rows is None or excess is None or excess.what not in columns:
            return None
        numbers = [getattr(placement, name) for name in columns[excess.what]]
        return schedule.rows.of(int(np.argmax(np.maximum.reduce(numbers))))

    def _span(self, subject: Subject, name: str) -> Span | None:
        request = self.request
        if subject is Subject.COLLECTIVE:
            return request.kind_span or request.span
        if subject is Subject.TOPOLOGY:
            return request.topology_span
        if subject is Subject.TARGET:
            named = [emit.name_span for emit in request.emits if emit.target == name] or [None]
            return named[0] or (request.emits[0].name_span if len(request.emits) == 1 else None)
        given = next((element.span for element in self.elements if element.name == name), None)
        return given or request.schedule.name_span


def wrong_by_hand(request: CollectiveRequest, check: Check) -> Diagnostic:
    """Return the mistake C0401 of a schedule written by hand, at the transfers that show it."""
    schedule = request.schedule
    verdict = "incomplete" if check.name == "postcondition" else "wrong"
    placed = Diagnostic(
        "C0401", f"the schedule of `{request.name}` is {verdict}: {check.detail}", hint=_hint(schedule, check)
    )
    if schedule.rows is None or not check.rows:
        second = (Related(_WORDS[Subject.COLLECTIVE], request.kind_span),) if request.kind_span else ()
        return attrs.evolve(placed, span=schedule.span or request.span, notes=check.notes, related=second)
    places = [Related(what, span) for row, what in check.rows if (span := schedule.rows.of(row))]
    first = places[0].span if places else schedule.span
    others = tuple(place for place in places[1:] if place.span != first)
    same = [place.message for place in places[1:] if place.span == first]
    notes = (*same, *check.notes, *_renumbered(schedule, [row for row, _ in check.rows]))
    return attrs.evolve(placed, span=first, notes=notes, related=others)


def _hint(schedule: ScheduleRequest, check: Check) -> str | None:
    """Return the hint of a check; a new step gets the number after the last that the user wrote."""
    if schedule.rows is None or not len(schedule.rows.steps):
        return check.hint or None
    last, count = int(schedule.rows.steps[-1]), len(set(schedule.rows.steps.tolist()))
    return check.hint.replace(f"`at {count}:", f"`at {last + 1}:") or None


def _renumbered(schedule: ScheduleRequest, rows: Sequence[int]) -> Iterator[str]:
    """Yield a note on steps that the user numbered otherwise: a schedule counts them without gaps."""
    assert schedule.rows is not None and isinstance(schedule.schedule, Schedule)
    pairs = {int(schedule.schedule.step[row]): int(schedule.rows.steps[row]) for row in rows}
    other = [f"step {step} is `at {written}`" for step, written in sorted(pairs.items()) if step != written]
    if other:
        yield f"steps are counted without gaps: {', '.join(other)}"


def _written(options: Sequence[Option], word: str) -> Option | None:
    return next((option for option in options if option.name.replace("_", "-") == word), None)


def _same_line(one: Span, other: Span) -> bool:
    return one.source is other.source and one.line == other.line
