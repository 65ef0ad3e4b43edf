"""Which roots of a collective are alike: orbits of a network's automorphisms, and moves from one root to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..arrays import Array
from ..roots import Roots
from ..topology import Topology
from .isomorphism import automorphisms, link_map

__all__ = ["EFFORT", "moved_wrongly", "roots_of"]

#: the most links that the search for automorphisms examines: about a second
EFFORT = 10_000_000

#: the most numbers in the tables of moves, so that a file of a large network stays as small as one of its plans
_MOST_NUMBERS = 2_000_000


def roots_of(name: str, topology: Topology, listed: Sequence[int], effort: int = EFFORT) -> Roots:
    """Return the roots of a collective on a topology, with one planned root, the first listed, for each orbit.

    Roots are in different orbits also if the search for automorphisms ended early. Deterministic.

    >>> ring = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> roots_of("b", ring, [1, 3]).planned
    (1,)
    """
    chosen = tuple(sorted(listed))
    maps = [] if len(chosen) < 2 else [g for g in automorphisms(topology, effort) if keeps_switches(topology, g)]
    rows = _with_powers([g[: topology.num_ranks].astype(np.int64) for g in maps])
    rows = rows[: max(_MOST_NUMBERS // max(topology.num_ranks, 1), 1) // 2]
    source, move, planned = _searched(topology.num_ranks, chosen, rows)
    used = np.unique(move[move >= 0])
    moves, back = _with_inverses([rows[k] for k in used], topology.num_ranks)
    number = np.full(len(rows) + 1, -1)
    number[used] = np.arange(len(used))
    return Roots(name, chosen, planned, source, number[move], moves, back)


def keeps_switches(topology: Topology, image: Array) -> bool:
    """Return whether an automorphism maps switches that multicast or reduce to such switches."""
    kinds = (np.array(own, dtype=np.int64) for own in (topology.multicast, topology.reduces))
    return all(np.array_equal(np.sort(image[own]), np.sort(own)) for own in kinds)


def moved_wrongly(topology: Topology, roots: Roots, effort: int = EFFORT) -> Iterator[str]:
    """Yield what is wrong with moves of roots: tables that do not fit, or a move that is no automorphism.

    A move is one of ranks. In a network with switches it is an automorphism if switches can move so that it becomes
    one.
    """
    if roots.num_ranks != topology.num_ranks:
        yield f"the roots are of {roots.num_ranks} ranks, the network has {topology.num_ranks}"
        return
    for flaw in roots.flaws():
        yield flaw
        return
    for k, image in enumerate(roots.moves.astype(np.int64)):
        if not _is_symmetry(topology, image, effort):
            yield f"move {k} of the roots maps links to what are none of `{topology.name}`"


def _is_symmetry(topology: Topology, image: Array, effort: int) -> bool:
    if not topology.num_switches:
        return link_map(topology, topology, image) is not None
    from .isomorphism import match

    found = match(topology, topology, dict(enumerate(image.tolist())), effort).nodes
    return found is not None and np.array_equal(found[: topology.num_ranks], image)


def _with_powers(generators: Sequence[Array]) -> list[Array]:
    """Return permutations with their squares, the squares of those and so on: few of them lead anywhere.

    Beyond the first half of the largest cycle a square leads back.
    """
    found: dict[bytes, Array] = {}
    for image in generators:
        if np.array_equal(image, np.arange(len(image))):
            continue  # it moves switches only
        power, steps, longest = image, 1, _longest_cycle(image)
        while steps == 1 or 2 * steps <= longest:
            found.setdefault(power.tobytes(), power)
            power, steps = power[power], 2 * steps
    return list(found.values())


def _longest_cycle(image: Array) -> int:
    """Return the length of the longest cycle of a permutation."""
    to, seen, longest = image.tolist(), bytearray(len(image)), 0
    for start in range(len(to)):
        length, point = 0, start
        while not seen[point]:
            seen[point], length, point = 1, length + 1, to[point]
        longest = max(longest, length)
    return longest


def _searched(ranks: int, listed: Sequence[int], rows: Sequence[Array]) -> tuple[Array, Array, tuple[int, ...]]:
    """Return for each rank the root before it on a shortest path of moves from a planned root, and the last move.

    Ranks that no path to a listed root crosses have neither.
    """
    source, move = np.arange(ranks), np.full(ranks, -1)
    reached, planned = np.zeros(ranks, dtype=bool), list[int]()
    for first in listed:
        if reached[first]:
            continue
        planned.append(first)
        reached[first] = True
        front = np.array([first])
        while len(front):
            fresh = []
            for k, image in enumerate(rows):
                to, place = np.unique(image[front], return_index=True)
                new = ~reached[to]
                source[to[new]], move[to[new]] = front[place[new]], k
                reached[to[new]] = True
                fresh.append(to[new])
            front = np.concatenate(fresh) if fresh else front[:0]
    return (*_only_paths(source, move, listed), tuple(planned))


def _only_paths(source: Array, move: Array, listed: Sequence[int]) -> tuple[Array, Array]:
    """Return the columns with the paths to the listed roots only."""
    kept = np.zeros(len(source), dtype=bool)
    front = np.array(listed, dtype=np.int64)
    while len(front):
        kept[front] = True
        front = np.unique(source[front])
        front = front[~kept[front]]
    return np.where(kept, source, np.arange(len(source))), np.where(kept, move, -1)


def _with_inverses(rows: Sequence[Array], ranks: int) -> tuple[Array, Array]:
    """Return permutations followed by the inverses that are not among them, and the row of each inverse."""
    number = {image.tobytes(): k for k, image in enumerate(rows)}
    found, back = list(rows), dict[int, int]()
    for k, image in enumerate(rows):
        inverse = np.argsort(image, kind="stable").astype(np.int64)
        at = number.setdefault(inverse.tobytes(), len(found))
        if at == len(found):
            found.append(inverse)
        back[k], back[at] = at, k
    table = np.stack(found) if found else np.zeros((0, ranks), dtype=np.int64)
    return table, np.array([back[k] for k in range(len(found))], dtype=np.int64)
