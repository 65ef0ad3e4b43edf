"""How much is tried: one place decides for all tests."""

from __future__ import annotations

import re

import pytest
import sampling
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
    assert found == [min(most, max(5, most // 8)), most, max(100, most)]


def test_turns_try_every_item() -> None:
    items = list(range(10))
    assert items == sorted(item for turn in range(3) for item in sampling.every(3, items, turn)) or sampling.EXHAUSTIVE
