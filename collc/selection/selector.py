"""Measure the candidates, cheap ones first, and say which is the fastest at which sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs

from collc.ir.diagnostic import CollcError, error
from collc.ir.pieces import USUAL_SIZE
from collc.ir.progress import progress
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.passes import AUTO

from ..internal import InternalError, is_fatal, memory_error
from ..registry import scheduler_pass
from .algorithm import Algorithm, plain, planned_sizes, varied
from .choice import Choice, Interval, Measured, Skipped
from .measure import Grown, Model, Result
from .options import Auto
from .times import least

__all__ = ["Selector"]

#: ranks up to which trees, carried schedules and integer programs are tried beside what is cheaper
_SOME = {"forest": 256, "expansion": 512, "exact": 24}
#: collectives that a scheduler is tried for, where these are not all it takes
_ONLY = {"flow": ("alltoall",), "exact": ("gather", "scatter")}
#: a size larger than any, for comparing what has no end
_ENDLESS = 1 << 62
_OPERATORS = ("line", "degree", "power", "bidirectional", "transpose")


class Selector:
    """The candidates of one problem, measured once; ``ready`` are schedules that were made on the way, by their pass.

    A candidate is left out where its scheduler says that it does not apply, or that it would exceed a limit that is
    counted. Raises what the scheduler that fits best raises where none is left. Raises C0023 where memory runs out on
    any, and InternalError where any fails: neither says anything about the candidate. ``name`` is the collective's.
    """

    def __init__(self, problem: Problem, auto: Auto, name: str = "collective") -> None:
        self.problem, self.auto, self.model, self.name = problem, auto, Model.of(auto), name
        self.measured: list[Measured] = []
        self.skipped: list[Skipped] = []
        self.ready: dict[Any, Any] = {}
        self.mistakes: dict[str, CollcError] = {}
        self.grown: Grown | None = None
        self.unbeaten = False  # whether a schedule over single links has least bandwidth time in fewest steps
        for scheduler in auto.names():
            reason = self._needless(scheduler)
            if reason is None:
                self._try(scheduler)
            elif reason:
                self.skipped.append(Skipped(scheduler, reason))
        if not self.measured:
            raise self._failure()

    @property
    def usual(self) -> str:
        """The scheduler that is tried whatever the network's size."""
        if self.problem.collective.kind in AUTO:
            return AUTO[self.problem.collective.kind]
        return "bfb" if self.problem.topology.is_direct else "forest"

    def _failure(self) -> CollcError:
        mistake = self.mistakes.get(self.usual) or next(iter(self.mistakes.values()), None)
        if mistake is not None:
            return mistake
        reasons = [f"{one.name}: {one.reason}" for one in self.skipped]
        kind = self.problem.collective.kind
        return error(
            "C0046", f"none of the candidates schedules `{kind}` on `{self.problem.topology.name}`", notes=reasons,
            hint="leave `candidates` and `without` out", exit_status=3,
        )  # fmt: skip

    # ---- which to try

    def _needless(self, scheduler: str) -> str | None:
        """Return why a scheduler is not tried: nothing where it is, "" where nobody would expect it."""
        kind, ranks = self.problem.collective.kind, self.problem.topology.num_ranks
        named = self.auto.candidates is not None
        if scheduler in _ONLY and kind not in _ONLY[scheduler] and not named:
            return ""
        origin = self.problem.topology.origin
        if scheduler == "expansion" and not named and (origin is None or origin.name not in _OPERATORS):
            return ""
        if ranks == 1:
            return None if scheduler == self.usual else ""
        if scheduler in ("forest", "expansion") and self.unbeaten:
            return "bfb meets the bandwidth bound in as few steps as data over single links can take"
        if scheduler in _SOME and ranks > _SOME[scheduler] and not named and scheduler != self.usual:
            return f"not tried on {ranks} ranks: more than {_SOME[scheduler]} take too long"
        return None

    def _try(self, scheduler: str) -> None:
        if scheduler == "forest":
            self._guarded(plain(scheduler), self._grow)
        elif scheduler == "double-binary-tree":
            self._guarded(plain(scheduler), self._pipelined)
        else:
            before = len(self.skipped)
            algorithms = list(varied(scheduler, self.problem, self.sizes))
            for algorithm in algorithms:
                self._guarded(algorithm, self._alone)
            reasons = {one.reason for one in self.skipped[before:]}
            if len(self.skipped) - before == len(algorithms) > len(reasons) == 1:
                self.skipped[before:] = [Skipped(scheduler, reasons.pop())]  # said once of all its variants

    def _guarded(self, algorithm: Algorithm, work: Any) -> None:
        """Measure, and remember why that could not be done."""
        progress(f"measuring {algorithm.name}")
        try:
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
        return InternalError(f"pass `{passed}` failed on `{self.name}`: {what}", collective=self.name, ir=self.problem)

    def _keep(self, algorithm: Algorithm, result: Result) -> None:
        self.measured.append(Measured(algorithm, result.times, result.steps))
        if result.level is not None:
            self.ready[algorithm.made()] = result.level
            if algorithm.scheduler == "bfb" and len({kind.latency for kind in self.problem.topology.classes}) == 1:
                self.unbeaten = self.model.meets_bound(result.level, result.times)

    # ---- one scheduler

    def _alone(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        made = algorithm.made()
        self._require_small(made)
        yield algorithm, self.model.measure(made, self.problem)

    def _require_small(self, made: Any) -> None:
        """Raise C0047 for an algorithm whose transfers would be too many to write out."""
        if not hasattr(made, "messages"):
            return
        ranks, most = self.problem.topology.num_ranks, self.auto.transfers
        about = ranks * ranks * (2 if self.problem.collective.kind == "allreduce" else 1)
        if about <= most and hasattr(made, "plan"):
            about = _transfers(made.plan(self.problem))
        if about > most:
            raise error("C0047", f"more than {most} transfers", hint="`transfers` raises the limit", exit_status=3)

    def _pipelined(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        """Yield the double binary tree in the pieces that it would choose at each of the sizes."""
        self._require_small(algorithm.made())
        for pieces in sorted({algorithm.made().pieces(_sized(self.problem, size)) for size in self.sizes}):
            one = algorithm.such(pipeline=pieces)
            yield one, self.model.measure(one.made(), self.problem)

    def _grow(self, algorithm: Algorithm) -> Iterator[tuple[Algorithm, Result]]:
        """Yield the forest in the pieces that are best at each of the sizes."""
        forest: Forest = algorithm.made().grow(self.problem)
        self.grown = grown = Grown.of(forest, self.model)
        for pieces in grown.pieces(self.sizes):
            yield algorithm.such(pieces=pieces), grown.measure(pieces)

    def add_pieces(self, pieces: int) -> None:
        """Measure the forest in another number of pieces: as many as some target takes."""
        algorithm = plain("forest").such(pieces=pieces)
        if self.grown is not None and all(one.algorithm != algorithm for one in self.measured):
            self._keep(algorithm, self.grown.measure(pieces))

    # ---- sizes

    @property
    def sizes(self) -> list[int]:
        """The sizes that schedules are planned for."""
        span = self.auto.span()
        return [self.size[0]] if span is None else planned_sizes(*span)

    @property
    def size(self) -> tuple[int, str]:
        """The one size that is chosen for, and where it comes from."""
        own = self.problem.collective.size
        if self.auto.size is not None:
            return self.auto.size, "option `size`"
        return (USUAL_SIZE, "no size is given") if own is None else (own, "the collective's size")

    def choose(self, excluded: Mapping[Algorithm, str]) -> Choice:
        """Return the fastest candidates but for those ``excluded`` (with reasons), of which one must be left.

        Where there are more than are wanted, that one goes without which the rest lose least where they lose most.
        """
        left = [one for one in self.measured if one.algorithm not in excluded]
        best = choice = self._fastest(left)
        dropped = list[Skipped]()
        while self.auto.most is not None and len(kept := _used(choice)) > self.auto.most:
            rest = [(gone, self._fastest([one for one in kept if one != gone])) for gone in kept]
            gone, choice = min(rest, key=lambda pair: _loss(best, pair[1]))
            dropped.append(Skipped(gone.algorithm.name, f"left out, so that {self.auto.most} are enough"))
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
        """Return whether no candidate is left but one."""
        return len(self.measured) - len(set(excluded)) <= 1


def reason_of(mistake: CollcError) -> str:
    """Return a mistake in one line."""
    first = mistake.diagnostics[0]
    return f"{first.message} [{first.code}]"


def _used(choice: Choice) -> list[Measured]:
    """Return the candidates that are chosen somewhere, each once."""
    return list(dict.fromkeys(one.best for one in choice.intervals))


def _loss(best: Choice, other: Choice) -> Fraction:
    """Return how many times the time of the best the other takes at most; at size 0 and time 0 they are equal."""
    sizes = {*best.ends, *other.ends, *([_ENDLESS] if best.intervals[-1].high is None else [])}
    pairs = [(best.at(size), other.at(size)) for size in sizes]
    return max((theirs / least for least, theirs in pairs if least), default=Fraction(1))


def _sized(problem: Problem, size: int) -> Problem:
    if not size:
        return problem
    return attrs.evolve(problem, collective=attrs.evolve(problem.collective, size=size))


def _transfers(plan: Any) -> int:
    """Return about how many rows a plan's schedule has."""
    from collc.passes.synthesis.torus.chunks import Exchange

    ranks = plan.problem.topology.num_ranks
    both = 2 if plan.problem.collective.kind == "allreduce" else 1
    return sum(ranks * ranks * (chunk.num_steps if isinstance(chunk, Exchange) else both) for chunk in plan.chunks)
