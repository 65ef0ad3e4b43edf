"""Engines of long searches: equal results on all of them, also when a worker is killed in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import COMMAND, Ran, spawn
from killed_workers import kills_always, kills_once, squared
from places import CACHE, HELPERS

from collc.cli.searching import Remaining
from collc.ir.diagnostic import CollcError
from collc.processes.engines import Engine, _Cluster, engine, parse_engine
from collc.processes.workers import Work

Collc = Callable[..., Ran]
SEARCH = ("find", "--refresh", "--bidirectional", "--database", "made.txt", "-d", "3", "-n", "30..70", "--effort", "30")


@pytest.fixture(autouse=True)
def _helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HELPERS))


def _squares(executor: Executor | None, folder: Path) -> list[int]:
    calls = [(number, str(folder)) for number in range(8)]
    return Work(executor).run(kills_once, calls, ["square"] * 8)


SQUARES = [squared(number) for number in range(8)]


# ---- names of engines


@pytest.mark.parametrize("text", ["threads", "processes:0", "processes:-1", "processes:", "dask", "dask:head", "mpi:4"])
def test_other_executors_are_errors(collc: Collc, text: str) -> None:
    ran = collc("find", "-n9", "-d4", "--refresh", "--executor", text)
    assert (2, True, True) == (ran.status, "C0036" in ran.err, "processes:N" in ran.err)


def test_one_number_of_workers_is_enough(collc: Collc) -> None:
    ran = collc("find", "-n9", "-d4", "--refresh", "--executor", "processes:2", "-j2")
    assert (2, True) == (ran.status, "C0001" in ran.err)


@pytest.mark.parametrize(("name", "package"), [("dask:tcp://127.0.0.1:9", "distributed"), ("mpi", "mpi4py")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, collc: Collc, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.futures", None)
    ran = collc("find", "-n9", "-d4", "--refresh", "--executor", name)
    assert (1, True, True) == (ran.status, f"`{package}`" in ran.err, "pip install 'collc[" in ran.err)


def test_engines_are_loaded_when_used() -> None:
    code = "import sys, collc.processes.engines; sys.exit(any(p in sys.modules for p in ('distributed', 'mpi4py')))"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


# ---- processes


@pytest.mark.slow
def test_processes_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    with engine(Engine("processes", 2)) as executor:
        assert _squares(executor, tmp_path) == SQUARES
        assert 3 == len(list(tmp_path.iterdir()))
        assert Work(executor).run(squared, [(3,)], ["again"]) == [9]


@pytest.mark.slow
def test_a_unit_that_kills_every_worker_is_an_error() -> None:
    with engine(Engine("processes", 2)) as executor, pytest.raises(CollcError, match="C0024"):
        Work(executor).run(kills_always, [(0,), (1,)], ["kept", "killed"])


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on(collc: Collc, tmp_path: Path) -> None:
    whole = _built(collc)
    killed = subprocess.Popen([str(COMMAND), *SEARCH, "--executor", "processes:2"], start_new_session=True)
    _wait_for(lambda: Path("made.txt.units").exists())
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    with Path("made.txt.units").open("ab") as stream:
        stream.write(b"torn")
    kept = Path("made.txt.units").read_text().count("\n")
    assert kept > 0
    assert 0 == collc(*SEARCH, "-j1").status
    assert (whole, False) == (Path("made.txt").read_text(), Path("made.txt.units").exists())


def _built(collc: Collc) -> str:
    """Return the database that one process builds, and remove it."""
    assert 0 == collc(*SEARCH, "--executor", "processes:1").status
    text = Path("made.txt").read_text()
    Path("made.txt").unlink()
    return text


def _wait_for(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


# ---- Dask


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler on this machine with two workers."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'collc[dask]'")
    dask = pytest.importorskip("dask")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(HELPERS)
    with contextlib.ExitStack() as stack:
        # The cluster removes for good a worker that was lost 15 s ago and is not back. One that was killed again just
        # then is not, and without workers the scheduler waits for ever.
        stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}))
        made = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        stack.enter_context(made)
        yield str(made.scheduler_address)
        with distributed.Client(made) as client:
            client.wait_for_workers(2, timeout=60)  # a worker that starts cannot be ended
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.mark.slow
def test_dask_finds_the_same_when_workers_are_killed(cluster: str, tmp_path: Path, collc: Collc) -> None:
    with engine(parse_engine(f"dask:{cluster}")) as executor:
        assert _squares(executor, tmp_path) == SQUARES
    assert 3 == len(list(tmp_path.glob("killed-*")))
    whole = _built(collc)
    ran = collc(*SEARCH, "--executor", f"dask:{cluster}")
    assert (0, "") == (ran.status, ran.err)
    assert whole == Path("made.txt").read_text()


class _Lost:
    """A future of Dask whose worker ended just after its result was read."""

    status = "lost"

    async def _result(self, raiseit: bool) -> int:
        return 9


def test_a_result_that_dask_takes_for_an_exception_is_computed_again() -> None:
    adapter = pytest.importorskip("distributed.cfexecutor", reason="Dask is not installed: pip install 'collc[dask]'")
    read: Future[int] = Future()
    asyncio.run(_cascaded(adapter, read))
    assert isinstance(read.exception(), TypeError)
    given = iter([read])

    class Inner(Executor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            again: Future[Any] = Future()
            again.set_result(function(*args, **kwargs))
            return next(given, again)

    assert Work(_Cluster(Inner(), (BrokenExecutor,))).run(squared, [(3,)], ["square"]) == [9]


async def _cascaded(adapter: ModuleType, read: Future[int]) -> None:
    await adapter._cascade_future(_Lost(), read)


def test_a_type_error_of_a_unit_is_not_the_loss_of_a_worker() -> None:
    with ThreadPoolExecutor(1) as inner, pytest.raises(TypeError):
        Work(_Cluster(inner, (BrokenExecutor,))).run(squared, [(3, 4, 5, 6)], ["square"])


@pytest.mark.slow
def test_a_unit_that_kills_every_worker_of_dask_is_an_error(cluster: str) -> None:
    with engine(parse_engine(f"dask:{cluster}")) as executor, pytest.raises(CollcError, match="C0024"):
        Work(executor).run(kills_always, [(0,), (1,)], ["kept", "killed"])


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'collc[dask]'")
    monkeypatch.setattr("collc.processes.engines._SECONDS", 1)
    with pytest.raises(CollcError, match="C0037"), engine(parse_engine("dask:tcp://127.0.0.1:9")):
        pass


# ---- MPI


@pytest.fixture
def mpi4py() -> str:
    """The PYTHONPATH with which programs find mpi4py."""
    if not (COMMAND.parent / "mpiexec").exists():
        pytest.skip("there is no mpiexec: pip install mpich")
    if importlib.util.find_spec("mpi4py"):
        return str(HELPERS)
    found = sorted(CACHE.glob("mpi4py-*/mpi4py"))
    if not found:
        pytest.skip("mpi4py is not installed: pip install 'collc[mpi4py]'")
    return f"{HELPERS}{os.pathsep}{found[-1].parent}"


def _mpi(path: str, *words: str, **more: str) -> subprocess.Popen[bytes]:
    command = [str(COMMAND.parent / "mpiexec"), "-n", "4", sys.executable, "-m", "mpi4py.futures", "-m", "collc"]
    return subprocess.Popen(
        [*command, *(words or SEARCH), "--executor", "mpi"], env={**os.environ, "PYTHONPATH": path, **more},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.needs("mpi")
def test_ranks_of_mpi_find_the_same_and_one_that_is_killed_loses_nothing(mpi4py: str, collc: Collc) -> None:
    whole, mark = _built(collc), uuid.uuid4().hex
    running = _mpi(mpi4py, COLLC_TEST_MARK=mark)
    _wait_for(lambda: Path("made.txt.units").exists())
    os.kill(_rank(2, mark), signal.SIGKILL)
    running.communicate(timeout=60)
    assert running.returncode != 0  # an MPI ends all ranks with one
    assert Path("made.txt.units").exists()
    again = _mpi(mpi4py)
    out, err = again.communicate(timeout=60)
    assert (0, b"") == (again.returncode, err)
    assert b"made.txt: " in out
    assert (whole, False) == (Path("made.txt").read_text(), Path("made.txt.units").exists())


@pytest.mark.needs("mpi")
def test_ranks_of_mpi_sweep_the_same_table(mpi4py: str, collc: Collc) -> None:
    words = (
        "sweep",
        "--on",
        "torus(3, 3)",
        "uniring(5)",
        "--collective",
        "allreduce",
        "--using",
        "bfb",
        "swing",
        "--csv",
    )
    running = _mpi(mpi4py, *words)
    out, err = running.communicate(timeout=60)
    assert (0, b"") == (running.returncode, err)
    assert out.decode() == collc(*words, "-j1").out


def _rank(number: int, mark: str) -> int:
    """Return the process that is a rank of the program that was started with a mark."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes().split(b"\0")
            if f"COLLC_TEST_MARK={mark}".encode() in environment and f"PMI_RANK={number}".encode() in environment:
                return int(folder.name)
    pytest.skip("the ranks of this MPI cannot be told from their environment")


@pytest.mark.needs("mpi")
def test_one_process_is_no_mpi_program(mpi4py: str, tmp_path: Path) -> None:
    done = spawn("find", "-n9", "-d4", "--refresh", "--executor", "mpi", cwd=tmp_path, PYTHONPATH=mpi4py)
    assert (1, True) == (done.returncode, "C0037" in done.stderr and "mpiexec -n 4" in done.stderr)


# ---- progress


def test_the_rest_is_estimated_from_what_is_done() -> None:
    seen: list[str] = []
    now = [0.0]
    count = Remaining(lambda what, done, total: seen.append(f"{done}/{total} {what}"), lambda: now[0])
    for done in (0, 1, 2, 4, 8):
        now[0] = 10.0 * done
        count("search", done, 8)
    count("written", 0, 0)
    assert seen == [
        "0/8 search", "1/8 search, 70 s left", "2/8 search, 60 s left", "4/8 search, 40 s left", "8/8 search",
        "0/0 written",
    ]  # fmt: skip
