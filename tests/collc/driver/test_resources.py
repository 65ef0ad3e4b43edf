"""Nothing is decided by seconds, memory or a failure: effort is counted, and what fails ends the compilation."""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from commands import Ran
from places import ROOT

import collc as compiler
from collc.backends.ir_text import IrText
from collc.driver.compilation import make_jobs, run_jobs
from collc.driver.result import Settings
from collc.ir.diagnostic import CollcError, Excess, error
from collc.messages.internal import InternalError
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.torus.bucket import Bucket
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree
from collc.reading.coll import load_spec
from collc.reading.loading import Loading

Collc = Callable[..., Ran]

AUTO = "topology t = mesh(2, 3);\ncollective c = allreduce on t { size: 1 MiB };\n"
RANGED = AUTO + "schedule c using auto { sizes: 1 KiB..1 GiB };\n"
#: where each kind of candidate does its work
CANDIDATES = [
    (BFB, "run"), (Bucket, "messages"), (Swing, "messages"), (DoubleBinaryTree, "messages"), (ForestScheduler, "grow"),
]  # fmt: skip


def failing(problem: BaseException) -> Callable[..., Any]:
    def fail(*given: Any, **options: Any) -> Any:
        raise problem

    return fail


def codes(mistake: CollcError) -> list[str]:
    return [d.code for d in mistake.diagnostics]


# ---- candidates


@pytest.mark.parametrize(("cls", "does"), CANDIDATES)
@pytest.mark.parametrize("text", [AUTO, RANGED])
def test_a_candidate_without_memory_ends_the_compilation(
    monkeypatch: pytest.MonkeyPatch, cls: type, does: str, text: str
) -> None:
    """On a machine with more memory it might be the fastest: going on without it would write other bytes there."""
    monkeypatch.setattr(cls, does, failing(MemoryError()))
    with pytest.raises(CollcError) as caught:
        compiler.compile_source(text, target="mpi-c")
    assert (codes(caught.value), caught.value.exit_status) == (["C0023"], 3)
    assert f"candidate `{cls.name}" in caught.value.diagnostics[0].message  # type: ignore[attr-defined]


@pytest.mark.parametrize(("cls", "does"), CANDIDATES)
def test_a_candidate_that_fails_is_an_internal_error(
    collc: Collc, monkeypatch: pytest.MonkeyPatch, cls: Any, does: str
) -> None:
    monkeypatch.setattr(cls, does, failing(ZeroDivisionError("division by zero")))
    with pytest.raises(InternalError) as caught:
        compiler.compile_source(AUTO, target="mpi-c")
    assert caught.value.message == f"pass `{cls.name}` failed on `c`: ZeroDivisionError: division by zero"
    Path("a.coll").write_text(AUTO)
    ran = collc("a.coll", "-t", "mpi-c", "-o", "out.c")
    assert (ran.status, Path("out.c").exists()) == (70, False)
    (line,) = re.findall(r"  note: run: collc (.*)", ran.err)
    again = collc(*shlex.split(line))
    assert (again.status, f"pass `{cls.name}` failed on `c`" in again.err) == (70, True)


def test_a_candidate_that_does_not_apply_is_left_out_with_the_reason() -> None:
    choice = compiler.compile_source(AUTO, target="mpi-c").collectives["c"].choice
    assert choice is not None
    (skipped,) = choice.skipped
    assert (skipped.name, skipped.reason.endswith("[C0592]")) == ("trivance-latency", True)


@pytest.mark.parametrize("text", [AUTO, RANGED])
def test_the_best_candidate_without_memory_is_not_replaced_by_the_next(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(Coalesce, "run", failing(MemoryError()))
    monkeypatch.setattr(BalanceThreadblocks, "run", failing(MemoryError()))
    with pytest.raises(CollcError) as caught:
        compiler.compile_source(text, target="mpi-c")
    assert codes(caught.value) == ["C0023"]


# ---- trials


@attrs.frozen
class Tight(IrText):
    """A target for programs of few chunks a shard, which fails on those of some numbers."""

    name: ClassVar[str] = "tight"
    fails: BaseException | None = None

    def emit(self, ir: Any) -> Any:
        if self.fails is not None and ir.chunks <= 9:
            raise self.fails
        if ir.chunks > 9:
            found = Excess("chunks", ir.chunks, 9)
            raise error("C0627", f"{ir.chunks} chunks a shard; the limit is 9", exit_status=3, excess=found)
        return super().emit(ir)


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "code"), [(MemoryError(), "C0023"), (ZeroDivisionError("7"), "C0070")])
@pytest.mark.parametrize(
    "using", ["bfb", "bfb { chunks: 64 }", "forest { k: 1, pieces: 16 }", "double-binary-tree { pipeline: 8 }"]
)
def test_a_trial_that_fails_ends_the_compilation(using: str, problem: Exception, code: str) -> None:
    """Whether fewer chunks or pieces fit is tried; a failure there says nothing about what fits."""
    ring = "for r in 0..4 { link n[r] -> n[(r + 1) mod 4] : 101 GB/s; link n[(r + 1) mod 4] -> n[r] : 211 GB/s; }"
    net = "= biring(4);" if using.startswith("forest") else f"{{ rank n[4]; {ring} }}"
    text = f"topology t {net}\ncollective c = allreduce on t;\nschedule c using {using};\n"
    (job,) = make_jobs(load_spec(text, "x.coll", Loading()))[0]
    tried = []
    for fails in (None, problem):
        try:
            run_jobs([attrs.evolve(job, targets=(Tight(fails=fails),))], Settings())
        except CollcError as found:
            tried.append(codes(found))
        else:
            tried.append([])
    assert tried[0] in ([], ["C0627"])
    assert tried[1] == [code]


# ---- wherever memory runs out


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("collc.driver.judging.structure", "checking the result of pass `bfb`"),
        ("collc.driver.runner.verify", "checking the result of pass `"),
        ("collc.passes.program.coalesce.Coalesce.run", "pass `coalesce`"),
        ("collc.backends.mpi_c.MpiC.emit", "target `mpi-c`"),
        ("collc.backends.mpi_c.MpiC.check", "target `mpi-c`"), ("collc.driver.decided.plan", "`compile`"),
    ],
)  # fmt: skip
def test_memory_that_runs_out_anywhere_is_the_machine_s_limit(
    collc: Collc, monkeypatch: pytest.MonkeyPatch, where: str, said: str
) -> None:
    monkeypatch.setattr(where, failing(MemoryError()))
    text = "collective c = allgather on biring(4);\nschedule c using bfb;\n"
    with pytest.raises(CollcError) as caught:
        compiler.compile_source(text, target="mpi-c")
    assert (codes(caught.value), caught.value.exit_status) == (["C0023"], 3)
    assert said in caught.value.diagnostics[0].message
    Path("a.coll").write_text(text)
    ran = collc("a.coll", "-t", "mpi-c", "-o", "out.c")
    assert (ran.status, "[C0023]" in ran.err, sorted(p.name for p in Path().iterdir())) == (3, True, ["a.coll"])


# ---- time


#: with `exact` and `flow` among the candidates, too
TIMED = [
    AUTO, RANGED, "collective c = gather on biring(4) { root: 1 };\n", "collective c = alltoall on torus(3, 3);\n",
    "collective c = allreduce on dgx_a100(1);\nschedule c using forest;\n",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", TIMED)
def test_a_slower_process_writes_the_same_bytes(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Every look at a clock finds an hour gone."""
    targets = ["mpi-c", "ir"]
    usual = compiler.compile_source(text, target=targets).artifacts
    hours = itertools.count(10**6, 3600)
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, name, lambda: float(next(hours)))
        monkeypatch.setattr(time, f"{name}_ns", lambda: next(hours) * 10**9)
    slow = compiler.compile_source(text, target=targets).artifacts
    assert [one.text for one in usual.values()] == [one.text for one in slow.values()]


_CLOCKS = re.compile(
    r"perf_counter|monotonic|time_limit|time\.time\b|process_time|getrusage|psutil|cpu_count|sched_getaffinity|"
    r"sc_avphys|^\s*(?:import|from) (?:time|resource)\b|except [^:\n]*\b(?:MemoryError|Exception|BaseException)\b",
    re.MULTILINE,
)
#: what looks at clocks, processors or any exception, and why that decides nothing
_KNOWN = {
    "collc/compiling.py": "turns exceptions into errors", "collc/files/store.py": "removes what is half written or old",
    "collc/driver/watching.py": "passes on what a callback raises",
    "collc/driver/spans.py": "times spans, for --time-passes and --profile",
    "collc/processes/memory.py": "reads the memory, for the same", "collc/cli/profile.py": "writes a profile after any",
    "collc/autoload_torch.py": "warns that torch goes without", "collc/driver/blame.py": "finds who is to blame",
    "collc/cli/app.py": "turns exceptions into errors", "collc/cli/crash.py": "writes a reproducer as far as it can",
    "collc/driver/runner.py": "turns exceptions into errors",
    "collc/driver/emission.py": "turns exceptions into errors",
    "collc/driver/judging.py": "what a check raises is a finding",
    "collc/processes/workers.py": "counts and ends workers",
    "collc/files/texts.py": "removes what is half written", "collc/files/trust.py": "removes what is half written",
    "collc/tools/launching.py": "ends processes",
    "collc/selection/selector.py": "turns exceptions into errors",
    "backends/mpi_c/launch.py": "ends processes", "backends/processes.py": "ends processes",
    "backends/mpi_c/reserved.py": "names of C", "collc/cli/console.py": "how often progress is shown",
    "collc/cli/watching.py": "waits between two looks at files",
    "collc/cli/find.py": "says how long a search took", "collc/cli/meter.py": "says how long the rest takes",
    "collc/cli/searching.py": "says how long the rest takes",
    "collc/messages/internal.py": "turns exceptions into errors", "collc/lsp/documents.py": "shows it in the editor",
    "collc/files/tuned.py": "names the machine whose times a file has",
    "collc/cli/signals.py": "ends the process", "collc/files/replacing.py": "waits for another writer; undoes renames",
    "passes/solver.py": "passes on what ends it", "ir/registry.py": "says which plugin fails",
    "collc/reading/__init__.py": "says which plugin's reader fails, and that it knows no text",
}  # fmt: skip


def test_nothing_else_looks_at_clocks_or_catches_everything() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in ("ir", "frontends", "passes", "backends", "collc")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not {"torch", "testbed"} & set(path.parts) and _CLOCKS.search(path.read_text())
    }
    assert found <= set(_KNOWN)


def test_the_search_for_clocks_finds_them() -> None:
    for line in (
        "import time\n",
        "start = perf_counter()",
        "except Exception:",
        "except (KeyError, MemoryError) as e:",
    ):
        assert _CLOCKS.search(line)
    assert _CLOCKS.search("bandwidth_time(x)") is None
