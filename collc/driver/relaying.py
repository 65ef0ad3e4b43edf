"""The option ``relays`` of a collective's schedule: it holds for every scheduler, so the problem has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.equal_shards import as_custom
from collc.ir.graph.members import inside, without_members
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Option
from collc.passes.program.participants import participating

if TYPE_CHECKING:
    from collc.backends.base import Target

__all__ = ["as_custom_program", "judged", "with_relays", "without_relays"]

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


def without_relays(request: CollectiveRequest, targets: Sequence[Target]) -> CollectiveRequest:
    """Return a request in which no rank relays, if some target has no ranks that only relay and members need none."""
    problem = request.problem
    if problem.collective.members is None or all(target.takes_relays for target in targets):
        return request
    alone = inside(problem.topology, problem.collective, relays=False).topology
    if not alone.is_connected:
        return request
    return attrs.evolve(request, problem=attrs.evolve(problem, relays="never"))


def as_custom_program(program: Program) -> Program | None:
    """Return a program in which ranks relay as a custom collective of all ranks that take part; None if data are
    reduced, which a custom collective cannot, or if no rank relays.
    """
    collective = program.collective
    if collective.members is None or collective.reduces or not len(np.setdiff1d(program.block_rank, collective.ranks)):
        return None
    found = participating(program)
    return attrs.evolve(found, collective=as_custom(found.collective))


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
