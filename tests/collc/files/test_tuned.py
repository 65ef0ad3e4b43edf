"""The file of times: what it says, and that nothing wrong in it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from collc.files.tuned import Timed, is_tuned_file, read_tuned, tuned_path

pytestmark = pytest.mark.quick

GOOD = "allreduce\t4\t1\t64\t1.000\t2.000\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "library.so").write_bytes(b"x")
    tmp_path.chmod(0o700)
    return Path(tuned_path(str(tmp_path), str(tmp_path / "library.so")))


def test_the_last_line_of_equal_calls_counts(path: Path, tmp_path: Path) -> None:
    path.write_text(GOOD + "allgather\t4\t2\t8\t3.000\t2.500\n" + GOOD.replace("2.000", "0.500"))
    rows = read_tuned(str(path), str(tmp_path))
    assert rows == [Timed("allgather", 4, 2, 8, 3.0, 2.5), Timed("allreduce", 4, 1, 64, 1.0, 0.5)]
    assert [row.is_compiled for row in rows] == [True, True]
    assert is_tuned_file(str(path), str(tmp_path))


def test_equal_times_are_those_of_the_compiled_one() -> None:
    assert Timed("allreduce", 4, 1, 8, 1.0, 1.0).is_compiled
    assert not Timed("allreduce", 4, 1, 8, 1.0, 1.001).is_compiled


@pytest.mark.parametrize(
    "text", ["", "x\n", GOOD + "allreduce\t4\n", GOOD.replace("1.000", "nan"), "\xff\x00", "-" * 2**21]
)
def test_other_texts_are_wrong(text: str, path: Path, tmp_path: Path) -> None:
    path.write_text(text, encoding="latin-1")
    assert not is_tuned_file(str(path), str(tmp_path))
    assert read_tuned(str(path), str(tmp_path)) == (
        [Timed("allreduce", 4, 1, 64, 1.0, 2.0)] if text.startswith(GOOD) else []
    )


def test_what_others_can_write_is_not_read(path: Path, tmp_path: Path) -> None:
    path.write_text(GOOD)
    path.chmod(0o666)
    assert not is_tuned_file(str(path), str(tmp_path)) and read_tuned(str(path), str(tmp_path)) == []


def test_another_library_has_another_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "library.so").write_bytes(b"y")
    assert Path(tuned_path(str(tmp_path), str(tmp_path / "library.so"))) != path
    assert path.parent.stat().st_mode & 0o777 == 0o700
