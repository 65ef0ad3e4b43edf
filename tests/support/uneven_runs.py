"""Collectives whose shards differ in size, and a run of a program with real numbers for any counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from collc.backends import interpreter
from collc.ir.arrays import Array
from collc.ir.collective import ROOTED, UNEVEN, Collective
from collc.ir.program import Program

__all__ = ["collective", "inputs_of", "runs_right", "uneven", "weights"]


@st.composite
def weights(draw: st.DrawFn, shards: int, most: int = 9) -> tuple[int, ...]:
    """One shard has all the data, or many have none, or anything."""
    one = st.integers(0, shards - 1).map(lambda who: tuple(7 * (v == who) for v in range(shards)))
    size = st.sampled_from([0, 0, 1]) | st.integers(0, most)
    some = st.lists(size, min_size=shards, max_size=shards).filter(any).map(tuple)
    return draw(one | some)


def collective(kind: str, ranks: int, sizes: Sequence[int], root: int = 0) -> Collective:
    return Collective(kind, ranks, root % ranks if kind in ROOTED else None, weights=tuple(sizes))


@st.composite
def uneven(draw: st.DrawFn, ranks: int, kinds: Sequence[str] = tuple(UNEVEN)) -> Collective:
    """One of these kinds with any weights and any root."""
    kind = draw(st.sampled_from(kinds))
    shards = ranks * ranks if kind == "alltoall" else ranks
    return collective(kind, ranks, draw(weights(shards)), draw(st.integers(0, ranks - 1)))


def inputs_of(what: Collective, counts: Sequence[int], seed: int = 1) -> list[Array | None]:
    """Return random inputs of the shards that each rank has; None for a rank that has none."""
    random, shards, found = np.random.default_rng(seed), np.arange(what.num_shards), list[Array | None]()
    for rank in range(what.num_ranks):
        held = shards[what.input_slots(rank, shards) >= 0].tolist()
        found.append(random.integers(-99, 99, sum(counts[shard] for shard in held)) if held else None)
    return found


def runs_right(program: Program, counts: Sequence[int]) -> bool:
    """Return whether a program gives every rank what the collective's definition says, for these counts."""
    given = inputs_of(program.collective, counts)
    needed = interpreter.reference(program.collective, given, counts=counts)
    found = interpreter.run(program, given, counts=counts)
    return all(np.array_equal(a, b) for a, b in zip(found, needed, strict=True))
