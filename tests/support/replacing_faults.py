"""A process that writes pairs of files and is killed, refused or met by another; run as a program of its own.

``replacing_faults.py WHAT FOLDER [NUMBER]`` prints what it found as JSON. It forks, so it is no pytest process.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from collc.files.texts import Output, write_all

CALLS = ("open", "replace", "link", "unlink", "fsync", "write", "utime", "fchmod", "close", "listdir")


def pair(folder: Path, version: int, more: str = "") -> list[Output]:
    return [
        Output(str(folder / name), f"{version}\n" + "x" * 5000 + more) for name in ("sub/a.d", "a.h", "a.c")
    ]  # fmt: skip


def versions(folder: Path) -> list[int | None]:
    """Return the version of each file of the set; nothing for a file that is not there."""
    paths = [folder / name for name in ("a.c", "a.h", "sub/a.d")]
    return [int(path.read_text().split()[0]) if path.exists() else None for path in paths]


def child(work: Callable[[], object]) -> int:
    """Run ``work`` in a process of its own; return its number."""
    number = os.fork()
    if number == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return number


def ended(number: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def counted(die_at: int) -> None:
    """Have the process kill itself before its n-th system call."""
    count = itertools.count(1)

    def wrapped(usual: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            if next(count) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return usual(*arguments, **named)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def leftovers(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.name not in ("a.c", "a.h", "a.d", "sub", "other"))


def after_a_kill(folder: Path, where: Path) -> dict[str, object]:
    """Return what a kill left, and what is there after the next write to that folder."""
    seen, left = versions(folder), leftovers(folder)
    ended(child(lambda: write_all([Output(str(where / "other"), "o"), Output(str(where / "sub/other"), "o")])))
    (where / "other").unlink()
    (where / "sub/other").unlink()
    return {"seen": seen, "left": left, "then": versions(folder), "leftovers": leftovers(folder)}


def every_call(folder: Path, fresh: bool) -> list[dict[str, object]]:
    """Kill a writer before its 1st, 2nd, .. system call until it ends by itself."""
    found = []
    for at in itertools.count(1):
        for path in ("a.c", "a.h", "sub/a.d"):
            (folder / path).unlink(missing_ok=True)
        if not fresh:
            write_all(pair(folder, 1))

        def work(at: int = at) -> None:
            counted(at)
            write_all(pair(folder, 2))

        if ended(child(work)) == 0:
            return found
        found.append(after_a_kill(folder, folder))
    return found


def at_random(folder: Path, times: int) -> list[dict[str, object]]:
    """Kill a writer that replaces the set again and again."""
    dice = random.Random(1)
    write_all(pair(folder, 0))
    found = []
    for _ in range(times):

        def work() -> None:
            first = versions(folder)[0] or 0
            for version in itertools.count(first + 1):
                write_all(pair(folder, version))

        writer = child(work)
        time.sleep(0.002 + dice.random() * 0.02)
        os.kill(writer, signal.SIGKILL)
        ended(writer)
        found.append(after_a_kill(folder, folder))
    return found


def two_writers(folder: Path, times: int) -> list[list[int | None]]:
    """Have two writers replace the set at the same time, with slow renames; return what is there after both."""
    found = []
    usual = os.replace

    def slowly(source: str, target: str) -> None:
        time.sleep(0.002)
        usual(source, target)

    os.replace = slowly  # type: ignore[assignment]
    for version in range(times):
        writers = [child(lambda v=2 * version + n: [write_all(pair(folder, v)) for _ in range(3)]) for n in (0, 1)]
        if [ended(writer) for writer in writers] != [0, 0]:
            return [[-1]]
        found.append(versions(folder))
    return found


if __name__ == "__main__":
    what, place, number = sys.argv[1], Path(sys.argv[2]), int((*sys.argv, "0")[3])
    (place / "sub").mkdir(exist_ok=True)
    match what:
        case "every-call":
            result: object = every_call(place, bool(number))
        case "at-random":
            result = at_random(place, number)
        case "two-writers":
            result = [two_writers(place, number), leftovers(place)]
    print(json.dumps(result))
