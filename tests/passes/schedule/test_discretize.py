"""The number of chunks: exact where it fits, else the least loss that any number has, stated as a fraction."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import floor
from typing import ClassVar

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import generalized_kautz, torus
from sampling import examples
from strategies import connected, schedules
from template_programs import cayley_networks, network

from collc.backends.base import Limits
from collc.backends.ir_text import IrText
from collc.driver.compile import compile_collective
from collc.driver.resolving import solver_of
from collc.driver.result import Settings
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError, Excess, error
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest
from collc.ir.symmetric import TEMPLATE_KINDS, SymmetricSchedule
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify, verify_schedule
from collc.passes.base import remarks, solving
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.rounding import best_rounding, numbers_to_try, round_parts
from collc.passes.schedule.step_times import time_per_byte, time_with_messages
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.flow.scheduler import Flow

KINDS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")


def bfb(topology, kind="allgather", size=None):
    root = 0 if kind in ("broadcast", "reduce") else None
    made = BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root, size=size)))
    return made.unfold() if isinstance(made, SymmetricSchedule) else made


def told(pass_, schedule):
    with remarks() as said:
        made = pass_.run(schedule)
    return made, said


def solved(pass_, problem):
    """Return what a pass makes of a schedule that its scheduler can solve again."""
    made = BFB().run(problem)
    with solving(solver_of([BFB()], problem)):
        return told(pass_, made)


def unlike(seed=0, ranks=5):
    """Rings both ways and a chord, whose links have bandwidths without common factors."""
    speeds = [LinkClass(Fraction(b)) for b in (101, 211, 307, 401)]
    links = [(r, (r + 1) % ranks, speeds[(r + seed) % 4]) for r in range(ranks)]
    links += [((r + 1) % ranks, r, speeds[(r + seed + 1) % 4]) for r in range(ranks)]
    return Topology.from_links("unlike", ranks, [*links, (0, 2, speeds[3])])


def two_speeds():
    """A ring of 4, faster one way: what is opposite is divided 101 : 211."""
    kinds = [LinkClass(Fraction(101 * 10**9)), LinkClass(Fraction(211 * 10**9))]
    links = [(r, (r + hop) % 4, kind) for r in range(4) for hop, kind in zip((1, 3), kinds, strict=True)]
    return Topology.from_links("two-speeds", 4, links, unit="B/s")


# ---- what a number of chunks costs


@settings(max_examples=examples(25))
@given(schedules(kinds=KINDS), st.integers(1, 9))
def test_the_time_of_links_is_that_of_the_cost_model(schedule, chunks):
    """Switches, parallel links, any roots: one sum over busiest links, as a fraction."""
    assert time_per_byte(schedule) == cost(schedule).time_per_byte
    rounded = round_parts(schedule, chunks)
    assert time_per_byte(rounded) == cost(rounded).time_per_byte


@pytest.mark.parametrize("parts", [1 << 40, (1 << 57) + 1, 1 << 58])
@pytest.mark.parametrize("chunks", [1, 7, 1000])
def test_shares_of_any_denominator_are_rounded_exactly(parts: int, chunks: int) -> None:
    """The products of ends, chunks and shards exceed 64 bits."""
    whole = bfb(torus(3, 3), "allreduce")
    ends = [np.array([int(e) * parts // whole.parts for e in column.tolist()]) for column in (whole.lo, whole.hi)]
    schedule = attrs.evolve(whole, parts=parts, lo=ends[0], hi=ends[1], discrete=False)

    def image(end: int, shard: int) -> int:
        inner = Fraction(end * chunks, parts) + Fraction(shard * 7 % 9, 9)
        return 0 if end == 0 else chunks if end == parts else min(floor(inner), chunks)

    rows = zip(*(column.tolist() for column in (schedule.lo, schedule.hi, schedule.shard)), strict=True)
    due = [(image(lo, shard), image(hi, shard)) for lo, hi, shard in rows]
    made = round_parts(schedule, chunks)
    assert [(lo, hi) for lo, hi in due if lo < hi] == list(zip(made.lo.tolist(), made.hi.tolist(), strict=True))


@settings(max_examples=examples(25))
@given(connected(max_ranks=6, extra=8), st.sampled_from(KINDS), st.integers(1, 6))
def test_no_number_of_chunks_loses_less(topology, kind, most):
    """Against all numbers up to the limit, rounded and scheduled again; and the remark states the exact loss."""
    exact = bfb(topology, kind)
    problem = Problem(exact.topology, exact.collective)
    made, said = solved(Discretize(max_chunks=most), problem)
    assert verify_schedule(made).ok and made.discrete and made.parts <= most
    whole = Discretize().run(exact)
    if whole.parts <= most:
        assert (made.parts, time_per_byte(made), said) == (whole.parts, time_per_byte(exact), [])
        return
    ways = product(range(1, most + 1), (lambda p: round_parts(whole, p), lambda p: BFB(chunks=p).run(problem)))
    tried = [way(p) for p, way in ways]
    least = min(time_per_byte(s.unfold() if isinstance(s, SymmetricSchedule) else s) for s in tried)
    assert time_per_byte(made) == least
    loss = re.search(r"; (-?\d+(?:/\d+)?) (M/B|per link unit)", said[0])
    total = topology.node_bandwidth or 1
    assert loss and Fraction(loss[1]) == abs(least - time_per_byte(exact)) * total
    assert f"; {whole.parts} would be exact, but `max-chunks` is {most};" in said[0]


@settings(max_examples=examples(20))
@given(connected(max_ranks=6, extra=8), st.integers(1, 24))
def test_the_loss_is_within_theorem_20(topology, most):
    """T_B <= T_B of the LP + d (d^D - 1) / ((d - 1) P N); over links that differ in number, d of the busiest rank."""
    exact = bfb(topology)
    made = Discretize(max_chunks=most).run(exact)
    d = int(np.bincount(topology.dst, minlength=1).max())
    levels = sum(d**step for step in range(1, exact.num_steps + 1))
    loss = Fraction(levels, most * topology.num_ranks)
    fastest = min(kind.bandwidth for kind in topology.classes)
    assert time_per_byte(made) <= time_per_byte(exact) + loss / fastest


@settings(max_examples=examples(15))
@given(st.integers(0, 7), st.integers(5, 40))
def test_links_that_differ_lose_the_least_of_all_roundings(seed, most):
    """Their shares have denominators of thousands."""
    exact = bfb(unlike(seed))
    made, said = told(Discretize(max_chunks=most), exact)
    assert verify_schedule(made).ok and len(said) == 1 and f"the best of 1 to {most};" in said[0]
    assert time_per_byte(made) <= min(time_per_byte(round_parts(exact, p)) for p in range(1, most + 1))


def test_of_equals_the_fewest_chunks():
    """A 4x4 torus is exact in 2 chunks, so 3 are no better."""
    exact = bfb(torus(4, 4))
    fine = attrs.evolve(exact, parts=exact.parts * 7, lo=exact.lo * 7, hi=exact.hi * 7)
    assert Discretize(max_chunks=exact.parts * 3).run(fine).parts == Discretize().run(exact).parts


def test_what_is_tried_of_many_numbers():
    """All where that is quick; else divisors of the exact number and good approximations, always the largest."""
    exact = bfb(unlike())
    assert numbers_to_try(exact, 50) == list(range(1, 51))
    many = attrs.evolve(exact, **{c: np.tile(getattr(exact, c), 200) for c in Schedule.COLUMNS})
    tried = numbers_to_try(many, 4000)
    assert len(tried) < 110 and tried[-1] == 4000 and tried == sorted(set(tried))
    assert {max(k for k in range(1, 4001) if exact.parts % k == 0)} <= set(tried)


# ---- how many there may be


def test_chunks_are_numbered_within_the_targets_offsets():
    """9 shards share one buffer: numbers up to 99 leave 11 chunks a shard."""
    exact = bfb(unlike(ranks=9))
    assert exact.parts > 363
    made, said = told(Discretize(max_number=99), exact)
    assert made.parts <= 11 and "chunks of a buffer have numbers up to 99" in said[0]
    with pytest.raises(CollcError) as caught:
        Discretize(max_number=7).run(exact)
    assert caught.value.diagnostics[0].code == "C0598"
    assert Discretize(max_number=32767, max_chunks=5).run(exact).parts <= 5


def test_where_parts_are_rounded_a_chunk_has_an_element():
    """192 bytes in float32 among 4 ranks: 12 elements a shard. What can be exact is, however small."""
    small = attrs.evolve(Collective("allgather", 4, size=12 * 4 * 4))
    exact = attrs.evolve(bfb(unlike(ranks=4)), collective=small)
    assert Discretize().run(exact).parts == exact.parts > 24
    fewer = Discretize(max_chunks=exact.parts - 1)
    assert fewer.run(exact).parts <= 12
    assert fewer.run(attrs.evolve(exact, collective=attrs.evolve(small, dtype="bfloat16"))).parts <= 24
    tiny = attrs.evolve(exact, collective=attrs.evolve(small, size=1))
    assert fewer.run(tiny).parts == 1


# ---- what targets hold


@attrs.frozen
class Tight(IrText):
    """A target for programs of few chunks a shard, in buffers of few."""

    name: ClassVar[str] = "tight"
    chunks: int = 9
    numbers: int | None = None

    @property
    def limits(self):
        return Limits(max_offset=self.numbers, max_count=4)

    def emit(self, ir):
        if ir.chunks > self.chunks:
            what = f"{ir.chunks} chunks a shard; the limit is {self.chunks}"
            raise error("C0627", what, exit_status=3, excess=Excess("chunks", ir.chunks, self.chunks))
        return super().emit(ir)


def compiled(target, kind="allgather", **options):
    topology = unlike()
    given = tuple(Option(name, value) for name, value in options.items())
    request = CollectiveRequest(
        "c", topology.name, Problem(topology, Collective(kind, topology.num_ranks)), ScheduleRequest("bfb", given), ()
    )
    return compile_collective(request, (target,), Settings())


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "kind"), [(1, "allgather"), (11, "allgather"), (6, "allreduce")])
def test_shards_are_cut_in_as_many_chunks_as_a_target_holds(limit, kind):
    """No less than half of what fits is tried, and no more than fits is written; it is said why."""
    made = compiled(Tight(chunks=limit), kind)
    assert made.made is not None and made.made.chunks <= limit and all(report.ok for report in made.reports)
    tried = [p.max_chunks for p in made.plans[0].passes if isinstance(p, Discretize)]
    assert tried[0] is not None and limit < 2 * tried[0]
    assert any("discretize: in more than" in text and "limits of `tight`" in text for text in made.remarks)
    assert sum("would be exact" in text for text in made.remarks) == 1


def test_what_buffers_number_is_known_before():
    """5 shards and numbers up to 59: 12 chunks, in one go, and no more where a number was asked for."""
    made = compiled(Tight(chunks=12, numbers=59))
    cut = next(p for p in made.plans[0].passes if isinstance(p, Discretize))
    assert (cut.max_number, cut.max_message, cut.max_chunks) == (59, 4, None)
    assert made.made is not None and made.made.chunks <= 12
    assert not any("in more than" in text for text in made.remarks)


def test_what_nothing_fits_is_one_error():
    with pytest.raises(CollcError) as caught:
        compiled(Tight(chunks=0))
    (found,) = caught.value.diagnostics
    assert found.code == "C0627"


def test_chunks_that_were_asked_for_are_not_changed():
    with pytest.raises(CollcError) as caught:
        compiled(Tight(chunks=9), chunks=64)
    (found,) = caught.value.diagnostics
    assert found.code == "C0627" and (way := re.fullmatch(r"(\d+) chunks per shard fit: `chunks: \1`", found.hint))
    assert way and compiled(Tight(chunks=9), chunks=int(way[1])).artifacts


def test_long_messages_count_where_a_target_splits_them():
    """Of numbers that lose little that is taken whose messages are few; at a large size bandwidth counts."""
    exact = {size: bfb(two_speeds(), size=size) for size in (1 << 20, 1 << 45)}
    few, many = (Discretize(max_chunks=150, max_message=2).run(exact[size]) for size in sorted(exact))
    assert few.parts < many.parts and time_per_byte(few) > time_per_byte(many)
    tried = [round_parts(exact[1 << 20], p) for p in range(1, 151)]
    assert time_with_messages(few, 2) <= min(time_with_messages(s, 2) for s in tried)
    assert time_per_byte(many) <= min(time_per_byte(s) for s in tried)


def test_exact_numbers_stay_without_a_word():
    made, said = told(Discretize(), bfb(generalized_kautz(3, 20)))
    assert said == [] and made.discrete and time_per_byte(made) == time_per_byte(bfb(generalized_kautz(3, 20)))


def test_programs_hold_all_chunks_that_are_executed() -> None:
    """Many chunks of many shards at many ranks: a program with more than its verifier executes is a failure of ours."""
    most, why = Discretize().most(Collective("allreduce", 1024))
    assert most == 2**25 // (1024 * 3 * 1024)
    assert "in all buffers" in why
    assert Discretize().most(Collective("allreduce", 16))[0] == 4096


# ---- templates


@settings(max_examples=examples(40), deadline=None)
@given(cayley_networks(), st.sampled_from(TEMPLATE_KINDS), st.integers(1, 6), st.sampled_from([None, 1, 2]))
def test_a_rounded_template_takes_no_more_time_than_all_ranks_rounded(topology, kind, most, longest):
    """It is a template unless the rounding that differs from shard to shard takes less."""
    exact = template_of(topology, kind)
    pass_ = Discretize(max_chunks=most, max_message=longest, templates=True)
    found, listed = pass_.run(exact), pass_.run(exact.unfold())
    assert verify(found).ok and found.discrete and found.parts <= most
    assert time_with_messages(found, longest) <= time_with_messages(listed, longest)
    if isinstance(found, Schedule):
        rounded = best_rounding(exact, most, longest)[0]
        assert time_with_messages(listed, longest) < time_with_messages(rounded, longest)
    else:
        assert verify(found.unfold()).ok


@settings(max_examples=examples(20), deadline=None)
@given(cayley_networks(), st.sampled_from(TEMPLATE_KINDS), st.integers(1, 5))
def test_a_template_is_rounded_by_the_best_of_its_offsets(topology, kind, most):
    exact = template_of(topology, kind)
    if exact.parts <= most:
        return
    found, tried = best_rounding(exact, most)
    assert isinstance(found, SymmetricSchedule) and tried == most
    shards = max(exact.shards, 1)
    times = []
    for chunks, start in product(range(1, most + 1), range(16)):
        ends = [
            [
                _end(end, shard, chunks, start, exact.parts, shards)
                for end, shard in zip(column, exact.seed.shard, strict=True)
            ]
            for column in (exact.seed.lo.tolist(), exact.seed.hi.tolist())
        ]
        lo, hi = np.array(ends, dtype=np.int64).reshape(2, -1)
        rows = attrs.evolve(exact.seed, parts=chunks, lo=lo, hi=hi).rows(np.flatnonzero(lo < hi))
        times.append(time_per_byte(attrs.evolve(exact, seed=rows)))
    assert time_per_byte(found) == min(times)


def _end(end, shard, chunks, start, parts, shards):
    offset = Fraction((int(shard) * 112 // shards + start) % 16, 16)
    return 0 if end == 0 else chunks if end == parts else min(floor(Fraction(end * chunks, parts) + offset), chunks)


def test_an_all_to_all_of_a_torus_loses_a_tenth_of_what_rounding_each_shard_loses():
    """16x16 in one chunk a shard: 11.4 % for the shards of all ranks apart, 1.1 % for a template scheduled again."""
    problem = Problem(network("torus(16, 16)"), Collective("alltoall", 256))
    exact = Flow(template=True).run(problem)
    assert isinstance(exact, SymmetricSchedule)
    apart = best_rounding(exact.unfold(), 1)[0]
    with solving(solver_of([Flow(template=True)], problem)), remarks() as said:
        found = Discretize(max_chunks=1, templates=True).run(exact)
    assert isinstance(found, SymmetricSchedule) and "; scheduled again for whole chunks" in said[0]
    lost = [time_per_byte(one) - time_per_byte(exact) for one in (found, apart)]
    assert 0 < 10 * lost[0] < lost[1]


def test_the_transfers_of_a_large_template_are_not_listed(monkeypatch):
    def refused(self):
        raise AssertionError("the transfers of all ranks are listed")

    exact = template_of(network("torus(6, 5)"), "alltoall")
    monkeypatch.setattr(SymmetricSchedule, "unfold", refused)
    monkeypatch.setattr("collc.passes.schedule.discretize._LISTED", len(exact) - 1)
    assert isinstance(Discretize(max_chunks=1, templates=True).run(exact), SymmetricSchedule)


def template_of(topology, kind):
    scheduler = Flow(template=True) if kind == "alltoall" else BFB(template=True)
    found = scheduler.run(Problem(topology, Collective(kind, topology.num_ranks)))
    assert isinstance(found, SymmetricSchedule)
    return found
