"""``collc run``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from collc.ir.diagnostic import error, nearest

from ..compilation import sniff
from ..elements import Element, parse_elements
from ..files import STDIN, Output, write_all
from .arguments import usage_error
from .console import Console
from .inputs import read

if TYPE_CHECKING:
    from collc.backends.measured import RunResult

__all__ = ["require_ranks", "run"]

#: what can be run, and the options that are for the other one
_TARGETS = {"mpi-c": ("oneccl",), "oneccl-xml": ("mpi", "mpi_env", "testbed", "delay")}


def run(options: SimpleNamespace, console: Console) -> int:
    """Compile every collective, run it, print what each call took; return 0 where every element was right."""
    text, name = read(options.files[0], console)
    target = _target(options, text)
    _require_fitting(options, target.name)
    with _environment(options.mpi_env):
        results = _results(target, text, name, options, console)
    _show(results, options, console)
    # One diagnostic for every wrong case; the table above has them too.
    for result in results:
        result.require()
    return 0


def _results(target: Element, text: str, name: str, options: SimpleNamespace, console: Console) -> list[RunResult]:
    if target.name == "mpi-c":
        from .running_mpi import run_mpi

        return run_mpi(text, name, options, console)
    from .running_oneccl import run_oneccl

    return run_oneccl(target, text, name, options, console)


def require_ranks(options: SimpleNamespace, name: str, ranks: int) -> None:
    """Raise C0765 where ``--ranks`` says another number than a collective has."""
    if options.ranks is not None and options.ranks != ranks:
        hint = "compile it for that many ranks, or leave `--ranks` out"
        raise error("C0765", f"`{name}` is for {ranks} ranks, and {options.ranks} were asked for", hint=hint)


def _target(options: SimpleNamespace, text: str) -> Element:
    """Return what to run: what ``-t`` says, else what an oneCCL-XML file is for, else MPI-C."""
    if options.target is None:
        return Element("oneccl-xml" if sniff(text) == "xml" and _is_oneccl(text) else "mpi-c")
    wanted = parse_elements(options.target, "-t")
    known = ", ".join(_TARGETS)
    if len(wanted) != 1 or wanted[0].name not in _TARGETS:
        found = wanted[0].name if len(wanted) == 1 else options.target
        raise usage_error(f"`collc run` runs {known}, found `{found}`", nearest(found, _TARGETS))
    if wanted[0].name == "mpi-c" and wanted[0].options:
        raise usage_error(
            "`collc run` takes mpi-c without options: what it builds is one program that calls everything"
        )
    return wanted[0]


def _is_oneccl(text: str) -> bool:
    from collc.backends.oneccl_xml import is_oneccl

    return is_oneccl(text)


def _require_fitting(options: SimpleNamespace, target: str) -> None:
    for name in _TARGETS[target]:
        if getattr(options, name):
            raise usage_error(f"option `--{name.replace('_', '-')}` is not for {target}")
    if options.json and options.csv == [""]:
        raise usage_error("standard output takes JSON or CSV, not both", "`--csv=FILE` writes a file")
    if options.delay and not options.testbed:
        raise usage_error("option `--delay` is for links of a testbed", "add `--testbed`")


@contextlib.contextmanager
def _environment(settings: list[tuple[str, str]]) -> Iterator[None]:
    """Set variables for the programs that are run; what was set is set again at the end."""
    before = {name: os.environ.get(name) for name, _ in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# ---- output


def _show(results: list[RunResult], options: SimpleNamespace, console: Console) -> None:
    from collc.backends.measured import csv_text

    paths = options.csv or []
    files = [path for path in paths if path not in ("", STDIN)]
    write_all([Output(path, csv_text(results)) for path in files])
    if len(files) < len(paths):
        console.out(csv_text(results))
    elif options.json:
        console.json(_object(results))
    else:
        console.out("\n".join(result.table() + "\n" for result in results))


def _object(results: list[RunResult]) -> dict[str, Any]:
    return {
        "ok": all(result.ok for result in results),
        "ranks": results[0].ranks if results else None,
        "mpi": str(results[0].mpi) if results else None,
        "rows": [row.as_dict() for result in results for row in result.rows],
    }
