"""Texts that hold while files are as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from collc.files.derived import Origins, keep, kept, names_read, state_of
from collc.files.store import Store, digest, opened
from collc.files.surroundings import digest_of_tree, surroundings
from collc.files.trust import make_folder, write_privately

KEY = digest("key")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return opened(str(tmp_path / "store"))


def state(store: Store, tmp_path: Path) -> str:
    text = store.read(KEY)
    assert text is not None
    found = state_of(text, KEY, str(tmp_path))
    assert (kept(store, KEY, str(tmp_path)) is not None) == (found == "whole")
    return found


def test_a_text_is_read_as_it_was_written(store: Store, tmp_path: Path) -> None:
    assert kept(store, KEY, str(tmp_path)) is None
    assert keep(store, KEY, "é\n", Origins()) and kept(store, KEY, str(tmp_path)) == "é\n"
    assert state_of(store.read(KEY) or "", digest("other"), str(tmp_path)) == "wrong"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb", "a\nb"),
        (b"\xef\xbb\xbfa", "a"),
        (b"\xef\xbb\xbfa", "\ufeffa"),
        (b"<\xe9>", "<é>"),
        (b"a\r\n", "a\r\n"),
    ],
)
def test_texts_are_compared_as_they_are_read(data: bytes, text: str, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.coll"
    path.write_bytes(data)
    assert keep(store, KEY, "", Origins({str(path): text})) and state(store, tmp_path) == "whole"
    assert names_read(store.read(KEY) or "") == ("a.coll",)
    path.write_bytes(data + b" ")
    assert state(store, tmp_path) == "stale"
    assert not keep(store, KEY, "", Origins({str(path): text})), "it has another text now"
    path.unlink()
    assert state(store, tmp_path) == "stale" and not keep(store, KEY, "", Origins({str(path): text}))


def test_files_that_appear_and_code_that_changes(store: Store, tmp_path: Path) -> None:
    code, absent = tmp_path / "code", tmp_path / "absent"
    (code / "deep").mkdir(parents=True)
    (code / "deep" / "a.py").write_text("1")
    assert keep(store, KEY, "", Origins(absent=[str(absent)], trees=[str(code)]))
    assert state(store, tmp_path) == "whole"
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "a.pyc").write_text("1")
    assert state(store, tmp_path) == "whole"
    absent.mkdir()
    assert state(store, tmp_path) == "stale"
    absent.rmdir()
    (code / "deep" / "a.py").write_text("22")
    assert state(store, tmp_path) == "stale"


def test_files_that_collc_made(store: Store, tmp_path: Path) -> None:
    path = Path(make_folder(str(tmp_path), "made"), "a.so")
    assert not keep(store, KEY, "", Origins(outputs=[str(path)]))
    write_privately(str(path), b"library")
    assert keep(store, KEY, "", Origins(outputs=[str(path)])) and state(store, tmp_path) == "whole"
    path.chmod(0o622)
    assert state(store, tmp_path) == "wrong"
    path.chmod(0o600)
    path.write_bytes(b"other")
    assert state(store, tmp_path) == "wrong"


def test_states_of_code(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    first, missing = digest_of_tree(str(path)), digest_of_tree(str(tmp_path / "none"))
    path.write_text("22")
    assert len({first, missing, digest_of_tree(str(path)), digest_of_tree(str(tmp_path))}) == 4
    assert surroundings() == surroundings()


def test_looking_is_no_use(store: Store, tmp_path: Path) -> None:
    keep(store, KEY, "", Origins())
    entry = Path(store.folder, f"{KEY}.json")
    before = entry.stat().st_mtime_ns
    store.read(KEY, uses=False)
    assert entry.stat().st_mtime_ns == before
    store.read(KEY)
    assert entry.stat().st_mtime_ns > before
