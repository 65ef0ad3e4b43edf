"""Collectives: who has which shard before and after, where it lies, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from collc.ir.collective import KINDS, REVERSED, ROOTED, Collective
from collc.ir.diagnostic import CollcError


def _reference(kind: str, n: int, root: int) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return rank -> shards in its input buffer, in order, and the same for the output: MPI's definitions."""
    every, ranks = list(range(n)), range(n)
    return {
        "allgather": ({r: [r] for r in ranks}, dict.fromkeys(ranks, every)),
        "reduce-scatter": (dict.fromkeys(ranks, every), {r: [r] for r in ranks}),
        "allreduce": (dict.fromkeys(ranks, every), dict.fromkeys(ranks, every)),
        "broadcast": ({root: every}, dict.fromkeys(ranks, every)),
        "reduce": (dict.fromkeys(ranks, every), {root: every}),
        "gather": ({r: [r] for r in ranks}, {root: every}),
        "scatter": ({root: every}, {r: [r] for r in ranks}),
        "alltoall": ({r: [r * n + t for t in every] for r in ranks}, {r: [s * n + r for s in every] for r in ranks}),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(1, 7), data=st.data())
def test_places_and_slots_are_those_of_mpi(kind, n, data):
    root = data.draw(st.integers(0, n - 1))
    collective = Collective(kind, n, root if kind in ROOTED else None)
    inputs, outputs = _reference(kind, n, root)
    ranks, shards = np.arange(n)[:, None], np.arange(collective.num_shards)[None, :]
    for buffers, has, slots, size in (
        (inputs, collective.holds, collective.input_slots, collective.input_shards),
        (outputs, collective.wants, collective.output_slots, collective.output_shards),
    ):
        expected = np.full((n, collective.num_shards), -1)
        for rank, listed in buffers.items():
            assert len(listed) == size
            expected[rank, listed] = np.arange(size)
        assert np.array_equal(expected, slots(ranks, shards))
        assert np.array_equal(expected >= 0, has(ranks, shards))


@given(strategies.collectives())
def test_scalars_and_columns_agree(collective):
    """One rank and shard at a time, and narrow columns, give what whole tables give."""
    n, shards = collective.num_ranks, collective.num_shards
    table = collective.output_slots(np.arange(n, dtype=np.uint8)[:, None], np.arange(shards, dtype=np.uint8)[None, :])
    assert table.tolist() == [[int(collective.output_slots(r, s)) for s in range(shards)] for r in range(n)]
    held = collective.holds(np.arange(n)[:, None], np.arange(shards)[None, :])
    assert held.tolist() == [[bool(collective.holds(r, s)) for s in range(shards)] for r in range(n)]


@given(strategies.collectives())
def test_the_source_of_a_shard_is_the_one_rank_that_holds_it(collective):
    for shard in range(collective.num_shards):
        holders = np.flatnonzero(collective.holds(np.arange(collective.num_ranks), shard)).tolist()
        source = collective.source(shard)
        assert holders == (list(range(collective.num_ranks)) if source is None else [source])
        assert (source is None) == collective.reduces


@given(strategies.collectives())
def test_reversing_swaps_before_and_after(collective):
    """Theorem 1: what was wanted is held. Reversing twice is nothing."""
    if collective.kind in ("gather", "scatter", "alltoall"):
        with pytest.raises(CollcError, match="C0205"):
            collective.reversed()
        return
    back = collective.reversed()
    assert back.reversed() == collective
    assert (back.size, back.op, back.root) == (collective.size, collective.op, collective.root)
    ranks, shards = np.arange(collective.num_ranks)[:, None], np.arange(collective.num_shards)[None, :]
    assert np.array_equal(collective.wants(ranks, shards), back.holds(ranks, shards))
    assert np.array_equal(collective.holds(ranks, shards), back.wants(ranks, shards))


def test_the_reverse_of_each_is_mutual():
    assert {k: v for v, k in REVERSED.items()} == REVERSED


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (("allgathr", 4), "C0201", "unknown collective `allgathr`", "did you mean `allgather`?"),
        (("allgather", 0), "C0202", "a collective needs at least 1 rank, found 0", None),
        (("broadcast", 4), "C0203", "collective `broadcast` needs a root", None),
        (("allreduce", 4, 0), "C0203", "collective `allreduce` has no root", None),
        (("reduce", 4, 4), "C0204", "root 4 is not a rank: ranks are 0 to 3", None),
        (("reduce", 4, -1), "C0204", "root -1 is not a rank: ranks are 0 to 3", None),
    ],
)
def test_what_is_no_collective_is_refused(arguments, code, message, hint):
    with pytest.raises(CollcError) as caught:
        Collective(*arguments)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.hint) == (code, message, hint)
