"""Running a plan: the runner gives each pass its input, times it, and checks its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import attrs

from collc.backends.base import Limits
from collc.ir.diagnostic import CollcError, Subject, error
from collc.ir.levels import Executable, Level, Scheduled, depth, rows
from collc.ir.program import Program
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.verify import Report, verify
from collc.passes.base import FACTS, Pass, remark, remarks

from ..messages.internal import memory_error
from ..registry.classes import pass_class
from ..registry.options import build
from .culprits import Culprits
from .entries import LIST
from .judging import failures, flaw
from .placing import wrong_by_hand
from .plan import Plan
from .resolving import unfolded_for
from .session import Session
from .spans import span

__all__ = ["Runner"]

T = TypeVar("T")

_TEMPLATES = (SymmetricSchedule, SymmetricForest)


class Runner:
    """Runs the plans of a session; with ``share``, passes that two plans begin with run once."""

    def __init__(self, session: Session, culprits: Culprits, share: bool = False):
        self.session, self.culprits, self.share = session, culprits, share
        self.known: list[tuple[tuple[Pass, ...], Executable]] = []
        self.schedule: Scheduled | None = None
        self.forest: Forest | SymmetricForest | None = None
        self.program: AnyProgram | None = None
        self.template: SymmetricProgram | None = None  # the last one, of which the program may list all ranks

    # ---- passes

    def accept(self, start: Executable) -> None:
        """Verify an IR that was read; raise the errors in it."""
        if isinstance(start, Scheduled):
            self.keep(start)
        if self.session.settings.verify != "off":
            self.report("input", start).require()

    def run(self, ir: Level, chain: Plan, begin: int = 0, end: int | None = None) -> Level:
        """Return the IR after all passes of a plan, or those from ``begin`` to ``end`` (exclusive)."""
        limits = _limits(chain)
        prefix = next((passes for passes, found in self.known if found is ir), chain.passes[:begin])
        end = len(chain.passes) if end is None else end
        for count in range(begin, end):
            this = chain.passes[count]
            if limits.orbits and this.for_orbits and isinstance(ir, _TEMPLATES) and not ir.works_by_orbits:
                ir = ir.unfold()
            if isinstance(ir, SymmetricProgram):
                if limits.templates:
                    continue  # it has joined messages and few blocks; passes on programs take instructions of all ranks
                if not (limits.orbits and self.works_by_orbits(chain, count, ir)):
                    ir, prefix = self.written_out(ir, chain, count), (*prefix, _listing(limits))
            prefix = (*prefix, this.on(ir))
            known = next((found for passes, found in self.known if passes == prefix), None)
            if known is None:
                known = self.step(ir, chain, count)
                if self.share:
                    self.known.append((prefix, known))
            ir = known
        if isinstance(ir, SymmetricProgram) and limits.orbits and end == len(chain.passes):
            ir = self.written_out(ir, chain, end - 1, last=True)
        return ir

    def works_by_orbits(self, chain: Plan, count: int, ir: SymmetricProgram) -> bool:
        """Return whether a pass works on a template; that it finds out is a part of its time."""
        this = chain.passes[count]
        work = partial(self.guarded, chain, count, ir, partial(this.works_by_orbits, ir))
        return self.session.timed(this.name, work, kind="pass")

    def written_out(self, ir: SymmetricProgram, chain: Plan, count: int, last: bool = False) -> Program:
        """Return the program of all ranks of a template, before pass ``count`` or after the last one."""
        session, this = self.session, _listing(_limits(chain), last)
        with span(this.name, "pass") as whole:
            after = self.guarded(chain, count, ir, lambda: session.timed(this.name, lambda: this.run(ir), rows))
            whole.rows = rows(after)
        assert isinstance(after, Program), "the program of all ranks"
        self.program = after
        if session.observer:
            session.observer.finished(session.request.name, this.name, after)
        if session.settings.verify == "full":
            report = self.checked(chain, count, ir, lambda: self.report(this.name, after))
            if not report.ok:
                raise self.culprits.pass_error(chain, count, ir, f"its template is laid out wrong: {failures(report)}")
        return after

    def step(self, ir: Level, chain: Plan, count: int) -> Executable:
        """Run one pass and check its result."""
        with span(chain.passes[count].name, "pass") as whole:
            after = self._step(ir, chain, count)
            whole.rows = rows(after)
        return after

    def _step(self, ir: Level, chain: Plan, count: int) -> Executable:
        this, session = chain.passes[count], self.session
        try:
            _require_facts(this, ir)
        except CollcError as mistake:
            raise session.places.placed(mistake, this.name) from None
        work = partial(self.apply, chain, count, ir)
        with remarks() as texts:
            given, after = session.timed(this.name, partial(self.guarded, chain, count, ir, work), _rows_after)
        session.remarks += texts
        if isinstance(after, Scheduled):
            self.keep(after, ir, this)
        elif isinstance(after, AnyProgram):
            self.program = after
            self.template = after if isinstance(after, SymmetricProgram) else self.template
        if session.observer:
            session.observer.finished(session.request.name, this.name, after)
        self.judge(ir, given, after, chain, count)
        return after

    def apply(self, chain: Plan, count: int, ir: Level) -> tuple[Level, Executable]:
        """Return the input of a pass, which may be the IR unfolded, and its result."""
        given = unfolded_for(chain.passes[count], ir)
        after = self.session.apply(chain.passes, count, given)
        if isinstance(given, Schedule) and isinstance(after, Schedule) and given.placement and not after.placement:
            remark(
                f"{chain.passes[count].name}: the channels, threadblocks and scratch that the schedule chooses are lost"
            )
        return given, after

    def keep(self, level: Scheduled, of: Level | None = None, by: Pass | None = None) -> None:
        """Remember the last schedule, and the forest that it came from in the number of pieces that was sent."""
        self.schedule = level
        if isinstance(level, (Forest, SymmetricForest)):
            self.forest = level
        elif isinstance(of, Forest):
            self.forest = attrs.evolve(of, pieces=_pieces(by, of, level))
        elif isinstance(of, SymmetricForest):
            self.forest = of.revised(pieces=_pieces(by, of.seed, level))

    def guarded(self, chain: Plan, count: int, ir: Level, work: Callable[[], T]) -> T:
        """Return what ``work`` returns; raise an internal error for any exception but a CollcError."""
        try:
            return work()
        except CollcError as mistake:
            self.culprits.refused = chain, count, ir
            target = None if isinstance(ir, Problem) else chain.target
            raise self.session.places.placed(mistake, chain.passes[count].name, target) from None
        except MemoryError:
            raise memory_error(f"pass `{chain.passes[count].name}`", self.session.request.span) from None
        except Exception as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise self.culprits.pass_error(chain, count, ir, what) from problem

    # ---- verification

    def judge(self, before: Level, given: Level, after: Executable, chain: Plan, count: int) -> None:
        """Check the result of a pass: its form always, its data by execution if the verify mode says so.

        ``given`` is ``before``, unfolded if the pass takes no templates.
        """
        this, mode = chain.passes[count], self.session.settings.verify
        formed = mode != "off"

        def look() -> str:
            return flaw(this, given, after, self.session.network, formed)

        found = self.checked(chain, count, before, (lambda: self.session.timed("structure", look)) if formed else look)
        if found:
            raise self.culprits.pass_error(chain, count, before, found)
        last = _ends_level(chain, count) or (isinstance(after, SymmetricProgram) and _limits(chain).templates)
        if mode == "off" or not (this.by_hand or last or mode == "full"):
            return
        report = self.checked(chain, count, before, lambda: self.report(this.name, after, keep=this.by_hand or last))
        if this.by_hand:
            self.require_by_hand(report)
        elif not report.ok:
            raise self.culprits.pass_error(chain, count, before, f"its result is wrong: {failures(report)}")
        self.culprits.note_executed(chain, count, after)

    def checked(self, chain: Plan, count: int, before: Level, work: Callable[[], T]) -> T:
        """Return what a check of a pass finds; raise an internal error if the check itself fails."""
        try:
            return work()
        except CollcError:
            raise
        except MemoryError:
            what = f"checking the result of pass `{chain.passes[count].name}`"
            raise memory_error(what, self.session.request.span) from None
        except Exception as problem:
            what = f"its result cannot be checked: {type(problem).__name__}: {problem}"
            raise self.culprits.pass_error(chain, count, before, what) from problem

    def report(self, step: str, ir: Executable, keep: bool = True) -> Report:
        """Return the report of executing an IR; keep it for the result if ``keep``."""
        report = self.session.timed(f"verify {step}", lambda: verify(ir))
        if keep:
            self.session.reports.append(report)
        return report

    def require_by_hand(self, report: Report) -> None:
        """Raise C0401 if a schedule written by hand is wrong."""
        if not report.ok:
            raise CollcError([wrong_by_hand(self.session.request, check) for check in report.failed])


def _limits(chain: Plan) -> Limits:
    return Limits() if chain.target is None else chain.target.limits


def _listing(limits: Limits, last: bool = False) -> Pass:
    """Return the pass that lists all ranks of a template within a target's limits, ``last`` after all passes."""
    given = {name: value for name, value in attrs.asdict(limits).items() if value is not None} | {"last": last}
    return build(pass_class(LIST.name), f"pass `{LIST.name}`", (), given)


def _rows_after(levels: tuple[Level, Executable]) -> int:
    return rows(levels[1])


def _pieces(by: Pass | None, of: Forest, level: Scheduled) -> int:
    """Return the number of pieces in which a pass sent the data of a forest."""
    knob = next((knob for knob in by.varies if knob.counts == "pieces"), None) if by is not None else None
    return of.pieces if knob is None else knob.taken(by, of, lambda: level)


def _require_facts(this: Pass, ir: Level) -> None:
    """Raise C0012 if a fact that a pass requires does not hold for the IR."""
    for fact in this.requires:
        if not FACTS[fact](ir):
            hint = {"discrete": f"run `discretize` before it: `discretize,{this.name}`"}.get(fact)
            message = f"pass `{this.name}` needs a {fact} schedule"
            raise error("C0012", message, hint=hint, exit_status=2, about=(Subject.SCHEDULER,))


def _ends_level(chain: Plan, count: int) -> bool:
    """Return whether a pass is the last of its level of the IR."""
    rest = chain.passes[count + 1 :]
    return not rest or depth(rest[0].gives) != depth(chain.passes[count].gives)
