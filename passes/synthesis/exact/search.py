"""The least bandwidth time for given steps and chunks: bounds, then known arrivals, then programs of growing size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, isqrt

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.bounds import time_per_byte_bound
from collc.ir.diagnostic import CollcError, error

from .demand import Demand
from .model import Answer, Question, program_size, solve
from .rooted import network_size, shortest
from .schedules import Arrivals, rounds_of

__all__ = ["Found", "Limits", "least_rounds", "require_small", "rounds_bound", "rounds_per_item", "too_large"]

_MOST_LINKS = 1 << 15  # in the time-expanded network
_WORK = 600_000


@attrs.define
class Limits:
    """The limits of searches: their total work, and the unknowns of a program.

    Work is counted, not timed: it is the same on every machine. A program of k thousand unknowns may search
    ``effort`` / k nodes. A question of the solver (:func:`...solver.run`) counts (unknowns)^1.5, about the growth of
    the work before it. All programs together may take ``_WORK`` times ``effort``, one program a third of it.
    """

    effort: int = 100
    columns: int = 20_000
    left: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.left = _WORK * self.effort

    def solve(self, demand: Demand, question: Question, size: int) -> Answer | None:
        """Solve a program; return None if it is beyond the limits."""
        each = size * isqrt(size) + 1
        questions = min(self.left, _WORK * self.effort // 3) // each
        if size > self.columns or questions == 0:
            return None
        answer = solve(demand, question, max(1, 1000 * self.effort // max(1, size)), questions)
        self.left -= answer.questions * each
        return answer


@attrs.frozen(eq=False)
class Found:
    """The best schedule found for some steps and chunks, and the proof of its bounds.

    At least ``least`` rounds are needed, because of ``reason``. ``arrivals`` take ``rounds``, or are None if the search
    found no schedule; if ``impossible``, there is none.
    """

    steps: int
    chunks: int
    rounds: int | None
    arrivals: Arrivals | None
    least: int
    reason: str
    impossible: bool = False

    @property
    def share(self) -> Fraction:
        """Rounds per chunk of an item, to compare chunks of different sizes."""
        return Fraction(self.rounds or 0, self.chunks)

    @property
    def steps_taken(self) -> int:
        """The steps of the schedule, at most ``steps``."""
        return self.arrivals.last if self.arrivals is not None else 0

    @property
    def label(self) -> str:
        """The schedule's scheduler, with the gap if there is one."""
        gap = f" (not proved: {self.rounds} rounds, at least {self.least})"
        return "exact" if self.proved else f"exact{gap}"

    @property
    def proved(self) -> bool:
        """Whether no schedule with these steps and chunks is better."""
        return self.impossible or self.rounds == self.least


def rounds_per_item(demand: Demand) -> tuple[Fraction, str]:
    """Return the least rounds per chunk of an item that the network's cuts allow, and the cut's name."""
    bound, cut = time_per_byte_bound(demand.topology, demand.collective)
    return bound * demand.items_per_vector * demand.unit, cut


def rounds_bound(demand: Demand, chunks: int) -> tuple[int, str]:
    """Return a lower bound on rounds, and its reason: a cut of the network, or the number of steps."""
    bound, cut = rounds_per_item(demand)
    steps = demand.steps_bound
    rounds = ceil(bound * chunks)
    if rounds < steps:
        return steps, f"the diameter: at least {steps} steps of one round"
    return rounds, f"bandwidth: {cut}"


def least_rounds(
    demand: Demand, steps: int, chunks: int, limits: Limits, starts: Sequence[Arrivals] = (), most: int | None = None
) -> Found:
    """Return the schedule of the fewest rounds, at most ``most``, in at most ``steps`` steps.

    ``starts`` are known arrivals; those that fit are upper bounds.
    """
    least, reason = rounds_bound(demand, chunks)
    if demand.rooted:
        return _rooted(demand, steps, chunks, most, least, reason)
    best, rounds = None, (most + 1 if most is not None else None)
    for start in starts:
        if start.last <= steps and chunks % start.chunks == 0:
            start = attrs.evolve(start, grain=start.grain * (chunks // start.chunks))
            needed = sum(rounds_of(demand, start))
            if rounds is None or needed < rounds:
                best, rounds = start, needed
    if rounds is not None and rounds <= least:
        return Found(steps, chunks, rounds if best else None, best, least, reason, impossible=best is None)
    smallest: int | None = None
    for types, folded in _attempts(demand, chunks):
        question = Question(steps, types, chunks // types, folded, least, None if rounds is None else rounds - 1)
        size = program_size(demand, question)
        smallest = size if smallest is None else min(size, smallest)
        answer = limits.solve(demand, question, size)
        if answer is None:
            continue
        if answer.arrival is not None:
            best = Arrivals(types, chunks // types, _unfolded(demand, answer.arrival, question))
            rounds = sum(rounds_of(demand, best))
        complete = types == chunks and not folded
        if complete and answer.status in ("infeasible", "optimal"):
            if best is None:
                return Found(steps, chunks, None, None, least, "exhaustive search", impossible=True)
            return Found(steps, chunks, rounds, best, rounds or 0, reason if rounds == least else "exhaustive search")
        if complete and answer.bound > least:
            least, reason = answer.bound, "the search's relaxations"
        if best is not None and rounds is not None and rounds <= least:
            break
    if smallest is not None and smallest > limits.columns:
        raise too_large(smallest, limits)
    return Found(steps, chunks, rounds if best is not None else None, best, least, reason)


def _rooted(demand: Demand, steps: int, chunks: int, most: int | None, least: int, reason: str) -> Found:
    """Return the result of :func:`least_rounds` for a gather or scatter, by flows."""
    found = shortest(demand, steps, chunks)
    if found.least > least:
        least, reason = found.least, "cuts of the network over time"
    if most is not None and found.rounds > most:
        return Found(steps, chunks, None, None, least, reason, impossible=least > most)
    return Found(steps, chunks, found.rounds, found.arrivals, least, reason)


def _attempts(demand: Demand, chunks: int) -> Iterator[tuple[int, bool]]:
    """Yield (types, folded): programs from the smallest to the complete one."""
    divisors = [k for k in range(1, chunks + 1) if chunks % k == 0]
    if demand.folds:
        yield from ((types, True) for types in divisors)
    yield from ((types, False) for types in divisors)


def _unfolded(demand: Demand, arrival: Array, question: Question) -> Array:
    """Return the arrivals of all parts from those of rank 0's items."""
    if not question.folded:
        return arrival
    group, n = demand.topology.symmetry, demand.num_ranks
    assert group is not None
    ranks = np.arange(n)
    result = np.empty((len(demand.source) * question.types, n), dtype=arrival.dtype)
    for by in range(n):
        moved = group.translate(ranks, np.full(n, by))
        for item in range(demand.folded_items):
            target = int(moved[item]) if demand.collective.kind == "alltoall" else 0
            here = by * n + target if demand.collective.kind == "alltoall" else by
            rows = slice(here * question.types, here * question.types + question.types)
            result[rows, moved] = arrival[item * question.types : item * question.types + question.types]
    return result


def require_small(demand: Demand, limits: Limits) -> None:
    """Raise C0535 if even the smallest program is too large."""
    if demand.rooted:
        if network_size(demand, demand.steps_bound) > _MOST_LINKS:
            raise too_large(network_size(demand, demand.steps_bound), Limits(columns=_MOST_LINKS))
        return
    size = program_size(demand, Question(demand.steps_bound, 1, 1, demand.folds))
    if size > limits.columns:
        raise too_large(size, limits)


def too_large(size: int, limits: Limits) -> CollcError:
    """Return the error for a network whose programs have at least ``size`` unknowns."""
    return error(
        "C0535",
        f"the network is too large for an exact schedule: the smallest program has at least {size} unknowns",
        notes=[f"the limit is {limits.columns} unknowns"],
        hint="use `bfb`, fewer `chunks`, or raise `size-limit`",
        exit_status=3,
    )
