"""The torch that tests run on, in a folder of its own, and jobs of several ranks on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from places import CACHE, HELPERS

__all__ = ["Torch", "torch"]

#: the build without CUDA, a quarter of the size; where this package index has no such build, torch's own has
PACKAGE = "torch==2.13.0+cpu"
INDEX = "https://download.pytorch.org/whl/cpu"
PREFIX = CACHE / PACKAGE.replace("==", "-")


@attrs.frozen
class Torch:
    """A folder with torch and what it needs, on the path of the Python that runs the tests."""

    folder: Path

    def environment(self, **variables: str) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("COLLC_", "TORCH", "MASTER_", "PYTHON"))}
        return {**clean, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1", **variables}

    def run(self, command: Sequence[str], timeout: float = 900.0, **variables: str) -> tuple[int, str]:
        """Run a Python command; return its status and what it wrote. What is left of it afterwards is ended."""
        process = subprocess.Popen(
            [sys.executable, *command], env=self.environment(**variables), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            written, _ = process.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, written

    def ranks(self, count: int, program: Path, scenarios: Sequence[str], **variables: str) -> tuple[int, str]:
        """Run a program as so many ranks for each scenario, forked from one process that has imported torch."""
        return self.run([str(HELPERS / "torch_ranks.py"), str(count), str(program), *scenarios], **variables)

    def torchrun(self, count: int, program: Sequence[str], timeout: float = 900.0, **variables: str) -> tuple[int, str]:
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}", *program]
        return self.run(command, timeout, **variables)


@pytest.fixture(scope="session")
def torch() -> Torch:
    """Torch from its wheel, installed once."""
    if not PREFIX.exists():
        _install()
    found = sorted(PREFIX.glob("lib*/python*/site-packages"))
    if not found:
        pytest.skip(f"no torch: {PREFIX} holds no packages")
    return Torch(found[0])


def _install() -> None:
    """Install into a folder aside and move it in place: tests of another process may want it at the same time."""
    CACHE.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=CACHE))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--ignore-installed"]
    command += ["--no-compile"]  # of thousands of modules few are loaded
    reason = ""
    try:
        for index in ([], ["--extra-index-url", INDEX]):
            done = subprocess.run(
                [*command, "--no-warn-script-location", "--prefix", str(aside), *index, PACKAGE],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                with contextlib.suppress(OSError):  # another process was faster
                    os.rename(aside, PREFIX)
                return
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
        pytest.skip(f"no torch: {PACKAGE} cannot be installed: {reason[0] if reason else 'pip failed'}")
    except subprocess.TimeoutExpired:
        pytest.skip(f"no torch: {PACKAGE} was not installed within 600 s")
    finally:
        shutil.rmtree(aside, ignore_errors=True)
