"""MPI programs inside a testbed: each rank in its own namespace, and only messages on the wires."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import attrs

from collc.backends.mpi_c.toolchain import Mpi

from .script import CONTROL_HOST

__all__ = ["Inside", "launcher_script", "urgent"]


@attrs.frozen
class Inside(Mpi):
    """An MPI whose launcher puts rank r in the r-th of ``hosts``, like the nodes of a cluster.

    ``entering`` is the command that enters the namespaces of the network, ``script`` replaces ssh, ``settings`` are
    variables of all ranks, and all ranks preload ``shim``.
    """

    entering: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    script: Path = Path()
    shim: Path | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def command(self, ranks: int, program: Sequence[str]) -> list[str]:
        """Return the command line that runs ``program`` on ``ranks`` ranks."""
        by_vendor = self._open_mpi if self.vendor == "Open MPI" else self._hydra
        first = urgent() if self.shim else ()  # without the shim, waiting ranks would take all processors
        return [*first, *self.entering, str(self.mpiexec), *by_vendor(self.hosts[:ranks]), *program]

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of builds and runs."""
        return {**super().environment(base), **(_TRANSPORT if self.vendor != "Open MPI" else {}), **dict(self.settings)}

    def _hydra(self, hosts: Sequence[str]) -> list[str]:
        preload = ["-genv", "LD_PRELOAD", str(self.shim)] if self.shim else []
        return [
            "-hosts", ",".join(hosts), "-launcher", "ssh", "-launcher-exec", str(self.script), "-localhost",
            CONTROL_HOST, *preload, "-n", str(len(hosts)),
        ]  # fmt: skip

    def _open_mpi(self, hosts: Sequence[str]) -> list[str]:
        settings = [part for name, value in _OPEN_MPI for part in ("--mca", name, value)]
        variables = [*self.settings, *([("LD_PRELOAD", str(self.shim))] if self.shim else [])]
        passed = [part for name, value in variables for part in ("-x", f"{name}={value}")]
        return [
            "--prtemca", "plm_ssh_agent", str(self.script), "--prtemca", "prte_if_include", "10.99.0.0/16",
            "--bind-to", "none", *settings, *passed, "-H", ",".join(f"{host}:1" for host in hosts), "-n",
            str(len(hosts)),
        ]  # fmt: skip


@cache
def urgent() -> tuple[str, ...]:
    """Return a command prefix for a high priority, if the user may set it.

    Ranks sleep most of the time. The times should be those of links, not of other processes.
    """
    for command in (("chrt", "-r", "1"), ("nice", "-n", "-15")):
        with contextlib.suppress(OSError):
            done = subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if done.returncode == 0 and not done.stderr:
                return command
    return ()


#: settings of MPICH: libfabric over TCP, from the address that is on no wire
_TRANSPORT = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "rid0"}

#: Its rendezvous would wait for an answer that queues behind a step's data on the same connection: twice the time.
_OPEN_MPI = (
    ("pml", "ob1"), ("btl", "tcp,self"), ("btl_tcp_if_include", "rid0"), ("mpi_yield_when_idle", "1"),
    ("btl_tcp_eager_limit", "4194304"), ("btl_tcp_rndv_eager_limit", "4194304"),
    ("btl_tcp_max_send_size", "4194304"),
)  # fmt: skip

#: called like ssh: options, host, command. Open MPI needs hosts that know their own names.
_LAUNCHER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/$host unshare --uts sh -c "hostname $host; $*"
"""


def launcher_script(path: Path) -> None:
    """Write the script that replaces ssh."""
    path.write_text(_LAUNCHER, encoding="utf-8")
    path.chmod(0o755)
