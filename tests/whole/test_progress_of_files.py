"""Work on files of any size says what it does and how much is done: reading, executing, writing and comparing."""

from __future__ import annotations

import pytest

import collc
from collc.driver.plan import Recipe
from collc.driver.result import Settings
from collc.ir.one_sided.verify import program as one_sided
from collc.ir.progress import watched
from collc.registry.elements import parse_elements
from collc.tools.conversion import convert_text
from collc.tools.verification import verify_text

SOURCE = "collective c = allreduce on torus(3, 3);\nschedule c using bfb;\n"

#: target -> what is counted when such a file is verified
VERIFIED = {
    "msccl-xml": {"reading ranks"},
    "oneccl-xml": {"reading ranks"},
    "mscclpp-json": {"reading ranks", "ordering events", "what blocks know of others", "executing operations"},
}
#: target -> what is counted when a program is converted to it
CONVERTED = {
    "oneccl-xml": {"dividing threadblocks", "planning rounds"},
    "mscclpp-json": {"which ranks have begun", "writing ranks"},
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """A file of every target."""
    return {t: collc.compile_source(SOURCE, target=t)["c"].artifacts[0].text for t in VERIFIED}


def counted(reports: list[tuple[str, int, int]]) -> set[str]:
    """The names of work that is counted; no count is beyond its total, and none goes back but at the next piece."""
    assert all(0 <= done <= total for _, done, total in reports if total)
    return {what for what, _, total in reports if total}


@pytest.mark.parametrize("target", VERIFIED)
def test_verifying_a_file_counts(texts: dict[str, str], target: str) -> None:
    reports: list[tuple[str, int, int]] = []
    one_sided._right.clear()  # what was compiled was executed
    with watched(lambda *report: reports.append(report)):
        assert verify_text(texts[target], "c").ok
    assert VERIFIED[target] <= counted(reports)


@pytest.mark.parametrize("target", CONVERTED)
def test_converting_a_file_counts(texts: dict[str, str], target: str) -> None:
    reports: list[tuple[str, int, int]] = []
    settings = Settings(Recipe("2", None, ()), "each")
    with watched(lambda *report: reports.append(report)):
        convert_text(texts["msccl-xml"], "c.xml", parse_elements(target, "-t"), settings=settings)
    assert CONVERTED[target] <= counted(reports)
