"""The trade of steps for bandwidth on small networks: every front that `exact` proves, as SCCL's sweep does.

    python benchmarks/pareto.py [TOPOLOGY ..] [--collective allgather] [--chunks P] [--steps S]

For each topology (expressions of the language) the points from the fewest steps on: steps, rounds of one chunk a link,
T_B in M/B, what proves it, beside what breadth first gives. All schedules are verified.
"""

from __future__ import annotations

import argparse
import time

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.exact.scheduler import pareto

TOPOLOGIES = (
    "torus(3, 2)", "hypercube(3)", "torus(3, 3)", "circulant(15, {1, 4, 5})", "diamond()", "modified_debruijn(2, 3)",
    "generalized_kautz(2, 7)", "double_binary_tree(6)",
)  # fmt: skip


def front(expression: str, kind: str, chunks: int | None, steps: int | None) -> None:
    """Print the front of one topology."""
    topology = collc.topology(expression)
    problem = Problem(topology, Collective(kind, topology.num_ranks))
    eager = cost(BFB(relax=False).run(problem))
    print(f"{expression}: {kind}, breadth first ({eager.T_L}, {eager.T_B or eager.time_per_byte})")
    start = time.perf_counter()
    for point in pareto(problem, chunks, steps):
        found = cost(point.schedule)
        assert verify_schedule(point.schedule).ok
        proof = point.reason if point.proved else f"not proved: at least {point.least} rounds, {point.reason}"
        print(f"  {found.T_L:2} steps  {point.rounds:3} rounds of 1/{point.chunks}", end="")
        print(f"  {found.T_B or found.time_per_byte!s:>8}  {proof}")
    print(f"  {time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topology", nargs="*", default=TOPOLOGIES)
    parser.add_argument("--collective", default="allgather")
    parser.add_argument("--chunks", type=int)
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    for expression in options.topology:
        try:
            front(expression, options.collective, options.chunks, options.steps)
        except CollcError as mistake:
            print(f"{expression}: {mistake.diagnostics[0].message}")


if __name__ == "__main__":
    main()
