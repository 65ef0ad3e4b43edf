"""Files that are timed against oneCCL's own collectives: the faster one carries out the calls of a class of sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from oneccl_files import VALID, WRONG, broken
from oneccl_runs import executor, oneccl

from collc.backends.oneccl_xml.run import execute
from collc.files.tuned import read_tuned
from collc.ir.diagnostic import CollcError

__all__ = ["executor", "oneccl"]

pytestmark = pytest.mark.needs("oneccl")

_WRONG = broken(WRONG["nothing added"])  # its results tell it from oneCCL's own
_LINE = "allreduce\t{}\t1\t{}\t{:.3f}\t{:.3f}\n"


def run(executor: Path, text: str, times: Path, counts: tuple[int, ...] = (1000,), **options: object) -> None:
    file = times.parent / "file.xml"
    file.write_text(text)
    rows = execute(executor, [file], counts=counts, times=[times], **options)  # type: ignore[arg-type]
    assert rows and all(row.exact for row in rows)


def is_wrong(executor: Path, times: Path, counts: tuple[int, ...] = (1000,), **options: object) -> bool:
    """Return whether the file carries out a call, by its wrong results."""
    try:
        run(executor, _WRONG, times, counts, **options)
    except CollcError as found:
        assert found.diagnostics[0].code == "C0763"
        return True
    return False


def test_each_class_is_timed_once(executor: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    times = tmp_path / "times.tsv"
    run(executor, VALID, times, (0, 1, 2, 1000, 1024), repeats=2)
    rows = read_tuned(str(times), str(tmp_path))
    assert [(row.kind, row.ranks, row.nodes, row.size) for row in rows] == [
        ("allreduce", 2, 1, 4), ("allreduce", 2, 1, 8), ("allreduce", 2, 1, 4096),
    ]  # fmt: skip
    assert all(row.built_in > 0 and row.compiled > 0 for row in rows)
    before = times.read_text()
    assert len(before.splitlines()) == 3
    run(executor, VALID, times, (1, 2, 1000, 1024))
    assert times.read_text() == before
    run(executor, VALID, times, (16,))
    assert times.read_text().startswith(before) and len(times.read_text().splitlines()) == 4


@pytest.mark.parametrize(("ours", "used"), [(2.0, False), (0.5, True), (1.0, True)])
def test_the_faster_one_is_used(executor: Path, tmp_path: Path, ours: float, used: bool) -> None:
    times = tmp_path / "times.tsv"
    times.write_text(_LINE.format(2, 4096, 1.0, ours))
    assert is_wrong(executor, times) is used


@pytest.mark.parametrize(
    "line",
    [_LINE.format(3, 4096, 1.0, 2.0), _LINE.format(2, 8192, 1.0, 2.0), _LINE.format(2, 4096, 0.0, 2.0),
     _LINE.format(2, 4096, 1.0, 2.0).replace("allreduce", "allgather"), "\x00\xff", "allreduce\t2\n", "x" * 100_000],
)  # fmt: skip
def test_other_lines_say_nothing(executor: Path, tmp_path: Path, line: str) -> None:
    """The class is timed in spite of them; whichever is faster, the line of the class comes after them."""
    times = tmp_path / "times.tsv"
    times.write_text(line, encoding="latin-1")
    run(executor, VALID, times)
    written = times.read_text(encoding="latin-1")
    assert written.startswith(line) and "allreduce\t2\t1\t4096\t" in written[len(line) :]


@pytest.mark.parametrize("options", [{"dtypes": ("int8",)}, {"dtypes": ("float16",)}], ids=["int8", "float16"])
def test_types_that_oneccl_may_not_add_are_left_to_the_file(
    executor: Path, tmp_path: Path, options: dict[str, object]
) -> None:
    times = tmp_path / "times.tsv"
    times.write_text("".join(_LINE.format(2, 1 << n, 1.0, 2.0) for n in range(27)))
    assert is_wrong(executor, times, **options) and not is_wrong(executor, times)


def test_a_file_that_cannot_be_written_is_no_hindrance(executor: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    run(executor, VALID, tmp_path / "here")  # a folder
