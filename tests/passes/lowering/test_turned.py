"""Programs of clusters with a few odd boxes, made of those of the odd ranks and of one alike box."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from turned_programs import KINDS, broken, turned_program, turned_schedule

from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.turning import Turning
from collc.ir.verify import verify
from collc.ir.verify.connections import strayed
from collc.passes.lowering.lower import Lower
from collc.passes.lowering.template import lower_messages
from collc.passes.lowering.turned import lower_turned
from collc.passes.schedule.discretize import Discretize
from collc.passes.synthesis.forest.odd_trees import odd_seed

NETS = (
    broken(10, 3, "gpu[3, 1]"), broken(9, 2, "gpu[0, 0]"),
    broken(12, 3, "gpu[2, 0] -> gpu[2, 1], gpu[2, 1] -> gpu[2, 0]"),
    broken(17, 2, "gpu[3, 1], gpu[16, 0]"),
)  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("network", NETS, ids=str)
def test_images_of_few_ranks_are_a_program_of_all(network: object, kind: str, pieces: int) -> None:
    assert network in NETS
    program = turned_program(network, kind, pieces)
    assert program.turning is not None and 2 * program.turning.width < program.num_ranks
    assert verify(program).ok
    assert not strayed(program.unfold(), turned_schedule(network, kind, pieces))


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_those_of_the_program_that_lists_all(kind: str) -> None:
    listed = lower_messages(turned_schedule(NETS[0], kind))
    assert listed is not None
    turned = turned_program(NETS[0], kind)

    def sent(program: SymmetricProgram) -> list[tuple[int, ...]]:
        batched, seed = program.batched, program.seed
        rows = np.flatnonzero(batched.sends)
        block = batched.block[rows]
        ends = (
            seed.block_rank[block],
            seed.send_peer[block],
            seed.channel[block],
            batched.step[rows],
            batched.count[rows],
        )
        return sorted(zip(*(column.tolist() for column in ends), strict=True))

    assert sent(turned) == sent(listed)


@pytest.mark.parametrize("kind", KINDS)
def test_trees_that_differ_in_the_odd_boxes_only_are_one_elsewhere(kind: str) -> None:
    schedule = turned_schedule(NETS[0], kind, 2)
    order = np.lexsort((schedule.lo, schedule.shard, schedule.action, schedule.route, schedule.step))
    columns = [getattr(schedule, c)[order].tolist() for c in ("step", "route", "action", "shard", "lo", "hi")]
    rows = list(zip(*columns, strict=True))
    joined = sum(one[:4] == other[:4] and one[5] == other[4] for one, other in pairwise(rows))
    program = turned_program(NETS[0], kind, 2)
    assert joined > len(rows) // 8
    assert np.count_nonzero(program.seed.sends) == len(rows) - joined


def test_an_allreduce_of_a_large_broken_cluster_cannot_be_rounded_alike() -> None:
    network = coll.topology("without(dgx_a100(128), {gpu[3,5]})")
    ranks = network.num_ranks
    found = odd_seed(network, both=True)
    assert found is not None and found[2]  # ranks are roots of different amounts
    half = found[0]
    share = np.zeros(ranks, dtype=np.int64)
    np.add.at(share, half.trees.root, half.trees.weight)
    one, odd = int(share[0]), int(share[24:31].sum())
    assert (Fraction(one * ranks, half.parts), odd) == (Fraction(7063, 7056), 7 * 6040)
    boxes = 127 * 8
    for chunks in range(1, 634):
        whole = round(Fraction(one * ranks * chunks, half.parts))
        rest, right = ranks * chunks - boxes * whole, Fraction(odd * ranks * chunks, half.parts)
        assert (abs(rest - right) <= right / 10) == (chunks == 633)
    assert Discretize().most(Collective("allreduce", ranks))[0] == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_that_is_left_out_on_one_rank_is_a_race(kind: str) -> None:
    program = turned_program(NETS[0], kind)
    seed, found = program.seed, list[bool]()
    for row in range(0, len(seed.deps), max(len(seed.deps) // 40, 1)):
        needs = seed.num_dependencies.astype(np.int64)
        needs[seed.dependent[row]] -= 1
        fewer = attrs.evolve(seed, deps=np.delete(seed.deps, row), dep_start=np.append(0, np.cumsum(needs)))
        report = verify(attrs.evolve(program, seed=fewer))
        found.append(not report.ok and report.failed[0].name == "races")
    assert found.count(True) > found.count(False)  # some also follow from others


@given(st.sampled_from(NETS), st.sampled_from(KINDS), st.integers(0, 1 << 20))
def test_a_schedule_that_is_not_moved_onto_itself_is_listed(network: object, kind: str, drawn: int) -> None:
    assert network in NETS
    schedule = turned_schedule(network, kind)
    assert lower_turned(schedule.rows(np.delete(np.arange(len(schedule)), drawn % len(schedule)))) is None


def test_lower_turns_long_schedules_only() -> None:
    schedule = turned_schedule(NETS[0], "allgather")
    found = Lower(listed=len(schedule) - 1).run(schedule)
    assert isinstance(found, SymmetricProgram) and found.turning is not None
    assert not isinstance(Lower(listed=len(schedule)).run(schedule), SymmetricProgram)


@given(st.integers(2, 5), st.integers(0, 4), st.integers(1, 4), st.integers(-9, 9))
def test_a_rotation_keeps_places_and_has_inverses(order: int, kept: int, box: int, element: int) -> None:
    size = kept + order * box
    turning = Turning(order, kept, kept, 2, np.arange(size)[::-1], np.arange(size))
    assert not turning.flaw(size, 2 * size)
    place = np.arange(size)
    moved = turning.moved(element, place)
    assert np.array_equal(np.sort(moved), place) and np.array_equal(moved[:kept], place[:kept])
    assert np.array_equal(turning.moved(-element, moved), place)
    assert np.array_equal(turning.moved(turning.element(place), turning.listed(place)), place)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"order": 0}, "no elements"), ({"ranks": [0, 0, 2, 3, 4]}, "once each"),
        ({"units": [0, 1, 2, 3]}, "once each"),
        ({"kept": 2}, "in equal boxes"), ({"unit": 2}, "once each"),
    ],
)  # fmt: skip
def test_a_wrong_rotation_has_a_flaw(change: dict[str, object], text: str) -> None:
    right = Turning(2, 1, 1, 1, np.arange(5), np.arange(5))
    assert not right.flaw(5, 5)
    assert text in attrs.evolve(right, **change).flaw(5, 5)  # type: ignore[arg-type]  # any field
