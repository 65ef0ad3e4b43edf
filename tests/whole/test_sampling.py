"""How much is tried: one place decides for all tests."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import sampling
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from places import TESTS

#: a number of examples that neither `pytest -m quick` nor `COLLC_EXHAUSTIVE=1` changes
_FIXED = re.compile(r"max_examples=\d")


def test_the_number_of_examples_is_that_of_the_sampling() -> None:
    paths = [path for path in TESTS.rglob("*.py") if path.name != "test_sampling.py"]
    assert [] == [path.name for path in paths if _FIXED.search(path.read_text("utf-8"))], "write examples(..)"
    assert _FIXED.search("@settings(max_examples=300)") and not _FIXED.search("@settings(max_examples=examples(300))")


@pytest.mark.parametrize("most", [3, 5, 30, 60, 300])
def test_quick_tests_try_fewer_and_exhaustive_ones_no_fewer(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for quick, exhaustive in ((True, False), (False, False), (False, True)):
        monkeypatch.setattr(sampling, "QUICK", quick)
        monkeypatch.setattr(sampling, "EXHAUSTIVE", exhaustive)
        found.append(sampling.examples(most))
    assert found == [min(most, max(5, most // 8)), most, max(100, 4 * most)]


def test_turns_try_every_item() -> None:
    items = list(range(10))
    assert items == sorted(item for turn in range(3) for item in sampling.every(3, items, turn)) or sampling.EXHAUSTIVE


def drawn() -> list[str]:
    """Return the texts that Hypothesis draws for a test."""
    found = list[str]()

    @settings(max_examples=sampling.examples(300), derandomize=True, database=None)
    @given(st.lists(st.text(), max_size=5))
    def collect(texts: list[str]) -> None:
        found.extend(texts)

    collect()
    return found


@pytest.mark.skipif(sampling.EXHAUSTIVE, reason="every run tries others")
def test_a_run_tries_the_same_whatever_it_has_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis would draw the constants of loaded modules, of which each worker of xdist has others."""
    monkeypatch.setattr(sampling, "QUICK", False)
    before = drawn()
    path = tmp_path / "constants.py"
    path.write_text(f"THESE = {[f'constant {number}' for number in range(99)]}\n")
    spec = importlib.util.spec_from_file_location("constants_of_a_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "constants_of_a_module", module)
    assert drawn() == before and not any(text.startswith("constant ") for text in before)
    of_modules = providers.Constants(strings=providers.SortedSet(module.THESE))
    monkeypatch.setattr(providers, "_get_local_constants", lambda: of_modules)
    providers.CONSTANTS_CACHE.cache.clear()
    assert any(text.startswith("constant ") for text in drawn())
    monkeypatch.undo()
    providers.CONSTANTS_CACHE.cache.clear()
