"""`collc calibrate`: alpha and bandwidth out of measured times, and the file that gives them to links."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Ran
from hypothesis import given
from hypothesis import strategies as st

import collc as api
from collc.ir.diagnostic import CollcError
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.tools.attributes import attribute_file
from collc.tools.calibration import AUTO, Calibration, calibrate
from collc.tools.measurements import Measured, read_measurements

Collc = Callable[..., Ran]

ALPHA, OVERHEAD, RATE = 50e-6, 20e-6, 5e6
#: (steps, load) of a ring of eight, breadth first on it, and breadth first on a cube
SCHEDULES = ((14, 1.75), (8, 0.875), (6, 7 / 12))
SIZES = (1 << 10, 1 << 14, 1 << 16, 1 << 20, 1 << 22)


def calls(
    noise: Callable[[], float] = lambda: 1.0, alpha: Callable[[float], float] = lambda message: ALPHA
) -> list[Measured]:
    """Times of a network that is as the model has it, each multiplied by ``noise``."""
    return [
        Measured(
            size,
            steps,
            load,
            noise() * (OVERHEAD + alpha(load * size / steps) * steps + load * size / RATE),
            f"{steps}",
        )
        for steps, load in SCHEDULES
        for size in SIZES
    ]


POINTS = calibrate(calls()).points


# ---- the fit


def test_times_of_the_model_give_the_model_back() -> None:
    found = calibrate(calls())
    assert found.alphas == ((None, pytest.approx(ALPHA)),)
    assert found.overhead == pytest.approx(OVERHEAD) and found.bandwidth == pytest.approx(RATE)
    assert found.r_squared == pytest.approx(1) and found.largest_deviation < 1e-9 and not found.outliers


@given(st.floats(1e-7, 1e-2), st.floats(0, 1e-2), st.floats(1e5, 1e11))
def test_any_model_is_found(alpha: float, overhead: float, rate: float) -> None:
    points = [Measured(m, s, y, overhead + alpha * s + y * m / rate) for s, y in SCHEDULES for m in (1, 10**6, 10**10)]
    found = calibrate(points)
    assert all(abs(found.time(point) / point.seconds - 1) < 1e-4 for point in points)


def test_late_calls_do_not_move_it() -> None:
    """A quarter of the calls takes three times as long; least squares would follow them."""
    chance = random.Random(7)
    points = calls(lambda: 3.0 if chance.random() < 0.25 else 1 + chance.uniform(0, 0.01))
    found = calibrate(points)
    assert found.bandwidth == pytest.approx(RATE, rel=0.02) and found.alphas[0][1] == pytest.approx(ALPHA, rel=0.1)
    late = {point.measured for point in found.outliers}
    assert late == {point for point, good in zip(points, calls(), strict=True) if point.seconds > 2 * good.seconds}
    assert late


def test_repeated_calls_count_by_their_median() -> None:
    found = calibrate([*calls(), *calls(), *calls(lambda: 50.0)])
    assert found.bandwidth == pytest.approx(RATE) and {point.repeats for point in found.points} == {3}


def test_one_schedule_cannot_tell_overhead_from_alpha() -> None:
    found = calibrate([point for point in calls() if point.steps == 14])
    assert found.overhead is None and found.alphas[0][1] == pytest.approx(ALPHA + OVERHEAD / 14)


def rendezvous(message: float) -> float:
    return ALPHA if message <= 20_000 else 100 * ALPHA


def test_large_messages_may_have_an_alpha_of_their_own() -> None:
    for boundaries in ([20_000], AUTO):
        found = calibrate(calls(alpha=rendezvous), boundaries)
        (limit, small), (none, large) = found.alphas
        assert limit is not None and 9000 < limit < 80_000 and none is None
        assert small == pytest.approx(ALPHA) and large == pytest.approx(100 * ALPHA)
    assert len(calibrate(calls(), AUTO).alphas) == 1


def test_boundaries_beyond_what_was_measured_are_left_out() -> None:
    assert calibrate(calls(), [1, 10**9]).alphas == calibrate(calls()).alphas


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "0 different measurements are too few"),
        ([Measured(1 << 20, 14, 1.75, 0.4)] * 9, "1 different measurements are too few"),
        ([Measured(100, s, 1.0, s * 1e-3) for s in (1, 2, 3)], "all measurements have one size"),
        ([Measured(m, 4, 1.0, 1 / m) for m in (10, 100, 1000, 10000)], "times do not grow with bytes"),
    ],
)
def test_what_determines_nothing_is_an_error(points: Sequence[Measured], said: str) -> None:
    with pytest.raises(CollcError, match=said) as found:
        calibrate(points)
    assert found.value.diagnostics[0].code == "C0077"


def test_what_was_not_seen_is_said() -> None:
    found = calibrate([Measured(m, s, y, y * m / RATE) for s, y in SCHEDULES for m in SIZES])
    assert found.alphas[0][1] == 0 and any("alpha is 0" in note for note in found.notes)
    chance = random.Random(3)
    wild = calibrate([Measured(m, 4, 1.0, chance.uniform(0.1, 1)) for m in range(1000, 30000, 1000)])
    assert any("explains little" in note for note in wild.notes)


# ---- files


CSV = "name,bytes,steps,load,seconds\n" + "".join(
    f"{p.name},{p.bytes},{p.steps},{p.load!r},{p.seconds!r}\n" for p in calls()
)


def test_csv_and_json_say_the_same() -> None:
    rows = [
        {"name": p.name, "size_bytes": p.bytes, "hops": p.steps, "load": p.load, "time_us": p.seconds * 1e6}
        for p in calls()
    ]
    for text in (json.dumps(rows), json.dumps({"ok": True, "rows": rows}), CSV, f"# a comment\n\n{CSV}"):
        found, notes = read_measurements(text, "x")
        assert [(p.name, p.bytes, p.steps, p.load) for p in found] == [
            (p.name, p.bytes, p.steps, p.load) for p in calls()
        ]
        assert [p.seconds for p in found] == pytest.approx([p.seconds for p in calls()]) and not notes


def test_loads_may_be_fractions() -> None:
    assert read_measurements("bytes,steps,load,seconds\n8,2,7/4,1\n", "x")[0] == [Measured(8, 2, 1.75, 1.0)]


def test_rows_without_time_or_schedule_are_left_out_and_counted() -> None:
    rows = [
        {"size_bytes": 8, "steps": 1, "load": 1, "time_us": None}, {"size_bytes": 8, "time_us": 3.5},
        {"size_bytes": 8, "steps": 1, "load": 1, "time_us": 3.5, "correct": False},
    ]  # fmt: skip
    found, notes = read_measurements(json.dumps(rows), "x")
    assert not found and sorted(notes) == [
        "1 rows skipped: no time", "1 rows skipped: steps and load of the schedule are unknown",
        "1 rows skipped: the result was wrong",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no measurements"),
        ("bytes,seconds\n", "holds no measurements"),
        ("name,seconds\na,1\n", "no column `bytes`"),
        ("a,b\n1,2\n", "no column `bytes` and `seconds`"),
        ("\x01\x02garbage", "no column"),
        ("bytes,seconds\n1\n", "line 2 has 1 cells, the first line has 2"),
        ("bytes,seconds\n1,nan\n", r"`seconds` is a number .* to 1e\+20, found `nan` \(x, line 2\)"),
        ("bytes,seconds\n1,inf\n", "0 or from 1e-20"),
        ("bytes,seconds\n1" + "0" * 300 + ",1\n", "0 or from 1e-20"),
        ("bytes,seconds\n1,-3\n", "0 or from 1e-20"),
        ("bytes,seconds\n1,0\n", "`seconds` is more than 0"),
        ("bytes,seconds\n1.5,1\n", "`bytes` is a whole number"),
        ("bytes,seconds\n,1\n", "`bytes` is a whole number"),
        ("bytes,seconds\nmany,1\n", "`bytes` is a number, found `many`"),
        ("bytes,steps,load,seconds\n1,0,1,1\n", "`steps` is a whole number of at least 1, found `0`"),
        ("bytes,steps,load,seconds\n1,1,1/0,1\n", "`load` is a number, found `1/0`"),
        ("bytes,seconds\n" + "1" * 400 + ",1\n", "`bytes` is a number"),
        ('bytes,seconds\n"1\n2",1\n', "not a table|cells"),
        ('bytes,seconds\n"1,1\n', "is not CSV"),
        ("{", "is not JSON"),
        ("[1, 2]", "no list of objects"),
        ('{"rows": 3}', "no list of objects"),
        ('[{"bytes": [1], "seconds": 1}]', "`bytes` is a number"),
        ('[{"bytes": true, "seconds": 1}]', "`bytes` is a number"),
        ("[" * 100_000, "nested too deeply|is not JSON"),
        ("bytes,seconds\n" + "1,1\n" * 100_001, "has 100001 rows"),
    ],
)  # fmt: skip
def test_bad_files_are_one_clear_message(text: str, said: str) -> None:
    with pytest.raises(CollcError, match=said) as found:
        read_measurements(text, "x")
    assert [d.code for d in found.value.diagnostics] == ["C0076"]


@given(
    st.text(max_size=60),
    st.sampled_from(["", "bytes,seconds\n", "bytes,steps,load,seconds\n1,1,1,", "[", '[{"bytes":']),
)
def test_no_text_is_a_traceback(text: str, start: str) -> None:
    try:
        read_measurements(start + text, "x")
    except CollcError as found:
        assert found.diagnostics[0].code == "C0076"


# ---- the attributes


def fitted() -> Calibration:
    return calibrate(calls(alpha=rendezvous), [20_000])


def test_the_file_is_one_that_topologies_take(tmp_path: Path) -> None:
    (tmp_path / "site.coll").write_text(attribute_file(fitted(), "site", "a.csv"), encoding="utf-8")
    text = (
        'include "site.coll";\n'
        "topology pod = torus(3, 3) with { bandwidth: site_bandwidth, latency: site_latency };\n"
        "topology far = biring(4) with { bandwidth: site_bandwidth / 2, latency: site_latency_above_20000 };\n"
        "collective near = allreduce on pod;\ncollective c = allreduce on far;\n"
    )
    (tmp_path / "pod.coll").write_text(text, encoding="utf-8")
    result = api.compile(tmp_path / "pod.coll")
    kinds = {name: one.cost for name, one in result.collectives.items()}
    assert kinds["near"].timed and kinds["near"].unit == "B/s"
    links = result.collectives["near"].schedule.topology.classes[0]  # type: ignore[union-attr]
    assert abs(links.bandwidth / Fraction(RATE) - 1) < Fraction(1, 10**5)
    assert abs(links.latency / Fraction(ALPHA) - 1) < Fraction(1, 10**5)


@given(st.floats(0, 1e5), st.floats(1e-3, 1e15))
def test_every_value_is_one_of_the_language(alpha: float, rate: float) -> None:
    text = attribute_file(Calibration(((None, alpha),), None, rate, POINTS))
    spec = load_spec(f"{text}topology t = biring(3) with {{ latency: measured_latency }};\n", "t.coll", Loading())
    assert abs(float(spec.topologies["t"].classes[0].latency) / alpha - 1) < 1e-4 if alpha > 1e-8 else True
    shown = text.split("measured_bandwidth = ")[1].split(" ")[0]
    assert "e" not in shown and len(shown) >= 7


# ---- the command


def written(folder: Path, text: str = CSV, name: str = "times.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_the_command_prints_the_fit_and_writes_the_file(tmp_path: Path, collc: Collc) -> None:
    ran: Ran = collc("calibrate", written(tmp_path), "-o", "site.coll", "--name", "site")
    assert ran.status == 0 and not ran.err
    assert "bandwidth  0.005 GB/s" in ran.out and "alpha      50 us" in ran.out and "overhead   20 us" in ran.out
    assert "let site_bandwidth = 40.0000 Mbps;" in (tmp_path / "site.coll").read_text()
    printed = collc("calibrate", "times.csv", "-o", "-")
    assert printed.status == 0 and "let measured_latency = 50.0000 us;" in printed.out


def test_json_has_every_point(tmp_path: Path, collc: Collc) -> None:
    ran = collc("calibrate", written(tmp_path), "--json", "--classes", "auto")
    found = json.loads(ran.out)
    assert len(found["points"]) == 15 and found["bandwidth_Bps"] == pytest.approx(RATE)
    assert found["alphas"] == [{"most_message_bytes": None, "alpha_us": pytest.approx(50)}]


def test_schedules_tell_what_rows_do_not(tmp_path: Path, collc: Collc) -> None:
    (tmp_path / "pod.coll").write_text(
        "topology t = biring(8);\ncollective grads = allreduce on t;\nschedule grads using bfb;\n"
    )
    rows = [
        {"name": "grads", "ranks": 8, "size_bytes": m, "time_us": 1e6 * (8 * ALPHA + 0.875 * m / RATE)} for m in SIZES
    ]
    written(tmp_path, json.dumps({"rows": rows}), "times.json")
    ran = collc("calibrate", "times.json", "--schedules", "pod.coll", "--json")
    found = json.loads(ran.out)
    assert found["bandwidth_Bps"] == pytest.approx(RATE) and found["alphas"][0]["alpha_us"] == pytest.approx(50)
    alone = collc("calibrate", "times.json")
    assert alone.status == 1 and "C0077" in alone.err


def test_only_some_rows(tmp_path: Path, collc: Collc) -> None:
    spoiled = CSV + "other,1048576,14,1.75,77\n" * 3
    ran = collc("calibrate", written(tmp_path, spoiled), "--only", "14,8,6", "--json")
    assert len(json.loads(ran.out)["points"]) == 15


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("missing.csv",), 1, "C0002"),
        (("times.csv", "-o", "times.csv"), 1, "C0005"),
        (("times.csv", "--name", "2x"), 2, "needs a name of the language"),
        (("times.csv", "--classes", "some"), 2, "C0020"),
        (("times.csv", "--only", "nobody"), 1, "C0077"),
        ((), 2, "C0001"),
    ],
)
def test_mistakes(tmp_path: Path, collc: Collc, arguments: tuple[str, ...], status: int, said: str) -> None:
    written(tmp_path)
    ran = collc("calibrate", *arguments)
    assert ran.status == status and said in ran.err and "Traceback" not in ran.err


def test_what_was_left_out_is_a_warning(tmp_path: Path, collc: Collc) -> None:
    ran = collc("calibrate", written(tmp_path, CSV + "builtin,1024,,,0.5\n"))
    assert ran.status == 0 and "1 rows skipped: steps and load" in ran.err and "C0078" in ran.err
    assert collc("calibrate", "times.csv", "-Werror").status == 1
