"""Signals end the command from any phase: soon, with the shell's status, and with nothing left behind."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import COMMAND, gone
from sampling import EXHAUSTIVE, every

from collc.backends.mpi_c.toolchain import Mpi
from collc.cli.signals import Signals, Terminated

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")

#: A guard against hanging: it takes 2 s, but where many programs share two processors.
GUARD_SECONDS = 60.0
MARK = "COLLC_TEST_MARK"

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

BIG = "topology t = {};\ncollective c = {};\n{}\n"


def spec(topology: str, collective: str, schedule: str = "") -> str:
    return BIG.format(topology, collective, schedule)


def by_hand() -> str:
    """A program of 200,000 lines: nearly as long as a file may be."""
    lines = "".join(
        f"  at {step}: send shard {step % 7} from {step % 8} to {(step + 1) % 8};\n" for step in range(200_000)
    )
    return spec("biring(8)", "allgather on t", f"schedule c using steps {{\n{lines}}}")


#: phase -> (input, command line after the verb's name); each takes longer than the moments at which it is ended
PHASES: dict[str, tuple[Callable[[], str], Sequence[str]]] = {
    "parse": (by_hand, ("cost", "in.coll")),
    "elaborate": (
        lambda: "topology t {\n  rank r[19000];\n  for i in 0..19000, j in 1..30 {\n"
        "    link r[i] <-> r[(i + j * j) mod 19000];\n  }\n}\ncollective c = allgather on t;\n",
        ("cost", "in.coll", "--node-limit", "1000000"),
    ),
    "bfb": (lambda: spec("generalized_kautz(4, 5000)", "allgather on t", "schedule c using bfb;"), ("cost", "in.coll")),
    "exact": (
        lambda: spec("hypercube(5)", "broadcast on t { root: 0 }", "schedule c using exact { effort: 100000 };"),
        ("compile", "in.coll", "-t", "mpi-c", "-o", "made/"),
    ),
    "exact, one long program": (
        lambda: spec("bidirectional(hamming(5, 2))", "alltoall on t",
                     "schedule c using exact { effort: 100000, size-limit: 500000 };"),
        ("cost", "in.coll"),
    ),
    "flow": (lambda: spec("double_binary_tree(50)", "alltoall on t", "schedule c using flow;"), ("cost", "in.coll")),
    "forest": (
        lambda: spec("dgx_a100(512)", "allreduce on t", "schedule c using forest;"),
        ("compile", "in.coll", "-t", "mpi-c", "-o", "made/"),
    ),
    "passes": (
        lambda: spec("hypercube(9)", "allreduce on t"), ("in.coll", "-t", "mpi-c", "--verify=full", "-o", "a.c"),
    ),
    "emit": (
        lambda: spec("hypercube(9)", "allgather on t", "schedule c using bfb;"),
        ("in.coll", "-t", "ir", "--verify=off", "-o", "a.ir"),
    ),
    "simulate": (
        lambda: spec("generalized_kautz(4, 5000)", "allgather on t", "schedule c using bfb;"),
        ("simulate", "in.coll", "--svg", "a.svg"),
    ),
    "find": (
        lambda: "",
        ("find", "-n", "1999", "-d", "4", "--refresh", "--effort", "10000000", "-j", "2", "--svg", "a.svg"),
    ),
    "fifo": (lambda: "", ("cost", "pipe.coll")),
    "stdin": (lambda: "", ("cost", "-")),
}  # fmt: skip


class Started:
    """A run of the command that heeds signals by now, and all processes that it has started."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.mark = f"{os.getpid()}-{random.getrandbits(64):x}"
        self.process = subprocess.Popen(
            [str(COMMAND), *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, MARK: self.mark, **environment}, start_new_session=True,
        )  # fmt: skip
        limit = time.monotonic() + 60
        while not self.heeds() and time.monotonic() < limit:
            time.sleep(0.01)

    def heeds(self) -> bool:
        """Whether SIGTERM has a handler."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(caught >> (TERM - 1) & 1)

    def alive(self) -> list[str]:
        """The processes with our mark in their environment."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def ended(self) -> tuple[int, bytes, bytes]:
        begin = time.monotonic()
        try:
            out, err = self.process.communicate(timeout=GUARD_SECONDS)
        finally:
            self.process.kill()
        while (left := self.alive()) and time.monotonic() < begin + GUARD_SECONDS:
            time.sleep(0.02)
        assert left == []
        return self.process.returncode, out, err


def prepared(folder: Path, phase: str) -> list[str]:
    (folder / "in.coll").write_text(PHASES[phase][0]())
    if phase == "fifo":
        os.mkfifo(folder / "pipe.coll")
    return sorted(path.name for path in folder.iterdir())


def pairs() -> Iterator[tuple[str, signal.Signals]]:
    for place, phase in enumerate(PHASES):
        numbers = (INT, TERM, HUP)
        yield from ((phase, n) for n in (numbers if EXHAUSTIVE else (numbers[place % 3],)))


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "number"), every(2, list(pairs())), ids=str)
def test_a_signal_ends_any_phase(phase: str, number: signal.Signals, tmp_path: Path) -> None:
    before = prepared(tmp_path, phase)
    moments = random.Random(f"{phase} {number}")
    for _ in range(3 if EXHAUSTIVE else 1):
        started = Started(tmp_path, *PHASES[phase][1])
        time.sleep(moments.uniform(0.0, 4.0 if EXHAUSTIVE else 1.5))
        started.process.send_signal(number)
        status, out, err = started.ended()
        # a search says for how long it searched, if it had begun
        said = re.fullmatch(rb"(collc: interrupted after [0-9.]+ s of search: no part had ended\n)?", err)
        assert (status, out) == (128 + number, b"") and (said if phase == "find" else not err)
        assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number"), every(3, [(t, n) for t in (0.7, 1.5, 4.0) for n in (INT, TERM)]))
def test_compilers_and_ranks_end_too(moment: float, number: signal.Signals, mpich: Mpi, tmp_path: Path) -> None:
    """While the C is compiled, and while its ranks run, which take minutes."""
    (tmp_path / "in.coll").write_text(spec("hypercube(2)", "allreduce on t"))
    folder = tmp_path / "temporary"
    folder.mkdir()
    started = Started(
        tmp_path, "run", "in.coll", "--mpi", str(mpich.folder.parent), "--repeat", "100000", TMPDIR=str(folder)
    )
    time.sleep(moment)
    started.process.send_signal(number)
    assert started.ended() == (128 + number, b"", b"")
    assert (sorted(path.name for path in tmp_path.iterdir()), list(folder.iterdir())) == (["in.coll", "temporary"], [])


@pytest.mark.slow
def test_a_second_signal_changes_nothing(tmp_path: Path) -> None:
    before = prepared(tmp_path, "exact")
    started = Started(tmp_path, *PHASES["exact"][1])
    time.sleep(0.8)
    for number in (INT, INT, TERM, INT):
        started.process.send_signal(number)
        time.sleep(0.02)
    assert started.ended() == (130, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_pool_goes_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    started = Started(tmp_path, *PHASES["find"][1])
    limit = time.monotonic() + 60
    while len(started.alive()) < 4 and time.monotonic() < limit:  # two workers and what minds semaphores
        time.sleep(0.05)
    started.process.kill()
    assert started.ended()[0] == -signal.SIGKILL


# ---- where the stack does not unwind

#: The command, but that its first phase is deaf, as a call of a compiled module is: no handler raises anything.
STUCK = """
import signal, subprocess, sys, time
from collc.cli import compile as verb, main

def stuck(*_, **__):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    print(subprocess.Popen(["sleep", "77"]).pid, flush=True)
    while True:
        time.sleep(1)

verb.Failures.compiled = stuck
sys.argv[1:] = ["in.coll", "-t", "mpi-c", "-o", "made/"]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [INT, TERM])
def test_a_call_that_does_not_return_is_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    """No folder was made, and a child goes; the status is the same as ever."""
    (tmp_path / "in.coll").write_text(spec("biring(4)", "allreduce on t"))
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert not (tmp_path / "made").exists()
    process.send_signal(number)
    out, err = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, out, err) == (128 + number, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.coll"]
    assert gone(child)


#: how C loses an exception: callbacks as those of imports drop it, modules that are imported print it
LOSSES = {
    "dropped": "reference = weakref.ref(Thing(), lambda _: signal.raise_signal({number}))",
    "printed": 'ctypes.pythonapi.PyRun_SimpleString(b"import signal; signal.raise_signal({number})")',
}
#: The command, but that the signal comes while its exception is lost.
LOST = """
import ctypes, signal, sys, time, weakref
from collc.cli import compile as verb, main

class Thing:
    pass

def lost(*_, **__):
    {loss}
    while True:
        time.sleep(0.01)

verb.Failures.compiled = lost
sys.argv[1:] = ["in.coll", "-t", "mpi-c", "-o", "made/"]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [INT, TERM])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_exception_that_is_lost_in_c_is_not_shown(loss: str, number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "in.coll").write_text(spec("biring(4)", "allreduce on t"))
    done = subprocess.run(
        [sys.executable, "-c", LOST.format(loss=LOSSES[loss].format(number=int(number)))],
        cwd=tmp_path, capture_output=True, timeout=GUARD_SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.coll"]


# ---- the parts


def test_only_the_first_signal_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    with pytest.raises(Terminated), signals.caught():
        try:
            signal.raise_signal(TERM)
        finally:
            signal.raise_signal(INT)  # cleaning up goes on
    assert signals.pending == TERM
    with pytest.raises(Terminated):
        signals.check()


def test_who_is_not_alone_gets_the_handlers_back() -> None:
    before, hook = [signal.getsignal(n) for n in (INT, TERM, HUP)], sys.excepthook
    with Signals().caught():
        assert signal.getsignal(TERM) not in before
    assert [signal.getsignal(n) for n in (INT, TERM, HUP)] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert sys.excepthook is hook


def test_a_signal_that_comes_while_handlers_are_given_back_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither stops the giving back nor gets lost."""
    before = [signal.getsignal(n) for n in (INT, TERM, HUP)]
    give_back, raise_signal, heard = signal.signal, signal.raise_signal, list[int]()

    def meanwhile(number: int, handler: Any) -> Any:
        if number == INT:
            raise_signal(HUP)
        return give_back(number, handler)

    with Signals().caught():
        monkeypatch.setattr(signal, "signal", meanwhile)
        monkeypatch.setattr(signal, "raise_signal", heard.append)
    assert heard == [HUP]
    assert [signal.getsignal(n) for n in (INT, TERM, HUP)] == before
