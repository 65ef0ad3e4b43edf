"""Progress, cancellation and logging of the API; it prints nothing."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sampling import every

import collc
from collc.driver.watching import Watch, watching
from collc.ir import progress as reports
from collc.passes import solver

RING = "topology ring = biring(4);\ncollective sums = allreduce on ring;\n"
BOTH = RING + "collective gather = allgather on ring;\nemit sums as msccl-xml;\nemit gather as mpi-c;\n"
#: HiGHS works on it for a long time
HARD = "collective c = broadcast on hypercube(4) { root: 0 }; schedule c using exact { effort: 1000000 };"

Seen = list[tuple[str, int, int]]


def calls(folder: Path) -> dict[str, Callable[..., object]]:
    """Return a call of every function that takes callbacks."""
    path = folder / "both.coll"
    path.write_text(BOTH)
    [made, *_] = collc.compile(path).write(folder)
    return {
        "compile": lambda **more: collc.compile(path, **more),
        "compile_source": lambda **more: collc.compile_source(BOTH, **more),
        "compile_many": lambda **more: collc.compile_many([path, {"text": RING}], target="ir", **more),
        "convert": lambda **more: collc.convert(made, target="ir", **more),
        "verify": lambda **more: collc.verify(path, **more),
        "find": lambda **more: collc.find(nodes=5, degree=2, refresh=True, effort=50, **more),
    }


NAMES = ("compile", "compile_source", "compile_many", "convert", "verify", "find")


# ---- progress


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_progress_is_reported(name: str, tmp_path: Path) -> None:
    seen: Seen = []
    calls(tmp_path)[name](progress=lambda *what: seen.append(what))
    assert seen
    assert all(isinstance(what, str) and 0 <= done and (done <= total or not total) for what, done, total in seen)


def test_collectives_steps_and_parts_of_steps_are_reported() -> None:
    seen: Seen = []
    collc.compile_source(BOTH, progress=lambda *what: seen.append(what))
    assert ("sums", 0, 2) in seen and ("gather", 1, 2) in seen and ("done", 2, 2) == seen[-1]
    assert {"sums: bfb", "sums: lower", "sums: emit msccl-xml", "gather: emit mpi-c"} <= {what for what, *_ in seen}
    assert any(0 < done < total for what, done, total in seen if what not in ("sums", "gather"))


def test_results_from_the_cache_are_reported(tmp_path: Path) -> None:
    seen: Seen = []
    for _ in range(2):
        seen.clear()
        collc.compile_source(RING, target="ir", cache=tmp_path / "cache", progress=lambda *what: seen.append(what))
    assert [("done", 1, 1)] == seen


def test_the_callback_is_called_in_the_caller_s_thread() -> None:
    threads = set()
    with ThreadPoolExecutor(2) as pool:
        collc.compile_source(BOTH, executor=pool, progress=lambda *_: threads.add(threading.get_ident()))
    assert {threading.get_ident()} == threads


def test_an_exception_of_the_callback_is_raised_unchanged() -> None:
    class Mine(Exception):
        pass

    def fails(what: str, done: int, total: int) -> None:
        if "lower" in what:
            raise Mine(what)

    with pytest.raises(Mine, match="sums: lower"):
        collc.compile_source(BOTH, progress=fails)


def test_callbacks_of_threads_do_not_meet() -> None:
    seen: dict[str, set[str]] = {"one": set(), "two": set()}

    def work(name: str) -> None:
        text = f"collective {name} = allgather on biring(5);"
        collc.compile_source(text, progress=lambda what, *_: seen[name].add(what))

    threads = [threading.Thread(target=work, args=(name,)) for name in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "one: bfb" in seen["one"] and "two: bfb" in seen["two"]
    assert not any("two" in what for what in seen["one"]) and not any("one:" in what for what in seen["two"])


# ---- cancellation


class After:
    """Is set from the ``count``-th look on; counts the looks."""

    def __init__(self, count: int) -> None:
        self.count, self.looks = count, 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > self.count


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_work_is_cancelled(name: str, tmp_path: Path) -> None:
    call = calls(tmp_path)[name]
    looks = After(10**9)
    call(cancel=looks)
    assert looks.looks
    for count in {0, 1, looks.looks // 2, looks.looks - 1}:
        with pytest.raises(collc.Cancelled) as caught:
            call(cancel=After(count))
        assert ("C0097", "cancelled") == (caught.value.diagnostics[0].code, caught.value.diagnostics[0].kind)


@pytest.mark.slow
@pytest.mark.parametrize("text", [BOTH, "collective c = allreduce on biring(3);"])
def test_cancelling_at_any_report_is_no_failure_of_a_pass(text: str) -> None:
    """No pass, no choice of `auto` and no search for a culprit may take a cancellation for an error."""
    whole = After(10**9)
    collc.compile_source(text, cancel=whole)
    for count in every(4, range(0, whole.looks, max(1, whole.looks // 25))):
        looks = After(count)
        with pytest.raises(collc.Cancelled):
            collc.compile_source(text, cancel=looks)
        assert count + 1 == looks.looks, "nothing goes on after it"


def test_nothing_is_kept_of_cancelled_work(tmp_path: Path) -> None:
    whole = After(10**9)
    collc.compile_source(RING, target="ir", cancel=whole, cache=tmp_path / "one")
    for count in (0, whole.looks // 2, whole.looks - 1):
        with pytest.raises(collc.Cancelled):
            collc.compile_source(RING, target="ir", cancel=After(count), cache=tmp_path / "two")
    assert [] == list((tmp_path / "two").glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("in_main", [True, False])
def test_a_solver_is_interrupted_soon(in_main: bool) -> None:
    """A generous limit; uninterrupted it takes minutes."""
    event = threading.Event()
    ends: list[object] = []

    def work() -> None:
        try:
            collc.compile_source(HARD, cancel=event)
        except collc.Cancelled as end:
            ends.append(end)

    timer = threading.Timer(0.7, event.set)
    timer.start()
    start = time.monotonic()
    if in_main:
        work()
    else:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert 1 == len(ends) and time.monotonic() - start < 30


class Endless:
    """A solver that runs until it is let go."""

    class Event:
        def subscribe(self, answer: Callable[[Any], None]) -> None: ...

        def unsubscribe(self, answer: Callable[[Any], None]) -> None: ...

    cbMipInterrupt = cbSimplexInterrupt = cbIpmInterrupt = Event()

    def __init__(self) -> None:
        self.end = threading.Event()

    def run(self) -> None:
        self.end.wait(60)


@pytest.mark.slow
def test_a_solver_in_any_thread_is_left_while_it_runs() -> None:
    ends: list[BaseException] = []
    endless = Endless()

    def work() -> None:
        try:
            with watching(None, After(2)):
                solver.run(endless, "endless")
        except collc.Cancelled as end:
            ends.append(end)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not endless.end.is_set() and [collc.Cancelled] == list(map(type, ends))
    endless.end.set()


@pytest.mark.slow
def test_waiting_for_workers_is_cancelled() -> None:
    class Stuck(Executor):
        def __init__(self) -> None:
            self.futures: list[Future[Any]] = []

        def submit(self, *_: Any, **__: Any) -> Future[Any]:  # type: ignore[override]
            self.futures.append(Future())
            return self.futures[-1]

    for call in (
        lambda **more: collc.compile_source(BOTH, **more),
        lambda **more: collc.compile_many([{"text": RING}], **more),
        lambda **more: collc.find(nodes=5, degree=2, refresh=True, effort=10, **more),
    ):
        pool = Stuck()
        with pytest.raises(collc.Cancelled):
            call(executor=pool, cancel=After(4))
        assert pool.futures and all(future.cancelled() for future in pool.futures)


def test_a_cancellation_can_be_pickled() -> None:
    with pytest.raises(collc.Cancelled) as caught:
        collc.compile_source(RING, cancel=After(0))
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, collc.Cancelled) and caught.value.diagnostics == again.diagnostics


def test_without_callbacks_nobody_watches() -> None:
    found: list[bool] = []

    class Looks:
        def is_set(self) -> bool:
            found.append(reports.is_watched())
            return False

    collc.compile_source(RING, cancel=Looks())
    assert found and not reports.is_watched()
    Watch(None, None)("anything", 1, 2)


# ---- logging


def test_the_logger_gets_warnings_remarks_and_times(caplog: pytest.LogCaptureFixture) -> None:
    text = "topology t = torus(3, 3, 2);\ncollective c = allreduce on t;\ncollective d = allgather on t;\n"
    with caplog.at_level(logging.DEBUG, "collc"):
        result = collc.compile_source(f"{text}emit c as msccl-xml;")
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "collc"]
    assert [("WARNING", str(result.diagnostics[0]))] == [one for one in told if one[0] == "WARNING"]
    assert [f"c: {remark}" for remark in result["c"].remarks] == [text for level, text in told if level == "INFO"]
    assert len(result["c"].timings) == len([1 for level, _ in told if level == "DEBUG"])
    assert any(text.startswith("c: lower: ") for level, text in told if level == "DEBUG")


def test_the_logger_has_no_handler_but_the_null_handler() -> None:
    assert [logging.NullHandler] == [type(handler) for handler in logging.getLogger("collc").handlers]
    assert logging.NOTSET == logging.getLogger("collc").level


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_printed(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = calls(tmp_path)[name]
    call()
    call(progress=lambda *_: None)
    with pytest.raises(collc.Cancelled):
        call(cancel=After(1))
    assert ("", "") == capfd.readouterr()


def test_mistakes_and_warnings_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    collc.compile_source(BOTH.replace("emit gather as mpi-c;", ""))
    collc.check("topology t = toruss(3);")
    collc.compile_source("collective c = alltoall on mesh(2, 3); schedule c using flow;").simulate(1)
    for text in ("topology", "collective c = allgather on biring(4); schedule c using exact { steps: 1 };"):
        with pytest.raises(collc.CollcError):
            collc.compile_source(text)
    assert ("", "") == capfd.readouterr()
