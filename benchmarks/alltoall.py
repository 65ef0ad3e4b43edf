"""All-to-all, gather and scatter on networks with switches: time beside the bound, and the time of synthesis.

    python benchmarks/alltoall.py [--large] [--collectives alltoall,gather,scatter]

Every schedule is verified. ``time/bound`` of an all-to-all is against the value of LP (3), of the others against their
cut; 1 is met. ``--large`` adds 256 and 512 GPUs. ``flow`` alone is timed, and ``verify`` apart from it.
"""

from __future__ import annotations

import argparse
import time

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.verify import verify_schedule
from collc.passes.synthesis.flow.rate import alltoall_bound
from collc.passes.synthesis.flow.scheduler import Flow

NETWORKS = (
    "dgx_a100(1)", "dgx_a100(2)", "dgx_a100(4)", "dgx_a100(16)", "dgx_a100(4, 2)", "dgx_h100(1)", "dgx_h100(8, 8)",
    "mi250(2)", "mi250(4)", "mi300x(2)", "gb200_nvl72(1)", "fat_tree(4)", "fat_tree(6)", "leaf_spine(4, 8, 4)",
    "leaf_spine(4, 8, 4, 3)", "dragonfly(2, 4, 2)", "dragonfly(4, 4, 2)", "hammingmesh(2, 2, 4, 4)",
    "clustered(torus(4, 4), 4, 1/4)", "without(dgx_a100(4), {3, 9, 20})", "degraded(dgx_a100(4), {0 <-> nv[0]}, 1/2)",
)  # fmt: skip
LARGE = ("dgx_h100(32)", "dgx_h100(64)", "mi250(16)", "gb200_nvl72(4)")


def row(expression: str, kind: str) -> str:
    network = collc.topology(expression)
    root = None if kind == "alltoall" else network.num_ranks // 2
    problem = Problem(network, Collective(kind, network.num_ranks, root=root))
    begun = time.perf_counter()
    schedule = Flow().run(problem)
    scheduled = time.perf_counter()
    report = verify_schedule(schedule)
    verified = time.perf_counter()
    assert report.ok, report
    found = cost(schedule)
    bound = alltoall_bound(network) if kind == "alltoall" else None
    least = found.bound.value if bound is None else max(bound.value, found.bound.value)
    ratio = found.time_per_byte / least
    name = found.bound.name if bound is None or found.bound.value >= bound.value else bound.name
    shown = "1" if ratio == 1 else f"{float(ratio):.6f}"
    return (
        f"{expression:44} {kind:9} {network.num_ranks:5} {len(schedule):8} {schedule.parts:5} {shown:>9} "
        f"{scheduled - begun:7.2f} {verified - scheduled:7.2f}  {name[:40]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--collectives", default="alltoall,gather,scatter")
    options = parser.parse_args()
    print(f"{'network':44} {'kind':9} ranks transfers parts time/bound  flow s verify s  bound by")
    for kind in options.collectives.split(","):
        for expression in (*NETWORKS, *(LARGE if options.large else ())):
            print(row(expression, kind), flush=True)


if __name__ == "__main__":
    main()
