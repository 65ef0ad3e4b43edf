"""What all tests share: the command run in this process or as a process of its own, golden files."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import sampling
from commands import RING, Ran
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from places import HELPERS

from collc.cli import main

pytest_plugins = ["mpi_fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    """Machines are shared and noisy: no test fails for being slow, and a run repeats what the last one tried.

    With ``COLLC_EXHAUSTIVE=1`` every run tries other examples.
    """
    sampling.QUICK = config.option.markexpr == "quick"
    gc.set_threshold(400_000)  # as the command does
    settings.register_profile(
        "collc", deadline=None, derandomize=not sampling.EXHAUSTIVE, suppress_health_check=[HealthCheck.too_slow],
        max_examples=sampling.examples(40),
    )  # fmt: skip
    settings.load_profile("collc")
    if not sampling.EXHAUSTIVE:
        sampling.draw_no_constants_of_modules(providers)


# Tests start hundreds of processes, and every worker of xdist reads every test. Without bytecode each compiles the
# package and rewrites all assertions anew; images of containers often forbid it.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The compiler behind the commands of MPICH and Open MPI. Tests of what an optimizer does say -O1 or -O2 themselves.
for name in ("MPICH_CC", "OMPI_CC"):
    os.environ.setdefault(name, str(HELPERS / "quick_cc"))


# Background jobs of some shells ignore signals, and so would all processes that tests start.
if threading.current_thread() is threading.main_thread():
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL),
    ):  # fmt: skip
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the .expect files of tests/cases")


#: cases of one test that are quick; the others run in the whole suite only
MOST_QUICK_CASES = 3


def reads_backwards(config: pytest.Config) -> bool:
    """Return whether this is every second worker of xdist, which reads the tests of one folder."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return worker.endswith(tuple("13579")) and len(config.args) == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport]:
    """Let workers read the tests from both ends: what one has rewritten, the other loads."""
    report = yield
    if isinstance(collector, pytest.Directory) and reads_backwards(collector.config):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the quick tests, and make those with the same need one group of xdist.

    Quick are tests without another mark; of a test with many cases, the same few every time.
    """
    if reads_backwards(config):
        items.sort(key=lambda item: item.path.parts)  # the order of all workers
    grouped = getattr(config.option, "loadgroup", False)
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        for need in item.iter_markers("needs"):
            item.add_marker(pytest.mark.xdist_group(*need.args))
            if grouped:
                _name_group(item, *need.args)
        if not any(item.get_closest_marker(name) for name in ("needs", "slow", "xdist_group")):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for unmarked in cases.values():
        for item in unmarked[:: -(-len(unmarked) // MOST_QUICK_CASES)]:
            item.add_marker("quick")


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests leave: thousands of tests themselves stay to the end."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Divide the tests among workers of xdist, if it is installed and the command line names no other way."""
    from scheduling import ModuleScheduling

    return ModuleScheduling(config, log) if config.option.dist == "loadgroup" else None


def _name_group(item: pytest.Item, group: str) -> None:
    """Write a group behind a test's name, where xdist looks for it.

    Since pytest 9.2 names are objects, and what xdist 3.8 writes does not arrive: its groups are no groups.
    """
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group}")


@contextlib.contextmanager
def _streams(given: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace the standard streams by buffers with UTF-8 text over them."""
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    try:
        yield out, err
    finally:
        # Detached, the buffers outlive the text streams.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before


@pytest.fixture
def collc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Return a function that runs the command in this process, in ``tmp_path``: ``collc("cost", "-", stdin="")``."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLLC_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, stdin: str = "") -> Ran:
        with _streams(stdin.encode()) as (out, err):
            status = main(list(arguments))
        return Ran(status, out.getvalue().decode(), err.getvalue().decode())

    return run


@pytest.fixture
def ring(collc: Callable[..., Ran]) -> str:
    """The name of a small file in the test's own folder."""
    Path("ring.coll").write_text(RING)
    return "ring.coll"
