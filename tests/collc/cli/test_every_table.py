"""Every table of the command: its CSV has the declared columns and a row for every entry of the list in JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from nccl_logs import nccl_log

import collc as api
from collc.cli.verbs import VERBS
from collc.tables.every import TABLES

Collc = Callable[..., Ran]
SIZES = [2**k for k in range(3, 31, 3)]
Json = Any  # what `json.loads` returns

FILES = {
    "two.coll": "topology t = torus(3, 3); collective c = allreduce on t;\n"
    "collective d = allgather on t { size: 1 MiB }; schedule c using ring; schedule d using forest;\n",
    "roots.coll": "collective r = broadcast on mesh(3) { root: all }; schedule r using forest;\n",
    "range.coll": "collective a = allgather on biring(6); schedule a using auto { sizes: 1 KiB..16 MiB };\n",
    "at-once.coll": "topology t = biring(6);\n"
    "together { collective g = allgather on t among {0, 1, 2}; collective h = allgather on t among {3, 4, 5}; }\n"
    "schedule g using forest; schedule h using forest;\n",
    "cross.coll": "topology t = biring(8); collective a = allreduce on t; collective b = allreduce on t;\n"
    "schedule a using ring; schedule b using recursive-doubling;\n",
    "rack.conf": "SwitchName=leaf Nodes=n[1-4]\n",
    "times.csv": "bytes,seconds,steps,load\n1024,4e-5,4,2\n1048576,2.3e-4,4,2\n16777216,3e-3,4,2\n",
}  # fmt: skip


def each(found: Json, *keys: str) -> Iterator[Json]:
    """Yield what stands at a path of keys, through lists."""
    if not keys:
        yield from found if isinstance(found, list) else [found]
    elif isinstance(found, list):
        for one in found:
            yield from each(one, *keys)
    elif keys[0] in found:
        yield from each(found[keys[0]], *keys[1:])


def of_schedules(*keys: str) -> Callable[[Json], list[Json]]:
    """Return what counts the entries of every schedule: of a range of sizes, those of each algorithm."""

    def count(found: Json) -> list[Json]:
        objects = found.get("collectives", [found])
        return [row for one in objects for part in one.get("algorithms", [one]) for row in each(part, *keys)]

    return count


def of_collectives(*keys: str) -> Callable[[Json], list[Json]]:
    return lambda found: [row for one in found.get("collectives", [found]) for row in each(one, *keys)]


def at(*keys: str) -> Callable[[Json], list[Json]]:
    return lambda found: list(each(found, *keys))


#: name of the table -> (words, the rows in JSON); the words without `--table` print it with `--csv`
SMALL = ("--size", "1KiB,1MiB")
CASES: dict[str, tuple[tuple[str, ...], Callable[[Json], list[Json]]]] = {
    "check": (("check", "two.coll", "roots.coll"), at("checked")),
    "check --table topologies": (("check", "two.coll", "at-once.coll"), at("checked", "topologies")),
    "check --table collectives": (("check", "two.coll", "roots.coll"), at("checked", "collectives")),
    "import": (("import", "rack.conf", "--tier-bandwidth", "leaf=50GB/s", "-o", "rack.coll"), at("topologies")),
    "import --table imported": (
        ("import", "rack.conf", "--tier-bandwidth", "leaf=50GB/s", "-o", "rack.coll"), at("imported")
    ),
    "compile": (("compile", "two.coll", "-t", "ir", "-o", "out/"), at("outputs")),
    "compile --table programs": (("compile", "two.coll", "-t", "ir", "-o", "out/"), at("collectives", "program")),
    "compile --table auto": (("range.coll", "-t", "ir", "-o", "out/"), at("collectives", "auto", "ranges")),
    "compile --table candidates": (
        ("range.coll", "-t", "ir", "-o", "out/"), at("collectives", "auto", "candidates", "points")
    ),
    "compile --table skipped": (("range.coll", "-t", "ir", "-o", "out/"), at("collectives", "auto", "skipped")),
    "cost": (("cost", "two.coll", *SMALL), of_schedules("points")),
    "cost --table schedules": (("cost", "range.coll"), of_schedules()),
    "cost --table tried": (("cost", "two.coll"), of_schedules("k_tried")),
    "cost --table auto": (("cost", "range.coll"), of_collectives("auto", "ranges")),
    "cost --table candidates": (("cost", "range.coll"), of_collectives("auto", "candidates", "points")),
    "cost --table skipped": (("cost", "range.coll"), of_collectives("auto", "skipped")),
    "cost --table roots": (("cost", "roots.coll", *SMALL), at("roots", "points")),
    "cost --table orbits": (("cost", "roots.coll"), at("roots", "orbits")),
    "cost --table together": (("cost", "at-once.coll"), at("together")),
    "cost --table parts": (("cost", "at-once.coll"), at("together", "parts")),
    "simulate": (("simulate", "two.coll", *SMALL), of_schedules("points")),
    "simulate --table schedules": (("simulate", "two.coll"), of_schedules()),
    "simulate --steps": (("simulate", "two.coll", "--steps"), of_schedules("link_loads")),
    "simulate --table crossovers": (("simulate", "cross.coll", "--size", "1KiB,1GiB"), at("crossovers")),
    "simulate --table roots": (("simulate", "roots.coll", *SMALL), at("roots", "points")),
    "simulate --table orbits": (("simulate", "roots.coll"), at("roots", "orbits")),
    "simulate --table together": (("simulate", "at-once.coll"), at("together")),
    "find": (("find", "-n", "36", "-d", "4"), lambda found: [
        *found["frontier"], *(row for row in found["bidirectional_frontier"] if row not in found["frontier"])
    ]),
    "find --table sizes": (("find", "-n", "16", "-d", "4", *SMALL), at("points")),
    "find --expand-to": (("find", "-n", "8", "-d", "2", "--expand-to", "17"), at("expansions")),
    "find --table places": (("find", "-n", "8", "-d", "2", "--expand-to", "9"), at("recabling", "places")),
    "find --table recabling": (("find", "-n", "8", "-d", "2", "--expand-to", "9"), at("recabling", "cables")),
    "sweep": (("sweep", "biring(4)", "--collective", "allgather", "-j1", "--using", "bfb", "ring"), at("rows")),
    "train": (("train", "gpt2-xl", "--on", "torus(2, 2)", "biring(4)"), at("rows")),
    "train --list": (("train", "--list"), at("workloads")),
    "calibrate": (("calibrate", "times.csv"), at("points")),
    "calibrate --table alphas": (("calibrate", "times.csv"), at("alphas")),
    "calibrate --nccl-tests": (("calibrate", "--nccl-tests", "ring.log", "tree.log"), at("lines")),
    "calibrate --nccl-tests --table choices": (
        ("calibrate", "--nccl-tests", "ring.log", "tree.log"), at("choices", "ranges")
    ),
    "explain": (("explain",), at("codes")), "targets": (("targets",), at("targets")),
    "passes": (("passes",), at("passes")), "schedulers": (("schedulers",), at("schedulers")),
    "formats": (("formats",), lambda found: [*found["formats"], *found["imports"]]),
    "topologies": (("topologies",), lambda found: [*found["topologies"], *found["operators"]]),
    "options": (("passes", "bfb"), at("options")),
    "verify": (("verify", "two.coll"), at("collectives", "checks")),
    "replan": (("replan", "two.coll", "--without", "0 <-> 1", *SMALL), at("collectives", "points")),
    "replan --each-fault": (
        ("replan", "roots.coll", "--each-fault", "faults/", "-t", "ir{level=schedule}"), at("faults")
    ),
    "cache": (("cache", "--cache=kept"), at("parts")), "cache list": (("cache", "list", "--cache=kept"), at("items")),
    "cache times": (("cache", "times", "--cache=kept"), at("times")),
}  # fmt: skip
#: tables whose rows other tests compare with JSON: they need an MPI, take long, or are on standard error
ELSEWHERE = {"run", "cost --baselines", "--time-passes"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an input for every table."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    for name, alpha, beta in (("ring", 40, 10_000), ("tree", 20, 5_000)):
        text = nccl_log(lambda size, alpha=alpha, beta=beta: alpha + size / beta, SIZES, algorithm=name)
        Path(f"{name}.log").write_text(text)
    tuned = Path("kept/tuned")
    for folder in (tuned.parent, tuned):
        folder.mkdir(mode=0o700)
    (tuned / f"{'0' * 32}.tsv").write_text("allreduce\t4\t1\t1024\t10.000\t8.500\n")
    (tuned / f"{'0' * 32}.tsv").chmod(0o600)


def option_of(name: str) -> tuple[str, ...]:
    """The option that chooses a table, if there is one."""
    _, dashes, table = name.partition("--table ")
    return ("--table", table) if dashes else ()


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of CSV; every row has every column."""
    rows = list(csv.DictReader(text.splitlines(), strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    return rows


def test_every_table_has_a_case() -> None:
    assert set(CASES) | ELSEWHERE == set(TABLES)


def test_every_name_of_a_table_has_its_columns() -> None:
    """A verb that takes `--table` declares the columns of each name, once."""
    for verb in VERBS.values():
        names = [name for _, group in verb.groups for opt in group if "--table" in opt.names for name in opt.choices]
        if names and verb.name not in ("convert", "report"):  # they print the tables of `compile`
            declared = [name for name in TABLES if name.split()[0] == verb.name]
            assert len(declared) == len(names), verb.name


#: verbs without `--csv` -> what they print instead of a table
NO_TABLE = {
    "format": "a .coll file", "env": "assignments for a shell, or one JSON object",
    "explore": "a page; its table of times is the file of --time-passes=FILE",
    "launch": "what the launched program prints; `cache times` has the table of --tune",
    "lsp": "messages of the language server's protocol", "completion": "a script for a shell",
}  # fmt: skip


def test_every_verb_has_csv_or_prints_no_table() -> None:
    """A new verb must take `--csv`, or stand in the list with what it prints; its columns must be declared."""
    takes = {verb.name for verb in VERBS.values() if any("--csv" in opt.names for _, g in verb.groups for opt in g)}
    assert takes | set(NO_TABLE) == set(VERBS) and not takes & set(NO_TABLE)
    declared = {name.split()[0] for name in TABLES}
    assert {verb for verb in takes if verb not in declared} == SHARED


#: verbs whose tables are those of another
SHARED = {"convert", "report", "schema"}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", CASES)
def test_csv_has_a_row_for_every_entry_of_json(collc: Collc, name: str) -> None:
    words, count = CASES[name]
    ran = collc(*words, *option_of(name), "--csv")
    assert ran.status == 0, ran.err
    rows = rows_of(ran.out)
    assert ran.out.splitlines()[0].split(",") == [column.key for column in TABLES[name]]
    expected = count(json.loads(collc(*words, "--json").out))
    assert len(rows) == len(expected) > 0
    numbers = {key for key, value in expected[0].items() if key in rows[0] and isinstance(value, (int, float))}
    for row, one in zip(rows, expected, strict=True):
        for key in numbers - {"times_healthy_float"}:  # in a row of `replan` a byte, in a point of JSON at its size
            assert float(row[key] or 0) == float(one[key] or 0), key


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", [name for name in CASES if option_of(name)])
def test_a_table_is_printed_as_text(collc: Collc, name: str) -> None:
    words, _ = CASES[name]
    text, table = (collc(*words, *option_of(name), *more).out for more in ((), ("--csv",)))
    assert len(text.splitlines()) == len(table.splitlines())


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("path", ["two.coll", "roots.coll", "range.coll", "at-once.coll"])
def test_python_returns_the_tables_of_cost(collc: Collc, path: str) -> None:
    """Of the same names, with as many rows; of exact schedules with the same values."""
    result = api.compile(path)
    known = [name for name in TABLES if name.startswith("cost --table ")]
    for name in ("points", *(name.removeprefix("cost --table ") for name in known)):
        rows = rows_of(collc("cost", path, *SMALL, "--table", name, "--csv").out)
        found = result.table(name, ["1KiB", "1MiB"])
        assert [column.key for column in found.columns] == [*(rows[0] if rows else (c.key for c in found.columns))]
        assert len(found) == len(rows), name


@pytest.mark.usefixtures("files")
def test_python_returns_the_steps_of_a_simulation_and_the_fastest_topologies(collc: Collc) -> None:
    steps = rows_of(collc("simulate", "two.coll", "--collective", "c", "--steps", "--csv").out)
    found = api.compile("two.coll", collective="c").simulate("1KiB").table("steps")
    assert [int(row["messages"]) for row in steps] == [row["messages"] for row in found.rows]
    fastest = rows_of(collc(*CASES["find --table sizes"][0], "--table", "sizes", "--csv").out)
    frontier = api.find(nodes=16, degree=4, size="1KiB,1MiB")
    assert [row["best"] for row in fastest] == [row["best"] for row in frontier.table("sizes").rows]
    assert frontier.wanted.size == 1024 and frontier._repr_html_().count("<table") == 2


@pytest.mark.parametrize("kind", ["targets", "passes", "schedulers", "formats", "topologies"])
def test_python_returns_the_listings(collc: Collc, kind: str) -> None:
    rows = rows_of(collc(kind, "--csv").out)
    assert [row["name"] for row in rows] == [row["name"] for row in api.listing(kind).rows]


def test_python_returns_a_training_as_the_command(collc: Collc) -> None:
    words = ("train", "gpt2-xl", "--on", "torus(2, 2)", "biring(4)", "--alpha", "5us", "--buckets", "1MiB,4MiB")
    rows = rows_of(collc(*words, "--csv").out)
    found = api.train("gpt2-xl", ["torus(2, 2)", "biring(4)"], alpha="5us", buckets=["1MiB", "4MiB"])
    assert [row["time_s"] for row in rows] == [str(row["time_s"]) for row in found.table.rows]
    assert [row["topology"] for row in rows if row["best"] == "1"] == [found.best.name]  # type: ignore[union-attr]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "said"),
    [(("cost", "two.coll", "--table", "steps"), "needs one of points"),
     (("cost", "two.coll", "--json", "--table", "auto"), "--json has every table"),
     (("find", "-n", "16", "-d", "4", "--table", "expansions"), "tables are frontier, sizes"),
     (("compile", "two.coll", "-t", "ir", "-o", "-", "--csv"), "both write to standard output"),
     (("convert", "two.coll", "-t", "ir", "-o", "-", "--table", "files"), "both write to standard output")],
)  # fmt: skip
def test_a_table_that_cannot_be_printed_is_an_error(collc: Collc, words: tuple[str, ...], said: str) -> None:
    ran = collc(*words)
    assert (2, "") == (ran.status, ran.out) and said in ran.err


@pytest.mark.parametrize(
    "call",
    [lambda: api.listing("target"), lambda: api.listing("targets", "mpi"), lambda: api.listing("codes", "C0001"),
     lambda: api.train("gpt3", "torus(2)"), lambda: api.find(nodes=9, degree=4).table("x"),
     lambda: api.compile_source("collective c = allgather on biring(3);").table("x")],
)  # fmt: skip
def test_wrong_names_in_python_are_errors_of_collc(call: Callable[[], object]) -> None:
    with pytest.raises(api.CollcError) as found:
        call()
    assert found.value.diagnostics[0].message
