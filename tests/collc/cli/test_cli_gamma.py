"""``--gamma``, ``--launch``, and the same numbers in a file: times, JSON, the choice of `auto`, calibration."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Ran

import collc as api
from collc.ir.costs.cost import predicted_time
from collc.ir.diagnostic import CollcError
from collc.running.predicted import Model
from collc.tools.attributes import attribute_file
from collc.tools.calibration import calibrate
from collc.tools.measurements import Measured, read_measurements

Collc = Callable[..., Ran]

TORUS = (
    "topology t = torus(4, 4){given}; collective c = allreduce on t {{ size: 64 MiB }}; schedule c using {scheduler};"
)
GIVEN = " with { reduction: 500 GB/s, launch: 20 us }"
SIZE = 64 << 20


def text(scheduler: str = "bfb", given: str = "") -> str:
    return TORUS.format(given=given, scheduler=scheduler)


def printed(collc: Collc, verb: str, source: str, *arguments: str) -> dict:
    ran = collc(verb, "-", "--json", "--size", str(SIZE), *arguments, stdin=source)
    assert (0, "") == (ran.status, ran.err)
    found: dict = json.loads(ran.out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["cost", "simulate"])
@pytest.mark.parametrize("scheduler", ["bfb", "forest", "double-binary-tree", "swing"])
def test_times_grow_by_what_ranks_add(collc: Collc, verb: str, scheduler: str) -> None:
    plain = printed(collc, verb, text(scheduler))
    assert plain["gamma"] == plain["epsilon"] == "0" and Fraction(plain["T_C"]) >= Fraction(15, 16)
    for gamma in ("500GB/s", "2ps/B", "0.002ns/B", "0.000002us/B", "4000Gbps"):
        found = printed(collc, verb, text(scheduler), "--gamma", gamma, "--launch", "20us")
        assert (found["gamma"], found["epsilon"]) == ("1/500000000000", "1/50000")
        more = 20 + Fraction(found["T_C"]) * SIZE / 500_000
        assert found["points"][0]["time_us"] == pytest.approx(plain["points"][0]["time_us"] + float(more))
    assert found == printed(collc, verb, text(scheduler), "--gamma", gamma, "--epsilon", "20us")


@pytest.mark.parametrize("verb", ["cost", "simulate"])
def test_the_topology_gives_them_and_options_replace_them(collc: Collc, verb: str) -> None:
    own, options = printed(collc, verb, text(given=GIVEN)), ("--gamma", "500GB/s", "--launch", "20us")
    given = printed(collc, verb, text(), *options)
    assert own["points"] == given["points"]
    none = printed(collc, verb, text(given=GIVEN), "--gamma", "0", "--launch", "0us")
    assert none["points"] == printed(collc, verb, text())["points"]


def test_the_api_takes_the_topologys(collc: Collc) -> None:
    found = api.compile_source(text(given=GIVEN)).cost
    plain = api.compile_source(text()).cost
    more = Fraction(15, 16) * SIZE / (500 * 10**9) + Fraction(1, 50_000)
    assert predicted_time(found, SIZE) == predicted_time(plain, SIZE) + more


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [("--gamma", "2ns", "a time per byte"), ("--gamma", "500", "a rate such as 500GB/s"), ("--gamma", "-1ns/B", "time"),
     ("--gamma", "0GB/s", "more than 0"), ("--gamma", "2ns/b", "ns/B"), ("--launch", "20GB/s", "a time such as 10us")],
)  # fmt: skip
def test_mistakes_are_one_message(collc: Collc, option: str, value: str, hint: str) -> None:
    ran = collc("cost", "-", f"{option}={value}", stdin=text())
    assert (2, "") == (ran.status, ran.out) and "[C0020]" in ran.err and hint in ran.err


def test_every_size_is_explained_by_its_row(collc: Collc) -> None:
    """Latency 0: what a schedule takes beyond its bandwidth time is gamma times the T_C of its row."""
    source = "collective c = allreduce on torus(4, 4); schedule c using swing;"
    arguments = ("--json", "--size", "32,64KiB,64MiB", "--gamma", "1ns/B")
    for verb in ("cost", "simulate"):
        plain = json.loads(collc(verb, "-", *arguments[:3], stdin=source).out)["points"]
        added = json.loads(collc(verb, "-", *arguments, stdin=source).out)["points"]
        assert {"4", "15/16"} == {point["T_C"] for point in added}
        for one, other in zip(plain, added, strict=True):
            more = float(Fraction(other["T_C"])) * other["size_bytes"] / 1e3
            assert other["time_us"] == pytest.approx(one["time_us"] + more)
        assert "T_C/(M gamma)" in collc(verb, "-", *arguments[1:], stdin=source).out
        assert "T_C" not in collc(verb, "-", "--size", "1KiB", stdin=source).out


def test_predictions_for_runs_count_them_too() -> None:
    """A testbed or --bandwidth scales the links; additions take the time that they take."""
    relative = api.compile_source(text(given=GIVEN)).collectives["c"]
    model = Model.of(relative, Fraction(1, 10**5), Fraction(10**9))
    assert model is not None
    expected = predicted_time(relative.cost, SIZE, Fraction(1, 10**5), Fraction(10**9))
    assert model.at(SIZE)[0] == pytest.approx(float(expected), rel=1e-12)
    timed = text(given=" with { bandwidth: 25 Gbps, reduction: 500 GB/s, launch: 20 us }")
    absolute = api.compile_source(timed).collectives["c"]
    model = Model.of(absolute, Fraction(0))
    assert model is not None
    assert model.at(SIZE)[0] == pytest.approx(float(predicted_time(absolute.cost, SIZE, Fraction(0))), rel=1e-12)


# ---- auto


def chosen(given: str = "", options: str = "") -> tuple[str, Fraction]:
    source = f"topology t = torus(4, 4){given};\ncollective c = allreduce on t {{ size: 32 KiB }};\n"
    result = api.compile_source(f"{source}schedule c using auto{options};").collectives["c"]
    assert result.choice is not None
    return result.choice.intervals[0].algorithm.name, result.choice.at(32 << 10)


def test_auto_counts_additions() -> None:
    """Exchanges of whole vectors take the fewest steps and add the most: slow additions make another algorithm win."""
    fast, slow = chosen(), chosen(" with { reduction: 1 GB/s, launch: 20 us }")
    assert fast[0] != slow[0] and slow[1] > fast[1] + Fraction(20, 10**6)
    assert chosen(options=" { reduction: 1 GB/s, launch: 20 us }") == slow
    assert chosen(" with { reduction: 1 GB/s, launch: 20 us }", " { launch: 0 us }")[1] == slow[1] - Fraction(20, 10**6)


@pytest.mark.parametrize("given", [" with { reduction: 1 GB/s, launch: 3 us }", ""])
def test_the_time_that_auto_reports_is_the_predicted_one(collc: Collc, given: str) -> None:
    source = f"topology t = torus(4, 4){given};\ncollective c = allreduce on t {{ size: 32 KiB }};\n"
    found = json.loads(collc("cost", "-", "--json", stdin=source).out)
    (interval,) = found["auto"]["ranges"]
    assert interval["points"][0]["time_us"] == pytest.approx(found["points"][0]["time_us"])


# ---- calibration

ALPHA, OVERHEAD, RATE, GAMMA = 50e-6, 20e-6, 5e9, 1e-10
#: (steps, load, what ranks add): an allreduce, an allgather, an exchange of whole vectors
SCHEDULES = ((14, 1.75, 0.875), (7, 0.875, 0.0), (3, 3.0, 3.0))


def calls(schedules: tuple[tuple[int, float, float], ...] = SCHEDULES) -> list[Measured]:
    return [
        Measured(m, steps, load, OVERHEAD + ALPHA * steps + load * m / RATE + GAMMA * added * m, f"{steps}", added)
        for steps, load, added in schedules
        for m in (1 << 10, 1 << 16, 1 << 20, 1 << 24)
    ]


def test_gamma_is_found_beside_bandwidth() -> None:
    found = calibrate(calls(), gamma=True)
    assert found.gamma == pytest.approx(GAMMA) and found.bandwidth == pytest.approx(RATE)
    assert found.overhead == pytest.approx(OVERHEAD) and found.alphas[0][1] == pytest.approx(ALPHA)
    assert found.largest_deviation < 1e-6
    assert calibrate(calls()).gamma is None


def test_schedules_of_least_bandwidth_time_do_not_tell_gamma() -> None:
    """Corollary 6.1: then 1/B + gamma/2 is all that times show."""
    same = ((14, 1.75, 0.875), (6, 1.75, 0.875))
    with pytest.raises(CollcError, match="cannot separate gamma from bandwidth"):
        calibrate(calls(same), gamma=True)
    assert calibrate(calls(same)).bandwidth == pytest.approx(1 / (1 / RATE + GAMMA / 2))
    with pytest.raises(CollcError, match="what the ranks add"):
        calibrate([Measured(m, s, s * 1.0, m * 1e-6) for s in (1, 2) for m in (1, 10, 100)], gamma=True)


def test_the_command_fits_gamma_by_the_schedules(collc: Collc) -> None:
    source = "topology t = biring(8);\n" + "".join(
        f"collective {kind.replace('-', '_')} = {kind} on t;\nschedule {kind.replace('-', '_')} using bfb;\n"
        for kind in ("allreduce", "allgather")
    )
    Path("pod.coll").write_text(source)
    rows = [
        f"{name},{m},{OVERHEAD + ALPHA * steps + load * m / RATE + GAMMA * added * m}"
        for name, steps, load, added in (("allreduce", 8, 0.875, 0.875), ("allgather", 4, 0.4375, 0.0))
        for m in (1 << 10, 1 << 16, 1 << 20, 1 << 24)
    ]
    Path("times.csv").write_text("name,bytes,seconds\n" + "\n".join(rows) + "\n")
    ran = collc("calibrate", "times.csv", "--schedules", "pod.coll", "--gamma", "-o", "site.coll")
    assert (0, "") == (ran.status, ran.err) and "gamma 0.1 ns/B of a rank to add: 10 GB/s" in " ".join(ran.out.split())
    found = json.loads(collc("calibrate", "times.csv", "--schedules", "pod.coll", "--gamma", "--json").out)
    assert found["gamma_ns_per_B"] == pytest.approx(0.1) and found["epsilon_us"] == pytest.approx(20)
    assert found["reduction_Bps"] == pytest.approx(1e10)
    names = ("bandwidth", "latency", "reduction", "launch: measured_call")
    given = ", ".join(name if ":" in name else f"{name}: measured_{name}" for name in names)
    attributes = Path("site.coll").read_text()
    assert f"with {{ {given} }}" in attributes
    Path("next.coll").write_text(
        f'include "site.coll";\ntopology t = biring(8) with {{ {given} }};\ncollective c = allreduce on t;\n'
        "schedule c using bfb;\n"
    )
    (point,) = json.loads(collc("cost", "next.coll", "--json", "--size", "1MiB").out)["points"]
    assert point["time_us"] == pytest.approx(1e6 * float(rows[2].split(",")[2]), rel=1e-4)


def test_rows_have_a_column_for_what_ranks_add() -> None:
    (row,), _ = read_measurements("bytes,steps,load,reduced,seconds\n8,2,7/4,7/8,1\n", "x")
    assert row == Measured(8, 2, 1.75, 1.0, reduced=0.875)
    assert "reduction" not in attribute_file(calibrate(calls()))
