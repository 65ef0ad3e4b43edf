"""`--csv` and `--markdown`: on standard output, in files, with everything else that a verb prints."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collc.tables.listed import TABLES

TWO = """topology t = torus(3, 3);
collective grads = allreduce on t { size: 1 MiB };
collective params = allgather on t { size: 1 MiB };
"""


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.coll"
    path.write_text(TWO)
    return str(path)


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("verb", ["cost", "simulate"])
def test_rows_are_those_of_json(collc: Any, two: str, verb: str) -> None:  # Any: the fixture's function
    """A row for every size of every collective, in the file's order, with the same values."""
    words = (verb, two, "--size", "1KiB,1MiB")
    rows = lines(collc(*words, "--csv").out)
    objects = json.loads(collc(*words, "--json").out)["collectives"]
    expected = [(one["name"], point) for one in objects for point in one["points"]]
    assert [(row["name"], int(row["size_bytes"])) for row in rows] == [(n, p["size_bytes"]) for n, p in expected]
    for row, (_, point) in zip(rows, expected, strict=True):
        assert float(row["time_us"]) == point["time_us"] and float(row["busbw_GBps"]) == point["busbw_GBps"]
    assert set(rows[0]) == {column.key for column in TABLES[verb]}


@pytest.mark.slow
def test_baselines_have_a_table_of_their_own(collc: Any, tmp_path: Path) -> None:  # Any: as above
    """At every size a row for collc and for each baseline, with the times and ratios of JSON."""
    path = tmp_path / "a.coll"
    path.write_text("collective c = allreduce on dgx_a100(2);\ncollective d = allgather on dgx_a100(2);\n")
    words = ("cost", str(path), "--baselines", "--size", "1KiB,64MiB")
    expected = [
        (one["name"], point["size_bytes"], name, using, time, ratio, int(name == point["best"]))
        for one in json.loads(collc(*words, "--json").out)["collectives"]
        for point in one["baselines"]["points"]
        for name, using, time, ratio in [
            ("collc", point["algorithm"], point["time_us"], 1.0),
            *((b["name"], b["using"], b["time_us"], b["ratio"]) for b in point["baselines"]),
        ]
    ]
    rows = lines(collc(*words, "--csv").out)
    assert expected == [
        (row["name"], int(row["size_bytes"]), row["algorithm"], row["using"], float(row["time_us"]),
         float(row["ratio"]), int(row["best"]))
        for row in rows
    ]  # fmt: skip
    assert len(expected) > 8 and 4 == sum(row["best"] == "1" for row in rows)
    assert set(rows[0]) == {column.key for column in TABLES["cost --baselines"]}
    assert collc(*words, "--markdown").out.count("\n") == len(rows) + 2


@pytest.mark.parametrize(
    "words", [("find", "-n", "16", "-d", "4"), ("passes",), ("schedulers", "bfb"), ("topologies",), ("explain",),
              ("targets",), ("formats",), ("schema",), ("explain", "C0301"), ("formats", "coll")]
)  # fmt: skip
def test_every_table_has_both_forms(collc: Any, words: tuple[str, ...]) -> None:  # Any: as above
    rows = lines(collc(*words, "--csv").out)
    markdown = collc(*words, "--markdown").out.splitlines()
    assert rows and len(markdown) == len(rows) + 2 and all(line[0] == line[-1] == "|" for line in markdown)


def test_files_stand_beside_what_is_printed(collc: Any, two: str, tmp_path: Path) -> None:  # Any: as above
    plain = collc("cost", two).out
    ran = collc("cost", two, f"--csv={tmp_path}/a.csv", f"--markdown={tmp_path}/a.md")
    assert ran.out == plain
    assert (tmp_path / "a.csv").read_text() == collc("cost", two, "--csv").out
    assert (tmp_path / "a.md").read_text() == collc("cost", two, "--markdown", f"--csv={tmp_path}/b.csv").out


@pytest.mark.parametrize(
    "words", [("--csv", "--json"), ("--csv", "--markdown"), ("--json", "--markdown"), ("--csv=-", "--json")]
)
def test_standard_output_takes_one_form(collc: Any, two: str, words: tuple[str, ...]) -> None:  # Any: as above
    ran = collc("cost", two, *words)
    assert ran.status == 2 and ran.out == "" and "takes one form" in ran.err and "=FILE" in ran.err


def test_a_place_that_cannot_be_written_is_named_before_any_work(collc: Any, two: str) -> None:  # Any: as above
    ran = collc("cost", two, "--csv=/nowhere/at/all.csv")
    assert ran.status != 0 and ran.out == "" and "/nowhere/at" in ran.err
    ran = collc("cost", two, f"--csv={two}")
    assert ran.status != 0 and Path(two).read_text() == TWO


def test_a_reader_that_stops_early_gets_no_complaint(two: str) -> None:
    command = f"{sys.executable} -m collc passes --csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "name,summary\n" and done.stderr == ""
