"""Files are trusted if only their user can have written them, and they are as they were sealed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from collc.files import trust
from collc.files.trust import SEAL, digest_of, is_ours, is_sealed, make_folder, seal, write_privately


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = Path(make_folder(str(tmp_path), "a", "b"), "file.so")
    write_privately(str(path), b"content")
    return path


def test_what_is_written_is_private(file: Path, tmp_path: Path) -> None:
    assert file.read_bytes() == b"content" and file.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (file.parent, file.parent.parent)} == {0o700}
    assert is_ours(str(file), str(tmp_path)) and os.listdir(file.parent) == ["file.so"]


@pytest.mark.parametrize("inside", ["a/b/file.so", "a/b", "a", ""])
def test_every_folder_to_a_file_counts(inside: str, file: Path, tmp_path: Path) -> None:
    (tmp_path / inside).chmod(0o772)
    assert not is_ours(str(file), str(tmp_path))
    (tmp_path / inside).chmod(0o700)
    assert is_ours(str(file), str(tmp_path))


def test_links_and_other_places_are_not_ours(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link.so").symlink_to(file)
    (tmp_path / "folder").symlink_to(file.parent)
    root = str(tmp_path)
    assert not is_ours(str(tmp_path / "link.so"), root) and not is_ours(str(tmp_path / "folder" / "file.so"), root)
    assert not is_ours(str(file), str(tmp_path / "other")) and not is_ours(str(file.parent), root)
    assert not is_ours(str(tmp_path / "none"), root)


def test_files_of_another_user_are_not_ours(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    else:
        os.chown(file, 12345, 12345)
    assert not is_ours(str(file), str(tmp_path))


def test_folders_that_others_can_write_are_closed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o777)
    assert Path(make_folder(str(tmp_path), "a")).stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(PermissionError, match="it is not yours"):
            make_folder(str(tmp_path), name)


def test_seals(file: Path, tmp_path: Path) -> None:
    root = str(tmp_path)
    assert not is_sealed(str(file), root)
    seal(str(file))
    assert is_sealed(str(file), root)
    told = Path(f"{file}{SEAL}")
    assert told.read_text() == f"{hashlib.sha256(b'content').hexdigest()}  b/file.so\n"
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "-c", str(told)], cwd=tmp_path / "a", check=True, capture_output=True)
    for text in ("", told.read_text()[1:], told.read_text() + "x"):
        told.write_text(text)
        assert not is_sealed(str(file), root), text
    seal(str(file))
    file.write_bytes(b"contenu")
    assert not is_sealed(str(file), root)


def test_digests_are_of_files_that_can_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * (3 << 20))
    assert digest_of(str(tmp_path / "large")) == hashlib.sha256(b"x" * (3 << 20)).hexdigest()
    assert [digest_of(str(tmp_path / name)) for name in ("pipe", "none", "")] == [None, None, None]


@pytest.mark.parametrize("reason", [OSError(28, "no space left"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(reason: BaseException, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise reason

    monkeypatch.setattr(trust.os, "replace", fails)
    with pytest.raises(type(reason)):
        write_privately(str(file), b"other")
    assert file.read_bytes() == b"content" and os.listdir(file.parent) == ["file.so"]
