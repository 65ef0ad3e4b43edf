"""``collc verify``: any file that collc can read, executed symbolically."""

from __future__ import annotations

from collc.ir.verify import Report

from ..driver.compilation import joined
from ..reading import FORMATS, judged, reader, require_known, sniff
from ..reading.base import ReadOptions, Reports
from ..reading.loading import Loading

__all__ = ["verify_file", "verify_text"]


def verify_text(
    text: str,
    path: str,
    *,
    runtime: str | None = None,
    multiprocessors: int | None = None,
    loading: Loading | None = None,
    collective: str | None = None,
) -> Report:
    """Return the report on a text, by its format.

    Of a ``.coll`` file, collc compiles every collective and verifies every level; the report holds all checks.
    ``multiprocessors`` is the number of threadblocks that a rank runs at once, of an MSCCL-XML file or a program,
    ``collective`` the collective of an MSCCL-XML file with coll="custom".
    """
    collectives = () if collective is None else (collective,)
    options = ReadOptions(loading or Loading(), collectives, None, runtime, multiprocessors)
    found = verify_file(text, path, options)
    if found.failed:
        raise joined([mistake for _, mistake in found.failed])
    reports = [report for _, report in found.named]
    return reports[0] if len(reports) == 1 else _joined(reports)


def verify_file(text: str, path: str, options: ReadOptions) -> Reports:
    """Return the reports on a text, by its format; raise C0018 for options that do not judge it."""
    require_known(text, path, "verify")
    name = sniff(text)
    known = dict(FORMATS[name].judged)
    for option in ("runtime", "multiprocessors"):
        if getattr(options, option) is not None and option not in known:
            raise judged(option, path)
    return reader(name).verify(text, path, options)


def _joined(reports: list[Report]) -> Report:
    checks = tuple(c for report in reports for c in report.checks)
    return Report("coll", ", ".join(r.collective for r in reports), max(r.ranks for r in reports), checks)
