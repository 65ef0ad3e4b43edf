"""``collc launch``: unmodified programs on compiled collectives."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND, Ran, gone
from places import the

from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.diagnostic import CollcError
from collc.tools.launching import Plan, cache_folder, kind_of, preloaded, run_command

pytestmark = pytest.mark.needs("mpi")

PROGRAM = the("interposed_program.c")

SPEC = """param n = 4;
topology net = biring(n);
collective sums = allreduce on net;
schedule sums using bfb;
collective parts = allgather on net;
schedule parts using bfb;
"""

Collc = Callable[..., Ran]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "net.coll").write_text(SPEC)
    return tmp_path / "net.coll"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def program(mpich: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "program"
    compile_c(mpich, [PROGRAM], path)
    return path


def launch(mpi: Mpi, cache: Path, *arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own: it hands its streams on."""
    environ = {**mpi.environment(os.environ), "PATH": f"{mpi.folder}:{os.environ['PATH']}"}
    return subprocess.run(
        [COMMAND, "launch", *map(str, arguments[:1]), f"--cache={cache}", *map(str, arguments[1:])], check=False,
        capture_output=True, text=True, env={**environ, **more.pop("env", {})}, timeout=120, **more,  # type: ignore
    )  # fmt: skip


# ---- MPI programs


def test_a_program_is_served(mpich: Mpi, program: Path, spec: Path, cache: Path) -> None:
    done = launch(mpich, cache, spec, "--stats", "--", "mpiexec", "-n", 4, program, 40, 2)
    assert (done.returncode, "calls 40\nwrong 0\n" in done.stdout) == (0, True)
    assert re.search(r"collc: \d\d+ calls served, \d+ left to the MPI \(sums over 4 ranks\)", done.stderr)
    assert "warning" not in done.stderr
    assert re.search(r"MPI_Allreduce(_c)?: [1-9]\d* served", done.stderr)
    # Built once: the same library again.
    (built,) = cache.glob("interpose/*/collc_net.mpich.so")
    before = built.stat().st_mtime_ns
    again = launch(mpich, cache, spec, "--stats", "-v", "--", "mpiexec", "-n", 4, program, 40, 2)
    assert "collc: took what was compiled from the cache" in again.stderr and "calls 40\nwrong 0\n" in again.stdout
    assert re.search(r"collc: \d\d+ calls served, \d+ left to the MPI \(sums over 4 ranks\)", again.stderr)
    assert [path.stat().st_mtime_ns for path in cache.glob("interpose/*/collc_net.mpich.so")] == [before]
    assert built.parent.stat().st_mode & 0o077 == 0


def test_several_numbers_of_ranks(mpich: Mpi, program: Path, spec: Path, cache: Path) -> None:
    done = launch(mpich, cache, spec, "--each", "n=2,3", "--stats", "--", "mpiexec", "-n", 2, program, 30, 2)
    assert done.returncode == 0 and "wrong 0" in done.stdout
    assert re.search(r"collc: [1-9]\d* calls served", done.stderr)


def test_under_open_mpi(openmpi: Mpi, spec: Path, cache: Path, tmp_path: Path) -> None:
    compile_c(openmpi, [PROGRAM], tmp_path / "program")
    words = ["mpiexec", "-n", 2, tmp_path / "program", 5, 2, ":", "-n", 2, tmp_path / "program", 5, 2]
    done = launch(openmpi, cache, spec, "--stats", "--", *words)
    assert done.returncode == 0 and "wrong 0" in done.stdout
    assert "(sums over 4 ranks)" in done.stderr and re.search(r"collc: [1-9]\d* calls served", done.stderr)
    assert list(cache.glob("interpose/*/collc_net.openmpi.so"))
    again = launch(openmpi, cache, spec, "--stats", "-v", "--", *words)
    assert "collc: took what was compiled from the cache" in again.stderr and "wrong 0" in again.stdout
    assert "(sums over 4 ranks)" in again.stderr and re.search(r"collc: [1-9]\d* calls served", again.stderr)


def test_nothing_served_is_said(mpich: Mpi, program: Path, spec: Path, cache: Path) -> None:
    done = launch(mpich, cache, spec, "--", "mpiexec", "-n", 3, program, 10, 2)
    assert done.returncode == 0 and "wrong 0" in done.stdout
    assert "no collective call used a compiled schedule; the MPI library executed all of them [C0083]" in done.stderr
    assert re.search(r"\d+ calls: communicator of another size \([123, ]+ ranks\): \d+ MPI_", done.stderr)
    assert "the library serves allreduce of 4 ranks, any size" in done.stderr
    # Not `true`: MPICH's launcher may write to a program that has ended, and be ended by that signal itself.
    silent = launch(mpich, cache, spec, "--", "mpiexec", "-n", 2, "sleep", 0.5)
    assert silent.returncode == 0 and "the preloaded library reported nothing [C0082]" in silent.stderr
    fatal = launch(mpich, cache, spec, "-Werror", "--", "mpiexec", "-n", 2, "sleep", 0.5)
    assert fatal.returncode == 1


def test_the_other_mpi_is_refused(mpich: Mpi, openmpi: Mpi, program: Path, spec: Path, cache: Path) -> None:
    words = ["env", f"PATH={mpich.folder}:/usr/bin:/bin", "mpiexec", "-n", 2, program, 5, 2]
    done = launch(mpich, cache, spec, f"--mpi={openmpi.folder}", "--", *words, env=openmpi.environment({}))
    assert done.returncode == 0 and "wrong 0" in done.stdout
    assert "this library is for Open MPI, the program runs on MPICH" in done.stderr
    assert "the library refused the program's MPI [C0087]" in done.stderr


def test_a_rank_that_dies(mpich: Mpi, program: Path, spec: Path, cache: Path) -> None:
    done = launch(mpich, cache, spec, "--", "mpiexec", "-n", 4, program, 40, 2, 20)
    assert done.returncode not in (0, 70) and "`mpiexec` " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_status_is_the_programs(mpich: Mpi, spec: Path, cache: Path) -> None:
    done = launch(mpich, cache, spec, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert "err\n" in done.stderr and "collc: `sh` ended with status 7" in done.stderr
    assert launch(mpich, cache, spec, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_input_goes_to_the_program(mpich: Mpi, spec: Path, cache: Path) -> None:
    assert launch(mpich, cache, spec, "-w", "--", "cat", input="told").stdout == "told"


# ---- ends


def test_a_time_limit(mpich: Mpi, spec: Path, cache: Path) -> None:
    begin = time.monotonic()
    done = launch(mpich, cache, spec, "--timeout", 1, "--", "mpiexec", "-n", 2, "sleep", 60)
    assert done.returncode == 124 and "ran longer than the limit of 1 s, so collc ended it [C0086]" in done.stderr
    assert time.monotonic() - begin < 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(number: signal.Signals, mpich: Mpi, spec: Path, cache: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(
        f"trap 'echo heard > {tmp_path}/heard; exit 3' INT TERM\necho ready\nwhile :; do sleep 0.1; done\n"
    )
    process = subprocess.Popen(
        [COMMAND, "launch", str(spec), f"--cache={cache}", "--", "sh", str(script)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and "Traceback" not in err
    assert (tmp_path / "heard").read_text() == "heard\n"


def test_what_ignores_signals_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.tools.launching.GRACE_SECONDS", 0.2)
    monkeypatch.setattr("sys.stdin", None)
    plan = Plan(("sh", "-c", f"trap '' TERM; sleep 30 & echo $! > {tmp_path}/child; wait; sleep 30"))
    with pytest.raises(CollcError, match="C0086") as caught:
        run_command(plan, os.environ, 3.0)
    assert caught.value.exit_status == 124
    child = int((tmp_path / "child").read_text())
    assert gone(child)


# ---- mistakes


def test_usage(collc: Collc, spec: Path) -> None:
    assert collc("launch", str(spec)).status == 2
    assert "needs a command after `--`" in collc("launch", str(spec), "--").err
    assert "needs FILE..." in collc("launch", "--", "true").err
    both = collc("launch", str(spec), "-t", "mpi-c", "--runtime", "rccl", "--", "true")
    assert both.status == 2 and "leave out one of them" in both.err
    other = collc("launch", str(spec), "-t", "ir", "--", "true")
    assert other.status == 2 and "C0001" in other.err
    assert collc("launch", str(spec), "--each", "n", "--", "true").status == 2


def test_programs_that_are_not_there(collc: Collc, spec: Path, tmp_path: Path) -> None:
    missing = collc("launch", str(spec), "--", "mpiexec-of-nobody", "-n", "4", "app")
    assert missing.status == 1 and "C0080" in missing.err
    (tmp_path / "mpirun").write_text("#!/bin/sh\n")
    (tmp_path / "mpirun").chmod(0o755)
    bare = collc("launch", str(spec), "--", str(tmp_path / "mpirun"), "-n", "4", "app")
    assert bare.status == 1 and "C0081" in bare.err
    nowhere = collc("launch", str(spec), f"--mpi={tmp_path}/none", "--", "mpiexec", "-n", "4", "app")
    assert nowhere.status == 1 and "C0701" in nowhere.err
    assert collc("launch", str(tmp_path / "none.coll"), "--", "true").status == 1


def test_two_collectives_for_the_same_calls(collc: Collc, spec: Path) -> None:
    twice = collc("launch", str(spec), str(spec), "-n", "--", "true")
    assert twice.status == 1 and "C0730" in twice.err


LEFT = SPEC + "collective swap = alltoall on net;\nschedule swap using swing;\n"


def test_what_cannot_be_scheduled_is_left_to_the_mpi(program: Path, spec: Path, mpich: Mpi, cache: Path) -> None:
    spec.write_text(LEFT)
    ran = launch(mpich, cache, spec, "--stats", "--", "mpiexec", "-n", 4, program, 20, 3)
    assert ran.returncode == 0 and "wrong 0" in ran.stdout, ran.stderr
    assert ran.stderr.count("[C0089]") == 1
    assert "warning: `swap` is left to the MPI: swing cannot schedule `alltoall` [C0591] [C0089]" in ran.stderr
    assert re.search(r"MPI_Allreduce(_c)?: [1-9]\d* served", ran.stderr)
    assert not re.search(r"MPI_Alltoall(_c)?: [1-9]\d* served", ran.stderr)


def test_strict_refuses_what_cannot_be_scheduled(collc: Collc, spec: Path) -> None:
    spec.write_text(LEFT)
    for more in ("--strict", "-Werror"):
        refused = collc("launch", str(spec), more, "-n", "--", "true")
        assert (
            refused.status in (1, 3) and "swing cannot schedule `alltoall` [C0591]" in refused.err and not refused.out
        )


MORE = LEFT + "collective more = allreduce on biring(8);\n"


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("topology net = biring(4);\ncollective swap = alltoall on net;\nschedule swap using swing;\n", "C0591", 3),
        (MORE + "schedule more using bfb { pahse: 7 };\n", "C0009", 3),
        (MORE + "schedule more using swimg;\n", "C0124", 1),
        (LEFT + "collective again = allreduce on net;\n", "C0730", 1),
    ],
    ids=["nothing is left to serve", "an unknown option", "an unknown scheduler", "two for the same calls"],
)
def test_mistakes_are_not_left_to_the_mpi(text: str, code: str, status: int, collc: Collc, spec: Path) -> None:
    spec.write_text(text)
    refused = collc("launch", str(spec), "-n", "--", "true")
    assert refused.status == status and f"[{code}]" in refused.err, refused.err


def test_torchrun_gets_the_collectives_that_can_be_scheduled(collc: Collc, spec: Path) -> None:
    spec.write_text(LEFT)
    shown = collc("launch", str(spec), "-n", "--", "torchrun", "train.py")
    assert "`swap` is left to gloo" in shown.err
    given = dict(word.split("=", 1) for word in shlex.split(shown.out)[1:-2])
    assert json.loads(given["COLLC_COLLECTIVES"]) == ["sums", "parts"]


def test_sums_that_differ_are_said(collc: Collc, spec: Path, mpich: Mpi, cache: Path) -> None:
    spec.write_text(
        "collective sums = allreduce on torus(16);\nschedule sums using swing { variant: latency, identical: false };\n"
    )
    shown = collc("launch", str(spec), f"--mpi={mpich.folder}", f"--cache={cache}", "-n", "--", "true")
    assert shown.status == 0 and "C0084" in shown.err


# ---- the cache


def test_caches_that_others_can_write_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(CollcError, match="C0085"), cache_folder(str(tmp_path / "open"), {}):
        pass
    with pytest.raises(CollcError, match="C0085"), cache_folder(str(tmp_path / "a b"), {}):
        pass
    (tmp_path / "open" / "collc").mkdir()
    (tmp_path / "open" / "collc").chmod(0o777)
    with cache_folder(None, {"XDG_CACHE_HOME": str(tmp_path / "open")}) as instead:
        assert instead.is_dir() and tmp_path not in instead.parents
    assert not instead.exists()
    with cache_folder(None, {"XDG_CACHE_HOME": str(tmp_path / "home")}) as folder:
        assert folder == tmp_path / "home" / "collc" and folder.stat().st_mode & 0o777 == 0o700
    with cache_folder(None, {"HOME": str(tmp_path)}) as folder:
        assert folder == tmp_path / ".cache" / "collc"


# ---- what is run


def dry(collc: Collc, *arguments: object) -> list[str]:
    shown = collc("launch", *map(str, arguments))
    assert shown.status == 0, shown.err
    return shlex.split(shown.out)


def test_dry_runs_print_the_command(collc: Collc, spec: Path, mpich: Mpi, openmpi: Mpi, tmp_path: Path) -> None:
    common = [spec, f"--cache={tmp_path / 'cache'}", "-n"]
    words = dry(collc, *common, "--", mpich.mpiexec, "-n", 4, "app", "-v")
    assert words[:3] == [str(mpich.mpiexec), "-genv", "LD_PRELOAD"] and words[4:] == ["-n", "4", "app", "-v"]
    assert words[3].endswith("collc_net.mpich.so") and not Path(words[3]).exists()
    words = dry(collc, *common, "--", openmpi.mpiexec, "-n", 4, "app", ":", "-n", 1, "app")
    assert words[1] == "-x" and words[2].startswith("LD_PRELOAD=") and words.count(words[2]) == 2
    words = dry(collc, *common, f"--mpi={mpich.folder}", "--", "srun", "-n", 4, "app")
    assert words[0] == "env" and words[1].startswith("LD_PRELOAD=") and words[2:] == ["srun", "-n", "4", "app"]


def test_what_was_preloaded_stays(mpich: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/a.so /b.so")
    plan = preloaded(["mpiexec", "app"], mpich, Path("/c.so"), {"X": "1"})
    assert plan.command == ("mpiexec", "-genv", "LD_PRELOAD", "/c.so:/a.so:/b.so", "-genv", "X", "1", "app")


def test_torchrun_gets_the_specification(collc: Collc, spec: Path) -> None:
    words = dry(collc, spec, "-D", "n=8", "--stats", "-n", "--", "torchrun", "--nproc-per-node", 8, "train.py")
    given = dict(word.split("=", 1) for word in words[1 : words.index("torchrun")])
    assert given["COLLC_SPEC"] == str(spec) and json.loads(given["COLLC_DEFINES"]) == {"n": "8"}
    assert given["COLLC_TORCH_REPLACE"] == "gloo" and given["COLLC_STATS"] == "1"
    assert collc("launch", str(spec), str(spec), "-n", "--", "torchrun", "train.py").status == 2
    assert "C0088" in collc("launch", str(spec), "--each", "n=2,4", "-n", "--", "torchrun", "train.py").err
    assert kind_of([sys.executable, "-m", "torch.distributed.run", "train.py"]) == "torch"


def test_msccl_runtimes_get_files(collc: Collc, spec: Path, tmp_path: Path) -> None:
    words = dry(collc, spec, f"--cache={tmp_path}", "--runtime", "rccl", "-n", "--", "torchrun", "train.py")
    given = dict(word.split("=", 1) for word in words[1 : words.index("torchrun")])
    found = sorted(path.name for path in Path(given["MSCCL_ALGO_DIR"]).iterdir())
    assert found == ["parts.xml", "sums.xml"] and given["RCCL_MSCCL_ENABLE"] == "1"
    words = dry(collc, spec, f"--cache={tmp_path}", "-t", "msccl-xml{runtime=msccl}", "-n", "--", "app")
    given = dict(word.split("=", 1) for word in words[1:-1])
    assert given["MSCCL_XML_FILES"].count(".xml") == 2
    done = collc("launch", str(spec), f"--cache={tmp_path}", "--runtime", "nobody", "-n", "--", "app")
    assert done.status == 2
