"""The options of ``collc sweep`` alone."""

from __future__ import annotations

from .arguments import Opt
from .flags import workers

__all__ = ["SWEEP", "SWEEP_OUTPUT", "WORK"]

SWEEP = (
    Opt(("--on",), "networks: expressions, or files with topologies", "words", "TOPOLOGY"),
    Opt(("--collective",), "collectives, with attributes if needed: allreduce\n'broadcast { root: 3 }'", "words",
        "KIND"),
    Opt(("--using",), "schedulers, with options if needed: bfb 'forest{k=2}' (auto)", "words", "SCHEDULER"),
)  # fmt: skip
WORK = workers("sweep", "cases")
SWEEP_OUTPUT = (
    Opt(("-o",), "write the table into FILE, by its name: .csv, .json, .md or .parquet", "value", "FILE", writes=True),
    Opt(("--cache",), "keep the rows of finished cases, and take those of the same inputs:\n"
        "an interrupted sweep continues (default folder: `collc cache` prints it)", "joined", "DIR"),
)  # fmt: skip
