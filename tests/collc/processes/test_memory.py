"""The memory of this process, with and without /proc."""

from __future__ import annotations

import mmap
import os
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
