"""The Pareto front of steps and rounds, and the points on it that a request means."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from collc.ir.diagnostic import CollcError, error

from .demand import Demand
from .known import known_arrivals
from .schedules import Arrivals, rounds_of
from .search import Found, Limits, least_rounds, rounds_bound, rounds_per_item

__all__ = ["chunk_numbers", "front", "require_possible", "within"]

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

    It ends where the bound on rounds is met, or two steps past the fewest where nothing else is said.
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
    if not points:
        raise _unsettled(chunks, None)
    return points


def within(demand: Demand, chunks: int, rounds: int, last: int | None, limits: Limits) -> Found:
    """Return the schedule of the fewest steps that takes at most so many rounds, then of the fewest rounds."""
    starts = [breadth_first(demand)] if demand.spreads else []
    starts += known_arrivals(demand)
    settled = True
    for steps in _range(demand, last):
        found = least_rounds(demand, steps, chunks, limits, starts, most=rounds)
        if found.arrivals is not None:
            return found
        settled = settled and found.impossible
    if not settled:
        raise _unsettled(chunks, rounds)
    raise error(
        "C0536",
        f"there is no schedule of at most {steps} steps and {rounds} rounds with {chunks} chunks a shard",
        notes=["an exhaustive search has shown it"],
        hint="allow more rounds or steps, or other chunks",
        exit_status=3,
    )


def _range(demand: Demand, last: int | None) -> Iterable[int]:
    least = demand.steps_bound
    return range(least, (last or least + _MORE_STEPS) + 1)


def require_possible(demand: Demand, chunks: int | None, steps: int | None, rounds: int | None) -> None:
    """Raise C0536 where a bound shows at once that there is no such schedule."""
    why = None
    if steps is not None and steps < demand.steps_bound:
        source, target = _farthest(demand)
        hops = demand.steps_bound
        why = f"{steps} steps", f"it is {hops} hops from rank {source} to rank {target}", f"allow {hops} steps"
    if chunks is not None and rounds is not None and rounds < rounds_bound(demand, chunks)[0]:
        least, reason = rounds_bound(demand, chunks)
        what = f"{rounds} rounds with {chunks} chunks a shard"
        why = what, f"{least} rounds are needed at least ({reason})", f"allow {least} rounds"
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


def _unsettled(chunks: int, rounds: int | None) -> CollcError:
    wanted = f"of {rounds} rounds " if rounds is not None else ""
    return error(
        "C0540",
        f"the search ended without a schedule {wanted}and without a proof that there is none ({chunks} chunks a shard)",
        hint="raise `effort` or `size-limit`, or ask for fewer chunks",
        exit_status=3,
    )
