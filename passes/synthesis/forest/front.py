"""The numbers of trees worth trying, and of these the fastest at a size.

Few trees are low and lose some bandwidth, many reach the optimum and may be high. So the fastest number depends on the
size. The bandwidth of k trees is known before they are packed (:func:`.optimum.fixed`). Their steps and the loads of
links step by step are not, and they decide at medium sizes. So k up to ``MOST`` are packed: first those of better
bandwidth than all fewer trees, then the others, unless even the least time of their bandwidth and steps is too long at
every size. Counted work limits how many are packed on large networks.

If the best division of an allreduce gives ranks unequal roots, k counts all trees. Then both are tried: k trees of
every rank with equal halves of links, and k trees in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import attrs

from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import DEFAULT_ALPHA, unit_seconds
from collc.ir.effort import limited, within
from collc.ir.schedule import Forest
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.topology import Topology

from .optimum import fixed, is_balanced

if TYPE_CHECKING:
    from .allreduce_optimum import AllreduceOptimum
    from .optimum import Choice
    from .scheduler import ForestScheduler

__all__ = ["MOST", "Grown", "Number", "fastest", "grown", "members", "numbers", "work_limit"]

#: the largest k that is tried besides the optimal one
MOST = 10
#: steps of work on all further trees besides half of what the optimal ones took: half a second, about
_WORK = 1 << 22
#: the same for trees of a single root: there are few, and a low one may be far faster
_WORK_OF_ONE = 1 << 23
#: the same, times the number of pairs of a root and a rank: less on large networks, where a tree has more edges
_WORK_OF_PAIRS = 1 << 33
#: steps of work that an edge of a tree costs after packing
_PER_EDGE = 32
_NO_LIMIT = 1 << 62


@attrs.frozen
class Number:
    """A number of trees of every root, or in all, and the least seconds per byte of M and steps that they take.

    On the ``front`` are numbers whose bandwidth is better than that of all smaller ones. ``division`` is the option of
    :class:`.scheduler.ForestScheduler`; ``known`` is the optimum of an allreduce that trees in all follow.
    """

    k: int
    per_byte: Fraction
    front: bool
    steps: int = 1
    division: Literal["free", "equal"] = "free"
    known: AllreduceOptimum | None = attrs.field(default=None, repr=False, eq=False)

    @property
    def options(self) -> dict[str, int | str]:
        """The options of the scheduler that differ from its defaults."""
        return {"k": self.k} | ({} if self.division == "free" else {"division": self.division})

    def of(self, scheduler: ForestScheduler) -> ForestScheduler:
        """Return a scheduler with these options instead of its own."""
        return attrs.evolve(
            scheduler, k=self.k, division=scheduler.division if self.division == "free" else self.division
        )

    def seconds(self, size: int, latency: Fraction) -> Fraction:
        """Return the least time at a size (bytes), if no message takes less than ``latency`` (seconds)."""
        return self.steps * latency + size * self.per_byte


@attrs.frozen(eq=False)
class Grown:
    """Trees in one piece, and the counted work that they took."""

    forest: Forest | SymmetricForest
    work: int

    @classmethod
    def of(cls, grow: Callable[[], Forest | SymmetricForest]) -> Grown:
        """Return what a function grows."""
        with limited(_NO_LIMIT) as effort:
            forest = grow()
        rows = forest if isinstance(forest, Forest) else forest.seed
        return cls(forest, effort.spent + _PER_EDGE * len(rows.parent))


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
    from .allreduce_trees import divides_boxes, unequal

    known = unequal(ir.topology) if scheduler.divides(ir) else None
    if known is None:
        free = _of_every_root(scheduler, ir, bandwidth)
        both = scheduler.divides(ir) and divides_boxes(ir.topology)
        return (*free, *(attrs.evolve(one, division="equal") for one in free)) if both else free
    equal = _of_every_root(attrs.evolve(scheduler, division="equal"), ir, bandwidth)
    per_byte = unit_seconds(ir.topology, bandwidth) / known.value
    own = known.division.roots[0] if known.has_equal_roots else known.division.trees
    uneven = [Number(k, per_byte, False, known=known, steps=2) for k in range(MOST, 0, -1) if k != own]
    return (*(attrs.evolve(one, division="equal") for one in equal), *uneven)


def _of_every_root(scheduler: ForestScheduler, ir: Problem, bandwidth: Fraction | None) -> tuple[Number, ...]:
    """Return k of every root, which sends as many trees as any other."""
    choices = attrs.evolve(scheduler, k="optimal").choices(ir)
    scale = unit_seconds(ir.topology, bandwidth)
    networks = zip(scheduler.networks(ir), choices, strict=True)
    halves = [_least(topology, supply, choice) for (topology, supply), choice in networks]
    steps, share, least = _least_steps(ir), _share(ir), _least_of_all(scheduler, ir)
    found, best = list[Number](), None
    for k in range(1, MOST + 1):
        if any(half[k - 1] is None for half in halves):
            continue
        # what no allreduce beats is the same for every k: only the half's own time tells numbers apart
        own = share * max(half[k - 1] or 0 for half in halves)
        better = best is None or own < best
        best = own if best is None or better else best
        if k != max(choice.k for choice in choices):
            found.append(Number(k, max(least, own) * scale, better, steps))
    return tuple(sorted(found, key=lambda one: (not one.front, one.k if one.front else -one.k)))


def _least_of_all(scheduler: ForestScheduler, ir: Problem) -> Fraction:
    """Return a time per byte of M that no allreduce beats; 0 for other collectives: a half of theirs is exact."""
    return bound(ir.topology, ir.collective).value if ir.collective.kind == "allreduce" else Fraction(0)


def _least_steps(ir: Problem) -> int:
    """Return the steps that data from every root take at least, inward and outward; a switch takes none."""
    topology, collective = ir.topology, ir.collective
    phases = 2 if collective.kind == "allreduce" else 1
    if not topology.is_direct:
        return phases
    if collective.root is None and collective.kind != "allreduce":
        return topology.diameter or 1
    return phases


def work_limit(ir: Problem, work: int) -> int:
    """Return how many steps of work the further trees may take, if the optimal ones took ``work``."""
    ranks = ir.topology.num_ranks
    if ir.collective.root is not None:
        return min(_WORK_OF_ONE, _WORK_OF_PAIRS // ranks) + work // 2
    return min(_WORK, _WORK_OF_PAIRS // ranks**2) + work // 2


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


def grown(scheduler: ForestScheduler, ir: Problem, most: int, known: AllreduceOptimum | None = None) -> Grown | None:
    """Return the trees of a scheduler; None if they take more than ``most`` steps of work.

    ``known`` is the optimum of an allreduce, if it is solved already.
    """
    found = within(most, lambda: Grown.of(lambda: scheduler.grow(ir, known=known)))
    return None if found is None or found.work > most else found


def members(
    known: Iterable[Number], limit: int, useful: Callable[[Number], bool], grow: Callable[[Number, int], T | None]
) -> Iterator[tuple[Number, T]]:
    """Yield further numbers of trees, with their trees, in at most ``limit`` steps of work for each division.

    A number that is not ``useful`` is skipped. ``grow(number, most)`` returns its trees, or None if they take more than
    ``most`` steps of work.
    """
    left = dict[str, int]()
    for number in known:
        rest = left.setdefault(number.division, limit)
        if rest < 0 or not useful(number):
            continue
        found = grow(number, rest)
        left[number.division] = -1 if found is None or found.work > rest else rest - found.work
        if found is not None and found.work <= rest:
            yield number, found


def fastest(scheduler: ForestScheduler, ir: Problem) -> Forest | SymmetricForest:
    """Return the trees of least predicted time at the collective's size (1 MiB without one), in pieces.

    They are compared in the scheduler's number of pieces, else each in its best number. Of equally fast ones the first
    wins: the optimal ones, as a template on a large symmetric network, else those of fewest trees.
    """
    from collc.ir.costs.pieces import USUAL_SIZE, fastest_pieces, pieces_that_fit

    from .template import template

    size = USUAL_SIZE if ir.collective.size is None else ir.collective.size
    latencies = [kind.latency for kind in ir.topology.classes]
    latency = min(latencies) if any(latencies) else DEFAULT_ALPHA

    def timed(forest: Forest | SymmetricForest) -> tuple[Fraction, int]:
        among = None if scheduler.pieces is None else (scheduler.pieces,)
        return fastest_pieces(forest, size, most=pieces_that_fit(forest), among=among)

    optimal = attrs.evolve(scheduler, k="optimal")
    first = Grown.of(lambda: template(optimal, ir) or optimal.grow(ir))
    found = [(*timed(first.forest), 0, first.forest)]

    def useful(number: Number) -> bool:
        return number.seconds(size, latency) < min(one[0] for one in found)

    def grow(number: Number, most: int) -> Grown | None:
        return grown(number.of(scheduler), ir, most, number.known)

    if ir.topology.num_ranks > 1:
        for _, one in members(numbers(optimal, ir), work_limit(ir, first.work), useful, grow):
            found.append((*timed(one.forest), one.forest.num_trees, one.forest))
    _, pieces, _, best = min(found, key=lambda one: (one[0], one[2]))
    return attrs.evolve(best, pieces=pieces) if isinstance(best, Forest) else best.revised(pieces=pieces)
