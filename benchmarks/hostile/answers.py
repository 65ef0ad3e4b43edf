"""Asking collc in a process of its own: what it answered, or that it crashed, hung or took the machine's memory."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs

__all__ = ["CPU_SECONDS", "Answer", "Servant", "command"]

#: seconds of processor time, and bytes, that no small input may take
CPU_SECONDS = 45
_MEMORY = 3 << 30


@attrs.frozen
class Answer:
    """What a call returned; ``broken`` says in one line what must not be: a crash, a hang, too much memory."""

    value: Any = None
    broken: str = ""


def command(arguments: Sequence[str], files: dict[str, str]) -> tuple[int, str, str, dict[str, str]]:
    """Run the command in a new folder with these files; return status, both streams, and the files it left."""
    from collc.cli import main

    out, err = io.BytesIO(), io.BytesIO()
    before, streams = os.getcwd(), (sys.stdin, sys.stdout, sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/home"  # no case touches the cache of the user
        for name, text in files.items():
            Path(folder, name).parent.mkdir(exist_ok=True)
            Path(folder, name).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        os.chdir(folder)
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="surrogateescape", write_through=True)
        sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                stream.detach()
            sys.stdin, sys.stdout, sys.stderr = streams
            os.chdir(before)
        left = {
            name: path.read_text(encoding="utf-8", errors="surrogateescape").replace(folder, "FOLDER")
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file() and (name := str(path.relative_to(folder))) not in files
        }
    printed = (stream.getvalue().decode(errors="replace").replace(folder, "FOLDER") for stream in (out, err))
    return status, *printed, left


def _serve(pipe: Connection) -> None:
    """Answer calls until the pipe closes; a child of the campaign does nothing else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("error")  # numpy only warns of integers that overflow
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit + (4 << 30), limit + (4 << 30)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    while True:
        try:
            work, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(Answer(work(*arguments)))
        except MemoryError:
            with contextlib.suppress(Exception):
                pipe.send(Answer(broken="takes more memory than there is"))
            os._exit(1)
        except BaseException as problem:
            place = problem.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
            pipe.send(Answer(broken=f"raises {type(problem).__name__} in {where}: {str(problem)[:200]}"))


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


class Servant:
    """A child process that answers one call after the other, and is replaced when one ends or outstays it."""

    def __init__(self) -> None:
        self.child: Any = None
        self.calls = 0

    def ask(self, work: Callable[..., Any], *arguments: Any) -> Answer:
        """Return the answer to ``work(*arguments)``."""
        if self.child is None or self.calls > 300:
            self._begin()
        self.calls += 1
        self.pipe.send((work, arguments))
        begun = _processor_seconds(self.child.pid)
        while not self.pipe.poll(0.5):
            try:
                spent, held = _processor_seconds(self.child.pid) - begun, _resident(self.child.pid)
            except (OSError, IndexError):
                break
            if spent > CPU_SECONDS:
                return self._broken(f"takes more than {CPU_SECONDS} s of processor time")
            if held > _MEMORY:
                return self._broken(f"takes more than {_MEMORY >> 20} MiB of memory")
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.child.join(5)
            return self._broken(f"ends the process with status {self.child.exitcode}")

    def _begin(self) -> None:
        self.end()
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.child = context.Process(target=_serve, args=(other,), daemon=True)
        self.child.start()
        other.close()
        self.calls = 0

    def _broken(self, what: str) -> Answer:
        self.end()
        return Answer(broken=what)

    def end(self) -> None:
        """End the child."""
        if self.child is None:
            return
        self.pipe.close()
        self.child.kill()
        self.child.join()
        self.child = None
        time.sleep(0)
