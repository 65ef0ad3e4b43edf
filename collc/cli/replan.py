"""``collc replan``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from types import SimpleNamespace

import attrs

from collc.backends.base import Artifact, Target
from collc.frontends.coll.faults import Fault
from collc.ir.costs.cost import DEFAULT_BANDWIDTH, Cost, predicted_time
from collc.ir.diagnostic import error
from collc.ir.schedule import Schedule
from collc.ir.shown import counted
from collc.ir.symmetric_program import AnyProgram

from ..driver.compilation import Job, make_jobs
from ..driver.result import CollectiveResult, Replan, Settings
from ..driver.sizes import at_size, cost_at_size, own_size
from ..files.naming import NamedFile, name_files, stem_of
from ..files.texts import STDOUT, Output, check_writable, output_folder, write_all
from ..messages.quantities import show_size, show_time
from ..tables.columns import Cell, Table
from ..tables.forms import rational
from ..tables.listed import REPLANNED
from ..tools.replanning import Replanner
from .arguments import usage_error
from .console import Console
from .failures import Failures
from .fault_texts import cost_cells, cost_object, cost_text, fault_object, plan_text, ranks_before, times_text
from .inputs import load, settings, targets
from .table import table
from .tabular import is_printed, require_one_form, show, together
from .watcher import Watcher, show_times

__all__ = ["replan"]


def replan(options: SimpleNamespace, console: Console) -> int:
    """Compile a plan again after faults, write its files and print what the faults cost; return the exit status."""
    faults = _faults(options)
    require_one_form(options, options.files)
    spec, start = load(options, console, "replan")
    if isinstance(start, AnyProgram) or type(start).__name__ == "OneSided":
        message = f"`{options.files[0]}` holds a program, which has no network"
        raise error(
            "C0018", message, hint="give the `.coll` file, or print the trees: -p forest -t 'ir{level=schedule}'"
        )
    jobs, _ = make_jobs(spec, targets(options), options.collective, start)
    console.warn(spec.warnings)
    if any(job.targets for job in jobs):
        jobs = [job for job in jobs if job.targets]
    elif options.o is not None or options.each_fault is not None:
        hint = "add `-t msccl-xml`; `collc targets` lists the targets"
        raise error("C0025", f"`{jobs[0].request.name}` has no target: no emit and no -t", hint=hint, exit_status=2)
    failures, watcher = Failures(), Watcher(options, console)
    chosen = _settings(options, jobs)
    healthy = failures.compiled([job.schedule_only for job in jobs], chosen, watcher)
    by_name = {job.request.name: job.targets for job in jobs}
    if options.each_fault is not None:
        from .each_fault import each_fault

        return failures.report(console) or each_fault(spec, healthy, by_name, chosen, options, console)
    console.progress("faults")
    planner = Replanner(spec, [one.name for one in healthy], faults)
    found = failures.each(
        healthy, lambda one: one.name, lambda one: planner.run(one, by_name[one.name], chosen, watcher)
    )
    watcher.ends()
    console.warn(warning for one in found for warning in one.warnings)
    files = [] if failures else _write(found, spec.files, options, console)
    show_times(found, options, console)
    _show(found, files, failures, options, console)
    return failures.report(console)


def _faults(options: SimpleNamespace) -> tuple[Fault, ...]:
    """Return the faults of the options; raise C0001 for options that do not fit together."""
    found = (*map(Fault.dead, options.without), *map(Fault.slow, options.slow))
    if options.each_fault is not None and found:
        raise usage_error("--each-fault compiles for every single fault, --without and --slow for their own together")
    if options.each_fault is not None and options.o is not None:
        raise usage_error("--each-fault writes into its own folder", "leave -o out")
    if options.each_fault is None and options.slow_factor is not None:
        raise usage_error("--slow-factor is for --each-fault", "`--slow 'A <-> B: 1/2'` is one slow link")
    if options.each_fault is None and not found:
        hint = "`--without 'gpu[0, 2] -> ib'`, `--slow 'gpu[3, 1] <-> ib: 12.5 GB/s'`, or `--each-fault DIR`"
        raise usage_error("`collc replan` needs a fault", hint)
    printed = [f"--{name}" for name in ("json", "csv", "markdown") if is_printed(options, name)]
    if printed and options.o == STDOUT:
        raise usage_error(f"{printed[0]} and -o - would both write to standard output", "write to a file")
    return found


def _settings(options: SimpleNamespace, jobs: Sequence[Job]) -> Settings:
    """Return the settings; without targets, those that stop at the exact schedule."""
    if any(job.targets for job in jobs):
        return settings(options)
    chosen = settings(options, Schedule)
    return chosen if options.passes else attrs.evolve(chosen, recipe=attrs.evolve(chosen.recipe, elements=()))


def _write(
    results: Sequence[CollectiveResult], used: Sequence[str], options: SimpleNamespace, console: Console
) -> list[NamedFile]:
    """Write the files of all targets, or none, and return them."""
    emitted: list[tuple[str, Target, Sequence[Artifact]]] = [
        (r.name, t, files) for r in results for t, files in r.emitted
    ]
    if not emitted:
        return []
    stem = f"{stem_of(options.files[0])}-broken"
    files = name_files(emitted, stem, options.o, verify=options.verify != "off")
    outputs = [Output(file.path, file.artifact.content) for file in files]
    check_writable([output.path for output in outputs], used, options.o)
    console.signals.check()
    with output_folder(options.o):
        write_all([*reversed(outputs)], if_changed=options.write_if_changed)
    for output in outputs:
        console.say(f"wrote {output.path} ({len(output.data)} bytes)")
    return files


# ---- what is printed


def _show(
    results: Sequence[CollectiveResult], files: Sequence[NamedFile], failures: Failures, options: SimpleNamespace,
    console: Console,
) -> None:  # fmt: skip
    from .compile import outputs_list

    def document() -> dict[str, object]:
        objects = failures.each(results, _name, lambda one: _object(one, options))
        return {**together(objects, failures.objects()), "outputs": outputs_list(files)}

    def rows() -> Table:
        each = failures.each(results, _name, lambda one: _rows(one, options))
        return Table(REPLANNED, [row for one in each for row in one])

    def text() -> str:
        if options.o == STDOUT:  # the file is there
            return ""
        return "\n".join(failures.each(results, _name, lambda one: _text(one, options)))

    show(options, console, rows, document, text)


def _name(result: CollectiveResult) -> str:
    return result.name


def _object(result: CollectiveResult, options: SimpleNamespace) -> dict[str, object]:
    plan, cost = _plan(result), result.cost_of_fault
    return {
        "name": result.name, "collective": result.cost.collective, "scheduler": result.cost.scheduler,
        "ranks": result.cost.ranks, "faults": [fault_object(fault) for fault in plan.network.faults],
        "plan": plan.how, "reason": plan.reason or None, "trees_kept": plan.kept, "trees_new": plan.new,
        **cost_object(cost), "unit": result.cost.unit, "ranks_before": ranks_before(plan),
        "points": [
            {
                "size_bytes": size, "time_us_healthy": float(before) * 1e6, "time_us": float(now) * 1e6,
                **rational("times_healthy", now / before if before else Fraction(1)),
            }
            for size, before, now in _points(result, plan, options)
        ],
    }  # fmt: skip


def _rows(result: CollectiveResult, options: SimpleNamespace) -> list[dict[str, Cell]]:
    """Return a row for every size, or one without a size."""
    plan, cost = _plan(result), result.cost_of_fault
    about: dict[str, Cell] = {
        "name": result.name, "collective": result.cost.collective, "scheduler": result.cost.scheduler,
        "ranks": result.cost.ranks, "plan": plan.how, **cost_cells(cost),
    }  # fmt: skip
    points: list[dict[str, Cell]] = [
        {"size_bytes": size, "time_us_healthy": float(before) * 1e6, "time_us": float(now) * 1e6}
        for size, before, now in _points(result, plan, options)
    ]
    return [{**about, **point} for point in points or [{}]]


def _plan(result: CollectiveResult) -> Replan:
    assert result.replan is not None, "it was compiled after faults"
    return result.replan


def _points(
    result: CollectiveResult, plan: Replan, options: SimpleNamespace
) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Yield every size with the times (seconds) before and after the faults, each planned for the size."""
    own = own_size(plan.healthy)
    for size in options.size or ([own] if own is not None else []):
        before, now = (_time(one, size, options, plan.healthy.plain_cost) for one in (plan.healthy, result))
        yield size, before, now


def _time(base: CollectiveResult, size: int, options: SimpleNamespace, healthy: Cost) -> Fraction:
    """Return the seconds for a size; a link without a bandwidth has the one that it had before the faults."""
    cost, bandwidth = cost_at_size(at_size(base, size), base), options.bandwidth
    if cost.unit == "link":
        whole = DEFAULT_BANDWIDTH if bandwidth is None else bandwidth
        bandwidth = whole * (cost.node_bandwidth or 1) / (healthy.node_bandwidth or 1)
    return predicted_time(cost, size, options.alpha, bandwidth, options.gamma, options.epsilon)


def _text(result: CollectiveResult, options: SimpleNamespace) -> str:
    plan, cost = _plan(result), result.cost_of_fault
    head = f"{result.name}: {result.cost.collective} on {counted(result.cost.ranks, 'rank')} by {result.cost.scheduler}"
    rows = [("fault", str(fault)) for fault in plan.network.faults]
    rows += [("plan", plan_text(plan)), ("time per byte", cost_text(cost, result.cost.unit))]
    rows += [("ranks", text) for text in _ranks(plan)]
    text = f"{head}\n{table(rows, indent='  ')}"
    points = [
        [show_size(size), show_time(float(before)), show_time(float(now)), times_text(now / before if before else 1)]
        for size, before, now in _points(result, plan, options)
    ]  # fmt: skip
    return (
        text + table(points, head=["size", "healthy", "now", "times"], right=range(4), indent="  ") if points else text
    )


def _ranks(plan: Replan) -> Iterator[str]:
    """Yield which ranks are gone, and which numbers the others have now, run by run."""
    ranks, names = plan.ranks, plan.healthy.request.problem.topology.names
    for old, now in enumerate(ranks):
        if now is None:
            yield f"{_named(old, names)} is gone"
    first = 0
    while first < len(ranks):
        last, now = first, ranks[first]
        while now is not None and last + 1 < len(ranks) and ranks[last + 1] == now + last + 1 - first:
            last += 1
        if now is not None and now != first:
            before = f"rank {first} is" if last == first else f"ranks {first} to {last} are"
            yield f"{before} now {now if last == first else f'{now} to {now + last - first}'}"
        first = last + 1


def _named(rank: int, names: Sequence[str]) -> str:
    return f"rank {rank}" if names[rank] == str(rank) else f"rank {rank} ({names[rank]})"
