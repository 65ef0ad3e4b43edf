"""docs/importing.md: every command of it prints what the page says, and every excerpt is part of a file.

The files are those of the golden cases. ``pytest --update-golden`` rewrites what the commands print.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from places import CASES, ROOT

from collc.cli.verbs import VERBS
from collc.frontends.importing.formats import IMPORTS

PAGE = ROOT / "docs" / "importing.md"
INPUTS = [path for path in (CASES / "import").iterdir() if path.suffix not in (".coll", ".expect")]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODES = re.compile(r"\x1b\[[0-9;]*m")


def blocks(kind: str, text: str | None = None) -> list[str]:
    found = _BLOCK.findall(PAGE.read_text() if text is None else text)
    return [body for language, body in found if language == kind]


def transcript(block: str, collc: Callable[..., Ran]) -> str:
    """Return a block with what its commands print, standard output first."""
    shown = list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            name, *words = shlex.split(line[2:])
            assert name == "collc"
            ran = collc(*words)
            shown += [line, *(ran.out + ran.err).splitlines()]
    return "".join(f"{line}\n" for line in shown)


@pytest.fixture
def files(tmp_path: Path) -> None:
    for path in INPUTS:
        shutil.copy(path, tmp_path)


def test_the_commands_print_what_the_page_says(
    files: None, collc: Callable[..., Ran], request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--update-golden"):
        text = PAGE.read_text()
        PAGE.write_text(
            _BLOCK.sub(lambda m: f"```console\n{transcript(m[2], collc)}```" if m[1] == "console" else m[0], text)
        )
    said = blocks("console")
    assert len(said) >= 12
    assert said == [transcript(block, collc) for block in said]


def test_another_output_is_found(files: None, collc: Callable[..., Ran]) -> None:
    command = "$ collc import tree.topo -o a.coll\n"
    assert transcript(f"{command}wrote a.coll: 8 ranks\n", collc) == (
        f"{command}wrote a.coll: 8 ranks, 4 switches, 24 links\n"
    )


def plain(line: str) -> str:
    return " ".join(_CODES.sub("", line).split())


def foreign(excerpts: list[str]) -> list[str]:
    """Return the lines of excerpts that no input has."""
    known = {plain(line) for path in INPUTS for line in path.read_text().splitlines()}
    lines = [line for excerpt in excerpts for line in excerpt.splitlines() if line.strip(" .")]
    return [line for line in lines if plain(line) not in known]


def test_excerpts_are_parts_of_files() -> None:
    assert foreign(blocks("text") + blocks("xml")) == []
    assert foreign(["Tiers 2\nTiers 4\n"]) == ["Tiers 4"]


def test_all_formats_and_options_are_on_the_page() -> None:
    text = PAGE.read_text()
    table = text.partition("## What can be imported")[2].partition("##")[0]
    rows = re.findall(r"^\| (`[a-z].*?) \|", table, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(listed) == sorted(IMPORTS.own)
    headings = " ".join(re.findall(r"^## (.*)", text, re.MULTILINE)).lower()
    words = {"nccl-topo": "nccl", "dot": "graphviz", "nodelink": "node-link", "astra-sim": "astra-sim"}
    places = [headings.index(words.get(name, name)) for name in listed]
    assert places == sorted(places)
    options = {word for _, group in VERBS["import"].groups for one in group for word in one.names}
    used = set(re.findall(r"(?<![\w-])--[a-z-]+", "".join(re.findall(r"collc import[^\n]*", text)) + _tables(text)))
    assert used - {"--of", "--json", "--csv"} <= options


def _tables(text: str) -> str:
    return "".join(line for line in text.splitlines() if line.startswith("| `--"))
