"""Traces of threadblocks: tracks and names of the emitted file, slices one after the other, arrows between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any  # Any: events of a trace
from xml.etree import ElementTree

import programs
import pytest
from commands import Ran
from planted_files import compiled

import collc as compiler
from collc.backends.simulator import labels_of, on_routes, program_trace_json, program_traffic, simulate
from collc.ir.program import Program

Collc = Callable[..., Ran]
TORUS = """topology pod = torus(3, 2) with { bandwidth: 25 GB/s, latency: 2 us };
collective c = allreduce on pod { size: 1 MiB };
schedule c using bfb;
emit c as msccl-xml;
"""


def events_of(program: Program, net: str, size: int = 1 << 20, ranks: list[int] | None = None) -> list[dict[str, Any]]:
    run = simulate(program_traffic(program, compiler.topology(net)))
    text = program_trace_json(program, run, size, labels_of(program), ranks)
    assert text == program_trace_json(program, run, size, labels_of(program), ranks)
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    last = max(event["ts"] + event.get("dur", 0) for event in found if event["ph"] == "X")
    if ranks is None:
        assert last == pytest.approx(float(run.time(size)) * 1e6, abs=1e-3)
    return found


def checked(events: list[dict[str, Any]]) -> None:
    """Check what viewers need: tracks with names, slices one after the other, arrows with both ends in slices."""
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events:
        assert e["pid"] in processes and e["ph"] in "MXsfC"
        if e["ph"] == "X":
            assert e["dur"] >= 0
            slices.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    assert set(slices) <= threads
    for own in slices.values():
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(own)), "slices of a threadblock overlap"
    begins, ends = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
    assert begins.keys() == ends.keys() and len(begins) == sum(e["ph"] == "s" for e in events)
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"] and "e" == end["bp"] and begin["pid"] != end["pid"]
        for one in (begin, end):
            own = slices[one["pid"], one["tid"]]
            assert any(a - 1e-6 <= one["ts"] <= b + 1e-6 for a, b in own), "an arrow ends outside of a slice"


@pytest.mark.parametrize("name, net", [
    ("ring", "biring(4)"), ("unfused", "biring(4)"), ("doubling", "complete(4)"), ("alltoall", "complete(3)"),
    ("bfb", "torus(3, 2)"),
])  # fmt: skip
def test_every_instruction_is_a_slice_and_every_message_an_arrow(name: str, net: str) -> None:
    program = {
        "ring": lambda: programs.ring_allreduce(4, 2), "unfused": lambda: programs.ring_allreduce(4, 2, fused=False),
        "doubling": lambda: programs.recursive_doubling_allgather(4), "alltoall": lambda: programs.alltoall(3),
        "bfb": lambda: compiled("torus(3, 2)", "allreduce on t", "bfb", target="msccl-xml"),
    }[name]()  # fmt: skip
    events = events_of(program, net)
    checked(events)
    assert program.num_instructions == sum(e["ph"] == "X" for e in events)
    assert program.sends.sum() == sum(e["ph"] == "s" for e in events)
    loads = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(loads) > 0 and {e["pid"] for e in events if e["ph"] == "C"} == {program.num_ranks}


def test_a_trace_of_some_ranks_has_the_arrows_between_them() -> None:
    program = programs.ring_allreduce(4, 2)
    every, some = events_of(program, "biring(4)"), events_of(program, "biring(4)", ranks=[1, 2])
    checked(some)
    assert [e for e in every if e["ph"] == "X" and e["pid"] in (1, 2)] == [e for e in some if e["ph"] == "X"]
    assert {(1, 2)} == {(a["pid"], b["pid"]) for a in some for b in some if a["ph"] == "s" and b["ph"] == "f"}


def test_threads_and_names_are_those_of_the_emitted_file(collc: Collc) -> None:
    Path("pod.coll").write_text(TORUS)
    assert 0 == collc("pod.coll", "-o", "pod.xml").status
    ran = collc("simulate", "pod.coll", "--trace", "t.json")
    assert (0, "") == (ran.status, ran.err)
    events = json.loads(Path("t.json").read_text())["traceEvents"]
    checked(events)
    due, tracks = [], []
    for gpu in ElementTree.parse("pod.xml").getroot():
        for block in gpu:
            peers = [
                f"{word} {block.get(key)}" for word, key in (("to", "send"), ("from", "recv")) if block.get(key) != "-1"
            ]
            words = ", ".join([*peers, f"channel {block.get('chan')}"])
            number = int(block.get("id", ""))
            tracks.append((int(gpu.get("id", "")), 7 + number, f"threadblock {number}: {words}"))
            for step in block:
                if step.get("type") != "nop":
                    due.append(
                        (*tracks[-1][:2], f"{step.get('s')}: {step.get('type')}", step.get("srcoff"), step.get("cnt"))
                    )
    found = [
        (e["pid"], e["tid"], e["name"], str(e["args"]["srcoff"]), str(e["args"]["cnt"]))
        for e in events if e["ph"] == "X"
    ]  # fmt: skip
    assert sorted(due) == sorted(found)
    assert tracks == [(e["pid"], e["tid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"]
    assert 0 == collc("simulate", "pod.xml", "--network", "torus(3, 2)", "--trace", "u.json", "--size", "1MiB").status
    again = json.loads(Path("u.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == [
        e["name"] for e in again if e["ph"] == "X" and "nop" not in e["name"]
    ]


def test_other_files_and_messages(collc: Collc) -> None:
    ran = collc("simulate", "-", "--trace", "a.json", "--trace-target", "mpi-c", stdin=TORUS)
    assert (0, "") == (ran.status, ran.err)
    events = json.loads(Path("a.json").read_text())["traceEvents"]
    checked(events)
    assert any(e["name"].endswith(": send") for e in events)
    assert 0 == collc("simulate", "-", "--trace", "b.json", "--trace-target", "messages", stdin=TORUS).status
    assert not any(e["ph"] == "s" for e in json.loads(Path("b.json").read_text())["traceEvents"])
    ran = collc("simulate", "-", "--trace", "c.json", "--trace-target", "report", stdin=TORUS)
    assert 2 == ran.status and "[C0051]" in ran.err and not Path("c.json").exists()


def test_auto_traces_the_algorithm_of_the_size(collc: Collc) -> None:
    text = "collective c = allreduce on biring(8) { size: 64 MiB };\nschedule c using auto { min: 1 KiB, max: 64 MiB };"
    for size in ("1KiB", "64MiB"):
        ran = collc("simulate", "-", "--trace", "t.json", "--trace-target", "msccl-xml", "--size", size, stdin=text)
        assert ran.status in (0, 1, 2), ran.err
        if ran.status == 0:
            checked(json.loads(Path("t.json").read_text())["traceEvents"])


def test_messages_take_the_routes_of_the_schedule() -> None:
    """Between two ranks that share NVSwitch and NIC the schedule's route counts, not the shortest one."""
    text = "topology t = dgx_a100(2); collective c = allgather on t; schedule c using forest;"
    result = compiler.compile_source(text, target="msccl-xml")["c"]
    program, schedule = result.made, result.schedule
    assert isinstance(program, Program)
    traffic = program_traffic(program, schedule.topology)
    routed = on_routes(traffic, schedule)
    if routed.routes is not None:
        assert (routed.routes.tails(schedule.topology)[routed.route] == routed.src).all()
        assert (routed.routes.heads(schedule.topology)[routed.route] == routed.dst).all()
    assert on_routes(program_traffic(program, compiler.topology("dgx_a100(2)")), schedule).routes is None
