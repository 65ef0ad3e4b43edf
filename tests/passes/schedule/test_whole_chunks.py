"""Uneven collectives in equal shards: the same data on the same links, and files of runtimes with equal chunks."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.msccl_xml import MscclXml
from collc.ir.collective import CUSTOM, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.step_times import time_per_byte
from collc.passes.schedule.whole_chunks import WholeChunks
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.forest.scheduler import ForestScheduler

NETWORK = collc.topology("torus(2, 2)")


def scheduled(kind: str, weights: tuple[int, ...], root: int | None = None) -> Schedule:
    """Return a schedule that was planned for equal shards: its intervals are right for any."""
    even = Problem(NETWORK, Collective(kind, 4, root))
    schedule = ForestScheduler().run(even).to_steps() if kind == "allgather" else Flow().run(even)
    assert isinstance(schedule, Schedule)
    return attrs.evolve(schedule, collective=Collective(kind, 4, root, weights=weights))


kinds = st.sampled_from([("allgather", None, 4), ("alltoall", None, 16), ("gather", 2, 4), ("scatter", 1, 4)])


@given(st.data(), kinds)
@settings(max_examples=examples(30), deadline=None)
def test_equal_shards_carry_the_same_data(data: st.DataObject, kind: tuple[str, int | None, int]) -> None:
    name, root, shards = kind
    weights = tuple(data.draw(st.lists(st.integers(0, 6), min_size=shards, max_size=shards).filter(any)))
    given_, whole = (schedule := scheduled(name, weights, root)), WholeChunks().run(schedule)
    report = verify(whole)
    assert report.ok, report
    assert whole.collective.kind == CUSTOM and whole.collective.weights is None
    assert sum(whole.collective.pre.count(rank) for rank in range(4)) == sum(weights) // np.gcd.reduce(weights)  # type: ignore[union-attr]
    assert np.array_equal(carried(whole) * np.gcd.reduce(weights), carried(given_))
    if name != "alltoall":  # M of an alltoallv is what one rank sends, of a custom collective what all send
        assert time_per_byte(whole) == time_per_byte(given_)


def carried(schedule: Schedule) -> np.ndarray:  # type: ignore[type-arg]
    """Return what crosses each link, in parts of a shard of weight 1."""
    load = np.zeros(schedule.topology.num_links, dtype=np.int64)
    row = np.repeat(np.arange(len(schedule)), schedule.routes.lengths[schedule.route])
    np.add.at(load, schedule.routes.links[schedule.routes.places(schedule.route)], schedule.amount[row])
    return load


def program(weights: tuple[int, ...], kind: str = "allgather") -> Program:
    whole = WholeChunks().run(scheduled(kind, weights))
    return BalanceThreadblocks().run(Coalesce().run(Lower().run(Discretize().run(whole))))


@pytest.mark.parametrize(
    ("kind", "weights"),
    [("allgather", (6, 0, 2, 4)), ("allgather", (0, 0, 5, 0)),
     ("alltoall", (0, 3, 1, 0, 2, 2, 0, 0, 0, 0, 0, 7, 1, 1, 1, 1))],
)  # fmt: skip
def test_a_file_of_msccl_is_read_back(kind: str, weights: tuple[int, ...]) -> None:
    built, target = program(weights, kind), MscclXml(runtime="msccl")
    files = target.emit(built)
    report = target.check(built, files)
    assert report.ok, report
    text = files[0].text
    assert 'coll="custom" inplace="0" outofplace="1"' in text and "ncclCustomCollective" in text
    for old, new in (('srcoff="0"', 'srcoff="1"'), ('cnt="', 'cnt="1'), ('coll="custom"', 'coll="allgather"')):
        assert old in text
        planted = attrs.evolve(files[0], text=text.replace(old, new, 1))
        assert not target.check(built, [planted]).ok


@pytest.mark.parametrize(
    ("runtime", "kind", "weights", "said"),
    [
        ("executor", "allgather", (1, 2, 3, 4), "runtime=msccl"), ("rccl", "allgather", (1, 2, 3, 4), "runtime=msccl"),
        ("msccl", "reduce-scatter", (1, 2, 3, 4), "`mpi-c`"),
    ],
)  # fmt: skip
def test_what_a_runtime_cannot_run_is_refused(runtime: str, kind: str, weights: tuple[int, ...], said: str) -> None:
    with pytest.raises(CollcError) as caught:
        MscclXml(runtime=runtime).require(Collective(kind, 4, weights=weights))
    found = caught.value.diagnostics[0]
    assert found.code == "C0607" and said in f"{found.message} {found.hint}"


def test_other_mistakes_of_weights() -> None:
    with pytest.raises(CollcError) as caught:
        WholeChunks().run(scheduled("allgather", (1_000_003, 1, 1, 1)))
    assert caught.value.diagnostics[0].code == "C0543"
    reducing = attrs.evolve(
        scheduled("allgather", (1, 2, 3, 4)), collective=Collective("reduce-scatter", 4, weights=(1,) * 4)
    )
    with pytest.raises(CollcError) as caught:
        WholeChunks().run(reducing)
    assert caught.value.diagnostics[0].code == "C0542"
    with pytest.raises(CollcError, match="in place"):
        MscclXml(runtime="msccl", inplace=True).emit(program((1, 2, 3, 4)))
    uneven = Lower().run(Discretize().run(scheduled("allgather", (1, 2, 3, 4))))
    with pytest.raises(CollcError, match="chunks differ in size"):
        MscclXml(runtime="msccl").emit(uneven)
    even = scheduled("allgather", (1, 2, 3, 4))
    even = attrs.evolve(even, collective=Collective("allgather", 4))
    assert WholeChunks().run(even) is even
