"""``collc run`` over oneCCL: files of the target ``oneccl-xml``, from any tool."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.backends.measured import Row, RunResult

from ..driver.compilation import make_jobs
from ..files.naming import identifier, stem_of
from ..files.trust import digest_of
from ..reading import sniff
from ..registry.elements import Element
from ..running.predicted import Model, with_model
from .console import Console
from .failures import Failures
from .inputs import load_text, require_ranks, settings
from .tuned import path_of_times, tuned_text
from .watcher import Watcher, show_times

if TYPE_CHECKING:
    from collc.backends.oneccl_xml.model import Document
    from collc.backends.oneccl_xml.toolchain import OneCcl

__all__ = ["run_oneccl"]

#: elements of the vector in the largest default call
_LARGE = 100_000
_WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}


@attrs.frozen
class _File:
    """One file to run, with its cost model or None."""

    name: str
    text: str = attrs.field(repr=False)
    document: Document
    model: Model | None = None


@attrs.frozen
class _Cases:
    """The cases of a file; files with the same cases run together."""

    ranks: int
    counts: tuple[int, ...]
    dtypes: tuple[str, ...]
    ops: tuple[str, ...]
    in_place: tuple[bool, ...]


def run_oneccl(
    target: Element, text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures
) -> list[RunResult]:
    """Run files over the oneCCL of this machine, one process per rank; return the measured rows.

    Raises C0752 to C0757 for a file that is not right, before anything is started, C0760 to C0764 if it cannot run, and
    C0765 for a number of ranks that differs from the requested one.
    """
    from collc.backends.oneccl_xml.toolchain import built, find

    files = list(_files(target, text, name, options, console, failures))
    together: dict[_Cases, list[_File]] = {}
    for file in files:
        for cases in _cases(file, options):
            together.setdefault(cases, []).append(file)
    if not together and failures:
        return []
    if not together:
        raise _nothing_to_run("the files are for none of the calls that the options name")
    oneccl = find(options.oneccl)
    console.progress("building the executor")
    program = built(oneccl)
    rows: dict[int, list[Row]] = {}
    with _Times.of(options, program, console) as times:
        for cases, listed in together.items():
            console.progress(f"{', '.join(file.name for file in listed)}: running on {cases.ranks} ranks")
            rows.setdefault(cases.ranks, []).extend(_rows(program, cases, listed, options, times))
        console.clear_progress()
        if times is not None:
            times.show()
    return [_result(oneccl, ranks, listed, files) for ranks, listed in rows.items()]


def _files(
    target: Element, text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures
) -> Iterator[_File]:
    """Yield the files to run: the unchanged input if it is oneCCL-XML, else the files of each collective."""
    from collc.backends.oneccl_xml import load, read

    if sniff(text) == target.name and not target.options:
        document, _ = load(text, name)
        require_ranks(options, name, len(document.ranks))
        yield _File(identifier(stem_of(name)), text, document)
        return
    spec, start = load_text(text, name, options, "run")
    jobs, _ = make_jobs(spec, (target,), options.collective, start)
    for job in jobs:
        require_ranks(options, job.request.name, job.request.problem.collective.num_ranks)
    console.warn(spec.warnings)
    watcher = Watcher(options, console)
    compiled = failures.compiled(jobs, settings(options), watcher)
    show_times(compiled, options, console)
    for result in compiled:
        model = Model.of(result, options.alpha, options.bandwidth)
        for artifact in result.artifacts:
            label = f"-{artifact.label}" if artifact.label else ""
            yield _File(result.name + label, artifact.text, read(artifact.text, artifact.filename), model)


# ---- calls


def _cases(file: _File, options: SimpleNamespace) -> Iterator[_Cases]:
    """Yield the cases of a file; element types with the same counts share one."""
    from collc.backends.oneccl_xml.model import DTYPES

    document, kind = file.document, file.document.collective
    default = kind.dtype if kind.dtype in document.dtypes else document.dtypes[-1]
    dtypes = [one for one in DTYPES if one in document.dtypes] if options.dtype == ["all"] else options.dtype
    ops = options.op or (["sum" if "sum" in document.ops else document.ops[0]] if document.ops else [])
    if ops == ["all"]:
        ops = list(document.ops)
    wanted = [place == "in" for place in options.place or ["in", "out"]]
    places = [inside for inside in (True, False) if inside in wanted and _is_for(document, inside)]
    grouped: dict[tuple[int, ...], list[str]] = {}
    for dtype in dtypes or [default]:
        grouped.setdefault(_counts(document, dtype, options), []).append(dtype)
    for counts, found in grouped.items():
        if counts and places:
            yield _Cases(len(document.ranks), counts, tuple(found), tuple(ops), tuple(places))


def _is_for(document: Document, in_place: bool) -> bool:
    return document.inplace if in_place else document.outofplace


def _counts(document: Document, dtype: str, options: SimpleNamespace) -> tuple[int, ...]:
    """Return the counts of the calls that the file is for."""
    unit = _unit(document, dtype)
    counts = list(options.count or [])
    counts += [size // unit for size in options.size or []]
    if not counts:
        counts = [0, 1, 7, 1000, _LARGE * _width(dtype) // unit]
        counts += [n for n in (-(-document.min_bytes // unit), (document.max_bytes or 0) // unit) if n <= _LARGE]
    high = document.max_bytes
    right = (n for n in counts if n * unit >= document.min_bytes and (high is None or n * unit <= high))
    return tuple(dict.fromkeys(right))


def _unit(document: Document, dtype: str) -> int:
    """Return the bytes of the whole vector in a call with a count of 1."""
    from collc.backends.oneccl_xml.model import is_whole

    shards = len(document.collective.pre or document.ranks)
    return _width(dtype) * (1 if is_whole(document.collective) else shards)


def _width(dtype: str) -> int:
    return next((size for bits, size in _WIDTHS.items() if dtype.endswith(bits)), 1)


def _nothing_to_run(what: str) -> Exception:
    from collc.ir.diagnostic import error

    return error("C0764", f"nothing to run: {what}", exit_status=2)


# ---- running


class _Times:
    """The files of what ``--tune`` times, one for each file that runs."""

    def __init__(self, cache: Path, program: Path, console: Console):
        self.cache, self.program, self.console = cache, program, console
        self.kept: dict[str, str] = {}  # name of a file -> path

    @classmethod
    @contextlib.contextmanager
    def of(cls, options: SimpleNamespace, program: Path, console: Console) -> Iterator[_Times | None]:
        """Yield them in the cache of launches; None without ``--tune``."""
        from ..tools.launching import cache_folder

        if not options.tune:
            yield None
            return
        with cache_folder(None, os.environ) as cache:
            yield cls(cache, program, console)

    def paths(self, files: Sequence[Path]) -> list[Path]:
        """Return the files of times of some oneCCL-XML files; none if one cannot be kept."""
        program = digest_of(str(self.program))
        for file in files:
            path = None if program is None else path_of_times(self.cache, file, self.console, program)
            if path is None:
                return []
            self.kept[file.stem] = path
        return [Path(self.kept[file.stem]) for file in files]

    def show(self) -> None:
        """Print what was timed, now and earlier."""
        for name, path in self.kept.items():
            self.console.err(f"{name}: {tuned_text(path, self.cache, 'oneCCL')}")


def _rows(
    program: Path, cases: _Cases, files: list[_File], options: SimpleNamespace, times: _Times | None
) -> Iterator[Row]:
    from collc.backends.oneccl_xml.run import execute

    with TemporaryDirectory(prefix="collc-run-") as folder:
        paths = []
        for file in files:
            paths.append(Path(folder) / f"{file.name}.xml")
            paths[-1].write_text(file.text, encoding="utf-8")
        found = execute(
            program, paths, counts=cases.counts, dtypes=cases.dtypes, ops=cases.ops or None, in_place=cases.in_place,
            repeats=options.repeat, warmup=options.warmup, compare=options.compare,
            times=[] if times is None else times.paths(paths), timeout=float(options.timeout),
        )  # fmt: skip
    documents = {file.name: file.document for file in files}
    for row in found:
        document = documents[row.name]
        yield Row(
            name=row.name, kind=document.collective.kind, ranks=cases.ranks, count=row.count,
            bytes=row.count * _unit(document, row.dtype), dtype=row.dtype, op=row.op, in_place=row.inplace,
            times=row.times, builtin_times=row.builtin_times,
        )  # fmt: skip


def _result(oneccl: OneCcl, ranks: int, rows: list[Row], files: list[_File]) -> RunResult:
    models = {file.name: file.model for file in files}
    predicted = tuple(one for row in rows for one in with_model([row], models[row.name]))
    return RunResult(oneccl, ranks, predicted, "C0763")
