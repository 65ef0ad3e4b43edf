"""What the verifier found, what the target allows, and what the passes did: tables of texts."""

from __future__ import annotations

from collections.abc import Iterator

from collc.ir.account import Account, Algorithm
from collc.ir.program import Program
from collc.ir.shown import counted

from .numbers import Json

__all__ = ["findings_of"]


def findings_of(account: Account) -> dict[str, Json]:
    """Return the tables of a section: checks, limits, passes and remarks."""
    return {
        "checks": [row for algorithm in account.algorithms for row in _checks(algorithm)],
        "limits": [row for algorithm in account.algorithms for row in _limits(algorithm)],
        "passes": [row for algorithm in account.algorithms for row in _passes(algorithm)],
        "remarks": list(dict.fromkeys(text for algorithm in account.algorithms for text in algorithm.remarks)),
    }


def _checks(algorithm: Algorithm) -> Iterator[Json]:
    """Yield verdict, IR, check and detail of each check; warnings too."""
    for report in algorithm.reports:
        for check in report.checks:
            yield ["passed" if check.ok else "failed", report.kind, check.name, check.detail]
        for one in report.warnings:
            yield ["warning", report.kind, one.code, one.message]


def _limits(algorithm: Algorithm) -> Iterator[Json]:
    """Yield what is used, by how much, the limit, and whose limit it is."""
    if algorithm.program is None:
        yield ["program", algorithm.absent, "", ""]
        return
    for one in algorithm.allowances:
        yield [one.what, f"{one.used:,}", f"{one.allowed:,}", one.target]
    yield from _sizes(algorithm.program)


def _sizes(program: Program) -> Iterator[Json]:
    scratch = int(program.scratch.max(initial=0))
    yield ["scratch", f"{counted(scratch, 'chunk')} of a rank at most", "", ""]
    yield ["chunks", f"{program.chunks:,} a shard", "", ""]
    total = f"{program.num_blocks:,} threadblocks, {program.num_instructions:,} instructions"
    yield ["program", f"{total}, {counted(len(program.deps), 'dependency')}", "", ""]


def _passes(algorithm: Algorithm) -> Iterator[Json]:
    """Yield the name of each pass, the rows that it left, and why it ran."""
    for one in algorithm.passes:
        yield [one.name, "" if one.rows is None else f"{one.rows:,}", one.why or "requested"]
