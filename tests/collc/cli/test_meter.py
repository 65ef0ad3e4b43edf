"""Bars on terminals: for work with a total, with an estimate, in the width of the terminal, and gone at the end."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from commands import COMMAND

from collc.cli.meter import WIDTH, Meter

pty = pytest.importorskip("pty")

#: a sweep whose cases take longer than the interval in which lines are drawn
SWEEP = ("sweep", "--on", *(f"torus({n}, {n})" for n in range(3, 12)), "--collective", "allreduce", "--using", "bfb",
         "forest", "-j1", "-o", "table.csv")  # fmt: skip
CLEAR = "\r\x1b[K"


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# ---- one line


def test_a_bar_grows_and_its_rest_is_estimated() -> None:
    clock = Clock()
    meter = Meter(clock)
    lines = []
    for done in (0, 256, 512, 1024):
        clock.now = done / 64
        meter.update("trees", done, 1024)
        lines.append(meter.line(f"trees {done} of 1,024", plain=True))
    assert [0, 1, 2, 4] == [round(4 * line.count("#") / max(line.count("#") + line.count(" "), 1)) for line in
                            (re.sub(r"^.*?\||\|.*$", "", text) for text in lines)]  # fmt: skip
    assert lines[1].endswith("| 00:12 left") and lines[2].endswith("| 00:08 left")
    assert "left" not in lines[0] and "left" not in lines[3]


def test_an_estimate_begins_anew_with_other_work() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.update("trees", 0, 10)
    clock.now = 100.0
    meter.update("cuts", 4, 10)
    assert "left" not in meter.line("cuts 4 of 10")
    clock.now = 103.0
    meter.update("cuts", 7, 10)
    assert meter.line("cuts 7 of 10").endswith("00:03 left")
    meter.update("cuts", 1, 10)  # the same work again
    assert "left" not in meter.line("cuts 1 of 10")


def test_work_without_a_total_has_no_bar_and_tqdm_is_not_loaded() -> None:
    code = "from collc.cli.meter import Meter; import sys; m = Meter(); m.update('a', 3, 0); "
    code += "print(m.line('a 3'), 'tqdm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "a 3 False\n" == done.stdout


@pytest.mark.parametrize("width", [1, 2, 7, 20, 40, WIDTH])
@pytest.mark.parametrize("text", ["", "trees", "a" * 200, "größer als ein Byte: 木"])
def test_no_line_is_wider_than_the_terminal(width: int, text: str) -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.update("w", 0, 9)
    clock.now = 5.0
    meter.update("w", 4, 9)
    line = meter.line(text, width)
    assert len(line) <= width and "\n" not in line
    assert not text.isascii() or meter.line(text, width, plain=True).isascii()


# ---- a terminal


class Terminal:
    """A run of the command whose standard error is a terminal."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 80, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        clean = {k: v for k, v in os.environ.items() if k not in ("CI", "NO_COLOR")}
        self.process = subprocess.Popen(
            [str(COMMAND), *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
            env={**clean, "TERM": "xterm", "PYTHONUTF8": "1", **environment}, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def read(self, until: str = "") -> str:
        """Return what the terminal got until a text comes, or all."""
        limit = time.monotonic() + 120
        while time.monotonic() < limit and not (until and until in self.shown):
            try:
                part = os.read(self.ours, 4096)
            except OSError:  # Linux says so that nobody holds the other end any more
                break
            if not part:
                break
            self.shown += part.decode(errors="replace")
        return self.shown

    def ended(self) -> int:
        self.read()
        os.close(self.ours)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.mark.slow
def test_a_bar_is_on_the_terminal_and_leaves_it_clean(tmp_path: Path) -> None:
    run = Terminal(tmp_path, *SWEEP)
    assert 0 == run.ended()
    lines = run.shown.split(CLEAR)
    assert any("of 18" in line and line.rstrip().endswith("|") for line in lines)
    assert any("█" in line for line in lines) and all(len(line) <= 78 for line in lines)
    assert run.shown.endswith(CLEAR) and "\n" not in run.shown
    assert (tmp_path / "table.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "environment"), [(("-q",), {}), ((), {"TERM": "dumb"}), ((), {"CI": "1"}),
                              (("--diagnostics-format=json",), {})]
)  # fmt: skip
def test_no_bar_if_nobody_could_see_it(tmp_path: Path, more: tuple[str, ...], environment: dict[str, str]) -> None:
    run = Terminal(tmp_path, *SWEEP, *more, **environment)
    assert 0 == run.ended()
    assert not [part for part in ("\x1b", "|", "of 18") if part in run.shown]
    assert run.shown == "" or more == ("--diagnostics-format=json",)


@pytest.mark.slow
def test_a_pipe_gets_no_bar(tmp_path: Path) -> None:
    done = subprocess.run([str(COMMAND), *SWEEP], cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_a_narrow_terminal_gets_short_lines(tmp_path: Path) -> None:
    run = Terminal(tmp_path, *SWEEP, columns=30)
    assert 0 == run.ended() and all(len(line) <= 29 for line in run.shown.split(CLEAR))


@pytest.mark.slow
def test_an_ascii_terminal_gets_ascii(tmp_path: Path) -> None:
    run = Terminal(tmp_path, *SWEEP, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert 0 == run.ended() and run.shown.isascii() and "#" in run.shown


@pytest.mark.slow
def test_an_interrupt_leaves_the_terminal_clean_and_no_file(tmp_path: Path) -> None:
    words = [word.replace("torus(11, 11)", "torus(24, 24)") for word in SWEEP]
    run = Terminal(tmp_path, *words)
    run.read(until="of 18")
    os.killpg(run.process.pid, signal.SIGINT)
    assert 130 == run.ended()
    assert run.shown.endswith(CLEAR) and "Traceback" not in run.shown
    assert [] == list(tmp_path.iterdir())
