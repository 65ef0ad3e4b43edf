"""``collc cache``: what the caches hold is listed, checked and removed, and nothing else is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import RING, Ran
from launches import SPEC, Site, site

from collc.files.caches import Item, items, launch_folder, parts

__all__ = ["site"]


@pytest.fixture
def filled(site: Site) -> Site:
    """A cache with a launch of MPI, one of MSCCL, and compiled files."""
    assert site.compiles() and site.compiles("--runtime=rccl", program="app")
    Path("ring.coll").write_text(RING)
    assert site.collc("ring.coll", "-t", "msccl-xml", f"--cache={site.cache}").status == 0
    return site


def asked(site: Site, action: str) -> tuple[int, Any]:  # Any: JSON
    ran = site.collc("cache", action, "--json", f"--cache={site.cache}")
    return ran.status, json.loads(ran.out)


def entries(site: Site, action: str = "info") -> dict[str, int]:
    return {part["name"]: part["entries"] for part in asked(site, action)[1]["parts"]}


ONE_EACH = {"results": 1, "launches": 2, "libraries": 1, "files": 1, "tuned": 0}


def test_the_parts_are_counted(filled: Site) -> None:
    status, found = asked(filled, "info")
    assert status == 0 and entries(filled) == ONE_EACH and "items" not in found
    assert (found["folder"], found["entries"]) == (str(filled.cache), 1)
    assert found["parts"][2]["folder"] == f"{filled.cache}/interpose" and found["parts"][2]["most_bytes"] is None
    assert found["parts"][2]["bytes"] == sum(path.stat().st_size for path in filled.library.parent.iterdir())
    text = filled.collc("cache", f"--cache={filled.cache}").out
    assert "entries  1\n" in text and text.splitlines()[-3].split()[:2] == ["libraries", "1"]


def test_entries_are_listed(filled: Site) -> None:
    status, found = asked(filled, "list")
    listed = [(item["part"], item["names"]) for item in found["items"]]
    assert status == 0 and listed == [
        ("results", []), ("launches", ["net.coll"]), ("launches", ["net.coll"]),
        ("libraries", ["collc_net.mpich.so"]), ("files", ["sums.xml"]),
    ]  # fmt: skip
    assert all(Path(item["path"]).exists() and item["bytes"] > 0 and "state" not in item for item in found["items"])
    text = filled.collc("cache", "list", f"--cache={filled.cache}").out
    assert text.startswith("part") and text.count("\n") == 6 and "net.coll" in text
    assert filled.collc("cache", "list", f"--cache={filled.folder}/none").out == "no entries\n"


def states(site: Site) -> tuple[int, list[tuple[str, str]]]:
    status, found = asked(site, "check")
    return status, [(item["part"], item["state"]) for item in found["items"] if item["state"] != "whole"]


def test_whole_entries(filled: Site) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.cache.rglob("*")}
    assert states(filled) == (0, [])
    assert filled.collc("cache", "check", f"--cache={filled.cache}").out == "checked 5 entries: all are whole\n"
    assert before == {path: path.stat().st_mtime_ns for path in filled.cache.rglob("*")}, "a check is no use"


def test_entries_of_changed_files_are_stale(filled: Site) -> None:
    filled.spec.write_text(SPEC + "# more\n")
    assert states(filled) == (0, [("launches", "stale")] * 2)
    text = filled.collc("cache", "check", f"--cache={filled.cache}").out
    assert text.count("a file that it came from has changed") == 2
    assert text.endswith("checked 5 entries: collc makes 2 entries again when needed\n")


def damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def opened(path: Path) -> None:
    path.parent.chmod(0o777)


@pytest.mark.parametrize("damage", [damaged, opened])
@pytest.mark.parametrize("part", [name for name, number in ONE_EACH.items() if number])
def test_wrong_entries(part: str, damage: Callable[[Path], None], filled: Site) -> None:
    pattern = {
        "results": "*.json",
        "launches": "launches/*.json",
        "libraries": "interpose/*/*.so",
        "files": "files/*/*",
    }
    paths = sorted(filled.cache.glob(pattern[part]))
    damage(paths[0])
    status, found = states(filled)
    assert status == 1 and (part, "wrong") in found
    if part in ("libraries", "files"):
        assert ("launches", "wrong") in found, "it needs them"
    if damage is damaged:
        ran = filled.collc("cache", "check", f"--cache={filled.cache}")
        assert ran.status == 1 and f"wrong  {part}" in ran.out and str(filled.cache) in ran.out


def test_clearing_removes_entries_and_nothing_else(filled: Site) -> None:
    mine = [
        filled.cache / "notes.txt", filled.cache / "files" / "mine" / "a.xml", filled.cache / "interpose" / "b.so",
        filled.library.parent / "c.txt",
    ]  # fmt: skip
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    size = sum(part["bytes"] for part in asked(filled, "info")[1]["parts"])
    assert entries(filled, "clear") == ONE_EACH and size > 0
    assert set(entries(filled).values()) == {0}
    assert sorted(path for path in filled.cache.rglob("*") if path.is_file()) == sorted(mine)
    assert filled.compiles()
    assert filled.collc("cache", "clear", f"--cache={filled.cache}").out.startswith("removed 2 entries, ")


def test_an_unknown_action(collc: Callable[..., Ran]) -> None:
    ran = collc("cache", "chek")
    assert ran.status == 2 and "info, list, check, times or clear, found `chek`" in ran.err and "`check`" in ran.err


def test_folders_follow_the_environment() -> None:
    assert launch_folder({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == "/x/collc"
    assert launch_folder({"HOME": "/h"}) == "/h/.cache/collc"
    folders = {part.name: part.folder for part in parts(None, {"XDG_CACHE_HOME": "/x"})}
    assert folders["launches"] == "/x/collc/launches" and os.path.basename(folders["results"]) == "results"
    assert all(folder.startswith("/y") for folder in (part.folder for part in parts("/y", {})))


def test_a_missing_folder_has_no_entries(tmp_path: Path) -> None:
    found: list[Item] = [item for part in parts(str(tmp_path / "none"), {}) for item in items(part)]
    assert found == []


def test_times_of_launches(filled: Site) -> None:
    folder = filled.cache / "tuned"
    folder.mkdir(mode=0o700)
    file = folder / f"{'0' * 32}.tsv"
    file.write_text("allreduce\t4\t1\t64\t1.000\t2.000\n")
    file.chmod(0o600)
    assert entries(filled)["tuned"] == 1 and states(filled) == (0, [])
    file.write_text("allreduce\t4\t1\t64\t1.000\n")
    assert states(filled) == (1, [("tuned", "wrong")])
    assert filled.collc("cache", "clear", f"--cache={filled.cache}").status == 0
    assert not file.exists()
