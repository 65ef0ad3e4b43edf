"""The columns of every table that the command prints as CSV or Markdown, by verb."""

from __future__ import annotations

from . import further as more
from . import listed as first
from .columns import Column

__all__ = ["TABLES"]

#: verb, and `--table NAME` or the option that prints another table -> the columns; `options` are those of one pass,
#: scheduler or target
TABLES: dict[str, tuple[Column, ...]] = {
    "check": more.CHECKED, "check --table topologies": more.NETWORKS, "check --table collectives": more.DECLARED,
    "import": more.NETWORKS, "import --table imported": more.IMPORTED,
    "compile": more.FILES, "compile --table programs": more.PROGRAMS, "compile --table auto": more.RANGES,
    "compile --table candidates": more.CANDIDATES,
    "compile --table skipped": more.SKIPPED,
    "cost": first.COST, "cost --baselines": first.BASELINES, "cost --table schedules": more.SCHEDULES,
    "cost --table tried": more.TRIED, "cost --table auto": more.RANGES, "cost --table candidates": more.CANDIDATES,
    "cost --table skipped": more.SKIPPED, "cost --table roots": more.ROOTS, "cost --table orbits": more.ORBITS,
    "cost --table together": more.TOGETHER, "cost --table parts": more.TOGETHER_PARTS,
    "simulate": first.SIMULATION, "simulate --table schedules": more.SIMULATIONS, "simulate --steps": more.STEPS,
    "simulate --table crossovers": more.CROSSOVERS, "simulate --table roots": more.ROOTS,
    "simulate --table orbits": more.ORBITS, "simulate --table together": more.TOGETHER_SIMULATED,
    "find": first.FRONTIER, "find --expand-to": first.GROWN,
    "find --table places": first.PLACES, "find --table recabling": first.RECABLED,
    "find --table sizes": more.FASTEST,
    "run": first.RUN, "sweep": first.SWEEP, "train": first.TRAIN, "train --list": first.WORKLOADS,
    "calibrate": first.FIT, "calibrate --table alphas": more.ALPHAS, "calibrate --nccl-tests": first.NATIVE,
    "calibrate --nccl-tests --table choices": more.CHOICES, "explain": first.CODES,
    "targets": first.NAMES, "passes": first.NAMES, "schedulers": first.SCHEDULED, "formats": first.NAMES,
    "topologies": first.TOPOLOGIES, "options": first.OPTIONS, "verify": first.VERIFIED, "replan": first.REPLANNED,
    "replan --each-fault": first.SINGLE_FAULTS, "cache": first.CACHE_PARTS, "cache list": first.CACHE_ITEMS,
    "cache times": more.TIMED, "--time-passes": first.TIMES,
}  # fmt: skip
