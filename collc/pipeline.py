"""Which passes run, in which order: the ``-O`` levels, ``-p``, and what a target cannot do without.

A plan is made before anything runs. Between the levels of the IR it bridges by itself: a pipeline that does
not begin with a synthesis pass gets the specification's scheduler, one that needs the steps of a forest gets
``stream``, one that needs a program gets ``discretize,lower``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from collc.backends.base import Limits, Target
from collc.ir.diagnostic import error, nearest
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Option, Problem, ScheduleRequest
from collc.ir.symmetric import SymmetricSchedule
from collc.passes import PASSES
from collc.passes.base import Pass

from .elements import Element
from .options import build
from .registry import pass_class, scheduler_pass

__all__ = ["LEGALIZING", "LEVELS", "PIPELINE_LEVELS", "Entry", "Plan", "Recipe", "plan"]


def _always(limits: Limits) -> bool:
    return True


def _unfused(limits: Limits) -> bool:
    return not limits.fused


def _limited(limits: Limits) -> bool:
    return limits.max_threadblocks is not None or limits.max_channels is not None or limits.max_steps is not None


@attrs.frozen
class Entry:
    """A pass of an ``-O`` level, why it stands there, and for which targets it is needed."""

    name: str
    why: str
    when: Callable[[Limits], bool] = _always


_CUT = Entry("discretize", "runtimes move whole chunks, so exact intervals must become chunks before lowering")
_NUMBER = Entry("renumber", "before lowering, which sends what lies together in one message")
_LOWER = Entry("lower", "from here on the order of instructions on each rank is fixed; all that follows keeps it")
_UNFUSE = Entry(
    "unfuse", "before balancing, which counts instructions: a runtime without fused ones runs more", _unfused
)
_FIT = Entry(
    "balance-threadblocks",
    "not an optimization here: a file over the runtime's limits would not load",
    _limited,
)
_JOIN = Entry("lower", "and what goes in one step goes in one message, but pieces that are to follow each other do not")
_MERGE = Entry("coalesce", "before balancing, which weighs messages: fewer and larger ones are fewer to place")
_BYPASS = Entry("eliminate-copies", "before messages are placed: a copy that is gone needs no threadblock")
_SPREAD = Entry("balance-threadblocks", "after what changes messages: it places those that are left, evenly by bytes")
_REORDER = Entry("reorder-fifo", "when messages have their connections, and before threadblocks join in that order")
_FUSE = Entry(
    "fuse", "after balancing, which says which connections and channels there are for threadblocks to join", _limited
)
_SPLIT = Entry("unfuse", "after fusing, which finds what need not be stored; for runtimes without fused ones", _unfused)
_PRUNE = Entry("prune-dependencies", "when threadblocks are final: what one implies for another depends on them")
_PACK = Entry("reuse-scratch", "last: it moves data only where the waits that are left already keep them apart")

#: level -> its passes after synthesis, each with the reason for its place
LEVELS: dict[str, tuple[Entry, ...]] = {
    "0": (_CUT, _LOWER, _UNFUSE, _FIT),
    "1": (_CUT, _LOWER, _MERGE, _UNFUSE, _FIT, _PRUNE),
    "2": (_CUT, _NUMBER, _LOWER, _MERGE, _SPREAD, _FUSE, _SPLIT, _PRUNE, _PACK),
    # Removing copies and listing messages anew seldom gain anything, and take as long as all the rest.
    "3": (_CUT, _NUMBER, _LOWER, _BYPASS, _MERGE, _SPREAD, _REORDER, _FUSE, _SPLIT, _PRUNE, _PACK),
}

#: What any program for a target must have been through, in this order; appended where a pipeline lacks it.
_LEGAL = (_UNFUSE, _FIT)
LEGALIZING = tuple(entry.name for entry in _LEGAL)

#: The levels of the IR in the order data flows.
PIPELINE_LEVELS: tuple[tuple[type, ...], ...] = ((Problem,), (Schedule, Forest), (Program,))
_LEVEL_WORDS = {Problem: "problem", Schedule: "schedule", Forest: "forest", Program: "program"}


@attrs.frozen
class Recipe:
    """What the user asked of the pipeline: a level, or elements of their own (``-p``), and passes left out."""

    level: str = "2"
    elements: tuple[Element, ...] | None = None
    disabled: tuple[str, ...] = ()


@attrs.frozen
class Plan:
    """Passes in the order they run, the level of the IR after the last, and the target they lead to."""

    passes: tuple[Pass, ...]
    result: type
    target: Target | None = None

    def split(self) -> tuple[Plan, Plan]:
        """Return what ends with the last schedule, and the rest."""
        ends = (i for i, p in enumerate(self.passes) if p.gives is Program or p.for_programs)
        count = next(ends, len(self.passes))
        return Plan(self.passes[:count], Schedule), Plan(self.passes[count:], self.result)


def _entries(level: str, request: ScheduleRequest, start: type) -> list[tuple[Entry, Element]]:
    """Return the passes of a level; where pieces follow each other on purpose, messages are joined step by step."""
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
) -> Plan:
    """Return the passes that take an IR of level ``start`` to level ``until`` for ``target``.

    Where ``until`` is Schedule, what would follow lowering is left out. Raises C0008 to C0011 for a pipeline
    that cannot run, before anything runs.
    """
    _require_known(recipe.disabled)
    limits = target.limits if target else Limits()
    planner = _Planner(recipe, request, limits, start)
    if recipe.elements is None:
        entries = _entries(recipe.level, request, start)
        elements = [
            element for e, element in entries
            if e.when(limits) and planner.takes(e.name) and (until is Program or not pass_class(e.name).for_programs)
        ]  # fmt: skip
    else:
        elements = list(recipe.elements)
    for element in elements:
        if not planner.add(element, until):
            break
    planner.reach(until)
    if planner.level is Program and until is Program:
        planner.legalize()
    return Plan(tuple(planner.passes), planner.level, target)


def _require_known(names: Sequence[str]) -> None:
    for name in names:
        if name not in PASSES:
            hint = nearest(name, PASSES) or "`collc passes` lists them"
            raise error("C0008", f"unknown pass `{name}` in --disable-pass", hint=hint, exit_status=2)


def _takes(cls: type[Pass]) -> tuple[type, ...]:
    return cls.takes if isinstance(cls.takes, tuple) else (cls.takes,)


class _Planner:
    """The pipeline so far and the level of the IR after it."""

    def __init__(self, recipe: Recipe, request: ScheduleRequest, limits: Limits, start: type):
        self.recipe, self.request, self.limits = recipe, request, limits
        # A template is a schedule to all passes: those that do not take one get it unfolded.
        self.level, self.passes = Schedule if start is SymmetricSchedule else start, list[Pass]()

    def add(self, element: Element, until: type) -> bool:
        """Append a pass, with what bridges to it; return False where it lies beyond ``until``."""
        cls = pass_class(element.name, element.span)
        takes = _takes(cls)
        if element.name == _FUSE.name and until is Program:
            self.place()
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
        self.append(cls, element)
        return True

    def place(self) -> None:
        """Append balancing, which does not take fused instructions, before they are made."""
        have = {p.name for p in self.passes}
        if _FIT.when(self.limits) and _FIT.name not in (*have, *self.recipe.disabled):
            self.bridge((Program,))
            self.append(pass_class(_FIT.name), Element(_FIT.name))

    def takes(self, name: str) -> bool:
        """Return whether a pass of a level belongs to what lies after the start."""
        return self.level is not Program or Program in _takes(pass_class(name))

    def append(self, cls: type[Pass], element: Element) -> None:
        limits = {k: v for k, v in attrs.asdict(self.limits).items() if v is not None}
        options = element.options
        if cls.takes is Problem:
            options = self.with_request(element)
        self.passes.append(build(cls, f"pass `{element.name}`", options, limits, element.span))
        self.level = Forest if self.level is Forest and cls.takes_forests else cls.gives

    def with_request(self, element: Element) -> tuple[Any, ...]:
        """Return a synthesis pass's options: the command line's, then those the specification gives its scheduler."""
        if scheduler_pass(self.request.scheduler, self.request.span) != element.name:
            return element.options
        given = {o.name.replace("_", "-") for o in element.options}
        return (*(o for o in self.request.options if o.name.replace("_", "-") not in given), *element.options)

    def bridge(self, takes: Sequence[type]) -> None:
        """Append synthesis, steps and lowering, where that leads from the level at hand to one of ``takes``."""
        if self.level is Problem:
            name = scheduler_pass(self.request.scheduler, self.request.span)
            if name in self.recipe.disabled:
                raise error("C0011", f"pass `{name}` makes the schedule and cannot be left out", exit_status=2)
            self.append(pass_class(name), Element(name, (), self.request.span))
        if self.level is Forest and self.level not in takes and "stream" not in self.recipe.disabled:
            self.append(pass_class("stream"), Element("stream"))
        if self.level is Schedule and self.level not in takes and Program in takes:
            self.lower()

    def lower(self) -> None:
        have = {p.name for p in self.passes}
        for entry in (_CUT, _LOWER):
            if entry.name not in have and entry.name not in self.recipe.disabled:
                self.append(pass_class(entry.name), Element(entry.name))

    def reach(self, until: type) -> None:
        """Bridge to the level the result must have."""
        wanted = (Schedule, Forest) if until is Schedule else (until,)
        if self.level not in wanted:
            self.bridge(wanted)
        if self.level not in wanted:
            found, need = _LEVEL_WORDS[self.level], _LEVEL_WORDS[until]
            missing = "stream" if self.level is Forest else "lower"
            hint = f"`{missing}` leads from there to a {'schedule' if self.level is Forest else 'program'}"
            if missing in self.recipe.disabled:
                hint = f"leave out `--disable-pass {missing}`"
            raise error("C0011", f"the pipeline ends with a {found}, but a {need} is needed", hint=hint, exit_status=2)

    def legalize(self) -> None:
        have = {p.name for p in self.passes}
        for entry in _LEGAL:
            if entry.when(self.limits) and entry.name not in have and entry.name not in self.recipe.disabled:
                self.append(pass_class(entry.name), Element(entry.name))

    def misplaced(self, element: Element, takes: Sequence[type]) -> Exception:
        need = " or ".join(_LEVEL_WORDS[t] for t in takes)
        before = f"after `{self.passes[-1].name}`" if self.passes else "at the start"
        return error(
            "C0011",
            f"pass `{element.name}` takes a {need}, but {before} there is a {_LEVEL_WORDS[self.level]}",
            span=element.span,
            notes=["passes run in the order synthesis (problem to schedule), schedule passes, `lower`, program passes"],
            hint=f"put `{element.name}` before it" if self.passes else None,
            exit_status=2,
        )
