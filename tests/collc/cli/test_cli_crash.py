"""When the compiler itself fails: exit status 70, a file that reproduces the failure, no traceback."""

from __future__ import annotations

import re
import shlex
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Ran

from collc.backends.ir_text import IrText
from collc.driver.compile import compile_collective
from collc.driver.result import Settings
from collc.ir.collective import Collective
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest
from collc.ir.text import print_ir
from collc.ir.topology import Topology
from collc.passes.program.coalesce import Coalesce
from collc.reading.loading import read_ir

Collc = Callable[..., Ran]
COLL = "topology pod = biring(4);\ncollective grads = allreduce on pod;\n"


def schedule_text() -> str:
    ring = Topology.from_links("ring", 4, [(i, (i + 1) % 4) for i in range(4)])
    request = CollectiveRequest("grads", "ring", Problem(ring, Collective("allgather", 4)), ScheduleRequest("bfb"))
    return print_ir(compile_collective(request, [], Settings()).schedule)  # type: ignore[arg-type]


def names() -> list[str]:
    return sorted(p.name for p in Path().iterdir())


def crash_file(err: str) -> str:
    (found,) = re.findall(r"note: (\S+) reproduces it", err)
    return str(found)


def command(err: str) -> list[str]:
    (found,) = re.findall(r"  note: run: collc (.*)", err)
    return shlex.split(found)


@pytest.fixture
def broken_coalesce(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make a pass fail; the function returned mends it."""

    def run(self: Coalesce, ir: Any) -> Any:
        raise IndexError("index 7 is out of bounds")

    whole = Coalesce.run
    monkeypatch.setattr(Coalesce, "run", run)
    return lambda: monkeypatch.setattr(Coalesce, "run", whole)


@pytest.mark.parametrize("name", ["s.ir", "s.coll"])
def test_a_failing_pass_leaves_its_input_and_the_command(
    collc: Collc, broken_coalesce: Callable[[], None], name: str
) -> None:
    Path(name).write_text(schedule_text() if name == "s.ir" else COLL)
    ran = collc(name, "-t", "msccl-xml{runtime=rccl}", "-o", "out.xml")
    assert (ran.status, ran.out) == (70, "")
    assert "collc: error: internal error: pass `coalesce` failed on `" in ran.err
    assert "IndexError: index 7 is out of bounds [C0070]" in ran.err
    assert "Traceback" not in ran.err
    left = crash_file(ran.err)
    assert sorted([name, left]) == names()
    text = Path(left).read_text()
    assert text.startswith("collc-ir 1\n# collc failed; this file reproduces the failure\n# run: collc compile ")
    assert read_ir(text, left)[1].num_ranks == 4  # type: ignore[union-attr]

    again = collc(*command(ran.err))
    assert (again.status, "IndexError: index 7" in again.err) == (70, True)
    broken_coalesce()
    mended = collc(*command(ran.err))
    assert (mended.status, mended.err) == (0, "")


def test_the_same_failure_leaves_the_same_file(collc: Collc, broken_coalesce: Callable[[], None]) -> None:
    Path("s.ir").write_text(schedule_text())
    first, second = (crash_file(collc("s.ir", "-t", "ir", "-o", "o.ir").err) for _ in range(2))
    assert first == second
    assert sorted(["s.ir", first]) == names()


def test_a_traceback_is_shown_when_asked_for(
    collc: Collc, broken_coalesce: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLC_DEBUG", "1")
    Path("s.ir").write_text(schedule_text())
    assert "Traceback (most recent call last)" in collc("s.ir", "-t", "ir", "-o", "o.ir").err


def test_a_failing_target_is_replayed_without_passes(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    def emit(self: IrText, ir: Any) -> Any:
        raise KeyError("oops")

    whole = IrText.emit
    monkeypatch.setattr(IrText, "emit", emit)
    Path("s.ir").write_text(schedule_text())
    ran = collc("s.ir", "-t", "ir", "-o", "o.ir")
    assert ran.status == 70
    assert "-p '' -t ir -o /dev/null" in ran.err
    assert collc(*command(ran.err)).status == 70
    monkeypatch.setattr(IrText, "emit", whole)
    assert collc(*command(ran.err)).status == 0


def test_a_failure_before_any_pass_leaves_the_input(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.frontends import coll

    def load(*_: object, **__: object) -> Any:
        raise RecursionError("deep")

    whole = coll.load
    monkeypatch.setattr(coll, "load", load)
    Path("folder").mkdir()
    Path("folder/pod.coll").write_text(COLL)
    ran = collc("cost", "folder/pod.coll", "--json")
    assert (ran.status, ran.out) == (70, "")
    left = crash_file(ran.err)
    assert Path(left).read_text().endswith(COLL)
    assert ["cost", left, "--json", "-I", "folder"] == command(ran.err)
    monkeypatch.setattr(coll, "load", whole)
    assert collc(*command(ran.err)).status == 0


def test_a_failure_on_standard_input_can_be_replayed_too(collc: Collc, broken_coalesce: Callable[[], None]) -> None:
    ran = collc("-", "-t", "ir", "-o", "-", stdin=schedule_text())
    assert ran.status == 70
    assert collc(*command(ran.err)).status == 70


def test_where_nothing_can_be_written_the_command_is_told(
    collc: Collc, broken_coalesce: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from collc.cli import crash

    Path("s.ir").write_text(schedule_text())
    monkeypatch.setattr(crash, "write_all", lambda outputs: 1 // 0)
    ran = collc("s.ir", "-t", "ir", "-o", "o.ir")
    assert ran.status == 70
    assert "note: command: collc s.ir -t ir -o o.ir" in ran.err


def test_a_failure_is_told_to_tools_too(collc: Collc, broken_coalesce: Callable[[], None]) -> None:
    import json

    Path("s.ir").write_text(schedule_text())
    ran = collc("s.ir", "-t", "ir", "-o", "o.ir", "--diagnostics-format=json")
    assert [d["code"] for d in json.loads(ran.err)["diagnostics"]] == ["C0070"]


@pytest.mark.parametrize("swallow", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_even_if_its_exception_is_lost(
    collc: Collc, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, swallow: bool
) -> None:
    """Compiled modules turn what interrupts them into something else, or into nothing."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in main threads")
    whole = Coalesce.run

    def run(self: Coalesce, ir: Any) -> Any:
        try:
            signal.raise_signal(number)
        except BaseException:
            if not swallow:
                raise ImportError("numpy._core.multiarray failed to import") from None
        return whole(self, ir)

    monkeypatch.setattr(Coalesce, "run", run)
    before = signal.getsignal(number)
    Path("s.ir").write_text(schedule_text())
    assert Ran(128 + number, "", "") == collc("s.ir", "-t", "msccl-xml")
    assert ["s.ir"] == names()
    assert before == signal.getsignal(number)
