"""Places in scratch, found for all ranks at a time, against a plain first fit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from strategies import schedules

from collc.ir.program import Buffer, Program
from collc.passes.analysis.clocks import clocks
from collc.passes.lowering.lower import Lower
from collc.passes.program import scratch
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.scratch import ReuseScratch, first_fits
from collc.passes.schedule.discretize import Discretize

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "alltoall", "gather", "scatter")


def fit_plainly(sizes: list[int], begins: np.ndarray, ends: np.ndarray) -> list[int]:
    """Place one object after the other; rows of ``begins`` and ``ends`` are objects."""
    places: list[int] = []
    for k, size in enumerate(sizes):
        beside = [
            (places[i], places[i] + sizes[i]) for i in range(k)
            if not ((ends[i] <= begins[k]).all() or (ends[k] <= begins[i]).all())
        ]  # fmt: skip
        at = 0
        while any(low < at + size and at < high for low, high in beside):
            at += 1
        places.append(at)
    return places


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_objects_lie_as_low_as_their_lifetimes_allow(width: int, ranks: int, objects: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    size = random.integers(1, 4, (ranks, objects))
    begins = random.integers(0, 4, (width, ranks, objects)).astype(np.int32)
    ends = begins + random.integers(0, 3, begins.shape).astype(np.int32)
    found = first_fits(size, begins, ends)
    for rank in range(ranks):
        due = fit_plainly(size[rank].tolist(), begins[:, rank].T, ends[:, rank].T)
        assert found[rank].tolist() == due


def reuse_plainly(program: Program) -> tuple[list[int], dict[tuple[str, int], int]]:
    """Return the scratch of each rank, and the new offset of each access."""
    known, scratch, offsets = clocks(program), [0] * program.num_ranks, {}
    for rank in range(program.num_ranks):
        accesses = sorted(
            (int(offset[i]), int(offset[i] + program.count[i]), end, i)
            for end in ("src", "dst")
            for offset in [getattr(program, f"{end}_offset").astype(np.int64)]
            for i in np.flatnonzero(program.uses(end, Buffer.SCRATCH) & (program.rank == rank)).tolist()
        )
        objects: list[tuple[int, int, list[tuple[str, int]]]] = []
        for low, high, end, i in accesses:
            if objects and low < objects[-1][1]:
                start, stop, places = objects[-1]
                objects[-1] = start, max(stop, high), [*places, (end, i)]
            else:
                objects.append((low, high, [(end, i)]))
        rows = [np.array([i for _, i in places]) for _, _, places in objects]
        begins = np.array([known.known[of].min(axis=0) for of in rows])
        ends = np.zeros_like(begins)
        for k, of in enumerate(rows):
            np.maximum.at(ends[k], known.block_id[of], known.step[of] + 1)
        at = fit_plainly([stop - start for start, stop, _ in objects], begins, ends)
        for place, (start, stop, places) in zip(at, objects, strict=True):
            scratch[rank] = max(scratch[rank], place + stop - start)
            for end, i in places:
                offsets[end, i] = int(getattr(program, f"{end}_offset")[i]) + place - start
    return scratch, offsets


@settings(max_examples=examples(40))
@given(schedules(kinds=KINDS), st.booleans())
def test_scratch_is_shared_as_by_the_plain_rule(schedule, coalesced: bool) -> None:
    program = Lower().run(Discretize().run(schedule))
    program = Coalesce(pack="always").run(program) if coalesced else program
    after = ReuseScratch().run(program)
    scratch, offsets = reuse_plainly(program)
    if all(a >= b for a, b in zip(scratch, program.scratch.tolist(), strict=True)):
        assert after is program
    else:
        assert after.scratch.tolist() == scratch
        assert all(int(getattr(after, f"{end}_offset")[i]) == offset for (end, i), offset in offsets.items())


def test_scratch_that_nothing_accesses_is_given_up() -> None:
    plain = Coalesce().run(Lower().run(Discretize().run(one_ring())))
    unused = Program(
        **{f: getattr(plain, f) for f in (*Program.SCALARS, *Program.COLUMNS) if f != "scratch"}, scratch=[3] * 4
    )
    assert not plain.scratch.any() and not ReuseScratch().run(unused).scratch.any()


def one_ring():
    from nets import one_way_ring

    from collc.ir.collective import Collective
    from collc.ir.spec import Problem
    from collc.passes.synthesis.torus.ring import Ring

    return Ring().run(Problem(one_way_ring(4), Collective("allgather", 4)))


@given(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=8))
def test_adjacent_data_move_together_if_the_same_messages_access_them(accesses: list[set[int]]) -> None:
    group = np.repeat(np.arange(len(accesses)), [len(found) for found in accesses])
    value = np.array([message for found in accesses for message in found])
    same = scratch._as_before(group, value)
    due = [k > 0 and accesses[k] == accesses[k - 1] for k in range(len(accesses))]
    assert same.tolist() == [due[k] for k in group]
