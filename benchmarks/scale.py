"""Scale: large schedules and their verification, against the paper's linear programs in the same run.

    python benchmarks/scale.py [--only EXPRESSION ..] [--sample NODES] [--arrays]

Prints for each topology seconds to make the allgather schedule of a problem, to verify it by executing it and to cost
it, the peak memory of the process that does this (each has one of its own), and beside them seconds for LP (1) of the
direct-connect paper for every node and step on HiGHS, in the same process afterwards, and their ratio. ``built`` is to
write the programs down as the paper does, a variable for each shard and link that may carry it and a constraint for
each link and shard, in highspy's modelling interface; ``solved`` is what HiGHS takes for them after that. Reading the
distances off the graph (which shards are due, and by which links) counts for neither, making schedules from solutions
is not even done. ``--arrays`` hands the models over as columns instead, the fastest method. Times marked ~ are
of a sample of nodes, spread evenly, scaled up: always for the torus of 10,000 nodes (1,000,000 programs), with
``--sample`` for all. Below stand whole commands on that torus.
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
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from lp import least_load

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB

#: expression -> nodes whose programs are solved, nothing for all of them
LARGE: dict[str, int | None] = {
    "hypercube(10)": None,
    "torus(50, 50)": None,
    "generalized_kautz(4, 2000)": None,
    "torus(100, 100)": 8,
}
COMMANDS = (("cost", "allgather"), ("verify", "allgather"), ("cost", "allreduce"), ("verify", "allreduce"))


# ---- one topology


def measure(expression: str, sample: int | None, arrays: bool) -> dict[str, Any]:
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
    work = programs(topology, nodes, by_columns if arrays else as_written)
    return {
        "expression": expression, "nodes": n, "elaborate": elaborate, "schedule": schedules, "verify": verifies,
        "cost": costs, "transfers": len(schedule), "rows": rows, "T_L": found.T_L, "T_B": str(found.T_B),
        "peak": peak, "sampled": len(nodes) < n, "programs": [x * n / len(nodes) for x in work],
    }  # fmt: skip


def timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


Solver = Callable[[list[int], int], tuple[float, float, float]]


def programs(topology: Topology, nodes: range, solver: Solver) -> tuple[float, float]:
    """Return the seconds to build and to solve LP (1) for these nodes and all steps."""
    built = solved = 0.0
    for node in nodes:
        for masks, slots in jobs(topology, node):
            _, building, solving = solver(masks, slots)
            built, solved = built + building, solved + solving
    return built, solved


def as_written(masks: list[int], slots: int) -> tuple[float, float, float]:
    """Solve LP (1) in highspy's modelling interface; return its optimum and the seconds to build and to solve it."""
    import highspy

    start = time.perf_counter()
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    load = model.addVariable(lb=0)
    by_link: list[list[Any]] = [[] for _ in range(slots)]
    for mask in masks:
        shares = []
        for link in range(slots):
            if mask >> link & 1:
                share = model.addVariable(lb=0, ub=1)
                shares.append(share)
                by_link[link].append(share)
        model.addConstr(model.qsum(shares) == 1)
    for shares in by_link:
        if shares:
            model.addConstr(model.qsum(shares) <= load)
    built = time.perf_counter()
    model.minimize(load)
    return model.getObjectiveValue(), built - start, time.perf_counter() - built


def by_columns(masks: list[int], slots: int) -> tuple[float, float, float]:
    """Solve LP (1) handed over as arrays; building and solving are one number."""
    optimum, seconds = timed(lambda: least_load(masks, slots))
    return optimum, 0.0, seconds


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
    f"{'cost':>7}{'peak MB':>9}{'LPs built':>12}{'solved':>10}{'together':>11}{'ratio':>9}"
)


def line(m: dict[str, Any]) -> str:
    """Return one topology's line; the ratio is of the programs to schedule and verification together."""
    optimal = "=" if Fraction(m["T_B"]) == Fraction(m["nodes"] - 1, m["nodes"]) else ">"
    about = "~" if m["sampled"] else ""
    built, solved = m["programs"]
    lps = [f"{about}{seconds:.1f}" for seconds in (built, solved, built + solved)]
    ratio = (built + solved) / (m["schedule"] + m["verify"])
    return (
        f"{m['expression']:28}{m['nodes']:6}{m['transfers']:13,}{m['rows']:11,}{m['T_L']:5}{m['T_B']:>11}{optimal}"
        f"{m['schedule']:10.3f}{m['verify']:8.3f}{m['cost']:7.3f}{m['peak'] / 1024:9.0f}"
        f"{lps[0]:>12}{lps[1]:>10}{lps[2]:>11}{ratio:9.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="EXPRESSION", help="only this topology, and no commands")
    parser.add_argument("--sample", type=int, metavar="NODES", help="solve the programs of this number of nodes only")
    parser.add_argument("--arrays", action="store_true", help="hand the programs over as arrays, not as written")
    parser.add_argument("--one", metavar="EXPRESSION", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.sample, options.arrays)))
        return
    print("seconds; ratio = LPs / (schedule + verify), in this run; T_B = (N-1)/N (marked =) is optimal; ~ scaled up")
    print(HEAD)
    for expression in options.only or LARGE:
        count = LARGE.get(expression) if options.sample is None else options.sample
        chosen = [] if count is None else ["--sample", str(count)]
        chosen += ["--arrays"] if options.arrays else []
        command = [sys.executable, __file__, "--one", expression, *chosen]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        print(line(json.loads(done.stdout)), flush=True)
    if options.only:
        return
    print()
    for text in commands("torus(100, 100)"):
        print(text, flush=True)


if __name__ == "__main__":
    main()
