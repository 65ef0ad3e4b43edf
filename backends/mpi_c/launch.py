"""Running a program under an MPI's launcher, with a limit on its time and its output."""

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

#: seconds that a launcher gets to end its ranks before it is killed
_GRACE_SECONDS = 5.0
#: the same where somebody waits for us to end
_INTERRUPTED_SECONDS = 0.6
#: what is kept of either stream
_MOST_BYTES = 1 << 26
_SHOWN_LINES = 12


def launch(mpi: Mpi, ranks: int, program: Sequence[str], timeout: float, cwd: Path) -> str:
    """Return what ``program`` printed, run on ``ranks`` ranks.

    Raises C0707 when ``timeout`` seconds have passed, C0706 where a rank died or the launcher failed; whatever
    happens (an interrupt too), no process of the run stays behind.
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
            _stop(process)
            raise _too_long(_text(out), ranks, timeout) from None
        except BaseException:
            _stop(process, _INTERRUPTED_SECONDS)
            raise
        _stop(process)
        if status != 0:
            raise _failure(mpi, ranks, status, _text(out), _text(err))
        return _text(out)


def _stop(process: subprocess.Popen[bytes], seconds: float = _GRACE_SECONDS) -> None:
    """End the launcher, which ends its ranks; then kill whatever is left of its process group."""
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
        notes=[f"{done} cases were finished by then"],
        hint="raise the time limit, or run fewer sizes, types or repeats",
    )


def _failure(mpi: Mpi, ranks: int, status: int, output: str, errors: str) -> CollcError:
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    lines = [line.rstrip() for line in (errors + "\n" + output).splitlines() if line.strip("= \t")]
    shown = [line for line in lines if not line.startswith("collc-row")][:_SHOWN_LINES]
    return error("C0706", f"the run on {ranks} ranks of {mpi} {how}: a rank died or could not start", notes=shown)
