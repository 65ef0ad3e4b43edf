"""Which passes run, in which order: the ``-O`` levels, ``-p``, and the passes that a target needs.

The driver plans all passes before the first one runs. It adds passes between levels of the IR: the specification's
scheduler if the pipeline does not begin with a synthesis pass, ``pipelining`` to write out the steps of a forest, and
``discretize,lower`` to make a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from collc.backends.base import Limits, Target
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Option, Problem, ScheduleRequest
from collc.ir.symmetric import SymmetricSchedule
from collc.passes import PASSES
from collc.passes.base import Pass

from ..registry.classes import pass_class, scheduler_pass
from ..registry.elements import Element
from ..registry.options import build
from .plan import Plan, Recipe

__all__ = ["LEGALIZING", "LEVELS", "PIPELINE_LEVELS", "Entry", "plan"]


def _always(limits: Limits) -> bool:
    return True


def _unfused(limits: Limits) -> bool:
    return not limits.fused


def _equal_chunks(limits: Limits) -> bool:
    return limits.equal_chunks


def _limited(limits: Limits) -> bool:
    return limits.max_threadblocks is not None or limits.max_channels is not None or limits.max_steps is not None


@frozen
class Entry:
    """A pass of an ``-O`` level, the reason for its place, and the targets that need it."""

    name: str
    why: str
    when: Callable[[Limits], bool] = _always


_EQUAL = Entry(
    "whole-chunks", "runs before shards are cut into chunks: all chunks of the runtime have one size", _equal_chunks
)
_CUT = Entry("discretize", "runtimes move whole chunks, so exact intervals become chunks before lowering")
_NUMBER = Entry("renumber", "runs before lowering, which sends adjacent chunks in one message")
_LOWER = Entry("lower", "fixes the order of instructions on each rank, which all later passes keep")
_UNFUSE = Entry(
    "unfuse", "runs before balancing, which counts instructions: a runtime without fused ones runs more", _unfused
)
_FIT = Entry(
    "balance-threadblocks", "keeps the file within the runtime's limits: over them it would not load", _limited
)
_JOIN = Entry("lower", "joins transfers of one step into one message, and does not join successive pieces")
_MERGE = Entry("coalesce", "runs before balancing, which weighs messages: fewer and larger ones are fewer to place")
_BYPASS = Entry("eliminate-copies", "runs before messages are placed: a copy that is gone needs no threadblock")
_SPREAD = Entry("balance-threadblocks", "runs after messages have changed, and places those left evenly by bytes")
_REORDER = Entry("reorder-fifo", "runs when messages have their connections, before threadblocks join in that order")
_FUSE = Entry(
    "fuse", "runs after balancing, which decides the connections and channels that threadblocks can join", _limited
)
_SPLIT = Entry(
    "unfuse",
    "runs after fusing, which finds data that need not be stored: the runtime has no fused instructions",
    _unfused,
)
_PRUNE = Entry("prune-dependencies", "runs when threadblocks are final: they decide which dependencies imply others")
_PACK = Entry("reuse-scratch", "runs last: it moves data only where the remaining dependencies keep them apart")

#: passes between levels of the IR
_PIPELINE = Entry("pipelining", "trees have no steps, so this pass writes them out step by step")
_SCHEDULED = "makes the schedule"

#: level -> its passes after synthesis, each with the reason for its place
LEVELS: dict[str, tuple[Entry, ...]] = {
    "0": (_EQUAL, _CUT, _LOWER, _UNFUSE, _FIT),
    "1": (_EQUAL, _CUT, _LOWER, _MERGE, _UNFUSE, _FIT, _PRUNE),
    "2": (_EQUAL, _CUT, _NUMBER, _LOWER, _MERGE, _SPREAD, _FUSE, _SPLIT, _PRUNE, _PACK),
    # Removing copies and listing messages anew seldom gain anything, and take as long as all the rest.
    "3": (_EQUAL, _CUT, _NUMBER, _LOWER, _BYPASS, _MERGE, _SPREAD, _REORDER, _FUSE, _SPLIT, _PRUNE, _PACK),
}

#: the passes that any program for a target needs, in this order; appended if a pipeline lacks them
_LEGAL = (_UNFUSE, _FIT)
LEGALIZING = tuple(entry.name for entry in _LEGAL)

#: the levels of the IR in the order of the pipeline
PIPELINE_LEVELS: tuple[tuple[type, ...], ...] = ((Problem,), (Schedule, Forest), (Program,))
_LEVEL_WORDS = {Problem: "problem", Schedule: "schedule", Forest: "forest", Program: "program"}


def _entries(level: str, request: ScheduleRequest, start: type) -> list[tuple[Entry, Element]]:
    """Return the passes of a level; after a pipelining scheduler, messages are joined step by step only."""
    entries = [(e, Element(e.name)) for e in LEVELS[level]]
    if start is Program:
        # Fused instructions of a program that was read would stand in the way of balancing.
        at = next(k for k, (e, _) in enumerate(entries) if e in (_FIT, _SPREAD))
        entries[at:at] = [(_UNFUSE, Element(_UNFUSE.name))]
    scheduler = pass_class(scheduler_pass(request.scheduler, request.span))
    if start is not Forest and scheduler.gives is not Forest and not scheduler.pipelined:
        return entries
    if any(e is _MERGE for e, _ in entries):
        joining = (_JOIN, Element(_JOIN.name, (Option("join", True),)))
        entries = [joining if e is _LOWER else (e, element) for e, element in entries if e is not _MERGE]
    return entries


def plan(
    recipe: Recipe,
    request: ScheduleRequest,
    target: Target | None,
    *,
    start: type = Problem,
    until: type = Program,
    uneven: bool = False,
) -> Plan:
    """Return the passes that take an IR of level ``start`` to level ``until`` for ``target``.

    ``uneven`` says that shards differ in size.
    If ``until`` is Schedule, the plan has no program passes. Raises C0008 to C0011 for a pipeline that cannot run.
    """
    _require_known(recipe.disabled)
    limits = target.limits if target else Limits()
    limits = attrs.evolve(limits, equal_chunks=limits.equal_chunks and uneven)
    planner = _Planner(recipe, request, limits, start)
    if recipe.elements is None:
        entries = _entries(recipe.level, request, start)
        elements = [
            (element, e.why) for e, element in entries
            if e.when(limits) and planner.takes(e.name) and (until is Program or not pass_class(e.name).for_programs)
        ]  # fmt: skip
    else:
        elements = [(element, "") for element in recipe.elements]
    for element, why in elements:
        if not planner.add(element, until, why):
            break
    planner.reach(until)
    if planner.level is Program and until is Program:
        planner.legalize()
    return Plan(tuple(planner.passes), planner.level, target, tuple(planner.reasons))


def _require_known(names: Sequence[str]) -> None:
    for name in names:
        if name not in PASSES:
            raise error("C0008", f"unknown pass `{name}` in --disable-pass", hint=PASSES.hint(name), exit_status=2)


def _takes(cls: type[Pass]) -> tuple[type, ...]:
    return cls.takes if isinstance(cls.takes, tuple) else (cls.takes,)


class _Planner:
    """The passes planned so far, and the level of the IR after them."""

    def __init__(self, recipe: Recipe, request: ScheduleRequest, limits: Limits, start: type):
        self.recipe, self.request, self.limits = recipe, request, limits
        # All passes take a template as a schedule: those that cannot get it unfolded.
        self.level, self.passes = Schedule if start is SymmetricSchedule else start, list[Pass]()
        self.reasons: list[str] = []

    def add(self, element: Element, until: type, why: str) -> bool:
        """Append a pass and the passes that lead to its level; return False if it lies beyond ``until``."""
        cls = pass_class(element.name, element.span)
        takes = _takes(cls)
        if until is Program:
            self.precede(cls)
        if until is not Program and (Program in takes or cls.gives is Program):
            return False
        if element.name in self.recipe.disabled:
            return True
        if cls.takes_forests:
            takes = (*takes, Forest)
        if self.level not in takes:
            self.bridge(takes)
        if self.level not in takes:
            raise self.misplaced(element, takes)
        self.append(cls, element, why)
        return True

    def precede(self, cls: type[Pass]) -> None:
        """Append the passes that the target needs and that cannot run after a pass."""
        have = {p.name for p in self.passes}
        for entry in _LEGAL:
            needed = entry.name in cls.follows and entry.when(self.limits)
            if needed and entry.name not in (*have, *self.recipe.disabled):
                self.bridge((Program,))
                self.enter(entry)

    def takes(self, name: str) -> bool:
        """Return whether a pass of an ``-O`` level applies after the start."""
        return self.level is not Program or Program in _takes(pass_class(name))

    def enter(self, entry: Entry) -> None:
        """Append the pass of an entry."""
        self.append(pass_class(entry.name), Element(entry.name), entry.why)

    def append(self, cls: type[Pass], element: Element, why: str) -> None:
        limits = {k: v for k, v in attrs.asdict(self.limits).items() if v is not None}
        options = element.options
        if cls.takes is Problem:
            options = self.with_request(element)
        written = cls.takes is Problem and not element.options
        what = f"scheduler `{self.request.scheduler}`" if written else f"pass `{element.name}`"
        self.passes.append(build(cls, what, options, limits, element.span))
        self.reasons.append(why)
        self.level = Forest if self.level is Forest and cls.takes_forests else cls.gives

    def with_request(self, element: Element) -> tuple[Option, ...]:
        """Return the options of a synthesis pass: the specification's, then the command line's, which replace them."""
        if scheduler_pass(self.request.scheduler, self.request.span) != element.name:
            return element.options
        given = {o.name.replace("_", "-") for o in element.options}
        return (*(o for o in self.request.options if o.name.replace("_", "-") not in given), *element.options)

    def bridge(self, takes: Sequence[type]) -> None:
        """Append synthesis, ``pipelining`` and lowering as needed to lead to one of ``takes``."""
        if self.level is Problem:
            name = scheduler_pass(self.request.scheduler, self.request.span)
            if name in self.recipe.disabled:
                hint = "name another scheduler: -p SCHEDULER"
                raise error(
                    "C0011", f"pass `{name}` makes the schedule and cannot be left out", hint=hint, exit_status=2
                )
            self.append(pass_class(name), Element(name, (), self.request.span), _SCHEDULED)
        if self.level is Forest and self.level not in takes and _PIPELINE.name not in self.recipe.disabled:
            self.enter(_PIPELINE)
        if self.level is Schedule and self.level not in takes and Program in takes:
            self.lower()

    def lower(self) -> None:
        have = {p.name for p in self.passes}
        for entry in (_EQUAL, _CUT, _LOWER):
            if entry.when(self.limits) and entry.name not in have and entry.name not in self.recipe.disabled:
                self.enter(entry)

    def reach(self, until: type) -> None:
        """Append passes until the level of the result is reached; raise C0011 if it cannot be."""
        levels = (Schedule, Forest) if until is Schedule else (until,)
        if self.level not in levels:
            self.bridge(levels)
        if self.level not in levels:
            found, need = _LEVEL_WORDS[self.level], _LEVEL_WORDS[until]
            missing = "pipelining" if self.level is Forest else "lower"
            hint = f"`{missing}` leads from there to a {'schedule' if self.level is Forest else 'program'}"
            if missing in self.recipe.disabled:
                hint = f"leave out `--disable-pass {missing}`"
            raise error("C0011", f"the pipeline ends with a {found}, but a {need} is needed", hint=hint, exit_status=2)

    def legalize(self) -> None:
        have = {p.name for p in self.passes}
        for entry in _LEGAL:
            if entry.when(self.limits) and entry.name not in have and entry.name not in self.recipe.disabled:
                self.enter(entry)

    def in_order(self, element: Element) -> str | None:
        """Return where a misplaced pass belongs."""
        if not self.passes:
            return None
        if pass_class(element.name).takes is Problem and not self.reasons[0]:  # the user wrote the first scheduler
            return f"leave out `{self.passes[0].name}` or `{element.name}`: a pipeline has one scheduler"
        return f"put `{element.name}` before `{self.passes[-1].name}`"

    def misplaced(self, element: Element, takes: Sequence[type]) -> Exception:
        need = " or ".join(_LEVEL_WORDS[t] for t in takes)
        before = f"after `{self.passes[-1].name}`" if self.passes else "at the start"
        return error(
            "C0011",
            f"pass `{element.name}` takes a {need}, but {before} there is a {_LEVEL_WORDS[self.level]}",
            span=element.span,
            notes=["passes run in the order synthesis (problem to schedule), schedule passes, `lower`, program passes"],
            hint=self.in_order(element),
            exit_status=2,
        )
