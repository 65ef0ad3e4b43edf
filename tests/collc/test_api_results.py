"""What the API returns: collectives by name, times and simulations, tables for notebooks; checking and formatting."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import collc
from collc.backends.base import Artifact
from collc.driver.simulated import simulated
from collc.ir.collective import Collective
from collc.ir.costs.cost import predict
from collc.ir.program import Program
from collc.ir.topology import Topology
from collc.ir.verify import Check, Report

RING = "topology ring = biring(4);\ncollective sums = allreduce on ring;\n"
BOTH = RING + "collective gather = allgather on ring;\nemit sums as msccl-xml;\nemit gather as mpi-c;\n"


# ---- collectives


def test_collectives_are_found_by_name_and_in_order() -> None:
    result = collc.compile_source(BOTH)
    assert ["sums", "gather"] == [one.name for one in result] == list(result.collectives)
    assert (2, True, False) == (len(result), "gather" in result, "other" in result)
    assert result["gather"] is result.collectives["gather"]
    with pytest.raises(collc.CollcError, match="there is no collective `gathr`") as caught:
        result["gathr"]
    assert "did you mean `gather`?" == caught.value.diagnostics[0].hint


@pytest.mark.parametrize("what", ["schedule", "program", "cost", "simulation"])
def test_several_collectives_have_no_common_values(what: str) -> None:
    result = collc.compile_source(BOTH)
    with pytest.raises(collc.CollcError, match=f"there are 2 collectives .sums, gather., each with its own {what}"):
        result.simulate() if what == "simulation" else getattr(result, what)
    assert result["gather"].simulate(1).points


# ---- times


@pytest.mark.parametrize(("size", "number"), [("64 MiB", 64 << 20), (1000, 1000), ("1.5KiB", 1536), ("0", 0)])
def test_times_are_exact_and_those_of_predictions(size: int | str, number: int) -> None:
    for text in (RING, "collective c = allgather on dgx_a100(2); schedule c using forest;"):
        cost = collc.compile_source(text).cost
        found = cost.time(size)
        assert isinstance(found, Fraction)
        assert [float(found)] == [point.time for point in predict(cost, [number])]
    assert cost.time(number, alpha=Fraction(0)) <= cost.time(number)


@pytest.mark.parametrize("size", [-1, 1.5, True, None, "64 mib", "1.5 B", "fast", "", "-1"])
def test_a_wrong_size_is_refused(size: Any) -> None:
    with pytest.raises(collc.CollcError, match="C0020"):
        collc.compile_source(RING).cost.time(size)


def test_a_simulation_has_points() -> None:
    result = collc.compile_source(RING)
    found = result.simulate(["1KiB", 1 << 20])
    assert [1024, 1 << 20] == [point.size for point in found.points]
    assert [float(result.cost.time(size)) for size in (1024, 1 << 20)] == [point.time for point in found.points]
    assert found.time("1KiB") == result.cost.time(1024)
    assert [1024, 1 << 20] == [point.size for point in result.simulate("1KiB,1MiB").points]
    assert 3 == len(result.simulate().points)
    sized = collc.compile_source("collective c = allgather on biring(4) { size: 5 KiB };")
    assert [5120] == [point.size for point in sized.simulate().points]


def test_a_simulation_takes_the_options_of_the_command() -> None:
    result = collc.compile_source("collective c = allreduce on uniring(4); schedule c using ring;")
    usual = result.simulate("1MiB").time("1MiB")
    assert result.simulate("1MiB", alpha="1ms").time("1MiB") > usual
    assert result.simulate("1MiB", bandwidth="1Tbps").time("1MiB") < usual
    assert result.simulate("1MiB", latency="swing").time("1MiB") != usual
    assert result.simulate(network=collc.topology("biring(4)"), run_ahead=True).points
    trees = collc.compile_source("collective c = broadcast on biring(4) { root: 0 }; schedule c using forest;")
    assert trees["c"].forest is not None
    one, four = (simulated(trees["c"].forest, "1MiB", pieces=pieces) for pieces in (1, 4))
    assert one.steps < four.steps


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"routing": "fast"}, "C0001"), ({"latency": "fast"}, "C0001"), ({"alpha": "10"}, "C0020"),
        ({"bandwidth": "fast"}, "C0020"), ({"size": "fast"}, "C0020"),
    ],
)  # fmt: skip
def test_wrong_options_of_a_simulation_are_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(collc.CollcError, match=code):
        collc.compile_source(RING).simulate(**options)


def test_a_network_of_another_size_is_refused() -> None:
    with pytest.raises(collc.CollcError, match="C0040"):
        collc.compile_source(RING).simulate(network=collc.topology("biring(5)"))


# ---- notebooks


class Tags(HTMLParser):
    """Collects the tags of a text, and what stands between them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


EVIL = '<script>alert("1")</script>&\'"'


def tables() -> dict[str, Any]:
    """Return an object of every class that has a table, with foreign names where a name can stand."""
    result = collc.compile_source(RING, target="msccl-xml")
    ring = Topology.from_links(EVIL, 2, [(0, 1), (1, 0)])
    evil = collc.compile_source("collective c = allgather on t; schedule c using bfb;", topologies={"t": ring})
    evil_file = Report(EVIL, EVIL, 2, (Check(EVIL, False, EVIL),))
    one = next(iter(evil))
    return {
        "result": result, "collective": result["sums"], "cost": result.cost, "report": evil_file, "topology": ring,
        "simulated": simulated(one.schedule, 1) if one.schedule else None, "evil": evil, "evil collective": one,
        "frontier": collc.find(nodes=9, degree=4),
    }  # fmt: skip


@pytest.mark.parametrize("name", tables())
def test_tables_are_escaped(name: str) -> None:
    text = tables()[name]._repr_html_()
    tags = Tags()
    tags.feed(text)
    assert [] == tags.open
    assert {"table", "caption", "tr", "td"} <= set(tags.tags) <= {"table", "caption", "tr", "th", "td"}
    if name in ("topology", "report"):
        assert EVIL in tags.texts
    assert "color:" not in text.replace("currentColor", "") and "#" not in html.unescape(text)


def test_a_long_table_is_cut() -> None:
    report = Report("a", "b", 1, tuple(Check(str(n), True, "x" * 1000) for n in range(1000)))
    text = report._repr_html_()
    assert len(text) < 10**5 and "940 more" in text and 62 == len(re.findall("<tr>", text))


# ---- checking and formatting


def test_checking_returns_mistakes_and_raises_none(tmp_path: Path) -> None:
    path = tmp_path / "pod.coll"
    path.write_text("topology a = toruss(3);\ntopology b = hypercub(3);\n")
    found = collc.check(path)
    assert [f"{path}:1:14", f"{path}:2:14"] == [str(one.span) for one in found]
    assert ["C0002"] == [one.code for one in collc.check(tmp_path / "missing.coll")]
    assert ["C0002"] == [one.code for one in collc.check(str(tmp_path))]
    assert () == collc.check(RING)
    assert () == collc.check_source(RING + "emit sums as msccl-xml { runtime: rccl };")
    assert ["C0010"] == [one.code for one in collc.check_source(RING + "emit sums as msccl-xml { runtime: xccl };")]
    assert ["C0126"] == [one.code for one in collc.check_source(RING, params={"n": 1})]
    assert ["C0310"] == [one.code for one in collc.check_source(RING, node_limit=3)]
    assert () == collc.check_source(RING, path="ring.coll", include_path=[tmp_path])


@pytest.mark.parametrize("text", ["", "\x00;", "{" * 9999 + ";", "<algo/>\n", "collc-ir 9\n", "\udc80;", "a;" * 999])
def test_checking_takes_any_text(text: str) -> None:
    assert isinstance(collc.check_source(text), tuple)
    assert isinstance(collc.check(text), tuple)


def test_formatting_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "pod.coll"
    path.write_text("topology  pod=torus(3,3);# here\n")
    canonical = "topology pod = torus(3, 3);  # here\n"
    assert canonical == collc.format(path) == collc.format(path.read_text()) == collc.format_source(canonical)
    assert "topology  pod=torus(3,3);# here\n" == path.read_text(), "no file is written"
    with pytest.raises(collc.CollcError, match=r"<string>:1:"):
        collc.format("topology ;")
    with pytest.raises(collc.CollcError, match="C0002"):
        collc.format("missing.coll")


# ---- many


def told(found: list[collc.Result | collc.CollcError]) -> list[object]:
    """Return files and codes of the results of many compilations."""
    return [
        {name: file.text for name, file in one.files.items()} if isinstance(one, collc.Result)
        else [d.code for d in one.diagnostics]
        for one in found
    ]  # fmt: skip


@pytest.fixture
def items(tmp_path: Path) -> list[Any]:
    (tmp_path / "a.coll").write_text(RING)
    (tmp_path / "b.coll").write_text(BOTH)
    return [
        tmp_path / "a.coll", str(tmp_path / "b.coll"), tmp_path / "missing.coll", {"text": "topology t = x;"},
        {"text": RING, "path": "c.coll", "target": "mpi-c"}, {"path": tmp_path / "b.coll", "collective": "gather"},
    ]  # fmt: skip


@pytest.mark.slow
def test_many_are_compiled_as_one_by_one(items: list[Any]) -> None:
    found = collc.compile_many(items, target="msccl-xml")
    assert ["C0002"] == told(found)[2]
    alone = [
        collc.compile(items[0], target="msccl-xml"), collc.compile(items[1], target="msccl-xml"), found[2], found[3],
        collc.compile_source(RING, path="c.coll", target="mpi-c"),
        collc.compile(items[1], collective="gather", target="msccl-xml"),
    ]  # fmt: skip
    assert told(alone) == told(found)
    assert isinstance(found[3], collc.CollcError) and found[3].diagnostics
    with ThreadPoolExecutor(3) as pool:
        assert told(found) == told(collc.compile_many(items, target="msccl-xml", executor=pool))


@pytest.mark.slow
def test_many_are_compiled_in_processes(items: list[Any], tmp_path: Path) -> None:
    expected = told(collc.compile_many(items, target="msccl-xml"))
    seen: list[tuple[str, int, int]] = []
    with ProcessPoolExecutor(1) as pool:
        found = collc.compile_many(
            items, target="msccl-xml", executor=pool, cache=tmp_path / "cache", progress=lambda *what: seen.append(what)
        )
    assert expected == told(found)
    assert isinstance(found[0], collc.Result) and isinstance(found[0].program, Program)
    assert (6, 6) == seen[-1][1:]
    again = collc.compile_many(items, target="msccl-xml", cache=tmp_path / "cache")
    assert expected == told(again)
    assert isinstance(again[0], collc.Result) and again[0]["sums"].is_kept


def test_nothing_to_compile_is_no_error() -> None:
    assert [] == collc.compile_many([])


RING_OF_3 = "collective c = allgather on biring(3);"


def refused(call: Callable[[], object]) -> str:
    """Return the message of the one C0001 that a call raises."""
    with pytest.raises(collc.CollcError) as found:
        call()
    [problem] = found.value.diagnostics
    assert ("C0001", 2) == (problem.code, found.value.exit_status)
    return problem.message


@pytest.mark.parametrize(
    ("items", "said"),
    [(5, "items 5"), (None, "items None"), ("a.coll", "items 'a.coll'"), (b"a", "items b'a'"),
     ({"text": ""}, "items {"),
     ([5], "items[0] 5"), (["a", None], "items[1] None"), ([b"a"], "items[0] b'a'"), ([["a"]], "items[0] ['a']"),
     ([{}], 'a "path" or a "text"'), ([{"target": "ir"}], 'a "path" or a "text"'), ([{"text": None}], '"text"'),
     ([{"text": 5}], 'items[0]["text"] 5'), ([{"path": 5}], 'items[0]["path"] 5'), ([{5: 1}], "the option 5"),
     ([{"text": "", "levle": 1}], "the option 'levle' in items[0]"), ((one for one in [5]), "items[0] 5")],
)  # fmt: skip
def test_what_is_no_list_of_items_is_one_error(items: Any, said: str) -> None:
    assert said in refused(lambda: collc.compile_many(items))


def test_a_wrong_option_of_an_item_has_a_hint() -> None:
    with pytest.raises(collc.CollcError) as found:
        collc.compile_many([{"text": "", "levle": 1}])  # type: ignore[typeddict-unknown-key]
    assert "did you mean `level`?" == found.value.diagnostics[0].hint


WRONG: dict[str, tuple[Any, ...]] = {
    "target": (5, [5], b"x", True), "params": (5, [1], "x", {"n": object()}, {5: 1}, {"n": None}),
    "topologies": (5, "x", {5: 1}), "include_path": (5, [5], b"x"), "collective": (5, [5], b"x"),
    "level": (5, "x", None, 1.5), "passes": (5, ["bfb"]), "disable_passes": (5, [5]), "verify": (5, "x", None),
    "node_limit": ("x", 1.5, None, True), "cache": (5, None, [1]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_an_option_of_a_wrong_type_is_one_error(name: str, value: object) -> None:
    given: dict[str, Any] = {name: value}
    said = [refused(lambda: collc.compile_source(RING_OF_3, **given))]
    item: Any = {"text": RING_OF_3}
    for [one] in (collc.compile_many([item], **given), collc.compile_many([{**item, **given}])):
        assert isinstance(one, collc.CollcError) and 2 == one.exit_status
        said += [problem.message for problem in one.diagnostics]
    assert 3 == len(said) and 1 == len(set(said)) and name in said[0]


@pytest.mark.parametrize(("name", "value"), [("progress", 5), ("cancel", 5), ("cancel", True)])
def test_what_is_no_callback_is_one_error(name: str, value: object) -> None:
    given: dict[str, Any] = {name: value}
    for call in (lambda: collc.compile_many([], **given), lambda: collc.compile_source(RING_OF_3, **given)):
        assert f"found {name} {value}" in refused(call)
    assert "found executor 5" in refused(lambda: collc.compile_source(RING_OF_3, executor=5))  # type: ignore[arg-type]
    assert "found path 5" in refused(lambda: collc.compile(5))  # type: ignore[arg-type]


def test_one_name_may_stand_without_a_list(tmp_path: Path) -> None:
    (tmp_path / "net.coll").write_text("topology net = biring(3);")
    text = 'include "net.coll"; collective c = allgather on net;'
    found = collc.compile_source(text, include_path=str(tmp_path), disable_passes="renumber")
    assert 2 == len(found.spec.files) or found.schedule
    assert collc.compile_source(RING_OF_3, disable_passes=(name for name in ["renumber"])).program


def test_what_results_hold_is_what_they_say() -> None:
    result = collc.compile_source(BOTH)
    assert all(isinstance(file, Artifact) for file in result.files.values())
    assert isinstance(result["sums"].request.problem.collective, Collective)
