"""Whole runs of the command, each a file: what it is given, and what must come of it.

``tests/cases/AREA/NAME.coll`` (or ``.ir``, ``.xml``) begins with a comment ``RUN: arguments``; ``%s`` in them stands
for the file, appended where it is not named. ``NAME.expect`` holds the exit status, the files written, standard
output and standard error. ``pytest --update-golden tests/whole/test_golden.py`` rewrites expectations:
read the difference.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from places import CASES


def run_line(path: Path) -> str | None:
    """Return the arguments in a case's first comment, or nothing for a file that other cases include."""
    head = path.read_bytes()[:400].decode("utf-8", "replace")
    match = re.match(r"(?:collc-ir 1\n)?(?:# |<!-- )RUN: (.*?)(?: -->)?\n", head)
    return match[1] if match else None


def cases() -> list[Path]:
    found = sorted(p for p in CASES.rglob("*") if p.suffix in (".coll", ".ir", ".xml"))
    return [path for path in found if run_line(path) is not None]


def outcome(path: Path, run: Callable[..., Ran], folder: Path) -> str:
    """Run a case in ``folder``, beside copies of what stands beside it, and return what came of it."""
    for sibling in path.parent.iterdir():
        if sibling.suffix != ".expect" and sibling.is_file():
            shutil.copy(sibling, folder)
    before = {p.name for p in folder.iterdir()}
    words = shlex.split(run_line(path) or "")
    if not any("%s" in word for word in words):
        words.append("%s")
    ran = run(*[word.replace("%s", path.name) for word in words])
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


def test_every_expectation_has_its_case() -> None:
    """An expectation whose case is gone would be kept for ever."""
    kept = {path.with_suffix(".expect") for path in cases()}
    assert set() == set(CASES.rglob("*.expect")) - kept


def test_there_are_cases_of_every_kind() -> None:
    assert {"errors", "warnings", "compile", "usage"} <= {path.parent.name for path in cases()}
