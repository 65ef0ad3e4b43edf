"""Finding an MPI, telling whose it is, and what is said where something is missing. No MPI is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs
import pytest
from built_programs import direct, ring
from commands import gone

from collc.backends import processes
from collc.backends.mpi_c import launch as launching
from collc.backends.mpi_c import toolchain
from collc.backends.mpi_c.codes import CODES
from collc.backends.mpi_c.launch import launch
from collc.backends.mpi_c.results import Row, RunResult, counts_for, parse
from collc.backends.mpi_c.run import Cases, emit_all, run
from collc.backends.mpi_c.toolchain import Mpi, compile_c, find
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic

MPICH_SAYS = "HYDRA build details:\n    Version:                                 4.3.2\n"
OPEN_MPI_SAYS = "mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n"
OLD_OPEN_MPI_SAYS = "mpirun (Open MPI) 4.1.4\n"
INTEL_SAYS = "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260101 (id: 1)\nCopyright\n"


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + script + "\n")
    path.chmod(0o755)
    return path


def fake_mpi(folder: Path, says: str = "", runs: str = "exit 0", compiles: str = "exit 0") -> Mpi:
    program(folder, "mpicc", compiles)
    program(folder, "mpiexec", f"if [ \"$1\" = --version ]; then cat <<'END'\n{says}\nEND\nexit 0; fi\n{runs}")
    return Mpi(folder)


def mistake(caught: pytest.ExceptionInfo[CollcError]) -> Diagnostic:
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in CODES
    assert not diagnostic.message.endswith(".") and diagnostic.message[0] in "`" + diagnostic.message[0].lower()
    return diagnostic


# ---- finding


@pytest.mark.parametrize(
    ("says", "vendor", "version"),
    [
        (MPICH_SAYS, "MPICH", "4.3.2"), (OPEN_MPI_SAYS, "Open MPI", "5.0.11"), (OLD_OPEN_MPI_SAYS, "Open MPI", "4.1.4"),
        (INTEL_SAYS, "Intel MPI", "2021.18"), ("something else", "MPI", ""),
    ],
)  # fmt: skip
def test_the_launcher_says_whose_it_is(says: str, vendor: str, version: str, tmp_path: Path) -> None:
    fake_mpi(tmp_path / "bin", says)
    mpi = find(tmp_path)
    assert (mpi.vendor, mpi.version, mpi.folder) == (vendor, version, tmp_path / "bin")
    assert str(mpi) == f"{vendor} {version}".strip()


@pytest.mark.parametrize("name", ["", "bin", "bin/mpicc"])
def test_a_prefix_may_be_the_installation_its_folder_or_its_compiler(name: str, tmp_path: Path) -> None:
    fake_mpi(tmp_path / "bin", MPICH_SAYS)
    assert find(tmp_path / name).folder == tmp_path / "bin"


def test_the_first_folder_with_both_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "prefix" / "bin" / "python"))
    fake_mpi(tmp_path / "second", OPEN_MPI_SAYS)
    program(tmp_path / "first", "mpicc", "exit 0")
    path = {"PATH": f"{tmp_path / 'first'}:/nowhere::{tmp_path / 'second'}:/usr/bin:/bin"}
    assert find(environ=path).folder == tmp_path / "second"
    fake_mpi(tmp_path / "prefix" / "bin", MPICH_SAYS)
    assert find(environ=path).folder == tmp_path / "prefix" / "bin"


def test_a_missing_mpi_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path / "half", "mpiexec", "exit 0")
    with pytest.raises(CollcError) as caught:
        find(environ={"PATH": str(tmp_path / "half")})
    found = mistake(caught)
    assert found.code == "C0701" and "`mpicc`" in found.message and "pip install 'collc[mpi]'" in (found.hint or "")
    assert found.notes == (f"{tmp_path / 'half'} has only mpiexec",)
    with pytest.raises(CollcError) as caught:
        find(tmp_path / "elsewhere")
    assert str(tmp_path / "elsewhere") in mistake(caught).message


def test_files_that_cannot_run_are_no_mpi(tmp_path: Path) -> None:
    for name in ("mpicc", "mpiexec"):
        program(tmp_path, name, "exit 0").chmod(0o644)
    with pytest.raises(CollcError) as caught:
        find(tmp_path)
    assert mistake(caught).code == "C0701"
    for name in ("mpicc", "mpiexec"):
        (tmp_path / name).write_text("no script, no binary")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(CollcError) as caught:
        find(tmp_path)
    assert "does not run" in mistake(caught).message


def test_the_environment_allows_more_ranks_than_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Mpi(tmp_path, "MPICH").environment({})["MPIR_CVAR_DEVICE_COLLECTIVES"] == "none"
    assert Mpi(tmp_path / "bin", "Intel MPI").environment({})["I_MPI_ROOT"] == str(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    as_root = Mpi(tmp_path, "Open MPI").environment({"PATH": "/bin"})
    assert as_root["PATH"] == "/bin" and as_root["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"
    assert as_root["OMPI_ALLOW_RUN_AS_ROOT"] == as_root["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in Mpi(tmp_path, "Open MPI").environment({})
    assert Mpi(tmp_path).environment({"A": "b"}) == {"A": "b"}


def test_what_the_user_set_stays() -> None:
    set_by_user = {"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}
    assert Mpi(Path("/x"), "MPICH").environment(set_by_user)["MPIR_CVAR_DEVICE_COLLECTIVES"] == "all"


# ---- compiling


@pytest.mark.parametrize(
    ("script", "code", "part"),
    [
        ("echo 'mpicc: line 1: gcc: command not found' >&2; exit 127", "C0702", "found no C compiler"),
        (
            "echo '-----' >&2; echo 'The wrapper was unable to find the specified compiler' >&2; exit 1",
            "C0702",
            "no C",
        ),
        ("echo 'x.c:1:1: error: nonsense' >&2; exit 1", "C0703", "refused"),
    ],
)
def test_what_a_compiler_says(script: str, code: str, part: str, tmp_path: Path) -> None:
    mpi = fake_mpi(tmp_path, compiles=script)
    with pytest.raises(CollcError) as caught:
        compile_c(mpi, [tmp_path / "x.c"], tmp_path / "x")
    found = mistake(caught)
    assert found.code == code and part in found.message and len(found.notes) == 1


def test_a_wrapper_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(CollcError) as caught:
        compile_c(Mpi(tmp_path), [], tmp_path / "x")
    assert mistake(caught).code == "C0702"


# ---- launching


def test_output_is_returned_and_the_command_line_is_plain(tmp_path: Path) -> None:
    mpi = fake_mpi(tmp_path, runs='printf "%s;" "$@"')
    assert launch(mpi, 3, ["./x", "a b"], 10, tmp_path) == "-n;3;./x;a b;"


def test_a_launcher_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    mpi = fake_mpi(tmp_path, runs="echo out; echo '=====' >&2; echo 'rank 1 died' >&2; exit 9")
    with pytest.raises(CollcError) as caught:
        launch(mpi, 2, ["./x"], 10, tmp_path)
    found = mistake(caught)
    assert found.code == "C0706" and "2 ranks" in found.message and "status 9" in found.message
    assert found.notes == ("rank 1 died", "out")


def test_a_killed_launcher(tmp_path: Path) -> None:
    with pytest.raises(CollcError) as caught:
        launch(fake_mpi(tmp_path, runs="kill -9 $$"), 2, ["./x"], 10, tmp_path)
    assert "signal 9" in mistake(caught).message


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_stopped_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_GRACE_SECONDS", 0.5)
    # A child in the background, and a launcher that does not heed the first request to end.
    mpi = fake_mpi(tmp_path, runs="trap '' TERM; sleep 600 & echo $! > child; echo collc-row; wait; sleep 600")
    started = time.monotonic()
    with pytest.raises(CollcError) as caught:
        launch(mpi, 2, ["./x"], 3.0, tmp_path)
    assert time.monotonic() - started < 60
    found = mistake(caught)
    assert found.code == "C0707" and "3 s" in found.message and found.notes == ("0 cases had finished",)
    assert gone(int((tmp_path / "child").read_text()))


@pytest.mark.slow
def test_a_compiler_that_is_killed_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ignores the request to end, so it is killed; its temporary file was there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stubborn = 'trap \'\' TERM; touch "${TMPDIR:?}/cc1.o"; ls "$TMPDIR" > listed; sleep 600'
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run(["sh", "-c", stubborn], 3.0, cwd=tmp_path)
    assert (tmp_path / "listed").read_text() == "cc1.o\n"
    assert [path.name for path in tmp_path.iterdir()] == ["listed"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = fake_mpi(tmp_path, runs="sleep 600 & echo $! > child; echo begun > begun; wait")
    wait = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout != 7.0:
            return wait(process, timeout)
        for _ in range(200):
            if (tmp_path / "begun").exists():
                break
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(mpi, 2, ["./x"], 7.0, tmp_path)
    assert gone(int((tmp_path / "child").read_text()))


# ---- what to run, and what was found


def test_wrong_cases_are_refused() -> None:
    for wrong, part in [
        ({"dtypes": ("int23",)}, "`int23`"), ({"ops": ("avg",)}, "`avg`"), ({"counts": (-1,)}, "found -1"),
        ({"counts": (2**31,)}, "found 2147483648"), ({"repeats": 0}, "found 0"), ({"counts": ()}, "no count"),
        ({"dtypes": ()}, "no element type"), ({"in_place": ()}, "no placement"),
    ]:  # fmt: skip
        with pytest.raises(CollcError) as caught:
            Cases(**{"counts": (1,), **wrong})  # type: ignore[arg-type]
        found = mistake(caught)
        assert found.code == "C0709" and part in found.message
    assert caught.value.exit_status == 2


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(CollcError) as caught:
        Cases((1,), dtypes=("float3",))
    assert mistake(caught).hint == "did you mean `float32`?"


def test_runs_without_a_legal_case_are_refused() -> None:
    for programs, options in [
        ([], {}), ([ring("allreduce", 2)], {"dtypes": ["strided"]}), ([ring("allreduce", 2)], {"ops": []}),
        ([ring("allgather", 2), ring("allgather", 3)], {}), ([ring("allgather", 2)] * 257, {}),
    ]:  # fmt: skip
        with pytest.raises(CollcError) as caught:
            run(programs, **options)  # type: ignore[arg-type]
        assert mistake(caught).code == "C0709"


def test_programs_of_one_name_get_functions_of_their_own() -> None:
    programs = [attrs.evolve(direct(kind, 2), name="x y") for kind in ("allgather", "alltoall", "reduce")]
    sources = emit_all([*programs, attrs.evolve(programs[0], name="algorithms")])
    assert list(sources)[:3] == ["x_y", "x_y_2", "x_y_3"]
    assert len(sources) == 4 and "algorithms" not in sources  # the driver's own
    for name, (_, artifact) in sources.items():
        assert f"int {name}(" in artifact.text


def test_sizes_in_bytes_are_those_of_the_whole_vector() -> None:
    assert counts_for(Collective("alltoall", 4), [0, 15, 64, 65, 1 << 20], "float64") == [0, 2, 32768]
    assert counts_for(Collective("broadcast", 4, 0), [64], "int32") == [16]


OUTPUT = """noise of the launcher
collc-row name=f count=10 dtype=float32 op=sum in_place=0 times=0.000002000,0.000001000,0.000004000 builtin= detail=
collc-row name=f count=10 dtype=int32 op=max in_place=1 times= builtin= detail=rank 1, element 3: found 1, expected 2
collc-end cases=2
"""


def test_rows_are_read() -> None:
    result = parse(OUTPUT, Mpi(Path("/x"), "MPICH", "5"), {"f": Collective("allgather", 4)})
    good, bad = result.rows
    assert (good.count, good.bytes, good.times, good.median, good.least) == (10, 160, (2e-6, 1e-6, 4e-6), 2e-6, 1e-6)
    assert good.correct and good.algbw == pytest.approx(80e6) and good.builtin_median is None
    assert good.as_dict()["time_us"] == 2.0 and good.as_dict()["algbw_GBps"] == pytest.approx(0.08)
    assert not bad.correct and bad.in_place and bad.median is None and bad.algbw is None
    assert not result.ok
    with pytest.raises(CollcError) as caught:
        result.require()
    found = mistake(caught)
    assert found.code == "C0708" and "element 3" in found.message and "in place" in found.message
    lines = result.table().splitlines()
    assert lines[0] == "4 ranks on MPICH 5, times in us" and len(lines) == 4
    assert lines[2].split() == ["160", "10", "float32", "sum", "out", "2.0", "1.0", "1.5", "3.0", "0.06", "ok"]
    assert lines[3].endswith("rank 1, element 3: found 1, expected 2")


def test_the_mpis_own_times_have_a_column_where_there_are_any() -> None:
    row = Row("f", "allreduce", 2, 1, 4, "int32", "sum", False, (2e-6,), (3e-6,))
    assert row.ratio == pytest.approx(1.5)
    assert "builtin" in RunResult(Mpi(Path("/x")), 2, (row,), "C0708").table()
    assert "builtin" not in RunResult(Mpi(Path("/x")), 2, (attrs.evolve(row, builtin_times=()),), "C0708").table()


def test_output_that_ends_early_is_no_result() -> None:
    for output in ("", OUTPUT.replace("collc-end cases=2\n", ""), OUTPUT.replace("cases=2", "cases=3")):
        with pytest.raises(CollcError) as caught:
            parse(output, Mpi(Path("/x")), {"f": Collective("allgather", 4)})
        assert mistake(caught).code == "C0706"


def test_every_code_is_explained() -> None:
    folder = Path(toolchain.__file__).parent
    used = {word for path in folder.glob("*.py") for word in path.read_text().split('"') if word.startswith("C07")}
    assert {word for word in used if len(word) == 5} == set(CODES)
    for code, text in CODES.items():
        title, blank, *rest = text.split("\n")
        assert len(code) == 5 and title and not blank and rest, code


def test_the_machine_has_what_the_fake_scripts_need() -> None:
    assert shutil.which("sh") and shutil.which("sleep")
