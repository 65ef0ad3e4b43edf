"""Verifies a plan: reads it, judges its form and the executor's limits, and executes it as the executor would."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest
from collc.ir.one_sided.program import OneSided
from collc.ir.one_sided.verify import Alike, sizes_alike, verify_one_sided
from collc.ir.progress import progress
from collc.ir.verify import Check, Report, verify
from collc.ir.verify.program import MAX_CHUNKS

from ..msccl_xml.findings import as_check, as_warnings
from . import limits, structure
from .collectives import candidates
from .kinds import Kinds
from .model import KINDS, Plan
from .program import chunks_of, to_one_sided
from .reader import read
from .runtimes import RUNTIMES, Runtime
from .same import differences
from .windows import counted_chunks, cuts_wrongly, largest_chunk

__all__ = ["load", "runtime_of", "verify_plan", "verify_text"]

_EXECUTION = "execution"

#: operations that the search for a root executes; in larger plans it tries the likeliest roots only
_MOST_EXECUTED = 1 << 16

#: checks that fail for every collective if they fail for one
_COMMON = frozenset({"structure", "bounds", "channels", "deadlock", "signals", "semaphores", "races", "packets"})


def verify_text(
    text: str,
    path: str = "<json>",
    *,
    runtime: str | None = None,
    collective: str | None = None,
    multiprocessors: int | None = None,
) -> Report:
    """Return the report on a plan of any tool, for one version of the runtime or for all.

    The checks are: the rules of the form, the limits and traps of the executor, the sizes of calls, and two launches of
    the whole plan by a model of the executor. A plan names no root: it must be correct for one root. ``collective`` is
    the collective of a plan whose name says nothing. ``multiprocessors`` is the number of blocks that a GPU runs at
    once. Raises CollcError if the text is unreadable (see :func:`.reader.read`), and C0686 for an unknown runtime or
    fewer than 1 multiprocessor.
    """
    if multiprocessors is not None and multiprocessors < 1:
        raise error("C0686", f"a GPU has at least 1 multiprocessor, found {multiprocessors}", exit_status=2)
    return verify_plan(
        read(text, path), runtime=runtime_of(runtime), collective=collective, multiprocessors=multiprocessors
    )


def runtime_of(name: str | None) -> Runtime | None:
    """Return the version with a name; None for None. Raises C0686."""
    if name is not None and name not in RUNTIMES:
        hint = nearest(name, RUNTIMES) or f"versions are {', '.join(RUNTIMES)}"
        raise error("C0686", f"unknown runtime `{name}`", hint=hint, exit_status=2)
    return None if name is None else RUNTIMES[name]


def verify_plan(
    plan: Plan,
    *,
    runtime: Runtime | None = None,
    collective: str | Collective | None = None,
    multiprocessors: int | None = None,
    due: OneSided | None = None,
) -> Report:
    """Return the report on a plan, as :func:`verify_text` does.

    ``due`` is the program that was to be written; the plan is wrong if it holds any other. Of two programs that are
    equal column by column, one is executed.
    """
    progress("checking operations")
    kinds = Kinds(plan)
    findings = structure.broken_rules(plan, runtime, kinds)
    checks = [Check("reading", True, "; ".join(plan.remarks))] if plan.remarks else []
    checks += [as_check(name, findings, tried) for name, tried in structure.CHECKS.items()]
    kind = collective.kind if isinstance(collective, Collective) else collective or plan.collective
    report = partial(Report, "mscclpp-json", KINDS.get(kind, kind), len(plan.gpus))
    if any(finding.fatal for finding in findings):
        return report((*checks, Check(_EXECUTION, False, "not tried: a plan of this form has no program")))
    try:
        possible = candidates(plan, collective)
    except CollcError as unnamed:
        first = unnamed.diagnostics[0]
        return report((*checks, Check("collective", False, first.message, hint=first.hint or "")))
    program = to_one_sided(plan, possible[0], kinds)
    rules = limits.broken_limits(program, runtime)
    checks += [as_check(name, rules, tried) for name, tried in limits.CHECKS.items()]
    checks += [as_check("residency", *limits.check_residency(program, multiprocessors)), _sizes(plan, program, runtime)]
    if due is not None:
        other = next(differences(program, due), "")
        checks.append(Check("same program", not other, other or "every column is that of the program"))
        program = program if other else due
    executed, warnings = _executed(plan, program, possible)
    return report((*checks, *executed), warnings=(*as_warnings([*findings, *rules]), *warnings))


def load(plan: Plan, collective: str | Collective | None = None) -> OneSided:
    """Return the program of a plan; raise its broken rules, C0674 if it serves no call, C0696 if it is wrong."""
    from ..msccl_xml.findings import refuse

    refuse([finding for finding in structure.broken_rules(plan) if not finding.mild])
    possible = candidates(plan, collective)
    program = to_one_sided(plan, possible[0])
    refuse([finding for finding in limits.broken_limits(program) if not finding.mild])
    best, report = _best(plan, program, possible)
    if not report.ok:
        notes = [f"{check.name}: {check.detail}" for check in report.failed]
        raise error("C0696", f"the plan `{plan.name[:80]}` is wrong", notes=notes)
    if not (served := _sizes(plan, best, None)).ok:
        hint = "change `min_message_size`, `max_message_size` or `buffer_alignment`"
        raise error("C0674", f"the plan `{plan.name[:80]}` serves no call: {served.detail}", hint=hint)
    return best


# ---- sizes


def _sizes(plan: Plan, program: OneSided, runtime: Runtime | None) -> Check:
    """Return the check that some calls are served, and that all of them keep the executor's numbers."""
    unit, most, least = _unit(plan, program), largest_chunk(program), _smallest_call(plan, program)
    if least > plan.max_bytes:
        return Check("sizes", False, f"no call of {plan.min_bytes} to {plan.max_bytes} bytes is a multiple of {unit}")
    first, end = Fraction(least, counted_chunks(program)), counted_chunks(program) * most
    if runtime is not None and cuts_wrongly(program, runtime, first):
        found = f"in calls of {least} bytes {runtime.title} cuts slices of fewer than {plan.alignment} bytes wrongly"
        return Check("sizes", False, f"{found}; set `min_message_size`")
    if first > most:
        found = f"in calls of {least} bytes a buffer has 4 GiB or more, or scratch has no room"
        return Check("sizes", False, found)
    limit = (
        f", at most {end}: beyond, a buffer would have 4 GiB" if end < plan.max_bytes else f" up to {plan.max_bytes}"
    )
    return Check("sizes", True, f"serves calls of {least} bytes and more, multiples of {unit}{limit}")


def _unit(plan: Plan, program: OneSided) -> int:
    """Return the bytes of which all calls that the executor takes are multiples; it counts the chunks of the file."""
    return counted_chunks(program) // chunks_of(plan, program.collective)[1] * plan.alignment


def _smallest_call(plan: Plan, program: OneSided) -> int:
    """Return the bytes of the smallest call of a plan."""
    unit = _unit(plan, program)
    return -(-max(plan.min_bytes, 1) // unit) * unit


def _named(program: OneSided, report: Report, call: int) -> Report:
    """Return the report on calls; its first check that fails names the bytes of the smallest one that does.

    Without pipelines, every larger call fails too. With pipelines, it has other turns.
    """
    failed = next((k for k, check in enumerate(report.checks) if not check.ok), None)
    if failed is None:
        return report
    alone = f"the smallest call that fails has {call} bytes"
    where = alone if len(program.loop_unit) else f"from calls of {call} bytes on"
    checks = list(report.checks)
    checks[failed] = attrs.evolve(checks[failed], detail=f"{checks[failed].detail}; {where}")
    return attrs.evolve(report, checks=tuple(checks))


# ---- execution


def _executed(
    plan: Plan, program: OneSided, possible: Sequence[Collective]
) -> tuple[tuple[Check, ...], tuple[Diagnostic, ...]]:
    """Return the checks of the execution, and warnings."""
    total = sum(int(column.sum(dtype="int64")) for column in (program.inputs, program.outputs, program.scratch))
    if total > MAX_CHUNKS:
        return (Check(_EXECUTION, False, f"not tried: {total} chunks are more than collc executes"),), ()
    best, report = _best(plan, program, possible)
    checks = list(report.checks)
    if len(possible) > 1:
        root = best.collective.root
        tried = "as a send of every rank to one peer" if root is None else f"tried with root {root}"
        checks.insert(0, Check("root" if root is not None else "peers", True, tried))
    return tuple(checks), report.warnings


def _best(plan: Plan, program: OneSided, possible: Sequence[Collective]) -> tuple[OneSided, Report]:
    """Return the program for the first collective that it performs; else for the likeliest one; and its report."""
    kept: tuple[OneSided, Report] | None = None
    executed = 0
    for collective in possible:
        if collective != program.collective:
            program = to_one_sided(plan, collective)
        report = _judged(plan, program)
        if report.ok:
            return program, report
        kept = kept or (program, report)
        executed += program.num_operations
        if executed > _MOST_EXECUTED or any(check.name in _COMMON for check in report.failed):
            break
    assert kept is not None, "every plan may perform some collective"
    return kept


def _judged(plan: Plan, program: OneSided) -> Report:
    """Return the report on the smallest call that fails, else on the largest that is executed.

    A plan with pipelines is executed in its own calls. If it serves none, or if their turns are too many, 1, 2, and 3
    turns stand for all. Without pipelines, all calls do the same.
    """
    report, call = None, _smallest_call(plan, program)
    for size in _alike(plan, program):
        report, call = verify_one_sided(program, size.simplest), int(size.least * counted_chunks(program))
        if not report.ok:
            break
    return _named(program, report or verify(program), call)


def _alike(plan: Plan, program: OneSided) -> list[Alike]:
    """Return the sizes of chunks, in groups that do the same, of the calls that a plan serves."""
    if not len(program.loop_unit):
        return []
    chunks = counted_chunks(program)
    high = min(Fraction(plan.max_bytes, chunks), Fraction(largest_chunk(program)))
    least, unit = (Fraction(size, chunks) for size in (_smallest_call(plan, program), _unit(plan, program)))
    return sizes_alike(program, least, high, unit)
