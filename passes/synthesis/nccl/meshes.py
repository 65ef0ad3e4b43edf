"""Full meshes: all hops between n places, divided into Hamiltonian cycles, or into Hamiltonian paths.

The n (n - 1) hops are n - 1 cycles through all places for every n but 4 and 6. They are n paths through all places for
every n but 3 and 5: a cycle of one place more, without that place, is a path. Tillson (A Hamiltonian decomposition of
K*_2m, 2m >= 8, 1980) shows that the cycles exist. The constructions here are these:

*Odd n = 2 m + 1* (Walecki). The places are a hub and the numbers modulo 2 m. For every k below m, the hub and the
numbers k, k + 1, k - 1, k + 2, .. are a cycle. Each cycle is used in both directions.

*Even n = 2 m.* The places are a hub and the numbers modulo 2 m - 1. For each sum s, two numbers of sum s are
neighbours, and so are the hub and the number that is half of s. The hops of two consecutive sums are a cycle, in both
directions. The hops of the last five sums, -2 to 2, are five cycles by a table of colors. Their hops join numbers of
similar absolute value, so they are a long strip of equal levels: n and -n are level n. Two more levels, with colors of
their own, can be inserted again and again. So the tables for 10 and 12 places give those for all larger numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["mesh_cycles", "mesh_paths", "paths_between"]

_SUMS = (-2, -1, 0, 1, 2)
#: for each number of places, the color of the hop of each sum: from the hub, then from the numbers, ascending
_COLORS = {
    8: "04321 20314 04321 21340 32401 32140 14032 23014",
    10: "23140 24013 40312 32104 40132 01234 21043 01342 21043 10342",
    12: "32104 03412 32104 01423 23014 04123 01324 31402 14203 30142 12403 04132",
}
#: the same for the numbers of two more levels, ascending; they follow level 2
_INSERTED = {10: "23104 40132 21043 01342", 12: "32014 01423 30142 14203"}
_KEPT_LEVELS, _INSERTED_LEVELS = 2, 2


def mesh_cycles(size: int) -> list[tuple[int, ...]] | None:
    """Return ``size`` - 1 cycles through 0 .. ``size`` - 1 that use each hop once; None if none exist.

    >>> mesh_cycles(3), mesh_cycles(4)
    ([(2, 0, 1), (1, 0, 2)], None)
    """
    if size in (4, 6) or size < 2:
        return None
    if size == 2:
        return [(0, 1)]
    return _odd(size // 2) if size % 2 else _even(size // 2)


def mesh_paths(size: int) -> list[tuple[int, ...]] | None:
    """Return ``size`` paths through 0 .. ``size`` - 1 that use each hop once; None if none exist.

    They begin at different places and end at different places. If a path leads from a to b, another one leads from b
    to a, except for three paths of an odd ``size``: these lead from a to b, from b to c and from c to a.

    >>> mesh_paths(2), mesh_paths(3)
    ([(0, 1), (1, 0)], None)
    """
    cycles = mesh_cycles(size + 1)
    return None if cycles is None else [_from(cycle, size)[1:] for cycle in cycles]


def paths_between(size: int, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]] | None:
    """Return a path for each pair of ends, (first, last), among those of :func:`mesh_paths` with other names.

    None if the ends do not match those of the paths.
    """
    paths, following = mesh_paths(size), dict(ends)
    if paths is None or not len(following) == len({last for _, last in ends}) == len(ends):
        return None
    known = {path[0]: path for path in paths}
    pairs: list[tuple[int, ...]] = [(a, path[-1]) for a, path in known.items() if known[path[-1]][-1] == a > path[-1]]
    others = (path for a, path in known.items() if known[path[-1]][-1] != a)
    triples: list[tuple[int, ...]] = [(path[0], path[-1], known[path[-1]][-1]) for path in others]
    free, named = {2: pairs, 3: triples[:1]}, dict[int, int]()
    for chain in _chains(following):
        if not free.get(len(chain)):
            return None
        named.update(zip(free[len(chain)].pop(), chain, strict=True))
    unused = [place for place in range(size) if place not in named.values()]
    named.update(zip([place for place in range(size) if place not in named], unused, strict=True))
    return [_renamed(known, named, first) for first, _ in ends]


def _renamed(known: dict[int, tuple[int, ...]], named: dict[int, int], first: int) -> tuple[int, ...]:
    start = next(place for place, name in named.items() if name == first)
    return tuple(named[place] for place in known[start])


def _chains(following: dict[int, int]) -> Iterator[list[int]]:
    """Yield the places of each chain or cycle of places that follow each other."""
    seen = set[int]()
    for first in sorted(following, key=lambda place: (place in following.values(), place)):
        chain = [first]
        while following.get(chain[-1], first) != first:
            chain.append(following[chain[-1]])
        if seen.isdisjoint(chain):
            yield chain
        seen.update(chain)


def _from(cycle: tuple[int, ...], place: int) -> tuple[int, ...]:
    start = cycle.index(place)
    return cycle[start:] + cycle[:start]


def _odd(half: int) -> list[tuple[int, ...]]:
    steps = [(step + 1) // 2 if step % 2 else -(step // 2) for step in range(2 * half)]
    cycles = [(2 * half, *((first + step) % (2 * half) for step in steps)) for first in range(half)]
    return [one for cycle in cycles for one in (cycle, cycle[::-1])]


def _even(half: int) -> list[tuple[int, ...]]:
    pairs = range(_SUMS[-1] + 1, 2 * half - 1 + _SUMS[0], 2)
    alternating = [_cycle([[total + step % 2] * (2 * half) for step in range(2 * half)]) for total in pairs]
    colors = _colors(half)
    colored = [_cycle([[_SUMS[row.index(color)] for row in colors]] * (2 * half)) for color in "01234"]
    return [one for cycle in alternating for one in (cycle, cycle[::-1])] + colored


def _cycle(sums: list[list[int]]) -> tuple[int, ...]:
    """Return the cycle from the hub; ``sums[step][place]`` is the sum of the next hop."""
    found = [len(sums) - 1]
    for totals in sums[1:]:
        found.append(_neighbour(len(sums) // 2, found[-1], totals[found[-1]]))
    return tuple(found)


def _neighbour(half: int, place: int, total: int) -> int:
    """Return the neighbour of a place by a sum; the hub is place 2 m - 1, and the number -k is 2 m - 1 - k."""
    hub = 2 * half - 1
    if place == hub:
        return total * half % hub
    other = (total - place) % hub
    return hub if other == place else other


def _colors(half: int) -> list[str]:
    """Return the colors of the hops of the five sums from every place, the hub last."""
    size = 2 * half
    base = size if size in _COLORS else 10 if size % 4 == 2 else 12
    hub, *numbers = _COLORS[base].split()
    known = dict(zip(_numbers(base // 2 - 1), numbers, strict=True))
    found, grown = dict[int, str](), (size - base) // 2
    inserted = dict(zip((-2, -1, 1, 2), _INSERTED[base].split(), strict=True)) if grown else {}
    for number in _numbers(half - 1):
        sign, level = (1 if number > 0 else -1), abs(number) - _KEPT_LEVELS
        if level <= 0:
            found[number] = known[number]
        elif level <= grown:
            found[number] = inserted[sign * ((level - 1) % _INSERTED_LEVELS + 1)]
        else:
            found[number] = known[number - sign * grown]
    return [*(found[number] for number in (*range(half), *range(1 - half, 0))), hub]


def _numbers(most: int) -> Iterator[int]:
    yield from range(-most, most + 1)
