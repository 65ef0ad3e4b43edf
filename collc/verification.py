"""``collc verify``: any file that collc can read, executed symbolically."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import error
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Spec
from collc.ir.text import parse_ir
from collc.ir.validate import structure
from collc.ir.verify import Check, Report, verify
from collc.ir.verify.residency import residency

from .compilation import Job, Loading, load_spec, make_jobs, run_jobs, sniff
from .driver import Settings
from .pipeline import Recipe

__all__ = ["verify_spec", "verify_text"]


def verify_text(
    text: str,
    path: str,
    *,
    runtime: str | None = None,
    multiprocessors: int | None = None,
    loading: Loading | None = None,
    collective: str | None = None,
) -> Report:
    """Return the report on a text, by what it is: a ``.coll`` file, a printed IR or an MSCCL-XML file.

    Of a ``.coll`` file every collective is compiled and every level verified; the report holds the checks of
    all. ``multiprocessors`` is how many threadblocks of an MSCCL-XML file or a program run at once on a rank,
    ``collective`` what an MSCCL-XML file performs that does not say it.
    """
    kind = sniff(text)
    if kind == "xml":
        from collc.backends import msccl_xml, oneccl_xml

        if oneccl_xml.is_oneccl(text):
            if runtime is not None or multiprocessors is not None:
                option = "--runtime" if runtime is not None else "--multiprocessors"
                raise error("C0018", f"{option} judges MSCCL-XML files, which `{path}` is not", exit_status=2)
            return oneccl_xml.verify_text(text, path)
        return msccl_xml.verify_text(
            text, path, runtime=runtime, collective=collective, multiprocessors=multiprocessors
        )
    if runtime is not None:
        raise error("C0018", f"--runtime judges MSCCL-XML files, which `{path}` is not", exit_status=2)
    if kind == "ir":
        return _verify_ir(text, path, multiprocessors)
    if multiprocessors is not None:
        found = f"--multiprocessors judges MSCCL-XML files and programs, which `{path}` is not"
        raise error("C0018", found, exit_status=2)
    reports = verify_spec(load_spec(text, path, loading or Loading()))
    return reports[0] if len(reports) == 1 else _joined(reports)


def verify_spec(spec: Spec, only: Sequence[str] = ()) -> list[Report]:
    """Return one report for every collective of a specification: its schedule, and what its emits make of it."""
    return [_verify_job(job) for job in make_jobs(spec, only=only)[0]]


def _verify_job(job: Job) -> Report:
    by_hand = job.request.schedule.schedule
    if by_hand is not None and not (report := verify(by_hand)).ok:
        return _report(job, [report])
    settings = Settings(Recipe(), "each", Program if job.targets else Schedule)
    return _report(job, run_jobs([job], settings)[0].reports)


def _report(job: Job, reports: Sequence[Report]) -> Report:
    """Return one report made of those of every level."""
    checks = [attrs.evolve(c, name=f"{report.kind}: {c.name}") for report in reports for c in report.checks]
    collective = job.request.problem.collective
    # What several targets have in common was executed for each, and is told once.
    return Report("coll", collective.kind, collective.num_ranks, tuple(dict.fromkeys(checks)))


def _joined(reports: list[Report]) -> Report:
    checks = tuple(c for report in reports for c in report.checks)
    return Report("coll", ", ".join(r.collective for r in reports), max(r.ranks for r in reports), checks)


def _verify_ir(text: str, path: str, multiprocessors: int | None = None) -> Report:
    level = parse_ir(text, path)
    if multiprocessors is not None:
        if not isinstance(level, Program):
            found = f"--multiprocessors judges MSCCL-XML files and programs, which `{path}` is not"
            raise error("C0018", found, exit_status=2)
        report = verify(level)
        return attrs.evolve(report, checks=(*report.checks, residency(level, multiprocessors)))
    if hasattr(level, "collective"):
        return verify(level)
    wrong = structure(level)
    name = type(level).__name__.lower()
    detail = "; ".join(wrong) or "well formed"
    ranks = level.num_ranks
    return Report(name, getattr(level, "kind", "none"), ranks, (Check("structure", not wrong, detail),))
