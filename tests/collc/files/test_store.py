"""The store: what is written is read, anything else is missing, processes and threads share it, its size is bounded."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from collc.files import store as module
from collc.files.store import Contents, Store, default_folder, opened
from collc.ir.diagnostic import CollcError


def key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return opened(str(tmp_path / "new" / "cache"))


def entry(store: Store, name: object) -> Path:
    return Path(store.folder, f"{key(name)}.json")


@pytest.mark.parametrize("text", ["", "a", "\n", "é\n\x00", "\udcff surrogate"])
def test_what_is_written_is_read(store: Store, text: str) -> None:
    assert store.read(key("a")) is None
    assert store.write(key("a"), text)
    assert text == store.read(key("a"))
    assert store.write(key("a"), "other")
    assert "other" == store.read(key("a"))


def test_files_and_folder_are_the_user_s_own(store: Store) -> None:
    store.write(key("a"), "text")
    assert 0o700 == os.stat(store.folder).st_mode & 0o777
    assert 0o600 == entry(store, "a").stat().st_mode & 0o777


@pytest.mark.parametrize("size", [0, 1, 14, 40, 79, 80, 100])
def test_a_truncated_entry_is_missing_and_written_again(store: Store, size: int) -> None:
    store.write(key("a"), "text" * 100)
    path = entry(store, "a")
    path.write_bytes(path.read_bytes()[:size])
    assert store.read(key("a")) is None
    assert store.write(key("a"), "text")
    assert "text" == store.read(key("a"))


def test_every_changed_byte_is_found(store: Store) -> None:
    store.write(key("a"), "text")
    path = entry(store, "a")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert store.read(key("a")) is None, place


def test_a_file_that_others_can_write_is_missing(store: Store) -> None:
    store.write(key("a"), "text")
    entry(store, "a").chmod(0o620)
    assert store.read(key("a")) is None
    entry(store, "a").chmod(0o600)
    assert "text" == store.read(key("a"))


def test_a_link_or_a_folder_is_no_entry(store: Store, tmp_path: Path) -> None:
    store.write(key("a"), "text")
    entry(store, "b").symlink_to(entry(store, "a"))
    entry(store, "c").mkdir()
    os.mkfifo(entry(store, "d"))
    assert [None, None, None] == [store.read(key(name)) for name in "bcd"]


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    for name, mode in (("group", 0o770), ("all", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        with pytest.raises(CollcError, match="C0085"):
            opened(str(tmp_path / name))
    (tmp_path / "file").write_text("")
    with pytest.raises(CollcError, match="C0085"):
        opened(str(tmp_path / "file"))


def test_the_least_recently_used_entries_go(tmp_path: Path) -> None:
    store = Store(opened(str(tmp_path / "cache")).folder, 1000)
    for number in range(5):
        assert store.write(key(number), "x" * 100)
        os.utime(entry(store, number), (number + 1, number + 1))
    assert store.read(key(0))  # it was used
    store.write(key(9), "x" * 100)
    assert store.contents().size <= 1000
    assert [True, False, False, True] == [store.read(key(n)) is not None for n in (0, 1, 2, 9)]


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    store = Store(opened(str(tmp_path / "cache")).folder, 1000)
    assert not store.write(key("a"), "x" * 501)
    assert [] == os.listdir(store.folder)


def test_an_error_of_the_disk_is_no_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(module.os, "replace", full)
    assert not store.write(key("a"), "text")
    assert [] == os.listdir(store.folder), "no temporary file stays"
    assert not Store(str(Path(store.folder, "missing"))).write(key("a"), "text")
    assert Contents(0, 0) == Store(str(Path(store.folder, "missing"))).contents()


def test_temporary_files_of_killed_processes_go(store: Store) -> None:
    old, new = (Path(store.folder, name) for name in (".old.tmp", ".new.tmp"))
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1, 1))
    store.write(key("a"), "text")
    assert (False, True) == (old.exists(), new.exists())


def test_clearing_removes_entries_and_nothing_else(store: Store) -> None:
    Path(store.folder, "notes.txt").write_text("mine")
    for name in "abc":
        store.write(key(name), "text")
    contents = store.contents()
    assert (3, contents) == (contents.entries, store.clear())
    assert ["notes.txt"] == os.listdir(store.folder)


def test_threads_see_whole_entries(store: Store) -> None:
    texts = {str(n) * 50_000 for n in range(4)}
    wrong: list[object] = []

    def work(text: str) -> None:
        for _ in range(20):
            store.write(key("a"), text)
            if store.read(key("a")) not in texts:
                wrong.append(text[0])

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


@pytest.mark.parametrize(
    ("environ", "platform", "folder"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "linux", "/x/collc/results"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "linux", "/h/.cache/collc/results"),
        ({"HOME": "/h"}, "linux", "/h/.cache/collc/results"),
        ({"HOME": "/h"}, "darwin", "/h/Library/Caches/collc/results"),
        ({"HOME": "/h", "LOCALAPPDATA": "/l"}, "win32", "/l/collc/results"),
    ],
)
def test_the_default_folder_is_that_of_the_platform(environ: dict[str, str], platform: str, folder: str) -> None:
    assert folder == default_folder(environ, platform)
