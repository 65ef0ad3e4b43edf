"""The numbers of trees worth trying, and of these the fastest at a size.

Few trees are low and lose some bandwidth, many reach the optimum and may be high. So the fastest number depends on the
size. The bandwidth of k trees is known before they are packed (:func:`.optimum.fixed`). Their steps and the loads of
links step by step are not, and they decide at medium sizes. So k up to ``MOST`` are packed: first those of better
bandwidth than all fewer trees, then the others, unless even the least time of their bandwidth is too long at every
size. Counted work limits how many are packed on large networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from collc.ir.costs.cost import unit_seconds
from collc.ir.effort import limited, within
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from .optimum import fixed, is_balanced

if TYPE_CHECKING:
    from .optimum import Choice
    from .scheduler import ForestScheduler

__all__ = ["MOST", "Grown", "Number", "fastest", "grown", "members", "numbers", "work_limit"]

#: the largest k that is tried besides the optimal one
MOST = 10
#: steps of work on all further trees besides half of what the optimal ones took: half a second, about
_WORK = 1 << 22
#: the same, times the number of pairs of a root and a rank: less on large networks, where a tree has more edges
_WORK_OF_PAIRS = 1 << 33
#: steps of work that an edge of a tree costs after packing
_PER_EDGE = 32
_NO_LIMIT = 1 << 62


@attrs.frozen
class Number:
    """A number of trees a root, and the least seconds per byte of M that they take.

    On the ``front`` are numbers whose bandwidth is better than that of all smaller ones.
    """

    k: int
    per_byte: Fraction
    front: bool


@attrs.frozen(eq=False)
class Grown:
    """Trees in one piece, and the counted work that they took."""

    forest: Forest
    work: int

    @classmethod
    def of(cls, grow: Callable[[], Forest]) -> Grown:
        """Return what a function grows."""
        with limited(_NO_LIMIT) as effort:
            forest = grow()
        return cls(forest, effort.spent + _PER_EDGE * len(forest.parent))


class Worked(Protocol):
    """Trees that know the steps of work that they took."""

    @property
    def work(self) -> int:
        """The steps of work."""
        raise NotImplementedError


T = TypeVar("T", bound=Worked)


def numbers(scheduler: ForestScheduler, ir: Problem, bandwidth: Fraction | None = None) -> tuple[Number, ...]:
    """Return the k up to ``MOST`` in the order in which they are tried, without the optimal one.

    ``bandwidth`` is as in :func:`~collc.ir.costs.cost.unit_seconds`.
    """
    choices = attrs.evolve(scheduler, k="optimal").choices(ir)
    scale = unit_seconds(ir.topology, bandwidth) * _share(ir)
    networks = zip(scheduler.networks(ir), choices, strict=True)
    halves = [_least(topology, supply, choice) for (topology, supply), choice in networks]
    found, best = list[Number](), None
    for k in range(1, MOST + 1):
        if any(half[k - 1] is None for half in halves):
            continue
        per_byte = max(half[k - 1] or 0 for half in halves) * scale
        better = best is None or per_byte < best
        best = per_byte if best is None or better else best
        if k != max(choice.k for choice in choices):
            found.append(Number(k, per_byte, better))
    return tuple(sorted(found, key=lambda one: (not one.front, one.k if one.front else -one.k)))


def work_limit(ir: Problem, work: int) -> int:
    """Return how many steps of work the further trees may take, if the optimal ones took ``work``."""
    ranks = ir.topology.num_ranks
    return min(_WORK, _WORK_OF_PAIRS // (ranks * (ranks if ir.collective.root is None else 1))) + work // 2


def _least(topology: Topology, supply: list[int], choice: Choice) -> list[Fraction | None]:
    """Return the least time of a rank's shard per byte by 1 to ``MOST`` trees.

    None: rounding leaves a switch with more trees in than out, or more out than in.
    """
    found, cuts = list[Fraction | None](), dict.fromkeys([choice.optimum.cut])
    if not choice.optimum.cut:
        return [Fraction(0)] * MOST
    for k in range(1, MOST + 1):
        one = fixed(topology, supply, k, list(cuts))
        cuts[one.cut] = None
        fits = topology.is_direct or is_balanced(topology, one.per_unit)
        found.append(one.one_over_x if fits else None)
    return found


def _share(ir: Problem) -> Fraction:
    """Return the part of M that is a unit of supply."""
    weights = ir.collective.weights
    if weights is not None:
        return Fraction(gcd(*weights), ir.collective.whole)
    return Fraction(1) if ir.collective.root is not None else Fraction(1, ir.topology.num_ranks)


def grown(scheduler: ForestScheduler, ir: Problem, most: int) -> Grown | None:
    """Return the trees of a scheduler; None if they take more than ``most`` steps of work."""

    found = within(most, lambda: Grown.of(lambda: scheduler.grow(ir)))
    return None if found is None or found.work > most else found


def members(
    known: Iterable[Number], left: int, useful: Callable[[Number], bool], grow: Callable[[int, int], T | None]
) -> Iterator[tuple[int, T]]:
    """Yield further numbers of trees, with their trees, in at most ``left`` steps of work.

    A number that is not ``useful`` is skipped. ``grow(k, most)`` returns k
    trees a root, or None if they take more than ``most`` steps of work.
    """
    for number in known:
        if not useful(number):
            continue
        found = grow(number.k, left)
        if found is None or found.work > left:
            return
        left -= found.work
        yield number.k, found


def fastest(scheduler: ForestScheduler, ir: Problem) -> Forest:
    """Return the trees of least predicted time at the collective's size (1 MiB without one), in pieces.

    They are compared in the scheduler's number of pieces, else each in its best number. Of equally fast ones the first
    wins: the optimal ones, else those of fewest trees.
    """
    from collc.ir.costs.pieces import USUAL_SIZE, fastest_pieces, pieces_that_fit

    size = USUAL_SIZE if ir.collective.size is None else ir.collective.size

    def timed(forest: Forest) -> tuple[Fraction, int]:
        among = None if scheduler.pieces is None else (scheduler.pieces,)
        return fastest_pieces(forest, size, most=pieces_that_fit(forest), among=among)

    optimal = attrs.evolve(scheduler, k="optimal")
    first = Grown.of(lambda: optimal.grow(ir))
    found = [(*timed(first.forest), 0, first.forest)]

    def useful(number: Number) -> bool:
        return size * number.per_byte < min(one[0] for one in found)

    if ir.topology.num_ranks > 1:
        known, limit = numbers(optimal, ir), work_limit(ir, first.work)
        for k, one in members(known, limit, useful, lambda k, most: grown(attrs.evolve(scheduler, k=k), ir, most)):
            found.append((*timed(one.forest), k, one.forest))
    _, pieces, _, best = min(found, key=lambda one: (one[0], one[2]))
    return attrs.evolve(best, pieces=pieces)
