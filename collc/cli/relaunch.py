"""``collc launch``: run an unmodified program on compiled collectives.

What earlier launches compiled is taken from the cache, if all inputs are the same. Then neither numpy nor what compiles
is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from .arguments import usage_error
from .console import Console

if TYPE_CHECKING:
    from collc.backends.mpi_c.interpose.report import Report
    from collc.ir.diagnostic import Diagnostic

    from ..tools.launching import Plan
    from ..tools.prepared import Launches, Prepared

__all__ = ["key_of_launch", "launch"]

#: changes if the form of the entries does
_FORM = 1

#: options that show how files are compiled, so they are compiled
_SHOWS = ("dump_ir", "print_pipeline", "profile", "time_passes")
#: options that change nothing of what is compiled: how the command runs, and what is printed
_OTHERS = (
    "Werror", "cache", "color", "command", "diagnostics_format", "dry_run", "error_limit", "files", "help", "quiet",
    "nonblocking", "stats", "timeout", "tune", "uneven", "verbose", "version", "w",
)  # fmt: skip
#: variables that change how a library is built
_BUILDING = (
    "CC", "CFLAGS", "COMPILER_PATH", "CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "I_MPI_CC", "I_MPI_ROOT",
    "LIBRARY_PATH", "MPICH_CC", "OMPI_CC", "OMPI_CFLAGS", "OMPI_CPPFLAGS", "OMPI_LDFLAGS", "OMPI_LIBS", "OPAL_PREFIX",
)  # fmt: skip
#: variables of collc for running programs
_RUNNING = (
    "COLLC_CACHE", "COLLC_DEBUG", "COLLC_DISABLE", "COLLC_LAUNCH_REPORT", "COLLC_NONBLOCKING",
    "COLLC_SHARED_MEMORY", "COLLC_STATS", "COLLC_TUNE", "COLLC_UNEVEN",
)  # fmt: skip


def launch(options: SimpleNamespace, console: Console) -> int:
    """Prepare a launch, or take it from the cache; run the command; return its exit status."""
    from ..files.caches import launch_folder
    from ..tools.launching import cache_folder

    if not options.command:
        raise usage_error("`collc launch` needs a command after `--`", "collc launch FILE.coll -- mpiexec -n 4 ./app")
    if os.path.basename(options.command[0]) == "":
        raise usage_error(f"`{options.command[0]}` is not a command")
    usual = os.path.abspath(launch_folder(os.environ))
    with cache_folder(options.cache, os.environ) as cache:
        if options.cache is None and str(cache) != usual:
            console.say(f"keeps nothing, because {usual} cannot be the cache: `collc explain C0085` says why")
        return _run(_prepared(options, console, cache), cache, options, console)


def _prepared(options: SimpleNamespace, console: Console, cache: Path) -> Prepared:
    """Return what the command needs, from the cache if it has it."""
    from ..tools.prepared import Launches

    launches, key = Launches(cache), key_of_launch(options, os.environ)
    found = None if key is None or any(getattr(options, name) for name in _SHOWS) else launches.read(key)
    if found is not None:
        console.say(f"took what was compiled from the cache in {launches.folder}")
        for group in found.warnings:
            console.warn(group)
    else:
        found = _compiled(options, console, launches, key)
    for line in found.details:
        console.say(line)
    return found


def _compiled(options: SimpleNamespace, console: Console, launches: Launches, key: str | None) -> Prepared:
    """Return what the command needs after compiling it, and keep it for the next launch."""
    from collc.ir.registry import reported

    from .threads import without_threads

    with without_threads():
        from .launch import prepare
    prepared, origins = prepare(options, console, launches.cache)
    # A dry run builds nothing. Faults of plugins are reported each time.
    if key is not None and not options.dry_run and not reported():
        launches.write(key, prepared, origins)
    return prepared


# ---- the key


def key_of_launch(options: SimpleNamespace, environ: Mapping[str, str]) -> str | None:
    """Return the hash of everything that determines what is compiled; None if that cannot be told before.

    All options count but those that are known to change nothing.
    """
    from collc.ir.diagnostic import CollcError

    from ..files.surroundings import surroundings
    from ..files.trust import digest_of
    from ..tools.launching import kind_of, mpi_state

    given = {name: value for name, value in vars(options).items() if name not in (*_OTHERS, *_SHOWS)}
    files = [(path, None if path == "-" else digest_of(path)) for path in options.files]
    if any(digest is None for _, digest in files):
        return None
    kind = kind_of(options.command) if not (options.target or options.runtime) else ""
    try:
        mpi = mpi_state(options.command[0], options.mpi, environ) if _is_for_mpi(kind, options) else []
    except CollcError:
        return None
    parts = [_FORM, sorted(given.items()), files, _place(options), kind, mpi, _variables(environ), surroundings()]
    return hashlib.sha256(json.dumps(parts, default=repr).encode("utf-8", "surrogateescape")).hexdigest()


def _is_for_mpi(kind: str, options: SimpleNamespace) -> bool:
    return kind == "mpi" or (options.target or "").lstrip().startswith("mpi-c")


def _place(options: SimpleNamespace) -> str:
    """Return the current folder if an option may name a file by a path from it."""
    names = [*options.files, *options.I, *([options.mpi] if os.sep in (options.mpi or "") else [])]
    names += [options.library_dir] if options.library_dir else []
    texts = [options.target or "", options.passes or ""]
    return os.getcwd() if not all(map(os.path.isabs, names)) or any("." in text for text in texts) else ""


def _variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the environment that collc, or the compiler of a library, reads."""
    return sorted(
        (name, value) for name, value in environ.items()
        if name in _BUILDING or (name.startswith("COLLC_") and name not in _RUNNING)
    )  # fmt: skip


# ---- running


def _run(prepared: Prepared, cache: Path, options: SimpleNamespace, console: Console) -> int:
    if prepared.kind == "mpi":
        return _run_mpi(prepared, cache, options, console)
    if options.tune:
        raise usage_error("--tune is for MPI programs, which preload a library")
    from ..tools.launching import Plan

    variables = prepared.variables
    if prepared.kind == "torch":
        variables = (*variables, ("COLLC_CACHE", str(cache)), *([("COLLC_STATS", "1")] if options.stats else []))
    if prepared.kind == "msccl":
        variables = tuple((name, value) for name, value in variables if name not in os.environ or name != "NCCL_DEBUG")
    plan = Plan(tuple(options.command), variables)
    return _show(plan, console) if options.dry_run else _run_plan(plan, options, console)


def _run_mpi(prepared: Prepared, cache: Path, options: SimpleNamespace, console: Console) -> int:
    from collc.backends.mpi_c.interpose.report import gather_report

    from ..tools import launching

    assert prepared.mpi is not None
    command, mpi, shared = list(options.command), prepared.mpi, Path(prepared.library)
    serves = {f"COLLC_{name.upper()}": "1" for name in ("nonblocking", "uneven") if getattr(options, name)}
    tuned = None
    if options.tune:
        from .tuned import path_of_times, tuned_text

        tuned = path_of_times(cache, shared, console)
    if tuned is not None:
        serves["COLLC_TUNE"] = tuned
    if options.dry_run:
        return _show(launching.preloaded(command, mpi, shared, serves), console)
    with tempfile.TemporaryDirectory(prefix="collc-launch-") as folder:
        report = Path(folder) / "report"
        report.touch(mode=0o600)
        plan = launching.preloaded(command, mpi, shared, {launching.REPORT: str(report), **serves})
        status = _run_plan(plan, options, console)
        report_of_ranks = gather_report(report)
    if options.stats:
        lost = status != 0 and not report_of_ranks.ranks
        console.err("collc: calls not reported: ended abnormally\n" if lost else report_of_ranks.table())
    if tuned is not None:
        console.err(tuned_text(tuned, cache, "the MPI's"))
    if status == 0 or report_of_ranks.ranks:
        console.warn(_no_calls_served(report_of_ranks, prepared.served, command, options.nonblocking))
    return status


def _no_calls_served(
    report: Report, served: Sequence[str], command: Sequence[str], nonblocking: bool
) -> list[Diagnostic]:
    """Return a warning with the known reasons if the library served no call."""
    from collc.backends.mpi_c.interpose.report import OTHER_SIZE
    from collc.ir.diagnostic import warning

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
        if not nonblocking:
            notes.insert(1, "nonblocking and persistent calls are served with --nonblocking")
    message = "no collective call used a compiled schedule; the MPI library executed all of them"
    return [warning("C0083", message, notes=notes)]


def _show(plan: Plan, console: Console) -> int:
    """Print the command as a line for a shell."""
    words = [f"{name}={value}" for name, value in plan.variables]
    console.out(shlex.join(["env", *words, *plan.command] if words else plan.command) + "\n")
    return 0


def _run_plan(plan: Plan, options: SimpleNamespace, console: Console) -> int:
    from ..tools.launching import GRACE_SECONDS, run_command

    console.say(shlex.join(plan.command))
    console.signals.grace = GRACE_SECONDS + 1  # an orderly end may take a while
    status = run_command(plan, os.environ, options.timeout)
    if status != 0 and not console.errors_only:
        how = f"was ended by signal {status - 128}" if status > 128 else f"ended with status {status}"
        console.err(f"collc: `{plan.command[0]}` {how}\n")
    return status
