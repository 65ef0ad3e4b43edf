"""Search networks of N nodes that are smaller polycirculants with a few nodes inserted, for N with few divisors.

A prime has no polycirculants but circulants, which take many steps. But the number one less has good ones, and a node
in the middle of d/2 of their cables costs little bandwidth time. For odd d two nodes are inserted, with a cable between
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

from .bits import MOST_LINKS, balls
from .evaluate import load_unit
from .exclude import NOTHING, Excluded
from .found import Found, pareto
from .polycirculants import Lift, best_lifts, periods
from .turns import below

__all__ = ["search_inserted"]

_BASES = 2  # numbers of steps of the base, from the least
_SETS_OF_LINKS = 50  # of all nodes, for each evaluation that may be spent
_SEVERAL = 3  # periods of a good base
_FEW_PERIODS: tuple[list[int], ...] = ([], [2])  # of sizes whose own polycirculants take many steps

Edge = tuple[int, int]


def search_inserted(
    nodes: int, degree: int, *, evaluations: int = 2000, seed: int = 0, exclude: Excluded = NOTHING
) -> list[Found]:
    """Return the frontier of what a search finds; empty for numbers of nodes that have polycirculants of several
    periods, and for more than :data:`.bits.MOST_LINKS` links. The same arguments give the same result.
    """
    allowed = exclude.allows("inserted(polycirculant())")
    if not allowed or not 2 < degree <= MOST_LINKS or nodes * degree % 2 or periods(nodes) not in _FEW_PERIODS:
        return []
    # every new node gets an even number of links from cut cables
    new = max(range(1 + degree % 2, degree, 2), key=lambda count: (min(len(periods(nodes - count)), _SEVERAL), -count))
    best = best_lifts(nodes - new, degree, evaluations=evaluations, seed=seed)
    tries = max(_SETS_OF_LINKS * evaluations // (nodes << degree), _BASES)
    random, found = Random(f"{nodes} {degree} {seed} inserted"), list[Found]()
    for steps in sorted(best)[:_BASES]:
        found += _tried(best[steps][1], new, tries // _BASES, random)
    return pareto(found)


def _tried(lift: Lift, new: int, tries: int, random: Random) -> list[Found]:
    """Insert nodes at random places, and return every network that is better than those before it."""
    adjacent, found = _adjacent(lift), list[Found]()
    nodes, degree, most = lift.nodes + new, lift.degree, None
    for _ in range(tries):
        cables = _cables(adjacent, new * (degree - new + 1) // 2, random)
        seen = balls(_with_inserted(adjacent, cables, new), nodes, degree, nodes)
        load = None if seen.unreached else seen.load(most)
        if load is None:
            continue
        most = load - 1
        bandwidth = Fraction(degree * load, load_unit(degree) * nodes)
        found.append(Found(_expression(lift, cables, new), nodes, degree, seen.steps, bandwidth, seen.steps, True))
    return found


def _adjacent(lift: Lift) -> list[list[int]]:
    first = lift.neighbours or []
    own = [node % lift.period for node in range(lift.nodes)]
    return [[(head + node - like) % lift.nodes for head in first[like]] for node, like in enumerate(own)]


def _cables(adjacent: Sequence[Sequence[int]], count: int, random: Random) -> list[Edge]:
    """Draw cables without common ends, in the order of the language's sets of links."""
    used, cables = set[int](), list[Edge]()
    while len(cables) < count:
        one = below(len(adjacent), random)
        two = adjacent[one][below(len(adjacent[one]), random)]
        if used.isdisjoint((one, two)):
            used |= {one, two}
            cables.append((one, two))
    return cables


def _with_inserted(adjacent: Sequence[Sequence[int]], cables: Sequence[Edge], new: int) -> list[list[int]]:
    """Return the neighbours of all nodes; the new ones share the cables in turn, as in the operator `inserted`."""
    result, first, share = [list(own) for own in adjacent], len(adjacent), len(cables) // new
    for node in range(new):
        middle = first + node
        result.append([other for other in range(first, first + new) if other != middle])
        for one, two in cables[node * share : (node + 1) * share]:
            result[one][result[one].index(two)] = middle
            result[two][result[two].index(one)] = middle
            result[middle] += [one, two]
    return result


def _expression(lift: Lift, cables: Sequence[Edge], new: int) -> str:
    shown = ", ".join(f"{one} <-> {two}" for one, two in cables)
    return f"inserted({lift.expression}, {{{shown}}}{f', {new}' if new > 1 else ''})"
