"""Files of finished units: what a killed run leaves, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from collc.files.finished import Finished
from collc.ir.diagnostic import CollcError

UNITS = {"8 nodes": "8 2 7/8\n", "10 nodes": "", "12 nodes": 'r\u00e9sum\u00e9 "quoted"\n'}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "made.units"
    finished = Finished(str(found))
    for unit, result in UNITS.items():
        finished.add(unit, result)
    return found


def test_another_run_has_the_units_of_the_first(path: Path) -> None:
    again = Finished(str(path))
    assert UNITS == {unit: again.get(unit) for unit in UNITS}
    assert again.get("14 nodes") is None
    again.clear()
    assert (False, None) == (path.exists(), again.get("8 nodes"))
    assert Finished(str(path)).known == {}


def test_a_line_that_is_torn_anywhere_is_done_again(path: Path) -> None:
    data = path.read_bytes()
    ends = [place for place, byte in enumerate(data) if byte == 10]
    for length in range(len(data)):
        path.write_bytes(data[:length])
        kept = list(UNITS.items())[: sum(end <= length for end in ends)]  # a line without its end is whole
        torn = Finished(str(path))
        assert torn.known == dict(kept)
        torn.add("14 nodes", "last")
        assert Finished(str(path)).known == {**dict(kept), "14 nodes": "last"}


def test_no_changed_byte_changes_a_result(path: Path) -> None:
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert Finished(str(path)).known.items() < UNITS.items()


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CollcError, match="C0004"):
        Finished(str(tmp_path / "missing" / "made.units")).add("8 nodes", "")
