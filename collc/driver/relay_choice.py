"""Which files of a collective among members have ranks that only relay: those that may, if it takes less time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import attrs

from collc.backends.base import Target
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import predicted_time
from collc.ir.diagnostic import CollcError, Kind
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest
from collc.passes.synthesis.groups.relays import relays_of

from ..messages.quantities import show_bandwidth, show_size
from .direct import needs_schedule
from .relaying import leaves_out
from .result import CollectiveResult, Observer, Settings

__all__ = ["RelayChoice", "can_gain", "compared", "is_faster", "joined_files", "noted", "relays_in"]

#: compiles a request for some targets
Compile: TypeAlias = "Callable[[CollectiveRequest, Sequence[Target], Settings, Observer | None], CollectiveResult]"

#: diagnostics of a target that refuses a program with relays and may take one without
_UNFIT = (Kind.LIMIT, Kind.MISFIT, Kind.SIZE)


@attrs.frozen(eq=False)
class RelayChoice:
    """Compilations of a collective among members that needs no relays: ``request`` allows them, ``alone`` does not."""

    request: CollectiveRequest
    alone: CollectiveRequest
    settings: Settings
    observer: Observer | None
    compile: Compile

    def compiled(self, targets: Sequence[Target], shown: Sequence[Target]) -> CollectiveResult:
        """Compile for the targets: each has relays if its files may, and a remark if it is slower without them."""
        deciding = targets or shown
        without = [target for target in deciding if leaves_out(target)]
        relayed = None
        if not without or any(needs_schedule(target) and target not in without for target in deciding):
            relayed, refusing = self.relayed([target for target in deciding if target not in without], bool(targets))
            without += refusing
        if not without:
            assert relayed is not None, "some target has relays"
            return relayed
        alone = self.apart([target for target in targets if target in without or relayed is None])
        if relayed is None:
            return noted(alone, self.schedule_with_relays(alone), without)
        first, second = (alone, relayed) if deciding[0] in without else (relayed, alone)
        return noted(joined_files(first, second, targets), relayed, without, alone)

    def relayed(self, deciding: Sequence[Target], emits: bool) -> tuple[CollectiveResult | None, list[Target]]:
        """Return the result with relays, of the targets if it ``emits``, and the targets that are better without.

        These have relays as ranks of a custom collective only: programs do not fit, or are no faster.
        """
        custom = [target for target in deciding if target.relays_as_custom]
        rest = [target for target in deciding if target not in custom]
        try:
            found = self.compile(self.request, deciding if emits else (), self.settings, self.observer)
        except CollcError as refused:
            if not custom or not refused.is_only(*_UNFIT):
                raise
            return self.relayed(rest, emits)[0] if rest else None, custom
        if not custom or not relays_in(found):
            return found, []
        everywhere = all(relays_in(one) for one in found.each)  # files for other sizes have the same ranks
        if everywhere and is_faster(found, self.scheduled(self.alone)) and (emits or self.fits(custom)):
            return found, []
        return self.relayed(rest, emits)[0] if rest else None, custom

    def fits(self, targets: Sequence[Target]) -> bool:
        """Return whether targets take the program with relays."""
        recipe = attrs.evolve(self.settings.recipe, elements=self.settings.recipe.elements or None)
        try:
            self.compile(self.request, targets, Settings(recipe, "off"), None)
        except CollcError as refused:
            if refused.is_only(*_UNFIT):
                return False
            raise
        return True

    def apart(self, targets: Sequence[Target]) -> CollectiveResult:
        """Return the result without relays, with the files of these targets."""
        return self.compile(self.alone, targets, self.settings, self.observer)

    def scheduled(self, request: CollectiveRequest) -> CollectiveResult:
        """Return a result without files, and without a program."""
        return self.compile(request, (), attrs.evolve(self.settings, until=Schedule, verify="off"), None)

    def schedule_with_relays(self, alone: CollectiveResult) -> CollectiveResult | None:
        """Return the schedule that relays take part in; None if it cannot take less time, or there is none."""
        if not can_gain(alone):
            return None
        try:
            return self.scheduled(self.request)
        except CollcError:
            return None


def relays_in(result: CollectiveResult) -> bool:
    """Return whether ranks that are no members relay in a result's schedules."""
    return any(one.schedule is not None and relays_of(one.schedule) for one in result.each)


def can_gain(alone: CollectiveResult) -> bool:
    """Return whether the bound with relays is below a result without them."""
    problem = alone.request.problem
    return _per_byte(alone) > bound(problem.topology, problem.collective).value


def is_faster(result: CollectiveResult, other: CollectiveResult) -> bool:
    """Return whether a result takes less time than another, at the size of the collective, else per byte."""
    return _time(result) < _time(other)


def noted(
    result: CollectiveResult, relayed: CollectiveResult | None, without: Sequence[Target],
    alone: CollectiveResult | None = None,
) -> CollectiveResult:  # fmt: skip
    """Return a result with a remark on each target without relays, if the schedule with relays takes less time.

    ``alone`` is what the files of these targets have, by default the result.
    """
    alone = alone or result
    if relayed is None or not is_faster(relayed, alone):
        return result
    texts = tuple(_remark(target, alone, relayed) for target in without)
    each = tuple(attrs.evolve(one, remarks=(*one.remarks, *texts)) for one in result.algorithms[:1])
    return attrs.evolve(
        result, remarks=(*result.remarks, *texts), algorithms=(*each, *result.algorithms[1:])
    )  # fmt: skip


def _remark(target: Target, alone: CollectiveResult, relayed: CollectiveResult) -> str:
    return f"{target.title} leaves relays out: {compared(alone, relayed, 'with relays')} (target mpi-c)"


def compared(slower: CollectiveResult, faster: CollectiveResult, how: str) -> str:
    """Return the bandwidths of two results in words, else the ratio of their times; ``how`` tells the faster one's."""
    size = _size(slower)
    at = "at large sizes" if size is None else f"at {show_size(size)}"
    if slower.plain_cost.unit != "B/s":
        return f"takes {float(_time(slower) / _time(faster)):.4g} times as long as {how} {at}"
    rates = [show_bandwidth(float((1 if size is None else size) / _time(one))) for one in (slower, faster)]
    return f"{rates[0]} {at}, {how} {rates[1]}"


def _size(result: CollectiveResult) -> int | None:
    """Return the size (bytes) to compare at; None to compare times per byte."""
    return None if result.algorithms else result.request.problem.collective.size


def _time(result: CollectiveResult) -> Fraction:
    size = _size(result)
    return _per_byte(result) if size is None else predicted_time(result.plain_cost, size)


def _per_byte(result: CollectiveResult) -> Fraction:
    return min(one.plain_cost.time_per_byte for one in result.each)


def joined_files(first: CollectiveResult, second: CollectiveResult, targets: Sequence[Target]) -> CollectiveResult:
    """Return the first result, with the files of both in the order of ``targets``."""
    emitted = sorted((*first.emitted, *second.emitted), key=lambda pair: targets.index(pair[0]))
    return attrs.evolve(
        first, emitted=tuple(emitted), reports=(*first.reports, *second.reports),
        timings=(*first.timings, *second.timings), plans=(*first.plans, *second.plans),
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
    )  # fmt: skip
