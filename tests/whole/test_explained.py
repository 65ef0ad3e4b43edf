"""The figures of docs/explanation are those that their script and `collc simulate` draw today, and can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import Ran
from picture_checks import boxes, overlap
from places import ROOT, benchmark

from collc.backends.pictures.lettering import Box

FOLDER = ROOT / "docs" / "explanation"
explained = benchmark("explained")


def unreadable(picture: str) -> list[str]:
    """Return the texts that leave the page or lie on another text."""
    root = ElementTree.fromstring(picture)
    page = Box(0, 0, float(root.get("width", "0")), float(root.get("height", "0")))
    texts = list(boxes(root))
    found = [f"{words} leaves the page" for words, box in texts if not page.holds(box)]
    return found + [f"{a} lies on {b}" for (a, x), (b, y) in combinations(texts, 2) if overlap(x, y)]


@pytest.mark.slow
@pytest.mark.parametrize("name", explained.FIGURES)
def test_the_figure_is_as_drawn_today(name: str) -> None:
    picture = explained.FIGURES[name]().file()
    assert picture == (FOLDER / f"{name}.svg").read_text("utf-8"), "`python benchmarks/explained.py`"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_the_figure_can_be_read(path: Path) -> None:
    assert unreadable(path.read_text("utf-8")) == []


def test_an_unreadable_figure_is_found() -> None:
    text = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">{}</svg>'
    assert unreadable(text.format('<text x="5" y="20">one</text><text x="9" y="22">two</text>'))
    assert unreadable(text.format('<text x="80" y="20">long</text>'))
    assert not unreadable(text.format('<text x="5" y="20">one</text><text x="45" y="20">two</text>'))


#: the parts of every explanation, in order
PARTS = ["The idea", "The theorem", "What collc does", "What collc proves and checks", "Try it"]


def parts(text: str) -> list[str]:
    return [heading.rstrip("s") for heading in re.findall(r"^## (.*)$", text, re.MULTILINE)]


def test_every_page_has_its_parts() -> None:
    expected = [part.rstrip("s") for part in PARTS]
    assert {path.name for path in FOLDER.glob("*.md") if parts(path.read_text("utf-8")) != expected} == set()
    assert parts("## The idea\n## Try it\n") != expected


def test_every_page_has_its_figure() -> None:
    pages = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    assert set(pages) == {path.stem for path in FOLDER.glob("*.svg")}
    assert all(f"]({name}.svg)" in text for name, text in pages.items())


def test_the_candidates_of_auto_are_as_drawn_today(collc: Callable[..., Ran], tmp_path: Path) -> None:
    drawn = tmp_path / "auto.svg"
    assert collc("simulate", str(FOLDER / "auto.coll"), "--size", "1KiB..16MiB:4", "--svg", str(drawn)).status == 0
    assert drawn.read_text() == (FOLDER / "auto.svg").read_text("utf-8")
