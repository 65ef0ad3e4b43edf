"""The blocks of code of all pages: each is run, parsed, or left out for a reason that stands on its page.

Blocks of `coll` are parsed in ``test_words.py``, those of `console` are compared with what their commands print in
``test_tutorials.py`` and ``test_importing_page.py``, the code of CONTRIBUTING.md runs in ``test_contributing.py``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from commands import Ran
from example_files import SUMS, write_files
from lxml import etree
from places import ROOT
from sampling import every
from shell_blocks import commands, left_out, lines, reason
from transcripts import Block, blocks

Collc = Callable[..., Ran]

PAGES = {
    path.relative_to(ROOT).as_posix(): blocks(path.read_text("utf-8"))
    for path in (
        ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md")),
    )
}  # fmt: skip

#: the most lines of shell with a command of collc that pages leave out
MOST_LEFT_OUT = 18
#: the most blocks of Python that pages leave out
MOST_PYTHON_LEFT_OUT = 5

# ---- the files that commands of a page read, beside those of example_files.py

RING = "topology pod = biring(4);\ncollective grads = allreduce on pod;\n"
SIXTEEN = "topology pod = torus(4, 4);\ncollective grads = allreduce on pod;\n"
BOXES = "topology pod = dgx_a100(2);\ncollective grads = allreduce on pod;\nschedule grads using nccl-rings;\n"
SOME = "param n = 16;\ntopology pod = subset(dgx_a100(2), {0..n});\ncollective grads = allreduce on pod;\n"
RCCL = "-t 'msccl-xml{runtime=rccl}'"


@attrs.frozen
class Given:
    """What stands in the folder of a page: texts by file, commands that write more, and blocks of the page."""

    texts: Mapping[str, str] = {}
    made: Sequence[str] = ()
    #: file -> language and number of a block of the page
    shown: Mapping[str, tuple[str, int]] = {}


GIVEN: Mapping[str, Given] = {
    "docs/faults.md": Given(shown={"pod.coll": ("coll", 0)}),
    "docs/msccl-safety.md": Given(made=[f"collc sums.coll {RCCL} -o x.xml"]),
    "docs/msccl.md": Given(
        {"ring.coll": SIXTEEN, "pod.coll": RING.replace("4", "8")},
        [f"collc ring.coll {RCCL} -o ring.xml", f"collc sums.coll {RCCL} -o out/"]
    ),
    "docs/mscclpp.md": Given(
        made=["collc sums.coll -t mscclpp-json -o plan.json", "collc sums.coll -t msccl-xml -o allreduce.xml"]
    ),
    "docs/nccl.md": Given({"pod.coll": BOXES}, ["collc topo.coll -o pod.topo.xml"], {"topo.coll": ("coll", -1)}),
    "docs/simulator.md": Given({"pod.coll": RING.replace("biring(4)", "torus(8, 8)")}),
    "docs/train.md": Given({"cluster.coll": "topology pod = torus(8, 8);\n"}, shown={"model.json": ("json", 0)}),
    "docs/launch.md": Given(
        {
            "net.coll": SOME,
            "world.coll": SUMS, "rows.coll": SUMS.replace("4", "2"), "columns.coll": SUMS.replace("4", "3"),
        },
    ),
}  # fmt: skip
ORDINARY = Given({"pod.coll": SUMS.replace("sums", "grads")})


def prepare(page: str, collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the files of a page into the working folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath("cache of the pages"))
    monkeypatch.setenv("HOME", os.path.abspath("."))
    write_files(collc)
    for name in ("docs", "examples", "benchmarks"):
        os.symlink(ROOT / name, name)
    given = GIVEN.get(page, ORDINARY)
    for name, text in {**ORDINARY.texts, **given.texts}.items():
        Path(name).write_text(text)
    for name, (language, number) in given.shown.items():
        Path(name).write_text([one.body for one in PAGES[page] if one.language == language][number])
    for command in given.made:
        assert run(command, collc).status == 0, command


def run(command: str, collc: Collc) -> Ran:
    """Run a command as a shell would; what launches a program only says what it would launch."""
    _, *words = shlex.split(os.path.expandvars(command))
    if words[0] == "launch":
        words.insert(1, "--dry-run")
    for place, word in enumerate(words):
        if word in ("-o", "--database") and "/" in words[place + 1]:
            path = Path(words[place + 1])  # of `my/` collc makes the folder itself, but not for a database
            (path if word == "--database" and path.suffix == "" else path.parent).mkdir(parents=True, exist_ok=True)
    return collc(*words)


# ---- shell

SHELL = {page: [one for one in found if one.language == "sh"] for page, found in PAGES.items()}
COMMANDS = {page: [command for one in found for command in commands(one)] for page, found in SHELL.items()}
#: verbs that start an MPI
NEED = ("run", "launch")


def needs_an_mpi(command: str) -> bool:
    return command.split()[1] in NEED


def with_commands(mpi: bool) -> list[str]:
    """Return the pages that have commands, or some that start an MPI.

    Those of the reference are those of ``--help``, and run in ``test_help_examples.py``.
    """
    pages = [page for page, found in COMMANDS.items() if found and page != "docs/reference/commands.md"]
    return [page for page in pages if not mpi or any(map(needs_an_mpi, COMMANDS[page]))]


@pytest.mark.slow
@pytest.mark.parametrize("page", every(3, with_commands(False)))
def test_commands_of_a_page_run(page: str, collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(page, collc, monkeypatch)
    for command in COMMANDS[page]:
        if not needs_an_mpi(command):
            ran = run(command, collc)
            assert ran.status == 0, (command, ran.err)


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("page", every(3, with_commands(True)))
def test_commands_of_a_page_run_on_an_mpi(
    page: str, collc: Collc, monkeypatch: pytest.MonkeyPatch, mpich: object
) -> None:
    prepare(page, collc, monkeypatch)
    for command in filter(needs_an_mpi, COMMANDS[page]):
        ran = run(command, collc)
        assert ran.status == 0, (command, ran.err)


def test_what_is_left_out_has_a_reason_and_grows_no_further() -> None:
    found = [(page, line) for page, some in SHELL.items() for one in some for line in left_out(one) if "collc " in line]
    assert len(found) <= MOST_LEFT_OUT, found
    for page, some in PAGES.items():
        for block in some:
            assert not block.remark.startswith("not run") or reason(block), (page, block.remark)


def test_a_remark_that_leaves_out_nothing_is_found() -> None:
    for page, some in SHELL.items():
        for block in some:
            quoted = re.findall(r"`([^`]+)`", block.remark.partition(": ")[0])
            unused = [word for word in quoted if not any(word in line for line in lines(block))]
            assert unused == [], (page, block.remark)


def test_commands_are_seen() -> None:
    text = (
        "collc a.coll \\\n  -o 'b c' > d  # e\nmkdir x && collc cost y\neval \"$(collc env z/)\"\npip install collc\n"
    )
    assert ["collc a.coll    -o 'b c'", "collc cost y", "collc env z/"] == list(commands(Block("sh", text)))
    some = Block("sh", "collc run a\ncollc cost a\n", "not run, `collc run`: it needs a cluster")
    assert (["collc cost a"], ["collc run a"]) == (list(commands(some)), left_out(some))
    whole = Block("sh", "collc run a\n", "not run: it needs a cluster")
    assert ([], ["collc run a"], "it needs a cluster") == (list(commands(whole)), left_out(whole), reason(whole))
    assert reason(Block("sh", "collc run a\n", "not run:")) == ""


def test_a_wrong_command_is_found(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare("docs/cost.md", collc, monkeypatch)
    assert run("collc cost pod.coll --size 1parsec", collc).status == 2
    assert run("collc cost gone.coll", collc).status == 1


SCRIPTS = sorted(
    {
        (script, option)
        for some in SHELL.values()
        for block in some
        for script, rest in re.findall(r"python (benchmarks/\S+\.py)([^#\n]*)", block.body)
        for option in re.findall(r"(?<!\S)--[\w-]+", rest) or [""]
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("script", every(2, sorted({script for script, _ in SCRIPTS})))
def test_scripts_of_the_repository_have_the_options_of_pages(script: str) -> None:
    ran = subprocess.run([sys.executable, ROOT / script, "--help"], check=True, capture_output=True, text=True)
    assert {option for one, option in SCRIPTS if one == script and option not in ran.stdout} == set()


# ---- other languages


def parsed_xml(text: str) -> None:
    """Raise an error for XML that is not well-formed; the tags of an excerpt, one with a line `...`, need not match."""
    if "\n..." not in text:
        etree.fromstring(text)
    for tag in re.findall(r"<(?![!?/])[^>]*>", text):
        etree.fromstring(tag if tag.endswith("/>") else f"{tag[:-1]}/>")


def make(text: str) -> None:
    """Raise an error for a makefile that make cannot read."""
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as empty:
        Path(empty, "Makefile").write_text(f"nothing:\n{text}")
        subprocess.run(["make", "-n", "nothing"], cwd=empty, env=environment, check=True, capture_output=True)


def anything(text: str) -> None:
    """Texts and other programs' languages, of which only their programs know more."""


#: language -> what raises an error for a wrong block
KINDS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads, "toml": tomllib.loads, "xml": parsed_xml, "make": make, "python": lambda text: text,
    **dict.fromkeys(("sh", "coll", "console", "pycon", "text", "c", "cmake", "lua", "lisp"), anything),
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_is_well_formed(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    opened = re.findall(r"^```(.*)$", text, re.MULTILINE)
    assert opened[1::2] == [""] * len(opened[1::2]) and len(PAGES[page]) == len(opened) // 2, (
        "a fence without a language"
    )
    for block in PAGES[page]:
        KINDS[block.language](block.body)


@pytest.mark.parametrize(
    ("language", "text"),
    [("json", "{'a': 1}"), ("xml", "<a><b></a>"), ("toml", "a = b"), ("make", "a: b\n  c")],
)
def test_a_malformed_block_is_found(language: str, text: str) -> None:
    with pytest.raises((ValueError, etree.XMLSyntaxError, subprocess.CalledProcessError)):
        KINDS[language](text)


# ---- Python

#: pages whose code other tests run
ELSEWHERE = ("CONTRIBUTING.md", "README.md")
#: what stands in the text of a page before its code
BEFORE = {
    "docs/api.md": "paths = ['pod.coll', 'sums.coll']",
    "docs/language.md": "import networkx\ngraph = networkx.cycle_graph(4)",
}
PYTHON = {
    page: [one for one in some if one.language == "python"] for page, some in PAGES.items() if page not in ELSEWHERE
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page, some in PYTHON.items() if any(one.is_run for one in some)])
def test_python_of_a_page_runs(page: str, collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(page, collc, monkeypatch)
    names: dict[str, object] = {"__name__": page}
    exec(f"import collc\n{BEFORE.get(page, '')}", names)
    for block in PYTHON[page]:
        if block.is_run and not block.file:
            exec(compile(block.body, page, "exec"), names)


def test_python_that_is_left_out_compiles_and_grows_no_further() -> None:
    found = [(page, one) for page, some in PYTHON.items() for one in some if not one.is_run]
    for page, one in found:
        compile(one.body, page, "exec")
    assert len(found) <= MOST_PYTHON_LEFT_OUT, found
