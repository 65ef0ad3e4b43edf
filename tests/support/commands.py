"""The command as a process of its own, and what a run leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import attrs

#: The installed command of the environment that runs the tests.
COMMAND = Path(sys.executable).parent / "collc"

RING = "topology ring = biring(4);\ncollective sums = allreduce on ring;\n"

#: The keys that tools read; more may come, none may go.
COST_KEYS = {
    "ranks", "degree", "collective", "scheduler", "chunks_per_shard", "transfers", "steps", "T_L", "T_B", "T_B_float",
    "T_B_bound", "T_L_bound", "bw_optimal", "moore_optimal", "points", "time_per_byte", "time_per_byte_bound",
}  # fmt: skip


@attrs.frozen
class Ran:
    """What a run of the command left."""

    status: int
    out: str
    err: str


def spawn(*arguments: str, cwd: Path, stdin: str | bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command as a process of its own."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [str(COMMAND), *arguments], cwd=cwd, input=given, capture_output=True, timeout=120,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode(errors="backslashreplace")
    )


def lives(process: int) -> bool:
    """Return whether a process runs, where the system tells (Linux): one that nobody waits for is a zombie in time."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(process: int) -> bool:
    """Wait until a process that was told to end has done so, and return whether it has; a minute hangs."""
    limit = time.monotonic() + 60
    while lives(process) and time.monotonic() < limit:
        time.sleep(0.02)
    return not lives(process)
