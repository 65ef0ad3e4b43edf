"""Part (b): faults planted in schedules, programs, passes and files. What is harmful is refused, by the right name."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import attrs
import numpy as np
import planted_files
from msccl_faults import KINDS, MORE, plant
from msccl_judge import judge
from program_judge import judge_program, judge_schedule

from .answers import Servant
from .findings import Finding

__all__ = ["columns", "files", "outputs", "passes", "prepare"]

_RUNS = 12
_TARGETS = ("msccl-xml", "mpi-c")
_RUNTIMES = ("executor", "msccl", "rccl")

#: what faults are planted in: networks, collectives, schedulers
_CASES = (
    ("torus(3, 2)", "allreduce", "bfb"), ("torus(3, 2)", "allgather", "bfb"), ("uniring(5)", "allreduce", "ring"),
    ("hypercube(3)", "reduce-scatter", "bfb"), ("circulant(7, {1, 2})", "allreduce", "bfb"),
    ("complete(4)", "alltoall", "flow"), ("mesh(3, 2)", "alltoall", "flow"), ("torus(4)", "allreduce", "swing"),
    ("leaf_spine(2, 2, 1)", "allreduce", "forest"), ("dgx_a100(1)", "allgather", "forest"),
    ("kautz(2, 1)", "broadcast { root: 1 }", "bfb"), ("biring(5)", "reduce { root: 2 }", "bfb"),
    ("hypercube(3)", "allreduce", "recursive-doubling"), ("torus(2, 2)", "allreduce { op: max }", "bfb"),
)  # fmt: skip


def _text(topology: str, collective: str, scheduler: str) -> str:
    kind, _, options = collective.partition(" ")
    return f"topology t = {topology};\ncollective c = {kind} on t {options or ';'}\nschedule c using {scheduler};\n"


@cache
def _compiled(case: int) -> Any:
    import collc

    return collc.compile_source(_text(*_CASES[case])).collectives["c"]


# ---- faults in columns


def planted(ir: Any, luck: random.Random) -> tuple[Any, str]:
    """Return an IR with one fault in its columns, and what it is: an entry changed, or two exchanged."""
    names = [name for name in ir.COLUMNS if len(getattr(ir, name))]
    name = luck.choice(names)
    column = getattr(ir, name).astype(np.int64)
    at, other = luck.randrange(len(column)), luck.randrange(len(column))
    if luck.random() < 0.3:
        column[[at, other]] = column[[other, at]]
        return _with(ir, name, column), f"{name}[{at}] and [{other}] exchanged"
    value = luck.choice([int(column[at]) + 1, int(column[at]) - 1, int(column[other]), 0, luck.randrange(-1, 12)])
    column[at] = max(value, -1)
    return _with(ir, name, column), f"{name}[{at}] = {max(value, -1)}"


def _with(ir: Any, name: str, column: Any) -> Any:
    return attrs.evolve(ir, **{name: column})


def _same(a: Any, b: Any) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a.COLUMNS)


def _column_case(seed: int, number: int) -> str:
    """Plant one fault; return how verification and brute force disagree, or nothing."""
    from collc.ir.diagnostic import CollcError
    from collc.ir.schedule import Schedule
    from collc.ir.verify import verify

    luck = random.Random(f"columns {seed} {number}")
    result = _compiled(luck.randrange(len(_CASES)))
    levels = [result.program] + [level for level in (result.schedule,) if isinstance(level, Schedule)]
    ir = luck.choice(levels)
    wrong, what = planted(ir, luck)
    if luck.random() < 0.2:
        wrong, more = planted(wrong, luck)
        what += f", {more}"
    if _same(ir, wrong):
        return ""
    try:
        if not verify(wrong).ok:
            return ""
    except CollcError:
        return ""
    found = judge_schedule(wrong, number) if isinstance(wrong, Schedule) else judge_program(wrong, _RUNS, number)
    return f"verification accepts {what} of a {type(ir).__name__.lower()} of {result.name}: {found}" if found else ""


# ---- faults in passes


def _pass_case(seed: int, number: int) -> str:
    """Let one pass return a faulty result; return what is wrong with how the driver answers."""
    import collc
    from collc.messages.internal import InternalError
    from collc.registry.classes import pass_class

    luck = random.Random(f"passes {seed} {number}")
    case, target = luck.randrange(len(_CASES)), luck.choice(_TARGETS)
    ran = [p.name for _, p in _plan(case, target)]
    victim = luck.choice(ran)
    cls = pass_class(victim)
    kept, done = cls.run, []
    fault = luck.random()

    def faulty(self: Any, ir: Any) -> Any:
        """Plant the same fault whenever the pass runs, as a wrong pass would."""
        after = kept(self, ir)
        if not hasattr(after, "COLUMNS"):
            return after
        wrong, what = planted(after, random.Random(fault))
        if not _same(after, wrong):
            done.append(what)
        return wrong

    cls.run = faulty  # type: ignore[method-assign]
    try:
        result = collc.compile_source(_text(*_CASES[case]), target=target)
    except InternalError as problem:
        blamed = re.search(r"pass `([\w-]+)`", str(problem.diagnostics[0].message))
        if not done or blamed is None or blamed[1] != victim:
            return f"a fault in `{victim}` ({done}) of {_CASES[case]} for {target} is blamed on: {problem}"
        return ""
    except collc.CollcError as problem:
        # A fault may make a program exceed a limit: nothing wrong is written.
        return "" if done else f"nothing planted in `{victim}`, but {problem}"
    finally:
        cls.run = kept  # type: ignore[method-assign]
    if not done:
        return ""
    program = result.collectives["c"].program
    found = judge_program(program, _RUNS, number) if program is not None else ""
    if not found and target == "msccl-xml" and "root" not in _CASES[case][1]:
        found = judge(result.artifacts["c"].text, "executor", _RUNS)
    return f"a fault in `{victim}` ({done[0]}) of {_CASES[case]} for {target} is not seen: {found}" if found else ""


@cache
def _plan(case: int, target: str) -> list[tuple[int, Any]]:
    """Return the passes that the pipeline of a case runs."""
    import collc

    result = collc.compile_source(_text(*_CASES[case]), target=target).collectives["c"]
    return list(enumerate(result.plans[0].passes))


# ---- faults in files


def _xml_case(seed: int, number: int) -> str:
    """Plant a fault in an MSCCL-XML file; return what verification accepts and brute force finds wrong."""
    from collc.backends.msccl_xml import verify_text
    from collc.ir.diagnostic import CollcError

    luck = random.Random(f"files {seed} {number}")
    runtime = luck.choice(_RUNTIMES)
    # Brute force takes rank 0 for the root, as the runtimes' files say none.
    cases = [k for k, (_, collective, _) in enumerate(_CASES) if "root" not in collective]
    text = _xml(luck.choice(cases), runtime)
    wrong = plant(text, luck.choice(KINDS + MORE), luck)
    if wrong == text:
        return ""
    try:
        if not verify_text(wrong, runtime=runtime).ok:
            return ""
    except CollcError:
        return ""
    found = judge(wrong, runtime, _RUNS, seed=number)
    return f"verification accepts for {runtime}: {found}\n{wrong}" if found else ""


@cache
def _xml(case: int, runtime: str) -> str:
    import collc

    return collc.compile_source(_text(*_CASES[case]), target=f"msccl-xml{{runtime={runtime}}}").artifacts["c"].text


def _output_case(seed: int, number: int) -> str:
    """Change an emitted file of any target; return what its target accepts although it is not what was emitted."""
    luck = random.Random(f"outputs {seed} {number}")
    case = luck.choice(planted_files.cases())
    at = luck.randrange(len(case.files))
    text = case.files[at].text
    changed, place = luck.choice([*planted_files.PLANTINGS.values()])(text, luck)
    if changed == text or case.refusal(at, changed):
        return ""
    return f"{case.name} accepts a change at {place}: {planted_files.where(text, place)}\n{changed}"


@cache
def prepare() -> None:
    """Make what faults are planted in: a process that is replaced now and then must not make it again."""
    from highspy import Highs

    for case, (_, collective, _) in enumerate(_CASES):
        _compiled(case)
        for target in _TARGETS:
            _plan(case, target)
        for runtime in _RUNTIMES if "root" not in collective else ():
            _xml(case, runtime)
    planted_files.cases()
    Highs.resetGlobalScheduler(True)  # its threads would be missing in a child


# ---- asked in a process of its own

_servant = Servant()


def _in_child(name: str, suffix: str, work: Callable[[int, int], str], seed: int, number: int) -> list[Finding]:
    answer = _servant.ask(work, seed, number)
    what, _, text = (answer.broken or answer.value).partition("\n")
    return (
        [Finding(f"{name}:{number}", what, text or f"seed {seed}, case {name}:{number}: {what}\n", suffix)]
        if what
        else []
    )


columns = partial(_in_child, "columns", ".txt", _column_case)
passes = partial(_in_child, "passes", ".txt", _pass_case)
files = partial(_in_child, "files", ".xml", _xml_case)
outputs = partial(_in_child, "outputs", ".txt", _output_case)
