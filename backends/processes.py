"""Runs commands to their end. If an exception interrupts the wait, no process and no file of them remains."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

__all__ = ["run"]

_GRACE_SECONDS = 0.4


def run(
    command: Sequence[str],
    timeout: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Return status and output of a command without input; raise what ``subprocess.run`` raises.

    The command leads a process group, because a compiler is a tree of processes. An exception ends the group. The
    command's folder for temporary files is removed too, because a killed compiler leaves its files behind.
    """
    with tempfile.TemporaryDirectory(prefix="collc-tool-", ignore_cleanup_errors=True) as scratch, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=os.name == "posix", env={**(env or os.environ), "TMPDIR": scratch}, cwd=cwd,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the group. A compiler removes its temporary files after SIGTERM, but not after SIGKILL."""
    with contextlib.suppress(OSError):
        if os.name != "posix":
            process.kill()
            return
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
