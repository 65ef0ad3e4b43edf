"""Golden cases: files whose first comment is a command line, and files that such cases include."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

__all__ = ["copy_case", "run_line"]

#: areas whose verb reads all files of a folder
FOLDERS = {"env"}


def run_line(path: Path) -> str | None:
    """Return the arguments in a case's first comment, or nothing for a file that other cases include."""
    head = path.read_bytes()[:400].decode("utf-8", "replace").removeprefix("\ufeff")
    match = re.match(r"(?:collc-ir 1\n)?(?:# |<!-- )RUN: (.*?)(?: -->)?\n", head)
    return match[1] if match else None


def copy_case(path: Path, folder: Path) -> None:
    """Copy a case and what it may read beside itself; hundreds of other cases are left where they are."""
    for each in {path, *_beside(path.parent)}:
        shutil.copy(each, folder)


@cache
def _beside(folder: Path) -> list[Path]:
    """Return the files that cases of a folder may read besides their own: those that are no cases, or all."""
    found = [path for path in folder.iterdir() if path.suffix != ".expect" and path.is_file()]
    return [path for path in found if folder.name in FOLDERS or run_line(path) is None]
