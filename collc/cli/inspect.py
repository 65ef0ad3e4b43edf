"""``collc verify``: execute files symbolically, without outputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

from collc.ir.verify import Check, Report

from ..driver.spans import span
from ..files.texts import STDIN
from ..reading import reader, sniff
from ..reading.base import ReadOptions
from .arguments import usage_error
from .console import Console
from .failures import Failures
from .inputs import loading, read, require_own_places
from .table import table
from .tabular import require_one_form, show

if TYPE_CHECKING:
    from collc.tables.columns import Table

__all__ = ["verify"]

#: path, name of the collective and report
Found: TypeAlias = tuple[str, str, Report]

#: endings of the files that runtimes load
_LOADED = (".json", ".xml")


def verify(options: SimpleNamespace, console: Console) -> int:
    """Execute files symbolically and print every check; return 0 if all hold, else 1.

    Several MSCCL-XML files are held against each other too, and several plans of MSCCL++.
    """
    require_one_form(options, options.files)
    texts = [read(path, console) for path in _files(options.files)]
    console.progress("verifying")
    failures = Failures()
    found = [(name, *one) for text, name in texts for one in _verify(text, name, options, console, failures)]
    found += [("together", "", together) for together in _together(texts, options.runtime)]
    ok = all(report.ok for _, _, report in found) and not failures
    show(
        options, console, lambda: _table(found), lambda: _document(found, len(texts), ok, failures),
        lambda: "" if console.errors_only and ok else "".join(_text(*one) for one in found),
    )  # fmt: skip
    console.warn(warning for _, _, report in found for warning in report.warnings)
    return max(failures.report(console), 0 if ok else 1)


def _files(given: Sequence[str]) -> Iterator[str]:
    """Yield the files of a command line; of a folder, what runtimes load from it, by name. Raises C0001."""
    for path in given:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        found = sorted(name for name in os.listdir(path) if name.endswith(_LOADED))
        if not found:
            found_none = f"there is no `.json` or `.xml` file in the folder `{path}`"
            raise usage_error(found_none, "name a file, or another folder")
        yield from (os.path.join(path, name) for name in found)


def _verify(
    text: str, name: str, options: SimpleNamespace, console: Console, failures: Failures
) -> list[tuple[str, Report]]:
    """Return the reports on one file, each with the name of its collective if the file has names."""
    from ..tools.verification import verify_file

    only, runtime, places = tuple(options.collective), options.runtime, options.multiprocessors
    with span(name, "input"):
        found = verify_file(text, name, ReadOptions(loading(options), only, None, runtime, places))
    require_own_places(options, found.files)
    for collective, mistake in found.failed:
        failures.keep(collective, mistake, name)
    console.warn(found.warnings)
    return list(found.named)


def _together(texts: Sequence[tuple[str, str]], runtime: str | None) -> Iterator[Report]:
    """Yield a report for each format with several files, which one runtime would load together."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for text, path in texts if len(texts) > 1 else ():
        alike.setdefault(sniff(text), []).append((text, path))
    for name, listed in alike.items():
        if len(listed) > 1 and (report := reader(name).together(listed, runtime)):
            yield report


def _document(found: Sequence[Found], num_texts: int, ok: bool, failures: Failures) -> dict[str, object]:
    """Return the object of ``--json``: the only report, or all in a list."""
    objects = [_object(n, report) for _, n, report in found]
    if num_texts > 1:
        objects = [{"path": path, **one} for (path, _, _), one in zip(found, objects, strict=True)]
        return {**(objects[-1] if objects else {}), "ok": ok, "files": objects, **failures.objects()}
    if len(objects) == 1 and not failures:
        return objects[0]
    first = objects[0] if objects else {}
    return {**first, "ok": ok, "collectives": objects, **failures.objects()}


def _table(found: Sequence[Found]) -> Table:
    """Return a row for every check."""
    from collc.tables.columns import Table
    from collc.tables.listed import VERIFIED

    return Table(VERIFIED, [
        {"path": path, "name": name, "kind": report.kind, "collective": report.collective, "ranks": report.ranks,
         "check": check.name, "ok": check.ok, "detail": check.detail, "notes": "; ".join(check.notes)}
        for path, name, report in found for check in report.checks
    ])  # fmt: skip


def _object(name: str, report: Report) -> dict[str, object]:
    checks: Sequence[dict[str, object]] = [_check_object(c) for c in report.checks]
    warnings = [{"code": w.code, "message": w.message} for w in report.warnings]
    return {
        "ok": report.ok, "kind": report.kind, "collective": report.collective, "ranks": report.ranks,
        "checks": checks, **({"warnings": warnings} if warnings else {}), **({"name": name} if name else {}),
    }  # fmt: skip


def _check_object(check: Check) -> dict[str, object]:
    notes = {"notes": list(check.notes)} if check.notes else {}
    return {"name": check.name, "ok": check.ok, "detail": check.detail, **notes}


def _text(path: str, name: str, report: Report) -> str:
    """The failed checks whole, the others by name."""
    verdict = "verified" if report.ok else "WRONG"
    what = f"`{name}`, " if name else ""
    head = f"{path}: {verdict}: {what}{report.collective} on {report.ranks} ranks ({report.kind})\n"
    rows = []
    for check in report.checks:
        rows.append(("ok" if check.ok else "FAILED", check.name, check.detail))
        rows += [("", "", note) for note in check.notes]
    return head + table(rows, indent="  ")
