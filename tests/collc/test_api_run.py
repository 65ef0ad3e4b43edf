"""``collc.run``: the command's run as a function."""

from __future__ import annotations

import csv
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from commands import Ran
from oneccl_files import VALID

import collc as api
from collc.backends.measured import Row, RunResult
from collc.backends.mpi_c.toolchain import Mpi
from collc.cli.verbs import VERBS
from collc.tables.listed import RUN

TIMED = """topology t = hypercube(2) with { bandwidth: 1 Gbps, latency: 2 us };
collective g = allreduce on t;
collective h = allgather on t;
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "a.coll"
    path.write_text(TIMED)
    return path


@pytest.mark.needs("mpi")
def test_a_run_checks_times_predicts_and_reports(spec: Path, mpich: Mpi) -> None:
    said = list[str]()
    found = api.run(
        spec, sizes=["4KiB", 64], counts=7, dtypes="int32", places="out", repeats=3, compare=True, mpi=mpich.folder,
        progress=lambda what, done, total: said.append(what),
    )  # fmt: skip
    assert found.ok and repr(found) == f"Run(6 calls on {mpich}, all correct)"
    assert [(row.name, row.count, row.bytes) for row in found.rows] == [
        ("g", 7, 28), ("g", 1024, 4096), ("g", 16, 64), ("h", 7, 112), ("h", 256, 4096), ("h", 4, 64),
    ]  # fmt: skip
    for row in found.rows:
        assert len(row.times) == len(row.builtin_times) == 3 and (row.dtype, row.in_place) == ("int32", False)
        assert row.model is not None and row.bound is not None and 0 < row.bound <= row.model
    assert [column.key for column in found.table.columns] == [column.key for column in RUN]
    assert [row["on"] for row in found.table.rows] == [str(mpich)] * 6
    assert any("building and running on 4 ranks" in what for what in said)
    found.require()


@pytest.mark.needs("mpi")
def test_the_function_makes_the_calls_of_the_command(
    collc: Callable[..., Ran], spec: Path, mpich: Mpi
) -> None:  # the fixture `collc` runs the command
    words = ("--collective", "h", "--repeat", "1", "--mpi", str(mpich.folder), "--csv")
    rows = list(csv.DictReader(collc("run", str(spec), *words).out.splitlines()))
    found = api.run(spec, collective="h", repeats=1, mpi=mpich.folder)
    keys = ("name", "collective", "ranks", "count", "size_bytes", "dtype", "op")
    assert [[row[key] for key in keys] for row in rows] == [[str(row[key]) for key in keys] for row in found.table.rows]
    assert len(rows) == len(found.rows) > 0


@pytest.mark.needs("mpi")
def test_a_file_of_another_tool_runs_in_its_arrangement(tmp_path: Path, mpich: Mpi) -> None:
    (tmp_path / "halves.xml").write_text(VALID)
    found = api.run(tmp_path / "halves.xml", counts=[0, 5], repeats=1, mpi=mpich.folder)
    assert found.ok and {row.count for row in found.rows} == {0, 5} and found.results[0].ranks == 2


def test_wrong_elements_do_not_raise_before_they_are_required() -> None:
    right = Row("a", "allreduce", 2, 8, 64, "int32", "sum", False, (1e-6,))
    parts = [RunResult("MPI", 2, (right, attrs.evolve(right, detail=text)), "C0708") for text in ("rank 0", "rank 1")]
    found = api.Run(tuple(parts))
    assert not found.ok and repr(found) == "Run(4 calls on MPI, 2 wrong)"
    with pytest.raises(api.CollcError) as caught:
        found.require()
    assert [one.code for one in caught.value.diagnostics] == ["C0708"] * 2
    assert [text in str(one) for one, text in zip(caught.value.diagnostics, ("rank 0", "rank 1"), strict=True)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"places": "up"}, "C0001"), ({"delay": "1ms"}, "C0001"), ({"counts": -1}, "C0030"), ({"sizes": "x"}, None),
        ({"collective": "x"}, "C0016"), ({"level": 9}, "C0001"), ({"mpi": "/nowhere"}, "C0701"),
    ],
)  # fmt: skip
def test_wrong_options_are_errors_of_collc(spec: Path, options: dict[str, Any], code: str | None) -> None:
    with pytest.raises(api.CollcError) as caught:
        api.run(spec, **options)
    assert code is None or caught.value.diagnostics[0].code == code


def test_a_run_ends_when_the_caller_cancels(spec: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(api.Cancelled):
        api.run(spec, cancel=cancel)


#: options of the command that choose a runtime or forms of output, or that belong to a process
COMMAND_ONLY = {"--target", "--ranks", "--mpi-env", "--oneccl", "--tune"}


def test_the_function_has_every_option_of_the_group_run() -> None:
    """Under the same name, or its plural."""
    known = inspect.signature(api.run).parameters
    group = next(group for title, group in VERBS["run"].groups if title == "Run")
    names = {max(opt.names, key=len) for opt in group} - COMMAND_ONLY
    missing = [name for name in names if not {name[2:], f"{name[2:]}s"} & set(known)]
    assert names and missing == []
