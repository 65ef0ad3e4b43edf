"""Which schedulers apply to a problem, judged without scheduling, and the mistakes of those that do not."""

from __future__ import annotations

from collections.abc import Sequence

from collc.ir.collective import KINDS
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.shown import counted, listed
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from . import PASSES
from .base import Pass
from .schedulers import RANKS, SCHEDULERS, Scheduler, candidates

__all__ = ["applicable", "not_scheduled", "require_direct", "require_listed"]

_MOST_NAMES = 4  # in a hint
_BY_HAND = "write the schedule by hand (`using steps`)"


def applicable(problem: Problem) -> tuple[str, ...]:
    """Return the schedulers that take a problem with their usual options, those for any network first.

    It computes no schedule, so a scheduler may still find the problem too large.
    """
    found = [name for name in candidates() if _is_tried(name, problem) and _applies(name, problem)]
    return tuple(sorted(found, key=lambda name: problem.collective.name not in SCHEDULERS.own[name].usual))


def _is_tried(name: str, problem: Problem) -> bool:
    """Return whether the table of schedulers says that one is for this collective, network and number of ranks."""
    row: Scheduler = SCHEDULERS.own[name]
    how, topology = row.candidate, problem.topology
    if how is None or problem.collective.name not in row.collectives or (how.built and topology.origin is None):
        return False
    if row.networks == RANKS and not topology.is_direct:
        return False
    return how.most is None or topology.num_ranks <= how.most


def _applies(name: str, problem: Problem) -> bool:
    scheduler: Pass = PASSES.load(name)()
    try:
        scheduler.require(problem)
    except CollcError:
        return False
    return True


def require_listed(scheduler: str, problem: Problem) -> None:
    """Raise C0503 if the table of schedulers does not list a collective whose shards differ in size, or a custom one.

    Schedulers themselves judge all other collectives, and passes outside the table judge all.
    """
    collective, row = problem.collective, SCHEDULERS.get(scheduler)
    is_usual = collective.name in KINDS
    if not is_usual and row is not None and collective.name not in row.collectives:
        raise not_scheduled("C0503", scheduler, problem, row.collectives)


def not_scheduled(code: str, scheduler: str, problem: Problem, kinds: Sequence[str], variant: str = "") -> CollcError:
    """Return the error for a collective that a scheduler, or one of its variants, does not schedule.

    ``kinds`` are those that it schedules. The hint names the schedulers that take the collective on this network.
    """
    kind, name = problem.collective.name, f"the {variant} variant of {scheduler}" if variant else scheduler
    return error(
        code, f"{name} cannot schedule `{kind}`", notes=[f"it schedules {listed(kinds)}"],
        hint="leave `variant` out" if variant else _instead(problem), exit_status=3,
        option="variant" if variant else None, about=(Subject.SCHEDULER, Subject.COLLECTIVE),
    )  # fmt: skip


def _instead(problem: Problem) -> str:
    """Return what to write for a problem that the chosen scheduler does not take."""
    kind, names = problem.collective.name, applicable(problem)
    if names:
        shown = listed([f"`{name}`" for name in names[:_MOST_NAMES]], "or")
        return f"use {shown}, which schedule{'s' * (len(names) == 1)} {kind} on this network"
    return _BY_HAND


def require_direct(code: str, scheduler: str, problem: Problem) -> None:
    """Raise ``code`` for a network with switches, with the schedulers that take it."""
    topology = problem.topology
    if not topology.is_direct:
        raise error(
            code, f"{scheduler} needs a network of ranks only; `{topology.name}` has {_switches(topology)}",
            hint=_instead(problem), exit_status=3, about=(Subject.SCHEDULER, Subject.TOPOLOGY),
        )  # fmt: skip


def _switches(topology: Topology) -> str:
    return counted(topology.num_switches, "switch")
