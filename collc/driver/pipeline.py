"""Which passes run, in which order: the ``-O`` levels, ``-p``, and the passes that a target needs.

The driver plans all passes before the first one runs. It adds passes between levels of the IR: the specification's
scheduler if the pipeline does not begin with a synthesis pass, ``pipelining`` to write out the steps of a forest, and
``discretize,lower`` to make a program.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.backends.base import Limits, Target
from collc.ir.diagnostic import error
from collc.ir.levels import depth
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Option, Problem, ScheduleRequest
from collc.ir.symmetric import MOST_LISTED, SymmetricSchedule
from collc.ir.symmetric_program import SymmetricProgram
from collc.passes import PASSES
from collc.passes.base import Pass

from ..registry.classes import pass_class, scheduler_pass
from ..registry.elements import Element
from ..registry.options import build
from .entries import (
    COPIES,
    CUT,
    EQUAL,
    FIT,
    FUSE,
    INSTANCES,
    JOIN,
    LEGAL,
    LEGAL_WRITES,
    LEGALIZING,
    LEVELS,
    LOWER,
    MERGE,
    PIPELINE,
    PUT,
    SCHEDULED,
    SHAPE,
    SPREAD,
    SWITCHES,
    UNFUSE,
    Entry,
)  # fmt: skip
from .plan import Plan, Recipe

__all__ = ["LEGALIZING", "LEVELS", "PIPELINE_LEVELS", "Entry", "is_by_hand", "plan"]


#: the levels of the IR in the order of the pipeline
PIPELINE_LEVELS: tuple[tuple[type, ...], ...] = ((Problem,), (Schedule, Forest), (Program,))
_LEVEL_WORDS = {
    "Problem": "problem", "Schedule": "schedule", "Forest": "forest", "Program": "program",
    "OneSided": "one-sided program",
}  # fmt: skip


#: passes that number chunks for messages, and those that know what the messages of a program become
_OF_MESSAGES = ("renumber", "place-messages", "combine-operations")


def _is_of_messages(name: str) -> bool:
    """Return whether a pass is for sends and receives, which an in-network schedule does not become."""
    cls = pass_class(name)
    return Program in (*_takes(cls), cls.gives) or name in _OF_MESSAGES


def is_by_hand(scheduler: str) -> bool:
    """Return whether the user wrote a schedule, by the name of its scheduler."""
    return scheduler in PASSES and pass_class(scheduler).by_hand


def _entries(level: str, request: ScheduleRequest, start: type, by_hand: bool) -> list[tuple[Entry, Element]]:
    """Return the passes of a level.

    Messages of schedules by hand are joined step by step, then further. Those of pipelining schedulers are joined step
    by step only.
    """
    entries = [(e, Element(e.name, e.options)) for e in LEVELS[level]]
    if start is Program:
        # Fused instructions of a program that was read would stand in the way of balancing.
        at = next(k for k, (e, _) in enumerate(entries) if e in (FIT, SPREAD))
        entries[at:at] = [(UNFUSE, Element(UNFUSE.name))]
    scheduler = pass_class(scheduler_pass(request.scheduler, request.span))
    pipelined = start is Forest or scheduler.gives is Forest or scheduler.pipelined
    if not (pipelined or by_hand) or not any(e is MERGE for e, _ in entries):
        return entries
    joining = Element(JOIN.name, (Option("join", True),))
    if pipelined:
        placing = Element(FIT.name, (Option("runs", True),))
        shaping = {LOWER: (JOIN, joining), FIT: (FIT, placing), SPREAD: (SPREAD, placing)}
        return [shaping.get(e, (e, element)) for e, element in entries if e is not MERGE]
    shaping = {LOWER: (SHAPE, joining), FUSE: (FUSE, Element(FUSE.name, (Option("turns", True),)))}
    return [shaping.get(e, (e, element)) for e, element in entries]


def plan(
    recipe: Recipe,
    request: ScheduleRequest,
    target: Target | None,
    *,
    start: type = Problem,
    until: type = Program,
    uneven: bool = False,
    by_hand: bool = False,
    in_network: bool = False,
) -> Plan:
    """Return the passes that take an IR of level ``start`` to level ``until`` for ``target``.

    ``uneven`` says that shards differ in size, ``by_hand`` that the user wrote the schedule, ``in_network`` that
    switches may do more than forward. If ``until`` is Schedule, the plan has no program passes. Raises C0008 to
    C0011 for a pipeline that cannot run.
    """
    _require_known(recipe.disabled)
    start = Program if start is SymmetricProgram else start
    limits = target.limits if target else Limits()
    limits = attrs.evolve(limits, equal_chunks=limits.equal_chunks and uneven)
    planner = _Planner(recipe, request, limits, start, in_network and depth(until) > depth(Program), until)
    if recipe.elements is None:
        entries = _entries(recipe.level, request, start, by_hand)
        elements = [
            (element, e.why) for e, element in entries
            if e.when(limits) and planner.takes(e.name) and not (until is Schedule and pass_class(e.name).for_programs)
        ]  # fmt: skip
    else:
        elements = [(element, "") for element in recipe.elements]
    if request.instances > 1 and until not in (Schedule, Program):
        _insert_instances(elements, request)
    for element, why in elements:
        if recipe.elements is None and planner.shares and _is_of_messages(element.name):
            continue
        if not planner.add(element, until, why):
            break
    planner.reach(until)
    if request.instances > 1 and until is Program and not any(element.name == COPIES.name for element, _ in elements):
        planner.add(_instances(request), until, INSTANCES.why)
    if planner.level is until and until is not Schedule:
        planner.legalize()
    return Plan(tuple(planner.passes), planner.level, target, tuple(planner.reasons))


def _instances(request: ScheduleRequest) -> Element:
    instances = Option("instances", request.instances, request.span)
    return Element(COPIES.name, (instances,), request.span)


def _insert_instances(elements: list[tuple[Element, str]], request: ScheduleRequest) -> None:
    """Insert ``replicate`` where a program becomes a one-sided one, unless it is there."""
    names = [element.name for element, _ in elements]
    if COPIES.name not in names:
        at = names.index(PUT.name) if PUT.name in names else len(names)
        elements.insert(at, (_instances(request), INSTANCES.why))


def _require_known(names: Sequence[str]) -> None:
    for name in names:
        if name not in PASSES:
            raise error("C0008", f"unknown pass `{name}` in --disable-pass", hint=PASSES.hint(name), exit_status=2)


def _takes(cls: type[Pass]) -> tuple[type, ...]:
    return cls.takes if isinstance(cls.takes, tuple) else (cls.takes,)


class _Planner:
    """The passes planned so far, and the level of the IR after them."""

    def __init__(
        self, recipe: Recipe, request: ScheduleRequest, limits: Limits, start: type, in_network: bool, until: type
    ):
        self.recipe, self.request, self.limits, self.in_network = recipe, request, limits, in_network
        self.lists = until is not Schedule  # a schedule alone needs no row of every rank
        # All passes take a template as a schedule: those that cannot get it unfolded.
        self.level, self.passes = Schedule if start is SymmetricSchedule else start, list[Pass]()
        self.reasons: list[str] = []

    @property
    def shares(self) -> bool:
        """Whether the schedule goes to a one-sided program with links that it shares in switches."""
        first = self.passes[0] if self.passes else None
        return self.in_network and (first is None or first.takes is not Problem or first.shares_links)

    def add(self, element: Element, until: type, why: str) -> bool:
        """Append a pass and the passes that lead to its level; return False if it lies beyond ``until``."""
        cls = pass_class(element.name, element.span)
        takes = _takes(cls)
        if until is not Schedule:
            self.precede(cls)
        if max(depth(cls.gives), min(map(depth, takes))) > depth(until):
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
        for entry in LEGAL:
            needed = entry.name in cls.follows and entry.when(self.limits)
            if needed and entry.name not in (*have, *self.recipe.disabled):
                self.bridge((Program,))
                self.enter(entry)

    def takes(self, name: str) -> bool:
        """Return whether a pass of an ``-O`` level applies after the start."""
        return max(map(depth, _takes(pass_class(name)))) >= depth(self.level)

    def enter(self, entry: Entry) -> None:
        """Append the pass of an entry."""
        self.append(pass_class(entry.name), Element(entry.name), entry.why)

    def append(self, cls: type[Pass], element: Element, why: str) -> None:
        limits = {k: v for k, v in attrs.asdict(self.limits).items() if v is not None}
        by_orbits = (self.limits.orbits and cls.for_orbits) or (cls.takes is Forest and not self.lists)
        # passes that the user wrote, and those that copy a program, are for programs of all ranks
        own = self.recipe.elements is None and self.request.instances == 1
        limits["templates"] = (self.limits.templates or by_orbits) and own
        limits["orbits"] = self.limits.orbits and own
        limits["listed"] = MOST_LISTED if self.limits.templates and own else None
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
            self.append(pass_class(name), Element(name, (), self.request.span), SCHEDULED)
        if self.level is Forest and self.level not in takes and PIPELINE.name not in self.recipe.disabled:
            self.enter(PIPELINE)
        if self.level is Schedule and self.level not in takes and Program in takes:
            self.lower()
        if depth(max(takes, key=depth)) > depth(Program) and depth(self.level) <= depth(Program):
            if self.shares and self.level is not Program:
                self.bridge((Schedule,))
                self.cut()
                self.enter(SWITCHES)
                return
            self.bridge((Program,))
            self.enter(PUT)

    def lower(self) -> None:
        self.cut()
        if LOWER.name not in {*self.recipe.disabled, *(p.name for p in self.passes)}:
            self.enter(LOWER)

    def cut(self) -> None:
        have = {p.name for p in self.passes}
        for entry in (EQUAL, CUT):
            if entry.when(self.limits) and entry.name not in have and entry.name not in self.recipe.disabled:
                self.enter(entry)

    def reach(self, until: type) -> None:
        """Append passes until the level of the result is reached; raise C0011 if it cannot be."""
        levels = (Schedule, Forest) if until is Schedule else (until,)
        if self.level not in levels:
            self.bridge(levels)
        if self.level not in levels:
            found, need = _LEVEL_WORDS[self.level.__name__], _LEVEL_WORDS[until.__name__]
            missing = "pipelining" if self.level is Forest else "lower"
            hint = f"`{missing}` leads from there to a {'schedule' if self.level is Forest else 'program'}"
            if missing in self.recipe.disabled:
                hint = f"leave out `--disable-pass {missing}`"
            raise error("C0011", f"the pipeline ends with a {found}, but a {need} is needed", hint=hint, exit_status=2)

    def legalize(self) -> None:
        have = {p.name for p in self.passes}
        for entry in LEGAL if self.level is Program else LEGAL_WRITES:
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
        need = " or ".join(_LEVEL_WORDS[t.__name__] for t in takes)
        before = f"after `{self.passes[-1].name}`" if self.passes else "at the start"
        return error(
            "C0011",
            f"pass `{element.name}` takes a {need}, but {before} there is a {_LEVEL_WORDS[self.level.__name__]}",
            span=element.span,
            notes=["passes run in the order synthesis (problem to schedule), schedule passes, `lower`, program passes"],
            hint=self.in_order(element),
            exit_status=2,
        )
