"""Every example in a docstring prints what stands below it."""

from __future__ import annotations

import doctest
from importlib import import_module

import numpy as np
import pytest
from places import ROOT

ROOMS = {"ir": "collc.ir", "frontends": "collc.frontends", "passes": "collc.passes", "backends": "collc.backends",
         "collc": "collc"}  # fmt: skip


def with_examples() -> list[str]:
    """Return the modules whose docstrings have examples."""
    found = []
    for room, package in ROOMS.items():
        for path in sorted((ROOT / room).rglob("*.py")):
            if ">>> " in path.read_text("utf-8") and "torch" not in path.parts:
                parts = path.relative_to(ROOT / room).with_suffix("").parts
                found.append(".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))))
    return found


@pytest.mark.parametrize("name", with_examples())
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name), extraglobs={"np": np})
    assert result.attempted and not result.failed


def test_examples_are_found() -> None:
    assert "collc.ir.ragged" in with_examples()
