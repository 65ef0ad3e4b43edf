"""Files of other programs: what they are called, by which verb, and that no file of collc is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from places import CASES, ROOT

from collc.files.kinds import kind_of_text
from collc.reading import sniff

KINDS = {
    "topo.xml": ('<system version="1"><cpu numaid="0"/></system>', "a topology file of NCCL"),
    "graph.xml": ('<?xml version="1.0"?>\n<graphs version="1"/>', "an NCCL graph file (`<graphs>`)"),
    "trace.json": ('{"traceEvents": []}', "a trace in JSON"),
    "list.json": ("[1, 2]", "a JSON file"),
    "half.json": ('{"name": "x",', "JSON with a mistake in it"),
    "x.svg": ('<svg xmlns="http://www.w3.org/2000/svg"/>', "an SVG picture"),
    "empty": ("\n \n", "an empty file"),
    "m.c": ("#include <mpi.h>\nint main() {}\n", "C source"),
    "g.dot": ("digraph { a -> b; }", "a Graphviz graph"),
    "t.csv": ("bytes,seconds\n1,2\n", "a CSV table"),
    "s.py": ("import collc\n", "a script or Python file"),
    "y.yaml": ("name: x\n", "a YAML file"),
}


@pytest.mark.parametrize("name", KINDS)
def test_verify_says_what_a_file_is(collc: Callable[..., Ran], name: str) -> None:
    text, noun = KINDS[name]
    Path(name).write_text(text)
    ran = collc("verify", name)
    assert ran.status == 1 and f"collc: error: `{name}` is {noun} [C0018]" in ran.err, ran.err
    assert (
        "`collc verify` reads `.coll`, printed IR, MSCCL-XML, oneCCL-XML, MSCCL++ plan and mpi-c source files"
        in ran.err
    )


def test_other_verbs_name_what_they_read(collc: Callable[..., Ran]) -> None:
    Path("topo.xml").write_text(KINDS["topo.xml"][0])
    converted = "printed IR, MSCCL-XML, oneCCL-XML and MSCCL++ plan"
    for verb, reads in (("cost", "`.coll` and printed IR"), ("convert", converted)):
        ran = collc(verb, "topo.xml", *(["-t", "ir"] if verb == "convert" else []))
        assert f"`collc {verb}` reads {reads} files" in ran.err, ran.err


def test_the_language_says_what_is_wrong_with_a_coll_file(collc: Callable[..., Ran]) -> None:
    """JSON and YAML in a file named `.coll` are a user's try at the language."""
    Path("a.coll").write_text("topology: torus(3)\n")
    assert "a.coll:1:" in collc("verify", "a.coll").err
    assert "<stdin>:1:" in collc("verify", "-", stdin="name: x\n").err


def test_directories_and_missing_files_name_what_is_there(collc: Callable[..., Ran]) -> None:
    Path("out").mkdir()
    Path("out/ring.xml").write_text("<algo/>")
    assert "it is a directory [C0002]\n  hint: name a file in it: `out/ring.xml`" in collc("cost", "out").err
    assert "there is no such file [C0002]\n  hint: did you mean `ring.xml`?" in collc("verify", "out/rin.xml").err


def test_no_file_of_collc_is_taken_for_another() -> None:
    others = {*(CASES / "errors").glob("*_nccl_*.xml"), *(CASES / "import").glob("*.xml")}  # not collc's own
    for path in [*CASES.rglob("*.ir"), *({*CASES.rglob("*.xml")} - others), *(ROOT / "examples").rglob("*.coll")]:
        text = path.read_text()
        assert kind_of_text(text) is None or sniff(text) == "coll", path
