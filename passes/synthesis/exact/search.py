"""The least bandwidth in so many steps and chunks: bounds, then what is known, then programs of growing size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

import attrs
import numpy as np

from collc.ir.bounds import time_per_byte_bound
from collc.ir.diagnostic import CollcError, error

from .demand import Demand
from .model import Answer, Question, program_size, solve
from .rooted import network_size, shortest
from .schedules import Arrivals, rounds_of

__all__ = ["Found", "Limits", "least_rounds", "require_small", "rounds_bound", "rounds_per_item", "too_large"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_LINKS = 1 << 15  # of a network of ranks and times
_WORK = 600_000


@attrs.define
class Limits:
    """How far searches go: what all of them do together, and the unknowns of a program.

    Counted, not timed: the same on every machine. A program of k thousand unknowns may search ``effort`` / k nodes. A
    question of the solver (:func:`...solver.run`) counts (unknowns)^1.5, about what the work before it grows by; all
    programs together may take ``_WORK`` times ``effort``, one of them a third.
    """

    effort: int = 100
    columns: int = 20_000
    left: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.left = _WORK * self.effort

    def solve(self, demand: Demand, ask: Question, size: int) -> Answer | None:
        """Put a question to the solver, or return nothing where that is beyond the limits."""
        each = size * isqrt(size) + 1
        questions = min(self.left, _WORK * self.effort // 3) // each
        if size > self.columns or questions == 0:
            return None
        answer = solve(demand, ask, max(1, 1000 * self.effort // max(1, size)), questions)
        self.left -= answer.questions * each
        return answer


@attrs.frozen(eq=False)
class Found:
    """The best schedule found for some steps and chunks, and what is proved about it.

    ``least`` rounds are needed, because of ``reason``; ``arrivals`` takes ``rounds``, or is nothing where no schedule
    was found: then there is none if ``impossible``.
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
        """Rounds for items of one chunk: what chunks of different sizes compare by."""
        return Fraction(self.rounds or 0, self.chunks)

    @property
    def taken(self) -> int:
        """The steps that the schedule takes, at most ``steps``."""
        return self.arrivals.last if self.arrivals is not None else 0

    @property
    def label(self) -> str:
        """What the schedule says of itself: the scheduler, and the gap where there is one."""
        gap = f" (not proved: {self.rounds} rounds, at least {self.least})"
        return "exact" if self.proved else f"exact{gap}"

    @property
    def proved(self) -> bool:
        """Whether nothing better exists with so many steps and chunks."""
        return self.impossible or self.rounds == self.least


def rounds_per_item(demand: Demand) -> tuple[Fraction, str]:
    """Return the least rounds for items of one chunk that the network's cuts allow, and the cut's name."""
    bound, cut = time_per_byte_bound(demand.topology, demand.collective)
    return bound * demand.items_per_vector * demand.unit, cut


def rounds_bound(demand: Demand, chunks: int) -> tuple[int, str]:
    """Return the least rounds for so many chunks an item, and why: a cut of the network, or the steps there must be."""
    bound, cut = rounds_per_item(demand)
    steps = demand.steps_bound
    rounds = ceil(bound * chunks)
    if rounds < steps:
        return steps, f"the diameter: {steps} steps of one round at least"
    return rounds, f"bandwidth: {cut}"


def least_rounds(
    demand: Demand, steps: int, chunks: int, limits: Limits, starts: Sequence[Arrivals] = (), most: int | None = None
) -> Found:
    """Return the schedule of the fewest rounds, at most ``most``, in at most so many steps.

    ``starts`` are arrivals that are known to do; those that fit are upper bounds.
    """
    least, reason = rounds_bound(demand, chunks)
    if demand.rooted:
        return _rooted(demand, steps, chunks, most, least, reason)
    best, rounds = None, (most + 1 if most is not None else None)
    for start in starts:
        if start.last <= steps and chunks % start.chunks == 0:
            start = attrs.evolve(start, grain=start.grain * (chunks // start.chunks))
            taken = sum(rounds_of(demand, start))
            if rounds is None or taken < rounds:
                best, rounds = start, taken
    if rounds is not None and rounds <= least:
        return Found(steps, chunks, rounds if best else None, best, least, reason, impossible=best is None)
    smallest: int | None = None
    for types, folded in _attempts(demand, chunks):
        ask = Question(steps, types, chunks // types, folded, least, None if rounds is None else rounds - 1)
        size = program_size(demand, ask)
        smallest = size if smallest is None else min(size, smallest)
        answer = limits.solve(demand, ask, size)
        if answer is None:
            continue
        if answer.arrival is not None:
            best = Arrivals(types, chunks // types, _unfolded(demand, answer.arrival, ask))
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
    """Return what :func:`least_rounds` does of a gather or scatter, by flows."""
    found = shortest(demand, steps, chunks)
    if found.least > least:
        least, reason = found.least, "cuts of the network over time"
    if most is not None and found.rounds > most:
        return Found(steps, chunks, None, None, least, reason, impossible=least > most)
    return Found(steps, chunks, found.rounds, found.arrivals, least, reason)


def _attempts(demand: Demand, chunks: int) -> Iterator[tuple[int, bool]]:
    """Yield (types, folded): programs from the smallest to the one that leaves nothing out."""
    divisors = [k for k in range(1, chunks + 1) if chunks % k == 0]
    if demand.folds:
        yield from ((types, True) for types in divisors)
    yield from ((types, False) for types in divisors)


def _unfolded(demand: Demand, arrival: Array, ask: Question) -> Array:
    """Return the arrivals of all pieces from those of rank 0's items."""
    if not ask.folded:
        return arrival
    group, n = demand.topology.symmetry, demand.num_ranks
    assert group is not None
    ranks = np.arange(n)
    result = np.empty((len(demand.source) * ask.types, n), dtype=arrival.dtype)
    for by in range(n):
        moved = group.translate(ranks, np.full(n, by))
        for item in range(demand.folded_items):
            target = int(moved[item]) if demand.collective.kind == "alltoall" else 0
            here = by * n + target if demand.collective.kind == "alltoall" else by
            rows = slice(here * ask.types, here * ask.types + ask.types)
            result[rows, moved] = arrival[item * ask.types : item * ask.types + ask.types]
    return result


def require_small(demand: Demand, limits: Limits) -> None:
    """Raise C0535 where even the smallest program is too large."""
    if demand.rooted:
        if network_size(demand, demand.steps_bound) > _MOST_LINKS:
            raise too_large(network_size(demand, demand.steps_bound), Limits(columns=_MOST_LINKS))
        return
    size = program_size(demand, Question(demand.steps_bound, 1, 1, demand.folds))
    if size > limits.columns:
        raise too_large(size, limits)


def too_large(size: int, limits: Limits) -> CollcError:
    """Return the mistake of a network whose programs have at least ``size`` unknowns."""
    return error(
        "C0535",
        f"the network is too large for an exact schedule: the smallest program has {size} unknowns or more",
        notes=[f"the limit is {limits.columns}"],
        hint="use `bfb`, fewer `chunks`, or raise `size-limit`",
        exit_status=3,
    )
