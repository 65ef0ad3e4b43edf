"""The option ``relays`` of a collective's schedule: it holds for every scheduler, so the problem has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.graph.members import inside, without_members
from collc.ir.spec import CollectiveRequest, Option, Problem

if TYPE_CHECKING:
    from collc.backends.base import Target

__all__ = [
    "alone_of", "judged", "leaves_out", "may_relay", "with_relays",
]  # fmt: skip

_WORDS: tuple[Literal["auto"], Literal["never"]] = ("auto", "never")


def with_relays(request: CollectiveRequest) -> CollectiveRequest:
    """Return a request whose option ``relays`` is part of the problem, if the collective has members.

    All ranks as members are no members. Raises C0010 for another value than ``auto`` or ``never``.
    """
    schedule, problem = request.schedule, request.problem
    if problem.collective.num_members == problem.collective.num_ranks and problem.collective.members is not None:
        return attrs.evolve(
            request, problem=attrs.evolve(problem, collective=attrs.evolve(problem.collective, members=None))
        )
    given = [option for option in schedule.options if option.name == "relays"]
    if problem.collective.members is None or not given:
        return request
    left = tuple(option for option in schedule.options if option is not given[-1])
    return attrs.evolve(
        request, schedule=attrs.evolve(schedule, options=left), problem=attrs.evolve(problem, relays=_word(given[-1]))
    )


def may_relay(problem: Problem) -> bool:
    """Return whether ranks that are no members relay if that takes less time."""
    return problem.collective.members is not None and problem.relays == "auto" and problem.shares is None


def alone_of(request: CollectiveRequest) -> CollectiveRequest | None:
    """Return the request without relays; None if it has no members, or these need relays, or have none already.

    Collectives that run at the same time have their shares of the links, with relays or without.
    """
    problem = request.problem
    if not may_relay(problem):
        return None
    alone = inside(problem.topology, problem.collective, relays=False).topology
    return attrs.evolve(request, problem=attrs.evolve(problem, relays="never")) if alone.is_connected else None


def leaves_out(target: Target) -> bool:
    """Return whether a target needs a schedule without relays if there is one."""
    return target.level in ("program", "one-sided", "schedule") and not target.takes_relays


def judged(target: Target, collective: Collective) -> Collective:
    """Return a collective as a target gets it: that of the members alone, unless the target takes members."""
    if collective.members is None or target.takes_members:
        return collective
    return without_members(collective)


def _word(option: Option) -> Literal["auto", "never"]:
    for word in _WORDS:
        if option.value == word:
            return word
    message = f"option `relays` needs one of {', '.join(_WORDS)}, found `{option.value}`"
    raise error("C0010", message, span=option.place)
