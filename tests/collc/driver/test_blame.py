"""The first pass that went wrong is named, whatever shows it and when, and its input is enough to see it again."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from commands import Ran
from places import HELPERS
from planted import FAULTS, plant, spoiled
from sampling import every

from collc.backends.base import Artifact, Target
from collc.backends.ir_text import IrText
from collc.driver.compilation import Job, make_jobs, run_jobs
from collc.driver.plan import Recipe
from collc.driver.result import Settings
from collc.ir.diagnostic import CollcError, error
from collc.ir.program import Program
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import Check, Report, verify
from collc.messages.internal import InternalError
from collc.passes.program.coalesce import Coalesce
from collc.passes.program.prune import PruneDependencies
from collc.passes.schedule.discretize import Discretize
from collc.passes.schedule.renumber import Renumber
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.registry.elements import parse_elements

Collc = Callable[..., Ran]


def source(net: str, kind: str, scheduler: str) -> str:
    return f"topology t = {net};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n"


#: (text, pipeline, level, targets, the passes that run)
CASES = [
    (
        source("biring(4)", "allreduce", "bfb"), None, "2", "msccl-xml{runtime=rccl},mpi-c,ir",
        "bfb discretize renumber lower coalesce balance-threadblocks fuse unfuse prune-dependencies reuse-scratch",
    ),
    (
        source("torus(3, 2)", "allgather", "bfb"), None, "3", "msccl-xml,oneccl-xml",
        "bfb discretize renumber lower eliminate-copies coalesce balance-threadblocks reorder-fifo fuse "
        "prune-dependencies reuse-scratch",
    ),
    (
        source("biring(4)", "allreduce", "bfb"), "bfb{collective=allgather},compose,discretize,lower,coalesce", "2",
        "msccl-xml{runtime=rccl}", "bfb compose discretize lower coalesce unfuse balance-threadblocks",
    ),
    (
        source("uniring(4)", "reduce-scatter", "bfb"),
        "bfb{collective=allgather},transpose,discretize,lower,replicate,assign-channels", "2", "mpi-c",
        "bfb transpose discretize lower replicate assign-channels",
    ),
    (
        source("biring(4)", "reduce-scatter", "bfb"), "bfb{collective=allgather},reverse", "2", "ir",
        "bfb reverse discretize lower",
    ),
    (
        source("biring(4)", "allreduce", "forest"), None, "2", "mpi-c,msccl-xml",
        "forest pipelining discretize renumber lower balance-threadblocks prune-dependencies reuse-scratch fuse",
    ),
]  # fmt: skip
PLANTED = [
    (case, mode, name, how)
    for case in range(len(CASES)) for mode in ("each", "full") for name in CASES[case][4].split() for how in FAULTS
]  # fmt: skip


def jobs_of(text: str, targets: str) -> list[Job]:
    return make_jobs(load_spec(text, "x.coll", Loading()), parse_elements(targets, "-t"))[0]


def recipe(passes: str | None, level: str = "2") -> Recipe:
    return Recipe(level, None if passes is None else parse_elements(passes, "-p"))


def failure(text: str, targets: str, settings: Settings) -> CollcError:
    with pytest.raises(CollcError) as caught:
        run_jobs(jobs_of(text, targets), settings)
    return caught.value


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_passes_of_a_case_run(case: int) -> None:
    text, passes, level, targets, names = CASES[case]
    (result,) = run_jobs(jobs_of(text, targets), Settings(recipe(passes, level)))
    assert set(names.split()) == {one.name for plan in result.plans for one in plan.passes}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "mode", "name", "how"), every(5, PLANTED))
def test_the_pass_that_leaves_a_fault_is_named(
    monkeypatch: pytest.MonkeyPatch, case: int, mode: str, name: str, how: str
) -> None:
    """A wait that is left out heals where later passes find all waits anew; then all that is left is right."""
    text, passes, level, targets, _ = CASES[case]
    made = plant(monkeypatch, name, how)
    jobs, settings = jobs_of(text, targets), Settings(recipe(passes, level), mode)
    try:
        (result,) = run_jobs(jobs, settings)
    except InternalError as found:
        assert found.message.startswith(f"pass `{name}` failed on `c`: its result ")
        assert any(made)
        assert found.ir is None or not hasattr(found.ir, "opcode") or verify(found.ir).ok
        assert found.remaining.startswith(name)
    else:
        assert not any(made) or (mode == "each" and how == "wait")
        assert all(report.ok for report in result.reports)


def test_faults_are_planted() -> None:
    """Most pairs of a pass and a fault have something to spoil."""
    from collc.passes.lowering.lower import Lower

    schedule = run_jobs(jobs_of(CASES[0][0], "ir"), Settings())[0].schedule
    assert all(spoiled(schedule, how) is not None for how in FAULTS)
    assert all(spoiled(Lower().run(schedule), how) is not None for how in FAULTS)  # type: ignore[arg-type]


# ---- a fault that shows later, as something else


@pytest.mark.parametrize("kind", [IndexError("7"), error("C0505", "one-way links", exit_status=3)])
@pytest.mark.parametrize("mode", ["each", "full"])
def test_a_pass_that_fails_on_a_wrong_input_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch, kind: Exception, mode: str
) -> None:
    plant(monkeypatch, "discretize", "drop")
    whole = Renumber.run

    def run(self: Renumber, ir: Any) -> Any:
        if not verify(ir).ok:
            raise kind
        return whole(self, ir)

    monkeypatch.setattr(Renumber, "run", run)
    found = failure(CASES[0][0], "mpi-c", Settings(Recipe(), mode))
    assert isinstance(found, InternalError)
    assert found.message.startswith("pass `discretize` failed on `c`: its result is wrong")
    assert found.seen.startswith("pass `renumber`: ") == (mode == "each")
    monkeypatch.setattr(Discretize, "run", lambda self, ir: attrs.evolve(ir, discrete=True))
    assert run_jobs(jobs_of(CASES[0][0], "mpi-c"), Settings(Recipe(), mode))


def test_what_a_pass_refuses_of_a_right_input_is_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Coalesce, ir: Any) -> Any:
        raise error("C0505", "no", exit_status=3)

    monkeypatch.setattr(Coalesce, "run", run)
    found = failure(CASES[0][0], "mpi-c", Settings())
    assert ([d.code for d in found.diagnostics], found.exit_status) == (["C0505"], 3)


def test_a_failure_without_verification_is_traced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "discretize", "drop")

    def run(self: Coalesce, ir: Any) -> Any:
        raise IndexError("7")

    monkeypatch.setattr(Coalesce, "run", run)
    found = failure(CASES[0][0], "mpi-c", Settings(Recipe(), "off"))
    assert isinstance(found, InternalError)
    assert found.message.startswith("pass `discretize` failed on `c`")
    assert found.seen == "pass `coalesce`: IndexError: 7"


@attrs.frozen
class Choosy(Target):
    """Fails, in one way or another, on programs that a name marks."""

    name: ClassVar[str] = "choosy"
    summary: ClassVar[str] = ""
    suffix: ClassVar[str] = ".txt"

    how: str = "raise"

    def emit(self, ir: Program) -> list[Artifact]:
        if self.how == "raise" and ir.scheduler == "odd":
            raise KeyError("oops")
        return [Artifact("c.txt", ir.scheduler, self.name)]

    def check(self, ir: Any, artifacts: Any) -> Report:
        return Report("program", "allreduce", 4, (Check("file", artifacts[0].text != "odd", "it is odd"),))


@pytest.mark.parametrize("how", ["raise", "read"])
@pytest.mark.parametrize("mode", ["each", "full"])
def test_a_fault_that_only_a_target_sees_is_traced_to_its_pass(
    monkeypatch: pytest.MonkeyPatch, how: str, mode: str
) -> None:
    whole = PruneDependencies.run
    monkeypatch.setattr(PruneDependencies, "run", lambda self, ir: attrs.evolve(whole(self, ir), scheduler="odd"))
    (job,) = jobs_of(CASES[0][0], "mpi-c")
    with pytest.raises(InternalError) as caught:
        run_jobs([attrs.evolve(job, targets=(IrText(), Choosy(how)))], Settings(Recipe(), mode))
    found = caught.value
    assert found.message.startswith("pass `prune-dependencies` failed on `c`: target `choosy` ")
    assert found.remaining.startswith("prune-dependencies")
    assert found.seen.startswith("target `choosy` " + ("failed: KeyError" if how == "raise" else "wrote a wrong file"))


def test_a_target_that_fails_on_everything_is_to_blame_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs_of(CASES[0][0], "mpi-c")
    monkeypatch.setattr(Choosy, "emit", lambda self, ir: 1 // 0)
    with pytest.raises(InternalError, match="target `choosy` failed: ZeroDivisionError"):
        run_jobs([attrs.evolve(job, targets=(Choosy(),))], Settings())


def test_a_check_that_fails_itself_blames_what_it_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "bfb", "drop")

    def broken(level: Any) -> Report:
        raise IndexError("7")

    monkeypatch.setattr("collc.driver.judging.verify", broken)
    monkeypatch.setattr("collc.driver.runner.verify", broken)
    found = failure(CASES[0][0], "ir", Settings())
    assert isinstance(found, InternalError)
    assert "its result cannot be checked: IndexError: 7" in found.message


# ---- the reproducer


_RUN = """
import sys
sys.path.insert(0, {tests!r})
import planted, pytest
from collc.cli import main
planted.plant(pytest.MonkeyPatch(), {name!r}, {how!r})
sys.exit(main(sys.argv[1:]))
"""


def alone(name: str, how: str, arguments: list[str]) -> Ran:
    """Run collc with a planted fault in a process of its own."""
    script = _RUN.format(tests=str(HELPERS), name=name, how=how)
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "name", "how"),
    every(2, [
        (0, "discretize", "drop"), (2, "compose", "peer"), (0, "balance-threadblocks", "peer"),
        (0, "coalesce", "offset"), (0, "bfb", "drop"), (5, "forest", "offset"),
    ]),
)  # fmt: skip
def test_the_reproducer_fails_in_the_same_pass(collc: Collc, case: int, name: str, how: str) -> None:
    text, passes, level, targets, _ = CASES[case]
    Path("x.coll").write_text(text)
    given = ["x.coll", "-t", targets.split(",")[0], f"-O{level}", "-o", os.devnull, *(["-p", passes] if passes else [])]
    first = alone(name, how, given)
    message = f"internal error: pass `{name}` failed on `"
    assert (first.status, message in first.err) == (70, True), first.err
    (line,) = re.findall(r"  note: run: collc (.*)", first.err)
    words = shlex.split(line)
    again = alone(name, how, words)
    assert (again.status, message in again.err) == (70, True), again.err
    assert collc(*words).status == 0
    (left,) = (word for word in words if word.startswith("collc-crash"))
    if left.endswith(".ir"):
        assert verify(parse_ir(Path(left).read_text(), left)).ok
        assert words[words.index("-p") + 1].startswith(name)
    else:
        assert name in ("bfb", "forest")  # what makes the schedule begins with the file itself


def test_no_pass_that_ran_is_run_again_by_the_reproducer(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "prune-dependencies", "drop")
    Path("x.coll").write_text(CASES[0][0])
    ran = collc("x.coll", "-t", "msccl-xml{runtime=rccl}", "-o", os.devnull)
    (line,) = re.findall(r"  note: run: collc (.*)", ran.err)
    shown = collc(*shlex.split(line), "--print-pipeline").err.splitlines()[0]
    assert shown.endswith(": prune-dependencies,reuse-scratch")


def test_an_internal_error_survives_pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    plant(monkeypatch, "coalesce", "drop")
    found = failure(CASES[0][0], "mpi-c", Settings())
    back = pickle.loads(pickle.dumps(found))
    for name in ("message", "collective", "remaining", "done", "target", "seen", "unverified", "diagnostics"):
        assert getattr(back, name) == getattr(found, name)
    assert print_ir(back.ir) == print_ir(found.ir)  # type: ignore[attr-defined]
