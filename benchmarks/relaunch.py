"""Launches: processor time that `collc launch` adds to its command, the first time and the next.

    python benchmarks/relaunch.py [--turns N] [--mpi NAME|DIR] [--limit SECONDS]

Launches ``true``, which calls no MPI, with an empty cache and then ``--turns`` times (5) with the
cache that the first launch left. Prints seconds of the processes together (user plus system, ``RUSAGE_CHILDREN``) less
those of ``true`` alone: for the first launch, which includes the C compiler, and the median of the next ones. Exit
status 1: a next launch adds more than ``--limit`` seconds (0.15).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

_KINDS = (
    "allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast { root: 0 }", "reduce { root: 0 }",
    "gather { root: 0 }", "scatter { root: 0 }",
)  # fmt: skip


def specification(topology: str, kinds: Sequence[str], scheduler: str = "") -> str:
    """Return a specification with a collective of each kind."""
    lines = [f"topology net = {topology};"]
    for number, kind in enumerate(kinds):
        name, brace, options = kind.partition(" {")
        lines.append(f"collective c{number} = {name} on net{brace}{options};")
        lines += [f"schedule c{number} using {scheduler};"] if scheduler else []
    return "\n".join(lines) + "\n"


SPECIFICATIONS = {
    "allreduce on ring 4": specification("biring(4)", _KINDS[:1]),
    "8 collectives on ring 4": specification("biring(4)", _KINDS),
    "allreduce on torus(4, 4), all sizes": specification("torus(4, 4)", _KINDS[:1], "auto { sizes: all }"),
    "8 collectives on torus(4, 4), all sizes": specification("torus(4, 4)", _KINDS, "auto { sizes: all }"),
}


def seconds(command: Sequence[str]) -> float:
    """Return user and system seconds of a command; raise SystemExit if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed with {done.returncode}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(text: str, turns: int, more: Sequence[str]) -> tuple[float, float]:
    """Return the seconds that the first launch adds to its command, and the median of the next ones."""
    alone = statistics.median(seconds(["true"]) for _ in range(turns))
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "net.coll"
        spec.write_text(text)
        words = ["launch", str(spec), f"--cache={folder}/cache", *more, "--", "true"]
        taken = [seconds([sys.executable, "-m", "collc", *words]) for _ in range(turns + 1)]
    return taken[0] - alone, statistics.median(taken[1:]) - alone


def main() -> int:
    """Measure every specification and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--mpi")
    parser.add_argument("--limit", type=float, default=0.15)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds([sys.executable, "-m", "collc", "--version"])
    wide = max(map(len, SPECIFICATIONS))
    print(f"{'specification':{wide}}  {'first':>8}  {'next':>8}  seconds of processors")
    worst = 0.0
    for name, text in SPECIFICATIONS.items():
        first, following = measure(text, options.turns, [f"--mpi={options.mpi}"] if options.mpi else [])
        worst = max(worst, following)
        print(f"{name:{wide}}  {first:8.3f}  {following:8.3f}", flush=True)
    return int(worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
