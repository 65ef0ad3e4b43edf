"""docs/reference.md and docs/reference/ are what the code says today, and they leave out nothing that has a name."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import collc
from collc import plugins
from collc.cli.verbs import VERBS
from collc.messages.explain import all_codes
from collc.tables.schemas import DOCUMENTS, schema
from collc.tools.reference import pages
from collc.tools.reference.diagnostics import diagnostics_pages
from collc.tools.reference.markdown import anchor
from collc.tools.reference.python import docstring, public, signature

DOCS = ROOT / "docs"
ANEW = "`.venv/bin/python -m collc.tools.reference -o docs`"
PAGES = pages()


def sections(text: str) -> dict[str, str]:
    """Return what stands below each heading of a page; lines of code are no headings."""
    found, heading, is_code = {"": ""}, "", False
    for line in text.splitlines(keepends=True):
        is_code ^= line.startswith("```")
        if line.startswith("#") and not is_code:
            heading = line.lstrip("#").strip()
            assert heading not in found
            found[heading] = ""
        else:
            found[heading] += line
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    assert PAGES[name] == (DOCS / name).read_text("utf-8"), ANEW


def test_no_page_is_left_of_what_is_gone() -> None:
    found = {path.relative_to(DOCS).as_posix() for path in (DOCS / "reference").rglob("*.md")}
    assert {"reference.md", *found} == set(PAGES), ANEW


@pytest.mark.slow
def test_the_command_writes_all_files_and_removes_others(tmp_path: Path) -> None:
    pytest.importorskip("railroad")
    (tmp_path / "reference" / "grammar").mkdir(parents=True)
    gone = tmp_path / "reference" / "grammar" / "gone.svg"
    gone.write_text("")
    command = [sys.executable, "-m", "collc.tools.reference"]
    subprocess.run([*command, "-o", str(tmp_path)], check=True)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    committed = [DOCS / "reference.md", *(DOCS / "reference").rglob("*.*")]
    assert {path.relative_to(DOCS): path.read_bytes() for path in committed} == written
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == PAGES["reference.md"]
    wrong = subprocess.run([*command, "docs"], check=False, capture_output=True, text=True)
    assert (1, "usage: python -m collc.tools.reference [-o DIR]\n") == (wrong.returncode, wrong.stderr)


# ---- what the pages have


def test_every_verb_and_option_is_there() -> None:
    found = sections(PAGES["reference/commands.md"])
    for verb in VERBS.values():
        text = found[f"collc {verb.name}"]
        assert verb.summary in text
        for title, group in verb.groups:
            place = found["Options of all verbs"] if title == "General" else text
            for opt in group:
                assert f"| `{opt.shown}` |" in place.replace("\\|", "|"), (verb.name, opt.names)


def test_every_code_is_there_once_with_its_explanation() -> None:
    texts = diagnostics_pages()
    index = texts.pop("diagnostics.md")
    for code, text in all_codes().items():
        [below] = [found[code] for found in map(sections, texts.values()) if code in found]
        title, _, explanation = text.partition("\n")
        assert title[1:] in below and f"#{code.lower()}) | {title} |" in index.replace("\\|", "|")
        words = re.sub(r"```\w*", "", below).split()
        assert explanation.split() == words[-len(explanation.split()) :], code


def test_every_key_of_a_schema_is_there() -> None:
    found = sections(PAGES["reference/schemas.md"])
    for name in DOCUMENTS:
        text = found[name]
        keys = {key for part in _objects(schema(name)) for key in part}
        assert keys and {key for key in keys if f"`{key}`" not in text} == set(), name
        path = ROOT / "collc" / "share" / "schemas" / f"{name}.json"
        assert f"(../../{path.relative_to(ROOT).as_posix()})" in text and json.loads(path.read_text()) == schema(name)


def _objects(part: object) -> list[dict[str, object]]:
    """Return the properties of all objects of a schema."""
    if isinstance(part, list):
        return [found for one in part for found in _objects(one)]
    if not isinstance(part, dict):
        return []
    below = [found for one in part.values() for found in _objects(one)]
    return [part["properties"], *below] if "properties" in part else below


def test_every_public_name_is_there_with_its_docstring() -> None:
    found = sections(PAGES["reference/python.md"])
    assert set(collc.__all__) - {"__version__"} <= {name.removeprefix("collc.") for name in found}
    assert {f"collc.plugins.{name}" for name in plugins.__all__} <= set(found)
    assert "`collc.__version__`" in found["Functions"]
    for title, names in public().items():
        for name, one in names.items():
            module = getattr(one, "__module__", "")
            places = {"Functions": "collc.", "Results of other modules": f"{module}.", "Plugins": "collc.plugins."}
            before = places.get(title, "")
            text = found[f"{before}{name}"]
            if callable(one):
                assert getattr(one, "_is_protocol", False) or signature(name, one) in text
                assert all(part in text for part in docstring(one))
            assert text.strip(), name


def test_every_parameter_of_a_function_is_in_its_signature() -> None:
    for one in public()["Functions"].values():
        assert inspect.isfunction(one)
        shown = re.findall(r"(\w+): ", signature("f", one))
        assert set(inspect.signature(one).parameters) <= set(shown), one
    assert "    cancel: Cancel | None = None,\n) -> Result" in signature("compile", collc.compile)


def test_signatures_have_no_addresses() -> None:
    """A default such as a function or a sentinel would differ from run to run."""

    def f(a: object = object(), b: object = len) -> None: ...

    assert "f(a: object = ..., b: object = ...) -> None" == signature("f", f)
    assert re.findall(r"0x[0-9a-f]{6,}|<class|ForwardRef", PAGES["reference/python.md"]) == []


def test_anchors_are_those_of_the_headings() -> None:
    for name, text in PAGES.items():
        known = set(map(anchor, sections(text)))
        assert {place for place in re.findall(r"\]\(#([^)]*)\)", text) if place not in known} == set(), name
