"""``collc train`` and ``collc find --workload``: tables, JSON, traces and messages."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from commands import Ran
from places import ROOT

from collc.passes.finder.database import print_rows, rows_for
from collc.tools.finding import Wanted, find
from collc.training.objectives import parse_mix

Collc = Callable[..., Ran]

EXPERTS = """{"workload": "small", "ranks": 16, "buckets": ["1 MiB", "8 MiB"], "layers": [{"repeat": 3, "layers": [
  {"name": "dense", "gradient": "6 MiB", "forward": "1 ms", "backward": "2 ms"},
  {"name": "experts", "alltoall": "1 MiB", "forward": "1 ms", "backward": "2 ms"}]}]}"""


@pytest.fixture
def small() -> str:
    Path("small.json").write_text(EXPERTS)
    return "small.json"


def document(collc: Collc, *words: str) -> Any:  # Any: a JSON document
    ran = collc(*words, "--json")
    assert (0, "") == (ran.status, ran.err)
    return json.loads(ran.out)


# ---- the table


def test_the_parts_of_every_row_add_up_to_its_time(collc: Collc, small: str) -> None:
    found = document(collc, "train", small, "--on", "torus(4, 4)", "shifted_ring(16)", "complete(16)")
    assert [row["topology"] for row in found["rows"]] == ["torus(4, 4)", "shifted_ring(16)", "complete(16)"]
    for row in found["rows"]:
        parts = row["compute_us"] + row["exposed_us"] + row["alltoall_us"]
        assert row["time_us"] == pytest.approx(parts) == pytest.approx(float(Fraction(row["time_s"])) * 1e6)
        assert row["compute_us"] == 18000 and row["exposed_us"] <= row["allreduce_us"]
        assert 1 <= row["over_bound"] == pytest.approx(row["time_us"] / row["bound_us"])
        assert row["bucket_bytes"] in (1 << 20, 8 << 20)
    best = min(found["rows"], key=lambda row: Fraction(row["time_s"]))
    assert found["best"] == best["topology"] and [r["topology"] for r in found["rows"] if r["best"]] == [found["best"]]


def test_a_topology_of_a_file_has_its_own_bandwidth_and_options_replace_it(collc: Collc, small: str) -> None:
    Path("pod.coll").write_text(
        "topology a = torus(4, 4) with { bandwidth: 25 Gbps, latency: 10 us };\ntopology b = dgx_h100(2);\n"
    )
    own = document(collc, "train", small, "--on", "pod.coll", "torus(4, 4)")["rows"]
    assert [row["topology"] for row in own] == ["pod.coll: a", "pod.coll: b", "torus(4, 4)"]
    assert own[0]["time_s"] == own[2]["time_s"] and own[1]["scheduler"] == "forest"
    wide = document(collc, "train", small, "--on", "pod.coll", "torus(4, 4)", "--bandwidth", "400Gbps")["rows"]
    assert wide[0]["time_s"] == wide[2]["time_s"]
    assert Fraction(wide[0]["time_s"]) < Fraction(own[0]["time_s"])


def test_buckets_of_the_command_line(collc: Collc, small: str) -> None:
    found = document(collc, "train", small, "--on", "torus(4, 4)", "--buckets", "18MiB")
    assert found["buckets_bytes"] == [18 << 20]
    assert (found["rows"][0]["allreduces"], found["rows"][0]["bucket_bytes"]) == (1, 18 << 20)
    ran = collc("train", small, "--on", "torus(4, 4)", "--buckets", "0")
    assert ran.status == 2 and "needs sizes of more than 0" in ran.err


def test_text_csv_and_the_list(collc: Collc, small: str) -> None:
    ran = collc("train", small, "--on", "torus(4, 4)", "--csv=rows.csv")
    assert ran.status == 0 and "small: 6 layers, 18 MiB of gradients, 12 all-to-alls" in ran.out
    (row,) = csv.DictReader(Path("rows.csv").read_text().splitlines())
    assert row["topology"] == "torus(4, 4)" and row["best"] == "1"
    names = [one["name"] for one in document(collc, "train", "--list")["workloads"]]
    assert names == ["gpt2-xl", "llama3-70b", "llama3-8b", "switch-base-256", "switch-c-2048"]
    assert all(name in collc("train", "--list").out for name in names)


def test_a_topology_without_a_rate_says_so_and_is_not_the_best(
    collc: Collc, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collc.passes.finder.networks.quick_bracket", lambda topology: None)
    words = ("train", small, "--on", "torus(4, 4)")
    assert "no all-to-all rate" in collc(*words).out
    found = document(collc, *words)
    assert found["best"] is None and found["rows"][0]["note"] == "no all-to-all rate"
    assert found["rows"][0]["time_us"] is None


# ---- the trace


Event = dict[str, Any]  # Any: JSON


def trace_flaws(events: list[Event], rows: list[dict[str, Any]]) -> list[str]:  # Any: JSON
    """Return what is wrong with the trace of the rows of ``--json``."""
    found = []
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    if names != [row["topology"] for row in rows]:
        found.append("processes")
    for process, row in enumerate(rows):
        slices = [event for event in events if event["ph"] == "X" and event["pid"] == process]
        if max(event["ts"] + event["dur"] for event in slices) != pytest.approx(row["time_us"]):
            found.append("time")
        kinds = {"compute_us": ("forward", "backward"), "alltoall_us": ("alltoall",), "allreduce_us": ("allreduce",)}
        for part, some in kinds.items():
            if sum(event["dur"] for event in slices if event["cat"] in some) != pytest.approx(row[part]):
                found.append(part)
        if any((event["tid"] == len(rows)) != (event["cat"] in kinds["compute_us"]) for event in slices):
            found.append("stream")
        for thread in (len(rows), len(rows) + 1):
            stream = [event for event in slices if event["tid"] == thread]
            if not all(one["ts"] + one["dur"] <= two["ts"] + 1e-6 for one, two in pairwise(stream)):
                found.append("overlap")
    return found


def test_the_trace_has_the_streams_of_each_topology(collc: Collc, small: str) -> None:
    """Planted faults in slices and names are found by the same check."""
    words = ("train", small, "--on", "torus(4, 4)", "shifted_ring(16)", "--trace", "trace.json")
    rows = document(collc, *words)["rows"]
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    assert trace_flaws(events, rows) == []
    for place, event in enumerate(events):
        if event["ph"] == "X":
            longer, other = {**event, "dur": event["dur"] + 9}, {**event, "tid": 2 * len(rows) + 1 - event["tid"]}
            for fault in ([longer], [], [event, event], [other]):
                assert trace_flaws([*events[:place], *fault, *events[place + 1 :]], rows), (event, fault)
        elif event["name"] == "process_name":
            assert "processes" in trace_flaws([*events[:place], *events[place + 1 :]], rows)


# ---- the page


def test_commands_and_the_file_of_the_page(collc: Collc) -> None:
    page = (ROOT / "docs" / "train.md").read_text()
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    Path("model.json").write_text(text)
    Path("cluster.coll").write_text("topology pod = torus(8, 8);\n")
    commands = [shlex.split(line.partition("   #")[0]) for line in re.findall(r"^(collc .*)$", page, re.MULTILINE)]
    assert len(commands) == 7
    for name, *words in commands:
        ran = collc(*words)
        assert (name, ran.status, ran.err) == ("collc", 0, ""), words


# ---- mistakes


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "`collc train` needs WORKLOAD [C0001]"),
        (["gpt2-xl"], 2, "`collc train` needs a topology [C0001]"),
        (["gpt2", "--on", "torus(4, 4)"], 2, "or a workload that comes with collc [C0993]"),
        (["none.json", "--on", "torus(4, 4)"], 1, "cannot read `none.json`"),
        (["gpt2-xl", "--on", "tors(4, 4)"], 1, "tors"),
        (["gpt2-xl", "--on", "torus(4, 4)", "--list"], 2, "--list takes no arguments"),
        (["wrong.json", "--on", "torus(4, 4)"], 1, "wrong.json:1:58: error: found `40`, needed a time"),
    ],
)
def test_mistakes(collc: Collc, words: list[str], status: int, message: str) -> None:
    Path("wrong.json").write_text('{"workload": "w", "layers": [{"name": "a", "forward":    "40"}]}')
    ran = collc("train", *words)
    assert ran.status == status and message in ran.err and not ran.out


def test_a_key_that_stands_twice_is_an_error_with_both_places(collc: Collc) -> None:
    twice = '{"workload": "w",\n "layers": [{"name": "a\\"{", "forward": "40 us"}, {"name": "b",\n"name" : "c"}]}'
    Path("twice.json").write_text(twice)
    ran = collc("train", "twice.json", "--on", "torus(4, 4)")
    assert (1, "") == (ran.status, ran.out)
    assert "twice.json:3:1: error: found the key `name` twice in an object [C0990]" in ran.err
    assert "twice.json:2:52: note: the first one" in ran.err
    Path("twice.json").write_text(twice.replace('"name" :', '"forward" :').replace('"c"', '"1 us"'))
    assert 0 == collc("train", "twice.json", "--on", "torus(4, 4)").status


def test_another_number_of_ranks_is_a_warning(collc: Collc, small: str) -> None:
    ran = collc("train", small, "--on", "torus(3, 3)")
    assert ran.status == 0 and "`torus(3, 3)` has 9 ranks, `small` is for 16 [C0991]" in ran.err
    ran = collc("find", "-n", "9", "-d", "4", "--workload", small)
    assert ran.status == 0 and "the topologies have 9 nodes, `small` is for 16 ranks [C0991]" in ran.err


# ---- the finder

MIX = "allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3"


def test_the_time_of_a_mix_is_the_weighted_sum_of_the_objectives(collc: Collc) -> None:
    found = document(collc, "find", "-n", "32", "-d", "4", "--workload", MIX)
    assert found["workload"] == MIX and found["objective"] == "workload"
    rows = [row for row in rows_for(32, 4) if row.alltoall_rate is not None]
    assert rows
    for row in rows:
        one = Wanted(32, 4, objective="allreduce", size=64 << 20).exact_time(row)
        two = Wanted(32, 4, objective="alltoall", size=4 << 20).exact_time(row)
        assert one is not None and two is not None
        mixed = Wanted(32, 4, workload=parse_mix(MIX)).exact_time(row)
        assert mixed == one * Fraction(7, 10) + two * Fraction(3, 10)
        alone = [Wanted(32, 4, workload=parse_mix(f"{kind} 8 MiB")).exact_time(row)
                 for kind in ("reduce-scatter", "allgather", "allreduce")]  # fmt: skip
        assert alone[2] == (alone[0] or 0) + (alone[1] or 0)


def test_weights_may_lack_a_zero() -> None:
    weights = [term.weight for term in parse_mix("allreduce 1 x .3, allreduce 1 x 3., allreduce 1 x 5e-1").terms]
    assert [Fraction(3, 10), Fraction(3), Fraction(1, 2)] == weights


@pytest.mark.parametrize("workload", [MIX, "small.json", "reduce-scatter 1 MiB, allgather 1 MiB x 2"])
def test_rows_are_in_the_order_of_their_times(collc: Collc, small: str, workload: str) -> None:
    for words in (["-n", "16", "-d", "4"], ["-n", "16", "-d", "3", "--bidirectional"]):
        found = document(collc, "find", *words, "--workload", workload)
        times = [row["time_us"] for row in found["frontier"] if row["time_us"] is not None]
        assert times == sorted(times) and found["best"] == found["frontier"][0]["expression"]


def test_an_iteration_takes_as_long_as_in_train(collc: Collc, small: str) -> None:
    row = document(collc, "find", "-n", "16", "-d", "4", "--workload", small)["frontier"][0]
    (other,) = document(collc, "train", small, "--on", row["expression"])["rows"]
    assert row["time_us"] == pytest.approx(other["time_us"])


def test_rates_that_a_database_lacks_are_computed(collc: Collc) -> None:
    """Without rates in the database, times and their order are the same: no row of a mix goes without a time."""
    rows = rows_for(1024, 4)
    bare = [attrs.evolve(row, alltoall_rate=None, alltoall_upper=None) for row in rows]
    Path("bare.txt").write_text(print_rows(4, bare))
    words = ("find", "-n", "1024", "-d", "4", "--workload", MIX)
    found = document(collc, *words, "--database", "bare.txt")
    assert found["frontier"] == document(collc, *words)["frontier"]
    assert None not in [row["time_us"] for row in found["frontier"]]


def test_the_best_row_of_a_mix_is_the_best_of_the_whole_database() -> None:
    """No row that the frontier leaves out is faster, whatever the weights."""
    rows = rows_for(64, 4)
    text = print_rows(4, rows)
    for size in ("1 KiB", "1 MiB", "64 MiB"):
        for kind in ("allreduce", "allgather", "reduce-scatter", "alltoall"):
            mix = parse_mix(f"{kind} {size} x 0.5, allreduce 1 MiB x 0.5")
            found = find(Wanted(64, 4, workload=mix), database=(text, "own"))
            known = [time for row in rows if (time := found.wanted.exact_time(row)) is not None]
            assert found.best is not None and found.wanted.exact_time(found.best) == min(known)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workload", "allreduce 64 x zero"], "found the weight `zero`, needed a number of more than 0 [C0992]"),
        (["--workload", "allreduce 64 x 0"], "found the weight `0`, needed a number"),
        (["--workload", "allreduce 5 mib"], "found the size `5 mib`, needed one such as 64 MiB"),
        (["--workload", "allreduce"], "found `allreduce`, needed a collective with its size"),
        (["--workload", "allreduce 1 MiB,"], "found ``, needed a collective with its size"),
        (["--workload", "broadcast 1 MiB"], "found the collective `broadcast`, needed one of a mix"),
        (["--workload", "none.json"], "cannot read `none.json`"),
        (["--workload", "gpt2-xxl"], "or a workload that comes with collc [C0993]\n  hint: did you mean `gpt2-xl`?"),
        (["--workload", "llama3"], "did you mean `llama3-8b` or `llama3-70b`?"),
        (["--workload", "zzz"], "they are gpt2-xl, "),
        (["--workload", "alltoall 4MiB,allreduce 64 MiB x 1/3"], "<workload>:1:34: error: found the weight `1/3`"),
        (["--workload", "alltoall 4MiB, alreduce 64 MiB"], "<workload>:1:16: error: found the collective `alreduce`"),
        (["--workload", "allreduce 64 MiB 0.3"], "<workload>:1:11: error: found the size `64 MiB 0.3`"),
        (["--workload", "allreduce 64 MiB x ."], "found the weight `.`"),
        (["--workload", "allreduce 64 MiB x .0"], "found the weight `.0`"),
        (["--workload", MIX, "--objective", "allreduce"], "--workload has its own collectives"),
        (["--workload", MIX, "--size", "1MiB"], "--workload has its own collectives"),
    ],
)
def test_mistakes_of_mixes(collc: Collc, words: list[str], message: str) -> None:
    ran = collc("find", "-n", "16", "-d", "4", *words)
    assert ran.status in (1, 2) and message in ran.err and not ran.out
