"""The scripts that set the paper's tables and figures beside ours: benchmarks/tables.py, figures.py."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from picture_checks import boxes, check
from places import ROOT, benchmark

figures, tables = benchmark("figures"), benchmark("tables")

# ---- figures


def test_line_graphs_of_optimal_bases():
    """Figure 3: k more steps and, for these bases, exactly the geometric series that Theorem 10 predicts."""
    for expression, nodes in (("complete_bipartite(4)", 8), ("complete(5)", 5), ("hamming(2, 3)", 9)):
        points = figures.line_points(expression, 10**4)
        first = points[0]
        assert (nodes, Fraction(nodes - 1, nodes)) == (first[0], first[2]) and len(points) >= 5
        for k, (size, steps, bandwidth) in enumerate(points):
            series = sum((Fraction(1, nodes * 4**i) for i in range(k)), Fraction(0))
            assert (nodes * 4**k, first[1] + k, first[2] + series) == (size, steps, bandwidth)


def test_generalized_kautz_is_within_twice_the_optimum():
    """Figure 18 at a few sizes; Theorem 21 bounds the steps."""
    table, picture = figures.figure_18(120, 40)
    assert {"2", "4", "8", "16"} == {row[0] for row in table[1]}
    for row in table[1]:
        nodes, steps, bound, bandwidth = int(row[1]), int(row[2]), int(row[3]), Fraction(row[4])
        assert steps <= bound + 1 and 1 <= figures.over_optimum(bandwidth, nodes) <= 2
    assert "d = 16" in {words for words, _ in boxes(check(picture))}


def test_the_best_allreduce_of_a_database():
    """Few steps win for small data, little bandwidth time for large."""
    row = figures.Row
    few, little = (
        row("a", 8, 2, 3, Fraction(5, 4), 3, False), row("b", 8, 2, 5, Fraction(7, 8), 5, True),
    )  # fmt: skip
    assert few == figures.best_rows([little, few], 1)[8] and little == figures.best_rows([few, little], 10**8)[8]
    assert Fraction(2 * (3 * 10 + 84), 10**6) == figures.allreduce_seconds(3, Fraction(1), 1_050_000)


def test_files_of_figure_3(tmp_path, monkeypatch, capsys):
    """A table and a picture, the same bytes every time."""
    written = []
    for run in ("one", "two"):
        monkeypatch.setattr(sys, "argv", ["figures.py", "--figure", "3", "--output", str(tmp_path / run)])
        figures.main()
        written.append([(tmp_path / run / name).read_bytes() for name in ("figure3.csv", "figure3.svg")])
    assert written[0] == written[1] and "30 points" in capsys.readouterr().out
    check((tmp_path / "one" / "figure3.svg").read_text())
    rows = list(csv.DictReader((tmp_path / "one" / "figure3.csv").read_text().splitlines()))
    assert all(row["T_L"] == row["T_L_bound"] for row in rows)  # Moore-optimal throughout


def test_a_database_without_rows_has_no_figure(monkeypatch):
    monkeypatch.setattr(figures, "shipped", lambda degree: None)
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.figure_15(100, 1)


# ---- tables


def test_table_5_is_optimal():
    """Every row of Table 5 is bandwidth-optimal, to the printed digits."""
    rows = list(tables.table(5, rates=False))[2:]
    assert 8 == len(rows)
    for nodes, row in zip(range(5, 13), rows, strict=True):
        assert f" {nodes - 1}/{nodes} " in row and re.search(r"\d=", row) and not re.search(r"[<>]", row)


def test_table_7_for_32_nodes():
    rows = list(tables.lines(tables.TABLE_7[32], rates=True, nodes=32))
    assert "5.71e-02=" in rows[1] and "3=" in rows[1] and "31/32" in rows[2]
    assert all(not re.search(r"\d[<>]", row) for row in rows)


def test_rows_without_an_expression_say_why():
    row = tables.Row("X", None, "nobody knows", 3, 1.0, 3)
    assert list(tables.lines([row], rates=False))[1].endswith("nobody knows")
    unknown = tables.Row("X", "no_such_family(3)", "", 3, 1.0, 3)
    assert "no_such_family" in list(tables.lines([unknown], rates=False))[1]


@pytest.mark.parametrize(
    ("ours", "paper", "digits", "less", "mark"),
    [
        (Fraction(341, 256), 1.332, 3, True, "="), (Fraction(33, 32), 1.031, 3, True, "="),
        (Fraction(127, 128), 1.0, 3, True, "<"), (Fraction(3, 2), 1.4, 3, True, ">"),
        (Fraction(571, 10**4), 5.71e-2, None, False, "="), (Fraction(58, 10**3), 5.71e-2, None, False, "<"),
        (Fraction(57, 10**3), 5.71e-2, None, False, ">"),
    ],
)  # fmt: skip
def test_marks(ours, paper, digits, less, mark):
    """Equal to the printed digits, better, worse; for rates more is better."""
    assert mark == tables._ours(ours, paper, digits, 11, ".3f", less_is_better=less)[-1]


def test_the_times_of_table_4():
    """The bound's row: 267.6 us and 382.3 us."""
    found = tables.bound(1024, 4, True)
    assert (267.6, 382.3) == tuple(round(t, 1) for t in found.times)


@pytest.mark.slow
def test_figures_and_shapes_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    """`--executor` gives the same files and lines; a wrong engine is refused."""
    commands = {
        "figures.py": ("--figure", "18", "--most", "60", "--step", "30", "--output"), "torus_shapes.py": ("--most", "6")
    }  # fmt: skip
    for name, words in commands.items():
        found = []
        for place, how in enumerate(([], ["--executor", "processes:2"])):
            folder = [str(tmp_path / str(place))] if words[-1] == "--output" else []
            command = [sys.executable, str(ROOT / "benchmarks" / name), *words, *folder, *how]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
            files = sorted(tmp_path.glob(f"{place}/*"))
            lines = [line for line in done.stdout.splitlines() if " s" not in line and str(tmp_path) not in line]
            found.append(([(file.name, file.read_bytes()) for file in files], lines))
        assert found[0] == found[1]
    wrong = [sys.executable, str(ROOT / "benchmarks" / "torus_shapes.py"), "--executor", "threads"]
    assert "C0036" in subprocess.run(wrong, capture_output=True, text=True, check=False).stderr
