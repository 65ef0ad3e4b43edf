"""Progress: a line on a terminal that goes away, nothing in a pipe, and passes that tell whoever listens."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from commands import COMMAND
from strategies import hypercube

from collc.ir.collective import Collective
from collc.ir.progress import progress, watched
from collc.ir.spec import Problem
from collc.ir.topology import Topology
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
