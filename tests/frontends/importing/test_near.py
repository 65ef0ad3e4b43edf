"""Texts that no importer reads, and figures that nobody has: each gets one clear message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from graph_files import box, dot, graphml, nodelink
from imported import imported

from collc.frontends.importing.figures import bandwidth_of, gpu_named
from collc.ir.diagnostic import CollcError, Diagnostic

Run = Callable[..., Ran]

NEAR = {
    "": "`node.txt` is empty",
    "<?xml version='1.0'?>\n<!-- x -->\n<graphs version='1'/>": "`node.txt` is a graph file of NCCL",
    "<algo name='x'/>": "`node.txt` is an MSCCL-XML algorithm",
    "<svg/>": "`node.txt` is an SVG picture",
    "collc-ir 1\n": "`node.txt` is a printed IR",
    "# c\n\ntopology t = torus(3);": "`node.txt` is a `.coll` file already",
    "Creator x\ngraph [\n node [ id 0 ]\n]": "`node.txt` is a graph in GML",
    '{"data": [], "elements": {}}': "`node.txt` is a graph of Cytoscape",
    "hello": "`node.txt` begins like no file that collc imports",
}


def mistake(run: Callable[[], object]) -> Diagnostic:
    with pytest.raises(CollcError) as caught:
        run()
    [one] = caught.value.diagnostics
    return one


@pytest.mark.parametrize("text", NEAR)
def test_near_misses_are_named(text: str) -> None:
    one = mistake(lambda: imported(text))
    assert one.code == "C0921" and one.message.startswith(NEAR[text]) and one.hint


def test_unknown_formats_have_the_nearest_name() -> None:
    one = mistake(lambda: imported("graph {a -- b}", "dott"))
    assert (one.code, one.hint) == ("C0922", "did you mean `dot`?")


def test_figures_that_are_none() -> None:
    assert mistake(lambda: gpu_named("h10")).code == "C0925"
    for text in ("400", "0Gbps", "fast", "25 us", "-1GB/s", "1e9GB/s"):
        assert mistake(lambda text=text: bandwidth_of(text)).code == "C0926"


FILES = {"pod.graphml": graphml(box()), "my pod.dot": dot(box()), "pod.json": nodelink(box())}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verb", ["compile", "check", "cost", "verify", "simulate", "run", "format"])
def test_other_verbs_name_the_command_that_reads_the_file(collc: Run, verb: str, name: str) -> None:
    Path(name).write_text(FILES[name])
    ran = collc(verb, name)
    nouns = {"pod.graphml": "a GraphML file", "my pod.dot": "a Graphviz graph", "pod.json": "a graph in node-link JSON"}
    assert ran.status == 1 and f"`{name}` is {nouns[name]} [C0018]" in ran.err
    quoted = f"'{name}'" if " " in name else name
    stem = "'my pod.coll'" if " " in name else "pod.coll"
    assert f"hint: `collc import {quoted} -o {stem}` reads it" in ran.err


def test_standard_input_too_but_the_language_answers_for_its_own_files(collc: Run) -> None:
    ran = collc("check", "-", stdin=FILES["my pod.dot"])
    assert "hint: `collc import - -o network.coll` reads it" in ran.err
    Path("a.coll").write_text(FILES["my pod.dot"])
    assert "a.coll:1:1: error" in collc("check", "a.coll").err


def test_formats_are_listed_and_described(collc: Run) -> None:
    listed = collc("formats").out
    assert "\nformats that `collc import` reads:\nnccl-topo " in listed
    assert "printed by: networkx.write_graphml\n" in collc("formats", "graphml").out
    assert '"verbs": [' in collc("formats", "dot", "--json").out
    assert "read by: collc import" in collc("formats", "slurm").out


def test_a_fabric_must_have_hosts_and_each_machine_its_list(collc: Run) -> None:
    Path("box.json").write_text('{"name": "b_1MB", "gpus_per_node": 2, "alpha": 1, "node_betas_list": [10]}')
    Path("pod.dot").write_text("graph { node [kind=host]; n1 -- leaf; n2 -- leaf; leaf [kind=switch] }")
    ran = collc("import", "pod.dot", "--fabric", "box.json")
    assert ran.status == 1 and "needed a fabric of hosts [C0934]" in ran.err
    ran = collc("import", "box.json", "box.json", "--fabric", "pod.dot", "--hosts", "n1")
    assert ran.status == 2 and "found 1 list of hosts for 2 machines [C0935]" in ran.err
