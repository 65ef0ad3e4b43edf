"""`--csv` and `--markdown`: on standard output, in files, with everything else that a verb prints."""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from collc.cli.verbs import VERBS
from collc.tables.every import TABLES

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
    path.write_text(
        "collective c = allreduce on leaf_spine(3, 2, 2);\ncollective d = allgather on leaf_spine(3, 2, 2);\n"
    )
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


@pytest.mark.parametrize(
    ("words", "name"),
    [(("verify", "two.coll"), "verify"), (("cache", "--cache=kept"), "cache"),
     (("cache", "list", "--cache=kept"), "cache list"), (("cache", "check", "--cache=kept"), "cache list"),
     (("replan", "two.coll", "--without", "0 <-> 1"), "replan"),
     (("replan", "two.coll", "--without", "0 <-> 1", "--size", "1KiB,1MiB"), "replan"),
     (("replan", "one.coll", "--each-fault", "faults/", "-t", "ir{level=schedule}"), "replan --each-fault"),
     (("sweep", "biring(4)", "--collective", "allgather", "-j1", "--using", "bfb"), "sweep")],
)  # fmt: skip
def test_tables_have_the_declared_columns(
    collc: Any, two: str, words: tuple[str, ...], name: str
) -> None:  # Any: as above
    """In every form; the text beside files is as without them, and JSON is there too."""
    Path("one.coll").write_text("collective c = allgather on biring(4);\nschedule c using forest;\n")
    assert 0 == collc("one.coll", "-t", "mpi-c", "-o", "one.c", "--cache=kept").status
    text = collc(*words).out
    ran = collc(*words, "--csv")
    rows = lines(ran.out)
    assert 0 == ran.status and rows and set(rows[0]) == {column.key for column in TABLES[name]}
    markdown = collc(*words, "--markdown").out.splitlines()
    assert len(markdown) == len(rows) + 2 and all(line[0] == line[-1] == "|" for line in markdown)
    beside = collc(*words, "--csv=a.csv", "--markdown=a.md")
    assert text.splitlines()[0] == beside.out.splitlines()[0]
    assert Path("a.csv").read_text() == ran.out and Path("a.md").read_text().splitlines() == markdown
    assert isinstance(json.loads(collc(*words, "--json").out), dict)
    assert 2 == collc(*words, "--csv", "--json").status


def test_rows_of_verify_and_replan_are_those_of_json(collc: Any, two: str) -> None:  # Any: as above
    checks = [
        (one["name"], check["name"], check["ok"])
        for one in json.loads(collc("verify", two, "--json").out)["collectives"] for check in one["checks"]
    ]  # fmt: skip
    rows = lines(collc("verify", two, "--csv").out)
    assert checks == [(row["name"], row["check"], row["ok"] == "1") for row in rows]
    words = ("replan", two, "--without", "0 <-> 1", "--size", "1KiB,1MiB")
    expected = [
        (one["name"], one["times_healthy"], point["size_bytes"], point["time_us"])
        for one in json.loads(collc(*words, "--json").out)["collectives"] for point in one["points"]
    ]  # fmt: skip
    found = lines(collc(*words, "--csv").out)
    assert expected == [(r["name"], r["times_healthy"], int(r["size_bytes"]), float(r["time_us"])) for r in found]


def test_a_check_that_fails_is_in_the_table(collc: Any) -> None:  # Any: as above
    Path("one.coll").write_text(
        "topology t = biring(3); collective c = allgather on t;\n"
        "schedule c using steps { at 0: send shard 0 from 0 to 1; }\n"
    )
    ran = collc("verify", "one.coll", "--csv")
    assert 1 == ran.status and ("0" in [row["ok"] for row in lines(ran.out)] or "C0" in ran.err)


def test_times_of_passes_are_written_as_csv(collc: Any, two: str) -> None:  # Any: as above
    plain = collc(two, "-t", "ir", "-o", "a/", "--time-passes")
    ran = collc(two, "-t", "ir", "-o", "b/", "--time-passes=times.csv")
    assert (0, "") == (ran.status, ran.err) and "seconds" in plain.err
    rows = lines(Path("times.csv").read_text())
    assert {"grads", "params"} == {row["name"] for row in rows}
    assert plain.err.count("\n") == len(rows) + 2 and abs(sum(float(row["share"]) for row in rows) - 1) < 1e-6
    for verb in ("explore", "report"):
        ran = collc(verb, two, "-o", f"{verb}.html", f"--time-passes={verb}.csv")
        assert (0, "") == (ran.status, ran.err) and lines(Path(f"{verb}.csv").read_text())
    assert 0 != collc(two, "-t", "ir", "-o", "c/", "--time-passes=/nowhere/at/all.csv").status
    assert not Path("c").exists()


# ---- every verb

CLI = ROOT / "collc" / "cli"
#: verbs that print a table without these options -> where else the table is
ELSEWHERE = {
    "explore": "--time-passes=FILE",
    "launch": "`collc cache times` prints what `--tune` timed",
}


def modules_of(module: str, seen: set[str] | None = None) -> set[str]:
    """Return a module of the command and those of the command that it imports."""
    seen = set() if seen is None else seen
    if module not in seen and (CLI / f"{module}.py").exists():
        seen.add(module)
        for node in ast.walk(ast.parse((CLI / f"{module}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                for name in [node.module] if node.module else [alias.name for alias in node.names]:
                    modules_of(name, seen)
    return seen


def prints_tables(module: str) -> bool:
    """Whether a module of the command, or one that it imports, lays out a table as text."""
    return any(
        re.search(r"^\s*from \.table import", (CLI / f"{one}.py").read_text(), re.M) for one in modules_of(module)
    )


def without_forms() -> set[str]:
    """The verbs that print a table and lack one of the options."""
    found = set()
    for verb in VERBS.values():
        names = {name for _, group in verb.groups for opt in group for name in opt.names}
        if prints_tables(verb.module) and not {"--csv", "--markdown", "--json"} <= names:
            found.add(verb.name)
    return found


def test_every_verb_with_a_table_has_all_forms() -> None:
    assert set(ELSEWHERE) == without_forms()
    assert {"cost", "verify", "cache", "replan", "run", "sweep"} <= {
        v.name for v in VERBS.values() if prints_tables(v.module)
    }


def test_a_verb_without_the_options_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    verb = VERBS["cache"]
    groups = tuple((title, tuple(o for o in group if o.names != ("--csv",))) for title, group in verb.groups)
    monkeypatch.setitem(VERBS, "cache", verb._replace(groups=groups))
    assert "cache" in without_forms()


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
