"""Whole runs of the command, each a file: what it is given, and what must come of it.

``tests/cases/AREA/NAME.coll`` (or ``.ir``, ``.xml``) begins with a comment ``RUN: arguments``; ``%s`` in them stands
for the file, appended where it is not named, unless a word is ``%0``. ``NAME.expect`` holds the exit status, the files
written, standard output and standard error. ``pytest --update-golden tests/whole/test_golden.py`` rewrites
expectations: read the difference.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commands import Ran
from golden_files import copy_case, run_line
from places import CASES
from sampling import every


def cases() -> list[Path]:
    found = sorted(p for p in CASES.rglob("*") if p.suffix in (".coll", ".ir", ".xml"))
    return [path for path in found if run_line(path) is not None]


def outcome(path: Path, run: Callable[..., Ran], folder: Path) -> str:
    """Run a case in ``folder``, beside copies of what it may read, and return what came of it."""
    copy_case(path, folder)
    before = {p.name for p in folder.iterdir()}
    words = shlex.split(run_line(path) or "")
    if not any("%s" in word or word == "%0" for word in words):
        words.append("%s")
    ran = run(*[word.replace("%s", path.name) for word in words if word != "%0"])
    written = sorted(p.name for p in folder.iterdir() if p.name not in before)
    return "\n".join(
        [
            f"exit: {ran.status}",
            f"files: {' '.join(written) or 'none'}",
            f"--- stdout\n{ran.out}--- stderr\n{ran.err}",
        ]
    )


@pytest.mark.parametrize("path", cases(), ids=lambda path: str(path.relative_to(CASES)))
def test_case(path: Path, collc: Callable[..., Ran], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.with_suffix(".expect")
    found = outcome(path, collc, tmp_path)
    if request.config.getoption("--update-golden"):
        expected.write_text(found)
    assert expected.exists(), f"no {expected.name}: run `pytest --update-golden tests/whole/test_golden.py` and read it"
    assert expected.read_text() == found


COMPILED = [path for path in cases() if path.parent.name == "compile"]


@pytest.mark.slow
@pytest.mark.parametrize("path", every(3, COMPILED), ids=lambda path: path.stem)
def test_a_case_is_the_same_from_the_cache(
    path: Path, collc: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without the cache, one that fills it and one that reads it print and write the same."""
    cache = f"--cache={tmp_path / 'cache'}"
    found = []
    for name, more in (("plain", []), ("miss", [cache]), ("hit", [cache])):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        text = outcome(path, partial(_with, collc, more), folder)
        text = re.sub(r"collc: took the files from the cache in .*\n", "", text)  # -v says so
        files = [one for one in folder.rglob("*") if one.is_file()]
        found.append((text, {one.relative_to(folder): one.read_bytes() for one in files}))
    assert found[0] == found[1] == found[2]
    assert path.with_suffix(".expect").read_text() == found[0][0]


def _with(run: Callable[..., Ran], more: list[str], *words: str) -> Ran:
    return run(*words, *more)


def test_every_expectation_has_its_case() -> None:
    """An expectation whose case is gone would be kept for ever."""
    kept = {path.with_suffix(".expect") for path in cases()}
    assert set() == set(CASES.rglob("*.expect")) - kept


def test_there_are_cases_of_every_kind() -> None:
    assert {"errors", "warnings", "compile", "usage"} <= {path.parent.name for path in cases()}
