"""Control goes one way through the driver: no module of it is imported, however late, by one that it imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from import_lines import imports
from places import ROOT

ROOM = ROOT / "collc"


def name_of(path: Path) -> str:
    """Return the dotted name of a module of the room, without `collc`."""
    parts = path.relative_to(ROOM).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, tuple[bool, str]]:
    """Return every module of the room: whether it is a package, and its text."""
    found = (path for path in sorted(ROOM.rglob("*.py")) if "__pycache__" not in path.parts)
    return {name_of(path): (path.name == "__init__.py", path.read_text()) for path in found}


@cache
def lines(text: str) -> list[tuple[int, int, str]]:
    return list(imports(ast.parse(text)))


def imported(name: str, package: bool, text: str, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules of the room that a module imports, in functions and for type checkers too."""
    home = name.split(".") if package else name.split(".")[:-1]
    for _, level, path in lines(text):
        if level == 0 and not path.startswith("collc."):
            continue
        parts = (
            path.removeprefix("collc.").split(".") if level == 0 else home[: len(home) - level + 1] + path.split(".")
        )
        while parts and ".".join(parts) not in known:
            parts = parts[:-1]
        if parts:
            yield ".".join(parts)


def cycle(modules: Mapping[str, tuple[bool, str]]) -> list[str]:
    """Return modules each of which imports the next, the first of them last again; none where there is no cycle."""
    edges = {name: sorted({*imported(name, *one, modules)} - {name}) for name, one in modules.items()}
    done, path = set[str](), list[str]()

    def search(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        path.append(name)
        for other in edges[name]:
            if found := search(other):
                return found
        done.add(path.pop())
        return []

    return next((found for name in modules if name.startswith("driver") and (found := search(name))), [])


def test_no_module_of_the_driver_is_in_a_cycle() -> None:
    modules = sources()
    assert "driver.runner" in modules and "driver.automatic" in modules
    assert cycle(modules) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("driver.runner", "def f():\n    from .fitting import fit"), ("driver.result", "from .runner import Runner"),
        ("driver.decided", "if TYPE_CHECKING:\n    from .compile import compile_collective"),
        ("registry.classes", "from ..selection import Selector"),
        ("messages.places", "def f():\n    from ..driver import compilation"),
    ],
)  # fmt: skip
def test_a_planted_cycle_is_found(name: str, line: str) -> None:
    modules = sources()
    package, text = modules[name]
    assert name in cycle(modules | {name: (package, f"{text}\n{line}\n")})


def test_results_need_no_pass_and_nothing_that_runs_one() -> None:
    """A result is data: reading one in another process loads neither."""
    program = "import sys, collc.driver.result; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    ours = {name.removeprefix("collc.") for name in done.stdout.split() if name.startswith("collc.")}
    assert "driver.result" in ours
    assert not {name for name in ours if name.startswith(("passes", "backends", "selection"))}
    assert {name for name in ours if name.startswith("driver.")} == {"driver.plan", "driver.result"}


def test_modules_of_the_driver_are_small() -> None:
    assert {name: text.count("\n") for name, (_, text) in sources().items()
            if name.startswith("driver") and text.count("\n") > 350} == {}  # fmt: skip


#: what of `collc.passes` the driver may know: what a pass is, what it varies, names, which of them the table lists for
#: a collective, what and what bounds are computed by
KNOWN = (
    "passes.PASSES", "passes.SCHEDULERS", "passes.AUTO", "passes.base.", "passes.knobs.", "passes.schedulers.",
    "passes.applying.require_listed",
)  # fmt: skip
#: how any scheduler runs on members, what groups get of the links, and which ranks a program is for
GROUPS = ("passes.synthesis.groups.", "passes.program.participants.", "passes.one_sided.members.")
BOUNDS = (
    "passes.synthesis.forest.allreduce_program.", "passes.synthesis.flow.rate.", "passes.synthesis.flow.uneven.",
    "passes.synthesis.general.bound.",
)  # fmt: skip


def decisions(name: str, text: str) -> list[str]:
    """Return what a module of the driver knows of single passes or decides by the code of a diagnostic."""
    allowed = KNOWN + GROUPS + (BOUNDS if name in ("driver.bounding", "driver.keeping", "driver.result") else ())
    paths = [path.removeprefix("collc.") for _, level, path in lines(text) if level == 0]
    found = [path for path in paths if path.startswith("passes") and not path.startswith(allowed)]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Compare, ast.SetComp)):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr == "code"]
            found += [ast.unparse(node)] if parts else []
    return found


def test_the_driver_knows_no_pass_and_decides_by_no_code() -> None:
    wrong = {name: decisions(name, text) for name, (_, text) in sources().items() if name.startswith("driver")}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from collc.passes.schedule.pipelining import Pipelining",
        "if all(d.code in LIMITS for d in mistake.diagnostics):\n    pass",
        'x = {d.code for d in found} != {"C0630"}', 'y = d.code == "C0642"',
    ],
)  # fmt: skip
def test_a_planted_decision_is_found(line: str) -> None:
    assert decisions("driver.fitting", f"{sources()['driver.fitting'][1]}\n{line}\n")
