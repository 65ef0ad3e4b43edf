"""Commands that are run to their end, of which nothing stays behind where the wait for it is interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

__all__ = ["run"]

_GRACE_SECONDS = 0.4


def run(command: Sequence[str], timeout: float, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Return status and output of a command that reads nothing; raise what ``subprocess.run`` does.

    It leads a process group, which is ended when the wait ends with an exception: a compiler is a tree of processes.
    """
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=os.name == "posix", **options,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _end(process: subprocess.Popen[Any]) -> None:
    """End the group: a compiler that is asked to removes its own temporary files, one that is killed does not."""
    with contextlib.suppress(OSError):
        if os.name != "posix":
            process.kill()
            return
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
