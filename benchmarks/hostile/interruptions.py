"""Part (c): signals at any moment, closed pipes, full disks, what is in the way: all outputs and entries, or none."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import attrs

from .findings import Finding

__all__ = ["interruptions"]

_OLD = "topology t = biring(4);\ncollective c = allgather on t;\n"
_NEW = "topology t = torus(3, 2);\ncollective c = allreduce on t;\n"


@attrs.frozen
class Work:
    """A command line to disturb, and the files that it leaves."""

    words: tuple[str, ...]
    files: tuple[str, ...]


def _compiled(target: str, *files: str, more: tuple[str, ...] = ()) -> Work:
    return Work(("spec.coll", "-t", target, "-o", files[0], "-MD", "-MF", "c.d", *more), (*files, "c.d"))


#: what is disturbed: compilations with their depfiles, with and without a cache, and tables
_WORKS = {
    "mpi-c": _compiled("mpi-c", "c.c", "c.h"),
    "msccl-xml": _compiled("msccl-xml", "c.xml"),
    "oneccl-xml": _compiled("oneccl-xml", "c.xml"),
    "mpi-c, cached": _compiled("mpi-c", "c.c", "c.h", more=("--cache=cache",)),
    "tables": Work(
        ("cost", "spec.coll", "--baselines", "--size", "1KiB..1MiB", "--csv=c.csv", "--markdown=c.md"),
        ("c.csv", "c.md"),
    ),
}  # fmt: skip
#: seconds in which a signal must end the process, on a loaded machine
_SOON = 20.0

Contents = dict[str, bytes]


def _start(folder: Path, target: str, **options: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "collc", *_WORKS[target].words]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(words, cwd=folder, **streams)  # type: ignore[call-overload]


def _contents(folder: Path) -> Contents:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file() and p.name != "spec.coll"}


@cache
def _undisturbed(text: str, target: str) -> tuple[Contents, float]:
    """Return the files of an undisturbed run, and how long it takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.coll").write_text(text)
        begun = time.monotonic()
        done = _start(folder, target)
        _, err = done.communicate()
        if done.returncode:
            raise RuntimeError(f"the campaign's own specification fails: {err.decode()}")
        return _contents(folder), time.monotonic() - begun


def interruptions(seed: int, number: int) -> list[Finding]:
    """Disturb one compilation into a folder that holds the files of an earlier one."""
    luck = random.Random(f"interruptions {seed} {number}")
    target = luck.choice(sorted(_WORKS))
    old, _ = _undisturbed(_OLD, target)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.coll").write_text(_NEW)
        for file, content in old.items():
            (folder / file).write_bytes(content)
        disturb = luck.choice((_killed, _killed, _signalled, _signalled, _piped, _full, _in_the_way))
        what = disturb(folder, target, luck) or _broken_entries(folder, disturb is _killed)
    return [Finding(f"interruptions:{number}", what, f"seed {seed}: {what}\n")] if what else []


def _judged(folder: Path, target: str, status: int, what: str) -> str:
    """Return how a folder differs from both the old and the new files."""
    old, new, found = _undisturbed(_OLD, target)[0], _undisturbed(_NEW, target)[0], _contents(folder)
    if found == new or (status and found == old):
        return ""
    if status == 0:
        return f"{what}: exit status 0, but not the new files: {sorted(found)}"
    state = {
        n: "old" if found.get(n) == old.get(n) else "new" if found.get(n) == new.get(n) else "other"
        for n in {*old, *found}
    }
    return f"{what}: neither the old nor the new files: {state}"


def _signalled(folder: Path, target: str, luck: random.Random) -> str:
    number = luck.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    child = _start(folder, target)
    pause = luck.random() * _undisturbed(_NEW, target)[1]
    time.sleep(pause)
    child.send_signal(number)
    begun = time.monotonic()
    try:
        _, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return f"{target}: alive 60 s after {number.name} at {pause:.2f} s"
    what = f"{target}, {number.name} after {pause:.2f} s"
    if time.monotonic() - begun > _SOON:
        return f"{what}: ends {time.monotonic() - begun:.0f} s later"
    if child.returncode not in (0, 128 + number, -number):
        return f"{what}: status {child.returncode}: {err.decode()[-300:]}"
    if b"Traceback" in err and child.returncode != -number:
        return f"{what}: a traceback: {err.decode()[-300:]}"
    return _judged(folder, target, child.returncode, what)


def _broken_entries(folder: Path, is_killed: bool) -> str:
    """Return what is wrong in the cache: an entry that is not whole, or a file that a run which ended has left."""
    for path in sorted((folder / "cache").glob("*")):
        head, _, body = path.read_bytes().partition(b"\n")
        if path.suffix == ".json" and not head.endswith(hashlib.sha256(body).hexdigest().encode()):
            return f"the entry {path.name} of the cache is not whole"
        if path.suffix != ".json" and not is_killed:
            return f"{path.name} is left in the cache"
    return ""


def _piped(folder: Path, target: str, luck: random.Random) -> str:
    """Let the command print into a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = luck.choice(("stdout", "stderr"))
    child = _start(folder, target, **{stream: writer})
    os.close(writer)
    _, err = child.communicate(timeout=60)
    what = f"{target}, {stream} is a closed pipe"
    if child.returncode not in (0, 141, -signal.SIGPIPE) or b"Traceback" in (err or b""):
        return f"{what}: status {child.returncode}: {(err or b'').decode()[-300:]}"
    return _judged(folder, target, child.returncode, what)


def _killed(folder: Path, target: str, luck: random.Random) -> str:
    """Kill; then the old pair or the new pair is there once a later run has looked at the place."""
    child = _start(folder, target)
    pause = luck.random() * _undisturbed(_NEW, target)[1]
    time.sleep(pause)
    child.kill()
    child.communicate()
    what = f"{target}, SIGKILL after {pause:.2f} s"
    foreign = [n for n in _contents(folder) if n not in _WORKS[target].files and "collc" not in n]
    if foreign:
        return f"{what}: leaves {foreign}, which do not say whose they are"
    again = _start(folder, target)
    _, err = again.communicate()
    if again.returncode:
        return f"{what}: the next run fails: {err.decode()[-300:]}"
    return _judged(folder, target, 0, f"{what}, then a run")


def _full(folder: Path, target: str, luck: random.Random) -> str:
    """No file may grow beyond a limit, as on a full disk."""
    new = _undisturbed(_NEW, target)[0]
    limit = luck.randrange(1, max(len(content) for content in new.values()))

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    child = _start(folder, target, preexec_fn=prepare)
    _, err = child.communicate()
    what = f"{target}, files of at most {limit} bytes"
    if child.returncode not in (0, 1) or b"Traceback" in err:
        return f"{what}: status {child.returncode}: {err.decode()[-300:]}"
    return _judged(folder, target, child.returncode, what)


def _in_the_way(folder: Path, target: str, luck: random.Random) -> str:
    """A folder that is not empty stands where a further file is to be; in place of the first it would take them all."""
    name = luck.choice(_WORKS[target].files[1:])
    (folder / name).unlink()
    (folder / name).mkdir()
    (folder / name / "kept").write_text("kept")
    before = _contents(folder)
    child = _start(folder, target)
    _, err = child.communicate()
    what = f"{target}, a folder in place of {name}"
    if child.returncode not in (1, 2) or b"Traceback" in err:
        return f"{what}: status {child.returncode}: {err.decode()[-300:]}"
    return "" if _contents(folder) == before else f"{what}: other files were written: {sorted(_contents(folder))}"
