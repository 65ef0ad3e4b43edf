"""Launchers: hosts that do not share their home, Intel MPI's mpiexec, and torchrun that restarts its workers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND, Ran
from places import CACHE, the
from torch_runs import Torch, torch

from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.testbed.available import obstacle, unsharing

__all__ = ["torch"]

Collc = Callable[..., Ran]

SPEC = "topology net = biring(4);\ncollective sums = allreduce on net;\ncollective parts = allgather on net;\n"
#: Intel's runtime: `pip install --no-deps --prefix .cache/impi-rt-2021.18.1 impi-rt==2021.18.1`
INTEL = CACHE / "impi-rt-2021.18.1"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "net.coll").write_text(SPEC)
    return tmp_path / "net.coll"


def run(command: list[str], mpi: Mpi, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {**mpi.environment(os.environ), **more}
    return subprocess.run(
        ["timeout", "100", *command], check=False, capture_output=True, text=True, env=environ, timeout=120
    )


# ---- hosts

#: called like ssh: a host is a network namespace of its own, and its home and cache are empty
_SSH = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/$host unshare --mount --uts sh -c "mount -t tmpfs none {home}; hostname $host; $*"
"""
_HOSTS = """set -e
mount -t tmpfs none /run; mkdir /run/netns; ip link set lo up
ip link add middle type bridge; ip addr add 10.98.0.254/24 dev middle; ip link set middle up
for number in 1 2; do
  ip netns add host$number; ip link add to$number type veth peer name net0 netns host$number
  ip link set to$number master middle up; ip -n host$number addr add 10.98.0.$number/24 dev net0
  ip -n host$number link set net0 up; ip -n host$number link set lo up
  echo "10.98.0.$number host$number" >> /run/hosts
done
echo "127.0.0.1 localhost" >> /run/hosts; mount --bind /run/hosts /etc/hosts
"""


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("shipped", [False, True])
def test_hosts_that_share_no_home(shipped: bool, spec: Path, mpich: Mpi, tmp_path: Path) -> None:
    """Two hosts do not see the cache: the library is not there, and with --library-dir it is."""
    if os.geteuid() != 0 or (why := obstacle()):
        pytest.skip(f"hosts are network namespaces, made by root: {'not root' if os.geteuid() else why}")
    home, everywhere = tmp_path / "home", tmp_path / "everywhere"
    home.mkdir()
    everywhere.mkdir(mode=0o700)
    compile_c(mpich, [the("interposed_program.c")], tmp_path / "program")
    (tmp_path / "ssh").write_text(_SSH.format(home=home))
    (tmp_path / "ssh").chmod(0o755)
    words = [
        str(COMMAND),
        "launch",
        str(spec),
        f"--cache={home}",
        *([f"--library-dir={everywhere}"] if shipped else []),
    ]
    words += ["--timeout", "60", "--", str(mpich.mpiexec), "-hosts", "host1,host2", "-launcher", "ssh"]
    words += ["-launcher-exec", str(tmp_path / "ssh"), "-localhost", "10.98.0.254", "-ppn", "2", "-n", "4"]
    words += ["-genv", "COLLC_STATS", "1", str(tmp_path / "program"), "10", "2"]
    script = f"{_HOSTS}exec {shlex.join(words)}"
    settings = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "net0"}
    done = run([*unsharing(), "sh", "-c", script], mpich, **settings)
    assert "wrong 0" in done.stdout, done.stdout + done.stderr
    assert ("cannot be preloaded" in done.stderr) is not shipped
    assert (re.search(r"collc: [1-9]\d* calls served", done.stderr) is not None) is shipped


@pytest.mark.needs("mpi")
def test_the_library_is_built_ahead(spec: Path, collc: Collc, mpich: Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    words = [str(spec), f"--cache={tmp_path / 'cache'}", f"--mpi={mpich.folder}", "-n", "--library-dir"]
    shown = collc("launch", *words, str(folder), "--", "srun", "--export=ALL", "-n", "4", "app")
    assert shown.status == 0, shown.err
    library = folder / "collc_net.mpich.so"
    assert library.is_file() and [path.name for path in folder.iterdir()] == [library.name]
    assert shlex.split(shown.out) == ["env", f"LD_PRELOAD={library}", "srun", "--export=ALL", "-n", "4", "app"]
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for wrong in (tmp_path / "open", tmp_path / "a b", spec):
        refused = collc("launch", *words, str(wrong), "--", "srun", "app")
        assert refused.status == 1 and refused.err.count("[C0085]") == 1 and "--library-dir" in refused.err
    other = collc("launch", str(spec), "--library-dir", str(folder), "-n", "--", "torchrun", "train.py")
    assert other.status == 2 and "--library-dir is for MPI programs" in other.err


# ---- Intel MPI


@pytest.mark.needs("mpi")
def test_intel_mpi_s_launcher(spec: Path, mpich: Mpi, tmp_path: Path) -> None:
    """Its runtime has no compiler: the library of MPICH has its binary interface."""
    mpiexec = INTEL / "bin" / "mpiexec"
    if not mpiexec.exists():
        pytest.skip(f"{INTEL.name} is not in {CACHE}: pip install --no-deps --prefix .cache/{INTEL.name} impi-rt")
    words = [str(COMMAND), "launch", str(spec), f"--cache={tmp_path / 'cache'}", f"--mpi={mpich.folder}", "--stats"]
    program = [str(INTEL / "bin" / "IMB-MPI1"), "-npmin", "4", "-iter", "5", "-msglog", "3:5", "Allreduce"]
    environ = {"I_MPI_ROOT": str(INTEL), "LD_LIBRARY_PATH": str(INTEL / "lib"), "LD_PRELOAD": ""}
    done = run([*words, "--timeout", "60", "--", str(mpiexec), "-n", "4", *program], mpich, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"MPI_Allreduce: [1-9]\d* served", done.stderr)


# ---- torchrun

_WORKER = """import os, signal, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(6):
    data = torch.full((1000,), float(rank + 1))
    dist.all_reduce(data)
    assert (data == ranks * (ranks + 1) / 2).all()
    if attempt == 0 and step == 2 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
os.write(1, f"right {rank} {attempt}\\n".encode())
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_torchrun_restarts_a_killed_worker(torch: Torch, tmp_path: Path) -> None:
    """The worker that is left ends with the name of the rank, and the new workers are served again."""
    (tmp_path / "two.coll").write_text("collective sums = allreduce on biring(2);\n")
    (tmp_path / "worker.py").write_text(_WORKER)
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program += ["--max-restarts", "1", str(tmp_path / "worker.py")]
    words = ["-m", "collc", "launch", str(tmp_path / "two.coll"), "--stats", "--timeout", "280", "--", *program]
    status, written = torch.run(words, timeout=300)
    assert status == 0, written
    found = set(re.findall(r"right \d \d", written))
    assert found == {"right 0 1", "right 1 1"}, written
    assert "no message from rank 1 [C0095]" in written
    assert "served 6 (allreduce 6)" in written
