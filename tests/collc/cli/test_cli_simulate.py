"""``collc simulate``: what tools read, pictures, options, and every mistake one message."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from commands import Ran, spawn
from picture_checks import check

Collc = Callable[..., Ran]

#: The keys that tools read; more may come, none may go.
KEYS = {
    "name", "ranks", "collective", "scheduler", "topology", "routing", "latency", "steps", "points", "max_link_load",
    "max_link_load_float", "congestion", "congestion_float", "bandwidth_deficiency", "congestion_deficiency",
    "latency_deficiency", "latency_deficiency_float", "sent_per_rank", "link_loads", "assumed",
}  # fmt: skip

TORUS = """topology t = torus(4, 4) with { bandwidth: 400 Gbps };
collective a = allreduce on t;
schedule a using bfb;
"""
TWO = """topology t = biring(16) with { bandwidth: 400 Gbps };
collective bfb = allreduce on t;
schedule bfb using bfb;
collective hand = allreduce on t;
schedule hand using steps {
  for r in 0..16, k in 0..16 { if k != r { at 0: reduce shard k from r to k; at 1: send shard r from r to k; } }
}
"""


def simulated(collc: Collc, text: str, *arguments: str) -> dict:
    ran = collc("simulate", "-", "--json", *arguments, stdin=text)
    assert (0, "") == (ran.status, ran.err)
    found: dict = json.loads(ran.out)
    return found


def test_json_has_the_keys_tools_read(collc: Collc) -> None:
    found = simulated(collc, TORUS, "--size", "1MiB,64MiB", "--alpha", "10us")
    assert found.keys() >= KEYS
    assert ("15/16", 0.9375, "3/32", "2", 8) == tuple(
        found[key] for key in ("congestion", "congestion_float", "max_link_load", "latency_deficiency", "steps")
    )
    assert [1 << 20, 64 << 20] == [point["size_bytes"] for point in found["points"]]
    seconds = 8 * 10e-6 + (1 << 20) / 2 / 50e9 * 15 / 16
    (point, _) = found["points"]
    assert point["time_us"] == pytest.approx(seconds * 1e6)
    assert point["algbw_GBps"] == pytest.approx((1 << 20) / seconds / 1e9)
    assert point["goodput_Gbps"] == pytest.approx(8 * point["algbw_GBps"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["torus(3, 3, 2)", "hypercube(4)", "hypercube(3) with { bandwidth: 25 GB/s, latency: 2 us }", "complete(5)",
     "circulant(12, {2, 3})", "torus(12, 12)"],
)  # fmt: skip
@pytest.mark.parametrize("options", [[], ["--alpha", "3us"], ["--bandwidth", "100Gbps"]])
def test_times_over_single_links_are_those_of_cost(collc: Collc, expression: str, options: list[str]) -> None:
    text = f"topology t = {expression};\ncollective g = allreduce on t;\nschedule g using bfb;"
    sizes = ["--size", "0,1KiB,64MiB", *options]
    costs = json.loads(collc("cost", "-", "--json", *sizes, stdin=text).out)
    found = simulated(collc, text, *sizes)
    assert Fraction(costs["T_B"]) == 2 * Fraction(found["congestion"])
    assert costs["steps"] == found["steps"]
    points = [{key: point[key] for key in cost} for cost, point in zip(costs["points"], found["points"], strict=True)]
    assert costs["points"] == points
    assert all(point["in_step_us"] == point["run_ahead_us"] == point["time_us"] for point in found["points"])


def test_sizes_come_from_the_file_and_the_options(collc: Collc) -> None:
    sized = TORUS.replace("on t;", "on t { size: 2 MiB };")
    assert [2 << 20] == [point["size_bytes"] for point in simulated(collc, sized)["points"]]
    assert 3 == len(simulated(collc, TORUS)["points"])
    assert [32] == [point["size_bytes"] for point in simulated(collc, sized, "--size", "32B")["points"]]


def test_several_collectives_are_compared(collc: Collc) -> None:
    """Straight to everyone is quick for little, neighbours only for much."""
    found = simulated(collc, TWO.replace("biring(16)", "complete(16)"), "--size", "32B,512MiB",
                      "--network", "biring(16) with { bandwidth: 400 Gbps }", "--latency", "swing")  # fmt: skip
    assert ["bfb", "hand"] == [one["name"] for one in found["collectives"]]
    assert found["collectives"][0]["congestion"] == found["collectives"][1]["congestion"]
    assert [] == found["crossovers"]


def test_crossovers_are_named(collc: Collc) -> None:
    text = """topology t = torus(8, 8) with { bandwidth: 400 Gbps };
    collective swing = allreduce on t;
    schedule swing using swing;
    collective bucket = allreduce on t;
    schedule bucket using bucket;
    """
    found = simulated(collc, text, "--size", "32B,512MiB", "--latency", "swing")
    (change,) = found["crossovers"]
    assert ("swing", "bucket") == (change["from"], change["to"])
    times = {
        one["name"]: [point["time_us"] for point in one["points"]]
        for one in simulated(
            collc, text, "--latency", "swing", "--size", f"{change['size_bytes'] - 1},{change['size_bytes']}"
        )["collectives"]
    }
    assert times["swing"][0] <= times["bucket"][0] and times["bucket"][1] <= times["swing"][1]
    text_form = collc("simulate", "-", "--size", "32B,512MiB", "--latency", "swing", stdin=text).out
    assert f"  swing until {float(change['size_bytes'] / 2**20):.3g} MiB ({change['size_bytes']} B), then bucket\n" in (
        text_form
    )


def test_different_collectives_have_no_crossovers(collc: Collc) -> None:
    both = TORUS + "collective b = allgather on t;\nschedule b using bfb;\n"
    assert [] == simulated(collc, both, "--size", "32B,512MiB")["crossovers"]


@pytest.mark.parametrize(
    ("options", "nanoseconds"),
    [(["--latency", "swing"], 8 * 914.1), (["--latency", "swing", "--alpha", "0ns"], 8 * 414.1),
     (["--latency", "swing", "--per-hop", "0ns"], 8 * 514.1), (["--latency", "swing", "--overhead", "1us"], 8 * 3900),
     (["--alpha", "1us", "--per-hop", "1us"], 8 * 2000), (["--latency", "hammingmesh"], 8 * 315)],
)  # fmt: skip
def test_latencies(collc: Collc, options: list[str], nanoseconds: float) -> None:
    (point,) = simulated(collc, TORUS, "--size", "0B", *options)["points"]
    assert nanoseconds / 1000 == pytest.approx(point["time_us"])


RING = """topology t = hammingmesh(2, 2, 2, 2);
collective a = allreduce on torus(4, 4);
schedule a using bucket;
"""


def test_rings_on_boards_run_ahead(collc: Collc) -> None:
    """Half of the hops are 315 ns late, half 715; the last of the repetitions is waited for in full."""
    options = ("--network", "hammingmesh(2, 2, 2, 2)", "--latency", "hammingmesh", "--size", "0")
    in_step = simulated(collc, RING, *options)
    ahead = simulated(collc, RING, *options, "--run-ahead")
    assert (False, True) == (in_step["run_ahead"], ahead["run_ahead"]) and in_step["steps"] == 12
    assert 12 * 0.715 == pytest.approx(in_step["points"][0]["time_us"])
    repeated = sum(step["times"] - 1 for step in ahead["link_loads"])
    assert 12 * 0.715 - repeated * 0.2 == pytest.approx(ahead["points"][0]["time_us"]) and repeated == 9


def test_both_times_are_said_where_they_differ(collc: Collc) -> None:
    """Whatever is chosen, the other time stands beside it; where it is the same, nothing is said."""
    options = ("--network", "hammingmesh(2, 2, 2, 2)", "--latency", "hammingmesh", "--size", "0")
    for chosen in ((), ("--run-ahead",)):
        (point,) = simulated(collc, RING, *options, *chosen)["points"]
        assert (8.58, 6.78) == (pytest.approx(point["in_step_us"]), pytest.approx(point["run_ahead_us"]))
        assert point["time_us"] == point["run_ahead_us" if chosen else "in_step_us"]
        text = collc("simulate", "-", *options, *chosen, stdin=RING).out
        assert ("in step" if chosen else "run ahead") in text and "do not wait for all others" in text
    same = simulated(collc, RING, "--size", "1KiB")["points"][0]
    assert same["in_step_us"] == same["run_ahead_us"] == same["time_us"]
    assert "run ahead" not in collc("simulate", "-", "--size", "1KiB", stdin=RING).out


@pytest.mark.slow
def test_forests_in_other_pieces(collc: Collc) -> None:
    """Many pieces cost latency, few bandwidth; the best at each size are no slower than any."""
    text = "topology t = fat_tree(4);\ncollective a = allreduce on t;\nschedule a using forest;"
    sizes = ("--size", "1KiB,1MiB,64GiB")
    times = {
        pieces: [p["time_us"] for p in simulated(collc, text, *sizes, f"--pieces={pieces}")["points"]]
        for pieces in ("1", "16", "1024", "best")
    }
    assert times["1"][0] < times["16"][0] < times["1024"][0] and times["1"][2] > times["16"][2] > times["1024"][2]
    assert all(best <= other for one in times.values() for best, other in zip(times["best"], one, strict=True))
    large = simulated(collc, text, "--size", "1TiB", "--pieces", "best")["points"][0]
    assert 8 * 12.5 * 16 / 30 == pytest.approx(large["goodput_Gbps"], rel=0.01)  # the bound: 2 (N-1)/N on a link
    ran = collc("simulate", "-", "--pieces", "many", stdin=text)
    assert 2 == ran.status and "[C0001]" in ran.err


def test_steps_are_listed(collc: Collc) -> None:
    """A line for every different step: numbers from the first to the one after the last, exact loads."""
    ran = collc("simulate", "-", "--steps", "--size", "1MiB", stdin=RING)
    lines = [line.split() for line in ran.out.splitlines()]
    head = lines.index(["step", "messages", "links", "max", "link", "load", "on"])
    assert [["0..3", "64", "1", "1/16"], ["3..9", "64", "1", "1/64"], ["9..12", "64", "1", "1/16"]] == [
        line[:4] for line in lines[head + 1 : head + 4]
    ]


def test_the_dimensions_of_the_congestion_can_be_given(collc: Collc) -> None:
    text = "collective g = allreduce on hyperx(4, 4);\nschedule g using bfb;"
    found, other = simulated(collc, text), simulated(collc, text, "--dimensions", "3")
    assert Fraction(found["congestion"]) / 2 == Fraction(other["congestion"]) / 3
    assert found["congestion_deficiency"] == other["congestion_deficiency"]


def test_printed_schedules_are_simulated(collc: Collc) -> None:
    Path("a.coll").write_text(TORUS)
    collc("compile", "a.coll", "-t", "ir{level=schedule}", "-o", "a.ir")
    ran = collc("simulate", "a.ir", "--json", "--size", "1MiB")
    assert (0, "") == (ran.status, ran.err)
    assert simulated(collc, TORUS, "--size", "1MiB")["points"] == json.loads(ran.out)["points"]


@pytest.mark.slow
def test_large_collectives_are_simulated_by_their_messages(collc: Collc) -> None:
    """4,096 ranks: hundreds of millions of transfers, which are never written out."""
    text = "topology t = torus(64, 64) with { bandwidth: 400 Gbps };\ncollective g = allreduce on t;\n"
    found = simulated(collc, text + "schedule g using swing;", "--size", "32B,512MiB", "--latency", "swing")
    assert ("4851/4096", "4095/4096", 24) == (found["congestion"], found["bandwidth_deficiency"], found["steps"])
    small = simulated(collc, text.replace("64, 64", "16, 16") + "schedule g using swing;", "--latency", "swing")
    assert f"{1.1367:.4f}" == f"{small['congestion_float']:.4f}"


@pytest.mark.parametrize(
    "text",
    ["collective g = alltoall on biring(5);", "collective g = gather on biring(5) { root: 1 };",
     "collective g = broadcast on biring(4) { root: 1 }; schedule g using bfb;",
     "collective g = allreduce on torus(1);", "collective g = allgather on kautz(2, 2);",
     "collective g = reduce-scatter on torus(2, 2);"],
)  # fmt: skip
def test_all_collectives_are_simulated(collc: Collc, text: str) -> None:
    found = simulated(collc, text, "--size", "0,1MiB")
    assert all(point["time_us"] >= 0 for point in found["points"])
    assert "simulate" not in collc("simulate", "-", stdin=text).err


# ---- pictures


def test_a_trace_is_written_whole_and_parses(collc: Collc) -> None:
    ran = collc("simulate", "-", "--trace", "t.json", "--size", "1MiB", stdin=TORUS)
    assert (0, "") == (ran.status, ran.err)
    events = json.loads(Path("t.json").read_text())["traceEvents"]
    assert 8 * 64 == sum(event["ph"] == "X" for event in events)
    assert {f"rank {r}" for r in range(16)} | {"links: bytes in a step"} == {
        event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    collc("simulate", "-", "--trace", "u.json", "--trace-ranks", "3,5", "--size", "1MiB", stdin=TORUS)
    some = json.loads(Path("u.json").read_text())["traceEvents"]
    assert [e for e in events if e["ph"] == "X" and e["pid"] in (3, 5)] == [e for e in some if e["ph"] == "X"]


def test_a_curve_is_an_svg(collc: Collc) -> None:
    both = TORUS + "collective b = allreduce on t;\nschedule b using swing;\n"
    ran = collc("simulate", "-", "--svg", "a.svg", "--json", stdin=both)
    root = check(Path("a.svg").read_text())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Goodput of allreduce on t of 16 ranks" in texts and "a (bfb)" in texts and "b (swing)" in texts
    assert {"32 B", "512 MiB"} & set(texts)
    found = json.loads(ran.out)
    assert [25, 25] == [len(one["points"]) for one in found["collectives"]]
    changes = [text for text in texts if text and " from " in text]
    assert len(found["crossovers"]) == len(changes)
    curves = [node for node in root if node.get("class") in ("line c0", "line c1")]  # legends are groups
    assert 2 == len(curves)


@pytest.mark.parametrize("sizes", ["32B,64B", "0,1KiB,3KiB", "1,1GiB", "1000000,1000001"])
def test_curves_of_few_sizes(collc: Collc, sizes: str) -> None:
    for text in (TORUS, "collective g = allreduce on torus(1);"):
        assert 0 == collc("simulate", "-", "--svg", "a.svg", "--size", sizes, stdin=text).status
        check(Path("a.svg").read_text())


@pytest.mark.slow
def test_outputs_do_not_depend_on_the_process(tmp_path: Path) -> None:
    arguments = ("simulate", "-", "--json", "--svg", "a.svg", "--trace", "a.json", "--size", "1KiB,1MiB")
    found = set()
    for seed in ("0", "1"):
        done = spawn(*arguments, cwd=tmp_path, stdin=TORUS, PYTHONHASHSEED=seed)
        assert 0 == done.returncode
        found.add((done.stdout, (tmp_path / "a.svg").read_text(), (tmp_path / "a.json").read_text()))
    assert 1 == len(found)


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [(["--network", "torus(3)"], "C0040", 2), (["--trace", "x.json", "--trace-ranks", "99"], "C0044", 2),
     (["--svg", "x.svg", "--size", "1MiB"], "C0042", 2), (["--svg", "x.svg", "--size", "0,1MiB"], "C0042", 2),
     (["--latency", "swimg"], "C0001", 2), (["--routing", "x"], "C0001", 2), (["--per-hop", "400"], "C0020", 2),
     (["--size", "1XB"], "C0020", 2), (["--trace", "no/where.json"], "C0004", 1), (["--network", "toruss(16)"], "", 1),
     (["--dimensions", "0"], "C0001", 2), (["--network", "uniring(16", "--size", "1"], "", 1),
     (["--run-ahead", "--trace", "x.json"], "C0060", 2)],
)  # fmt: skip
def test_every_mistake_is_one_message(collc: Collc, arguments: list[str], code: str, status: int) -> None:
    ran = collc("simulate", "-", *arguments, stdin=TORUS)
    assert (status, "") == (ran.status, ran.out)
    assert 1 == ran.err.count("error:") and code in ran.err
    assert [] == list(Path.cwd().iterdir())


def test_a_trace_shows_one_collective(collc: Collc) -> None:
    both = TORUS + "collective b = allgather on t;\n"
    ran = collc("simulate", "-", "--trace", "x.json", stdin=both)
    assert 2 == ran.status and "[C0043]" in ran.err
    assert 0 == collc("simulate", "-", "--trace", "x.json", "--collective", "b", stdin=both).status


def test_a_trace_too_large_is_told_before_it_is_made(collc: Collc) -> None:
    text = "collective g = allgather on torus(40, 40);\nschedule g using bfb;"
    ran = collc("simulate", "-", "--trace", "x.json", stdin=text)
    assert 1 == ran.status and "[C0041]" in ran.err and not Path("x.json").exists()
    assert 0 == collc("simulate", "-", "--trace", "x.json", "--trace-ranks", "0..8", stdin=text).status


def test_a_file_is_not_replaced_by_its_picture(collc: Collc) -> None:
    Path("a.coll").write_text(TORUS)
    ran = collc("simulate", "a.coll", "--svg", "a.coll")
    assert "[C0005]" in ran.err and TORUS == Path("a.coll").read_text()


def test_pictures_are_written_all_or_none(collc: Collc) -> None:
    """What stands there stays, and nothing is left beside it, where one of the files cannot be made."""
    Path("a.svg").write_text("old")
    Path("t.json").mkdir()
    assert 1 == collc("simulate", "-", "--svg", "a.svg", "--trace", "t.json", stdin=TORUS).status
    assert 2 == collc("simulate", "-", "--svg", "a.svg", "--trace", "u.json", "--trace-ranks", "99", stdin=TORUS).status
    assert "old" == Path("a.svg").read_text() and {"a.svg", "t.json"} == {path.name for path in Path.cwd().iterdir()}
    assert 0 == collc("simulate", "-", "--svg", "a.svg", "--trace", "u.json", stdin=TORUS).status
    assert {"a.svg", "t.json", "u.json"} == {path.name for path in Path.cwd().iterdir()}
    check(Path("a.svg").read_text())


def test_programs_are_simulated(collc: Collc) -> None:
    """A program names no network: it sends over links from every rank to every other, or over the one that is named."""
    Path("a.coll").write_text("collective a = allreduce on biring(4);")
    collc("compile", "a.coll", "-t", "ir", "-o", "a.ir")
    for options, network in (([], "complete(4)"), (["--network", "biring(4)"], "biring(4)")):
        ran = collc("simulate", "a.ir", "--json", *options)
        assert (0, network) == (ran.status, json.loads(ran.out)["topology"])
