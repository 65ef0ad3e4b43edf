"""Type checkers accept right calls of the API and refuse wrong ones; at run time an unknown keyword is a TypeError."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from places import ROOT

import collc
from collc.compiling import Request

#: the modules that say how the API is called, which is all that the checker reads
MODULES = (
    "__init__.py",
    "api.py",
    "compiling.py",
    "driver/__init__.py",
    "driver/watching.py",
    "networks.py",
    "sweeps.py",
    "runs.py",
    "plotting.py",
)

RIGHT = """
import threading
from fractions import Fraction
from pathlib import Path
import collc

def told(what: str, done: int, total: int) -> None: ...

collc.compile("a.coll", target="msccl-xml", params={"n": 4, "f": Fraction(1, 2)}, level=3, verify="full", cache=True)
collc.compile(Path("a.coll"), target=["ir", "mpi-c"], collective="c", cache=Path("cache"), progress=told)
collc.compile_source("", path="a", disable_passes=["fuse"], passes="bfb", cancel=threading.Event())
collc.compile_many(["a.coll", {"text": "", "params": {"n": 1}}], target="ir", cache="folder")
collc.convert("a.xml", target="ir", verify="off", root=1)
collc.verify("a.xml", runtime="rccl", multiprocessors=4)
collc.compile_many(["a.coll"], executor="processes:2")
collc.sweep(["torus(3)"], ["allreduce"], ["bfb"], sizes="1KiB..1GiB", alpha="10us", cache=True, executor="mpi")
collc.sweep({"t": collc.topology("torus(3)")}, "allreduce", sizes=[1, "1KiB"], bandwidth=Fraction(1))
collc.run("a.coll", sizes="1KiB", counts=[1, 7], dtypes=["int32"], places="in", mpi=Path("mpi"), testbed="40Mbps").ok
collc.plot(collc.sweep("torus(3)", "allreduce"), "goodput", sizes=["1KiB"])
collc.find(nodes=9, degree=4, objective="alltoall", alpha="10us", size=1, progress=told)
collc.check("a.coll", params={"n": 4}, node_limit=5)
collc.check_source("", include_path=["a"])
collc.format("a.coll").strip()
collc.format_source("", path="a").strip()
collc.topology("torus(3)")
collc.import_topology("a.xml", gpu="h100", nic="400Gbps", size=1).topology.num_ranks
collc.import_topology([Path("a"), "b"], nic=Fraction(1), tiers={"leaf": 1e9}, fabric=["c"], hosts=["n1"]).text.strip()
"""

WRONG = (
    'collc.compile("a.coll", bogus=3)',
    'collc.compile("a.coll", target=3)',
    'collc.compile("a.coll", level="2")',
    'collc.compile("a.coll", level=7)',
    'collc.compile("a.coll", verify="sometimes")',
    'collc.compile("a.coll", params=[1])',
    'collc.compile("a.coll", progress=3)',
    'collc.compile("a.coll", progress=lambda: None)',
    'collc.compile("a.coll", cancel=True)',
    'collc.compile("a.coll", cache=3)',
    'collc.compile("a.coll", "ir")',
    "collc.compile(3)",
    'collc.compile_source("", bogus=3)',
    'collc.compile_source("", node_limit="many")',
    'collc.compile_many(["a"], bogus=3)',
    'collc.compile_many([{"text": "", "bogus": 3}])',
    'collc.convert("a.xml", target="ir", bogus=3)',
    'collc.convert("a.xml")',
    'collc.verify("a.xml", bogus=3)',
    "collc.find(nodes=9, degree=4, bogus=3)",
    'collc.find(nodes="9", degree=4)',
    'collc.find(nodes=9, degree=4, objective="all")',
    'collc.check("a.coll", bogus=3)',
    'collc.sweep("torus(3)", "allreduce", bogus=3)',
    'collc.sweep("torus(3)")',
    'collc.sweep("torus(3)", "allreduce", sizes=1.5)',
    'collc.sweep("torus(3)", "allreduce", executor=3)',
    'collc.run("a.coll", bogus=3)',
    'collc.run("a.coll", counts="1")',
    'collc.plot(collc.topology("torus(3)"), "pie")',
    'collc.check_source("", bogus=3)',
    'collc.format("a.coll", bogus=3)',
    'collc.format_source("", bogus=3)',
    "collc.topology(3)",
    'collc.import_topology("a.xml", bogus=3)',
    "collc.import_topology(3)",
    'collc.import_topology("a.xml", nic=[1])',
    "collc.bogus()",
)


def refused(folder: Path, text: str) -> set[int]:
    """Return the lines that mypy reports in a file that uses the API."""
    pytest.importorskip("mypy")
    for name in MODULES:
        (folder / "collc" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "collc" / name, folder / "collc" / name)
    (folder / "tried.py").write_text(text)
    modules = ["tried.py", *(f"collc/{name}" for name in MODULES)]
    options = ["--strict", "--follow-imports=skip", "--ignore-missing-imports", "--allow-subclassing-any"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", str(folder / "cache"), *modules]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return {int(line) for line in re.findall(r"^tried\.py:(\d+): error", done.stdout, re.MULTILINE)}


@pytest.mark.slow
def test_right_calls_pass_and_each_wrong_call_is_refused(tmp_path: Path) -> None:
    right = len(RIGHT.splitlines())
    lines = refused(tmp_path, RIGHT + "\n".join(WRONG) + "\n")
    assert [] == [RIGHT.splitlines()[line - 1] for line in sorted(lines) if line <= right]
    assert [] == [call for line, call in enumerate(WRONG, right + 1) if line not in lines]


CALLS: dict[str, Callable[..., Any]] = {
    "compile": lambda **more: collc.compile("missing.coll", **more),
    "compile_source": lambda **more: collc.compile_source("", **more),
    "compile_many": lambda **more: collc.compile_many(["missing.coll"], **more),
    "convert": lambda **more: collc.convert("missing.xml", target="ir", **more),
    "verify": lambda **more: collc.verify("missing.xml", **more),
    "find": lambda **more: collc.find(nodes=9, degree=4, **more),
    "check": lambda **more: collc.check("missing.coll", **more),
    "check_source": lambda **more: collc.check_source("", **more),
    "format": lambda **more: collc.format("missing.coll", **more),
    "import_topology": lambda **more: collc.import_topology("missing.xml", **more),
    "format_source": lambda **more: collc.format_source("", **more),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_keyword_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match="bogus"):
        CALLS[name](bogus=3)


def keywords(function: Callable[..., object]) -> dict[str, tuple[object, object]]:
    """Return annotation and default of a function's keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: (p.annotation, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_the_functions_that_compile_take_the_same_options() -> None:
    source = keywords(collc.compile_source)
    own = source.pop("path")
    assert ("str", "<string>") == own
    assert source == keywords(collc.compile)
    fields = {field.name: (field.type, field.default) for field in attrs.fields(Request)}
    calling = {"progress", "cancel"}
    assert list(fields) == [name for name in source if name not in calling]
    assert fields == {name: one for name, one in source.items() if name not in calling}
    text = (ROOT / "collc" / "compiling.py").read_text()
    listed = dict(
        re.findall(r"^        (\w+): (.*)$", text.partition("class Options")[2].partition("class Item")[0], re.M)
    )
    assert {name: kind for name, (kind, _) in fields.items() if name != "executor"} == listed
