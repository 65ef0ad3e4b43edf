"""An algorithm that exists as a file, for another runtime or another target.

The arrangement of a published algorithm (its threadblocks, channels and the order of its steps) is kept as it is where
the target takes it. Where it does not fit, fused instructions are replaced and messages given to threadblocks anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError, Diagnostic, error, warning
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Problem, ScheduleRequest, Spec
from collc.ir.topology import Topology

from .compilation import Job, Level, read_ir, run_jobs, sniff
from .driver import CollectiveResult, Observer, Settings
from .elements import Element
from .fitting import LIMITS
from .internal import InternalError, is_fatal
from .naming import identifier, stem_of
from .options import build, show
from .pipeline import Recipe
from .registry import target_class

if TYPE_CHECKING:
    from collc.backends.msccl_xml.published import Published

__all__ = ["Converted", "convert_text", "load_published", "program_spec"]

#: what says that a program as it is arranged does not fit a runtime, and might if it were arranged otherwise
_MISFITS = LIMITS | {"C0620", "C0633", "C0634"}
#: how a file says that larger calls would hang
_HANGS = "no larger: from "
_AS_IT_IS = Recipe("0", (), ("balance-threadblocks",))
_ANEW = tuple(Element(name) for name in ("unfuse", "balance-threadblocks"))
_PACKED = tuple(Element(name) for name in ("fuse", "unfuse", "prune-dependencies", "reuse-scratch"))


@attrs.frozen(eq=False)
class Converted:
    """What became of one file: its specification, the result with the files of all targets, and warnings."""

    spec: Spec
    result: CollectiveResult
    warnings: tuple[Diagnostic, ...]


def convert_text(
    text: str,
    path: str,
    targets: Sequence[Element],
    *,
    settings: Settings | None = None,
    collective: str | None = None,
    root: int | None = None,
    observer: Observer | None = None,
) -> Converted:
    """Make files for ``targets`` of an MSCCL-XML or oneCCL-XML text, or of a printed program or schedule.

    Of an MSCCL-XML file its protocol, its sizes, its uses in and out of place and its name are kept where a target has
    such options and they are not given. ``settings`` with a recipe of their own decide what passes run. ``collective``
    and ``root`` are as :func:`collc.backends.msccl_xml.published.publish` takes them. Raises C0018 for a text of
    another kind, C0025 without targets, and what publishing, passes and targets raise.
    """
    if not targets:
        raise error("C0025", f"nothing says what to make of `{path}`: there is no -t", hint=_TARGETS, exit_status=2)
    kind = sniff(text)
    if kind == "coll":
        raise error(
            "C0018", f"`{path}` is neither MSCCL-XML nor a printed IR", hint="`collc compile` takes `.coll` files"
        )
    published: Published | None = None
    start: Level
    if kind == "ir":
        spec, start = read_ir(text, path)
    elif _is_oneccl(text):
        spec, start = load_published(text, path)
    else:
        from collc.backends.msccl_xml.published import publish

        published = publish(text, path, collective=collective, root=root)
        spec, start = program_spec(published.program, path), published.program
    warnings = list(published.warnings) if published is not None else []
    request = next(iter(spec.collectives.values()))
    converter = _Converter(request, start, published, settings, observer, path)
    results = [converter.one(element) for element in targets]
    whole = attrs.evolve(results[0], emitted=tuple(made for result in results for made in result.emitted))
    return Converted(spec, whole, tuple(dict.fromkeys([*warnings, *converter.warnings])))


def load_published(text: str, path: str, collective: str | None = None) -> tuple[Spec, Program]:
    """Return what an MSCCL-XML or oneCCL-XML file performs as a specification, and its program, right both ways."""
    program = _of_oneccl(text, path) if _is_oneccl(text) else _of_msccl(text, path, collective)
    spec = program_spec(program, path)
    return spec, attrs.evolve(program, name=next(iter(spec.collectives)))


def _is_oneccl(text: str) -> bool:
    from collc.backends.oneccl_xml import is_oneccl

    return is_oneccl(text)


def _of_msccl(text: str, path: str, collective: str | None) -> Program:
    from collc.backends.msccl_xml.published import publish

    return publish(text, path, collective=collective).both_ways


def _of_oneccl(text: str, path: str) -> Program:
    from collc.backends.msccl_xml.both_ways import made_both_ways
    from collc.backends.oneccl_xml import load

    document, found = load(text, path)
    # A program and no more: what says where its instructions stand in the file would not survive passes.
    program = Program(**{name: getattr(found, name) for name in (*Program.SCALARS, *Program.COLUMNS)})
    if document.inplace and document.outofplace:
        return program
    return made_both_ways(program, inplace=bool(document.inplace))


def program_spec(program: Program, path: str) -> Spec:
    """Return the specification of a program alone; it is named after its file, since what a file says of itself may
    hold anything."""
    collective, name = program.collective, identifier(stem_of(path))
    topology = Topology.from_links("none", collective.num_ranks, [])
    request = CollectiveRequest(name, topology.name, Problem(topology, collective), ScheduleRequest("steps"), ())
    return Spec({topology.name: topology}, {name: request}, (path,))


_TARGETS = "`collc targets` lists the targets: -t mpi-c, -t 'msccl-xml{runtime=rccl}'"


@attrs.define
class _Converter:
    """Converts one algorithm for one target after the other."""

    request: CollectiveRequest
    start: Level
    published: Published | None
    settings: Settings | None
    observer: Observer | None
    path: str
    warnings: list[Diagnostic] = attrs.Factory(list)

    def one(self, element: Element) -> CollectiveResult:
        """Return the result for one target, with the author's arrangement if that fits."""
        wanted = self.target(element)
        try:
            return self.sized(element, wanted, self.recipe(_AS_IT_IS))
        except CollcError as misfit:
            if self.settings is not None and self.settings.recipe.elements is not None:
                raise
            if not isinstance(self.start, Program) or {d.code for d in misfit.diagnostics}.isdisjoint(_MISFITS):
                raise
            reason = misfit.diagnostics[0].message
        try:
            made = self.anew(element, wanted)
        except CollcError as problem:
            raise _with_note(problem, f"as it is arranged in `{self.path}`, {reason}") from None
        found = f"`{self.path}` does not fit {_name(wanted)} as it is, so its messages go to threadblocks anew"
        self.warnings.append(warning("C0072", found, notes=[reason]))
        return made

    def anew(self, element: Element, wanted: Target) -> CollectiveResult:
        """Return the result with messages placed anew, in as few threadblocks and steps as can be had."""
        packed = [pass_ for pass_ in _PACKED if pass_.name != "unfuse" or not wanted.limits.fused]
        try:
            return self.sized(element, wanted, self.recipe(Recipe("0", (*_ANEW, *packed))))
        except CollcError as problem:
            if is_fatal(problem):
                raise
        return self.sized(element, wanted, self.recipe(Recipe("0", _ANEW)))

    def recipe(self, wanted: Recipe) -> Recipe:
        """Return what passes run: the user's own, those of a level for a schedule, else ``wanted``."""
        given = self.settings.recipe if self.settings is not None else Recipe()
        if given.elements is not None:
            return given
        if not isinstance(self.start, Program):
            return given
        return attrs.evolve(wanted, disabled=tuple(dict.fromkeys([*wanted.disabled, *given.disabled])))

    def target(self, element: Element, **changes: Any) -> Target:
        """Return the target with what the file says where no option does."""
        cls = target_class(element.name, element.span)
        defaults = self.defaults(element) if element.name == "msccl-xml" else {}
        made = build(cls, f"target `{element.name}`", element.options, {**defaults, **changes}, element.span)
        if self.published is not None and element.name == "msccl-xml":
            return attrs.evolve(made, scale=self.published.scale)  # type: ignore[call-arg]
        return made

    def defaults(self, element: Element) -> dict[str, Any]:
        if self.published is None:
            return {}
        given = {option.name.replace("-", "_") for option in element.options}
        kept: dict[str, Any] = dict(self.published.options)
        if kept["max_bytes"] is not None and kept["max_bytes"] < max(kept["min_bytes"], 1):
            del kept["max_bytes"]
        if given & {"inplace", "outofplace"}:
            del kept["inplace"], kept["outofplace"]
        if given & {"min_bytes", "max_bytes"}:
            del kept["min_bytes"], kept["max_bytes"]
        algorithm = self.published.algorithm
        if algorithm.nthreads is not None and any(o.name == "runtime" and o.value == "msccl" for o in element.options):
            kept["nthreads"] = algorithm.nthreads
        return {**kept, "algorithm": identifier(algorithm.name or self.request.name)[:63]}

    def sized(self, element: Element, wanted: Target, recipe: Recipe) -> CollectiveResult:
        """Return the result, for fewer sizes than the file's where no more are safe."""
        try:
            made = self.run(wanted, recipe)
            self.warn_of_sizes(element, made)
            return made
        except CollcError as problem:
            given = {option.name.replace("_", "-") for option in element.options}
            if self.published is None or "max-bytes" in given or {d.code for d in problem.diagnostics} != {"C0630"}:
                raise
            reason = problem.diagnostics[0]
        made = self.run(self.target(element, max_bytes=None), recipe)
        self.larger(wanted, [reason.message, *reason.notes])
        return made

    def warn_of_sizes(self, element: Element, made: CollectiveResult) -> None:
        """Warn where the file was for calls of any size and what is made of it is not, lest large ones hang."""
        if self.published is None or element.name != "msccl-xml" or self.published.options["max_bytes"] is not None:
            return
        if "max-bytes" in {option.name.replace("_", "-") for option in element.options}:
            return
        from collc.backends.msccl_xml.reader import read

        for target, artifacts in made.emitted:
            said = [line for artifact in artifacts for line in read(artifact.text).comments]
            if why := next((line for line in said if line.startswith(_HANGS)), None):
                self.larger(target, [why])

    def larger(self, wanted: Target, notes: Sequence[str]) -> None:
        found = f"`{self.path}` is for larger calls than {_name(wanted)} could make with it"
        self.warnings.append(warning("C0073", found, notes=notes))

    def run(self, target: Target, recipe: Recipe) -> CollectiveResult:
        """Compile for one target. A program for one use only is executed by the target, which knows uses; others need
        one that is right both ways."""
        verify = self.settings.verify if self.settings is not None else "each"
        start, single = self.start, False
        if self.published is not None:
            single = target.name == "msccl-xml" and not all(self.published.right)
            start = self.published.program if single else self.published.both_ways
            start = attrs.evolve(start, name=self.request.name)
        settings = Settings(recipe, "off" if single else verify)
        job = Job(self.request, (target,), start)
        made = run_jobs([job], settings, observer=self.observer)[0]
        if single and verify != "off":
            for _, files in made.emitted:
                report = target.check(made.made, files)
                if report is not None and not report.ok:
                    failed = "; ".join(f"{c.name}: {c.detail}" for c in report.failed)
                    raise InternalError(f"target `{target.name}` wrote a wrong file of `{self.path}`: {failed}")
        return made


def _name(target: Target) -> str:
    runtime = getattr(target, "runtime", None)
    return f"runtime {show(runtime)}" if runtime else f"target {target.name}"


def _with_note(problem: CollcError, note: str) -> CollcError:
    first, *rest = problem.diagnostics
    return CollcError([attrs.evolve(first, notes=(*first.notes, note)), *rest], problem.exit_status)
