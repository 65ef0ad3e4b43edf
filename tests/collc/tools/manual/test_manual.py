"""Manual pages: complete, up to date, and without faults that the formatters find."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from places import ROOT

from collc.cli.arguments import usage
from collc.cli.tasks import EXAMPLES
from collc.cli.verbs import VERBS
from collc.tools.manual import pages, write_pages
from collc.tools.manual.roff import inline, paragraphs

SHIPPED = ROOT / "collc" / "share" / "man"
PAGES = pages()
#: formatter -> its arguments; the name of the file is last. Both print what is wrong, and nothing else.
CHECKERS = {
    "mandoc": ("mandoc", "-T", "lint", "-W", "error"),
    "man": ("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"),
    "groff": ("groff", "-man", "-ww", "-z", "-T", "utf8"),
}


def plain(page: str) -> str:
    """Return the text of a page without fonts, escapes and line ends."""
    text = re.sub(r"\\f[BR]", "", page)
    for escape, char in {"\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\(dq": '"'}.items():
        text = text.replace(escape, char)
    return " ".join(text.replace("\\&", "").replace("\\e", "\\").split())


def test_there_is_a_page_of_the_command_and_of_every_verb() -> None:
    assert set(PAGES) == {"collc.1"} | {f"collc-{name}.1" for name in VERBS}
    text = plain(PAGES["collc.1"])
    assert [name for name, verb in VERBS.items() if f".TP {name} {verb.summary.replace('`', '')}" not in text] == []


@pytest.mark.parametrize("name", VERBS)
def test_a_page_says_what_the_help_says(name: str) -> None:
    verb, text = VERBS[name], plain(PAGES[f"collc-{name}.1"])
    assert usage(verb) in text
    details = [" ".join(verb.details.split()), *EXAMPLES[name]]
    details += [f"{o.shown} {' '.join(o.help.split())}" for _, group in verb.groups for o in group]
    assert [one for one in details if one.replace("`", "") not in text.replace("`", "").replace(" .PP", "")] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_form_of_a_page(name: str) -> None:
    lines = PAGES[name].splitlines()
    assert lines[1].startswith(".TH COLLC")
    known = (".TH ", ".SH ", ".SS ", ".TP", ".PP", ".br", ".nf", ".fi")
    assert [line for line in lines[1:] if line.startswith((".", "'")) and not line.startswith(known)] == []
    assert [line for line in lines[1:] if re.search(r"\\(?![efR&(-])|(?<!\\)-", line.replace("\\fR", ""))] == []
    heads = [line[4:] for line in lines if line.startswith(".SH")]
    assert heads[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"] and heads[-2:] == ["EXIT STATUS", "SEE ALSO"]


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.slow
def test_a_formatter_finds_no_fault(checker: str) -> None:
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} is not installed")
    for name in PAGES:
        assert faults(checker, SHIPPED / name) == "", name


def faults(checker: str, path: Path) -> str:
    """Return what a formatter says of a page."""
    command = [*CHECKERS[checker], str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"LC_ALL": "C.UTF-8", "PATH": PATH})
    return done.stderr + (done.stdout if checker == "mandoc" else "")


PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_planted_fault_is_found(checker: str, tmp_path: Path) -> None:
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} is not installed")
    fault = tmp_path / "fault.1"
    fault.write_text(PAGES["collc.1"].replace(".SH OPTIONS\n", ".SH OPTIONS\n\\f[nofont]x\\*[nostring]\n.nomacro\n"))
    assert faults(checker, fault)


def test_no_line_of_text_is_a_request() -> None:
    assert inline(".nf and\n.fi") == "\\&.nf and\n\\&.fi"
    assert inline("'quoted' \\x") == "\\(aqquoted\\(aq \\ex"
    assert paragraphs("a\nb\n\n.c") == [".PP", "a b", ".PP", "\\&.c"]


# ---- what is shipped


@pytest.mark.parametrize("name", PAGES)
def test_a_shipped_page_is_up_to_date(name: str) -> None:
    assert (SHIPPED / name).read_text() == PAGES[name], "`python -m collc.tools.manual -o collc/share/man`"


def test_no_other_page_is_shipped_and_the_wheel_has_them() -> None:
    assert {path.name for path in SHIPPED.iterdir()} == set(PAGES)
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    (pattern,) = setuptools["data-files"]["share/man/man1"]
    assert {path.name for path in ROOT.glob(pattern)} == set(PAGES)


def test_the_tool_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "collc.tools.manual"]
    subprocess.run([*command, "-o", str(tmp_path / "new")], check=True, timeout=60)
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == PAGES
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "usage: python -m collc.tools.manual -o DIR\n")
    write_pages(tmp_path / "a" / "b")
    assert len(list((tmp_path / "a" / "b").iterdir())) == len(PAGES)
