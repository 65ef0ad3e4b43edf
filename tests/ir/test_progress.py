"""Progress: a line on a terminal that goes away, nothing in a pipe, and passes that tell whoever listens."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND
from strategies import hypercube

import collc
from collc.cli.console import Console
from collc.ir.collective import Collective
from collc.ir.one_sided.verify import program as one_sided
from collc.ir.progress import counting, progress, watched
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.finder.failures import after_failures
from collc.passes.finder.racks import assign_racks
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.exact.scheduler import Exact
from collc.passes.synthesis.flow import scheduler as flow

pty = pytest.importorskip("pty")

SLOW = "topology t = hypercube(4);\ncollective c = broadcast on t { root: 0 };\nschedule c using exact { effort: 1 };\n"


def screen(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the command with a terminal as standard error; return the status, what it got, and standard output."""
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "NO_COLOR")}
    process = subprocess.Popen(
        [str(COMMAND), *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
        env={**clean, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so that nobody holds the other end any more
            break
        if not part:
            break
        shown += part
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    return process.returncode, shown.decode(), out.decode()


@pytest.fixture
def slow(tmp_path: Path) -> str:
    (tmp_path / "slow.coll").write_text(SLOW)
    return "slow.coll"


@pytest.mark.slow
def test_a_terminal_shows_phases_and_counts_and_is_left_clean(slow: str, tmp_path: Path) -> None:
    status, shown, out = screen(tmp_path, "cost", slow)
    assert status == 0 and "T_L" in out
    assert "reading slow.coll" in shown and "c: exact: integer program of" in shown and "best" in shown
    assert shown.endswith("\r\x1b[K") and "\n" not in shown
    assert all(len(line) <= 78 for line in shown.split("\r\x1b[K"))


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"CI": "true"}])
def test_no_line_where_nobody_could_see_it_move(slow: str, tmp_path: Path, environment: dict[str, str]) -> None:
    assert screen(tmp_path, "cost", slow, **environment)[1] == ""


@pytest.mark.slow
def test_no_line_with_q(slow: str, tmp_path: Path) -> None:
    assert screen(tmp_path, "cost", "-q", slow)[1] == ""


@pytest.mark.slow
def test_a_pipe_gets_nothing(slow: str, tmp_path: Path) -> None:
    done = subprocess.run([str(COMMAND), "cost", slow], cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


# ---- who tells, who listens


def told(work: object, problem: Problem) -> list[str]:
    said: list[str] = []
    with watched(lambda what, done, total: said.append(what)):
        work.run(problem)  # type: ignore[attr-defined]
    return said


def test_passes_tell_without_knowing_whom() -> None:
    cube = hypercube(3)
    tail = Topology.from_links("tail", 3, [(0, 1), (1, 0), (1, 2), (2, 1)])
    assert "balancing steps" in told(BFB(), Problem(tail, Collective("allgather", 3)))
    assert "cuts around the root" in told(Exact(), Problem(cube, Collective("scatter", 8, root=1)))
    assert any("mixing routings" in what for what in told(flow.Flow(), Problem(cube, Collective("alltoall", 8))))


Report = tuple[str, int, int]


def reports(expression: str, target: str, kind: str = "allreduce", scheduler: str = "bfb") -> list[Report]:
    """Return what an API's caller is told of compiling a collective."""
    said: list[Report] = []
    text = f"collective c = {kind} on {expression};\nschedule c using {scheduler};\n"
    collc.compile_source(text, target=target, progress=lambda *report: said.append(report))
    return said


def counts(said: list[Report], what: str) -> tuple[list[int], set[int]]:
    """Return the numbers and the totals of the reports of one kind of work."""
    found = [(done, total) for name, done, total in said if name == what]
    return [done for done, _ in found], {total for _, total in found}


def test_trees_and_cuts_are_counted() -> None:
    said = reports("dgx_a100(2)", "mpi-c", scheduler="forest")
    done, totals = counts(said, "packing trees")
    assert len(totals) == 1 and len({*done}) > 3 and done[0] == min(done) == 0 < max(done) < max(totals)
    assert counts(said, "cuts before ranks")[1] == {16}
    assert counts(said, "dividing switches")[0][0] == 0


def _cost(expression: str) -> object:
    return collc.compile_source(f"collective c = allreduce on {expression}; schedule c using swing;").cost


#: work that takes seconds on a thousand ranks -> the names of its reports
LONG: dict[str, tuple[Callable[[], object], set[str]]] = {
    "cost": (lambda: _cost("torus(3, 4)"), {"parts of the data", "structure and links", "loads of steps"}),
    "simulation": (
        lambda: collc.compile_source("collective c = allgather on biring(5);")["c"].simulate(1), {"loads of steps"}
    ),
    "racks": (lambda: assign_racks(collc.topology("kautz(2, 3)"), 4),
              {"bound on links between racks", "assignments to racks"}),
    "failures": (lambda: after_failures(collc.topology("kautz(2, 3)")), {"failures of links", "failures of nodes"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_work_says_what_it_does(name: str) -> None:
    work, expected = LONG[name]
    said: list[str] = []
    with watched(lambda what, done, total: said.append(what)):
        work()
    assert expected <= set(said)


def test_the_caller_is_told_steps_and_collectives() -> None:
    said = reports("biring(4)", "mpi-c")
    names = [what for what, _, _ in said]
    assert names[0] == "c" and names[-1] == "done" and said[-1] == ("done", 1, 1)
    for step in ("bfb", "lower", "verify renumber", "emit mpi-c", "read back mpi-c"):
        assert f"c: {step}" in names
    assert not [what for what in names if what.startswith("trying")]
    assert all(0 <= done <= total or not total for _, done, total in said)


@pytest.mark.parametrize("target", ["mpi-c", "msccl-xml", "oneccl-xml"])
def test_emission_and_verification_are_counted(target: str) -> None:
    said = reports("hypercube(3)", target)
    totals = {what: total for what, _, total in said if total}
    assert {"executing shards", "checking data"} <= set(totals)
    if target != "oneccl-xml":
        assert {"mpi-c": "executing instructions", "msccl-xml": "reading ranks"}[target] in totals


def test_a_long_loop_reports_a_few_hundred_times_in_order() -> None:
    for length in (0, 1, 7, 500, 501, 12_345):
        said: list[Report] = []
        with watched(lambda *report, said=said: said.append(report)):  # type: ignore[misc]
            assert list(counting(range(length), "loops")) == list(range(length))
        assert len(said) <= 501 and said == sorted(said) and all(total == length for *_, total in said)
        assert bool(said) == bool(length)


def test_a_loop_without_a_listener_is_the_loop_itself() -> None:
    """Nobody listens to the API without a callback, so counting costs nothing."""
    items = [1, 2]
    assert counting(items, "items") is items


def test_a_line_is_shown_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    console, shown, now = Console(), list[str](), [0.0]
    monkeypatch.setattr(console, "_show", shown.append)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    console.progress("grads: forest")
    for done in range(1000):
        now[0] = 100 + done / 1000
        console.follow("packing trees", done, 1024)
    assert shown[0] == "grads: forest" and shown[1] == "grads: forest: packing trees 0 of 1,024"
    assert 3 <= len(shown) <= 7


def test_nobody_need_listen_and_listeners_nest() -> None:
    progress("to nobody")
    outer: list[str] = []
    inner: list[str] = []
    with watched(lambda what, done, total: outer.append(what)):
        with watched(lambda what, done, total: inner.append(what)):
            progress("a", 1, 2)
        progress("b")
    progress("c")
    assert (outer, inner) == (["b"], ["a"])


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("mscclpp-json", {"kinds of operations", "writing ranks", "executing operations"}),
        ("oneccl-xml", {"steps of ranks", "writing ranks", "reading ranks"}), ("report", {"parts of the page"}),
    ],
)  # fmt: skip
def test_targets_count_what_they_write(target: str, names: set[str]) -> None:
    one_sided._right.clear()  # what another test compiled was executed
    seen = dict[str, int]()
    collc.compile_source(
        "collective c = allreduce on torus(4, 4); schedule c using bfb;", target=target,
        progress=lambda what, done, total: seen.update({what: total}),
    )  # fmt: skip
    assert [name for name in names if not seen.get(name)] == []
    if target == "oneccl-xml":  # the library checks all lines in one call
        assert any(re.fullmatch(r"checking [\d,]+ lines against the schema", name) for name in seen)


def test_a_collective_that_copies_counts_steps() -> None:
    seen = dict[str, int]()
    collc.compile_source(
        "collective c = allgather on jellyfish(20, 4, 1); schedule c using bfb;",
        progress=lambda what, done, total: seen.update({what: total}),
    )  # fmt: skip
    assert seen["executing steps"] > 1 and seen["what ranks have at the end"] >= 1
