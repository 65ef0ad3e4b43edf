"""From a result to an account of it, for targets that describe what was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from collc.ir.account import Account, Algorithm, Allowance, Contender, Step
from collc.ir.costs.cost import predicted_time
from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.shown import counted

from ..messages.internal import is_fatal
from ..registry.classes import target_class
from ..registry.elements import element_text
from ..registry.options import build
from .result import CollectiveResult, Settings
from .sizes import own_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from collc.backends.base import Target
    from collc.ir.spec import CollectiveRequest

    from ..selection import Choice, Measured

__all__ = ["account_of", "compile_described"]

#: up to this number of ranks an account has a program, and the schedule is that of the program
MOST_RANKS = 64
#: up to this number of transfers
MOST_TRANSFERS = 60_000

#: steps of work of a scheduler that is only compared
_EFFORT = 1 << 22
#: sizes (bytes) of curves
SIZES = tuple(1 << power for power in range(10, 33))


def compile_described(
    request: CollectiveRequest, settings: Settings, compile: Callable[[Sequence[Target], Settings], CollectiveResult]
) -> CollectiveResult:
    """Return the result that an account describes: that of the first ``emit`` of the file, if its target takes it.

    Without one, or on a large network, it is the exact schedule, without files. ``compile`` compiles the request for
    targets.
    """
    if request.problem.collective.num_ranks > MOST_RANKS:
        return compile((), _exact(settings))
    refused = []
    for target in _emitted(request):
        try:
            return attrs.evolve(compile((target,), settings), emitted=())
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            refused.append(f"{target.title} refuses the program: {mistake.diagnostics[0].message}")
    return _with_remarks(compile((), settings), tuple(refused))


def _with_remarks(result: CollectiveResult, remarks: tuple[str, ...]) -> CollectiveResult:
    """Return a result with further remarks, on its first algorithm if it has several."""
    if not remarks:
        return result
    each = tuple(attrs.evolve(one, remarks=(*one.remarks, *remarks)) for one in result.algorithms[:1])
    return attrs.evolve(result, remarks=(*result.remarks, *remarks), algorithms=(*each, *result.algorithms[1:]))


def _exact(settings: Settings) -> Settings:
    recipe = settings.recipe if settings.recipe.elements else attrs.evolve(settings.recipe, elements=())
    return attrs.evolve(settings, recipe=recipe, until=Schedule)


def _emitted(request: CollectiveRequest) -> Iterator[Target]:
    """Yield the first target of the file that is made from a program; none if its options are wrong."""
    for emit in request.emits:
        cls = target_class(emit.target, emit.span)
        if cls.level in ("program", "one-sided"):
            yield build(cls, f"target `{emit.target}`", emit.options, span=emit.span)
            return


def account_of(result: CollectiveResult) -> Account:
    """Return the account of a result; raise C0019 if the compilation began with a program.

    If the user chose the scheduler, its contenders are the candidates of `auto`, on networks of up to
    :data:`MOST_RANKS` ranks.
    """
    algorithms = tuple(map(_algorithm, result.each))
    own, choice = own_size(result), result.choice
    ends = () if choice is None else choice.ends
    sizes = tuple(sorted({size for size in (*SIZES, *ends, own) if size}))
    contenders: tuple[Contender, ...] = ()
    if choice is None:
        choice = _compared(result)
        shown = algorithms[0].cost
        seconds = tuple(predicted_time(shown, size) for size in sizes)
        contenders = (Contender(shown.scheduler, f"{shown.scheduler}, as compiled", shown.steps, True, seconds),)
    if choice is None:
        return Account(result.request, algorithms, sizes, own, contenders)
    best = set() if contenders else {one.best for one in choice.intervals}
    found = (_contender(one, one in best, sizes) for one in choice.candidates)
    contenders += tuple(one for one in found if not contenders or one.seconds != contenders[0].seconds)
    skipped = tuple((one.name, one.reason) for one in choice.skipped)
    return Account(result.request, algorithms, sizes, own, contenders, skipped)


def _contender(one: Measured, chosen: bool, sizes: Sequence[int]) -> Contender:
    seconds = tuple(one.times.at(size) for size in sizes)
    return Contender(one.algorithm.name, one.algorithm.text, one.steps, chosen, seconds)


def _compared(result: CollectiveResult) -> Choice | None:
    """Return what `auto` compares for a collective whose scheduler the user chose; None if that takes long or fails."""
    problem = result.request.problem
    if problem.collective.num_ranks > MOST_RANKS or result.request.roots is not None:
        return None
    from ..selection import Auto, Selector

    try:
        return Selector(problem, Auto(effort=_EFFORT, transfers=MOST_TRANSFERS), result.name).choose({})
    except CollcError as mistake:
        if is_fatal(mistake):
            raise
        return None


def _algorithm(result: CollectiveResult) -> Algorithm:
    if result.schedule is None:
        raise error(
            "C0019", f"`{result.name}` was compiled from a program, and only schedules have a report",
            hint="`collc verify` executes a program",
        )  # fmt: skip
    cost, window = result.cost, result.window
    program, absent = _program(result, cost.transfers)
    low, high = (0, None) if window is None else (window.low, window.high)
    target = result.plans[0].target if result.plans else None
    return Algorithm(
        result.schedule, cost, program, absent, low, high, tuple(_steps(result)), result.remarks, result.reports,
        () if program is None or target is None else tuple(_allowances(target, program)), result.forest,
    )  # fmt: skip


def _program(result: CollectiveResult, transfers: int) -> tuple[Program | None, str]:
    """Return the program, or None and the reason why there is none."""
    ranks = result.request.problem.collective.num_ranks
    if ranks > MOST_RANKS or transfers > MOST_TRANSFERS:
        most = f"{MOST_RANKS} ranks and {MOST_TRANSFERS:,} transfers"
        return None, f"{ranks} ranks, {counted(transfers, 'transfer')}; programs are shown up to {most}"
    try:
        program = result.program
    except CollcError as mistake:
        if is_fatal(mistake):
            raise
        return None, mistake.diagnostics[0].message
    if isinstance(program, Program):
        return program, ""
    return None, "the passes end before programs"


def _steps(result: CollectiveResult) -> Iterator[Step]:
    """Yield the passes of the first plan, with the rows that each left."""
    left = {timing.step: timing.rows for timing in result.timings if timing.rows is not None}
    for chain in result.plans[:1]:
        for this, why in zip(chain.passes, chain.reasons or ("",) * len(chain.passes), strict=True):
            yield Step(element_text(this), left.get(this.name), why)


def _allowances(target: Target, program: Program) -> Iterator[Allowance]:
    """Yield the limits of a target that a program has a number for."""
    limits = target.limits
    blocks = np.diff(program.rank_blocks)
    used = {
        "threadblocks": (int(blocks.max(initial=0)), limits.max_threadblocks),
        "channels": (program.num_channels, limits.max_channels),
        "steps": (int(program.step.max(initial=-1)) + 1, limits.max_steps),
        "count": (int(program.count.max(initial=0)), limits.max_count),
    }
    for what, (most, allowed) in used.items():
        if allowed is not None:
            yield Allowance(target.title, what, most, allowed)
