"""``--profile`` writes a Chrome trace of a run, whole or up to its failure; ``--time-passes`` has memory and rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import RING, Ran

from collc.cli.profile import trace_json
from collc.cli.signals import Terminated
from collc.driver import spans
from collc.driver.runner import Runner
from collc.driver.spans import Record, recorded, span
from collc.ir.schedule import Schedule
from collc.passes.lowering.lower import Lower
from collc.processes import memory

Collc = Callable[..., Ran]

#: the Trace Event Format, of the events that collc writes: metadata, complete events and counters
_NUMBER = {"type": "number", "minimum": 0}
_IDS = {"pid": {"type": "integer"}, "tid": {"type": "integer"}, "name": {"type": "string", "minLength": 1}}
SCHEMA = {
    "type": "object", "required": ["traceEvents"], "additionalProperties": False,
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {"type": "array", "items": {"oneOf": [
            {
                "type": "object", "required": ["name", "ph", "pid", "tid", "args"], "additionalProperties": False,
                "properties": _IDS | {
                    "name": {"enum": ["process_name", "thread_name"]}, "ph": {"const": "M"},
                    "args": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
            },
            {
                "type": "object", "required": ["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"],
                "additionalProperties": False,
                "properties": _IDS | {
                    "ph": {"const": "X"}, "ts": _NUMBER, "dur": _NUMBER, "cat": {"type": "string", "minLength": 1},
                    "args": {"type": "object"},
                },
            },
            {
                "type": "object", "required": ["name", "ph", "ts", "pid", "args"], "additionalProperties": False,
                "properties": _IDS | {
                    "ph": {"const": "C"}, "ts": _NUMBER,
                    "args": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}},
                },
            },
        ]}},
    },
}  # fmt: skip


def trace(path: str) -> list[dict[str, Any]]:
    """Return the spans of a trace that fits the schema and whose spans are nested or apart."""
    document = json.loads(Path(path).read_text())
    jsonschema.validate(document, SCHEMA)
    found = [event for event in document["traceEvents"] if event["ph"] == "X"]
    times = [event["ts"] for event in document["traceEvents"] if "ts" in event]
    assert times == sorted(times)
    assert overlapping(found) == []
    return found


def ends(event: dict[str, Any]) -> int:
    """Return the end of a span in nanoseconds."""
    return round(1000 * event["ts"]) + round(1000 * event["dur"])


def overlapping(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of spans that overlap without one inside the other; viewers draw those wrong."""
    pairs = [(a, b) for a in events for b in events if round(1000 * a["ts"]) <= round(1000 * b["ts"]) < ends(a)]
    return [(a["name"], b["name"]) for a, b in pairs if ends(b) > ends(a) and a["ts"] < b["ts"]]


def around(events: list[dict[str, Any]], name: str) -> list[str]:
    """Return the kinds of the spans around the first span with a name, the outermost first."""
    inner = next(event for event in events if event["name"] == name)
    outer = [one for one in events if one is not inner and one["ts"] <= inner["ts"] and ends(one) >= ends(inner)]
    return [one["cat"] for one in sorted(outer, key=lambda one: -one["dur"])]


def test_spans_that_overlap_are_found() -> None:
    one = {"name": "a", "ts": 0.0, "dur": 5.0}
    assert overlapping([one, {"name": "b", "ts": 3.0, "dur": 4.0}]) == [("a", "b")]
    assert overlapping([one, {"name": "b", "ts": 3.0, "dur": 2.0}, {"name": "c", "ts": 5.0, "dur": 1.0}]) == []


def test_a_compilation_is_nested(collc: Collc) -> None:
    ran = collc("-", "-t", "msccl-xml", "-o", "a.xml", "--profile", "p.json", stdin=RING)
    assert (0, "", "") == (ran.status, ran.out, ran.err)
    found = trace("p.json")
    assert around(found, "verify renumber") == ["command", "collective", "pass"]
    assert around(found, "structure") == ["command", "collective", "pass"]
    assert around(found, "emit msccl-xml") == around(found, "read back msccl-xml") == ["command", "collective"]
    assert around(found, "read <stdin>") == around(found, "write files") == ["command"]
    assert {"bfb", "lower", "coalesce"} <= {one["name"] for one in found if one["cat"] == "pass"}
    assert all(one["args"]["completed"] for one in found)
    assert all(one["args"]["rows"] > 0 for one in found if one["cat"] == "pass")


def test_rows_and_memory_are_counters(collc: Collc) -> None:
    collc("-", "-t", "msccl-xml", "-o", "a.xml", "--profile", "p.json", stdin=RING)
    events = json.loads(Path("p.json").read_text())["traceEvents"]
    passes = [event["args"]["rows"] for event in events if event.get("cat") == "pass"]
    rows = [event["args"]["rows"] for event in events if event["name"] == "rows"]
    assert sorted(rows) == sorted(passes)
    sizes = [event["args"] for event in events if event["name"] == "memory (MB)"]
    assert sizes and all(1 < one["peak"] < 10**6 for one in sizes)


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (("check",), {"command", "input", "collective"}), (("cost",), {"command", "collective", "pass", "cost"}),
        (("simulate", "--size", "1KiB"), {"command"}), (("compile", "-t", "ir", "-o", "a.ir"), {"emission", "output"}),
        (("replan", "--without", "0 <-> 1"), {"command", "collective", "pass"}),
        (("verify",), {"command", "input", "collective"}),
    ],
)  # fmt: skip
def test_verbs_that_run_passes_write_a_profile(collc: Collc, arguments: tuple[str, ...], kinds: set[str]) -> None:
    Path("a.coll").write_text(RING)
    ran = collc(arguments[0], "a.coll", *arguments[1:], "--profile", "p.json")
    plain = collc(arguments[0], "a.coll", *arguments[1:])
    assert (ran.status, ran.out, ran.err) == (plain.status, plain.out, plain.err)
    assert ran.status == 0
    found = trace("p.json")
    assert kinds <= {one["cat"] for one in found}
    assert found[0]["name"] == f"collc {arguments[0]}"


@pytest.mark.needs("mpi")
def test_a_run_is_in_the_profile(collc: Collc) -> None:
    ran = collc("run", "-", "--count", "4", "--repeat", "1", "--profile", "p.json", stdin=RING)
    assert ran.status == 0, ran.err
    assert around(trace("p.json"), "run sums") == ["command"]


def test_a_failure_leaves_what_was_done(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistakes of the user, of collc, and signals."""
    refused = collc("-", "-t", "msccl-xml", "-o", "a.xml", "-p", "lower", "--profile", "p.json", stdin="collective c")
    assert refused.status == 1
    command, *_ = trace("p.json")
    assert (command["name"], command["args"]["completed"]) == ("collc compile", False)

    def interrupted(self: Runner, step: str, ir: object, keep: bool = True) -> None:
        raise Terminated(15)

    monkeypatch.setattr(Runner, "report", interrupted)
    assert collc("-", "-t", "msccl-xml", "-o", "b.xml", "--profile", "q.json", stdin=RING).status == 128 + 15
    found = {one["name"]: one["args"]["completed"] for one in trace("q.json")}
    assert (found["bfb"], found["renumber"], found["sums"]) == (True, False, False)
    assert not Path("b.xml").exists()


def test_one_collective_that_fails_does_not_end_the_others_spans(collc: Collc) -> None:
    text = RING + "collective more = allreduce on ring;\nschedule sums using swing { rounds: 0 };\n"
    assert collc("-", "-t", "ir", "-o", "out/", "--profile", "p.json", stdin=text).status != 0
    trace("p.json")


@pytest.mark.parametrize(
    ("options", "code", "status"),
    [
        (("-o", "a.xml", "--profile", "no/p.json"), "C0004", 1), (("-o", "-", "--profile", "-"), "C0001", 2),
        (("-o", "a.xml", "--profile", "a.coll"), "C0005", 1), (("-o", "a.xml", "--profile", "./a.xml"), "C0021", 2),
        (("--profile", "a.xml"), "C0021", 2), (("-o", "a.xml", "--json", "--profile", "-"), "C0001", 2),
        (("-o", "a.xml", "--profile"), "C0001", 2), (("-o", "a.xml", "--profile", "."), "C0004", 1),
    ],
)  # fmt: skip
def test_a_profile_that_cannot_be_written_is_refused_first(
    collc: Collc, options: tuple[str, ...], code: str, status: int
) -> None:
    Path("a.coll").write_text(RING)
    ran = collc("a.coll", "-t", "msccl-xml", *options)
    assert ran.status == status and f"[{code}]" in ran.err
    assert Path("a.coll").read_text() == RING
    assert not Path("a.xml").exists()


def test_a_profile_replaces_no_file_that_is_read(collc: Collc) -> None:
    Path("ring.coll").write_text(RING)
    Path("a.coll").write_text('include "ring.coll";\n')
    for words in (["compile", "a.coll", "-t", "ir"], ["cost", "a.coll"], ["check", "a.coll"]):
        assert "[C0005]" in collc(*words, "--profile", "ring.coll").err
    assert Path("ring.coll").read_text() == RING


def test_a_profile_on_standard_output(collc: Collc) -> None:
    ran = collc("-", "-t", "msccl-xml", "-o", "a.xml", "--profile", "-", stdin=RING)
    jsonschema.validate(json.loads(ran.out), SCHEMA)
    assert "[C0001]" in collc("cost", "-", "--profile", "-", stdin=RING).err


def test_a_failed_write_hides_no_failure(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *rest: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collc.files.replacing.os.replace", refuse)
    monkeypatch.setattr("collc.files.replacing.os.rename", refuse)
    ran = collc("-", "-t", "msccl-xml", "-o", "a.xml", "--profile", "p.json", stdin="collective c")
    assert "no space left on" in ran.err.lower() and ran.err.count("error:") >= 2
    assert not Path("p.json").exists()


# ---- the spans


def test_spans_without_memory_have_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "memory", lambda: memory.Memory(None, None))
    with recorded(Record()) as record, span("a", "command"), span("b", "pass") as inner:
        inner.rows = 3
    text = trace_json(record)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert "memory" not in text and '"rows": 3' in text


def test_without_a_record_nothing_is_kept_and_no_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "memory", lambda: 1 / 0)
    with span("a", "pass") as one:
        pass
    assert one.completed and one.growth is None and one.seconds > 0


def test_an_empty_record_is_a_trace() -> None:
    jsonschema.validate(json.loads(trace_json(Record())), SCHEMA)


# ---- --time-passes


def table(err: str) -> dict[str, list[str]]:
    """Return the rows of the table by step."""
    head, *lines = err.splitlines()
    assert head.split() == ["seconds", "share", "peak", "MB", "more", "MB", "rows", "collective", "step"]
    return {line.split("sums")[-1].split("  ")[-1].strip(): line.split() for line in lines}


def test_times_have_memory_and_rows(collc: Collc) -> None:
    ran = collc("-", "-t", "msccl-xml", "-o", "a.xml", "--time-passes", stdin=RING)
    assert ran.status == 0
    rows = table(ran.err)
    (printed,) = (json.loads(collc("cost", "-", "--json", stdin=RING).out)["transfers"],)
    assert rows["bfb"][5] == f"{printed:,}"
    peaks = [float(row[3]) for row in rows.values()]
    assert all(1 < peak < 10**6 for peak in peaks) and peaks[-1] == max(peaks)
    growths = [float(row[4]) for row in rows.values()]
    assert all(growth >= 0 for growth in growths)


def test_rows_are_those_after_the_pass(collc: Collc) -> None:
    """Coalescing leaves as many instructions as the printed program has."""
    text = RING + "schedule sums using bfb;\n"
    rows = table(collc("-", "-t", "ir", "-o", "a.ir", "--time-passes", "-O1", stdin=text).err)
    found = json.loads(collc("-", "-t", "ir", "-o", "b.ir", "--json", "-O1", stdin=text).out)
    assert rows["prune-dependencies"][5] == f"{found['program']['instructions']:,}"


def test_a_pass_with_a_wrong_count_of_rows_would_be_seen(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "__len__", lambda self: 7)
    with pytest.raises(AssertionError):
        test_times_have_memory_and_rows(collc)


@pytest.mark.parametrize(("collective", "blocks", "refused"), [
    ("allreduce on dgx_a100(2) { size: 64 MiB };", 8, "skipped forest-k1-equal-3: more pieces than fit"),
    ("allgather on torus(3, 4) { size: 1 MiB }; schedule sums using bfb;", 5, "discretize: in more than 3 chunks"),
])  # fmt: skip
def test_work_that_comes_to_nothing_has_its_time(collc: Collc, collective: str, blocks: int, refused: str) -> None:
    """The table and the trace agree on every check and emission, also of programs that did not fit."""
    options = f"- -t mscclpp-json{{protocol=Simple,blocks={blocks}}} -o a -v --time-passes=t.csv --profile=p.json"
    ran = collc(*options.split(), stdin=f"collective sums = {collective}")
    assert ran.status == 0 and refused in ran.err
    table = list(csv.DictReader(Path("t.csv").read_text().splitlines()))
    spans_of: dict[str, float] = {}
    for event in json.loads(Path("p.json").read_text())["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("check", "choice", "emission"):
            spans_of[event["name"]] = spans_of.get(event["name"], 0) + event["dur"] / 1e6
    assert {"emit mscclpp-json", "structure"} < spans_of.keys()
    for step, seconds in spans_of.items():
        assert sum(float(row["seconds"]) for row in table if row["step"] == step) == pytest.approx(seconds, rel=1e-3)


def test_without_proc_a_table_is_printed(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "memory", lambda: memory.Memory(None, None))
    rows = table(collc("-", "-t", "msccl-xml", "-o", "a.xml", "--time-passes", stdin=RING).err)
    assert rows["bfb"][3:5] == ["-", "-"] and rows["total"][3:5] == ["-", "-"]


def test_what_a_signal_ends_has_the_times_so_far(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that it ends is the last row, without a size of the IR."""
    whole = collc("-", "-t", "msccl-xml", "-o", "a.xml", "--time-passes=all.csv", stdin=RING)
    assert whole.status == 0

    def interrupted(self: Lower, ir: object) -> None:
        raise Terminated(2)

    monkeypatch.setattr(Lower, "run", interrupted)
    assert collc("-", "-t", "msccl-xml", "-o", "b.xml", "--time-passes=t.csv", stdin=RING).status == 128 + 2
    every, until = (list(csv.DictReader(Path(path).read_text().splitlines())) for path in ("all.csv", "t.csv"))
    steps = [row["step"] for row in until]
    assert steps == [row["step"] for row in every][: len(steps)] and steps[-1] == "lower"
    assert (until[-1]["rows"], all(float(row["seconds"]) > 0 for row in until)) == ("", True)
    assert not Path("b.xml").exists()
    ran = collc("-", "-t", "msccl-xml", "-o", "b.xml", "--time-passes", stdin=RING)
    assert set(table(ran.err)) == {*steps, "total"}


def test_a_signal_during_the_choice_has_a_row(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise Terminated(2)

    monkeypatch.setattr("collc.selection.Selector.__init__", interrupted)
    assert collc("-", "-t", "ir", "-o", "b.ir", "--time-passes=t.csv", stdin=RING).status == 128 + 2
    assert [row["step"] for row in csv.DictReader(Path("t.csv").read_text().splitlines())] == ["auto"]


def test_a_failure_before_the_first_step_writes_no_times(collc: Collc) -> None:
    assert collc("-", "-t", "ir", "-o", "b.ir", "--time-passes=t.csv", stdin="collective c").status == 1
    assert not Path("t.csv").exists()


def test_times_are_printed_once(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails after the table has no second one."""

    def interrupted(*_: object, **__: object) -> None:
        raise Terminated(2)

    monkeypatch.setattr("collc.cli.cost._show", interrupted)
    ran = collc("cost", "-", "--time-passes", stdin=RING)
    assert (128 + 2, 1) == (ran.status, ran.err.count("more MB"))
