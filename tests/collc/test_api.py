"""``import collc``: the command without files, signals and printing."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from sampling import every

import collc
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.text import print_ir
from collc.ir.topology import Topology

RING = "topology ring = biring(4);\ncollective sums = allreduce on ring;\n"
BOXES = "param boxes = 2;\ncollective sums = allreduce on biring(boxes);\nemit sums as msccl-xml;\n"
BOTH = RING + "collective gather = allgather on ring;\nemit sums as msccl-xml;\nemit gather as mpi-c;\n"


def test_everything_promised_is_there() -> None:
    assert {"CollcError", "compile", "compile_source", "find", "topology", "verify"} <= set(dir(collc))
    assert all(getattr(collc, name) is not None for name in collc.__all__)
    with pytest.raises(AttributeError, match="module 'collc' has no attribute 'complie'"):
        collc.complie  # type: ignore[attr-defined]  # noqa: B018


def test_a_file_is_compiled_and_written(tmp_path: Path) -> None:
    path = tmp_path / "pod.coll"
    path.write_text(BOXES)
    result = collc.compile(path, target="msccl-xml", params={"boxes": 4})
    assert Fraction(3, 2) == result.cost.T_B
    assert isinstance(result.schedule, Schedule)
    assert isinstance(result.program, Program)
    assert 4 == result.program.num_ranks
    assert result.artifacts["sums"].text.startswith("<!-- collc: allreduce of 4 ranks")
    assert [str(tmp_path / "out" / "sums.xml")] == result.write(tmp_path / "out")
    assert result.artifacts["sums"].text == (tmp_path / "out" / "sums.xml").read_text()
    assert collc.verify(tmp_path / "out" / "sums.xml").ok
    assert () == result.diagnostics


def test_a_text_s_own_emits_are_made() -> None:
    result = collc.compile_source(BOTH)
    assert ["sums", "gather"] == list(result.artifacts)
    assert ["sums.xml", "gather.c", "gather.h"] == list(result.files)
    assert ["msccl-xml", "mpi-c"] == [a.target for a in result.artifacts.values()]


def test_targets_may_be_several() -> None:
    result = collc.compile_source(RING, target=["msccl-xml{runtime=rccl}", "msccl-xml{runtime=msccl}"])
    assert ["sums.xml", "sums-2.xml"] == list(result.files)
    assert result.artifacts["sums"] == result.files["sums.xml"]


def test_without_a_target_there_are_schedule_and_program(tmp_path: Path) -> None:
    result = collc.compile_source(RING)
    assert {} == result.artifacts
    assert 4 == result.cost.T_L
    assert 4 == result.program.num_ranks
    with pytest.raises(collc.CollcError, match="nothing to write"):
        result.write(tmp_path)


def test_several_collectives_are_asked_for_by_name() -> None:
    result = collc.compile_source(BOTH)
    for what in ("schedule", "program", "cost"):
        with pytest.raises(collc.CollcError, match="C0019") as caught:
            getattr(result, what)
        assert f"there are 2 collectives (sums, gather), each with its own {what}" in str(caught.value)
    assert Fraction(3, 4) == result.collectives["gather"].cost.T_B
    assert Fraction(3, 2) == collc.compile_source(BOTH, collective="sums").cost.T_B


def test_warnings_come_with_the_result() -> None:
    result = collc.compile_source(BOTH.replace("emit gather as mpi-c;", ""))
    assert ["C0017"] == [d.code for d in result.diagnostics]
    assert ["sums"] == list(result.collectives)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"target": "mscl-xml"}, "C0007"),
        ({"target": "msccl-xml{runtime=foo}"}, "C0010"),
        ({"passes": "coalesce,bfb"}, "C0011"),
        ({"passes": "bfb,,"}, "C0006"),
        ({"disable_passes": ["nope"]}, "C0008"),
        ({"level": 7}, "C0001"),
        ({"verify": "sometimes"}, "C0001"),
        ({"collective": "nope"}, "C0016"),
        ({"params": {"nope": 1}}, "C0126"),
        ({"node_limit": 3}, "C0310"),
    ],
)
def test_every_mistake_is_a_collc_error(options: dict[str, Any], code: str) -> None:
    with pytest.raises(collc.CollcError) as caught:
        collc.compile_source(RING, **options)
    assert [code] == [d.code for d in caught.value.diagnostics]
    assert not isinstance(caught.value, collc.InternalError)


def test_mistakes_of_a_text_come_all_at_once() -> None:
    with pytest.raises(collc.CollcError) as caught:
        collc.compile_source("topology a = toruss(3);\ntopology b = hypercub(3);\n", path="pod.coll")
    assert ["pod.coll:1:14", "pod.coll:2:14"] == [str(d.span) for d in caught.value.diagnostics]
    again = pickle.loads(pickle.dumps(caught.value))
    assert caught.value.diagnostics == again.diagnostics


def test_what_cannot_be_read_is_a_collc_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.coll", tmp_path):
        with pytest.raises(collc.CollcError, match="C0002"):
            collc.compile(path)
        with pytest.raises(collc.CollcError, match="C0002"):
            collc.verify(path)


def test_a_failure_inside_is_a_collc_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.frontends import coll

    def load(*_: object, **__: object) -> Any:
        raise IndexError("oops")

    monkeypatch.setattr(coll, "load", load)
    with pytest.raises(collc.InternalError, match="IndexError: oops") as caught:
        collc.compile_source(RING)
    assert 70 == caught.value.exit_status
    assert isinstance(caught.value.__cause__, IndexError)


def test_levels_are_verified_and_read() -> None:
    result = collc.compile_source(RING)
    assert collc.verify(result.schedule).ok
    assert collc.verify(result.program).ok
    wrong = result.schedule.rows([0, 1])  # type: ignore[union-attr,arg-type]
    assert not collc.verify(wrong).ok
    again = collc.compile_source(print_ir(result.schedule), path="sums.ir", target="msccl-xml")
    whole = collc.compile_source(RING, target="msccl-xml")
    assert whole.artifacts["sums"].text == again.artifacts["sums"].text


def test_topologies_are_built_from_expressions() -> None:
    torus = collc.topology("torus(3,3,2)")
    assert isinstance(torus, Topology)
    assert 18 == torus.num_ranks
    with pytest.raises(collc.CollcError):
        collc.topology("toruss(3)")


# ---- long work


def test_collectives_are_compiled_in_processes() -> None:
    seen: list[tuple[str, int, int]] = []
    with ProcessPoolExecutor(2) as pool:
        result = collc.compile_source(BOTH, executor=pool, progress=lambda *what: seen.append(what))
    assert {n: a.text for n, a in collc.compile_source(BOTH).files.items()} == {
        n: a.text for n, a in result.files.items()
    }
    assert ["sums", "gather"] == list(result.collectives)
    assert ("done", 2, 2) == seen[-1]


def test_mistakes_in_processes_come_back() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(collc.CollcError) as caught:
        collc.compile_source("collective a = alltoall on biring(3); schedule a using bfb;\n", executor=pool)
    assert ["C0503"] == [d.code for d in caught.value.diagnostics]


def test_a_worker_that_dies_is_told() -> None:
    class Dead(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:  # type: ignore[override]
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("a process died"))
            return future

    with pytest.raises(collc.CollcError, match="C0024"):
        collc.compile_source(RING, executor=Dead())


@pytest.mark.slow
def test_threads_do_not_meet() -> None:
    sizes = range(3, 9)
    expected = {n: collc.compile_source(BOXES, params={"boxes": n}).artifacts["sums"].text for n in sizes}
    found: dict[int, str] = {}

    def work(n: int) -> None:
        found[n] = collc.compile_source(BOXES, params={"boxes": n}).artifacts["sums"].text

    threads = [threading.Thread(target=work, args=(n,)) for n in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert expected == found


@pytest.mark.slow
def test_examples_compile() -> None:
    files = [path for path in sorted(EXAMPLES.glob("*.coll")) if "collective" in path.read_text()]
    for path in every(8, files):  # `check` compiles all of them: tests/collc/cli/test_check.py
        assert collc.compile(path, target="ir").files, path.name
