"""Mistakes of passes point to the option, the scheduler or the network that the user wrote."""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
import pytest
from commands import Ran

from collc.passes import PASSES, SCHEDULERS

RANGED = [
    (name, field.name.replace("_", "-"))
    for name in SCHEDULERS.own
    if name not in ("auto", "steps")
    for field in attrs.fields(PASSES.load(name))
    if "range" in field.metadata
]


def _file(name: str, options: str) -> str:
    kind = "alltoall" if name == "flow" else "allreduce"
    return f"topology t = torus(3, 3);\ncollective c = {kind} on t;\nschedule c using {name} {{ {options} }};\n"


@pytest.mark.parametrize(("name", "option"), RANGED)
def test_an_option_out_of_range_is_underlined(collc: Callable[..., Ran], name: str, option: str) -> None:
    text = _file(name, f"{option}: -7")
    ran = collc("cost", "-", stdin=text)
    column = text.splitlines()[2].index("-7") + 1
    assert ran.status == 1 and f"<stdin>:3:{column}: error: option `{option}`" in ran.err, ran.err
    assert f"| {' ' * (column - 1)}^~\n" in ran.err


@pytest.mark.parametrize(
    ("network", "kind", "scheduler", "place", "second"),
    [
        ("torus(3, 3)", "allreduce", "forest { root: 9 }", "9 }", ""),
        ("torus(3, 3)", "alltoall", "flow { steps: 1 }", "1 }", ""),
        ("torus(3, 3)", "alltoall", "swing", "swing", "alltoall"),
        ("torus(3, 3)", "allgather", "swing { variant: latency }", "latency", "allgather"),
        ("torus(4, 2)", "allreduce", 'swing { shape: "3x3" }', '"3x3"', "t ="),
        ("dgx_a100(1)", "allgather", "bfb", "bfb", "t ="),
        ("torus(6, 4)", "allreduce", "ring { rings: 2 }", "2 }", "t ="),
        ("mesh(3, 3)", "allreduce", "ring", "ring;", "t ="),
    ],
)
def test_what_does_not_fit_is_underlined(
    collc: Callable[..., Ran], network: str, kind: str, scheduler: str, place: str, second: str
) -> None:
    lines = [f"topology t = {network};", f"collective c = {kind} on t;", f"schedule c using {scheduler};"]
    ran = collc("cost", "-", stdin="\n".join(lines) + "\n")
    assert f"<stdin>:3:{lines[2].index(place) + 1}: error: " in ran.err, ran.err
    if second:
        row = next(number for number, line in enumerate(lines, 1) if second in line)
        assert f"<stdin>:{row}:{lines[row - 1].index(second) + 1}: note: " in ran.err, ran.err


def test_an_option_of_the_command_line_is_underlined_there(collc: Callable[..., Ran]) -> None:
    ran = collc("cost", "-", "-p", "bfb{chunks=0}", stdin=_file("bfb", "chunks: 2"))
    assert ran.status == 2 and "<-p>:1:12: error: option `chunks` of scheduler `bfb` needs 1 or more" in ran.err
    ran = collc("cost", "-", "-p", "swing{shape=2x2}", stdin=_file("bfb", "chunks: 2"))
    assert ran.status == 2 and "<-p>:1:13: error: a torus of 2x2" in ran.err, ran.err


def test_second_places_are_in_json_and_sarif(collc: Callable[..., Ran]) -> None:
    text = "topology t = torus(3, 3);\ncollective c = alltoall on t;\nschedule c using swing;\n"
    ran = collc("cost", "-", "--diagnostics-format=json", stdin=text)
    (found,) = json.loads(ran.err)["diagnostics"]
    assert found["location"]["line"] == 3 and found["related"] == [
        {"message": "the collective", "location": {**found["location"], "line": 2, "column": 16, "end_line": 2,
                                                   "end_column": 24}}
    ]  # fmt: skip
    (result,) = json.loads(collc("cost", "-", "--diagnostics-format=sarif", stdin=text).err)["runs"][0]["results"]
    assert [one["physicalLocation"]["region"]["startLine"] for one in result["relatedLocations"]] == [2]


def test_mistakes_of_passes_point_into_the_pipeline(collc: Callable[..., Ran]) -> None:
    text = "topology t = uniring(4);\ncollective c = allreduce on t;\n"
    ran = collc("compile", "-", "-t", "ir", "-p", "bfb{collective=allgather},compose", stdin=text)
    assert "<-p>:1:27: error: " in ran.err and "<stdin>:2:16: note: the collective" in ran.err, ran.err


@pytest.mark.slow
def test_targets_are_underlined_and_say_what_allows_more(collc: Callable[..., Ran]) -> None:
    text = "topology t = torus(3, 3);\ncollective c = allreduce on t;\nemit c as msccl-xml { threadblocks: 2 };\n"
    ran = collc("compile", "-", "-o", "x.xml", stdin=text)
    assert "<stdin>:3:37: error: rank 0 needs 4 threadblocks" in ran.err and "set `threadblocks` to 4" in ran.err
    mended = collc("compile", "-", "-o", "x.xml", stdin=text.replace(": 2 ", ": 4 "))
    assert mended.status == 0, mended.err
