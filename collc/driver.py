"""The driver: runs a plan, verifies between passes, emits, reads back. Passes do nothing of that themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from collc.backends.base import Artifact, Target, Window
from collc.ir.cost import Cost, cost
from collc.ir.diagnostic import CollcError, Diagnostic, error, warning
from collc.ir.program import Program
from collc.ir.progress import progress
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.verify import Report, verify
from collc.ir.verify.agreement import same_everywhere
from collc.passes.base import FACTS, Pass, remarks
from collc.passes.stream import Stream
from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, allreduce_program

from .blame import Wrong, first_misread, first_wrong, misread
from .bounding import bounded
from .elements import element_text, pipeline_text
from .fitting import fit
from .internal import InternalError, is_fatal, memory_error
from .judging import failures, flaw, is_right
from .pipeline import Plan, Recipe, plan
from .requested import describe

if TYPE_CHECKING:
    from .selection import Choice

__all__ = ["CollectiveResult", "Observer", "Settings", "Timing", "compile_collective", "compile_decided", "level_of"]

T = TypeVar("T")
Emitted = tuple[Target, tuple[Artifact, ...]]


class Observer(Protocol):
    """Who watches a compilation: told of every plan, of every step before it runs, and of every IR after its pass."""

    def planned(self, collective: str, chain: Plan) -> None: ...

    def begins(self, collective: str, step: str) -> None: ...

    def made(self, collective: str, step: str, ir: Any) -> None: ...


@attrs.frozen
class Settings:
    """What holds for every collective of a compilation. ``verify`` is ``each``, ``full`` or ``off``."""

    recipe: Recipe = attrs.Factory(Recipe)
    verify: str = "each"
    until: type = Program


@attrs.frozen
class Timing:
    """Seconds that one step took: a pass, a verification, an emission."""

    collective: str
    step: str
    seconds: float


@attrs.frozen(eq=False)
class CollectiveResult:
    """What became of one collective; ``schedule`` is the last schedule, nothing where compilation began after it.

    ``forest`` is the last forest, cut in as many pieces as its steps were, where there was one. ``emitted`` holds each
    target with its files, the main one first; ``reports`` what the verifier and the targets' own readers found;
    ``plans`` the passes that ran, for each target.

    ``choice`` says what `auto` compared. Where that was for a range of sizes, ``algorithms`` are the results of all
    that are the fastest somewhere, and this one has the schedule and program of the first, and the files of all.
    """

    name: str
    request: CollectiveRequest
    settings: Settings
    schedule: Schedule | SymmetricSchedule | Forest | None
    made: Program | None
    rest: Plan
    emitted: tuple[Emitted, ...] = ()
    reports: tuple[Report, ...] = ()
    timings: tuple[Timing, ...] = ()
    plans: tuple[Plan, ...] = ()
    forest: Forest | None = None
    choice: Choice | None = None
    window: Window | None = None
    algorithms: tuple[CollectiveResult, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    remarks: tuple[str, ...] = ()
    selected: tuple[tuple[Target, Any], ...] = ()

    @property
    def each(self) -> tuple[CollectiveResult, ...]:
        """The results of all algorithms: of several for a range of sizes, else this one."""
        return self.algorithms or (self,)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All files, in the order of targets."""
        return tuple(artifact for _, files in self.emitted for artifact in files)

    @cached_property
    def program(self) -> Program | None:
        """The first target's program; where no target was asked for, it is made and verified when first used."""
        if self.made is not None or self.schedule is None:
            return self.made
        made = _Runner(self.request, self.settings, None, self.schedule).run(self.schedule, self.rest)
        return made if isinstance(made, Program) else None

    @cached_property
    def cost(self) -> Cost:
        """T_L, T_B, their bounds and the rest, exactly; raises C0019 where there is no schedule.

        Of the steps of a forest it says what they take, and of the forest they came from what forests have besides.
        """
        found = self.plain_cost
        topology = self.schedule.topology if self.schedule is not None else None
        return found if topology is None else bounded(found, topology, self.allreduce_bound)

    @cached_property
    def allreduce_bound(self) -> AllreduceBound | None:
        """What an allreduce by trees might reach, of a forest that is one, unless the program for it is too large."""
        if self.forest is None or self.forest.collective.kind != "allreduce":
            return None
        return allreduce_program(self.forest.topology)

    @cached_property
    def plain_cost(self) -> Cost:
        """``cost`` with the bounds that take no linear program."""
        if self.schedule is None:
            raise error("C0019", f"`{self.name}` was compiled from a program, which has no cost of its own")
        found = attrs.evolve(cost(self.schedule), same_everywhere=same_everywhere(self.schedule))
        if self.forest is None or found.forest is not None:
            return found
        detail = cost(self.forest).forest
        return found if detail is None else attrs.evolve(found, forest=attrs.evolve(detail, rounds=None))


def level_of(target: Target | None, until: type) -> type:
    """Return the IR level at which a target's pipeline ends, no later than ``until``."""
    return Schedule if until is Schedule or (target is not None and target.level == "schedule") else Program


def compile_collective(
    request: CollectiveRequest,
    targets: Sequence[Target],
    settings: Settings,
    observer: Observer | None = None,
    start: Schedule | SymmetricSchedule | Forest | Program | None = None,
) -> CollectiveResult:
    """Compile one collective for every target, sharing the passes that the targets' pipelines have in common.

    Without a target the schedule is made, and the program when asked for. ``start`` replaces synthesis by an
    IR that was read. Raises CollcError for mistakes of the user, InternalError for ours.
    """
    if request.schedule.scheduler != "auto" or start is not None:
        return compile_decided(request, targets, settings, observer, start)
    from .automatic import compile_automatic

    return compile_automatic(request, targets, settings, observer)


def compile_decided(
    request: CollectiveRequest,
    targets: Sequence[Target],
    settings: Settings,
    observer: Observer | None = None,
    start: Schedule | SymmetricSchedule | Forest | Program | None = None,
    ready: Mapping[Pass, Any] | None = None,
    window: Window | None = None,
) -> CollectiveResult:
    """Compile one collective whose scheduler is decided.

    ``ready`` are schedules that `auto` made already, by the pass that makes them; where it is given, nobody asked for
    a number of pieces. With a ``window`` files are for calls of these sizes; those of targets that hold several
    algorithms are left to the caller.
    """
    first = start if start is not None else request.problem
    wanted = targets or (None,)
    plans = [
        plan(settings.recipe, request.schedule, t, start=type(first), until=level_of(t, settings.until)) for t in wanted
    ]
    runner = _Runner(request, settings, observer, start, len(plans) > 1, ready, window)
    for chain in plans:
        runner.announce(chain)
    if start is not None:
        runner.accept(start)
    rest = Plan((), Program)
    if not targets:
        plans[0], rest = plans[0].split()
    try:
        done = [fit(runner, first, chain, target) for target, chain in zip(wanted, plans, strict=True)]
    except CollcError as mistake:
        raise runner.reconsidered(mistake) from mistake.__cause__
    programs = [ir for _, ir, _ in done if isinstance(ir, Program)]
    emitted = tuple(files for _, _, files in done if files is not None)
    return CollectiveResult(
        request.name, request, settings, runner.schedule, programs[0] if programs else None, rest, emitted,
        tuple(runner.reports), tuple(runner.timings), tuple(chain for chain, _, _ in done), runner.forest,
        window=window, warnings=tuple(runner.warnings), remarks=tuple(dict.fromkeys(runner.remarks)),
        selected=tuple(
            (target, ir) for target, (_, ir, _) in zip(wanted, done, strict=True)
            if window is not None and target is not None and target.selects
        ),
    )  # fmt: skip


def emit_selected(
    target: Target, parts: Sequence[tuple[Window, Any]], result: CollectiveResult, observer: Observer | None
) -> CollectiveResult:
    """Return a result with a target's files of several algorithms, read back, added to its own."""
    runner = _Runner(result.request, result.settings, observer)
    files = runner.emit(
        target, None, lambda: target.emit_selected(parts), check=lambda files: target.check_selected(parts, files)
    )
    return attrs.evolve(
        result, emitted=(*result.emitted, files), reports=(*result.reports, *runner.reports),
        timings=(*result.timings, *runner.timings),
    )  # fmt: skip


class _Runner:
    """Runs the plans of one collective; what two plans begin with alike is run once.

    Where no ``start`` was read, the collective was asked for, and what comes out must be that.
    """

    def __init__(
        self, request: CollectiveRequest, settings: Settings, observer: Observer | None, start: Any = None,
        share: bool = False, ready: Mapping[Pass, Any] | None = None, window: Window | None = None,
    ):  # fmt: skip
        self.request, self.settings, self.observer, self.share = request, settings, observer, share
        self.start, self.ready, self.window = start, ready, window
        self.network = getattr(request.problem if start is None else start, "topology", None)
        self.warnings: list[Diagnostic] = []
        self.remarks: list[str] = []  # what passes say of their choices
        self.known: list[tuple[tuple[Pass, ...], Any]] = []
        self.right: dict[bool, tuple[tuple[Pass, ...], Any]] = {}  # the last programs and others that were executed
        self.refused: tuple[Plan, int, Any] | None = None  # the pass that raised a CollcError last, and its input
        self.schedule: Schedule | SymmetricSchedule | Forest | None = None
        self.forest: Forest | None = None
        self.reports: list[Report] = []
        self.timings: list[Timing] = []

    def trial(self) -> _Runner:
        """Return a runner that tells nobody what it does, to see whether something can be done."""
        return _Runner(self.request, attrs.evolve(self.settings, verify="off"), None, self.start, ready=self.ready)

    @property
    def lenient(self) -> bool:
        """Whether nobody asked for the scheduler's number of pieces."""
        return self.ready is not None

    def announce(self, chain: Plan) -> None:
        if self.observer:
            self.observer.planned(self.request.name, chain)

    def tell(self, text: str) -> None:
        """Say of a choice what passes cannot know."""
        self.remarks.append(text)

    # ---- passes

    def accept(self, start: Schedule | SymmetricSchedule | Forest | Program) -> None:
        """Verify an IR that was read: what is wrong with it is the user's to know."""
        if isinstance(start, (Schedule, SymmetricSchedule, Forest)):
            self.keep(start)
        if self.settings.verify != "off":
            self.report("input", start).require()

    def run(self, ir: Any, chain: Plan, begin: int = 0, end: int | None = None) -> Any:
        """Return the IR after all passes of a plan, or those from ``begin`` to ``end`` (exclusive)."""
        for count in range(begin, len(chain.passes) if end is None else end):
            prefix = chain.passes[: count + 1]
            known = next((found for passes, found in self.known if passes == prefix), None)
            if known is None:
                known = self.step(ir, chain, count)
                if self.share:
                    self.known.append((prefix, known))
            ir = known
        return ir

    def step(self, ir: Any, chain: Plan, count: int) -> Any:
        """Run one pass and judge its result."""
        this = chain.passes[count]
        _require_facts(this, ir)
        with remarks() as told:
            given, after = self.timed(this.name, lambda: self.guarded(chain, count, ir, lambda: self.made(this, ir)))
        self.remarks += told
        if isinstance(after, (Schedule, SymmetricSchedule, Forest)):
            self.keep(after, ir, this)
        if self.observer:
            self.observer.made(self.request.name, this.name, after)
        self.judge(ir, given, after, chain, count)
        return after

    def made(self, this: Pass, ir: Any) -> tuple[Any, Any]:
        """Return what a pass was given of an IR, and what it made of that."""
        given = _written_out(this, ir)
        return given, self.apply(this, given)

    def keep(self, level: Schedule | SymmetricSchedule | Forest, of: Any = None, by: Pass | None = None) -> None:
        """Remember the last schedule, and the forest that it came from as it was streamed."""
        self.schedule = level
        if isinstance(level, Forest):
            self.forest = level
        elif isinstance(of, Forest):
            pieces = of.pieces if not isinstance(by, Stream) or by.pieces is None else by.pieces
            self.forest = attrs.evolve(of, pieces=pieces)

    def apply(self, this: Pass, ir: Any) -> Any:
        """Run a pass; a schedule written by hand is taken from the request, a template is unfolded where it must be."""
        if this.name == "steps" and isinstance(ir, Problem):
            if self.request.schedule.schedule is None:
                raise error(
                    "C0014",
                    f"`{self.request.name}` has no schedule written by hand",
                    span=self.request.span,
                    hint=f"write `schedule {self.request.name} using steps {{ ... }}`",
                    exit_status=2,
                )
            return self.request.schedule.schedule
        if isinstance(ir, Problem) and self.ready and this in self.ready:
            return self.ready[this]
        after = this.run(_written_out(this, ir))
        # Passes know no names; files do.
        return attrs.evolve(after, name=self.request.name) if isinstance(after, Program) else after

    def guarded(self, chain: Plan, count: int, ir: Any, work: Callable[[], T]) -> T:
        """Return what ``work`` does; anything it raises but a CollcError is our mistake, and can be replayed."""
        try:
            return work()
        except CollcError as mistake:
            self.refused = chain, count, ir
            raise self.placed(mistake) from None
        except MemoryError:
            raise memory_error(f"pass `{chain.passes[count].name}`", self.request.span) from None
        except Exception as problem:
            raise self.internal(chain, count, ir, f"{type(problem).__name__}: {problem}") from problem

    def placed(self, mistake: CollcError) -> CollcError:
        """Return a pass's or target's mistake with the place of the collective where it has none of its own."""
        if isinstance(mistake, InternalError) or all(d.span for d in mistake.diagnostics):
            return mistake
        span = self.request.span
        return CollcError(
            [d if d.span else attrs.evolve(d, span=span) for d in mistake.diagnostics], mistake.exit_status
        )

    # ---- verification

    def judge(self, before: Any, given: Any, after: Any, chain: Plan, count: int) -> None:
        """Check what a pass left: its form always, its meaning where the verify mode says so.

        It was ``given`` what came ``before``, written out where it takes no templates.
        """
        this, mode = chain.passes[count], self.settings.verify
        formed = mode != "off"

        def look() -> str:
            return flaw(this, given, after, self.network, formed)

        found = self.checked(chain, count, before, (lambda: self.timed("structure", look)) if formed else look)
        if found:
            raise self.internal(chain, count, before, found)
        by_hand, last = this.name == "steps", _ends_level(chain, count)
        if mode == "off" or not (by_hand or last or mode == "full"):
            return
        report = self.checked(chain, count, before, lambda: self.report(this.name, after, keep=by_hand or last))
        if by_hand:
            self.require_by_hand(report)
        elif not report.ok:
            raise self.internal(chain, count, before, f"what it left is wrong: {failures(report)}")
        self.right[isinstance(after, Program)] = chain.passes[: count + 1], after

    def checked(self, chain: Plan, count: int, before: Any, work: Callable[[], T]) -> T:
        """Return what a check of a pass's work finds; what else it raises comes of that work."""
        try:
            return work()
        except CollcError:
            raise
        except MemoryError:
            what = f"checking what pass `{chain.passes[count].name}` left"
            raise memory_error(what, self.request.span) from None
        except Exception as problem:
            what = f"what it left cannot be checked: {type(problem).__name__}: {problem}"
            raise self.internal(chain, count, before, what) from problem

    def report(self, step: str, ir: Any, keep: bool = True) -> Report:
        report = self.timed(f"verify {step}", lambda: verify(ir))
        if keep:
            self.reports.append(report)
        return report

    def require_by_hand(self, report: Report) -> None:
        span = self.request.schedule.span or self.request.span
        wrong = [
            Diagnostic("C0401", f"the schedule of `{self.request.name}` is wrong: {c.name}: {c.detail}", span=span)
            for c in report.failed
        ]
        if wrong:
            raise CollcError(wrong)

    def require_requested(self, ir: Any) -> None:
        """Raise C0013 unless the pipeline ended with the collective that was asked for.

        Every pass has been held to what it makes of a collective, so the pipeline as such leads elsewhere.
        """
        asked, found = self.request.problem.collective, ir.collective
        if asked != found:
            raise error(
                "C0013",
                f"`{self.request.name}` is to be {describe(asked, found)}, "
                f"but the pipeline ends with {describe(found, asked)}",
                span=self.request.span,
                hint="leave out -p, or add the pass that leads to it (`reverse`, `compose`)",
                exit_status=2,
            )

    # ---- our own mistakes

    def internal(self, chain: Plan, count: int, ir: Any, what: str) -> InternalError:
        """Return the error that blames a pass, or the one before it that was the first to leave something wrong."""
        first = self.first_wrong(chain, count) or self.first_tried(chain, count, ir)
        if first is None:
            return self.blaming(chain, Wrong(count, ir, what), unverified=self.settings.verify == "off")
        return self.blaming(chain, first, f"pass `{chain.passes[count].name}`: {what}")

    def blaming(
        self, chain: Plan, wrong: Wrong, seen: str = "", target: Target | None = None, unverified: bool = False
    ) -> InternalError:
        """Return the error that names a pass, with what replays it; ``seen`` says where the failure showed later."""
        rest, target = chain.passes[wrong.count :], target or chain.target
        return InternalError(
            f"pass `{rest[0].name}` failed on `{self.request.name}`: {wrong.what}",
            collective=self.request.name, ir=wrong.before, remaining=pipeline_text(rest),
            done=tuple(this.name for this in chain.passes[: wrong.count]),
            target=element_text(target) if target else "", seen=seen, unverified=unverified,
        )  # fmt: skip

    def last_right(self, chain: Plan, programs: bool = True) -> tuple[int, Any]:
        """Return the last IR of a plan that was executed, a program only if ``programs``, and how many passes made it.

        Where none was, what the plan begins with.
        """
        found = [self.right[level] for level in (True, False)[not programs :] if level in self.right]
        for passes, ir in found:
            if passes == chain.passes[: len(passes)]:
                return len(passes), ir
        return 0, self.request.problem if self.start is None else self.start

    def first_wrong(self, chain: Plan, end: int) -> Wrong | None:
        """Return the first pass before number ``end`` that left something wrong, if one did.

        What somebody wrote and nobody verified may be wrong itself, and then says nothing about passes.
        """
        begin, ir = self.last_right(chain)
        unsure = self.settings.verify == "off" and not isinstance(ir, Problem)
        if self.settings.verify == "full" or begin >= end or (unsure and not is_right(ir)):
            return None
        found = first_wrong(chain.passes, begin, end, ir, self.again, self.network)
        return None if found is not None and chain.passes[found.count].name == "steps" else found

    def first_tried(self, chain: Plan, count: int, ir: Any) -> Wrong | None:
        """Return the pass that goes wrong where pass number ``count`` tries it, if it comes later in the plan too."""
        tried = chain.passes[count].tries
        found = first_wrong(tried, 0, len(tried), ir, self.again, self.network)
        names = [this.name for this in chain.passes]
        if found is None or tried[found.count].name not in names[count:]:
            return None
        return attrs.evolve(found, count=names.index(tried[found.count].name, count))

    def again(self, this: Pass, ir: Any) -> Any:
        """Run a pass once more; a signal that arrived in the meantime ends that."""
        if self.observer:
            self.observer.begins(self.request.name, this.name)
        return self.apply(this, ir)

    def reconsidered(self, mistake: CollcError) -> CollcError:
        """Return a mistake, or our own where a pass refuses what an earlier one should not have left."""
        if self.refused is None or self.settings.verify != "each" or is_fatal(mistake) or mistake.exit_status == 2:
            return mistake
        chain, count, ir = self.refused
        first = None if isinstance(ir, Problem) or is_right(ir) else self.first_wrong(chain, count)
        if first is None:
            return mistake
        return self.blaming(chain, first, f"pass `{chain.passes[count].name}`: {mistake.diagnostics[0].message}")

    # ---- files

    def finish(self, chain: Plan, ir: Any) -> Emitted | None:
        """Return the files of what came out for the plan's target, if there is a target."""
        if self.start is None:
            self.require_requested(ir)
        target = chain.target
        if target is None or (self.window is not None and target.selects):
            return None
        if self.window is None:
            return self.emit(target, ir, chain=chain)
        return self.emit_within(chain, target, ir, self.window)

    def emit_within(self, chain: Plan, target: Target, ir: Any, window: Window) -> Emitted | None:
        """Return the target's files for calls of some sizes, or of those among them that its runtime can make."""
        here = target.within(window)
        if here is None:
            return None
        try:
            _, files = self.emit(here, ir, chain=chain)
        except CollcError as mistake:
            if all(d.code == "C0642" for d in mistake.diagnostics):
                return None  # so small a window that no call is of its sizes
            if any(d.code != "C0630" for d in mistake.diagnostics):
                raise
            self.warnings.append(
                warning(
                    "C0049", f"no file of `{self.request.name}` is for all calls of {window.label}",
                    span=self.request.span, notes=[mistake.diagnostics[0].message, *mistake.diagnostics[0].notes],
                )
            )  # fmt: skip
            try:
                least = target.within(attrs.evolve(window, high=None))
                _, files = self.emit(least or here, ir, chain=chain)
            except CollcError as beyond:
                if is_fatal(beyond):
                    raise
                return None
        return target, tuple(attrs.evolve(file, label=window.label) for file in files)

    def emit(
        self, target: Target, ir: Any, write: Callable[[], Sequence[Artifact]] | None = None,
        check: Callable[[Sequence[Artifact]], Report] | None = None, chain: Plan | None = None,
    ) -> Emitted:  # fmt: skip
        """Return a target's files, read back by its own reader; ``write`` and ``check`` stand for the target's own."""
        report = None
        try:
            files = tuple(self.timed(f"emit {target.name}", write or (lambda: target.emit(ir))))
            if self.settings.verify != "off":
                judge = check or (lambda files: target.check(ir, files))
                report = self.timed(f"read back {target.name}", lambda: judge(files))
        except CollcError as mistake:
            raise self.placed(mistake) from None
        except MemoryError:
            raise memory_error(f"target `{target.name}`", self.request.span) from None
        except Exception as problem:
            raise self.unemitted(chain, target, ir, f"failed: {type(problem).__name__}: {problem}") from problem
        if report is not None:
            self.reports.append(report)
            if not report.ok:
                raise self.unemitted(chain, target, ir, f"wrote a wrong file: {failures(report)}")
        return target, tuple(attrs.evolve(file, model=None) for file in files)

    def unemitted(self, chain: Plan | None, target: Target, ir: Any, what: str) -> InternalError:
        """Return the error that blames a pass, if one is the first after which something is wrong, else the target."""
        seen = f"target `{target.name}` {what}"
        first = None if chain is None else self.first_wrong(chain, len(chain.passes)) or self.misread(chain, target)
        if chain is not None and first is not None:
            return self.blaming(chain, first, seen, target)
        return InternalError(
            f"{seen} (for `{self.request.name}`)", collective=self.request.name, ir=ir, target=element_text(target),
            done=() if chain is None else tuple(this.name for this in chain.passes),
            unverified=self.settings.verify == "off",
        )  # fmt: skip

    def misread(self, chain: Plan, target: Target) -> Wrong | None:
        """Return the first pass after which the target fails on a program that it took before."""
        begin, ir = self.last_right(chain, programs=False)
        verified = self.settings.verify != "off"
        return first_misread(chain.passes, begin, ir, self.again, lambda made: misread(target, made, verified))

    def timed(self, step: str, work: Callable[[], T]) -> T:
        if self.observer:
            self.observer.begins(self.request.name, step)
        else:
            progress(f"trying {step}")
        start = time.perf_counter()
        result = work()
        self.timings.append(Timing(self.request.name, step, time.perf_counter() - start))
        return result


def _require_facts(this: Pass, ir: Any) -> None:
    """Raise C0012 where a fact that a pass requires does not hold of the IR."""
    for fact in this.requires:
        if not FACTS[fact](ir):
            way = {"discrete": "run `discretize` before it"}.get(fact)
            raise error("C0012", f"pass `{this.name}` needs a {fact} schedule", hint=way, exit_status=2)


def _ends_level(chain: Plan, count: int) -> bool:
    """Whether the next pass gives another kind of IR, or there is none."""
    rest = chain.passes[count + 1 :]
    here = isinstance(chain.passes[count].gives, type) and issubclass(chain.passes[count].gives, Program)
    return not rest or (rest[0].gives is Program) != here


def _written_out(this: Pass, ir: Any) -> Any:
    """Return an IR as a pass takes it: a template as rows where it must be."""
    return ir.unfold() if isinstance(ir, SymmetricSchedule) and not this.takes_templates else ir
