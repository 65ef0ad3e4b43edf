"""Types are strict, and ``Any`` stands only where somebody says why."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from functools import cache

import pytest
from places import ROOT

ROOMS = ("ir", "frontends", "passes", "backends", "collc")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def unexplained(source: str) -> list[int]:
    """Return the lines with ``Any`` that no comment explains: one that names it, on the line or directly above.

    The alias of arrays is explained where it is at home, in ``ir/arrays.py``.
    """
    lines = source.splitlines()
    used, comments = set[int](), dict[int, str]()
    imports = False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string in ("import", "from"):
            imports = True
        elif token.type == tokenize.NEWLINE:
            imports = False
        elif token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string
        elif token.type == tokenize.NAME and token.string == "Any" and not imports:
            used.add(token.start[0])
    return [line for line in sorted(used) if not _is_alias(lines[line - 1]) and not _explained(line, lines, comments)]


def _is_alias(line: str) -> bool:
    return line.startswith(("Array = np.ndarray[Any,", "Array: TypeAlias = np.ndarray[Any,"))


def _explained(line: int, lines: list[str], comments: dict[int, str]) -> bool:
    said = [comments.get(line, "")]
    while line > 1 and lines[line - 2].lstrip().startswith("#"):
        line -= 1
        said.append(comments.get(line, ""))
    return any("Any" in text for text in said)


@cache
def found() -> list[str]:
    """Return the places of every ``Any`` without a reason."""
    texts = {path: path.read_text("utf-8") for path in MODULES}
    named = {path: text for path, text in texts.items() if "Any" in text}
    return [f"{path.relative_to(ROOT)}:{line}" for path, text in named.items() for line in unexplained(text)]


def test_every_any_has_a_reason() -> None:
    assert found() == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: Any) -> None: ...",
        "# of any kind\nx: Any = 1",
        "x: dict[str, Any] = {}\n# Any: too late",
        "# Any: not directly above\n\nx: Any = 1",
        "y: Array = np.ndarray[Any, int]",
    ],
)
def test_a_planted_any_is_found(source: str) -> None:
    assert unexplained(source)


@pytest.mark.parametrize(
    "source",
    [
        "from typing import Any, ClassVar",
        "from typing import (\n    Any,\n)",
        "x: Any = 1  # Any: lxml has no types",
        "# Any: these\n# are of two forms\nx: Any = 1",
        "Array = np.ndarray[Any, np.dtype[Any]]",
        '"""Any text."""',
    ],
)
def test_what_is_explained_is_not_reported(source: str) -> None:
    assert unexplained(source) == []


def test_mypy_is_strict_everywhere() -> None:
    """`.ci/run` runs it on the installed wheel; what is loosened is listed here, with the reason in the file."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    overrides = settings.pop("overrides")
    assert settings == {"python_version": "3.11", "strict": True}
    ours = {(name, key) for one in overrides for name in one["module"] for key in one if name.startswith("collc")}
    assert {pair for pair in ours if pair[1] != "module"} == {
        (name, "disallow_subclassing_any") for name in ("collc.torch.*", "collc.editors.lexer", "collc.pictures.plots")
    }
    assert "mypy" in (ROOT / ".ci" / "run").read_text("utf-8")


LEVELS = {"Schedule", "SymmetricSchedule", "Forest"}


def unions_of_levels(source: str) -> list[str]:
    """Return the unions of all kinds of schedules in a text, each as a whole."""
    if not all(name in source for name in LEVELS):
        return []
    tree = ast.parse(source)
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
    return [
        ast.unparse(union) for union in unions if LEVELS == {n.id for n in ast.walk(union) if isinstance(n, ast.Name)}
    ]


def test_levels_have_one_home() -> None:
    """Outside `ir` all say `Scheduled`, `Executable` and `Level`, of `collc.ir.levels`."""
    outside = [path for path in MODULES if path.relative_to(ROOT).parts[0] != "ir"]
    assert [] == [(path.name, found) for path in outside for found in unions_of_levels(path.read_text("utf-8"))]
    assert unions_of_levels("Level = Schedule | SymmetricSchedule | Forest | Program\n")


def test_type_checkers_are_ignored_by_name_and_for_a_reason_they_know() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "type: ignore" in line and "type: ignore[" not in line
    ]
    assert bare == []
