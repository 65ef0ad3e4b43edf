"""What ``collc launch`` compiles for a command, if the cache does not have it (:mod:`.relaunch`)."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, warning

from ..driver.compilation import Failure, joined, make_jobs, try_jobs, with_read_files
from ..driver.leaving import without_impossible
from ..driver.result import CollectiveResult
from ..files.derived import Origins
from ..files.surroundings import plugins
from ..reading import load
from ..reading.base import ReadOptions
from ..registry.elements import Element, parse_elements
from ..tools.prepared import Prepared
from .arguments import usage_error
from .console import Console
from .inputs import loading, read, settings
from .watcher import Watcher

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.backends.mpi_c.interpose import Served
    from collc.ir.levels import Executable
    from collc.ir.spec import Spec

__all__ = ["prepare"]

#: target of -t -> kind of program
_KINDS = {"mpi-c": "mpi", "msccl-xml": "msccl"}


def prepare(options: SimpleNamespace, console: Console, cache: Path) -> tuple[Prepared, Origins]:
    """Compile for a command; return what it needs, and the files that this came from. Warnings go to the console."""
    from ..tools.launching import kind_of

    element = _element(options)
    kind = kind_of(options.command) if element is None else _KINDS[element.name]
    if options.library_dir and kind != "mpi":
        raise usage_error("--library-dir is for MPI programs, which preload a library")
    course = _Course()
    if kind == "torch":
        prepared = _for_torch(options, console, course)
    elif kind == "msccl":
        assert element is not None
        prepared = _for_msccl(element, cache, options, console, course)
    else:
        prepared = _for_mpi(element or Element("mpi-c"), cache, options, console, course)
    origins = Origins(dict(course.texts), tuple(course.absent), plugins())
    return attrs.evolve(prepared, warnings=tuple(course.warnings)), origins


@attrs.define
class _Course:
    """The files that were read on the way, with their texts, and the warnings, in the groups that were printed."""

    texts: dict[str, str] = attrs.Factory(dict)
    absent: list[str] = attrs.Factory(list)
    warnings: list[tuple[Diagnostic, ...]] = attrs.Factory(list)

    def warn(self, console: Console, warnings: Sequence[Diagnostic]) -> None:
        if warnings:
            self.warnings.append(tuple(warnings))
            console.warn(warnings)

    def reads(self, name: str, text: str, spec: Spec) -> None:
        """Keep the texts of a specification; a file without a text is one that changed."""
        self.texts.update(dict.fromkeys(spec.files[1:], ""))
        self.texts.update({source.path: source.text for source in spec.sources})
        self.texts[name] = text
        self.absent += spec.absent


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
    element: Element, options: SimpleNamespace, console: Console, library: str, course: _Course
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
            course.reads(name, text, with_read_files(spec, jobs))
            course.warn(console, spec.warnings)
            jobs = [attrs.evolve(job, targets=tuple(map(_prepared, job.targets))) for job in jobs]
            watcher = Watcher(options, console)
            console.progress(f"compiling {name}")
            outcomes += try_jobs(jobs, settings(options), observer=watcher)
            watcher.ends()
    console.clear_progress()
    if options.strict and (wrong := [one.mistake for one in outcomes if isinstance(one, Failure)]):
        raise joined(wrong)
    results, left = without_impossible(outcomes, library)
    course.warn(console, [*left, *(found for result in results for found in result.warnings)])
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


def _for_mpi(
    element: Element, cache: Path, options: SimpleNamespace, console: Console, course: _Course
) -> Prepared:  # fmt: skip
    from collc.backends.mpi_c.installed import choose

    from ..tools import launching
    from ..tools.shipping import place_library

    mpi = choose(options.mpi) if options.mpi else launching.mpi_of(options.command[0], os.environ)
    results, _ = _compile(element, options, console, "the MPI", course)
    served = _served(results)
    course.warn(console, _unequal_sums(results))
    name = launching.library_name(options.files)
    console.progress(f"building {name}")
    shared = launching.library(served, mpi, cache, name, dry=options.dry_run and not options.library_dir)
    if options.library_dir:
        shared = place_library(shared, options.library_dir)
    console.clear_progress()
    texts = tuple(map(str, served))
    details = (f"MPI: {mpi}, {mpi.folder}", *(f"serves {one}" for one in texts), f"library: {shared}")
    return Prepared("mpi", (), str(shared), mpi, texts, details, outputs=(str(shared),))


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


# ---- PyTorch, MSCCL


def _for_torch(options: SimpleNamespace, console: Console, course: _Course) -> Prepared:
    if len(options.files) != 1 or options.each:
        raise error(
            "C0088", "a PyTorch program takes one specification, with one value for every parameter",
            hint="compile several sizes from one file, with one collective for each", exit_status=2,
        )  # fmt: skip
    # Mistakes show once, not on every rank.
    results, left = _compile(Element("ir"), options, console, options.replace, course)
    variables = {"COLLC_SPEC": os.path.abspath(options.files[0])}
    if options.D:
        variables["COLLC_DEFINES"] = json.dumps(dict(options.D))
    if left:
        variables["COLLC_COLLECTIVES"] = json.dumps([result.name for result in results])
    if options.replace:
        variables["COLLC_TORCH_REPLACE"] = options.replace
    return Prepared("torch", tuple(variables.items()))


def _for_msccl(
    element: Element, cache: Path, options: SimpleNamespace, console: Console, course: _Course
) -> Prepared:  # fmt: skip
    from collc.backends.msccl_xml.bundle import Member, check_together
    from collc.backends.msccl_xml.loading import environment
    from collc.backends.msccl_xml.reader import read as read_algorithm

    from ..files.naming import name_files
    from ..tools import launching

    results, _ = _compile(element, options, console, "NCCL", course)
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
    variables = tuple((name, value) for name, value, _ in needed.variables)
    details = tuple(f"look for `{pattern}`: {meaning}" for pattern, meaning in needed.proofs)
    return Prepared("msccl", variables, details=details, outputs=tuple(map(str, places)))
