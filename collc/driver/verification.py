"""Verifying a specification: compile every collective, and execute every level of its IR symbolically."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Spec
from collc.ir.verify import Report, verify

from ..messages.internal import InternalError
from .compilation import Failure, Job, make_jobs, run_jobs
from .plan import Recipe
from .result import Settings

__all__ = ["verify_spec"]


def verify_spec(spec: Spec, only: Sequence[str] = ()) -> tuple[dict[str, Report], list[Failure]]:
    """Return a report for every collective, on its schedule and its files, and those that cannot be compiled."""
    reports: dict[str, Report] = {}
    failures: list[Failure] = []
    for job in make_jobs(spec, only=only)[0]:
        try:
            reports[job.request.name] = _verify_job(job)
        except InternalError:
            raise
        except CollcError as mistake:
            failures.append(Failure(job.request.name, mistake))
    return reports, failures


def _verify_job(job: Job) -> Report:
    by_hand = job.request.schedule.schedule
    if by_hand is not None and not (report := verify(by_hand)).ok:
        return _report(job, [report])
    settings = Settings(Recipe(), "each", Program if job.targets else Schedule)
    return _report(job, run_jobs([job], settings)[0].reports)


def _report(job: Job, reports: Sequence[Report]) -> Report:
    """Return one report with the checks of every level."""
    checks = [attrs.evolve(c, name=f"{report.kind}: {c.name}") for report in reports for c in report.checks]
    collective = job.request.problem.collective
    # Levels that several targets share were executed for each; each check is listed once.
    return Report("coll", collective.name, collective.num_ranks, tuple(dict.fromkeys(checks)))
