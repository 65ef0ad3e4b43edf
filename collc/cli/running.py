"""``collc run``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.diagnostic import nearest

from ..files.texts import STDIN
from ..reading import FORMATS, sniff
from ..registry.elements import Element, parse_elements
from .arguments import usage_error
from .console import Console
from .failures import Failures
from .inputs import read
from .tabular import require_one_form, show

if TYPE_CHECKING:
    from collc.backends.measured import RunResult

__all__ = ["run"]

#: target -> the options that belong to the other one
_TARGETS = {"mpi-c": ("oneccl", "tune"), "oneccl-xml": ("mpi", "mpi_env", "testbed", "delay")}


def run(options: SimpleNamespace, console: Console) -> int:
    """Compile every collective, run it, print the times of its calls; return 0 if every element was right."""
    text, name = read(options.files[0], console)
    target = _target(options, text)
    _require_fitting(options, target.name)
    from ..running.result import run_table

    failures = Failures()
    with _environment(options.mpi_env):
        results = _results(target, text, name, options, console, failures)
    if results or not failures or options.json:
        show(
            options, console, lambda: run_table(results), lambda: _object(results, failures),
            lambda: "\n".join(result.table() + "\n" for result in results),
        )  # fmt: skip
    # One diagnostic for every wrong case, which the table shows too.
    wrong = Failures()
    wrong.each(results, lambda result: result.rows[0].name if result.rows else "", lambda result: result.require())
    return max(failures.report(console), wrong.report(console))


def _results(
    target: Element, text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures
) -> list[RunResult]:
    if target.name == "mpi-c":
        from .running_mpi import run_mpi

        return run_mpi(text, name, options, console, failures)
    from .running_oneccl import run_oneccl

    return run_oneccl(target, text, name, options, console, failures)


def _target(options: SimpleNamespace, text: str) -> Element:
    """Return the target of ``-t``, else the default of the file's format."""
    if options.target is None:
        return Element(FORMATS[sniff(text)].runs)
    elements = parse_elements(options.target, "-t")
    known = ", ".join(_TARGETS)
    if len(elements) != 1 or elements[0].name not in _TARGETS:
        found = elements[0].name if len(elements) == 1 else options.target
        raise usage_error(f"`collc run` runs {known}, found `{found}`", nearest(found, _TARGETS))
    if elements[0].name == "mpi-c" and elements[0].options:
        raise usage_error("`collc run` takes mpi-c without options: it builds one program that calls all collectives")
    return elements[0]


def _require_fitting(options: SimpleNamespace, target: str) -> None:
    for name in _TARGETS[target]:
        if getattr(options, name):
            raise usage_error(f"option `--{name.replace('_', '-')}` is not for {target}")
    require_one_form(options, [path for path in options.files if path != STDIN])
    if options.delay and not options.testbed:
        raise usage_error("option `--delay` is for links of a testbed", "add `--testbed`")


@contextlib.contextmanager
def _environment(settings: list[tuple[str, str]]) -> Iterator[None]:
    """Set variables for the programs; restore the old values at the end."""
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


def _object(results: list[RunResult], failures: Failures) -> dict[str, object]:
    return {
        "ok": all(result.ok for result in results) and not failures,
        "ranks": results[0].ranks if results else None,
        "mpi": str(results[0].mpi) if results else None,
        "rows": [row.as_dict() for result in results for row in result.rows],
        **failures.objects(),
    }
