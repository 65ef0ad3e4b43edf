"""Custom collectives for tests: drawn at random, permutations, and the exchanges of stencils."""

from __future__ import annotations

import random
from itertools import product

from hypothesis import strategies as st

from collc.ir.collective import CUSTOM, Collective

__all__ = ["custom", "customs", "halo", "permutation"]


def custom(ranks: int, moves: list[tuple[int, tuple[int, ...]]], weights: tuple[int, ...] | None = None) -> Collective:
    """Return the collective that moves each shard from a rank to some ranks."""
    pre, post = tuple(source for source, _ in moves), tuple(tuple(sorted(targets)) for _, targets in moves)
    return Collective(CUSTOM, ranks, pre=pre, post=post, weights=weights)


def permutation(ranks: int, seed: int = 0) -> Collective:
    """Return a random permutation: one shard from every rank, and one to every rank."""
    targets = list(range(ranks))
    random.Random(seed).shuffle(targets)
    return custom(ranks, [(source, (target,)) for source, target in enumerate(targets)])


def halo(*sizes: int, corners: bool = False) -> Collective:
    """Return the exchange of a periodic stencil: a shard to each neighbour, with ``corners`` also diagonally."""
    at = {place: rank for rank, place in enumerate(product(*map(range, sizes)))}
    ways = [way for way in product((-1, 0, 1), repeat=len(sizes)) if any(way) and (corners or sum(map(abs, way)) == 1)]
    moves = []
    for place, rank in at.items():
        for way in ways:
            near = tuple((x + step) % size for x, step, size in zip(place, way, sizes, strict=True))
            moves.append((rank, (at[near],)))
    return custom(len(at), moves)


@st.composite
def customs(draw: st.DrawFn, ranks: int, most: int = 5, weighed: bool = True, targets: int = 4) -> Collective:
    """Any conditions: shards without targets, for their source, for several ranks, of weight 0."""
    rank = st.integers(0, ranks - 1)
    moves = draw(st.lists(st.tuples(rank, st.sets(rank, max_size=targets)), min_size=1, max_size=most))
    weights = None
    if weighed and draw(st.booleans()):
        each = st.lists(st.integers(0, 5), min_size=len(moves), max_size=len(moves))
        weights = tuple(draw(each.filter(any)))
    return custom(ranks, [(source, tuple(to)) for source, to in moves], weights)
