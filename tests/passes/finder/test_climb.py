"""benchmarks/climb.py: what the compiled climb finds has the costs that collc computes, and is the same every time."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from places import benchmark

import collc
from collc.passes.finder.database import Row, parse_rows
from collc.passes.finder.measure import row_mistakes

climb = benchmark("climb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the databases of three short searches, each of which goes on from the one before."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("climb")
    for family, degree, sizes in (
        ("cayley", 3, "20..23"), ("lifts", 3, "20..25"), ("lifts", 4, "57"), ("lifts", 16, "66"), ("cayley", 6, "60"),
        ("lifts", 6, "60"), ("inserted", 6, "61"),
    ):  # fmt: skip
        words = (family, "-d", str(degree), "-n", sizes, "--database", f"{folder}/", "--evaluations", "400")
        assert climb.main(words) == 0
    return folder


def rows(folder: Path, degree: int) -> list[Row]:
    return parse_rows((folder / f"degree-{degree}.txt").read_text(), degree, "found")


@pytest.mark.parametrize(("degree", "sizes"), [(3, {20, 22, 24}), (4, {57}), (6, {60, 61}), (16, {66})])
def test_the_rows_have_the_costs_that_collc_computes(folder: Path, degree: int, sizes: set[int]) -> None:
    found = rows(folder, degree)
    assert sizes == {row.nodes for row in found}
    for row in found:
        assert not row_mistakes(row, collc.topology)
        assert row.bidirectional and row.alltoall_rate is not None
    assert any(row.T_B == Fraction(row.nodes - 1, row.nodes) for row in found)
    wrong = attrs.evolve(found[0], T_B=found[0].T_B - Fraction(1, 100))
    assert "T_B" in row_mistakes(wrong, collc.topology)[0]


def test_odd_sizes_without_other_groups_have_polycirculants_that_meet_the_bound(folder: Path) -> None:
    """57 nodes: three classes of 19."""
    optimal = [row.T_L for row in rows(folder, 4) if row.T_B == Fraction(56, 57)]
    assert min(optimal) <= 4


def test_another_search_finds_nothing_worse_and_keeps_the_bytes(folder: Path) -> None:
    before = (folder / "degree-3.txt").read_bytes()
    climb.main(("cayley", "-d", "3", "-n", "20..23", "--database", f"{folder}/", "--evaluations", "1"))
    assert before == (folder / "degree-3.txt").read_bytes()
    again = folder / "again"
    again.mkdir(exist_ok=True)
    for family, sizes in (("cayley", "20..23"), ("lifts", "20..25")):
        climb.main((family, "-d", "3", "-n", sizes, "--database", f"{again}/", "--evaluations", "400"))
    assert before == (again / "degree-3.txt").read_bytes()
