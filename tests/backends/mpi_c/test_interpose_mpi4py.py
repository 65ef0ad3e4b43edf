"""mpi4py's own tests, as they are, with the compiled collectives before the MPI.

A sample by default; ``COLLC_EXHAUSTIVE=1`` runs all of `test_cco_buf`, and `test_mpiapi`, which knows the
functions of large counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from interposed import build_once, everything, preloads
from places import CACHE

from collc.backends.mpi_c.interpose import interposed
from collc.backends.mpi_c.interpose.build import abi
from collc.backends.mpi_c.interpose.report import Report, read_report
from collc.backends.mpi_c.toolchain import Mpi

pytestmark = pytest.mark.needs("mpi")

MPI4PY = "mpi4py==4.1.2"
FOLDER = CACHE / MPI4PY.replace("==", "-")

WHOLE = os.environ.get("COLLC_EXHAUSTIVE", "") not in ("", "0")

#: the tests on the world's communicator, with one kind of buffers
SAMPLE = (
    "--no-numpy", "-k", "TestCCOBufInplaceWorld.testAll", "-k", "TestCCOBufInplaceWorld.testReduceScatterBlock",
    "-k", "TestCCOBufWorld.testAll", "-k", "TestCCOBufWorld.testBcast", "-k", "TestCCOBufWorld.testGather",
)  # fmt: skip


@pytest.fixture(scope="module")
def mpi4py() -> Path:
    """The folder of the wheel and, in ``tests``, of the source's tests."""
    if not (FOLDER / "tests" / "main.py").exists():
        _install()
    return FOLDER


def _install() -> None:
    """Install into a folder aside and move it in place: tests of another process may want it at the same time."""
    FOLDER.parent.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=FOLDER.parent))
    try:
        _pip("install", "--target", str(aside / "made"), MPI4PY)
        _pip("download", "--no-binary", "mpi4py", "-d", str(aside / "source"), MPI4PY)
        (archive,) = (aside / "source").glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(aside / "source", filter="data")
        (tests,) = (aside / "source").glob("mpi4py-*/test")
        shutil.move(tests, aside / "made" / "tests")
        if not FOLDER.exists():
            os.rename(aside / "made", FOLDER)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _pip(command: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()
        pytest.skip(f"{MPI4PY} cannot be had: {reason[-1] if reason else 'pip failed'}")


def _ran(mpi: Mpi, mpi4py: Path, folder: Path, tests: Sequence[str], ranks: int = 4, **more: str) -> Report:
    """Run some of its tests, which pass; return what the library reports."""
    library, report = folder / "lib.so", folder / "report"
    build_once(mpi, interposed("lib", everything(ranks)), library)
    report.write_text("")
    given = {
        "LD_PRELOAD": preloads(mpi, library),
        "COLLC_LAUNCH_REPORT": str(report),
        "PYTHONPATH": str(mpi4py),
        **more,
    }
    option = (lambda k, v: ["-x", f"{k}={v}"]) if abi(mpi) == "openmpi" else (lambda k, v: ["-env", k, v])
    words = [word for name, value in given.items() for word in option(name, value)]
    command = [str(mpi.mpiexec), *words, "-n", str(ranks), sys.executable, "main.py", *tests]
    done = subprocess.run(
        command, cwd=mpi4py / "tests", env=mpi.environment(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=1200 if WHOLE else 240, check=False,
    )  # fmt: skip
    # A rank whose tests fail ends with 1, and so does the launcher; what ranks print at once is mixed.
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return read_report(report.read_text())


def _served(heard: Report) -> set[str]:
    return {name.removesuffix("_c") for (name, end), n in heard.calls.items() if end == "served" and n}


def _its_own_tests(mpi: Mpi, mpi4py: Path, folder: Path, capsys: pytest.CaptureFixture[str], **more: str) -> None:
    heard = _ran(mpi, mpi4py, folder, [*(("test_mpiapi",) if WHOLE else SAMPLE), "test_cco_buf"], **more)
    with capsys.disabled():
        print(f"\nmpi4py's test_cco_buf on {mpi}:\n{heard.table()}", end="")
    assert heard.ranks == 4 and heard.served > 1000
    assert _served(heard) >= {"MPI_Allgather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Reduce_scatter_block"}
    # Where the MPI has large counts, mpi4py calls nothing else.
    assert all(name.endswith("_c") == (abi(mpi) == "mpich") for name, _ in heard.calls)


def test_on_mpich(mpich: Mpi, mpi4py: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _its_own_tests(mpich, mpi4py, tmp_path, capsys)


def test_on_open_mpi(openmpi: Mpi, mpi4py: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = str(openmpi.folder.parent / "lib" / "libmpi.so.40")
    _its_own_tests(openmpi, mpi4py, tmp_path, capsys, MPI4PY_MPIABI="openmpi", MPI4PY_LIBMPI=library)


def test_other_forms_on_mpich(mpich: Mpi, mpi4py: Path, tmp_path: Path) -> None:
    """Nonblocking and persistent calls, and those with a count for each rank, whose counts mpi4py frees at once."""
    tests = [f"test_cco_{form}" for form in ("nb_buf", "nb_vec", "pr_buf", "pr_vec", "vec")]
    ranks, chosen = (4, []) if WHOLE else (2, ["--no-numpy", "-k", "World"])
    # Without the shim, which lets the thread sleep after every look at its calls.
    more = {"COLLC_NONBLOCKING": "1", "COLLC_UNEVEN": "1", "LD_PRELOAD": str(tmp_path / "lib.so")}
    heard = _ran(mpich, mpi4py, tmp_path, [*chosen, *tests], ranks, **more)
    even = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter_block", "scatter")
    names = [*even, "reduce_scatter", "allgatherv"]
    assert heard.ranks == ranks and _served(heard) >= {
        *(f"MPI_I{name}" for name in names), *(f"MPI_{name.capitalize()}_init" for name in names),
        "MPI_Allgatherv", "MPI_Alltoallv", "MPI_Gatherv", "MPI_Scatterv",
    }  # fmt: skip
