"""Is a C file what was to be emitted? Read it, decode its tables, compare and execute what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from collc.ir.program import Program
from collc.ir.verify import Check, Report, adds_once, verify_program

from ..base import Artifact, Window
from .compare import differences, shortages
from .cursor import Unreadable
from .decode import Decoded, decode
from .interpose import Served
from .interpose.reader import LibraryText, ServedCall, read_library, served_lines
from .names import comment
from .numbers import Numbers
from .reader import HeaderText, SourceText, described, read_header, read_source, title_of
from .scratch import is_whole
from .source import Function, Listing

__all__ = ["checked", "checked_library"]


def checked(listing: Listing, artifacts: Sequence[Artifact]) -> Report:
    """Return what holds of the source and header of a listing's functions, as they were read back."""
    first = listing.functions[0].first.collective
    return Report("mpi-c", first.kind, first.num_ranks, tuple(_checks(listing, artifacts)))


def _checks(listing: Listing, artifacts: Sequence[Artifact]) -> Iterator[Check]:
    """Yield the checks in order, up to the one that makes the rest meaningless."""
    names = [f"{listing.prefix}.c", f"{listing.prefix}.h"]
    if [artifact.filename for artifact in artifacts] != names:
        yield Check("files", False, f"these are {', '.join(a.filename for a in artifacts)}, not {' and '.join(names)}")
        return
    try:
        source = read_source(artifacts[0].text, names[0])
        header = read_header(artifacts[1].text, names[1])
        groups = decode(source)
    except Unreadable as problem:
        yield Check("reading", False, str(problem))
        return
    yield Check("reading", True, f"all of the source and the header is understood; the engine is {source.engine}")
    yield from _source_checks(listing, source, groups)
    yield _check("header", _other_header(listing, header), "says what the source is")


def checked_library(listing: Listing, served: Sequence[Served], artifacts: Sequence[Artifact]) -> Report:
    """Return what holds of the one file of a library for LD_PRELOAD, as it was read back."""
    first = listing.functions[0].first.collective
    return Report("mpi-c", first.kind, first.num_ranks, tuple(_library_checks(listing, served, artifacts)))


def _library_checks(listing: Listing, served: Sequence[Served], artifacts: Sequence[Artifact]) -> Iterator[Check]:
    if [artifact.filename for artifact in artifacts] != [f"{listing.prefix}.c"]:
        yield Check("files", False, f"these are {', '.join(a.filename for a in artifacts)}, not {listing.prefix}.c")
        return
    try:
        library = read_library(artifacts[0].text, artifacts[0].filename)
        groups = decode(library.source)
    except Unreadable as problem:
        yield Check("reading", False, str(problem))
        return
    yield Check("reading", True, f"all of the source is understood; the engine is {library.source.engine}")
    yield from _source_checks(listing, library.source, groups)
    yield _check("calls", _other_calls(library, served), "are served as they were to be")


def _other_calls(library: LibraryText, served: Sequence[Served]) -> Iterator[str]:
    wanted = []
    for one in served:
        (kind, ranks, root), function = one.calls, one.function
        name, at = comment(function.first.name), -1 if root is None else root
        wanted.append(ServedCall(kind, ranks, at, int(_twice(function)), *one.sizes, name, function.name))
    yield from _differ("calls that are served", list(library.served), wanted)
    yield from _differ("what the first comment says", library.lines, served_lines(wanted))


def _source_checks(listing: Listing, source: SourceText, groups: list[list[Decoded]]) -> Iterator[Check]:
    """Yield what holds of a source that was read and decoded."""
    yield _check("names", _other_names(listing, source, groups), "functions, plans and algorithms have theirs")
    wanted = [[program for _, program in function.parts] for function in listing.functions]
    if [len(group) for group in groups] != [len(group) for group in wanted]:
        yield Check("programs", False, "there are more or fewer algorithms than were to be emitted")
        return
    for number, (one, program) in enumerate(zip(_flat(groups), _flat(wanted), strict=True)):
        yield from _program_checks(one, program, f"algorithm {number}: " if len(_flat(groups)) > 1 else "")
    yield _check("tables", _other_numbers(listing.numbers, source.numbers), "have the numbers that were to be written")


def _program_checks(one: Decoded, wanted: Program, label: str) -> Iterator[Check]:
    one = attrs.evolve(one, program=_named(one.program, wanted))
    report = verify_program(one.program)
    yield from (attrs.evolve(check, name=label + check.name) for check in report.checks)
    if report.ok:
        yield _check(f"{label}same program", differences(one, wanted), f"{one.program.num_instructions} steps")
        yield _check(f"{label}allowance", shortages(one), "every step has the slots and sends that it needs")


def _named(program: Program, wanted: Program) -> Program:
    """Return a decoded program with what no C file says of its collective, as far as the file agrees to it."""
    said, due = program.collective, wanted.collective
    op = due.op if due.idempotent == said.idempotent and not due.ordered else said.op
    return attrs.evolve(program, collective=attrs.evolve(said, op=op, size=due.size, dtype=due.dtype))


def _check(name: str, problems: Iterator[str], detail: str) -> Check:
    found = next(problems, None)
    return Check(name, found is None, detail if found is None else found)


def _flat(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [one for group in groups for one in group]


# ---- names, plans and sizes


def _other_names(listing: Listing, source: SourceText, groups: list[list[Decoded]]) -> Iterator[str]:
    functions = listing.functions
    yield from _differ("prefix", source.prefix, listing.prefix)
    if source.title is not None:
        yield from _title(source.title, functions)
    found = [(entry.name, entry.tells, entry.plan) for entry in source.entries]
    yield from _differ("functions", found, [(f.name, bool(f.windows), n) for n, f in enumerate(functions)])
    yield from _differ("bindings", list(source.kinds), list(dict.fromkeys(plan.kind for plan in source.plans)))
    twice = [plan.twice for plan in source.plans]
    yield from _differ("contributions that count twice", twice, [int(_twice(function)) for function in functions])
    labels = [comment(w.algorithm if w else "") for f in functions for w, _ in f.parts]
    yield from _differ("algorithms", list(source.labels), labels if any(f.windows for f in functions) else [])
    sizes = [_bytes_of_a_count(window, program) for f in functions for window, program in f.parts]
    yield from _differ("sizes of algorithms", [one.most_bytes for one in _flat(groups)], sizes)


def _twice(function: Function) -> bool:
    return not all(adds_once(program) for _, program in function.parts)


def _bytes_of_a_count(window: Window | None, program: Program) -> int:
    """Return the bytes of a count, which is one block where MPI counts so, up to which an algorithm is used."""
    if window is None or window.high is None:
        return 0
    return window.high if is_whole(program.collective) else window.high // program.num_ranks


def _differ(what: str, found: object, wanted: object) -> Iterator[str]:
    if found != wanted:
        yield f"{what}: found {found}, not {wanted}"


def _title(title: str, functions: Sequence[Function]) -> Iterator[str]:
    """Yield where the title of a file is not that of its functions."""
    if len(functions) == 1:
        yield from _other_description(title, functions[0])
    else:
        yield from _differ("title", title, title_of([function.name for function in functions]))


def _other_description(text: str, function: Function) -> Iterator[str]:
    """Yield where a description of a function says anything else than what it is."""
    collective, among, made = function.first.collective, len(function.parts), comment(function.first.scheduler)
    wanted = {
        "kind": collective.kind, "root": None if collective.root is None else str(collective.root),
        "ranks": str(collective.num_ranks), "among": str(among) if among > 1 else None,
        "scheduler": made if made and among == 1 else None,
    }  # fmt: skip
    yield from _differ(f"what `{function.name}` is said to be", described(text), wanted)


def _other_numbers(wanted: Numbers, found: Numbers) -> Iterator[str]:
    for name in {**wanted, **found}:
        column, due = found.get(name), wanted.get(name)
        if column is None or due is None or len(column) != len(due):
            yield f"`{name}` has another size"
        elif not np.array_equal(column, due):
            at = int(np.argmax(column != due))
            yield f"number {at} of `{name}` is {column[at]}, not {due[at]}"


# ---- the header


def _other_header(listing: Listing, header: HeaderText) -> Iterator[str]:
    """Yield where a header says anything else than what the functions are."""
    functions = listing.functions
    yield from _differ("prefix", header.prefix, listing.prefix)
    yield from _title(header.title, functions)
    names = [name for name, _ in header.contents]
    yield from _differ("contents", names, [f.name for f in functions] if len(functions) > 1 else [])
    for (_, text), function in zip(header.contents, functions, strict=False):
        yield from _other_description(text, function)
    yield from _differ("functions", [found.name for found in header.functions], [f.name for f in functions])
    for found, function in zip(header.functions, functions, strict=False):
        yield from _other_description(found.description, function)
        yield from _differ(f"buffers of `{function.name}`", found.kind, function.kind)
        yield from _differ(f"operations of `{function.name}`", found.op, _operations(function))
        yield from _differ(f"algorithms of `{function.name}`", list(found.algorithms), _sizes(function.windows))
        yield from _differ(f"`{function.name}_algorithm`", found.tells, bool(function.windows))


def _operations(function: Function) -> str | None:
    if not function.first.collective.reduces:
        return None
    any_operation, idempotent = "any commutative operation", "MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_LAND or MPI_LOR"
    return idempotent if _twice(function) else any_operation


def _sizes(windows: Sequence[Window]) -> list[str]:
    ends = [f"up to {window.high} bytes" for window in windows[:-1]]
    return [
        f"{end}: {comment(w.algorithm)}".rstrip()
        for end, w in zip([*ends, "larger calls"][: len(windows)], windows, strict=True)
    ]
