"""No module or room imports itself in a circle: imports inside functions count, those for type checkers do not."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest
from module_graph import Graph, circles, floors, graph, modules_of, room_graph
from picture_checks import boxes, overlap
from places import ROOT, benchmark

#: circles of rooms -> why they are
KNOWN = {
    ("backends/mpi_c", "backends/mpi_c/interpose"): "the target writes libraries to preload, which extend its own text",
    ("ir/one_sided/verify", "ir/verify"): "`verify` takes every level, and all verifiers report alike",
    ("collc", "collc/cli", "collc/torch"): "Python and torch start both in `collc`, whose version and API they use",
}


def circle(modules: Mapping[str, tuple[str, bool]]) -> list[str]:
    """Return a circle of imports, each module imported by the next; empty if there is none."""
    try:
        TopologicalSorter(graph(modules)).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


@cache
def package() -> dict[str, set[str]]:
    """Return the graph of the whole package."""
    return graph(modules_of(ROOT))


def test_no_module_imports_itself_in_a_circle() -> None:
    TopologicalSorter(package()).prepare()  # CycleError names the circle


def test_the_graph_knows_every_room_and_relative_imports() -> None:
    edges = package()
    assert {"collc.ir.topology", "collc.ir.spec"} <= edges["collc.passes.synthesis.breadth_first.bfb"]
    assert "collc.passes.schedule.rounding" in edges["collc.passes.synthesis.breadth_first.bfb"]
    assert "collc.api" in edges["collc"]
    assert "collc.ir.exchange" in edges["collc.ir.topology"], "which imports it inside a function"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("from .b import x", "from .a import y"),
        ("from . import b", "def f():\n    from .a import y"),
        ("import collc.b", "if True:\n    from collc import a"),
        ("from .b import x", "class C:\n    def f(self):\n        import collc.a as a"),
    ],
)
def test_a_planted_circle_is_found(one: str, other: str) -> None:
    modules = {"collc": ("", True), "collc.a": (one, False), "collc.b": (other, False)}
    assert set(circle(modules)) == {"collc.a", "collc.b"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("from .b import x", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import y"),
        (
            "from .b import x",
            "import typing\nif typing.TYPE_CHECKING:\n    from .a import y\nelse:\n    from . import c",
        ),
        ("from .b import x", "from collc import c"),
    ],
)
def test_what_is_no_circle_is_not_reported(one: str, other: str) -> None:
    modules = {"collc": ("", True), "collc.a": (one, False), "collc.b": (other, False), "collc.c": ("", False)}
    assert circle(modules) == []


def test_a_package_may_import_its_modules() -> None:
    modules = {
        "collc": ("", True),
        "collc.p": ("from .m import x\nfrom ..q import y", True),
        "collc.p.m": ("from . import n\nfrom .. import q", False),
        "collc.p.n": ("", False),
        "collc.q": ("", False),
    }
    assert graph(modules)["collc.p"] == {"collc.p.m", "collc.q"}
    assert graph(modules)["collc.p.m"] == {"collc.p.n", "collc.q"}
    assert circle(modules) == []


# ---- rooms: the folders of the package


@cache
def rooms() -> Graph:
    return room_graph(modules_of(ROOT), package())


@pytest.mark.slow
def test_no_room_imports_itself_in_a_circle_but_for_a_reason() -> None:
    assert circles(rooms()) == sorted(KNOWN)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("importer", "other"),
    [("ir", "ir/verify"), ("passes/schedule", "passes/program"), ("collc/files", "collc/driver"), ("ir", "collc/cli")],
)
def test_a_planted_circle_of_rooms_is_found(importer: str, other: str) -> None:
    """Either the rooms are no circle before, or they are part of one that is listed."""
    planted = {name: others | {other} if name == importer else others for name, others in rooms().items()}
    planted[other] = planted[other] | {importer}
    assert circles(planted) != sorted(KNOWN)


def test_a_room_stands_above_all_that_it_imports() -> None:
    floor = floors(rooms())
    together = [set(circle) for circle in circles(rooms())]
    for name, others in rooms().items():
        for other in others:
            assert floor[name] > floor[other] or any({name, other} <= circle for circle in together), (name, other)
    assert floors({"a": {"b", "c"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a": 1, "b": 0, "c": 0, "d": 0}


def unlisted(text: str) -> set[str]:
    """Return the rooms that a page does not name; kinds of algorithms stand for their schedulers' rooms."""
    return {name for name in rooms() if f"`{name}/`" not in text and not name.startswith("passes/synthesis/")}


def test_architecture_lists_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert unlisted(text) == set()
    assert unlisted(text.replace("`ir/text/`", "`ir/texts/`")) == {"ir/text"}


def planted_tree(tree: Path) -> Path:
    """Write a tree of three rooms, of which two are a circle."""
    for place, text in {
        "ir/__init__.py": "", "ir/x.py": "", "passes/__init__.py": "from collc.ir import x",
        "passes/deep/__init__.py": "from ..base import y", "passes/base.py": "from .deep import z",
    }.items():  # fmt: skip
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / place).write_text(text)
    return tree


def test_the_house_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = benchmark("house")
    drawing = tmp_path / "a.svg"
    house.main([str(planted_tree(tmp_path)), "-o", str(drawing)])
    out = capsys.readouterr().out
    assert "3 rooms on 2 floors, 3 arrows, 1 circle" in out
    assert "circle: passes, passes/deep" in out
    assert {"ir", "passes", "passes/deep"} <= {words for words, _ in boxes(ElementTree.parse(drawing).getroot())}


def test_the_picture_of_the_house_is_the_one_that_is_drawn(tmp_path: Path) -> None:
    """`python benchmarks/house.py -o docs/house.svg` draws it anew."""
    house = benchmark("house")
    text = house.picture(rooms())
    assert text == (ROOT / "docs" / "house.svg").read_text(), "`python benchmarks/house.py -o docs/house.svg`"
    written = list(boxes(ElementTree.fromstring(text)))
    assert set(rooms()) <= {words for words, _ in written}
    assert [] == [(a, b) for (a, one), (b, two) in combinations(written, 2) if overlap(one, two)]
