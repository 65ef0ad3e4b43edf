"""Measure the candidates, the cheap ones first, and choose the fastest for each size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import attrs

from collc.ir.costs.cost import unit_seconds
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import CollcError, Excess, Subject, error
from collc.ir.effort import EffortSpent, limited
from collc.ir.graph.boxes import boxes_of
from collc.ir.progress import progress
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.symmetric_forest import SymmetricForest
from collc.passes import PASSES
from collc.passes.applying import require_listed
from collc.passes.schedule.pipelining import pieces_to_write
from collc.passes.schedulers import Candidate, usual
from collc.passes.synthesis.forest.front import Grown, Number, grown, members, numbers, work_limit
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template
from collc.passes.synthesis.groups.applied import MeasuredNetworks, measured_networks, planned_trees

from ..messages.internal import InternalError, is_fatal, memory_error
from ..registry.classes import scheduler_pass
from .algorithm import Algorithm, candidate_of, planned_sizes, variants_of
from .choice import Choice, Interval, Measured, Skipped
from .floors import around, straight
from .measure import MeasuredForest, Model, Result
from .memory import Memory
from .options import Auto
from .protocols import ChoosesPieces, GrowsForest
from .times import Times, least

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collc.ir.levels import Scheduled
    from collc.passes.base import Pass

__all__ = ["Selector", "reason_of", "unnamed"]

T = TypeVar("T")

#: upper end of an unbounded size range
_UNBOUNDED = 1 << 62
#: transfers above which a schedule is left out that lists all, if another candidate is a template
_MOST_BESIDE_TEMPLATES = 1 << 21
#: how much faster than others a scheduler has to be that takes seconds
_FAR_FASTER = 2
#: collectives of shards of equal size, all of whose ranks receive
_EVEN = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast", "reduce")
#: the operators that expand a schedule
_OPERATORS = ("line", "degree", "power", "bidirectional", "transpose")


class Selector:
    """The candidates of one problem, each measured once; ``ready`` maps passes to the schedules already computed.

    A candidate is skipped if its scheduler does not apply or would exceed a counted limit. If none is left, raises the
    error of the usual scheduler. Raises C0023 if memory runs out, and InternalError if a candidate fails: neither is a
    property of the candidate. ``name`` is the name of the collective. ``memory`` holds what selectors of the same
    collective at other sizes have measured.

    If relays may take less time, all candidates are measured on the network with relays and on the one without, which
    ``networks`` describes if it is not ``problem``'s own. ``lists`` says that files list the transfers of all ranks,
    also of templates.
    """

    def __init__(
        self, problem: Problem, auto: Auto, name: str = "collective", memory: Memory | None = None,
        networks: MeasuredNetworks | None = None, lists: bool = False,
    ) -> None:  # fmt: skip
        self.memory = memory or Memory()
        networks = networks or measured_networks(problem)
        self.problem, self.auto, self.model, self.name = networks.first, auto, Model.of(auto), name
        self.lift, self.lists = networks.lift, lists
        self.apart = self._apart(networks)
        self.trees = planned_trees(problem)
        self.whole = problem.is_whole  # schedules of the members' network are no results
        self.measured: list[Measured] = []
        self.skipped: list[Skipped] = []
        self.ready: dict[Pass, Scheduled] = {}
        self.mistakes: dict[str, CollcError] = {}
        self.pieces: dict[Algorithm, int] = {}  # the number of pieces of each algorithm that grows a forest
        self.forests: dict[Algorithm, tuple[Algorithm, MeasuredForest]] = {}  # the same without pieces, and its forest
        self.steps = auto.steps
        self.optimal_direct = ""  # a scheduler without routing that meets both lower bounds
        for scheduler in auto.names():
            reason = self._reason_to_skip(scheduler)
            if reason is None:
                self._try(scheduler)
            elif reason:
                self.skipped.append(Skipped(scheduler, reason))
        for scheduler in auto.names():
            if self._takes_boxes(scheduler):
                self._try_each(scheduler, [Algorithm(scheduler, options) for options in candidate_of(scheduler).boxes])
        if not self.measured:
            self._run_without_limit()
        if not self.measured and self.auto.candidates is None:
            self._try_last()
        if self.auto.candidates is None:
            self._leave_out_large()
        if self.apart is not None:
            self._join(self.apart)
        if not self.measured:
            raise self._failure()

    def _leave_out_large(self) -> None:
        """Skip schedules that list very many transfers where another candidate is a template."""
        templates = {one for one, level in self.ready.items() if isinstance(level, SymmetricSchedule | SymmetricForest)}
        if not templates:
            return
        kept = []
        for one in self.measured:
            this = one.algorithm.scheduler_pass()
            number = None if this in templates else this.num_transfers(self.problem, _MOST_BESIDE_TEMPLATES)
            if number is None or number <= _MOST_BESIDE_TEMPLATES or self._is_template(this):
                kept.append(one)
                continue
            reason = f"more than {_MOST_BESIDE_TEMPLATES} transfers to list, and other candidates are templates"
            self.skipped.append(Skipped(one.algorithm.name, reason))
        self.measured = kept

    def _is_template(self, this: Pass) -> bool:
        """Return whether files hold a template of an algorithm that was measured by its messages."""
        return not self.lists and self.whole and self.memory.gives_template(this, self.problem)

    def _apart(self, networks: MeasuredNetworks) -> Selector | None:
        """Return the selector of the members without relays; None without such a network, or a candidate on it."""
        if networks.apart is None:
            return None
        try:
            return Selector(networks.apart.first, self.auto, self.name, self.memory.apart, networks.apart, self.lists)
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            return None

    def _join(self, apart: Selector) -> None:
        """Add the candidates without relays, which win if they are as fast."""
        added = [attrs.evolve(one, algorithm=_apart_of(one.algorithm)) for one in apart.measured]
        self.measured = [*added, *self.measured]
        self.pieces |= {_apart_of(algorithm): pieces for algorithm, pieces in apart.pieces.items()}

    @property
    def usual(self) -> str:
        """The scheduler that is compared for networks of any size."""
        return usual(self.problem.collective.name, not self.problem.topology.is_direct)

    def _run_without_limit(self) -> None:
        """Measure the usual scheduler again if its limited work was all that kept it from being the only candidate."""
        mistake = self.mistakes.get(self.usual)
        if self.auto.candidates is None and mistake is not None and mistake.diagnostics[0].code == "C0050":
            self.steps = None
            self.memory.forget(mistake)
            self.skipped = [one for one in self.skipped if one.name != self.usual]
            self._try(self.usual)

    def _try_last(self) -> None:
        """Measure the candidates that are for collectives that no other schedules on this network, without a limit."""
        self.steps = None
        for scheduler in self.auto.names():
            if self.problem.collective.name in candidate_of(scheduler).last:
                self._try(scheduler)

    def _failure(self) -> CollcError:
        # Of a rooted collective, schedulers for any network need routes from or to the root only.
        rooted = usual(self.problem.collective.name, switches=True) if self.problem.collective.root is not None else ""
        mistake = self.mistakes.get(rooted) or self.mistakes.get(self.usual) or next(iter(self.mistakes.values()), None)
        if mistake is not None:
            return self._unnamed(mistake)
        reasons = [f"{one.name}: {one.reason}" for one in self.skipped]
        kind, option = self.problem.collective.name, "candidates" if self.auto.candidates is not None else "without"
        return error(
            "C0046", f"none of the candidates schedules `{kind}` on `{self.problem.topology.name}`", notes=reasons,
            hint=f"leave out `{option}`, or name other schedulers", exit_status=3, option=option,
            about=(Subject.COLLECTIVE, Subject.TOPOLOGY),
        )  # fmt: skip

    def _unnamed(self, mistake: CollcError) -> CollcError:
        """Return a scheduler's mistake for a request that does not name the scheduler."""
        first = mistake.diagnostics[0]
        if first.excess is None or first.excess.what != "transfers":
            return unnamed(mistake, self.auto)
        name = next(name for name, one in self.mistakes.items() if one is mistake)
        message = f"`{name}` makes about {first.excess.found} transfers, {first.message}"
        hint = f"raise `transfers` to {first.excess.found}, or leave it out"
        about = (Subject.COLLECTIVE, Subject.TOPOLOGY)
        return CollcError(
            attrs.evolve(first, message=message, hint=hint, option="transfers", about=about), mistake.exit_status
        )

    # ---- which to compare

    def _reason_to_skip(self, scheduler: str) -> str | None:
        """Return why a scheduler is skipped: None if it is compared, "" if the report need not list it."""
        kind, ranks = self.problem.collective.name, self.problem.topology.num_ranks
        named, how = self.auto.candidates is not None, candidate_of(scheduler)
        if how.collectives is not None and kind not in how.collectives and not named:
            return ""
        origin = self.problem.topology.origin
        if how.built and not named and (origin is None or origin.name not in _OPERATORS):
            return ""
        if not how.variants:  # it is tried on boxes
            return ""
        if ranks == 1:
            return None if scheduler == self.usual else ""
        if how.slower and self.optimal_direct:
            return f"{self.optimal_direct} meets the bandwidth bound in as few steps as data over single links can take"
        most = how.most_for(kind)
        if most is not None and ranks > most and not named and scheduler != self.usual:
            if self._is_too_slow(how):
                return ""
            if not self._surely_wins(how):
                return f"not tried on {ranks} ranks: more than {most} take too long"
        return "" if not named and self._is_too_slow(how) else None

    def _surely_wins(self, how: Candidate) -> bool:
        """Return whether a scheduler is worth long work: if it may take half the time of all others at some size."""
        varied = how.varied is not None and self.problem.collective.kind in how.varied
        if how.most_sure is None or self.problem.topology.num_ranks > how.most_sure or not varied:
            return False
        return bool(self.measured) and not self._is_too_slow(how, _FAR_FASTER)

    def _is_too_slow(self, how: Candidate, times: int = 1) -> bool:
        """Return whether ``times`` the least time of a scheduler is longer than what is measured, at all sizes."""
        kind, topology = self.problem.collective.name, self.problem.topology
        if not (how.straight or how.around) or kind not in _EVEN or not self.measured:
            return False
        steps, per_byte = straight(self.problem) if how.straight else around(self.problem)
        latency = steps * self.model.least_latency(topology)
        per_byte *= unit_seconds(topology, self.model.bandwidth)
        best = {size: min(one.times.at(size) for one in self.measured) for size in self.sizes}
        return all(times * (latency + size * per_byte) >= least for size, least in best.items())

    def _takes_boxes(self, scheduler: str) -> bool:
        """Return whether a scheduler is tried with its options for boxes: on boxes, or if it alone was asked for."""
        how, topology = candidate_of(scheduler), self.problem.topology
        if not how.boxes or (how.collectives is not None and self.problem.collective.name not in how.collectives):
            return False
        return boxes_of(topology) is not None or (self.auto.candidates is not None and not how.variants)

    def _try(self, scheduler: str) -> None:
        self._try_each(scheduler, list(variants_of(scheduler, self.problem, self.sizes)))

    def _try_each(self, scheduler: str, algorithms: Sequence[Algorithm]) -> None:
        """Measure the algorithms of a scheduler."""
        work = {"trees": self._pieces_of_forest, "pipeline": self._pieces_of_pipeline}
        before = len(self.skipped)
        for algorithm in algorithms:
            self._measure_or_skip(algorithm, work.get(candidate_of(scheduler).planned, self._measured))
        reasons = {one.reason for one in self.skipped[before:]}
        if len(self.skipped) - before == len(algorithms) > len(reasons) == 1:
            self.skipped[before:] = [Skipped(scheduler, reasons.pop())]  # one reason for all its variants

    def _measure_or_skip(
        self, algorithm: Algorithm, work: Callable[[Algorithm], Iterable[tuple[Algorithm, Result]]]
    ) -> None:
        """Measure an algorithm, or record why it cannot be measured."""
        progress(f"measuring {algorithm.name}")
        try:
            require_listed(algorithm.scheduler, self.problem)
            for one, result in work(algorithm):
                self._keep(one, result)
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            self.mistakes.setdefault(algorithm.scheduler, mistake)
            self.skipped.append(Skipped(algorithm.name, reason_of(mistake)))
        except MemoryError:
            raise memory_error(f"candidate `{algorithm.name}`") from None
        except Exception as problem:
            raise self._broken(algorithm, f"{type(problem).__name__}: {problem}") from problem

    def _broken(self, algorithm: Algorithm, what: str) -> InternalError:
        passed = scheduler_pass(algorithm.scheduler)
        return InternalError(
            f"pass `{passed}` failed on `{self.name}`: {what}",
            collective=self.name, ir=self.problem, package=PASSES.package(passed),
        )  # fmt: skip

    def _keep(self, algorithm: Algorithm, result: Result) -> None:
        self.measured.append(Measured(algorithm, result.times, result.steps))
        if result.level is not None:
            if self.whole:
                self.ready[algorithm.scheduler_pass()] = result.level
            one_latency = len({kind.latency for kind in self.problem.topology.classes}) == 1
            if candidate_of(algorithm.scheduler).fewest and one_latency:
                self.optimal_direct = algorithm.scheduler if self.model.meets_bound(result.level, result.times) else ""

    # ---- one scheduler

    def _measured(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        algorithm_pass = algorithm.scheduler_pass()
        self._require_small(algorithm_pass)
        measure = partial(self.model.measure, algorithm_pass, self.problem, self.lift)
        yield algorithm, self._result(algorithm_pass, lambda: self._with_effort(algorithm.scheduler, measure))

    def _result(self, algorithm_pass: Pass, make: Callable[[], Result]) -> Result:
        return self.memory.result(algorithm_pass, self.problem, make)

    def _with_effort(self, scheduler: str, work: Callable[[], T]) -> T:
        """Return the result of a scheduler's work; raise C0050 if that takes too many steps."""
        most = self.steps
        if most is None:
            return work()
        try:
            with limited(most):
                return work()
        except EffortSpent:
            raise error(
                "C0050", f"more than {most} steps of work; `using {scheduler}` has no limit",
                hint="`effort` raises the limit", exit_status=3, excess=Excess("steps", most + 1, most),
            ) from None  # fmt: skip

    def _require_small(self, algorithm_pass: Pass) -> None:
        """Raise C0047 for an algorithm with too many transfers."""
        most = self.auto.transfers
        estimate = algorithm_pass.num_transfers(self.problem, most)
        if estimate is not None and estimate > most and not self._is_template(algorithm_pass):
            raise error(
                "C0047", f"more than {most} transfers", hint="`transfers` raises the limit", exit_status=3,
                excess=Excess("transfers", estimate, most),
            )  # fmt: skip

    def _pieces_of_pipeline(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        """Yield a pipelined scheduler with the number of pieces that it chooses at each size."""
        algorithm_pass = algorithm.scheduler_pass()
        assert isinstance(algorithm_pass, ChoosesPieces)
        self._require_small(algorithm_pass)
        for pieces in sorted({algorithm_pass.pieces(self.problem.sized(size)) for size in self.sizes}):
            one = algorithm.with_options(pipeline=pieces)
            scheduler = one.scheduler_pass()
            measure = partial(self.model.measure, scheduler, self.problem, self.lift)
            yield one, self._result(scheduler, partial(self._with_effort, algorithm.scheduler, measure))

    def _pieces_of_forest(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        """Yield a forest with the best number of pieces for each size."""
        algorithm_pass = algorithm.scheduler_pass()
        assert isinstance(algorithm_pass, GrowsForest)
        grow = partial(Grown.of, lambda: self._grown(algorithm_pass))
        make = partial(self._with_effort, algorithm.scheduler, grow)
        forest = self.memory.forest(algorithm_pass, lambda: self._forest_of(make()))
        found = list(self._each_number_of_pieces(algorithm, forest))
        yield from found
        if isinstance(algorithm_pass, ForestScheduler) and algorithm_pass.k == "optimal":
            yield from self._front(algorithm, algorithm_pass, forest.work, [result.times for _, result in found])

    def _grown(self, scheduler: Pass) -> Forest | SymmetricForest:
        """Return the trees that a compilation takes: a template on a large symmetric network."""
        assert isinstance(scheduler, GrowsForest)
        if self.trees is not None and scheduler.takes_trees:
            return self.trees
        found = None
        if self.lift is None and isinstance(scheduler, ForestScheduler) and scheduler.k == "optimal":
            found = template(scheduler, self.problem)
        return scheduler.grow(self.problem) if found is None else found

    def _forest_of(self, grown: Grown) -> MeasuredForest:
        return MeasuredForest.of(grown.forest, self.model, self.lift, grown.work)

    def _each_number_of_pieces(
        self, algorithm: Algorithm, forest: MeasuredForest
    ) -> Iterator[tuple[Algorithm, Result]]:
        """Yield a forest with the best number of pieces for each size."""
        for pieces in forest.pieces(self.sizes):
            one = self._in_pieces(algorithm, forest, pieces)
            yield one, self._result(one.scheduler_pass(), partial(forest.measure, pieces))

    def _front(
        self, algorithm: Algorithm, scheduler: ForestScheduler, work: int, times: Sequence[Times]
    ) -> Iterator[tuple[Algorithm, Result]]:
        """Yield forests of further numbers of trees: those that are faster at some size than the optimal one.

        Of two that are equally fast, the one with fewer trees is enough. ``times`` are those of the optimal one, which
        took ``work``.
        """
        if self.problem.topology.num_ranks == 1:
            return
        first = {size: min(one.at(size) for one in times) for size in self.sizes}
        best, found = dict(first), list[tuple[Number, list[tuple[Algorithm, Result]]]]()
        latency = self.model.least_latency(self.problem.topology)

        def useful(number: Number) -> bool:
            return any(number.seconds(size, latency) < least for size, least in best.items())

        def grow(number: Number, most: int) -> MeasuredForest | None:
            one = number.of(scheduler)
            make = partial(grown, one, self.problem, most, number.known)
            return self.memory.forest_within(
                one, most, lambda: None if (has := make()) is None else self._forest_of(has)
            )

        known = self.memory.numbers_of(scheduler, lambda: numbers(scheduler, self.problem, self.model.bandwidth))
        for number, forest in members(known, work_limit(self.problem, work), useful, grow):
            if all(forest.least(size) >= least for size, least in best.items()):
                continue
            one = algorithm.with_options(**number.options)
            found.append((number, list(self._each_number_of_pieces(one, forest))))
            best = _least(best, [result.times for _, result in found[-1][1]])
        for _, several in sorted(found, key=lambda pair: (pair[0].division, pair[0].k)):
            own = _least(first, [result.times for _, result in several])
            yield from (
                (one, result)
                for one, result in several
                if any(result.times.at(size) == own[size] < least for size, least in first.items())
            )
            first = own

    def _in_pieces(self, algorithm: Algorithm, forest: MeasuredForest, pieces: int) -> Algorithm:
        """Return the scheduler of a forest with a number of pieces, and remember both."""
        found = algorithm.with_options(pieces=pieces)
        self.pieces[found], self.forests[found] = pieces, (algorithm, forest)
        return found

    def pieces_written(self, algorithm: Algorithm) -> int | None:
        """Return the most pieces in which the trees of an algorithm are written out; None if it has no trees."""
        trees = self.ready.get(algorithm.scheduler_pass())
        return pieces_to_write(trees) if isinstance(trees, Forest | SymmetricForest) else None

    def measured_problem(self, algorithm: Algorithm, problem: Problem) -> Problem:
        """Return a problem whose schedule has relays if that of the measured algorithm has."""
        if self.apart is None:
            return problem
        return attrs.evolve(problem, relays="never" if algorithm.apart else "always")

    def add_pieces(self, algorithm: Algorithm, pieces: int) -> Algorithm:
        """Measure the forest of an algorithm with another number of pieces, which some target allows; return it."""
        if algorithm.apart:
            return self._add_pieces_apart(algorithm, pieces)
        scheduler, forest = self.forests[algorithm]
        found = self._in_pieces(scheduler, forest, pieces)
        if all(one.algorithm != found for one in self.measured):
            self._keep(found, self._result(found.scheduler_pass(), partial(forest.measure, pieces)))
        return found

    def _add_pieces_apart(self, algorithm: Algorithm, pieces: int) -> Algorithm:
        assert self.apart is not None, "it measured the algorithm"
        known = {one.algorithm for one in self.apart.measured}
        found = self.apart.add_pieces(attrs.evolve(algorithm, apart=False), pieces)
        new = [one for one in self.apart.measured if one.algorithm not in known]
        self.measured += [attrs.evolve(one, algorithm=_apart_of(one.algorithm)) for one in new]
        self.pieces |= {_apart_of(one.algorithm): pieces for one in new}
        return _apart_of(found)

    # ---- sizes

    @property
    def sizes(self) -> list[int]:
        """The sizes (bytes) for which schedules are planned."""
        span = self.auto.span()
        return [self.size[0]] if span is None else planned_sizes(*span)

    @property
    def size(self) -> tuple[int, str]:
        """The one size to choose for (bytes), and its source."""
        own = self.problem.collective.size
        if self.auto.size is not None:
            return self.auto.size, "option `size`"
        return (USUAL_SIZE, "no size is given") if own is None else (own, "the collective's size")

    def choose(self, excluded: Mapping[Algorithm, str]) -> Choice:
        """Return the fastest candidates without those ``excluded`` (with reasons); at least one must be left.

        While there are more than ``most``, drop the one whose removal causes the smallest worst-case slowdown.
        """
        left = [one for one in self.measured if one.algorithm not in excluded]
        best = choice = self._fastest(left)
        dropped = list[Skipped]()
        while self.auto.most is not None and len(kept := _chosen(choice)) > self.auto.most:
            without = [(candidate, self._fastest([one for one in kept if one != candidate])) for candidate in kept]
            dropped_one, choice = min(without, key=lambda pair: _loss(best, pair[1]))
            dropped.append(Skipped(dropped_one.algorithm.name, f"dropped: `most` allows {self.auto.most}"))
        unfit = [Skipped(one.name, why) for one, why in excluded.items()]
        return attrs.evolve(choice, candidates=tuple(left), skipped=(*self.skipped, *unfit, *dropped))

    def _fastest(self, left: Sequence[Measured]) -> Choice:
        """Return the fastest of some candidates."""
        span, (size, reason) = self.auto.span(), self.size
        low, high = span or (size, size)
        changes = least([one.times for one in left], low, high)
        ends = [*(change.size - 1 for change in changes[1:]), high]
        intervals = tuple(
            Interval(change.size, end, left[change.winner], change.crossing)
            for change, end in zip(changes, ends, strict=True)
        )
        why = reason if span is None else "option `sizes`"
        assumed = self.model.assumed(self.problem.topology)
        return Choice(span is not None, why, intervals, tuple(left), tuple(self.skipped), assumed)

    def is_last(self, excluded: Iterable[Algorithm]) -> bool:
        """Return whether only one candidate is left."""
        return len(self.measured) - len(set(excluded)) <= 1


def _least(best: Mapping[int, Fraction], times: Sequence[Times]) -> dict[int, Fraction]:
    """Return the least seconds at each size, of those known and of further times."""
    return {size: min([least, *(one.at(size) for one in times)]) for size, least in best.items()}


def _apart_of(algorithm: Algorithm) -> Algorithm:
    return attrs.evolve(algorithm, apart=True)


def unnamed(mistake: CollcError, auto: Auto) -> CollcError:
    """Return a scheduler's mistake for a request that does not name the scheduler."""
    if auto.candidates is not None:
        found = [attrs.evolve(d, option="candidates") for d in mistake.diagnostics]
        return CollcError(found, mistake.exit_status)
    return mistake


def reason_of(mistake: CollcError) -> str:
    """Return a mistake in one line."""
    first = mistake.diagnostics[0]
    return f"{first.message} [{first.code}]"


def _chosen(choice: Choice) -> list[Measured]:
    """Return the candidates that are chosen for some size, each once."""
    return list(dict.fromkeys(one.best for one in choice.intervals))


def _loss(best: Choice, other: Choice) -> Fraction:
    """Return the largest ratio of the times of ``other`` and ``best``; 1 if both are 0."""
    sizes = {*best.ends, *other.ends, *([_UNBOUNDED] if best.intervals[-1].high is None else [])}
    pairs = [(best.at(size), other.at(size)) for size in sizes]
    return max((slower / least for least, slower in pairs if least), default=Fraction(1))
