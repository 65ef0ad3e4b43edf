"""``collc find`` on databases: ``--refresh --database`` builds and extends them, ``--rates-only`` fills in all-to-all
rates, ``--check`` recomputes them."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.shown import counted
from collc.passes.finder.database import DEGREES, LARGEST, parse_rows, shipped
from collc.passes.finder.exclude import NOTHING

from ..files.finished import Finished
from ..files.texts import Output, check_writable, read_text, write_all
from ..tools.finding import check_sizes
from ..tools.finding_database import EVALUATIONS, Searched, file_of
from ..tools.finding_database import build as build_database
from ..tools.finding_database import check as check_rows
from ..tools.finding_database import rate as rate_rows
from .arguments import usage_error
from .console import Console
from .searching import workers
from .signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["build", "check", "rate"]


def build(options: SimpleNamespace, console: Console) -> int:
    """Search many sizes and write the results; return the exit status."""
    paths = _paths(options)
    for degree in paths:
        check_sizes(max(_sizes(options, degree)[-1], degree + 1), degree)
    check_writable([*paths.values(), *map(_unfinished, paths.values())])
    without = NOTHING
    if options.exclude:
        from ..tools.excluding import excluded

        without = excluded(options.exclude)
    how = Searched(options.effort or EVALUATIONS, options.seed, options.bidirectional, without)
    with workers(options, console) as work:
        for degree, path in paths.items():
            text = read_text(path) if os.path.exists(path) else ""

            def store(new_text: str, path: str = path) -> None:
                console.signals.check()
                write_all([Output(path, new_text)])

            finished = Finished(_unfinished(path))
            try:
                text = build_database(degree, _sizes(options, degree), text, path, how, work, store, finished)
            except Terminated:
                if not console.errors_only and console.format == "text":
                    kept = _unfinished(path)
                    console.err(f"collc: interrupted: `{kept}` has what was found; the same command continues it\n")
                raise
            console.clear_progress()
            rows = parse_rows(text, degree, path)
            console.out(
                f"{path}: {len(rows)} topologies of degree {degree}, {len({row.nodes for row in rows})} sizes\n"
            )
    return 0


def rate(options: SimpleNamespace, console: Console) -> int:
    """Compute the all-to-all rates that rows of databases lack and write them; return the exit status."""
    if not (options.refresh and options.database):
        raise usage_error(
            "--rates-only completes the rows of a database", "write `collc find --refresh --rates-only --database FILE`"
        )
    for name in ("exclude", "bidirectional", "effort"):
        if getattr(options, name):
            raise usage_error(f"--rates-only searches nothing, found also --{name}", f"leave out --{name}")
    paths = _paths(options)
    check_writable([*paths.values(), *map(_unfinished, paths.values())])
    with workers(options, console) as work:
        for degree, path in paths.items():
            finished = Finished(_unfinished(path))
            sizes = set(options.n) if options.n else None
            text, count = rate_rows(degree, sizes, read_text(path), path, work, finished)
            console.signals.check()
            console.clear_progress()
            if count:
                write_all([Output(path, text)])
                finished.clear()
            console.out(f"{path}: {counted(count, 'topology')} of degree {degree} got an all-to-all rate\n")
    return 0


def check(options: SimpleNamespace, console: Console) -> int:
    """Recompute the rows of databases; return 0 if all are right, else raise C0033 with the wrong ones."""
    with workers(options, console) as work:
        for degree in _degrees(options):
            text, path = _text(options, degree)
            rows = parse_rows(text, degree, path)
            if options.n:
                sizes = set(options.n)
                rows = [row for row in rows if row.nodes in sizes]
            if not rows:
                which = f"degree {degree}" + (" and these numbers of nodes" if options.n else "")
                hint = "leave out -n, or name other sizes" if options.n else f"degrees: {', '.join(map(str, DEGREES))}"
                raise usage_error(f"`{path}` has no topology of {which}", hint)
            count = check_rows(rows, work)
            console.clear_progress()
            console.out(f"{path}: {count} topologies of degree {degree} have the costs of their rows\n")
    return 0


def _paths(options: SimpleNamespace) -> dict[int, str]:
    """Return the database file of every degree; raise C0001 if degrees share one."""
    degrees = _degrees(options)
    paths = {degree: file_of(options.database, degree) for degree in degrees}
    if len(set(paths.values())) < len(degrees):
        raise usage_error("a database file holds one degree", "give a folder: `--database DIR/`")
    return paths


def _unfinished(path: str) -> str:
    """Return the file of the finished units of a database that is being built."""
    return f"{path}.units"


def _degrees(options: SimpleNamespace) -> list[int]:
    found: list[int] = options.d or list(DEGREES)
    if min(found) < 1:
        check_sizes(2, min(found))
    return found


def _sizes(options: SimpleNamespace, degree: int) -> list[int]:
    found: Iterable[int] = options.n or range(degree + 1, LARGEST + 1)
    return sorted(found)


def _text(options: SimpleNamespace, degree: int) -> tuple[str, str]:
    if options.database:
        path = file_of(options.database, degree)
        return read_text(path), path
    return shipped(degree) or "", f"degree-{degree}.txt"
