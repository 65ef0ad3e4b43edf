"""``--watch``: work again when a file changes, until a signal ends the command."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence

from collc.ir.diagnostic import CollcError

from ..files.texts import STDIN
from .arguments import usage_error
from .console import Console

__all__ = ["watch"]

#: seconds between two looks at the files
_PAUSE = 0.2

#: work of one round: its exit status, and the files that it read
Round = Callable[[], tuple[int, Sequence[str]]]


def watch(work: Round, given: Sequence[str], console: Console) -> int:
    """Repeat ``work`` whenever a file that it read, or a folder that was ``given``, has changed; never return.

    A signal raises Terminated, as in all other work. Files are polled: no system call for it works on all file systems.
    """
    if STDIN in given:
        raise usage_error("--watch needs files, standard input cannot change", "name a file")
    known: set[str] = set(given)
    while True:
        before = _states(known)
        status, files = _once(work, console)
        known = {*given, *_folders(given), *files, *(_folders_of(files) if status else ())}
        before |= {path: _state(path) for path in known if path not in before}
        console.say_between(f"{'found mistakes' if status else 'no mistakes'}; waiting for a change (Ctrl-C ends)")
        while _states(known) == {path: before[path] for path in known}:
            time.sleep(_PAUSE)
            console.signals.check()


def _once(work: Round, console: Console) -> tuple[int, Sequence[str]]:
    """Do the work of one round and print its diagnostics."""
    try:
        status, files = work()
    except CollcError as mistake:
        console.fail(mistake.diagnostics)
        status, files = mistake.exit_status, ()
    console.finish()
    console.diagnostics = []
    return status, files


def _folders(given: Iterable[str]) -> Iterable[str]:
    """Yield the folders below those that were given: a new file changes its folder."""
    for path in given:
        if os.path.isdir(path):
            yield from (folder for folder, _, _ in os.walk(path))


def _folders_of(files: Iterable[str]) -> Iterable[str]:
    """Yield the folders of files: a missing file that one includes may come there."""
    return (os.path.dirname(path) or "." for path in files)


State = tuple[int, int, int] | None


def _states(paths: Iterable[str]) -> dict[str, State]:
    return {path: _state(path) for path in paths}


def _state(path: str) -> State:
    """Return what changes when a file is written or replaced; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
