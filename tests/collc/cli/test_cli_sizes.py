"""Tables of times by size: what is printed for a size is what a compilation for this size makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Ran

import collc as api
from collc.ir.costs.cost import predicted_time

Collc = Callable[..., Ran]

SIZES = (32, 1 << 16, 64 << 20)
SCHEDULERS = ("double-binary-tree", "forest", "swing", "bfb", "bine", "auto")
PUBLISHED = "collective c = {kind} on torus(4, 4){size};\nschedule c using {scheduler};\n"


def text_of(scheduler: str, size: int | None = None, kind: str = "allreduce") -> str:
    given = "" if size is None else f" {{ size: {size} B }}"
    return PUBLISHED.format(kind=kind, size=given, scheduler=scheduler)


def points(collc: Collc, verb: str, text: str, *arguments: str) -> list[dict]:
    ran = collc(verb, "-", "--json", *arguments, stdin=text)
    assert (0, "") == (ran.status, ran.err)
    found: list[dict] = json.loads(ran.out)["points"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["cost", "simulate"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_size_is_planned_as_if_it_were_declared(collc: Collc, scheduler: str, verb: str) -> None:
    sizes = ",".join(map(str, SIZES))
    for declared in (None, SIZES[-1]):
        together = points(collc, verb, text_of(scheduler, declared), "--size", sizes)
        alone = [point for size in SIZES for point in points(collc, verb, text_of(scheduler, size))]
        assert together == alone


#: four ranks in a ring of fast links and slow ones of another latency: breadth-first balance depends on the size
UNEQUAL = """topology t { rank r[4];
  for i in 0..4 { link r[i] <-> r[(i + 1) mod 4] : 10 GB/s, 1 us; link r[i] -> r[(i + 1) mod 4] : 40 GB/s, 30 us; } }
"""


@pytest.mark.parametrize("scheduler", ["bfb", "auto", "auto { candidates: bfb }"])
def test_balance_by_latency_is_planned_anew(collc: Collc, scheduler: str) -> None:
    def of(declared: str) -> str:
        return f"{UNEQUAL}collective c = allreduce on t{declared}; schedule c using {scheduler};"

    together = points(collc, "cost", of(""), "--size", "1KiB,64KiB,64MiB")
    alone = [points(collc, "cost", of(f" {{ size: {size} }}"))[0] for size in ("1 KiB", "64 KiB", "64 MiB")]
    assert together == alone
    fixed = scheduler.replace("bfb", "bfb { size: 64 MiB }") if scheduler == "bfb" else scheduler
    if fixed != scheduler:
        text = f"{UNEQUAL}collective c = allreduce on t; schedule c using {fixed};"
        assert points(collc, "cost", text, "--size", "1KiB")[0]["time_us"] > together[0]["time_us"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_is_printed_is_what_is_compiled(collc: Collc, scheduler: str) -> None:
    for point in points(collc, "cost", text_of(scheduler), "--size", "32,64MiB"):
        result = api.compile_source(text_of(scheduler, point["size_bytes"]))
        time = predicted_time(result.cost, point["size_bytes"])
        assert (point["time_us"], point["steps"]) == (pytest.approx(float(time) * 1e6), result.cost.T_L)


def test_the_time_of_a_small_size_is_its_steps(collc: Collc) -> None:
    """16 ranks in 32 bytes: 10 us a step, and nothing else that shows."""
    for scheduler in SCHEDULERS:
        for point in points(collc, "cost", text_of(scheduler), "--size", "32"):
            assert point["time_us"] == pytest.approx(10 * point["steps"], rel=0.01) and point["pieces"] == 1


def test_trees_of_a_large_size_do_not_slow_a_small_one(collc: Collc) -> None:
    """A tree for 64 MiB in 220 pieces takes 2.29 ms for 32 bytes; a compilation for 32 bytes takes one piece."""
    text = "collective c = allreduce on torus(8, 8) { size: 64 MiB };\nschedule c using double-binary-tree;"
    small, large = points(collc, "cost", text, "--size", "32,64MiB")
    assert (small["steps"], small["pieces"]) == (10, 1) and small["time_us"] == pytest.approx(100, rel=0.01)
    assert (large["steps"], large["pieces"]) == (229, 220)


def test_pieces_follow_the_size_in_the_table(collc: Collc) -> None:
    ran = collc("cost", "-", "--size", "32,64MiB", stdin=text_of("forest"))
    (head,) = (line.split() for line in ran.out.splitlines() if "algbw" in line and "busbw" in line)
    assert head == ["size", "steps", "pieces", "time", "algbw", "busbw"]
    assert "every size has its own schedule" in ran.out
    declared = collc("cost", "-", stdin=text_of("forest", 32))
    assert "every size has its own schedule" not in declared.out  # the lines above are those of this size
    assert "every size has its own schedule" not in collc("cost", "-", "--size", "32,64MiB", stdin=text_of("bfb")).out


def test_auto_names_its_choice_for_every_size(collc: Collc) -> None:
    found = points(collc, "simulate", text_of("auto"), "--size", "32,64KiB,64MiB")
    assert len({point["algorithm"] for point in found}) > 1
    for point in found:
        choice = api.compile_source(text_of("auto", point["size_bytes"])).collectives["c"].choice
        assert choice is not None and point["algorithm"] == choice.intervals[0].algorithm.name


def test_a_size_that_auto_is_told_stays(collc: Collc) -> None:
    text = text_of("auto { size: 64 MiB }")
    small, large = points(collc, "cost", text, "--size", "32,64MiB")
    assert small["algorithm"] == large["algorithm"] and small["steps"] == large["steps"]


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["forest", "double-binary-tree", "box-trees", "two-level"])
def test_the_best_pieces_of_all_trees(collc: Collc, scheduler: str) -> None:
    """The best power of two is no slower than any other, and another at each size."""
    boxes = "collective c = allreduce on dgx_a100(4); schedule c using {};"
    text = boxes.format(scheduler) if scheduler in ("box-trees", "two-level") else text_of(scheduler)
    sizes = ("--size", "32,1MiB,64MiB")
    best = points(collc, "simulate", text, *sizes, "--pieces", "best")
    for count in (1, 4, 16, 64):
        given = points(collc, "simulate", text, *sizes, "--pieces", str(count))
        assert [count] * 3 == [point["pieces"] for point in given]
        assert all(b["time_us"] <= g["time_us"] for b, g in zip(best, given, strict=True))
    assert best[0]["pieces"] == 1 < best[2]["pieces"]


def test_more_pieces_than_a_scheduler_takes_are_refused(collc: Collc) -> None:
    text = "collective c = allreduce on dgx_a100(4); schedule c using two-level;"
    ran = collc("simulate", "-", "--size", "1MiB", "--pieces", "65", stdin=text)
    assert ran.status == 1 and "[C0532]" in ran.err


def test_pieces_of_a_schedule_without_them_are_refused_in_words(collc: Collc) -> None:
    ran = collc("simulate", "-", "--size", "1MiB", "--pieces", "best", stdin=text_of("bfb"))
    assert ran.status == 0 and "[C0061]" in ran.err and "`c`" in ran.err


def test_a_range_of_auto_keeps_its_schedules(collc: Collc) -> None:
    """The file of a range serves all its calls, so each of its algorithms is one schedule."""
    ran = collc("simulate", "-", "--json", "--size", "32,64MiB", stdin=text_of("auto { sizes: all }"))
    for one in json.loads(ran.out)["collectives"]:
        assert 1 == len({(point["steps"], point["pieces"]) for point in one["points"]})


@pytest.mark.parametrize("verb", ["cost", "simulate"])
@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter", "broadcast", "alltoall"])
def test_bandwidths_are_those_of_nccl_tests(collc: Collc, verb: str, kind: str) -> None:
    root = " { root: 0 }" if kind == "broadcast" else ""
    (point,) = points(collc, verb, f"collective c = {kind} on biring(8){root};", "--size", "1MiB")
    factor = {"allreduce": Fraction(7, 4), "broadcast": Fraction(1)}.get(kind, Fraction(7, 8))
    assert point["algbw_GBps"] == pytest.approx(2**20 / point["time_us"] / 1e3)
    assert point["busbw_GBps"] == pytest.approx(point["algbw_GBps"] * float(factor))


def test_no_table_and_no_picture_mixes_units(collc: Collc) -> None:
    for verb in ("cost", "simulate"):
        ran = collc(verb, "-", "--size", "1KiB,1MiB", stdin=text_of("bfb"))
        assert "GB/s" in ran.out and not re.search(r"Gb/s|Gbps", ran.out)
    collc("simulate", "-", "--svg", "a.svg", stdin=text_of("bfb"))
    drawn = Path("a.svg").read_text()
    assert "GB/s" in drawn and "Gb/s" not in drawn
