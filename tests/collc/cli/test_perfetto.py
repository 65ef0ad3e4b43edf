"""Traces in Perfetto itself: every slice is on its track with its times, every arrow and counter is there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any  # Any: events of a trace

import pytest
from commands import Ran
from perfetto import FLAWS, SLICES, Perfetto, perfetto

Collc = Callable[..., Ran]
pytestmark = pytest.mark.slow
#: times are no whole nanoseconds, and ranks have as many threadblocks as some ranks' numbers
POD = """topology pod = torus(3, 3) with { bandwidth: 23 Gbps, latency: 3.3 us };
collective c = allreduce on pod { size: 1 MiB };
schedule c using bfb;
emit c as msccl-xml;
"""


@pytest.fixture(scope="module")
def viewer() -> Iterator[Perfetto]:
    with perfetto() as found:
        yield found


def differences(viewer: Perfetto, text: str) -> dict[str, object]:
    """Open a trace; return what Perfetto has otherwise than the file: slices, arrows, counters, and its complaints."""
    viewer.open(text)
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    first = min(e["ts"] for e in slices)
    due = Counter(
        (names[e["pid"]], threads[e["pid"], e["tid"]], e["name"], round((e["ts"] - first) * 1e3), round(e["dur"] * 1e3))
        for e in slices
    )
    found = Counter(tuple(row) for row in viewer.rows(SLICES))
    number = Counter(e["ph"] for e in events)
    values = sum(len(e["args"]) for e in events if e["ph"] == "C")
    return {
        what: difference
        for what, difference in {
            "slices": (due - found, found - due), "flaws": viewer.rows(FLAWS),
            "arrows": viewer.rows("select count(*) from flow")[0][0] - number["s"],
            "counters": viewer.rows("select count(*) from counter")[0][0] - values,
        }.items()
        if difference not in ([], 0, (Counter(), Counter()))
    }  # fmt: skip


@pytest.mark.parametrize("words", [
    ("simulate", "pod.coll", "--trace"), ("simulate", "pod.coll", "--trace-target", "messages", "--trace"),
    ("train", "gpt2-xl", "--on", "torus(4, 4)", "uniring(16)", "--trace"),
    ("compile", "pod.coll", "-o", "out.xml", "-q", "--profile"),
], ids=lambda words: " ".join(words[:4]))  # fmt: skip
def test_perfetto_has_what_the_file_has(collc: Collc, viewer: Perfetto, words: tuple[str, ...]) -> None:
    Path("pod.coll").write_text(POD)
    ran = collc(*words, "trace.json")
    assert (0, "") == (ran.status, ran.err)
    assert {} == differences(viewer, Path("trace.json").read_text())


def test_a_trace_that_perfetto_reads_otherwise_is_seen(collc: Collc, viewer: Perfetto) -> None:
    """Slices that begin before others end are dropped; thread 0 is also the one with the number of its process."""
    Path("pod.coll").write_text(POD)
    assert 0 == collc("simulate", "pod.coll", "--trace", "trace.json").status
    document = json.loads(Path("trace.json").read_text())
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    slices[0]["dur"] += 1
    assert {"slices", "flaws"} == set(differences(viewer, json.dumps(document)))
    slices[0]["dur"] -= 1
    for event in document["traceEvents"]:
        if event["ph"] in "XMsf" and event["tid"]:
            event["tid"] -= 10
    assert "slices" in differences(viewer, json.dumps(document))
