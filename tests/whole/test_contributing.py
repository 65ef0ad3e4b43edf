"""The recipes of CONTRIBUTING.md: their code runs as it stands on the page, their commands exist."""

from __future__ import annotations

import doctest
import importlib.util
import re
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import Ran
from places import ROOT

import collc as api
from collc.backends import TARGETS
from collc.backends.base import Artifact
from collc.frontends.coll import library
from collc.frontends.coll.families import FAMILIES
from collc.passes import PASSES
from collc.reading import FORMATS

Run = Callable[..., Ran]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def blocks(language: str, text: str = PAGE) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def block(place: str) -> str:
    """Return the code that the page gives for a place: a file, or a table of one."""
    [found] = [code for code in blocks("python") if code.startswith(f"# {place}\n")]
    return found


def dotted(place: str) -> str:
    """Return the name of the module in a file of the tree."""
    parts = Path(place).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[0] == "collc" else ("collc", *parts))


def installed(place: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Let the page's module of a place be one of collc's, also where somebody who tries the page has written it."""
    name = dotted(place)
    module = ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(block(place), place, "exec"), module.__dict__)
    return module


def rows(place: str, table: str) -> dict[str, Any]:
    """Return the rows that the page adds to a table, as they are where the table is."""
    names = vars(import_module(dotted(place))) if not place.startswith("tests/") else {}
    found: dict[str, Any] = eval(f"{{{block(f'{place}: {table}')}}}", dict(names))
    return found


# ---- the code


def test_every_block_of_python_compiles() -> None:
    for code in blocks("python"):
        is_row = re.match(r"# [\w./]+: \w+\n", code)
        compile(f"{{{code}}}" if is_row else code, "CONTRIBUTING.md", "exec")
    assert len(blocks("python")) >= 10


def test_the_pass(collc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    module = installed("passes/schedule/order_transfers.py", monkeypatch)
    for name, row in rows("passes/__init__.py", "_TRANSFORMS").items():
        monkeypatch.setitem(PASSES.own, name, row)
        assert PASSES.load(name) is module.OrderTransfers
        assert (name, row[2]) == (module.OrderTransfers.name, module.OrderTransfers.summary)
    [case] = [code for code in blocks("coll") if "RUN: " in code]
    Path("case.coll").write_text(case)
    arguments = shlex.split(case.splitlines()[0].removeprefix("# RUN: "))
    ran = collc(*[word.replace("%s", "case.coll") for word in arguments])
    assert ran.status == 0, ran.err
    with_pass = api.compile_source(case, target="ir{level=schedule}", passes="bfb,order-transfers{by=shard}")
    made = with_pass.collectives["c"].schedule
    pairs = list(zip(made.step.tolist(), made.shard.tolist(), strict=True))
    assert pairs == sorted(pairs)
    plain = api.compile_source(case, target="ir{level=schedule}", passes="bfb").collectives["c"].schedule
    assert plain.shard.tolist() != made.shard.tolist(), "the example does nothing"


def test_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    module = installed("frontends/coll/families/wheels.py", monkeypatch)
    for name, row in rows("frontends/coll/families/__init__.py", "FAMILIES").items():
        monkeypatch.setitem(FAMILIES.own, name, row)
        monkeypatch.setitem(library._CONSTRUCTIONS, name, row)
    assert doctest.testmod(module).failed == 0
    for call in rows("tests/support/every_family.py", "EXPRESSIONS")["wheel"]:
        topology = api.topology(call)
        arguments = [int(number) for number in re.findall(r"\d+", call)]
        assert module.wheel_size(*arguments) == (topology.num_nodes, topology.num_links)
        made = api.compile_source(f"topology t = {call}; collective c = allreduce on t;", target="mpi-c")
        assert all(report.ok for report in made.collectives["c"].reports)
    with pytest.raises(api.CollcError):
        api.topology("wheel(2)")


@pytest.fixture
def program_json(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The target and the format of the page."""
    module = installed("backends/program_json.py", monkeypatch)
    installed("collc/reading/program_json.py", monkeypatch)
    for name, row in rows("backends/__init__.py", "TARGETS").items():
        monkeypatch.setitem(TARGETS.own, name, row)
        assert (name, row[2]) == (module.ProgramJson.name, module.ProgramJson.summary)
    for name, row in rows("collc/reading/__init__.py", "FORMATS").items():
        monkeypatch.setitem(FORMATS.own, name, row)
    return module


def test_the_target_and_the_format(collc: Run, program_json: ModuleType) -> None:
    Path("a.coll").write_text("topology t = torus(3, 2); collective c = allreduce on t { op: max, dtype: int32 };")
    for command in (
        ("a.coll", "-t", "program-json", "-o", "a.json"),
        ("verify", "a.json"),
        ("convert", "a.json", "-t", "mpi-c", "-o", "a.c"),
    ):
        ran = collc(*command)
        assert ran.status == 0, (command, ran.err)
    refused = "holds no program as JSON [C0098]"
    for text in rows("tests/collc/registry/test_registry.py", "TEXTS")["program-json"]:
        Path("b.json").write_text(text)
        assert refused in collc("verify", "b.json").err


def test_the_target_finds_every_changed_number(program_json: ModuleType) -> None:
    program = api.compile_source("topology t = biring(3); collective c = allgather on t;", target="ir").program
    target = program_json.ProgramJson()
    [file] = target.emit(program)
    assert target.check(program, [file]).ok
    numbers = list(re.finditer(r"\d+", file.text))
    for number in numbers[:: max(1, len(numbers) // 60)]:
        changed = f"{file.text[: number.start()]}{int(number[0]) + 1}{file.text[number.end() :]}"
        assert not target.check(program, [Artifact(file.filename, changed, target.name)]).ok, number


# ---- the commands

#: options of pytest that the page uses; all others are pytest's own business, and would be listed here
PYTEST = {"-m", "-n", "-k", "--update-golden"}


def commands(text: str) -> list[str]:
    """Return the commands of a page's blocks and sentences."""
    found = [part for code in blocks("sh", text) for line in code.splitlines() for part in line.split(" && ")]
    return [*found, *re.findall(r"`(\.venv/bin/[^`\n]+|benchmarks/\w+\.py [^`\n]+)`", text)]


def unknown(command: str) -> list[str]:
    """Return the words of a command that mean nothing."""
    words = shlex.split(command, comments=True)
    options = [word for word in words if word.startswith("-") and word != "-"]
    if words[:1] == [".venv/bin/pytest"]:
        return sorted({*options} - PYTEST)
    if words[:2] == [".venv/bin/python", "-m"]:
        return [] if importlib.util.find_spec(words[2]) else [words[2]]
    if words[:1] == [".venv/bin/python"]:
        script = ROOT / words[1]
        text = script.read_text("utf-8") if script.is_file() else ""
        return [word for word in options if f'"{word}"' not in text and "parse_known_args" not in text] + (
            [] if text else [words[1]]
        )
    known = [".venv/bin/ruff check", ".venv/bin/ruff format", ".ci/run", "git status --short", "git diff"]
    known += ["python3 -m venv .venv", ".venv/bin/pip install -e .[test]", ".venv/bin/sphinx-build -W"]
    return [] if any(" ".join(words).startswith(one) for one in known) else words


def test_every_command_exists() -> None:
    assert {command: unknown(command) for command in commands(PAGE) if unknown(command)} == {}
    assert len(commands(PAGE)) > 20


@pytest.mark.parametrize(
    "command",
    [
        ".venv/bin/pytest --update-goldens tests", ".venv/bin/python benchmarks/none.py", "make test",
        ".venv/bin/python benchmarks/campaign.py --hours 1", ".venv/bin/python -m collc.tools.references",
    ],
)  # fmt: skip
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert unknown(command)


def test_the_marks_are_those_of_the_tests() -> None:
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    marks = {*re.findall(r"-m (\w+)\b(?!\.)", " ".join(c for c in commands(PAGE) if "pytest" in c))}
    marks |= {*re.findall(r"@pytest\.mark\.(\w+)", PAGE)}
    assert {"quick", "slow", "needs"} <= marks
    assert all(re.search(rf'^    "{mark}[:(]', settings, re.MULTILINE) for mark in marks)
