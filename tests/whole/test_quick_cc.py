"""The compiler of commands that tests run: it drops the first -O2, which is collc's own, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from places import HELPERS


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-std=c99", "-O2", "-o", "a b", "x.c"], ["-std=c99", "-O0", "-o", "a b", "x.c"]),
        (["-O2", "-Wall", "-O2", "x.c"], ["-O0", "-Wall", "-O2", "x.c"]),
        (["-O2", "-O1", "x.c"], ["-O0", "-O1", "x.c"]),
        (["-O3", "-DX=-O2", ""], ["-O3", "-DX=-O2", ""]),
        ([], []),
    ],
)  # fmt: skip
def test_a_later_option_counts(given: list[str], passed: list[str], tmp_path: Path) -> None:
    (tmp_path / "cc").write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\nexit 3\n')
    (tmp_path / "cc").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        [HELPERS / "quick_cc", *given], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()) == (3, passed)


def test_commands_have_it() -> None:
    assert os.access(HELPERS / "quick_cc", os.X_OK)
    assert os.environ["MPICH_CC"] and os.environ["OMPI_CC"]
