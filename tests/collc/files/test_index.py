"""The index of a folder of plans: entries of earlier runs count if input and files are the same, whatever the times."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from collc.files.index import INDEX, Index
from collc.files.texts import Output

KEYS = [("c", "without", "0", ""), ("c", "slow", "0 <-> 1", "1/2")]
HEAD: dict[str, object] = {"schema": 1, "collectives": ["c"]}


def entry(place: int) -> dict[str, object]:
    collective, kind, where, rate = KEYS[place]
    return {"collective": collective, "kind": kind, "where": where, "rate": rate or None, "files": [f"{place}.xml"]}


def opened(folder: Path, given: str = "in") -> Index:
    return Index.opened(f"{folder}/", HEAD, given, KEYS)


def add(index: Index, folder: Path, place: int, text: str = "plan") -> None:
    index.add(KEYS[place], [Output(str(folder / f"{place}.xml"), text)], entry(place))


def test_a_run_goes_on_where_another_was_interrupted(tmp_path: Path) -> None:
    add(opened(tmp_path), tmp_path, 1)
    assert json.loads((tmp_path / INDEX).read_text())["complete"] is False
    again = opened(tmp_path)
    assert not again.keeps(KEYS[0]) and again.keeps(KEYS[1]) and again.kept == 1
    add(again, tmp_path, 0)
    document = json.loads((tmp_path / INDEX).read_text())
    assert document["complete"] is True
    assert [one["where"] for one in document["faults"]] == ["0", "0 <-> 1"]


@pytest.mark.parametrize("damage", ["input", "content", "missing", "unknown"])
def test_a_file_that_may_be_another_is_compiled_again(tmp_path: Path, damage: str) -> None:
    add(opened(tmp_path, "" if damage == "unknown" else "in"), tmp_path, 0)
    path, times = tmp_path / "0.xml", (tmp_path / "0.xml").stat()
    if damage == "content":
        path.write_text("plan!")
        os.utime(path, (times.st_atime, times.st_mtime))
    elif damage == "missing":
        path.unlink()
    given = {"input": "other", "unknown": ""}.get(damage, "in")
    assert not opened(tmp_path, given).keeps(KEYS[0])


def test_times_do_not_matter(tmp_path: Path) -> None:
    add(opened(tmp_path), tmp_path, 0)
    os.utime(tmp_path / "0.xml", (1, 1))
    assert opened(tmp_path).keeps(KEYS[0])


def test_entries_of_other_inputs_are_not_in_the_index(tmp_path: Path) -> None:
    add(opened(tmp_path, "old"), tmp_path, 0)
    add(opened(tmp_path, "new"), tmp_path, 1)
    assert [one["where"] for one in json.loads((tmp_path / INDEX).read_text())["faults"]] == ["0 <-> 1"]


def test_a_plan_that_is_no_longer_there_is_removed_unless_somebody_changed_it(tmp_path: Path) -> None:
    for text, stays in (("plan", False), ("mine", True)):
        add(opened(tmp_path, "old"), tmp_path, 0)
        (tmp_path / "0.xml").write_text(text)
        opened(tmp_path, "new").add(KEYS[0], [], {**entry(0), "files": [], "reason": "too large"})
        assert (tmp_path / "0.xml").exists() == stays


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"faults": 3}', '{"faults": [{}]}', '{"faults": [null]}',
                                  '{"schema": 9}', "\udcff"])  # fmt: skip
def test_another_file_in_its_place_has_no_entries(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert opened(tmp_path).before == {}


def test_files_of_other_folders_are_not_looked_at(tmp_path: Path) -> None:
    index = opened(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("x")
    index.before[KEYS[0]] = {**entry(0), "files": ["../outside"], "sha256": ["0"], "input": "in"}
    assert not index.keeps(KEYS[0])
