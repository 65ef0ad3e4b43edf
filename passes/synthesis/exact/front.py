"""The Pareto front of steps and rounds, and the points on it that a request means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from collc.ir.diagnostic import CollcError, error

from .demand import Demand
from .known import known_arrivals
from .schedules import Arrivals, rounds_of
from .search import Found, Limits, least_rounds, rounds_bound, rounds_per_item

__all__ = ["chunk_numbers", "front", "require_possible", "together", "unsettled", "within"]

_MORE_STEPS = 2  # how far past the fewest steps a front goes where nobody says
_MOST_CHUNKS = 12  # chunk numbers above are tried only when asked for
_GRAINS = 8
_MANY_RANKS = 64


def chunk_numbers(demand: Demand) -> tuple[int, ...]:
    """Return numbers of chunks worth trying: at which the network's cuts could be met, and what breadth first needs."""
    bound = rounds_per_item(demand)[0]
    numbers = [bound.denominator, _first_grain(demand, bound) if demand.spreads else 1]
    numbers += [arrivals.chunks for arrivals in known_arrivals(demand)]
    return tuple(dict.fromkeys(n for n in numbers if n <= _MOST_CHUNKS))


def _first_grain(demand: Demand, bound: Fraction) -> int:
    """Return the number of chunks, the fewest of the best, at which breadth first takes the least bandwidth time."""
    first, best = breadth_first(demand), (Fraction(0), 0)
    for grain in range(1, _GRAINS + 1):
        share = Fraction(_rounds(demand, first, grain), grain)
        best = min(best, (share, grain)) if best[1] else (share, grain)
        if share == bound or demand.num_ranks > _MANY_RANKS:
            break
    return best[1]


def breadth_first(demand: Demand) -> Arrivals:
    """Return the arrivals in which everything comes as early as it can: the breadth-first broadcast."""
    return Arrivals(1, 1, demand.topology.distances[demand.source, : demand.num_ranks].astype(np.int64))


def _rounds(demand: Demand, arrivals: Arrivals, grain: int) -> int:
    return sum(rounds_of(demand, Arrivals(arrivals.types, grain, arrivals.step)))


def front(demand: Demand, chunks: int, last: int | None, limits: Limits) -> list[Found]:
    """Return the best for every number of steps up to ``last`` that takes fewer rounds than all before.

    It ends where the bound on rounds is met, or two steps past the fewest where nothing else is said; it is empty where
    nothing was found within the limits.
    """
    bound = rounds_bound(demand, chunks)[0]
    starts = [breadth_first(demand)] if demand.spreads else []
    starts += known_arrivals(demand)
    points: list[Found] = []
    for steps in _range(demand, last):
        found = least_rounds(demand, steps, chunks, limits, starts)
        if found.arrivals is None or found.rounds is None:
            continue
        if not points or found.rounds < (points[-1].rounds or 0):
            points.append(found)
            starts = [*starts, found.arrivals]
        if found.rounds == bound:
            break
    return points


def within(demand: Demand, chunks: int, rounds: int, last: int | None, limits: Limits) -> Found:
    """Return the schedule of the fewest steps that takes at most so many rounds, then of the fewest rounds."""
    starts = [breadth_first(demand)] if demand.spreads else []
    starts += known_arrivals(demand)
    tried: list[Found] = []
    for steps in _range(demand, last):
        tried.append(least_rounds(demand, steps, chunks, limits, starts, most=rounds))
        if tried[-1].arrivals is not None:
            return tried[-1]
    least = min(found.least for found in tried)
    if not all(found.impossible for found in tried):
        raise unsettled(chunks, rounds, [f"{max(least, rounds_bound(demand, chunks)[0])} rounds are needed at least"])
    raise _none(f"at most {tried[-1].steps} steps and {rounds} rounds", chunks, max(least, rounds + 1))


def together(fronts: Sequence[Sequence[Found]], steps: int | None, rounds: int | None) -> tuple[Found, ...]:
    """Return the points, one of every front, that take no more than so many steps and rounds together.

    Where rounds are limited they are of the fewest steps, then the fewest rounds, else the other way round.
    """
    pairs = [points for points in product(*fronts) if steps is None or sum(p.taken for p in points) <= steps]
    fit = [points for points in pairs if rounds is None or sum(p.rounds or 0 for p in points) <= rounds]

    def rank(points: tuple[Found, ...]) -> tuple[Fraction | int, ...]:
        taken, share = sum(p.taken for p in points), sum((p.share for p in points), Fraction(0))
        return (share, taken) if rounds is None else (taken, share)

    if fit:
        return min(fit, key=rank)
    chunks = fronts[0][0].chunks
    least = min(sum(p.rounds or 0 for p in points) for points in pairs)
    if not all(p.proved for front in fronts for p in front):
        raise unsettled(chunks, rounds, [f"the best found takes {least} rounds"])
    most = steps or max(sum(p.steps for p in points) for points in pairs)
    raise _none(f"at most {most} steps and {rounds} rounds", chunks, least)


def _none(what: str, chunks: int, least: int) -> CollcError:
    return error(
        "C0536",
        f"there is no schedule of {what} with {chunks} chunks a shard",
        notes=[f"an exhaustive search has shown it: {least} rounds are needed at least"],
        hint="allow more rounds or steps, or other chunks",
        exit_status=3,
    )


def _range(demand: Demand, last: int | None) -> Iterable[int]:
    least = demand.steps_bound
    return range(least, (last or least + _MORE_STEPS) + 1)


def require_possible(
    demands: Sequence[Demand], chunks: int | None, steps: int | None, rounds: int | None
) -> None:  # fmt: skip
    """Raise C0536 where a bound shows at once that there is no such schedule: for an allreduce, of both its phases."""
    why, hops = None, sum(demand.steps_bound for demand in demands)
    both = f", {hops} in both phases" if len(demands) > 1 else ""
    if steps is not None and steps < hops:
        source, target = _farthest(demands[0])
        note = f"it is {demands[0].steps_bound} hops from rank {source} to rank {target}{both}"
        why = f"{steps} steps", note, f"allow {hops} steps"
    if chunks is not None and rounds is not None:
        bounds = [rounds_bound(demand, chunks) for demand in demands]
        least, reason = sum(bound for bound, _ in bounds), bounds[0][1]
        if rounds < least:
            what = f"{rounds} rounds with {chunks} chunks a shard"
            phases = " in both phases" if len(demands) > 1 else ""
            why = what, f"{least} rounds are needed at least{phases} ({reason})", f"allow {least} rounds"
    if why:
        raise error(
            "C0536",
            f"there is no schedule of {why[0]}",
            notes=[why[1]],
            hint=why[2],
            exit_status=3,
        )


def _farthest(demand: Demand) -> tuple[str, str]:
    hops = np.where(demand.wanted, demand.topology.distances[demand.source, : demand.num_ranks], -1)
    item, rank = np.unravel_index(int(hops.argmax()), hops.shape)
    names = demand.topology.names
    return names[int(demand.source[item])], names[int(rank)]


def unsettled(chunks: int, rounds: int | None, notes: Sequence[str] = ()) -> CollcError:
    """Return the mistake of a search that ended at its limits with nothing."""
    wanted = f"of {rounds} rounds " if rounds is not None else ""
    return error(
        "C0540",
        f"the search ended without a schedule {wanted}and without a proof that there is none ({chunks} chunks a shard)",
        notes=list(notes),
        hint="raise `effort` or `size-limit`, or ask for fewer chunks",
        exit_status=3,
    )
