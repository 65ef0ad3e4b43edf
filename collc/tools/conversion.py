"""Conversion of an algorithm in a file to another runtime or another target.

The conversion keeps the threadblocks, channels and step order of a published algorithm if the target allows it.
Otherwise it replaces fused instructions and reassigns messages to threadblocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import attrs

from collc.backends import TARGETS
from collc.backends.base import Artifact, Target
from collc.ir.diagnostic import CollcError, Diagnostic, Kind, error, warning
from collc.ir.levels import Executable, depth
from collc.ir.program import Program
from collc.ir.spec import CollectiveRequest, Spec
from collc.ir.verify import Report

from ..driver.compilation import Job, run_jobs
from ..driver.plan import Recipe
from ..driver.result import CollectiveResult, Observer, Settings
from ..files.naming import identifier
from ..messages.internal import InternalError, is_fatal
from ..reading import reader, reader_of
from ..reading.base import ReadOptions
from ..registry.classes import target_class
from ..registry.elements import Element
from ..registry.options import build

if TYPE_CHECKING:
    from collc.backends.msccl_xml.published import Published
    from collc.ir.one_sided.program import OneSided

__all__ = ["Converted", "convert_text"]

_UNCHANGED = Recipe("0", (), ("balance-threadblocks",))
_REARRANGE = tuple(Element(name) for name in ("unfuse", "balance-threadblocks"))
_MERGE = tuple(Element(name) for name in ("fuse", "unfuse", "prune-dependencies", "reuse-scratch"))
_MERGE_FUSED = tuple(Element(name) for name in ("fuse", "prune-dependencies", "reuse-scratch"))


@attrs.frozen(eq=False)
class Converted:
    """One converted file: its specification, the result with the files of all targets, and warnings."""

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
    """Convert an algorithm to ``targets``: MSCCL-XML, oneCCL-XML, a printed IR or a plugin's format.

    An MSCCL-XML file gives the defaults of the target's options: protocol, sizes, uses in and out of place, name.
    A recipe in ``settings`` determines the passes. ``collective`` and ``root`` are those of
    :func:`collc.backends.msccl_xml.published.publish`. Raises C0018 for a text of another kind, C0025 without targets,
    and the errors of publishing, passes and targets.
    """
    if not targets:
        raise error("C0025", f"`{path}` has no target: no -t", hint=_TARGETS, exit_status=2)
    collectives = () if collective is None else (collective,)
    spec, start, published = reader_of(text, path, "convert").publish(
        text, path, ReadOptions(collective=collectives, root=root)
    )
    warnings = list(published.warnings) if published is not None else []
    request = next(iter(spec.collectives.values()))
    converter = _Converter(request, start, published, settings, observer, path)
    results = [converter.one(element) for element in targets]
    whole = attrs.evolve(results[0], emitted=tuple(files for result in results for files in result.emitted))
    return Converted(spec, whole, tuple(dict.fromkeys([*warnings, *converter.warnings])))


_TARGETS = "`collc targets` lists the targets: -t mpi-c, -t 'msccl-xml{runtime=rccl}'"


@attrs.define
class _Converter:
    """Converts one algorithm to one target after the other."""

    request: CollectiveRequest
    start: Executable
    published: Published | None
    settings: Settings | None
    observer: Observer | None
    path: str
    warnings: list[Diagnostic] = attrs.Factory(list)

    @cached_property
    def two_sided(self) -> Program:
        """The sends and receives of a one-sided program."""
        from ..reading.mscclpp import two_sided_program

        return attrs.evolve(two_sided_program(cast("OneSided", self.start)), name=self.request.name)

    @property
    def is_arranged(self) -> bool:
        """Whether the file says what every threadblock executes."""
        return depth(type(self.start)) >= depth(Program)

    def one(self, element: Element) -> CollectiveResult:
        """Return the result for one target, with the author's arrangement if that fits."""
        target = self.target(element)
        try:
            return self.compiled(element, target, self.recipe(_UNCHANGED))
        except CollcError as misfit:
            if self.settings is not None and self.settings.recipe.elements is not None:
                raise
            if not self.is_arranged or not misfit.is_partly(Kind.LIMIT, Kind.MISFIT):
                raise
            reason = misfit.diagnostics[0].message
        try:
            result = self.rearranged(element, target)
        except CollcError as problem:
            raise _with_note(problem, f"with the arrangement of `{self.path}`, {reason}") from None
        found = f"`{self.path}` does not fit {_name(target)} unchanged; its messages have other threadblocks now"
        self.warnings.append(warning("C0072", found, notes=[reason]))
        return result

    def rearranged(self, element: Element, target: Target) -> CollectiveResult:
        """Return the result with reassigned messages, in as few threadblocks and steps as possible."""
        merging = _MERGE_FUSED if target.limits.fused else _MERGE
        try:
            return self.compiled(element, target, self.recipe(Recipe("0", (*_REARRANGE, *merging))))
        except CollcError as problem:
            if is_fatal(problem):
                raise
        return self.compiled(element, target, self.recipe(Recipe("0", _REARRANGE)))

    def recipe(self, default: Recipe) -> Recipe:
        """Return the recipe: the user's own, that of a level for a schedule, else ``default``."""
        given = self.settings.recipe if self.settings is not None else Recipe()
        if given.elements is not None:
            return given
        if not self.is_arranged:
            return given
        return attrs.evolve(default, disabled=tuple(dict.fromkeys([*default.disabled, *given.disabled])))

    def target(self, element: Element, **changes: object) -> Target:
        """Return the target; the file gives the options that the user did not."""
        cls = target_class(element.name, element.span)
        what = f"target `{element.name}`"
        if self.published is None:
            return build(cls, what, element.options, changes, element.span)
        name = identifier(self.published.algorithm.name or self.request.name)
        given = {option.name.replace("-", "_"): option.value for option in element.options}
        kept = cls.options_of(self.published, name, given)
        return build(cls, what, element.options, {**kept, **changes}, element.span).in_chunks_of(self.published)

    def compiled(self, element: Element, target: Target, recipe: Recipe) -> CollectiveResult:
        """Return the result, for fewer sizes than the file's if larger ones are not safe."""
        try:
            result = self.run(target, recipe)
            self.warn_of_sizes(element, result)
            return result
        except CollcError as problem:
            given = {option.name.replace("_", "-") for option in element.options}
            if self.published is None or "max-bytes" in given or not problem.is_only(Kind.SIZE):
                raise
            reason = problem.diagnostics[0]
        result = self.run(self.target(element, max_bytes=None), recipe)
        self.warn_larger_calls(target, [reason.message, *reason.notes])
        return result

    def warn_of_sizes(self, element: Element, result: CollectiveResult) -> None:
        """Warn if the file is for calls of any size and its outputs are not, because large calls could hang."""
        if self.published is None or self.published.largest is not None:
            return
        if "max-bytes" in {option.name.replace("_", "-") for option in element.options}:
            return
        for target, artifacts in result.emitted:
            if hangs := next((artifact.hangs for artifact in artifacts if artifact.hangs), None):
                self.warn_larger_calls(target, [hangs.why])

    def warn_larger_calls(self, target: Target, notes: Sequence[str]) -> None:
        found = f"`{self.path}` is for larger calls than {_name(target)} can run with it"
        self.warnings.append(warning("C0073", found, notes=notes))

    def in_one_use(self, target: Target) -> bool:
        """Return whether a target takes the program of a file that is right in one use only, in or out of place."""
        assert self.published is not None
        correct = self.published.correct
        if target.level == "one-sided" and not correct[0 if target.limits.inplace else 1]:
            return False
        return target.says_use and not all(correct)

    def read_back(self, target: Target, result: CollectiveResult, files: Sequence[Artifact]) -> Report:
        """Return the report on files whose program was not verified before."""
        if target.level != "one-sided":
            return target.check(result.made, files)
        kind = (self.request.problem.collective.kind,)
        reports = reader(target.name).verify(files[0].text, files[0].filename, ReadOptions(collective=kind))
        return reports.named[0][1]

    def run(self, target: Target, recipe: Recipe) -> CollectiveResult:
        """Compile for one target. The target itself executes a program for one use only; other programs must be correct
        in place and out of place."""
        verify = self.settings.verify if self.settings is not None else "each"
        start, single = self.start, False
        if depth(type(start)) > depth(Program) and target.level != "one-sided":
            start = self.two_sided
        if self.published is not None:
            single = self.in_one_use(target)
            start = self.published.program if single else self.published.both_ways
            start = attrs.evolve(start, name=self.request.name)
        settings = Settings(recipe, "off" if single else verify)
        job = Job(self.request, (target,), start)
        result = run_jobs([job], settings, observer=self.observer)[0]
        if single and verify != "off":
            for _, files in result.emitted:
                report = self.read_back(target, result, files)
                if not report.ok:
                    failed = "; ".join(f"{c.name}: {c.detail}" for c in report.failed)
                    message = f"target `{target.name}` wrote a wrong file of `{self.path}`: {failed}"
                    raise InternalError(message, package=TARGETS.package(target.name))
        return result


def _name(target: Target) -> str:
    return f"runtime {target.reader}" if target.reader else f"target {target.name}"


def _with_note(problem: CollcError, note: str) -> CollcError:
    first, *rest = problem.diagnostics
    return CollcError([attrs.evolve(first, notes=(*first.notes, note)), *rest], problem.exit_status)
