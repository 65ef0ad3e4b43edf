"""Tutorials and explanations are run as a reader would: their files written, their commands run, their output compared.

``pytest --update-golden`` rewrites what the commands print.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from places import ROOT, benchmark
from transcripts import Block, blocks, matches, play, replayed

FOLDERS = ("tutorials", "explanation", "papers")
PAGES = [ROOT / "README.md", *(page for name in FOLDERS for page in sorted((ROOT / "docs" / name).glob("*.md")))]
#: what commands of pages read, as copies that they may write; tutorials begin in an empty folder
GIVEN = ("examples", "docs")
#: what a page may need that not every machine has
NEEDED = {"cmake.md": "cmake"}


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An empty folder for a tutorial; for other pages one that looks like a clone with its environment."""
    if "tutorials" not in request.node.callspec.params["page"].parts:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
        for name in GIVEN:
            shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.needs("mpi")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_page_prints_what_it_says(page: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    if page.name in NEEDED and not shutil.which(NEEDED[page.name]):
        pytest.skip(f"no {NEEDED[page.name]}")
    if request.config.getoption("--update-golden"):
        page.write_text(replayed(page.read_text(), folder))
        return
    for block in blocks(page.read_text()):
        printed = play(block, folder)
        assert matches(block, printed), printed.body


def test_every_page_is_run() -> None:
    """A page without commands would pass whatever it says."""
    for page in PAGES:
        assert [block for block in blocks(page.read_text()) if block.language == "console" and block.is_run], page


def test_remarks_give_a_reason() -> None:
    for page in PAGES:
        for block in blocks(page.read_text()):
            assert not block.remark or block.remark.partition(": ")[2], (page, block.remark)


# ---- the checks themselves


@pytest.mark.parametrize(
    ("shown", "remark"),
    [
        ("$ echo 1; echo 2\n1\n3\n", ""),
        ("$ echo 1; echo 2\n1\n", ""),
        ("$ echo 1; echo 2\n1\n2\n3\n", ""),
        ("$ echo 1; echo 2\n...\n3\n", ""),
        ("$ echo 1; echo 2\n2\n...\n", ""),
        ("$ echo 1 us ok\n2 us no\n", "output varies: times"),
        ("$ echo 1 >&2\n", ""),
    ],
)
def test_another_output_is_found(shown: str, remark: str, tmp_path: Path) -> None:
    block = Block("console", shown, remark)
    assert not matches(block, play(block, tmp_path))


@pytest.mark.parametrize(
    ("shown", "remark"),
    [
        ("$ echo 1; echo 2\n1\n2\n", ""),
        ("$ echo 1; echo 2\n...\n2\n", ""),
        ("$ echo 1; echo 2\n1\n...\n", ""),
        ("$ echo 1.5 us   ok\n   17 ms ok\n", "output varies: times"),
        ("$ touch a\n$ ls\na\n", ""),
    ],
)
def test_the_output_is_accepted(shown: str, remark: str, tmp_path: Path) -> None:
    block = Block("console", shown, remark)
    assert matches(block, play(block, tmp_path))


def test_files_behind_links_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "examples").symlink_to(tmp_path / "theirs")
    play(Block("coll", "# examples/a.coll\nx\n"), tmp_path / "ours")
    assert list((tmp_path / "theirs").iterdir()) == []


def test_files_are_written_and_blocks_are_left_out(tmp_path: Path) -> None:
    page = "```coll\n# a.coll\nx\n```\n\n<!-- not run: needs a GPU -->\n```console\n$ touch b\n```\n"
    page += "```console\n$ ls\n```\n"
    assert replayed(page, tmp_path).endswith("$ ls\na.coll\n```\n")
    assert [block.file for block in blocks(page)] == ["a.coll", "", ""]


# ---- the pages of papers name modules and scripts that exist

PAPERS = sorted((ROOT / "docs" / "papers").glob("*.md"))
_MODULES = {
    path.name for top in ("ir", "passes", "frontends", "backends", "collc") for path in (ROOT / top).rglob("*.py")
}


def missing_modules(page: str) -> list[str]:
    """Return the modules that a page names without their folder, and that no folder has."""
    own = {block.file for block in blocks(page)}
    return sorted(set(re.findall(r"`(\w+\.py)`", page)) - _MODULES - own)


@pytest.mark.parametrize(
    "page", PAPERS + sorted((ROOT / "docs" / "explanation").glob("*.md")), ids=lambda page: page.name
)
def test_modules_exist(page: Path) -> None:
    assert missing_modules(page.read_text()) == []


def test_a_missing_module_is_found() -> None:
    assert missing_modules("`packing.py`, `no_such_module.py`") == ["no_such_module.py"]


#: why a table or figure of a paper has no command
REASONS = ("no data", "not reproduced", "the same command", "the same two commands")


def without_a_command(page: str) -> list[str]:
    """Return the tables and figures of a paper's page whose row has neither a command nor a reason."""
    page = page.partition("## Errata")[0]
    rows = re.findall(r"^\| (?:(?:Tables?|Figures?) \d|\d+[:,] ?).*$", page.partition("## Table")[2], re.MULTILINE)
    return [row for row in rows if not re.search(r"`(?:python|collc|for) ", row) and not any(r in row for r in REASONS)]


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.name)
def test_every_table_and_figure_has_its_command(page: Path) -> None:
    text = page.read_text()
    assert without_a_command(text) == []
    assert len(re.findall(r"^\| .*`(?:python|collc|for) ", text, re.MULTILINE)) >= 3


def test_a_figure_without_a_command_is_found() -> None:
    page = "## Tables\n| Figure 6: x | `python benchmarks/swing.py` |\n| Figure 7: y | a picture |\n"
    page += "| 3: z | - | not reproduced |\n"
    assert without_a_command(page) == ["| Figure 7: y | a picture |"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({name for page in PAPERS for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text())})
)
def test_scripts_of_papers_load(name: str) -> None:
    assert benchmark(name).main
