"""What a run loads: modules that compiling an example does not use, threads that nothing needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from collc.cli import threads

EXAMPLE = ROOT / "examples" / "torus_3x3x2_allreduce.coll"

#: What the run below does without; the first names are other packages'.
UNUSED = (
    "difflib", "concurrent.futures", "logging", "lark", "networkx", "highspy",
    "collc.ir.text", "collc.ir.costs.bounds", "collc.frontends.coll.slips", "collc.frontends.coll.steps",
    "collc.frontends.coll.guesses", "collc.frontends.coll.conditions", "collc.frontends.coll.counts",
    "collc.frontends.coll.lists", "collc.frontends.coll.members", "collc.frontends.coll.together",
    "collc.frontends.coll.weights",
    "collc.driver.automatic", "collc.driver.blame", "collc.files.depfile", "collc.cli.cost",
    "collc.passes.synthesis.forest.allreduce_program",
)  # fmt: skip

_RUN = """
import os, sys
from collc.cli import main
status = main([sys.argv[1], "-o", sys.argv[2]])
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
print(status, threads, os.environ.get("OPENBLAS_NUM_THREADS"), *sys.modules)
"""


def test_an_example_loads_what_it_uses_and_starts_no_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _RUN, str(EXAMPLE), str(tmp_path / "a.xml")]
    plain = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=plain)
    status, threads, variable, *loaded = done.stdout.split()
    assert (status, threads, variable) == ("0", "1", "None")
    assert [name for name in UNUSED if name in loaded] == []
    # a module that was renamed would be missing for ever
    assert "collc.driver.decided" in loaded


CHECKED = """
param n = 3;
topology pod = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };
topology boxes {
  rank gpu[2, n];
  switch nv[2], ib;
  for b in 0..2, g in 0..n {
    link gpu[b, g] <-> nv[b] : 300 GB/s;
    link gpu[b, g] <-> ib : 25 GB/s;
  }
}
topology rest = without(pod, {0});
collective one = allreduce on pod;
collective two = allgather on boxes;
collective three = allgather on rest;
schedule one using bfb;
schedule two using forest;
schedule three using auto;
emit one as msccl-xml;
emit two as mpi-c;
"""

#: What `collc check` of such a file does without: what schedules, costs and writes.
UNUSED_BY_CHECK = (
    "numpy.ma", "random", "heapq", "collc.ir.costs.cost", "collc.passes.schedule.compose",
    "collc.passes.synthesis.breadth_first.relaxed", "collc.passes.synthesis.breadth_first.division",
    "collc.passes.synthesis.forest.packing", "collc.passes.synthesis.forest.routes",
    "collc.passes.synthesis.forest.optimum",
)  # fmt: skip

_CHECK = """
import sys
from collc.cli import main
print(main(["check", sys.argv[1]]), *sys.modules)
"""


def test_a_check_loads_no_algorithm(tmp_path: Path) -> None:
    (tmp_path / "a.coll").write_text(CHECKED)
    command = [sys.executable, "-c", _CHECK, str(tmp_path / "a.coll")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    status, *loaded = done.stdout.split("\n")[-2].split()
    assert status == "0", done.stderr
    assert [name for name in UNUSED_BY_CHECK if name in loaded] == []
    assert "collc.passes.synthesis.forest.scheduler" in loaded


@pytest.mark.parametrize("name", [name for name in (*UNUSED, *UNUSED_BY_CHECK) if name.startswith("collc.")])
def test_what_is_not_loaded_exists(name: str) -> None:
    __import__(name)


@pytest.mark.parametrize("given", [None, "7"])
def test_the_variable_is_left_as_it_was(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "OPENBLAS_NUM_THREADS"
    if given is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, given)
    with threads.without_threads():
        assert os.environ[name] == (given or "1")
    assert os.environ.get(name) == given
