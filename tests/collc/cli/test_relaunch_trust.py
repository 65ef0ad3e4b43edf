"""The cache of launches: what is not as it was is made again; full disks, interruptions, many launches at once."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from launches import Site, site

from collc.cli import relaunch
from collc.cli.arguments import parse
from collc.cli.console import Console
from collc.cli.verbs import VERBS
from collc.files.store import opened

__all__ = ["site"]


# ---- entries that are not as they were


def test_a_changed_entry_is_compiled_again(site: Site) -> None:
    assert site.compiles()
    (entry,) = site.entries
    whole = entry.read_bytes()
    for place in range(0, len(whole), len(whole) // 12):
        entry.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert site.compiles(), place
    for size in (0, 1, 40, len(whole) // 2, len(whole) - 1):
        entry.write_bytes(whole[:size])
        assert site.compiles(), size
    assert entry.read_bytes() == whole and not site.compiles()


@pytest.mark.parametrize("field", ["text", "read", "outputs", "trees", "key"])
def test_an_entry_with_another_content_is_compiled_again(field: str, site: Site) -> None:
    assert site.compiles()
    store, key = opened(str(site.cache / "launches")), site.entries[0].stem
    entry = json.loads(store.read(key) or "")
    for odd in (3, "text", "{}", [[1]], {"mpi": 3}):
        assert store.write(key, json.dumps({**entry, field: odd}))
        assert site.compiles(), odd
    for text in ("", "[]", json.dumps({name: value for name, value in entry.items() if name != field})):
        assert store.write(key, text)
        assert site.compiles(), text


def test_an_entry_at_the_place_of_another_is_not_used(site: Site) -> None:
    assert site.compiles()
    (first,) = site.entries
    assert site.compiles("-D", "n=6")
    (second,) = [entry for entry in site.entries if entry != first]
    shutil.copy(first, second)
    assert site.compiles("-D", "n=6") and second.read_bytes() != first.read_bytes()


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.rename(f"{path}.other")
    path.symlink_to(f"{path}.other")


def writable(path: Path) -> None:
    path.chmod(0o666)


def open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def give_away(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(path, 12345, 12345)


DAMAGE = pytest.mark.parametrize("damage", [change, empty, remove, link, writable, open_folder, give_away])


@DAMAGE
def test_a_library_that_is_not_as_it_was_is_built_again(damage: Callable[[Path], None], site: Site) -> None:
    assert site.compiles() and site.built == 1
    whole = site.library.read_bytes()
    damage(site.library)
    assert site.compiles() and site.built == 2 and site.library.read_bytes() == whole
    assert not site.library.is_symlink() and site.library.stat().st_mode & 0o022 == 0
    assert site.library.stat().st_uid == os.geteuid() and site.library.parent.stat().st_mode & 0o022 == 0
    assert not site.compiles() and site.built == 2


@DAMAGE
def test_an_entry_that_is_not_ours_is_compiled_again(damage: Callable[[Path], None], site: Site) -> None:
    assert site.compiles()
    damage(site.entries[0])
    assert site.compiles() and site.built == 1, "the library is as it was sealed"
    assert (site.cache / "launches").stat().st_mode & 0o022 == 0 and not site.compiles()


@DAMAGE
def test_files_of_runtimes_that_are_not_as_they_were_are_written_again(
    damage: Callable[[Path], None], site: Site
) -> None:
    assert site.compiles("--runtime=rccl", program="app")
    (file,) = (site.cache / "files").glob("*/*.xml")
    whole = file.read_bytes()
    damage(file)
    assert site.compiles("--runtime=rccl", program="app") and file.read_bytes() == whole
    assert not site.compiles("--runtime=rccl", program="app")


def test_a_library_without_an_entry_is_trusted_by_its_seal(site: Site) -> None:
    assert site.compiles() and site.built == 1
    site.entries[0].unlink()
    assert site.compiles() and site.built == 1
    site.entries[0].unlink()
    Path(f"{site.library}.sha256").unlink()
    assert site.compiles() and site.built == 2


def test_a_library_at_the_place_of_another_is_not_used(site: Site) -> None:
    assert site.compiles() and site.compiles("-D", "n=6") and site.built == 2
    one, other = sorted((site.cache / "interpose").iterdir())
    one.rename(site.folder / "aside")
    other.rename(one)
    (site.folder / "aside").rename(other)
    assert site.compiles() and site.compiles("-D", "n=6") and site.built == 4


# ---- folders and disks


def test_a_folder_that_cannot_be_written_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, access = str(site.folder / "collc"), os.access
    monkeypatch.setenv("XDG_CACHE_HOME", str(site.folder))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != folder and access(path, mode))
    for _ in range(2):
        ran = site.collc("launch", str(site.spec), "-v", "--", str(site.programs / "mpiexec"))
        assert ran.status == 0 and ran.err.startswith(f"collc: keeps nothing, because {folder} cannot be the cache")
    assert site.compiled == 2 and not os.listdir(folder)
    assert f"`{folder}` cannot be the cache: permission denied [C0085]" in site(f"--cache={folder}").err


@pytest.mark.parametrize("name", ["launches", "interpose"])
def test_a_file_where_a_folder_is_needed(name: str, site: Site) -> None:
    site.cache.mkdir(mode=0o700)
    (site.cache / name).write_text("")
    ran = site()
    if name == "launches":
        assert ran.status == 0 and site.compiles(), "nothing is kept"
    else:
        assert ran.status == 1 and f"`{site.cache}` cannot be the cache: it is not yours [C0085]" in ran.err


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("at", ["tempfile.mkstemp", "os.replace"])
def test_a_full_disk_keeps_nothing_and_the_command_runs(at: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(at, full)
        assert site.compiles() and site.told and not site.entries
        assert not [path for path in site.cache.rglob("*") if path.suffix in (".tmp", ".sha256")]
    assert site.compiles() and site.built == 2 and not site.compiles()


def test_a_disk_that_is_full_for_a_library_is_an_error(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collc.backends.mpi_c.interpose.build.build", full)
    ran = site()
    assert ran.status == 1 and f"`{site.cache}` cannot be the cache: no space left on device [C0085]" in ran.err
    assert not site.entries


@pytest.mark.parametrize("at", ["collc.tools.launching.seal", "os.replace"])
def test_an_interrupted_launch_leaves_no_part(at: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    words = [str(site.spec), f"--cache={site.cache}", "--", str(site.programs / "mpiexec")]
    with monkeypatch.context() as patch:
        patch.setattr(at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            relaunch.launch(parse(VERBS["launch"], words), Console())
    assert not [path for path in site.cache.rglob("*") if path.suffix in (".tmp", ".sha256", ".json")]
    assert site.compiles() and not site.compiles()


# ---- many at once


def _forked(number: int, work: Callable[[], bool]) -> set[int]:
    """Do work in so many processes at once; return the exit statuses."""
    children = []
    for _ in range(number):
        if not (child := os.fork()):
            status = 1
            try:
                status = 0 if work() else 2
            finally:
                os._exit(status)
        children.append(child)
    return {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}


@pytest.mark.slow
def test_64_launches_at_once(site: Site) -> None:
    """They begin without a cache. Each has the whole library when its command runs."""

    def work() -> bool:
        ran = site("-q")
        shutil.copy(site.library, site.folder / f"copy-{os.getpid()}")
        return ran.status == 0

    assert _forked(64, work) == {0}
    copies = list(site.folder.glob("copy-*"))
    assert len(copies) == 64 and {copy.read_bytes() for copy in copies} == {site.library.read_bytes()}
    assert len(site.entries) == 1 and not site.compiles()
    assert not [path for path in site.cache.rglob("*") if path.suffix == ".tmp"]
