"""Checks an emitted C file: reads it, decodes its tables, compares them with the program, and executes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar

import attrs
import numpy as np

from collc.ir.collective import CUSTOM
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram
from collc.ir.verify import Check, Report, adds_once, verify

from ..base import Artifact, Window
from .compare import differences, shortages
from .cursor import Unreadable
from .decode import Decoded, decode
from .interpose import Served
from .interpose.reader import LibraryText, ServedCall, read_library, served_lines
from .names import comment
from .numbers import Numbers
from .reader import HeaderText, SourceText, described, read_header, read_source, title_of
from .rooted import NONE, read_roots, root_differences, shown_roots
from .scratch import is_whole
from .source import Function, Listing
from .template_tables import segment_differences, template_differences, template_shortages

__all__ = ["checked", "checked_library"]


def checked(listing: Listing, artifacts: Sequence[Artifact]) -> Report:
    """Return the report on the source and header of a listing's functions."""
    first = listing.functions[0].first.collective
    return Report("mpi-c", first.kind, first.num_ranks, tuple(_checks(listing, artifacts)))


def _checks(listing: Listing, artifacts: Sequence[Artifact]) -> Iterator[Check]:
    """Yield the checks in order; a failure may end them."""
    names = [f"{listing.prefix}.c", f"{listing.prefix}.h"]
    if [artifact.filename for artifact in artifacts] != names:
        yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {' and '.join(names)}")
        return
    try:
        source = read_source(artifacts[0].text, names[0])
        header = read_header(artifacts[1].text, names[1])
        groups = decode(source)
    except Unreadable as problem:
        yield Check("reading", False, str(problem))
        return
    yield Check("reading", True, f"the reader understands all of source and header; the engine is {source.engine}")
    yield from _source_checks(listing, source, groups)
    yield _check("header", _other_header(listing, header), "describes the source")


def checked_library(listing: Listing, served: Sequence[Served], artifacts: Sequence[Artifact]) -> Report:
    """Return the report on the file of a library for LD_PRELOAD."""
    first = listing.functions[0].first.collective
    return Report("mpi-c", first.kind, first.num_ranks, tuple(_library_checks(listing, served, artifacts)))


def _library_checks(listing: Listing, served: Sequence[Served], artifacts: Sequence[Artifact]) -> Iterator[Check]:
    if [artifact.filename for artifact in artifacts] != [f"{listing.prefix}.c"]:
        yield Check("files", False, f"found {', '.join(a.filename for a in artifacts)}, needed {listing.prefix}.c")
        return
    try:
        library = read_library(artifacts[0].text, artifacts[0].filename)
        groups = decode(library.source)
    except Unreadable as problem:
        yield Check("reading", False, str(problem))
        return
    yield Check("reading", True, f"the reader understands all of the source; the engine is {library.source.engine}")
    yield from _source_checks(listing, library.source, groups)
    yield _check("calls", _other_calls(library, served), "the library serves the requested calls")


def _other_calls(library: LibraryText, served: Sequence[Served]) -> Iterator[str]:
    expected = []
    for number, one in enumerate(served):
        (kind, ranks, root), function = one.calls, one.function
        name, at = comment(function.first.name), -1 if root is None else root
        expected.append(ServedCall(kind, ranks, at, int(_twice(function)), *one.sizes, name, function.name,
                                   number if function.rooted else None, one.at))  # fmt: skip
    yield from _differ("served calls", list(library.served), expected)
    yield from _differ("first comment", library.lines, served_lines(expected))


def _source_checks(listing: Listing, source: SourceText, groups: list[list[Decoded]]) -> Iterator[Check]:
    """Yield the checks of a decoded source."""
    yield _check("names", _other_names(listing, source, groups), "functions, plans and algorithms have matching names")
    expected = [[program for _, program in function.parts] for function in listing.functions]
    if [len(group) for group in groups] != [len(group) for group in expected]:
        yield Check("programs", False, "the number of algorithms differs from the emitted one")
        return
    for number, (one, program) in enumerate(zip(_flat(groups), _flat(expected), strict=True)):
        yield from _program_checks(one, program, f"algorithm {number}: " if len(_flat(groups)) > 1 else "")
    if any(function.rooted for function in listing.functions):
        roots = _other_roots(listing, source)
        yield _check("roots", roots, "moves lead from each root with a plan to the others that the function serves")
    yield _check("tables", _other_numbers(listing.numbers, source.numbers), "have the emitted numbers")


def _program_checks(one: Decoded, expected: AnyProgram, label: str) -> Iterator[Check]:
    one = attrs.evolve(one, program=_completed(one.program, expected))
    report = verify(one.program)
    yield from (attrs.evolve(check, name=label + check.name) for check in report.checks)
    if report.ok:
        yield _check(f"{label}same program", _differences(one, expected), _amount(one.program))
        yield _check(f"{label}allowance", _shortages(one), "every step has the slots and sends that it needs")


def _amount(program: AnyProgram) -> str:
    if isinstance(program, SymmetricProgram):
        return f"{program.batched.num_instructions} steps of {program.seeds}"
    return f"{program.num_instructions} steps"


def _differences(one: Decoded, expected: AnyProgram) -> Iterator[str]:
    if isinstance(one.program, SymmetricProgram) and isinstance(expected, SymmetricProgram):
        scratch = segment_differences(one.few or one.program, one.first, one.cell, one.held)
        return chain(scratch, template_differences(one.program, expected))
    if isinstance(one.program, SymmetricProgram) or isinstance(expected, SymmetricProgram):
        return iter(["one lists the first ranks only, the other all ranks"])
    return differences(one, expected)


def _shortages(one: Decoded) -> Iterator[str]:
    if isinstance(one.program, SymmetricProgram):
        return template_shortages(one.few or one.program, one.copied, one.slots, one.slot_chunks, one.sends)
    return shortages(one)


def _completed(program: AnyProgram, expected: AnyProgram) -> AnyProgram:
    """Return a decoded program with the fields of the emitted collective that a C file does not have."""
    found, due = program.collective, expected.collective
    op = due.op if due.idempotent == found.idempotent and not due.ordered else found.op
    has_counts = found.weights is not None or found.kind == CUSTOM
    weights = due.weights if has_counts and due.weights is not None else found.weights
    completed = attrs.evolve(found, op=op, size=due.size, dtype=due.dtype)
    if weights is not None and len(weights) == found.num_shards:
        completed = attrs.evolve(completed, weights=weights)
    if isinstance(program, SymmetricProgram):
        return attrs.evolve(program, seed=attrs.evolve(program.seed, collective=completed))
    return attrs.evolve(program, collective=completed)


def _check(name: str, problems: Iterator[str], detail: str) -> Check:
    found = next(problems, None)
    return Check(name, found is None, detail if found is None else found)


T = TypeVar("T")


def _flat(groups: Sequence[Sequence[T]]) -> list[T]:
    return [one for group in groups for one in group]


# ---- names, plans and sizes


def _other_names(listing: Listing, source: SourceText, groups: list[list[Decoded]]) -> Iterator[str]:
    functions = listing.functions
    yield from _differ("prefix", source.prefix, listing.prefix)
    if source.title is not None:
        yield from _title(source.title, functions)
    found = [(entry.name, entry.has_algorithm, entry.plan, entry.orbits) for entry in source.entries]
    yield from _differ("functions", found, [
        (f.name, f.tells_algorithm, n, f.rooted.orbits if f.rooted else 0)
        for n, f in enumerate(functions) if f.is_head
    ])  # fmt: skip
    yield from _differ("bindings", list(source.kinds), list(dict.fromkeys(plan.kind for plan in source.plans)))
    twice = [plan.twice for plan in source.plans]
    yield from _differ("contributions that count twice", twice, [int(_twice(function)) for function in functions])
    labels = [comment(w.algorithm if w else "") for f in functions for w, _ in f.parts]
    yield from _differ("algorithms", list(source.labels), labels if any(f.tells_algorithm for f in functions) else [])
    sizes = [_bytes_of_a_count(window, program) for f in functions for window, program in f.parts]
    yield from _differ("sizes of algorithms", [one.most_bytes for one in _flat(groups)], sizes)


def _twice(function: Function) -> bool:
    return not all(adds_once(program) for _, program in function.parts)


def _bytes_of_a_count(window: Window | None, program: AnyProgram) -> int:
    """Return the largest bytes of a count (of a block, for collectives that count blocks) that an algorithm serves."""
    if window is None or window.high is None:
        return 0
    return window.high if is_whole(program.collective) else window.high // program.collective.num_members


def _differ(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected:
        yield f"{what}: found {found}, needed {expected}"


def _other_roots(listing: Listing, source: SourceText) -> Iterator[str]:
    """Yield what is wrong with the roots of the functions that take one: the moves, and whom they serve."""
    plans = [(plan.ranks, plan.root, plan.roots) for plan in source.plans]
    due = {n: f.rooted for n, f in enumerate(listing.functions) if f.rooted is not None and f.rooted.is_head}
    orbits = {entry.plan: entry.orbits for entry in source.entries if entry.orbits}
    if {n: one.orbits for n, one in due.items()} != orbits:
        yield f"functions that take the root have plans {orbits}"
        return
    within = {n + k for n, count in orbits.items() for k in range(count)}
    if wrong := [n for n, plan in enumerate(plans) if (plan[2] == NONE) == (n in within)]:
        yield f"plan {wrong[0]} has roots of no function, or no roots although its function takes one"
        return
    try:
        found = read_roots(source.numbers, plans, orbits)
    except Unreadable as problem:
        yield str(problem)
        return
    for n, roots in found.items():
        yield from root_differences(roots, due[n].roots)


def _title(title: str, functions: Sequence[Function]) -> Iterator[str]:
    """Yield differences between the title of a file and its functions."""
    heads = [function for function in functions if function.is_head]
    if len(heads) == 1:
        yield from _other_description(title, heads[0])
    else:
        yield from _differ("title", title, title_of([function.name for function in heads]))


def _other_description(text: str, function: Function) -> Iterator[str]:
    """Yield differences between a description and its function."""
    collective, among, scheduler = function.first.collective, len(function.parts), comment(function.first.scheduler)
    expected = {
        "kind": collective.name, "root": None if collective.root is None else str(collective.root),
        "ranks": str(collective.num_ranks), "among": str(among) if among > 1 else None,
        "relays": str(function.relays) if function.relays else None, "roots": None, "plans": None,
        "scheduler": scheduler if scheduler and among == 1 else None,
    }  # fmt: skip
    if function.rooted is not None:
        expected |= {"root": None, "roots": shown_roots(function.rooted.roots.listed)}
        if function.rooted.orbits > 1:
            expected |= {"plans": str(function.rooted.orbits), "among": None, "scheduler": None}
    yield from _differ(f"description of `{function.name}`", described(text), expected)


def _other_numbers(expected: Numbers, found: Numbers) -> Iterator[str]:
    for name in {**expected, **found}:
        column, due = found.get(name), expected.get(name)
        if column is None or due is None or len(column) != len(due):
            yield f"`{name}` has another size"
        elif not np.array_equal(column, due):
            at = int(np.argmax(column != due))
            yield f"number {at} of `{name}` is {column[at]}, not {due[at]}"


# ---- the header


def _other_header(listing: Listing, header: HeaderText) -> Iterator[str]:
    """Yield differences between a header and the functions."""
    functions = [function for function in listing.functions if function.is_head]
    yield from _differ("prefix", header.prefix, listing.prefix)
    yield from _title(header.title, functions)
    names = [name for name, _ in header.contents]
    yield from _differ("contents", names, [f.name for f in functions] if len(functions) > 1 else [])
    for (_, text), function in zip(header.contents, functions, strict=False):
        yield from _other_description(text, function)
    yield from _differ("functions", [found.name for found in header.functions], [f.name for f in functions])
    for found, function in zip(header.functions, functions, strict=False):
        yield from _other_description(found.description, function)
        yield from _differ(f"members of `{function.name}`", found.members, function.members)
        ranks = function.first.collective.num_members if function.relays else None
        yield from _differ(f"ranks with data of `{function.name}`", found.without_relays, ranks)
        yield from _differ(f"buffers of `{function.name}`", found.kind, function.kind)
        yield from _differ(f"operations of `{function.name}`", found.op, _operations(function))
        sizes = _sizes(function.windows) if function.tells_algorithm else []
        yield from _differ(f"algorithms of `{function.name}`", list(found.algorithms), sizes)
        yield from _differ(f"`{function.name}_algorithm`", found.has_algorithm, function.tells_algorithm)
        yield from _differ(f"root of `{function.name}`", found.rooted, function.rooted is not None)


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
