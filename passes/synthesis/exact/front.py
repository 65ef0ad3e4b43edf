"""The Pareto front of steps and rounds, and the points on it that satisfy a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from collc.ir.diagnostic import CollcError, Subject, error

from .demand import Demand
from .known import known_arrivals
from .schedules import Arrivals, rounds_of
from .search import Found, Limits, least_rounds, rounds_bound, rounds_per_item

__all__ = ["best_combination", "chunk_numbers", "fewest_steps", "front", "require_possible", "undecided"]

_MORE_STEPS = 2  # default: a front ends this many steps past the fewest
_MOST_CHUNKS = 12  # larger numbers of chunks are tried only if the user gives them
_GRAINS = 8
_MANY_RANKS = 64


def chunk_numbers(demand: Demand) -> tuple[int, ...]:
    """Return numbers of chunks to try: those that could meet the network's cuts, and those of breadth first."""
    bound = rounds_per_item(demand)[0]
    numbers = [bound.denominator, _first_grain(demand, bound) if demand.spreads else 1]
    numbers += [arrivals.chunks for arrivals in known_arrivals(demand)]
    return tuple(dict.fromkeys(n for n in numbers if n <= _MOST_CHUNKS))


def _first_grain(demand: Demand, bound: Fraction) -> int:
    """Return the smallest number of chunks at which breadth first takes its least bandwidth time."""
    first, best = breadth_first(demand), (Fraction(0), 0)
    for grain in range(1, _GRAINS + 1):
        share = Fraction(_rounds(demand, first, grain), grain)
        best = min(best, (share, grain)) if best[1] else (share, grain)
        if share == bound or demand.num_ranks > _MANY_RANKS:
            break
    return best[1]


def breadth_first(demand: Demand) -> Arrivals:
    """Return the earliest possible arrivals: the breadth-first broadcast."""
    return Arrivals(1, 1, demand.topology.distances[demand.source, : demand.num_ranks].astype(np.int64))


def _rounds(demand: Demand, arrivals: Arrivals, grain: int) -> int:
    return sum(rounds_of(demand, Arrivals(arrivals.types, grain, arrivals.step)))


def front(demand: Demand, chunks: int, last: int | None, limits: Limits) -> list[Found]:
    """Return the best schedule for every number of steps up to ``last`` that takes fewer rounds than all before.

    The front ends where the bound on rounds is met, or by default two steps past the fewest. It is empty if the search
    found no schedule within the limits.
    """
    bound = rounds_bound(demand, chunks)[0]
    starts = [breadth_first(demand)] if demand.spreads else []
    starts += known_arrivals(demand)
    points: list[Found] = []
    for steps in _step_range(demand, last):
        found = least_rounds(demand, steps, chunks, limits, starts)
        if found.arrivals is None or found.rounds is None:
            continue
        if not points or found.rounds < (points[-1].rounds or 0):
            points.append(found)
            starts = [*starts, found.arrivals]
        if found.rounds == bound:
            break
    return points


def fewest_steps(demand: Demand, chunks: int, rounds: int, last: int | None, limits: Limits) -> Found:
    """Return the schedule of the fewest steps, then of the fewest rounds, that takes at most ``rounds`` rounds."""
    starts = [breadth_first(demand)] if demand.spreads else []
    starts += known_arrivals(demand)
    tried: list[Found] = []
    for steps in _step_range(demand, last):
        tried.append(least_rounds(demand, steps, chunks, limits, starts, most=rounds))
        if tried[-1].arrivals is not None:
            return tried[-1]
    least = min(found.least for found in tried)
    if not all(found.impossible for found in tried):
        raise undecided(chunks, rounds, [f"at least {max(least, rounds_bound(demand, chunks)[0])} rounds are needed"])
    raise _no_schedule(f"at most {tried[-1].steps} steps and {rounds} rounds", chunks, max(least, rounds + 1))


def best_combination(fronts: Sequence[Sequence[Found]], steps: int | None, rounds: int | None) -> tuple[Found, ...]:
    """Return the best points, one of every front, that together take at most ``steps`` steps and ``rounds`` rounds.

    If rounds are limited, the best have the fewest steps, then the fewest rounds; otherwise the reverse.
    """
    pairs = [points for points in product(*fronts) if steps is None or sum(p.steps_taken for p in points) <= steps]
    fit = [points for points in pairs if rounds is None or sum(p.rounds or 0 for p in points) <= rounds]

    def rank(points: tuple[Found, ...]) -> tuple[Fraction | int, ...]:
        steps_taken, share = sum(p.steps_taken for p in points), sum((p.share for p in points), Fraction(0))
        return (share, steps_taken) if rounds is None else (steps_taken, share)

    if fit:
        return min(fit, key=rank)
    chunks = fronts[0][0].chunks
    least = min(sum(p.rounds or 0 for p in points) for points in pairs)
    if not all(p.proved for front in fronts for p in front):
        raise undecided(chunks, rounds, [f"the best found takes {least} rounds"])
    most = steps or max(sum(p.steps for p in points) for points in pairs)
    raise _no_schedule(f"at most {most} steps and {rounds} rounds", chunks, least)


def _no_schedule(what: str, chunks: int, least: int) -> CollcError:
    return error(
        "C0536",
        f"there is no schedule of {what} with {chunks} chunks a shard",
        notes=[f"an exhaustive search proves that at least {least} rounds are needed"],
        hint="allow more rounds or steps, or other chunks",
        exit_status=3,
        option="rounds",
        about=(Subject.COLLECTIVE, Subject.TOPOLOGY),
    )


def _step_range(demand: Demand, last: int | None) -> Iterable[int]:
    least = demand.steps_bound
    return range(least, (last or least + _MORE_STEPS) + 1)


def require_possible(
    demands: Sequence[Demand], chunks: int | None, steps: int | None, rounds: int | None
) -> None:  # fmt: skip
    """Raise C0536 if a bound proves that there is no such schedule; for an allreduce, the bound of both phases."""
    why, option, hops = None, "steps", sum(demand.steps_bound for demand in demands)
    both = f", {hops} in both phases" if len(demands) > 1 else ""
    if steps is not None and steps < hops:
        source, target = _farthest(demands[0])
        note = f"rank {target} is {demands[0].steps_bound} hops from rank {source}{both}"
        why = f"{steps} steps", note, f"allow {hops} steps"
    if chunks is not None and rounds is not None:
        bounds = [rounds_bound(demand, chunks) for demand in demands]
        least, reason = sum(bound for bound, _ in bounds), bounds[0][1]
        if rounds < least:
            what = f"{rounds} rounds with {chunks} chunks a shard"
            phases = " in both phases" if len(demands) > 1 else ""
            why = what, f"at least {least} rounds are needed{phases} ({reason})", f"allow {least} rounds"
            option = "rounds"
    if why:
        raise error(
            "C0536",
            f"there is no schedule of {why[0]}",
            notes=[why[1]],
            hint=why[2],
            exit_status=3,
            option=option,
            about=(Subject.COLLECTIVE, Subject.TOPOLOGY),
        )


def _farthest(demand: Demand) -> tuple[str, str]:
    hops = np.where(demand.required, demand.topology.distances[demand.source, : demand.num_ranks], -1)
    item, rank = np.unravel_index(int(hops.argmax()), hops.shape)
    names = demand.topology.names
    return names[int(demand.source[item])], names[int(rank)]


def undecided(chunks: int, rounds: int | None, notes: Sequence[str] = ()) -> CollcError:
    """Return the error of a search that ended at its limits without a schedule."""
    limit = f"of {rounds} rounds " if rounds is not None else ""
    return error(
        "C0540",
        f"the search ended without a schedule {limit}and without a proof that there is none ({chunks} chunks a shard)",
        notes=list(notes),
        hint="raise `effort` or `size-limit`, or ask for fewer chunks",
        exit_status=3,
    )
