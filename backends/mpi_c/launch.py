"""Runs a program with an MPI's launcher, with limits on its time and its output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from collc.ir.diagnostic import CollcError, error

from .toolchain import Mpi

__all__ = ["launch"]

#: seconds for a launcher to end its ranks before collc kills it
_GRACE_SECONDS = 5.0
#: the same after an interrupt
_INTERRUPTED_SECONDS = 0.6
#: bytes of each stream that collc keeps
_MOST_BYTES = 1 << 26
_SHOWN_LINES = 12


def launch(mpi: Mpi, ranks: int, program: Sequence[str], timeout: float, cwd: Path) -> str:
    """Return what ``program`` printed, run on ``ranks`` ranks.

    Raises C0707 after ``timeout`` seconds, C0706 if a rank died or the launcher failed. No process of the run remains,
    not even after an interrupt.
    """
    command = mpi.command(ranks, program)
    with tempfile.TemporaryFile(dir=cwd) as out, tempfile.TemporaryFile(dir=cwd) as err:
        try:
            process = subprocess.Popen(
                command, env=mpi.environment(os.environ), cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        except OSError as reason:
            raise error("C0706", f"`{command[0]}` does not run: {reason}") from None
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _stop(process, _GRACE_SECONDS)
            raise _too_long(_text(out), ranks, timeout) from None
        except BaseException:
            _stop(process, _INTERRUPTED_SECONDS)
            raise
        _stop(process, _GRACE_SECONDS)
        if status != 0:
            raise _failure(mpi, ranks, status, _text(out), _text(err))
        return _text(out)


def _stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End the launcher, which ends its ranks; then kill the rest of its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(_MOST_BYTES).decode(errors="replace")


def _too_long(output: str, ranks: int, timeout: float) -> CollcError:
    done = sum(line.startswith("collc-row") and " detail=" in line for line in output.splitlines())
    return error(
        "C0707",
        f"the run on {ranks} ranks took longer than {timeout:g} s and was stopped",
        notes=[f"{done} cases had finished"],
        hint="raise the time limit, or run fewer sizes, types or repeats",
    )


def _failure(mpi: Mpi, ranks: int, status: int, output: str, errors: str) -> CollcError:
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    lines = [line.rstrip() for line in (errors + "\n" + output).splitlines() if line.strip("= \t")]
    shown = [line for line in lines if not line.startswith("collc-row")][:_SHOWN_LINES]
    return error("C0706", f"the run on {ranks} ranks of {mpi} {how}: a rank died or could not start", notes=shown)
