"""srun of a Slurm of one host, which the tests start: ranks of both MPIs load the library and are served."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import COMMAND
from places import the

from collc.backends.mpi_c.toolchain import Mpi, compile_c

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sbcast", "salloc", "scontrol")
SPEC = "topology net = biring(4);\ncollective sums = allreduce on net;\ncollective parts = allgather on net;\n"

_CONFIGURATION = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES
"""

pytestmark = [pytest.mark.slow, pytest.mark.needs("mpi")]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment for commands of a running Slurm with eight processors."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        pytest.skip(
            f"Slurm is not installed: {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge)"
        )
    if os.geteuid() != 0:
        pytest.skip("slurmd runs as root")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    ports = dict(zip(("controller", "daemon"), _free_ports(2), strict=True))
    text = _CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder, **ports)
    (folder / "slurm.conf").write_text(text)
    environ = {
        **os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        "PMIX_MCA_psec": "native",
    }  # fmt: skip
    munge = ["--foreground", "--force", f"--key-file={folder}/key", f"--socket={folder}/munge.socket"]
    munge += [f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
    commands = [["munged", *munge], ["slurmctld", "-D"], ["slurmd", "-D"]]
    with open(folder / "daemons.log", "w") as log:
        daemons = [subprocess.Popen(command, env=environ, stdout=log, stderr=log) for command in commands]
    try:
        _wait_until_it_runs(environ, folder)
        yield environ
    finally:
        for daemon in daemons[::-1]:
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _wait_until_it_runs(environ: dict[str, str], folder: Path) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        nodes = subprocess.run(["scontrol", "show", "node"], env=environ, capture_output=True, text=True, check=False)
        if "State=IDLE" in nodes.stdout:
            break
        time.sleep(0.2)
    with contextlib.suppress(subprocess.TimeoutExpired):
        tried = subprocess.run(["srun", "-n", "4", "true"], env=environ, capture_output=True, check=False, timeout=60)
        if tried.returncode == 0:
            return
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log"))
    pytest.skip(f"Slurm does not start here: {logs}")


@pytest.fixture(params=["mpich", "openmpi"])
def launched(request: pytest.FixtureRequest, slurm: dict[str, str], tmp_path: Path) -> tuple[Mpi, list[str], list[str]]:
    """Return an MPI, a command line up to srun's options, and the rest of it."""
    mpi: Mpi = request.getfixturevalue(request.param)
    kind = {"mpich": "pmi2", "openmpi": "pmix"}[request.param]
    listed = subprocess.run(["srun", f"--mpi={kind}", "true"], env=slurm, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"this Slurm has no {kind} (apt-get install libpmix-dev): {listed.stderr}")
    compile_c(mpi, [the("interposed_program.c")], tmp_path / "program")
    (tmp_path / "net.coll").write_text(SPEC)
    words = [str(COMMAND), "launch", str(tmp_path / "net.coll"), f"--cache={tmp_path / 'cache'}", "--stats"]
    return (
        mpi,
        [*words, f"--mpi={mpi.folder}", "--timeout", "60", "--", "srun"],
        [f"--mpi={kind}", "-n", "4", str(tmp_path / "program"), "10", "2"],
    )


def run(command: list[str], mpi: Mpi, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["timeout", "100", *command], check=False, capture_output=True, text=True, env=mpi.environment(environ)
    )


def test_srun_passes_the_library_on(launched: tuple[Mpi, list[str], list[str]], slurm: dict[str, str]) -> None:
    mpi, words, rest = launched
    for exported in (["--export=ALL"], []):
        done = run([*words, *exported, *rest], mpi, slurm)
        assert done.returncode == 0 and "wrong 0" in done.stdout, done.stdout + done.stderr
        assert re.search(r"collc: [1-9]\d* calls served", done.stderr)


def test_what_srun_does_not_export_is_said(launched: tuple[Mpi, list[str], list[str]], slurm: dict[str, str]) -> None:
    mpi, words, rest = launched
    if rest[0] == "--mpi=pmix":
        return  # this Open MPI finds its libraries by variables, which are not exported either
    for exported, environ, shown in (
        (["--export=NONE"], slurm, "`srun --export=NONE`"),
        (["--export", "HOME,PATH"], slurm, "`srun --export=HOME,PATH`"),
        ([], {**slurm, "SRUN_EXPORT_ENV": "HOME"}, "`SRUN_EXPORT_ENV=HOME`"),
    ):
        done = run([*words, *exported, *rest], mpi, environ)
        assert "wrong 0" in done.stdout, done.stdout + done.stderr
        assert f"{shown} does not pass on LD_PRELOAD, `--export=ALL` does" in done.stderr


def test_a_batch_job_with_a_copied_library(
    launched: tuple[Mpi, list[str], list[str]], slurm: dict[str, str], tmp_path: Path
) -> None:
    """The commands of docs/launch.md for hosts without a shared home: build, copy, run."""
    mpi, words, rest = launched
    everywhere, out = tmp_path / "everywhere", tmp_path / "out"
    words[2:2] = ["--library-dir", str(everywhere)]
    built = run([*words[:-2], "-n", "--", "srun", "app"], mpi, slurm)
    [library] = everywhere.iterdir()
    assert f"LD_PRELOAD={library}" in built.stdout, built.stdout + built.stderr
    copy = f"sbcast --force {library} {library}"
    (tmp_path / "job").write_text(f"#!/bin/sh\n{copy} &&\nexec {' '.join([*words, '--export=ALL', *rest])}\n")
    done = run(["sbatch", "--wait", "-n", "4", f"--output={out}", str(tmp_path / "job")], mpi, slurm)
    assert done.returncode == 0 and "wrong 0" in out.read_text(), done.stderr + out.read_text()
    assert re.search(r"collc: [1-9]\d* calls served", out.read_text())
