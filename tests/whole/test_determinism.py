"""Identical bytes for identical input, whatever else differs (`benchmarks/determinism.py` tries more)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from places import benchmark


@pytest.fixture(scope="module")
def determinism() -> ModuleType:
    module: ModuleType = benchmark("determinism")
    return module


@pytest.mark.slow
def test_bytes_depend_on_the_input_alone(determinism: ModuleType) -> None:
    """Hash seed, order of runs, working directory, locale, time zone, terminal and cores make no difference."""
    found, _ = determinism.compared(True, [1, 2], [])
    assert len(found) > 90
    assert {name: digests for name, digests in found.items() if len(digests) > 1} == {}
    done = [name for name, digests in found.items() if next(iter(digests)).startswith("0 ")]
    assert set(found) - set(done) == {"check/wrong"}


def test_all_there_is_is_tried(determinism: ModuleType) -> None:
    from collc.backends import TARGETS
    from collc.passes import SCHEDULERS

    assert set(determinism.TARGETS) == set(TARGETS)
    assert set(determinism.SCHEDULERS) | {"steps"} == set(SCHEDULERS)


def test_a_difference_is_seen(determinism: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check above can fail: what is printed counts, and what a file is called."""
    monkeypatch.chdir(tmp_path)
    text = "topology net = biring(3);\ncollective c = allgather on net;\n"
    first = determinism._digest(text, ["compile", "-t", "ir"])
    assert first == determinism._digest(text, ["compile", "-t", "ir"])
    assert first != determinism._digest(text.replace(" c ", " d "), ["compile", "-t", "ir"])
    assert first != determinism._digest(text.replace("allgather", "allreduce"), ["compile", "-t", "ir"])
