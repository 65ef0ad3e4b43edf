"""``collc launch``: run an unmodified program on compiled collectives."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, warning

from ..driver.compilation import Failure, joined, make_jobs, try_jobs
from ..driver.leaving import without_impossible
from ..driver.result import CollectiveResult
from ..reading import load
from ..reading.base import ReadOptions
from ..registry.elements import Element, parse_elements
from .arguments import usage_error
from .console import Console
from .inputs import loading, read, settings
from .watcher import Watcher

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.backends.mpi_c.interpose import Served
    from collc.backends.mpi_c.interpose.report import Report
    from collc.ir.levels import Executable
    from collc.ir.spec import Spec

    from ..tools.launching import Plan

__all__ = ["launch"]

#: target of -t -> kind of program
_KINDS = {"mpi-c": "mpi", "msccl-xml": "msccl"}


def launch(options: SimpleNamespace, console: Console) -> int:
    """Compile, build, set the environment, run the command; return its exit status."""
    from ..tools.launching import cache_folder, kind_of

    if not options.command:
        raise usage_error("`collc launch` needs a command after `--`", "collc launch FILE.coll -- mpiexec -n 4 ./app")
    if os.path.basename(options.command[0]) == "":
        raise usage_error(f"`{options.command[0]}` is not a command")
    element = _element(options)
    kind = kind_of(options.command) if element is None else _KINDS[element.name]
    if options.library_dir and kind != "mpi":
        raise usage_error("--library-dir is for MPI programs, which preload a library")
    with cache_folder(options.cache, os.environ) as cache:
        if kind == "torch":
            return _run_torch(options, console)
        if kind == "msccl":
            assert element is not None
            return _run_msccl(element, cache, options, console)
        return _run_mpi(element or Element("mpi-c"), cache, options, console)


def _element(options: SimpleNamespace) -> Element | None:
    """Return the target of the options, or None if the command decides."""
    if options.target and options.runtime:
        raise usage_error("-t and --runtime both name the target", "leave out one of them")
    if options.runtime:
        return next(iter(parse_elements(f"msccl-xml{{runtime={options.runtime}}}", "--runtime")))
    if options.target is None:
        return None
    found = list(parse_elements(options.target, "-t"))
    if len(found) != 1 or found[0].name not in _KINDS:
        hint = "a program registers plans itself: `collc env` prints the lines" if _plans_in(found) else None
        raise usage_error(f"`collc launch` runs mpi-c or msccl-xml, found `{options.target}`", hint)
    return found[0]


def _plans_in(elements: Sequence[Element]) -> bool:
    """Return whether a target writes plans of puts: no variable makes their runtime load them."""
    from collc.backends import TARGETS

    from ..registry.classes import target_class

    known = [target_class(one.name) for one in elements if one.name in TARGETS]
    return any(target.level == "one-sided" for target in known)


# ---- compiling


def _compile(
    element: Element, options: SimpleNamespace, console: Console, library: str
) -> tuple[list[CollectiveResult], list[Diagnostic]]:
    """Compile the collectives of every file, with every value of --each.

    Returns the results, and a warning for each collective that cannot be compiled: its calls are left to ``library``,
    which the command uses. --strict refuses it.
    """
    outcomes: list[CollectiveResult | Failure] = []
    for path in options.files:
        text, name = read(path, console)
        for chosen in _choices(options):
            spec, start = _loaded(text, name, options, chosen)
            only = [one for one in options.collective if len(options.files) == 1 or one in spec.collectives]
            jobs, _ = make_jobs(spec, (element,), only, start)
            console.warn(spec.warnings)
            jobs = [attrs.evolve(job, targets=tuple(map(_prepared, job.targets))) for job in jobs]
            watcher = Watcher(options, console)
            console.progress(f"compiling {name}")
            outcomes += try_jobs(jobs, settings(options), observer=watcher)
            watcher.ends()
    console.clear_progress()
    if options.strict and (wrong := [one.mistake for one in outcomes if isinstance(one, Failure)]):
        raise joined(wrong)
    results, left = without_impossible(outcomes, library)
    console.warn([*left, *(found for result in results for found in result.warnings)])
    return results, left


def _choices(options: SimpleNamespace) -> Iterator[dict[str, str]]:
    """Yield the parameters of -D with every combination of the values of --each."""
    names = [name for name, _ in options.each]
    for values in itertools.product(*(values for _, values in options.each)):
        yield {**dict(options.D), **dict(zip(names, values, strict=True))}


def _loaded(text: str, name: str, options: SimpleNamespace, params: dict[str, str]) -> tuple[Spec, Executable | None]:
    return load(text, name, "launch", ReadOptions(attrs.evolve(loading(options), params=params)))


def _prepared(target: Target) -> Target:
    """Return the target for a preloaded library, without a function name."""
    from collc.backends.mpi_c import MpiC

    return attrs.evolve(target, interpose=True, function=None) if isinstance(target, MpiC) else target


# ---- MPI


def _run_mpi(element: Element, cache: Path, options: SimpleNamespace, console: Console) -> int:
    from collc.backends.mpi_c.installed import choose
    from collc.backends.mpi_c.interpose.report import gather_report

    from ..tools import launching
    from ..tools.shipping import place_library

    command = list(options.command)
    mpi = choose(options.mpi) if options.mpi else launching.mpi_of(command[0], os.environ)
    results, _ = _compile(element, options, console, "the MPI")
    served = _served(results)
    console.warn(_unequal_sums(results))
    console.say(f"MPI: {mpi}, {mpi.folder}")
    for one in served:
        console.say(f"serves {one}")
    name = launching.library_name(options.files)
    console.progress(f"building {name}")
    shared = launching.library(served, mpi, cache, name, dry=options.dry_run and not options.library_dir)
    if options.library_dir:
        shared = place_library(shared, options.library_dir)
    console.clear_progress()
    console.say(f"library: {shared}")
    with tempfile.TemporaryDirectory(prefix="collc-launch-") as folder:
        report = Path(folder) / "report"
        report.touch(mode=0o600)
        plan = launching.preloaded(command, mpi, shared, {launching.REPORT: str(report)})
        if options.dry_run:
            return _show(launching.preloaded(command, mpi, shared, {}), console)
        status = _run(plan, options, console)
        report_of_ranks = gather_report(report)
    if options.stats:
        lost = status != 0 and not report_of_ranks.ranks
        console.err("collc: calls not reported: ended abnormally\n" if lost else report_of_ranks.table())
    if status == 0 or report_of_ranks.ranks:
        console.warn(_no_calls_served(report_of_ranks, served, command))
    return status


def _served(results: Sequence[CollectiveResult]) -> list[Served]:
    """Return one function of the library per collective, which may hold several algorithms."""
    from collc.backends.mpi_c import MpiC
    from collc.backends.mpi_c.interpose import Served, require_distinct
    from collc.backends.mpi_c.members import function_of
    from collc.backends.mpi_c.rooted import in_file

    programs = [
        (result, parts) for result in results
        if (parts := [(one.window, one.program) for one in result.each if one.program is not None])
    ]  # fmt: skip
    rooted = in_file([(result.request.roots, result.request.problem.collective.root) for result, _ in programs])
    found, name = [], ""
    for number, ((result, parts), roots) in enumerate(zip(programs, rooted, strict=True)):
        target = next((t for t, _ in result.emitted if isinstance(t, MpiC)), MpiC())
        name = f"served_{number}" if roots is None or roots.is_head else name
        found.append(Served(function_of(name, parts, roots), target.min_bytes, target.max_bytes))
    require_distinct(found)
    return found


def _unequal_sums(results: Sequence[CollectiveResult]) -> list[Diagnostic]:
    """Return a warning for each allreduce after which ranks may hold different bits."""
    found = []
    for result in (one for each in results for one in each.each):
        collective = result.request.problem.collective
        if collective.kind != "allreduce" or result.schedule is None:
            continue
        if result.plain_cost.same_everywhere is False:
            text = f"after `{result.name}`, sums may differ between ranks in their last bits"
            note = "each rank adds in its own order; a program that compares results of ranks may notice"
            found.append(warning("C0084", text, span=result.request.span, notes=[note]))
    return found


def _no_calls_served(report: Report, served: Sequence[Served], command: Sequence[str]) -> list[Diagnostic]:
    """Return a warning with the known reasons if the library served no call."""
    from collc.backends.mpi_c.interpose.report import OTHER_SIZE

    if not report.ranks:
        from ..tools.silence import reasons

        notes = reasons(report.processes, command, os.environ)
        return [warning("C0082", "the preloaded library reported nothing", notes=notes)]
    if report.refused == report.ranks:
        notes = ["see its message above", "name the MPI of the program: --mpi DIR"]
        return [warning("C0087", "the library refused the program's MPI", notes=notes)]
    if report.served:
        return []
    notes = []
    for reason, number in report.reasons():
        seen = f" ({', '.join(map(str, report.sizes))} ranks)" if reason == OTHER_SIZE else ""
        functions = ", ".join(f"{calls} {name}" for name, calls in report.functions_left(reason))
        notes.append(f"{number} calls: {reason}{seen}: {functions}")
    notes += [f"the library serves {one}" for one in served[:8]]
    if not report.reasons():
        notes.insert(0, "the program called no blocking collective that the library knows")
    message = "no collective call used a compiled schedule; the MPI library executed all of them"
    return [warning("C0083", message, notes=notes)]


# ---- PyTorch, MSCCL


def _run_torch(options: SimpleNamespace, console: Console) -> int:
    from ..tools import launching

    if len(options.files) != 1 or options.each:
        raise error(
            "C0088", "a PyTorch program takes one specification, with one value for every parameter",
            hint="compile several sizes from one file, with one collective for each", exit_status=2,
        )  # fmt: skip
    # Mistakes show once, not on every rank.
    results, left = _compile(Element("ir"), options, console, options.replace)
    variables = {"COLLC_SPEC": os.path.abspath(options.files[0])}
    if options.D:
        variables["COLLC_DEFINES"] = json.dumps(dict(options.D))
    if left:
        variables["COLLC_COLLECTIVES"] = json.dumps([result.name for result in results])
    if options.replace:
        variables["COLLC_TORCH_REPLACE"] = options.replace
    if options.stats:
        variables["COLLC_STATS"] = "1"
    plan = launching.Plan(tuple(options.command), tuple(variables.items()))
    return _show(plan, console) if options.dry_run else _run(plan, options, console)


def _run_msccl(element: Element, cache: Path, options: SimpleNamespace, console: Console) -> int:
    from collc.backends.msccl_xml.bundle import Member, check_together
    from collc.backends.msccl_xml.loading import environment
    from collc.backends.msccl_xml.reader import read as read_algorithm

    from ..files.naming import name_files
    from ..tools import launching

    results, _ = _compile(element, options, console, "NCCL")
    emitted = [(r.name, target, artifacts) for r in results for target, artifacts in r.emitted]
    runtime = emitted[0][1].reader or "" if emitted else ""
    files = [(file.path, file.artifact.text) for file in name_files(emitted, "", "/")]
    places = launching.keep_files([(os.path.basename(path), text) for path, text in files], cache)
    members = [
        Member(str(place), read_algorithm(text, str(place))) for place, (_, text) in zip(places, files, strict=True)
    ]
    conflicts = [
        Diagnostic({"windows": "C0650", "names": "C0651", "number": "C0652"}[check.name], check.detail)
        for check in check_together(members, runtime) if not check.ok
    ]  # fmt: skip
    if conflicts:
        raise CollcError(conflicts)
    needed = environment(members, runtime)
    variables = [(name, value) for name, value, _ in needed.variables if name not in os.environ or name != "NCCL_DEBUG"]
    for pattern, meaning in needed.proofs:
        console.say(f"look for `{pattern}`: {meaning}")
    plan = launching.Plan(tuple(options.command), tuple(variables))
    return _show(plan, console) if options.dry_run else _run(plan, options, console)


# ---- running


def _show(plan: Plan, console: Console) -> int:
    """Print the command as a line for a shell."""
    words = [f"{name}={value}" for name, value in plan.variables]
    console.out(shlex.join(["env", *words, *plan.command] if words else plan.command) + "\n")
    return 0


def _run(plan: Plan, options: SimpleNamespace, console: Console) -> int:
    from ..tools.launching import GRACE_SECONDS, run_command

    console.say(shlex.join(plan.command))
    console.signals.grace = GRACE_SECONDS + 1  # an orderly end may take a while
    status = run_command(plan, os.environ, options.timeout)
    if status != 0 and not console.errors_only:
        how = f"was ended by signal {status - 128}" if status > 128 else f"ended with status {status}"
        console.err(f"collc: `{plan.command[0]}` {how}\n")
    return status
