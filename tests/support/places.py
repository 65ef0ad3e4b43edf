"""Where things are, wherever a test itself stands."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

__all__ = [
    "BENCHMARKS", "CACHE", "CASES", "CORPUS", "DATA", "EXAMPLES", "HELPERS", "ROOT", "TESTS", "benchmark", "the",
]  # fmt: skip

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())
TESTS = ROOT / "tests"
CASES, CORPUS, DATA = TESTS / "cases", TESTS / "corpus", TESTS / "data"
EXAMPLES, BENCHMARKS = ROOT / "examples", ROOT / "benchmarks"

#: where the modules stand that tests share: a process of its own has it on its path
HELPERS = Path(__file__).resolve().parent

#: what tests install and build once
CACHE = ROOT / ".cache"


def the(name: str) -> Path:
    """Return the one file of this name among the tests."""
    [path] = (path for path in TESTS.rglob(name) if not path.is_relative_to(CORPUS))
    return path


def benchmark(name: str) -> Any:
    """Return the script of this name, loaded once, as a module."""
    known = f"benchmark_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, BENCHMARKS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[known]
