"""Every public name has an example in its docstring, and the examples of docs/api.md print what the page says."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from places import ROOT

import collc
from collc import plugins
from collc.backends.base import Artifact
from collc.driver.simulated import Simulated
from collc.ir.costs.cost import Cost
from collc.ir.topology import Topology
from collc.ir.verify import Report
from collc.tools.finding import Frontier

PAGE = ROOT / "docs" / "api.md"

#: what the API returns, beside the names of its own
RETURNED = (Artifact, Cost, Frontier, Report, Simulated, Topology)


def public() -> dict[str, object]:
    """Return every public class and function by its name."""
    named = {name: getattr(collc, name) for name in collc.__all__}
    named |= {f"plugins.{name}": getattr(plugins, name) for name in plugins.__all__}
    named |= {kind.__name__: kind for kind in RETURNED}
    return {name: one for name, one in named.items() if inspect.isclass(one) or inspect.isfunction(one)}


def without_example(named: Iterable[tuple[str, object]]) -> list[str]:
    """Return the names whose docstring has no example."""
    return [name for name, one in named if ">>> " not in (inspect.getdoc(one) or "")]


def test_every_public_name_has_an_example() -> None:
    assert [] == without_example(public().items())
    assert {"compile", "Result", "Cancelled", "plugins.Plugin", "Topology"} <= set(public())


def test_a_name_without_an_example_is_found() -> None:
    def silent() -> None:
        """Return nothing."""

    assert ["silent"] == without_example([("silent", silent)])


@pytest.mark.parametrize("name", public())
def test_the_example_is_tried_with_its_module(name: str) -> None:
    """`test_examples.py` tries all examples of modules that have some; those of classes stand where they are made."""
    one = public()[name]
    tests = doctest.DocTestFinder(recurse=False).find(one, name.rpartition(".")[2])
    assert [test for test in tests if test.examples], name
    path = inspect.getsourcefile(one)  # type: ignore[arg-type]  # a class or a function
    assert path is not None and Path(path).is_relative_to(ROOT) and ">>> " in Path(path).read_text()


# ---- the page


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def failures(examples: str) -> str:
    """Return what differs from what examples of a page say."""
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(examples, {}, "api.md", str(PAGE), 0)
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.slow
def test_the_examples_of_the_page_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [spec] = blocks("coll")
    Path("pod.coll").write_text(spec)
    assert "" == failures("\n".join(blocks("pycon")))


def test_a_wrong_example_is_found() -> None:
    assert "Expected:" in failures(">>> 1 + 1\n3\n")


def test_the_other_code_of_the_page_can_be_compiled() -> None:
    for block in blocks("python"):
        compile(block, str(PAGE), "exec")


def test_the_page_names_everything_public() -> None:
    text = PAGE.read_text()
    assert [] == [name for name in collc.__all__ if name != "__version__" and f"{name}" not in text]


def test_the_page_lists_every_option_of_compile() -> None:
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    listed = set(re.findall(r"`(\w+)`", "\n".join(rows)))
    taken = {p.name for p in inspect.signature(collc.compile).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert taken <= listed
