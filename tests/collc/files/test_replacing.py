"""Several outputs at once: all new or all as they were, whatever fails, is killed or writes at the same time."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import RING, Ran, spawn
from places import HELPERS
from sampling import EXHAUSTIVE

from collc.files import replacing
from collc.files.texts import Output, check_writable, write_all
from collc.ir.diagnostic import CollcError

FAULTS = HELPERS / "replacing_faults.py"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what is tried here waits for the disk again and again."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="collc-test-") as name:
        yield Path(name)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def old_pair(folder: Path) -> list[Output]:
    """Write the old pair; return the new one."""
    (folder / "a.c").write_text("old c")
    (folder / "a.h").write_text("old h")
    return [Output(str(folder / "a.h"), "new h"), Output(str(folder / "a.c"), "new c")]


def pair(folder: Path) -> tuple[str, str]:
    return (folder / "a.c").read_text(), (folder / "a.h").read_text()


OLD, NEW = ("old c", "old h"), ("new c", "new h")


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(CollcError) as caught:
        work()
    assert {d.code for d in caught.value.diagnostics} <= {"C0004", "C0021"}
    return "\n".join(str(part) for d in caught.value.diagnostics for part in (d, d.hint))


# ---- kills


def faults(what: str, folder: Path, *more: int) -> Any:
    done = subprocess.run(
        [sys.executable, str(FAULTS), what, str(folder), *map(str, more)], capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [0, 1])
def test_a_kill_at_any_system_call_leaves_the_old_files_or_the_new_ones(folder: Path, fresh: int) -> None:
    """After the next write to the folder; before it, a kill between two renames is seen."""
    found = faults("every-call", folder, fresh)
    old = [None] * 3 if fresh else [1] * 3
    assert all(one["then"] in (old, [2] * 3) and not one["leftovers"] for one in found)
    mixed = [one for one in found if one["seen"] not in (old, [2] * 3)]
    assert len(mixed) == 2, "three renames have two gaps"
    assert {tuple(one["then"]) for one in found} == {tuple(old), (2, 2, 2)}
    left = {name for one in found for name in one["left"]} - {".collc-lock"}
    assert left and all(name.startswith((".a.c.collc-", ".a.h.collc-", ".a.d.collc-")) for name in left)


@pytest.mark.slow
def test_kills_at_random_leave_the_old_files_or_the_new_ones(folder: Path) -> None:
    found = faults("at-random", folder, 200 if EXHAUSTIVE else 20)
    assert all(len(set(one["then"])) == 1 and not one["leftovers"] for one in found)


@pytest.mark.slow
def test_two_writers_leave_the_files_of_one(folder: Path) -> None:
    found, left = faults("two-writers", folder, 100 if EXHAUSTIVE else 15)
    assert all(len(set(one)) == 1 for one in found) and left == []


def test_a_living_writer_keeps_its_temporary_files(tmp_path: Path) -> None:
    with replacing.Replacement() as slow:
        slow.stage(str(tmp_path / "a"), b"slow")
        write_all([Output(str(tmp_path / "b"), "quick")])
        slow.commit()
    assert names(tmp_path) == ["a", "b"] and (tmp_path / "a").read_text() == "slow"


def test_what_somebody_wrote_since_a_kill_stays(tmp_path: Path) -> None:
    """A journal is no reason to bring back what was replaced by hand, or by another program."""
    code = f"import sys; sys.path.insert(0, {str(FAULTS.parent)!r}); import replacing_faults as f\n" + (
        "import os, signal\nfrom pathlib import Path\nfrom collc.files.texts import write_all\n"
        "usual, count = os.replace, iter(range(9))\n"
        "os.replace = lambda a, b: os.kill(os.getpid(), 9) if next(count) else usual(a, b)\n"
        "write_all(f.pair(Path(sys.argv[1]), 2))\n"
    )
    (tmp_path / "sub").mkdir()
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL and (tmp_path / "sub" / "a.d").exists()
    (tmp_path / "a.c").write_text("by hand")
    write_all([Output(str(tmp_path / "b"), "")])
    assert names(tmp_path) == ["a.c", "b", "sub"] and (tmp_path / "a.c").read_text() == "by hand"


@pytest.mark.slow
def test_what_a_killed_command_began_is_completed(tmp_path: Path) -> None:
    """Killed between two renames: the rule and the header are new, the source is not, so make would run again."""
    (tmp_path / "ring.coll").write_text(RING)
    arguments = ["ring.coll", "-t", "mpi-c", "-o", "a.c", "-MD"]
    assert spawn(*arguments, cwd=tmp_path).returncode == 0
    old = [(tmp_path / name).read_bytes() for name in ("a.c", "a.h", "a.d")]
    (tmp_path / "ring.coll").write_text(RING.replace("4", "6"))
    code = (
        "import os, sys\nfrom collc.cli import main\nusual, count = os.replace, iter(range(9))\n"
        "os.replace = lambda a, b: os.kill(os.getpid(), 9) if next(count) > 1 else usual(a, b)\nmain(sys.argv[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [(tmp_path / name).read_bytes() != before for name, before in zip(("a.c", "a.h", "a.d"), old, strict=True)] \
        == [False, True, False]  # fmt: skip
    whole = (tmp_path / "a.h").read_bytes()
    write_all([Output(str(tmp_path / "b"), "")])
    assert names(tmp_path) == ["a.c", "a.d", "a.h", "b", "ring.coll"]
    assert (tmp_path / "a.h").read_bytes() == whole and b"6 ranks" in (tmp_path / "a.c").read_bytes()


# ---- failures


@pytest.mark.parametrize("fails", [1, 2])
@pytest.mark.parametrize("call", ["replace", "link", "fsync"])
def test_a_call_that_fails_leaves_the_old_pair(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, fails: int
) -> None:
    outputs = old_pair(folder)
    usual, count = getattr(os, call), iter(range(1, 100))

    def failing(*arguments: object, **named: object) -> object:
        if next(count) == fails:
            raise OSError(errno.EIO, "input/output error")
        return usual(*arguments, **named)

    monkeypatch.setattr(os, call, failing)
    if call == "link":  # no second names: the old content is copied
        write_all(outputs)
    else:
        assert "cannot write `" in refusal(lambda: write_all(outputs))
    assert pair(folder) == (NEW if call == "link" else OLD)
    assert names(folder) == ["a.c", "a.h"]


def test_a_rename_that_fails_leaves_no_new_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of two outputs that were not there before."""
    usual = os.replace

    def failing(source: str, target: str) -> None:
        if target.endswith("a.c"):
            raise OSError(errno.EPERM, "")
        usual(source, target)

    monkeypatch.setattr(os, "replace", failing)
    message = refusal(lambda: write_all([Output(str(folder / name), "") for name in ("a.h", "a.c")]))
    assert "a.c`: the system does not permit it" in message and names(folder) == []


def test_an_interrupt_between_renames_leaves_the_old_pair(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = old_pair(folder)
    usual, count = os.replace, iter(range(9))

    def interrupted(source: str, target: str) -> None:
        if next(count) == 1:
            raise KeyboardInterrupt
        usual(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(outputs)
    assert pair(folder) == OLD and names(folder) == ["a.c", "a.h"]


def test_a_signal_between_renames_waits_for_the_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = old_pair(folder)
    usual = os.replace

    def signalled(source: str, target: str) -> None:
        usual(source, target)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(os, "replace", signalled)
    with pytest.raises(KeyboardInterrupt):
        write_all(outputs)
    assert pair(folder) == NEW and names(folder) == ["a.c", "a.h"]


def test_what_cannot_be_put_back_is_kept_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = old_pair(folder)
    usual, count = os.replace, iter(range(9))

    def failing(source: str, target: str) -> None:
        if next(count):
            raise OSError(errno.EIO, "")
        usual(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(CollcError) as caught:
            write_all(outputs)
    (note,) = caught.value.diagnostics[0].notes
    assert "could not be restored" in note and Path(note.split("`")[3]).read_text() == "old h"
    write_all([Output(str(folder / "b"), "")])
    assert pair(folder) == NEW and names(folder) == ["a.c", "a.h", "b"]


def test_a_full_disk_leaves_the_old_pair(folder: Path) -> None:
    """The largest size of a file stands for the disk."""
    old_pair(folder)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, usual[1]))
    try:
        outputs = [Output(str(folder / "a.h"), "x"), Output(str(folder / "a.c"), "x" * 30000)]
        assert "largest size that a file may have" in refusal(lambda: write_all(outputs))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert pair(folder) == OLD and names(folder) == ["a.c", "a.h"]


def test_contents_that_are_not_written_before_the_file_is_closed(folder: Path) -> None:
    """The rest of a content waits in a buffer, which a full disk refuses again when the file is closed."""
    old_pair(folder)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (1, 4000, 8191, 8193, 20000, 29999):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
        try:
            assert "largest size" in refusal(lambda: write_all([Output(str(folder / "a.h"), "x" * 30000)]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        assert pair(folder) == OLD and names(folder) == ["a.c", "a.h"]


def test_a_disk_that_is_full_leaves_the_old_pair(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom collc.files.texts import *\nfrom pathlib import Path\np = Path(sys.argv[1])\n"
        "write_all([Output(str(p / n), 'o' * 9000) for n in ('a.h', 'a.c')])\n"
        "for size in range(4000, 30000, 1000):\n"
        "    try: write_all([Output(str(p / n), 'n' * size) for n in ('a.h', 'a.c')])\n"
        "    except Exception as problem:\n"
        "        print(problem); break\n"
        "print(len({p.joinpath(n).read_text() for n in ('a.h', 'a.c')}), sorted(x.name for x in p.iterdir()))\n"
    )
    script = 'mount -t tmpfs -o size=80k none "$1" && exec "$2" -c "$3" "$1"'
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable, code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert "no space left on the device" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 ['a.c', 'a.h']"


def test_a_read_only_folder_changes_nothing(tmp_path: Path) -> None:
    """As a user whom permissions bind."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        assert "is not writable" in refusal(lambda: write_all([Output(str(tmp_path / "a"), "")]))
        return
    place = Path(tempfile.mkdtemp(prefix="collc-test-"))
    try:
        place.chmod(0o755)
        code = (
            "import os, sys\nfrom collc.files.texts import *\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "try: write_all([Output(sys.argv[1] + '/a', '')])\n"
            "except Exception as refused: print(refused, refused.diagnostics[0].hint)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=True)
        assert "is not writable" in done.stdout and "make it writable, or name a file elsewhere" in done.stdout
        assert names(place) == []
    finally:
        shutil.rmtree(place)


def test_an_immutable_second_file_leaves_the_old_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = old_pair(tmp_path)
    made = subprocess.run(["chattr", "+i", str(tmp_path / "a.c")], capture_output=True, check=False) \
        if shutil.which("chattr") and os.geteuid() == 0 else None  # fmt: skip
    if made is None or made.returncode:
        pytest.skip("no file can be made immutable here")
    try:
        assert "may not be written by you" in refusal(lambda: write_all(outputs))
        # A file that becomes immutable too late to be seen.
        monkeypatch.setattr("collc.files.texts.check_writable", lambda paths: None)
        assert "immutable files" in refusal(lambda: write_all(outputs))
    finally:
        subprocess.run(["chattr", "-i", str(tmp_path / "a.c")], check=True)
    assert pair(tmp_path) == OLD and names(tmp_path) == ["a.c", "a.h"]


def test_a_directory_in_the_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = old_pair(tmp_path)
    (tmp_path / "a.c").unlink()
    (tmp_path / "a.c").mkdir()
    monkeypatch.setattr("collc.files.texts.check_writable", lambda paths: None)
    assert "it is a directory" in refusal(lambda: write_all(outputs))
    assert (tmp_path / "a.h").read_text() == "old h" and names(tmp_path) == ["a.c", "a.h"]


# ---- what files keep


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664, 0o2755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    before = os.umask(0o077)
    try:
        write_all([Output(str(tmp_path / "a"), ""), Output(str(tmp_path / "b"), "")])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


def test_a_file_is_new_when_it_is_written(tmp_path: Path) -> None:
    """Make looks at the time, of an empty file too."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
        os.utime(tmp_path / name, (1, 1))
    write_all([Output(str(tmp_path / "a"), ""), Output(str(tmp_path / "b"), "old")])
    assert min((tmp_path / name).stat().st_mtime for name in ("a", "b")) > time.time() - 3600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.chown(tmp_path / "a", 1234, 2345)
    write_all([Output(str(tmp_path / "a"), "new")])
    assert ((tmp_path / "a").stat().st_uid, (tmp_path / "a").stat().st_gid) == (1234, 2345)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may name any group")
def test_a_folder_hands_its_group_on(tmp_path: Path) -> None:
    os.chown(tmp_path, -1, 2345)
    tmp_path.chmod(0o2775)
    write_all([Output(str(tmp_path / "a"), "new")])
    assert (tmp_path / "a").stat().st_gid == 2345


def test_a_read_only_file_is_refused_for_root_too(tmp_path: Path) -> None:
    outputs = old_pair(tmp_path)
    (tmp_path / "a.c").chmod(0o444)
    for work in (lambda: check_writable([str(tmp_path / "a.c")]), lambda: write_all(outputs)):
        message = refusal(work)
        assert "the file exists and is read-only (mode 0444)" in message and "chmod u+w" in message
    assert pair(tmp_path) == OLD


def test_other_names_of_a_file_keep_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "other")
    write_all([Output(str(tmp_path / "a"), "new")])
    assert ((tmp_path / "a").read_text(), (tmp_path / "other").read_text()) == ("new", "old")


def test_links_are_written_through_wherever_they_lead(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("far/real")
    write_all([Output(str(tmp_path / "one"), "new"), Output(str(tmp_path / "b"), "b")])
    assert (tmp_path / "far" / "real").read_text() == "new" and (tmp_path / "one").is_symlink()
    (tmp_path / "lost").symlink_to("nowhere/file")
    assert "whose directory does not exist" in refusal(lambda: check_writable([str(tmp_path / "lost")]))
    (tmp_path / "loop").symlink_to("loop")
    assert "lead back to themselves" in refusal(lambda: check_writable([str(tmp_path / "loop")]))
    assert names(tmp_path / "far") == ["real"]


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("a")
    for paths in (["a", "a"], ["a", "./a"], ["a", "link"]):
        outputs = [Output(f"{tmp_path}/{path}", "x") for path in paths]
        assert "C0021" in refusal(lambda outputs=outputs: write_all(outputs))
    write_all([Output("/dev/null", ""), Output("/dev/null", "")])


def test_a_rule_in_the_place_of_the_header_is_refused(collc: Callable[..., Ran], ring: str) -> None:
    done = collc(ring, "-t", "mpi-c", "-o", "a.c", "-MD", "-MF", "./a.h")
    assert done.status == 2 and "`a.h` and `./a.h` are one file" in done.err
    assert names(Path()) == [ring]


def test_descriptors_are_written_through(tmp_path: Path) -> None:
    """What a shell redirected is appended to, not replaced."""
    (tmp_path / "out").symlink_to("/dev/stdout")
    code = "import sys; from collc.files.texts import *; "
    code += "write_all([Output(path, path + chr(10)) for path in sys.argv[1:]])"
    paths = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out", "-"]
    script = f"{{ echo first; '{sys.executable}' -c '{code}' {' '.join(paths)}; echo last; }} >> log"
    assert subprocess.run(["sh", "-c", script], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "log").read_text().splitlines() == ["first", *paths, "last"]
    assert names(tmp_path) == ["log", "out"]


# ---- the end of a process


def test_another_thread_removes_temporary_files_and_ends_the_process(tmp_path: Path) -> None:
    """At any moment of a write: what was staged goes, renames that began are completed."""
    code = (
        "import os, sys, threading, time\nfrom collc.files.texts import *\n"
        "os.chdir(sys.argv[1])\n"
        "def end():\n    time.sleep(float(sys.argv[2])); discard_temporaries(); os._exit(9)\n"
        "threading.Thread(target=end, daemon=True).start()\n"
        "with output_folder('new/'):\n"
        "    for k in range(10**9): write_all([Output(n, f'{k}' + ' ' * 10**5) for n in ('b', 'a')])\n"
    )
    for n in range(100 if EXHAUSTIVE else 8):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(n * 0.0021)], check=False)
        assert done.returncode == 9
        assert [name for name in names(tmp_path) if name != ".collc-lock"] in ([], ["a", "b"])
        assert len({int((tmp_path / name).read_text()) for name in names(tmp_path) if name in "ab"}) <= 1


def test_a_write_from_another_thread_is_a_write(tmp_path: Path) -> None:
    done = threading.Thread(target=lambda: write_all(old_pair(tmp_path)))
    done.start()
    done.join(30)
    assert pair(tmp_path) == NEW and names(tmp_path) == ["a.c", "a.h"]


def test_a_folder_held_by_another_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "_PATIENCE", 0.01)
    with replacing.Replacement() as other, other._alone(str(tmp_path)):
        assert "another process has held" in refusal(lambda: write_all([Output(str(tmp_path / "a"), "")]))
    write_all([Output(str(tmp_path / "a"), "")])
    assert names(tmp_path) == ["a"]
