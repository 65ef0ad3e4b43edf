"""The targets ``svg`` and ``dot``: what they draw, for which networks, and what their readers refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import attrs
import pytest
from imported import imported
from report_pages import account

import collc as compiler
from collc.backends.base import Artifact, Target
from collc.backends.graphviz import Dot
from collc.backends.pictures.loads import added_up, link_loads_of
from collc.backends.pictures.trees import trees_of
from collc.backends.simulator import simulate
from collc.backends.svg import Svg
from collc.frontends import coll
from collc.ir.diagnostic import CollcError

DOCS = Path(__file__).resolve().parents[3] / "docs"
NETWORKS = [
    ("torus(3, 3, 2)", "bfb"), ("mesh(2, 3)", "bfb"), ("hypercube(4)", "bfb"), ("circulant(9, {2, 3})", "bfb"),
    ("uniring(5)", "ring"), ("dgx_a100(2)", "forest"), ("fat_tree(4)", "forest"), ("torus(12, 12)", "bfb"),
]  # fmt: skip
DGX = "topology pod = degraded(dgx_a100(2), {gpu[0, 3] <-> ib}, 1/2);\ncollective c = allreduce on pod;\n"
TREES = DGX + "schedule c using forest;"


def text_of(net: str, scheduler: str, collective: str = "allgather") -> str:
    return f"topology t = {net};\ncollective c = {collective} on t;\nschedule c using {scheduler};"


@pytest.mark.parametrize("net, scheduler", NETWORKS, ids=[net for net, _ in NETWORKS])
def test_pictures_of_every_shape_pass_their_own_reader(net: str, scheduler: str) -> None:
    one = account(text_of(net, scheduler))
    for target in (Svg(), Dot()):
        files = target.emit(one)
        report = target.check(one, files)
        assert report.ok, report.failed
        assert [file.content for file in files] == [file.content for file in target.emit(one)]


def test_files_of_one_collective() -> None:
    result = compiler.compile_source(TREES, target="svg")["c"]
    assert ["", "-trees.svg", "-load.svg", "-goodput.svg"] == [file.ending for file in result.artifacts]
    result = compiler.compile_source(text_of("torus(3, 3)", "bfb"), target="svg")["c"]
    assert ["", "-trees.svg", "-load.svg", "-goodput.svg"] == [file.ending for file in result.artifacts]
    assert "One root: its data come by these transfers first." in result.artifacts[1].text
    only = compiler.compile_source(TREES, target="svg{picture=trees, trees=2}")["c"].artifacts
    assert [""] == [file.ending for file in only] and "82 more trees not drawn" in only[0].text


def test_every_link_is_drawn_once_with_its_load() -> None:
    one = account(text_of("dgx_a100(2)", "forest"))
    root = ElementTree.fromstring(Svg(picture="topology").emit(one)[0].text)
    drawn = {
        int(link.attrib["data-link"]): link.attrib["data-load"] for link in root.iter() if "data-link" in link.attrib
    }
    loads = added_up(one.shown.schedule)
    assert loads is not None and drawn == {link: str(share) for link, share in enumerate(loads.share)}


@pytest.mark.parametrize("net, scheduler", [("torus(3, 2)", "bfb"), ("dgx_a100(2)", "forest"), ("biring(6)", "ring")])
def test_the_simulator_and_the_sum_of_transfers_agree(net: str, scheduler: str) -> None:
    level = account(text_of(net, scheduler, "allreduce")).shown.schedule
    added = added_up(level)
    assert added is not None and link_loads_of(simulate(level)).share == added.share


def test_large_networks_are_folded() -> None:
    one = account(text_of("dgx_a100(16)", "ring"))
    topology, load = (ElementTree.fromstring(file.text) for file in Svg().emit(one)[:3:2])
    words = [text.text for text in topology.iter("{http://www.w3.org/2000/svg}text")]
    assert (
        "box 0, one of 16 alike" in words and len([1 for link in topology.iter() if "data-link" in link.attrib]) == 32
    )
    rows = {cell.attrib["data-row"] for cell in load.iter() if "data-row" in cell.attrib}
    assert len(rows) == 17  # 16 boxes and the switch between them


def test_trees_span_all_ranks_and_begin_at_their_roots() -> None:
    forest = account(TREES).shown.forest
    assert forest is not None
    for tree in trees_of(getattr(forest, "seed", forest), 5):
        assert {tree.root, *(edge.child for edge in tree.edges)} == set(range(16))
        assert {edge.depth for edge in tree.edges} == set(range(1, tree.height + 1))
        assert len(set(tree.columns().values())) > 1


def test_the_graph_is_read_as_the_same_network() -> None:
    text = "topology t = torus(3, 3) with { bandwidth: 25 GB/s, latency: 1 us };\ncollective c = allgather on t;"
    one = account(text)
    found = imported(Dot(picture="topology").emit(one)[0].text, "dot").topology("t")
    assert (found.src.tolist(), found.dst.tolist()) == (one.topology.src.tolist(), one.topology.dst.tolist())
    assert found.classes == one.topology.classes


CHANGES: Sequence[tuple[Target, str, str, str]] = (
    (Svg(picture="topology"), r'data-load="[^"]+"', 'data-load="1/5"', "links"),
    (Svg(picture="topology"), r'class="link k5"', 'class="link k2"', "links"),
    (Svg(picture="topology"), r"<title>[^<]*</title>", "", "described"),
    (Svg(picture="topology"), r"font-size:11px", "font-size:9px", "readable"),
    (Svg(picture="goodput"), r"prefers-color-scheme:dark", "print", "readable"),
    (Svg(picture="topology"), r"</svg>", "<script/></svg>", "elements"),
    (Svg(picture="load"), r'data-links="1"', 'data-links="2"', "cells"),
    (Svg(picture="load"), r'data-load="[^"]+"', 'data-load="1/7"', "cells"),
    (Svg(picture="goodput"), r"<title>1 KiB: ", "<title>2 KiB: ", "points"),
    (Dot(), r'"carries [^ ]+', '"carries 1/7', "loads"),
    (Dot(), r"  0 -> 1 ", "  0 -> 2 ", "links"),
    (Dot(), r'penwidth="4.1"', 'penwidth="3.4"', "widths"),
    (Dot(), r'label="1"', 'label="7"', "nodes"),
)


@pytest.mark.parametrize("target, old, new, check", CHANGES, ids=[f"{c[3]} {n}" for n, c in enumerate(CHANGES)])
def test_a_planted_fault_is_found_without_the_writer(target: Target, old: str, new: str, check: str) -> None:
    one = account(text_of("biring(3)", "ring"))
    files = list(target.emit(one))
    text = re.sub(old, new, files[0].text, count=1)
    assert text != files[0].text
    report = target.check(one, [attrs.evolve(files[0], text=text), *files[1:]])
    assert check in {found.name for found in report.failed}


@pytest.mark.parametrize("target", [Svg(picture="trees"), Dot(picture="trees")])
def test_an_edge_that_the_forest_does_not_have_is_found(target: Target) -> None:
    one = account(TREES)
    file = target.emit(one)[0]
    for old, new in ((r'data-child="\d+"', 'data-child="0"'), (r"t0_0 -> t0_\d+", "t0_0 -> t0_0")):
        text = re.sub(old, new, file.text, count=1)
        if text != file.text:
            report = target.check(one, [attrs.evolve(file, text=text)])
            assert "trees" in {found.name for found in report.failed}


def test_text_that_is_no_picture_is_refused() -> None:
    one = account(text_of("biring(3)", "ring"))
    for text in ("", "<svg", "<a/>", "\0", "<!DOCTYPE x [<!ENTITY a 'b'>]><svg/>"):
        assert not Svg(picture="load").check(one, [Artifact("c.svg", text, "svg")]).ok
        assert not Dot(picture="topology").check(one, [Artifact("c.dot", text, "dot")]).ok
    assert not Svg().check(one, []).ok and not Dot().check(one, []).ok


@pytest.mark.parametrize("target, code", [
    ("svg{picture=tree}", "C0010"), ("dot{picture=load}", "C0010"), ("svg{trees=0}", "C0820"),
    ("dot{trees=257}", "C0820"),
])  # fmt: skip
def test_wrong_options_are_refused(target: str, code: str) -> None:
    with pytest.raises(CollcError) as found:
        compiler.compile_source(text_of("biring(3)", "ring"), target=target)
    assert code == found.value.diagnostics[0].code


@pytest.mark.parametrize("target", ["svg{picture=trees}", "dot{picture=trees}"])
def test_a_schedule_in_which_nothing_moves_has_no_trees(target: str) -> None:
    with pytest.raises(CollcError) as found:
        compiler.compile_source("topology t { rank a; }\ncollective c = allgather on t;", target=target)
    assert "C0821" == found.value.diagnostics[0].code


def test_names_are_escaped() -> None:
    net = "topology t { rank a; rank b; link a <-> b; }\ncollective c = allgather on t;"
    one = account(net)
    hostile = attrs.evolve(one.topology, node_names=('<script>"&', "b\\"))
    schedule = attrs.evolve(one.shown.schedule, topology=hostile)
    shown = attrs.evolve(one, algorithms=(attrs.evolve(one.shown, schedule=schedule),))
    for target in (Svg(), Dot()):
        assert target.check(shown, target.emit(shown)).ok
    assert "<script>" not in Svg().emit(shown)[0].text
    assert coll.topology("biring(3)").num_ranks == 3


def test_the_pictures_of_the_documentation_are_those_of_its_files() -> None:
    page = (DOCS / "pictures.md").read_text()
    text = re.findall(r"```coll\n(.*?)```", page, re.DOTALL)[0]
    files = compiler.compile_source(text)["grads"].artifacts
    assert (DOCS / "pictures-network.svg").read_text() == files[0].text
    assert (DOCS / "pictures-load.svg").read_text() == files[2].text
    assert 4 == len(files) and all(f"`grads{file.ending or '.svg'}`" in page for file in files)
