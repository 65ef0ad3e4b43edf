"""What ``auto`` chooses on a network whose switches multicast or reduce: for some targets switches only forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest

from .direct import needs_schedule
from .relay_choice import compared, is_faster, joined_files
from .result import CollectiveResult, Observer, Settings

__all__ = ["SwitchChoice", "forwards_only"]

#: compiles a request for some targets, or for those that are shown
Compile: TypeAlias = (
    "Callable[[CollectiveRequest, Sequence[Target], Settings, Observer | None, Sequence[Target]], CollectiveResult]"
)


@attrs.frozen(eq=False)
class SwitchChoice:
    """Compilations of a request for ``auto``, with switches that do more than forward and without.

    A target whose instructions do not address switches gets a schedule in which they only forward, and a remark if
    the switches would take less time.
    """

    request: CollectiveRequest
    settings: Settings
    observer: Observer | None
    compile: Compile

    def compiled(self, targets: Sequence[Target], shown: Sequence[Target]) -> CollectiveResult:
        """Compile for the targets; without one, the schedule of the first target ``shown``."""
        deciding = targets or [target for target in shown if needs_schedule(target)][:1]
        without = [target for target in deciding if forwards_only(target)]
        if not without:
            return self.compile(self.request, targets, self.settings, self.observer, shown)
        forwarding = _forwarding(self.request)
        found = self.compile(forwarding, without if targets else (), self.settings, self.observer, shown)
        rest = [target for target in targets if target not in without]
        found = _noted(found, self._shared(), without)
        if not rest:
            return found
        other = self.compile(self.request, rest, self.settings, self.observer, shown)
        first, second = (found, other) if targets[0] in without else (other, found)
        return attrs.evolve(joined_files(first, second, targets), remarks=_both(first, second))

    def _shared(self) -> CollectiveResult | None:
        """Return the schedule that switches take part in; None if there is none."""
        settings = attrs.evolve(self.settings, until=Schedule, verify="off")
        try:
            return self.compile(self.request, (), settings, None, ())
        except CollcError:  # the remark compares nothing then
            return None


def forwards_only(target: Target) -> bool:
    """Return whether a target needs a schedule in which switches only forward."""
    return needs_schedule(target) and not target.shares_links


def _forwarding(request: CollectiveRequest) -> CollectiveRequest:
    topology = attrs.evolve(request.problem.topology, multicast=(), reduces=())
    return attrs.evolve(request, problem=attrs.evolve(request.problem, topology=topology))


def _noted(
    found: CollectiveResult, shared: CollectiveResult | None, without: Sequence[Target]
) -> CollectiveResult:  # fmt: skip
    """Return a result with one remark on its targets if the schedule that switches take part in takes less time."""
    if shared is None or not is_faster(shared, found):
        return found
    names = ", ".join(dict.fromkeys(target.title for target in without))
    what = compared(found, shared, "with switches that multicast and reduce")
    text = f"switches only forward in files for {names}: {what} (target mscclpp-json)"
    each = tuple(attrs.evolve(one, remarks=(*one.remarks, text)) for one in found.algorithms[:1])
    return attrs.evolve(found, remarks=(*found.remarks, text), algorithms=(*each, *found.algorithms[1:]))


def _both(first: CollectiveResult, second: CollectiveResult) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first.remarks, *second.remarks)))
