"""The driver: which passes run, what is verified between them, and what becomes of a pass that fails."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

import collc as compiler
from collc.backends.base import Limits, Target
from collc.backends.ir_text import IrText
from collc.backends.mpi_c import MpiC
from collc.backends.msccl_xml import MscclXml
from collc.driver.compilation import Job, run_jobs
from collc.driver.compile import compile_collective
from collc.driver.pipeline import LEVELS, plan
from collc.driver.plan import Recipe
from collc.driver.result import CollectiveResult, Settings
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest
from collc.ir.text import parse_ir, print_ir
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.messages.internal import InternalError
from collc.passes import PASSES
from collc.passes.base import Pass
from collc.registry import classes as registry
from collc.registry.elements import parse_elements, pipeline_text


def ring(n: int = 4) -> Topology:
    return Topology.from_links(f"biring({n})", n, [x for i in range(n) for x in ((i, (i + 1) % n), ((i + 1) % n, i))])


def request(kind: str = "allreduce", scheduler: str = "bfb", root: int | None = None, **more: Any) -> CollectiveRequest:
    return CollectiveRequest(
        "grads", "ring", Problem(ring(), Collective(kind, 4, root)), ScheduleRequest(scheduler, **more)
    )


def planned(passes: str | None = None, target: Target | None = None, level: str = "2", **more: Any) -> str:
    """Return the pipeline that a recipe leads to."""
    elements = None if passes is None else parse_elements(passes, "-p")
    disabled = more.pop("disabled", ())
    found = plan(Recipe(level, elements, disabled), more.pop("ask", request().schedule), target, **more)
    return pipeline_text(found.passes)


def failure(passes: str | None, **more: Any) -> tuple[str, int, str]:
    """Return code, column of the caret (0: none) and message of a recipe that cannot run."""
    with pytest.raises(CollcError) as caught:
        planned(passes, **more)
    (found,) = caught.value.diagnostics
    assert caught.value.exit_status == 2
    return found.code, found.span.column if found.span else 0, found.message


# ---- plans


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("0", "bfb,discretize,lower"),
        ("1", "bfb,discretize,lower,coalesce,prune-dependencies"),
        ("2", "bfb,discretize,renumber,lower,coalesce,balance-threadblocks,prune-dependencies,reuse-scratch"),
        (
            "3",
            "bfb,discretize,renumber,lower,eliminate-copies,coalesce,balance-threadblocks,reorder-fifo,"
            "prune-dependencies,reuse-scratch",
        ),
    ],
)
def test_levels_without_a_target(level: str, expected: str) -> None:
    assert expected == planned(level=level)


@pytest.mark.parametrize("level", list(LEVELS))
def test_every_level_meets_the_limits_of_a_runtime(level: str) -> None:
    """A file that a runtime would refuse is of no use at any level."""
    text = planned(target=MscclXml(runtime="rccl"), level=level)
    assert "unfuse" in text
    assert "balance-threadblocks{max-threadblocks=64,max-steps=64" in text
    # Fusing finds what need not be stored, before fused instructions are done without.
    assert text.index("unfuse") < text.index("balance-threadblocks") or ",fuse{" in text.split(",unfuse")[0]
    assert "fused=false" in text or level in "01"


def test_a_program_that_is_left_for_later_is_made_once_and_travels() -> None:
    """Without a target a result holds how its program is made; it may be read in another process."""
    (result,) = compiler.compile_source("collective c = allgather on biring(3);").collectives.values()
    assert result.made is None and result.later is not None
    again = pickle.loads(pickle.dumps(result))
    assert again.program == result.program and result.program is result.program
    assert again.cost == result.cost
    assert verify(again.program).ok


def test_every_entry_of_a_level_says_why_it_stands_there() -> None:
    assert all(len(entry.why) > 20 for entries in LEVELS.values() for entry in entries)
    assert all(entry.name in PASSES for entries in LEVELS.values() for entry in entries)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "bfb,discretize,lower"),
        ("bfb", "bfb,discretize,lower"),
        ("coalesce", "bfb,discretize,lower,coalesce"),
        ("discretize{max-chunks=8}", "bfb,discretize{max-chunks=8},lower"),
        ("bfb,discretize{max-chunks=8},coalesce", "bfb,discretize{max-chunks=8},lower,coalesce"),
        ("bfb,reverse,reverse", "bfb,reverse,reverse,discretize,lower"),
        ("lower,coalesce,coalesce", "bfb,discretize,lower,coalesce,coalesce"),
    ],
)
def test_what_lies_between_levels_is_added(given: str, expected: str) -> None:
    if given == "lower,coalesce,coalesce":
        # `lower` is named without `discretize`: the user's order stands, and the fact it needs is checked when it runs.
        expected = "bfb,lower,coalesce,coalesce"
    assert expected == planned(given)


def test_a_runtime_gets_what_it_needs_after_any_pipeline() -> None:
    text = planned("bfb,discretize,lower", MscclXml(runtime="rccl"))
    assert text.startswith("bfb,discretize,lower,unfuse,balance-threadblocks{")


def test_threadblocks_are_balanced_before_they_are_fused() -> None:
    """Balancing does not take fused instructions; where it was not asked for, it comes before them."""
    text = planned("bfb,fuse", MscclXml())
    assert text.startswith("bfb,discretize,lower,balance-threadblocks{") and ",fuse{" in text
    assert planned("bfb,fuse") == "bfb,discretize,lower,fuse"
    assert planned("fuse", MscclXml(runtime="rccl")).endswith(",unfuse")


def test_an_option_given_wins_over_the_limit() -> None:
    text = planned("balance-threadblocks{max-steps=10}", MscclXml())
    assert "max-steps=10" in text
    assert "max-steps=64" not in text


def test_plans_stop_at_the_schedule_when_that_is_wanted() -> None:
    assert planned(until=Schedule) == "bfb,discretize"
    assert planned("bfb,reverse,lower,coalesce", until=Schedule) == "bfb,reverse"
    assert planned("", until=Schedule) == "bfb"
    assert planned(target=IrText(level="schedule"), until=Schedule) == "bfb,discretize"


def test_plans_begin_where_the_input_does() -> None:
    after = "coalesce,balance-threadblocks,prune-dependencies,reuse-scratch"
    assert planned(start=Schedule) == f"discretize,renumber,lower,{after}"
    assert planned(start=Program) == after
    assert ",unfuse,balance-threadblocks{" in planned(start=Program, target=MscclXml(runtime="rccl"))
    assert planned("", start=Program) == ""


def test_passes_can_be_left_out() -> None:
    after = "balance-threadblocks,prune-dependencies,reuse-scratch"
    assert planned(disabled=("coalesce",)) == f"bfb,discretize,renumber,lower,{after}"
    assert "balance" not in planned(target=MscclXml(runtime="rccl"), disabled=("balance-threadblocks",))


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ("coalesce,bfb", ("C0011", 10, "pass `bfb` takes a problem, but after `coalesce` there is a program")),
        ("bfb,bfb", ("C0011", 5, "pass `bfb` takes a problem, but after `bfb` there is a schedule")),
        ("lower,discretize", ("C0011", 7, "pass `discretize` takes a schedule, but after `lower` there is a program")),
        ("bfb,coalesc", ("C0008", 5, "unknown pass `coalesc`")),
        ("auto", ("C0008", 1, "unknown pass `auto`")),
        ("bfb,discretize{chunks=3}", ("C0009", 16, "pass `discretize` has no option `chunks`")),
    ],
)
def test_a_pipeline_that_cannot_run_is_refused_before_it_runs(passes: str, expected: tuple[str, int, str]) -> None:
    assert expected == failure(passes)


def test_passes_that_cannot_be_left_out() -> None:
    assert failure(None, disabled=("bfb",)) == ("C0011", 0, "pass `bfb` makes the schedule and cannot be left out")
    assert failure(None, disabled=("bfs",)) == ("C0008", 0, "unknown pass `bfs` in --disable-pass")
    assert failure("bfb", disabled=("lower",)) == (
        "C0011",
        0,
        "the pipeline ends with a schedule, but a program is needed",
    )


def test_an_input_of_a_level_cannot_go_back() -> None:
    assert failure("bfb", start=Program) == (
        "C0011",
        1,
        "pass `bfb` takes a problem, but at the start there is a program",
    )


def test_the_command_line_overrides_the_specification_s_options(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, Tuned)
    monkeypatch.setitem(registry.SCHEDULERS, "tuned", ("tuned", ""))
    ask = ScheduleRequest("tuned", (Option("first", 1), Option("second", 2)))
    assert planned("tuned{second=5}", ask=ask, until=Schedule) == "tuned{first=1,second=5}"
    assert planned("", ask=ask, until=Schedule) == "tuned{first=1,second=2}"
    assert planned("bfb", ask=ask, until=Schedule) == "bfb"


# ---- passes that go wrong


@attrs.frozen
class Tuned(Pass):
    name: ClassVar[str] = "tuned"
    summary: ClassVar[str] = "has options"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Schedule

    first: int = 0
    second: int = 0

    def run(self, ir: Any) -> Any:
        raise AssertionError


@attrs.frozen
class Broken(Pass):
    """Does to a schedule what its option says."""

    name: ClassVar[str] = "broken"
    summary: ClassVar[str] = "goes wrong"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    how: str = "raise"

    def run(self, ir: Schedule) -> Any:
        match self.how:
            case "raise":
                return 1 // 0
            case "memory":
                raise MemoryError
            case "kind":
                return ir.collective
            case "row":
                return attrs.evolve(ir, shard=ir.shard.astype(np.int64) + 99)
            case "drop":
                return ir.rows(np.arange(len(ir) - 1))
            case _:
                return ir


def _register(monkeypatch: pytest.MonkeyPatch, cls: type) -> None:
    monkeypatch.setitem(PASSES, cls.name, (__name__, cls.__name__, cls.summary))
    monkeypatch.setattr(registry, "_load", lambda entry: cls if entry[1] == cls.__name__ else _load(entry))


_load = registry._load


def compiled(passes: str | None = None, verify: str = "each", ask: CollectiveRequest | None = None) -> CollectiveResult:
    elements = None if passes is None else parse_elements(passes, "-p")
    return compile_collective(ask or request(), [IrText()], Settings(Recipe("2", elements), verify))


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("raise", "ZeroDivisionError: integer division or modulo by zero"),
        ("kind", "it returned a Collective"),
        ("row", "its result is malformed: "),
        ("drop", "its result is wrong: "),
    ],
)
def test_a_pass_that_breaks_the_ir_is_an_internal_error(monkeypatch: pytest.MonkeyPatch, how: str, what: str) -> None:
    """The error carries what is needed to see it again: the IR before the pass and the rest of the pipeline."""
    _register(monkeypatch, Broken)
    with pytest.raises(InternalError) as caught:
        compiled(f"broken{{how={how}}},discretize", verify="full")
    assert f"internal error: pass `broken` failed on `grads`: {what}" in caught.value.diagnostics[0].message
    assert caught.value.exit_status == 70
    assert isinstance(caught.value.ir, Schedule)
    how_text = "" if how == "raise" else f"{{how={how}}}"
    assert f"broken{how_text},discretize,lower" == caught.value.remaining
    with pytest.raises(InternalError):
        compile_collective(
            request(), [IrText()], Settings(Recipe("2", parse_elements(caught.value.remaining, "-p")), "full"),
            start=parse_ir(print_ir(caught.value.ir), "x"),
        )  # fmt: skip


def test_a_pass_without_memory_is_the_machine_s_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, Broken)
    with pytest.raises(CollcError) as caught:
        compiled("broken{how=memory}")
    assert [d.code for d in caught.value.diagnostics] == ["C0023"]
    assert caught.value.exit_status == 3


def test_what_each_verify_mode_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong schedule in the middle: `full` sees it there, `each` at the level's end, `off` never; two name it."""
    _register(monkeypatch, Broken)
    for mode, seen in (("full", ""), ("each", "pass `discretize`: its result is wrong: ")):
        with pytest.raises(InternalError, match="pass `broken` failed") as caught:
            compiled("broken{how=drop},discretize", verify=mode)
        assert caught.value.seen.startswith(seen) and bool(caught.value.seen) == bool(seen)
    assert compiled("broken{how=drop},discretize", verify="off").artifacts


def test_reports_tell_what_was_executed() -> None:
    assert [r.kind for r in compiled().reports] == ["schedule", "program", "program"]
    assert [r.kind for r in compiled(verify="off").reports] == []


# ---- results


def test_another_collective_than_asked_for_is_refused() -> None:
    with pytest.raises(CollcError, match="C0013"):
        compiled("bfb,reverse", ask=request("allgather"))
    assert compiled("bfb,reverse", ask=request("allreduce")).schedule


def test_a_fact_a_pass_requires_is_checked() -> None:
    with pytest.raises(CollcError) as caught:
        compiled("bfb,lower")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("C0012", "pass `lower` needs a discrete schedule")


def test_a_schedule_by_hand_is_verified_and_blamed_on_the_user() -> None:
    good = compiled().schedule
    assert isinstance(good, Schedule)
    assert compiled(ask=request(scheduler="steps", schedule=good)).schedule
    with pytest.raises(CollcError) as caught:
        compiled(ask=request(scheduler="steps", schedule=good.rows(np.arange(len(good) - 1))))
    assert not isinstance(caught.value, InternalError)
    assert {"C0401"} == {d.code for d in caught.value.diagnostics}


def test_steps_without_a_schedule_by_hand() -> None:
    with pytest.raises(CollcError, match="C0014"):
        compiled("steps")


def test_programs_bear_the_name_of_their_collective() -> None:
    assert compile_collective(request(), [MpiC()], Settings()).artifacts[0].filename.removesuffix(".c") == "grads"


def test_targets_share_what_their_pipelines_have_in_common() -> None:
    both = compile_collective(request(), [MpiC(), IrText(), MscclXml(runtime="rccl")], Settings())
    steps = [t.step for t in both.timings]
    assert 1 == steps.count("bfb") == steps.count("lower")
    assert steps.count("balance-threadblocks") == 2
    alone = compile_collective(request(), [MscclXml(runtime="rccl")], Settings())
    assert alone.artifacts == both.emitted[2][1]


def test_without_a_target_the_program_is_made_when_it_is_asked_for() -> None:
    result = compile_collective(request(), [], Settings())
    assert result.made is None
    assert [t.step for t in result.timings if t.step == "lower"] == []
    assert isinstance(result.program, Program)
    assert result.program == compile_collective(request(), [IrText()], Settings()).program


@attrs.frozen
class Faulty(Target):
    """Writes what its own reader refuses, or fails."""

    name: ClassVar[str] = "faulty"
    summary: ClassVar[str] = ""
    suffix: ClassVar[str] = ".txt"

    def emit(self, ir: Any) -> Any:
        raise KeyError("oops")

    def check(self, ir: Any, artifacts: Any) -> Any:
        raise NotImplementedError


def test_a_target_that_fails_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="target `faulty` failed: KeyError: 'oops'"):
        compile_collective(request(), [Faulty()], Settings())


def test_limits_reach_passes_by_name() -> None:
    names = {a.name for a in attrs.fields(Limits)}
    assert {
        "max_threadblocks",
        "max_steps",
        "max_channels",
        "max_count",
        "max_offset",
        "max_elements",
        "fifo_depth",
        "fused",
        "equal_chunks",
        "one_sided",
        "inplace",
        "templates",
        "orbits",
        "instances",
    } == names


# ---- several collectives


def test_jobs_run_in_workers_and_keep_their_order() -> None:
    asks = [attrs.evolve(request(kind), name=kind) for kind in ("allgather", "reduce-scatter", "allreduce")]
    jobs = [Job(ask, (MscclXml(),)) for ask in asks]
    inline = run_jobs(jobs, Settings())
    seen: list[tuple[str, int, int]] = []
    with ThreadPoolExecutor(3) as pool:
        pooled = run_jobs(jobs, Settings(), executor=pool, progress=lambda *what: seen.append(what))
    assert [r.name for r in inline] == [r.name for r in pooled] == ["allgather", "reduce-scatter", "allreduce"]
    assert [r.artifacts for r in inline] == [r.artifacts for r in pooled]
    assert seen[-1] == ("done", 3, 3)
    assert [done for _, done, _ in seen] == [0, 1, 2, 3]


def test_mistakes_of_all_jobs_are_told_together() -> None:
    asks = [request("gather", root=0), request("allreduce"), request("alltoall")]
    jobs = [Job(ask, ()) for ask in asks]
    with pytest.raises(CollcError) as caught:
        run_jobs(jobs, Settings())
    assert [d.code for d in caught.value.diagnostics] == ["C0503", "C0503"]
    assert caught.value.exit_status == 3
