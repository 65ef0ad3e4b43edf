"""BFB against the paper's own formulation: one linear program (LP 1) per node and step, on HiGHS.

    python benchmarks/bfb.py [--full]

Prints, for the topologies of the direct-connect paper's Table 6: seconds to generate the whole allgather schedule,
to verify
it, and to solve the paper's LPs in the same run, with their ratio; the paper's figures stand beside them. LPs are
solved
for every node and step up to 256 nodes (above, the time of a sample of nodes is scaled up and marked with ~; --full
solves them all). The schedule's T_B is compared with the bound exactly.
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from lp import jobs, least_load

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB

#: expression -> (seconds that Table 6 gives for BFB, for SCCL with one chunk)
TABLE_6 = {
    "hypercube(2)": ("0.01", "0.59"),
    "hypercube(3)": ("0.01", "0.86"),
    "hypercube(4)": ("0.01", "21.4"),
    "hypercube(5)": ("0.03", ">1e4"),
    "hypercube(6)": ("0.17", ">1e4"),
    "hypercube(8)": ("", ""),
    "hypercube(10)": ("52.7", ">1e4"),
    "torus(2, 2)": ("0.01", "0.61"),
    "torus(3, 3)": ("0.01", "1.00"),
    "torus(4, 4)": ("0.01", "17.5"),
    "torus(5, 5)": ("0.01", "3286"),
    "torus(6, 6)": ("0.03", ">1e4"),
    "torus(16, 16)": ("", ""),
    "torus(50, 50)": ("61.1", ">1e4"),
    "generalized_kautz(4, 256)": ("", ""),
}
_EVERY_NODE = 256
_SAMPLE = 4


def solve_by_lp(topology: Topology, nodes: range) -> float:
    """Solve LP (1) for these nodes and all steps; return the seconds it took."""
    _ = topology.distances  # both sides are given the distances
    start = time.perf_counter()
    for node in nodes:
        for step in range(1, (topology.diameter or 0) + 1):
            masks, slots = jobs(topology, node, step)
            if masks:
                least_load(masks, slots)
    return time.perf_counter() - start


def row(expression: str, full: bool) -> str:
    """Measure one topology; return a line of the table."""
    topology = collc.topology(expression)
    n = topology.num_ranks
    start = time.perf_counter()
    schedule = BFB().run(Problem(topology, Collective("allgather", n)))
    solving = time.perf_counter() - start
    start = time.perf_counter()
    right = verify_schedule(schedule).ok
    verified = time.perf_counter() - start
    if not right:
        raise SystemExit(f"{expression}: the schedule is wrong")
    whole = full or n <= _EVERY_NODE
    sample = range(n) if whole else range(0, n, n // _SAMPLE)
    lp = solve_by_lp(topology, sample) * n / len(sample)
    found = cost(schedule)
    optimal = "=" if found.T_B == Fraction(n - 1, n) else ">"
    paper, sccl = TABLE_6[expression]
    return (
        f"{expression:27}{n:6}{len(schedule):10,}{found.T_L:5}{found.T_B!s:>12} {optimal}{solving:9.3f}{verified:9.3f}"
        f"{solving + verified:9.3f}{'' if whole else '~':>3}{lp:9.2f}{lp / solving:9.1f}{paper:>9}{sccl:>9}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="solve every linear program of the large topologies too")
    options = parser.parse_args()
    print("seconds; ratio = time of the paper's LPs on HiGHS / time of BFB here, in this run; T_B = (N-1)/N is optimal")
    print(
        f"{'topology':27}{'N':>6}{'transfers':>10}{'T_L':>5}{'T_B':>12}  {'generate':>9}{'verify':>9}{'both':>9}"
        f"{'':3}{'LPs':>9}{'ratio':>9}{'paper':>9}{'SCCL':>9}"
    )
    for expression in TABLE_6:
        print(row(expression, options.full), flush=True)


if __name__ == "__main__":
    main()
