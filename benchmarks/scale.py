"""Scale: large schedules and their verification, against the paper's linear programs in the same run.

    python benchmarks/scale.py [--sample NODES]

Prints for each topology seconds to make the allgather schedule of a problem, to verify it by executing it and to cost
it, the peak memory of the process that does this (each has one of its own), and beside them seconds to solve LP (1) of
the direct-connect paper for every node and step on HiGHS, in the same process afterwards, and their ratio. Only
building and solving the models counts for them: distances are given. Times marked ~ are of a sample of nodes, spread
evenly, scaled up: always for the torus of 10,000 nodes (1,000,000 programs), with ``--sample`` for all. Below stand
whole commands on that torus.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from lp import least_load

import collc
from collc.ir.collective import Collective
from collc.ir.cost import cost
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.bfb import BFB

#: expression -> nodes whose programs are solved, nothing for all of them
LARGE: dict[str, int | None] = {
    "hypercube(10)": None,
    "torus(50, 50)": None,
    "generalized_kautz(4, 2000)": None,
    "torus(100, 100)": 8,
}
COMMANDS = (("cost", "allgather"), ("verify", "allgather"), ("cost", "allreduce"), ("verify", "allreduce"))


# ---- one topology


def measure(expression: str, sample: int | None) -> dict[str, Any]:
    """Measure one topology in this process."""
    topology, elaborate = timed(lambda: collc.topology(expression))
    n = topology.num_ranks
    schedule, schedules = timed(lambda: BFB().run(Problem(topology, Collective("allgather", n))))
    report, verifies = timed(lambda: verify_schedule(schedule))
    found, costs = timed(lambda: cost(schedule))
    if not report.ok:
        raise SystemExit(f"{expression}: the schedule is wrong")
    rows = len(schedule.seed if isinstance(schedule, SymmetricSchedule) else schedule)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # before HiGHS is loaded
    nodes = range(n) if sample is None else range(0, n, max(n // sample, 1))
    return {
        "expression": expression, "nodes": n, "elaborate": elaborate, "schedule": schedules, "verify": verifies,
        "cost": costs, "transfers": len(schedule), "rows": rows, "T_L": found.T_L, "T_B": str(found.T_B),
        "peak": peak, "sampled": len(nodes) < n, "programs": programs(topology, nodes) * n / len(nodes),
    }  # fmt: skip


def timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def programs(topology: Topology, nodes: range) -> float:
    """Return the seconds to build and solve LP (1) for these nodes and all steps."""
    spent = 0.0
    for node in nodes:
        for masks, slots in jobs(topology, node):
            spent += timed(lambda masks=masks, slots=slots: least_load(masks, slots))[1]
    return spent


def jobs(topology: Topology, node: int) -> Iterator[tuple[list[int], int]]:
    """Yield for every step the masks of the shards that ``node`` receives, and its number of in-links."""
    start, links = topology.in_links
    tails = [int(topology.src[k]) for k in links[start[node] : start[node + 1]]]
    tails = [tail for tail in tails if tail != node]
    here, there = topology.hops_to(node), np.array([topology.hops_to(tail) for tail in tails])
    usable = (there + 1 == here).T
    for step in range(1, int(here.max()) + 1):
        rows = usable[here == step]
        yield [sum(1 << k for k in np.flatnonzero(row).tolist()) for row in rows], len(tails)


# ---- whole commands


def commands(expression: str) -> Iterator[str]:
    """Run the command on one topology; yield a line for each verb and collective."""
    with tempfile.TemporaryDirectory() as folder:
        for verb, kind in COMMANDS:
            path = os.path.join(folder, f"{kind}.coll")
            Path(path).write_text(f"topology t = {expression};\ncollective g = {kind} on t;\nschedule g using bfb;\n")
            seconds, peak = run([sys.executable, "-c", "import collc.cli; collc.cli.main()", verb, path])
            yield f"collc {verb:7} {kind:10} on {expression:18}{seconds:8.2f} s{peak / 1024:8.0f} MB"


def run(command: list[str]) -> tuple[float, int]:
    """Run a process; return its seconds and its peak memory (KiB)."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return time.perf_counter() - start, used.ru_maxrss


# ---- the table

HEAD = (
    f"{'topology':28}{'N':>6}{'transfers':>13}{'rows kept':>11}{'T_L':>5}{'T_B':>12}{'schedule':>10}{'verify':>8}"
    f"{'cost':>7}{'peak MB':>9}{'LPs':>12}{'ratio':>9}"
)


def line(m: dict[str, Any]) -> str:
    """Return one topology's line; the ratio is of the programs to schedule and verification together."""
    optimal = "=" if Fraction(m["T_B"]) == Fraction(m["nodes"] - 1, m["nodes"]) else ">"
    lps = f"{'~' if m['sampled'] else ''}{m['programs']:.1f}"
    ratio = m["programs"] / (m["schedule"] + m["verify"])
    return (
        f"{m['expression']:28}{m['nodes']:6}{m['transfers']:13,}{m['rows']:11,}{m['T_L']:5}{m['T_B']:>11}{optimal}"
        f"{m['schedule']:10.3f}{m['verify']:8.3f}{m['cost']:7.3f}{m['peak'] / 1024:9.0f}{lps:>12}{ratio:9.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, metavar="NODES", help="solve the programs of so many nodes only")
    parser.add_argument("--one", metavar="EXPRESSION", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.sample)))
        return
    print("seconds; ratio = LPs / (schedule + verify), in this run; T_B = (N-1)/N (marked =) is optimal; ~ scaled up")
    print(HEAD)
    for expression, sample in LARGE.items():
        count = sample if options.sample is None else options.sample
        chosen = [] if count is None else ["--sample", str(count)]
        command = [sys.executable, __file__, "--one", expression, *chosen]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        print(line(json.loads(done.stdout)), flush=True)
    print()
    for text in commands("torus(100, 100)"):
        print(text, flush=True)


if __name__ == "__main__":
    main()
