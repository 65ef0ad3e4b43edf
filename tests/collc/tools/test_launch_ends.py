"""``collc launch``: what is known of ranks that end abnormally, and of libraries that report nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest
from commands import COMMAND
from places import the

from collc.backends.mpi_c.interpose.report import gather_report, read_counts, read_report
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.tools.silence import reasons

pytestmark = pytest.mark.needs("mpi")

PROGRAM = the("ending_program.c")
SPEC = "topology net = biring(2);\ncollective sums = allreduce on net;\nschedule sums using bfb;\n"


@attrs.frozen
class Launched:
    """A program for one MPI, and what it is launched with."""

    mpi: Mpi
    folder: Path

    def __call__(self, *command: object, stats: bool = True) -> subprocess.CompletedProcess[str]:
        environ = {**self.mpi.environment(os.environ), "PATH": f"{self.mpi.folder}:{os.environ['PATH']}"}
        words = ["launch", "net.coll", "--cache=cache", *(["--stats"] if stats else []), "--", *map(str, command)]
        return subprocess.run(
            [COMMAND, *words], check=False, capture_output=True, text=True, env=environ, timeout=120, cwd=self.folder
        )

    def end(self, how: str) -> subprocess.CompletedProcess[str]:
        return self("mpiexec", "-n", 2, self.folder / "program", how)


def launched(mpi: Mpi, folder: Path) -> Launched:
    (folder / "net.coll").write_text(SPEC)
    compile_c(mpi, [PROGRAM], folder / "program")
    return Launched(mpi, folder)


@pytest.fixture(scope="module")
def on_mpich(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Launched:
    return launched(mpich, tmp_path_factory.mktemp("mpich"))


@pytest.fixture(scope="module")
def on_openmpi(openmpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Launched:
    return launched(openmpi, tmp_path_factory.mktemp("openmpi"))


# ---- abnormal ends


@pytest.mark.parametrize("how", ["abort", "crash", "kill", "exit"])
def test_counts_survive(how: str, on_mpich: Launched, on_openmpi: Launched) -> None:
    for program in (on_mpich, on_openmpi):
        done = program.end(how)
        assert done.returncode not in (0, 70) and "Traceback" not in done.stderr
        assert "collc: 6 calls served, 0 left to the MPI (sums over 2 ranks)" in done.stderr
        assert "collc:   MPI_Allreduce: 6 served\n" in done.stderr
        assert "collc:   rank 1 ended abnormally: 3 served, 0 left until then\n" in done.stderr


def test_ends_before_any_call(on_mpich: Launched) -> None:
    done = on_mpich.end("early")
    assert done.returncode != 0
    assert re.search(r"rank [01] (ended abnormally: 0 served, 0 left until then|not reported: ended abn)", done.stderr)
    silent = on_mpich("sh", "-c", "kill -9 $$")
    assert silent.returncode == 137 and "collc: calls not reported: ended abnormally\n" in silent.stderr


def test_ends_in_order_leave_no_counts(on_mpich: Launched, tmp_path: Path) -> None:
    done = on_mpich.end("")
    assert done.returncode == 0 and "collc: 6 calls served" in done.stderr and "abnormal" not in done.stderr


def test_files_of_counts(tmp_path: Path) -> None:
    names = b"MPI_A\nMPI_B\nserved\nno data\n"
    head = b"collc counts 1\n\0" + b"".join(n.to_bytes(4, "little", signed=True) for n in (1, 3, 2, 2))
    data = head + b"".join(n.to_bytes(8, "little") for n in (5, 1, 0, 0, 0, 0, 7, 0)) + names + bytes(9)
    (tmp_path / "report").write_text("rank 0 of 3, on, last size 0\nMPI_A\tserved\t2\nprocess\tsh\tno MPI\n")
    (tmp_path / "report.host.1").write_bytes(data)
    (tmp_path / "report.host.2").write_bytes(bytes(len(data)))  # killed before its head was written
    report = gather_report(tmp_path / "report")
    assert (report.served, report.left, report.ranks, report.missing) == (14, 1, 2, (2,))
    assert report.calls["MPI_B_c", "served"] == 7 and report.processes == (("sh", "no MPI"),)
    assert "collc:   rank 2 not reported: ended abnormally\n" in report.table()
    for cut in range(len(data) - 8):
        assert read_counts(data[:cut]) is None
    for planted in (b"x" + data[1:], data[:24] + bytes(4) + data[28:], data + b"", data[:24] + b"\xff" * 4 + data[28:]):
        assert (read_counts(planted) is None) == (planted != data)
    unknown = attrs.evolve(read_counts(data), rank=-1)
    assert "a rank ended abnormally" in read_report("rank 0 of 9, on, last size 0", [unknown]).table()


# ---- nothing reported


def test_the_reason_of_silence(on_mpich: Launched, on_openmpi: Launched) -> None:
    for program in (on_mpich, on_openmpi):
        unused, past, none = (program.end(how) for how in ("no-init", "past", "none"))
        assert "`program` loaded an MPI but did not call MPI_Init" in unused.stderr and "C0082" in unused.stderr
        assert "`program` called MPI past the library: by PMPI_ names" in past.stderr
        assert "C0083" in none.stderr and "the program called no blocking collective" in none.stderr
        assert "nonblocking and persistent calls are served with --nonblocking" in none.stderr
    # Whatever ends, ends: the library looks for an MPI in processes without one.
    for command in (["sleep", 0.5], ["sh", "-c", "sleep 0.5; true"]):
        assert "`sleep` uses no MPI" in on_mpich("mpiexec", "-n", 2, *command).stderr


def test_srun_loads_the_library_itself() -> None:
    own = [("srun", "no MPI")]
    for words, environ, shown in (
        (["srun", "--export=NONE", "app"], {}, "`srun --export=NONE`"),
        (["/usr/bin/srun", "-n", "2", "--export", "PATH,HOME", "app"], {}, "`srun --export=PATH,HOME`"),
        (["srun", "app"], {"SLURM_EXPORT_ENV": "NONE"}, "`SLURM_EXPORT_ENV=NONE`"),
    ):
        [reason] = reasons(own, words, environ)
        assert reason == f"no rank loaded the library: {shown} does not pass on LD_PRELOAD, `--export=ALL` does"
    for words, environ in (
        (["srun", "--export=ALL", "app"], {"SRUN_EXPORT_ENV": "NONE"}), (["srun", "--export=LD_PRELOAD,A", "app"], {}),
        (["srun", "app"], {}),
    ):  # fmt: skip
        assert "no process loaded the library" in reasons(own, words, environ)[0]
    assert reasons([*own, ("app", "no MPI")], ["srun", "--export=NONE", "app"], {}) == ["`app` uses no MPI"]
    assert reasons([("app", "no MPI")], ["app"], {}) == ["`app` uses no MPI"]


def test_programs_that_load_nothing(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    (tmp_path / "a.c").write_text('const char kept[] = "\\0MPI_Init";\nint main(void) { return kept[0]; }\n')
    plain, fixed = tmp_path / "plain", tmp_path / "fixed"
    subprocess.run([compiler, str(tmp_path / "a.c"), "-o", str(plain)], check=True)
    assert reasons([("plain", "no MPI")], ["mpiexec", str(plain)], {}) == [
        "`plain` links its MPI statically, which no library can be loaded before"
    ]
    assert "no process loaded the library" in reasons([], ["mpiexec", str(plain), "4"], {})[0]
    os.chmod(plain, 0o4755)
    assert reasons([], ["mpiexec", str(plain)], {}) == ["`plain` is setuid or setgid, so the system ignores LD_PRELOAD"]
    if subprocess.run([compiler, "-static", str(tmp_path / "a.c"), "-o", str(fixed)], check=False).returncode:
        pytest.skip("no static C library here")
    assert reasons([], ["mpiexec", str(fixed)], {}) == ["`fixed` is linked statically, so it loads no library"]
