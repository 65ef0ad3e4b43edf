"""All-to-all between boxes: `two-tier` beside what others do, and the time of planning.

    python benchmarks/twotier.py [--boxes 8,64] [--size 64GiB]

Times are of a vector of ``--size`` for the rank that sends most, relative to the bound of the fabric: the largest sum
that a box sends or receives over its bandwidth. All schedules are verified. ``plan`` is the time in which rounds and
their slices are computed, ``columns`` that of all transfers.

Beside it: `flow` (LP (3), even data only), shifted direct sends (in step k every rank sends to the k-th next), a
hierarchical all-to-all (each box gathers for a rail, then the ranks of a rail exchange), and a ring exchange (all data
go round the ring of ranks).
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np

import collc
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.graph.boxes import boxes_of
from collc.ir.quantities import in_bytes
from collc.ir.schedule import Action, Schedule
from collc.ir.spec import Problem
from collc.ir.verify import verify_schedule
from collc.passes.schedule.step_times import time_per_byte
from collc.passes.synthesis.flow.scheduler import Flow
from collc.passes.synthesis.torus.box_routing import BoxRouter
from collc.passes.synthesis.two_tier.cluster import Cluster
from collc.passes.synthesis.two_tier.scheduler import TwoTier, _demand, plan

SHAPES = ("even", "random", "zipf 0.6", "zipf 0.9", "zipf 1.2")


def weights(shape: str, ranks: int) -> Array | None:
    """Return the data that each rank sends to each other."""
    rng = np.random.default_rng(7)
    if shape == "even":
        return None
    if shape == "random":
        return rng.integers(0, 1000, (ranks, ranks))
    place = rng.permutation(ranks * ranks) + 1.0
    found: Array = (10**7 / place ** float(shape.split()[1])).astype(np.int64).reshape(ranks, ranks)
    return found


def by_hops(problem: Problem, step: Array, shard: Array, src: Array, dst: Array) -> Schedule:
    """Return the schedule of whole shards that move from rank to rank."""
    boxes = boxes_of(problem.topology)
    assert boxes is not None
    router = BoxRouter(problem.topology, boxes=boxes)
    keep = np.flatnonzero(src != dst)
    keep = keep[np.argsort(step[keep], kind="stable")]
    keys = router.keys(src[keep], dst[keep], 0, 0)
    used = np.unique(keys)
    return Schedule(
        problem.topology, problem.collective, 1, step=step[keep],
        action=np.full(len(keep), Action.COPY, dtype=np.uint8), shard=shard[keep],
        lo=np.zeros(len(keep), dtype=np.uint8), hi=np.ones(len(keep), dtype=np.uint8),
        route=np.searchsorted(used, keys), routes=router.routes(used), scheduler="direct",
    )  # fmt: skip


def shifted(problem: Problem) -> Schedule:
    n = problem.topology.num_ranks
    source, target = (x.ravel() for x in np.indices((n, n)))
    return by_hops(problem, (target - source) % n, source * n + target, source, target)


def hierarchical(problem: Problem, size: int) -> Schedule:
    """Each rank gives the data for number g of every box to rank g of its own, then the ranks of number g exchange."""
    n = problem.topology.num_ranks
    source, target = (x.ravel() for x in np.indices((n, n)))
    middle = source // size * size + target % size
    shard = source * n + target
    across = 1 + (target // size - source // size) % (n // size)
    return by_hops(
        problem, np.concatenate([0 * shard, across]), np.concatenate([shard, shard]), np.concatenate([source, middle]),
        np.concatenate([middle, target]),
    )  # fmt: skip


def ring(problem: Problem) -> Schedule:
    """All data go round the ring of ranks."""
    n = problem.topology.num_ranks
    source, target = (x.ravel() for x in np.indices((n, n)))
    far = (target - source) % n
    row = np.repeat(np.arange(n * n), far)
    hop = np.arange(len(row)) - np.repeat(np.cumsum(far) - far, far)
    at = (source[row] + hop) % n
    return by_hops(problem, hop, source[row] * n + target[row], at, (at + 1) % n)


def row(boxes: int, shape: str, size: int) -> str:
    network = collc.topology(f"dgx_h100({boxes})")
    n = network.num_ranks
    matrix = weights(shape, n)
    listed = None if matrix is None else tuple(matrix.ravel().tolist())
    problem = Problem(network, Collective("alltoall", n, weights=listed, size=size))
    found = boxes_of(network)
    assert found is not None
    cluster, demand = Cluster.of(network, found), _demand(problem)
    begun = time.perf_counter()
    plan(cluster, demand, True, 64)
    planned = time.perf_counter()
    schedule = TwoTier().run(problem)
    done = time.perf_counter()
    bound = cluster.fabric_time(demand) / int(demand.sum(axis=1).max())

    def ratio(one: Schedule | None) -> str:
        if one is None:
            return f"{'-':>9}"
        assert verify_schedule(one).ok
        return f"{float(time_per_byte(one) / bound):9.4f}"

    others: list[Schedule | None] = [
        Flow().run(problem) if shape == "even" else None, shifted(problem), hierarchical(problem, 8),
        ring(problem) if n <= 128 else None,
    ]  # fmt: skip
    fabric = carried_by_fabric(schedule, cluster) / bound
    return (
        f"{n:5} {shape:9} {planned - begun:6.3f} {done - planned:8.2f} {len(schedule):8} {schedule.num_steps:5} "
        f"{schedule.parts:6} {float(fabric):8.4f} {ratio(schedule)} {' '.join(map(ratio, others))}"
    )


def carried_by_fabric(schedule: Schedule, cluster: Cluster) -> Fraction:
    """Return the time per byte of the fabric's links alone."""
    crossing = np.flatnonzero(cluster.box_of[schedule.src] != cluster.box_of[schedule.dst])
    return time_per_byte(schedule.rows(crossing))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", default="8,64")
    parser.add_argument("--size", default="64GiB")
    options = parser.parse_args()
    print(
        f"{'GPUs':>5} {'data':9} {'plan s':>6} {'columns':>8} {'rows':>8} steps  parts   fabric  two-tier      flow   "
        "shifted two-step      ring"
    )
    for boxes in map(int, options.boxes.split(",")):
        for shape in SHAPES:
            print(row(boxes, shape, in_bytes(options.size)), flush=True)


if __name__ == "__main__":
    main()
