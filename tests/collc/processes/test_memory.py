"""The memory of this process, with and without /proc."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collc.processes import memory as module
from collc.processes.memory import memory


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc on this system")
def test_the_peak_stays_when_memory_is_freed() -> None:
    before = memory()
    block = mmap.mmap(-1, 64 << 20)  # a large object may take memory that this process has freed and still holds
    block.write(b"1" * (64 << 20))
    during = memory()
    block.close()
    after = memory()
    assert before.held is not None and during.held is not None and after.held is not None
    assert during.held - before.held > 32 << 20  # a system may take other pages back
    assert after.held < during.held - (32 << 20)
    assert after.peak is not None and after.peak >= during.held - (1 << 20)


@pytest.mark.skipif(os.name != "posix", reason="the system counts no memory of a process")
def test_without_proc_only_the_peak_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_STATUS", str(tmp_path / "none"))
    found = memory()
    assert found.held is None
    assert found.peak is not None and 1 << 20 < found.peak < 1 << 44  # bytes, neither pages nor KiB


#: faults of pages when columns are made again and again; numpy asks for larger pages from 4 MiB on
_FAULTS = """
import resource, sys
import numpy as np
from collc.processes.memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1:] else False
for turn in range(9):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    columns = [np.ones(3 << 17, np.int64) for _ in range(8)]
    del columns
print(int(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_columns_are_not_returned_to_the_system() -> None:
    def run(*arguments: str, **environment: str) -> tuple[int, int]:
        command = [sys.executable, "-P", "-c", _FAULTS, *arguments]
        plain = {key: value for key, value in os.environ.items() if key not in module._CHOSEN}
        text = subprocess.run(command, env=plain | environment, check=True, capture_output=True, text=True).stdout
        kept, faults = map(int, text.split())
        return kept, faults

    kept, faults = run("keep")
    if not kept:
        pytest.skip("the C library has no mallopt")
    assert faults < 1000 < run()[1]  # a column has 768 pages of 4 KiB
    assert run("keep", MALLOC_TRIM_THRESHOLD_="1000000")[0] == 0  # a user's choice holds
