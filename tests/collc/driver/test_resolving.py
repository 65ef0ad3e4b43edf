"""A schedule solved again for whole chunks: by the scheduler of the plan, with the options that the user gave it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from nets import generalized_kautz, torus

import collc as api
from collc.driver.resolving import solver_of
from collc.ir.collective import Collective
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.text import print_ir
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_schedule
from collc.passes.base import Pass, Solver, remarks, solver, solving
from collc.passes.schedule.compose import Compose
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.reverse import Reverse
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.torus.ring import Ring


def compiled(net: str, kind: str, scheduler: str, passes: str) -> Any:
    text = f"topology t = {net}; collective c = {kind} on t; schedule c using {scheduler};"
    return api.compile_source(text, passes=passes, target="ir{level=schedule}")


def rows(schedule: Any) -> list[tuple[int, ...]]:
    whole = schedule.unfold() if isinstance(schedule, SymmetricSchedule) else schedule
    return list(zip(*(getattr(whole, c).tolist() for c in whole.COLUMNS), strict=True))


def late(schedule: Any) -> int:
    """Return how many transfers of an allgather bring data later than at the first chance."""
    whole = schedule.unfold() if isinstance(schedule, SymmetricSchedule) else schedule
    hops = whole.topology.distances[whole.shard, whole.dst]
    return int((whole.step.astype(np.int64) + 1 != hops).sum())


# ---- options of the scheduler


def test_breadth_first_stays_breadth_first() -> None:
    """With ``relax: false`` no data come late, in whole chunks either; without it, some do on this network."""
    passes = "bfb,discretize{max-chunks=4}"
    strict = compiled("torus(2, 2, 3)", "allgather", "bfb { relax: false }", passes).schedule
    relaxed = compiled("torus(2, 2, 3)", "allgather", "bfb", passes).schedule
    assert (strict.parts, len(strict), late(strict)) == (3, 234, 0)
    assert (relaxed.parts, len(relaxed)) == (4, 304) and late(relaxed) > 0
    assert verify_schedule(strict).ok


@pytest.mark.parametrize("passes", ["bfb", "bfb{collective=allgather},compose", "bfb,reverse,reverse"])
@pytest.mark.parametrize("chunks", [1, 4])
def test_passes_between_run_again(passes: str, chunks: int) -> None:
    """However an allreduce was composed, its halves are solved again with the options given."""
    made = compiled(
        "torus(2, 2, 3)", "allreduce", "bfb { relax: false }", f"{passes},discretize{{max-chunks={chunks}}}"
    )
    gather = compiled("torus(2, 2, 3)", "allgather", "bfb { relax: false }", f"bfb,discretize{{max-chunks={chunks}}}")
    second = made.schedule.rows(np.flatnonzero(made.schedule.action == 0))
    half = gather.schedule
    shifted = [(step + half.num_steps, *rest) for step, *rest in rows(half)]
    assert sorted(shifted) == sorted(rows(second))
    assert verify_schedule(made.schedule).ok
    assert ("scheduled again" in made.collectives["c"].remarks[0]) == (chunks == 1)


@pytest.mark.parametrize(
    ("scheduler", "kept"),
    [(BFB(relax=False, size=1 << 20, collective="allgather"), BFB), (Flow(steps=5, thorough=True, chunks=9), Flow)],
)
def test_all_options_but_the_number_are_kept(scheduler: Pass, kept: type[Pass]) -> None:
    told = scheduler.with_chunks(7)
    assert isinstance(told, kept) and attrs.asdict(told) == attrs.asdict(scheduler) | {"chunks": 7}
    assert Ring().with_chunks(7) is None and Discretize().with_chunks(7) is None


def test_a_flow_is_told_no_more_pieces_than_it_can_count() -> None:
    problem = Problem(torus(3), Collective("alltoall", 3))
    told = Flow().with_chunks(4096)
    assert verify_schedule(told.run(problem)).ok and Flow.takes_fewer and not BFB.takes_fewer


# ---- who is asked


@attrs.frozen
class Recorder(Pass):
    """Breadth first, noting every number of chunks it is run with."""

    name: ClassVar[str] = "recorder"
    summary: ClassVar[str] = "a scheduler of a test"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule

    asked: list[int | None]
    relax: bool = False
    chunks: int | None = None

    def with_chunks(self, chunks: int) -> Recorder:
        return attrs.evolve(self, chunks=chunks)

    def run(self, ir: Problem) -> Any:
        self.asked.append(self.chunks)
        made = BFB(relax=self.relax, chunks=self.chunks).run(ir)
        whole = made.unfold() if isinstance(made, SymmetricSchedule) else made
        return attrs.evolve(whole, scheduler="recorder")


class Fewer(Recorder):
    """One that takes fewer chunks by itself."""

    takes_fewer: ClassVar[bool] = True


def cut(led: Sequence[Pass], problem: Problem, most: int) -> Schedule:
    ir: Any = problem
    for this in led:
        ir = this.run(ir)
    with solving(solver_of(led, problem)):
        return Discretize(max_chunks=most).run(ir)  # type: ignore[return-value]


def test_any_scheduler_that_can_be_told_is_asked() -> None:
    """By what it declares, whatever its name: all numbers of few, or the largest where that stands for all."""
    problem = Problem(torus(2, 2, 3), Collective("allgather", 12))
    asked: list[int | None] = []
    made = cut([Recorder(asked)], problem, 4)
    assert asked == [None, 1, 2, 3, 4] and made.scheduler == "recorder" and made.parts == 3 and late(made) == 0
    asked.clear()
    cut([Fewer(asked)], problem, 4)
    assert asked == [None, 4]


def test_the_passes_after_it_run_on_what_it_makes() -> None:
    problem = Problem(torus(2, 2, 3), Collective("allgather", 12))
    asked: list[int | None] = []
    made = cut([Recorder(asked), Reverse(), Reverse(), Compose()], problem, 4)
    assert asked == [None, 1, 2, 3, 4] and made.collective.kind == "allreduce" and verify_schedule(made).ok


def test_cutting_twice_asks_nobody_inside() -> None:
    """The first of two cuts runs again inside the second, and rounds what it is given."""
    problem = Problem(torus(2, 2, 3), Collective("allgather", 12))
    asked: list[int | None] = []
    made = cut([Recorder(asked), Discretize(max_chunks=5)], problem, 4)
    assert asked == [None, 1, 2, 3] and made.parts <= 4 and verify_schedule(made).ok
    assert solver() is None


@attrs.frozen
class Asker(Pass):
    """Does nothing but note whom it could ask."""

    name: ClassVar[str] = "asker"
    summary: ClassVar[str] = "a pass of a test"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    seen: list[Solver | None]

    def run(self, ir: Schedule) -> Schedule:
        self.seen.append(solver())
        return ir


def test_passes_that_run_again_cannot_ask() -> None:
    problem = Problem(torus(2, 2, 3), Collective("allgather", 12))
    seen: list[Solver | None] = []
    cut([Recorder([]), Asker(seen)], problem, 4)
    assert len(seen) > 1 and set(seen) == {None}


def test_the_compiler_asks_the_scheduler_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[BFB] = []
    whole = BFB.with_chunks

    def with_chunks(self: BFB, chunks: int) -> BFB:
        asked.append(self)
        return whole(self, chunks)

    monkeypatch.setattr(BFB, "with_chunks", with_chunks)
    compiled("torus(2, 2, 3)", "allgather", "bfb { relax: false, size: 1 MiB }", "bfb,discretize{max-chunks=2}")
    assert asked and set(asked) == {BFB(relax=False, size=1 << 20)}


# ---- who is not


def none(*_: object) -> Schedule:
    raise AssertionError("nobody is to be asked")


def test_what_was_read_is_rounded() -> None:
    """Nobody knows the options of the scheduler that a file names."""
    exact = compiled("torus(2, 2, 3)", "allgather", "bfb", "bfb").schedule
    read = api.compile_source(
        print_ir(exact), path="c.ir", passes="discretize{max-chunks=4}", target="ir{level=schedule}"
    )
    (remark,) = next(iter(read.collectives.values())).remarks
    assert exact.scheduler == "bfb" and "scheduled again" not in remark and read.schedule.parts <= 4
    assert rows(read.schedule) == rows(Discretize(max_chunks=4).run(exact))


def test_who_cannot_be_told_is_not_asked() -> None:
    problem = Problem(torus(4, 4), Collective("allreduce", 16))
    assert solver_of([], problem) is None and solver_of([Reverse()], problem) is None
    assert solver_of([Ring()], problem) is None and solver_of([BFB()], problem) is not None


def test_nobody_is_asked_where_nothing_is_lost() -> None:
    problem = Problem(generalized_kautz(3, 20), Collective("allgather", 20))
    with solving(Solver(none)):
        assert Discretize().run(BFB().run(problem)).discrete


def test_nobody_is_asked_where_links_differ_in_latency() -> None:
    """There bandwidth is not all that counts, and the size that the schedule was made for may say otherwise."""
    kinds = [LinkClass(Fraction(3), Fraction(1)), LinkClass(Fraction(7), Fraction(2))]
    links = [(r, (r + hop) % 4, kind) for r in range(4) for hop, kind in zip((1, 3), kinds, strict=True)]
    net = Topology.from_links("unlike", 4, links)
    exact = BFB().run(Problem(net, Collective("allgather", 4)))
    with solving(Solver(none)):
        assert Discretize(max_chunks=1).run(exact).parts == 1
    alike = attrs.evolve(net, classes=tuple(attrs.evolve(kind, latency=Fraction(1)) for kind in net.classes))
    with solving(Solver(none)), pytest.raises(AssertionError):
        Discretize(max_chunks=1).run(BFB().run(Problem(alike, Collective("allgather", 4))))


@pytest.mark.parametrize("longer", [0, 1])
def test_more_steps_are_not_worth_less_bandwidth(longer: int) -> None:
    problem = Problem(torus(3, 3, 2), Collective("allgather", 18))

    def solve(chunks: int) -> Schedule:
        made = BFB(chunks=chunks).run(problem)
        whole = made.unfold() if isinstance(made, SymmetricSchedule) else made
        return attrs.evolve(whole, step=whole.step.astype(np.int64) + longer)

    with remarks() as told, solving(Solver(solve)):
        Discretize(max_chunks=1).run(BFB().run(problem))
    assert ("scheduled again" in told[0]) == (not longer)
