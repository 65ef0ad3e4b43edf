"""LP (1) of the direct-connect paper on HiGHS: the independent check of the exact BFB, and the benchmark's baseline."""

from __future__ import annotations

import highspy
import numpy as np

from collc.ir.topology import Topology


def least_load(masks: list[int], slots: int) -> float:
    """Return the optimum of LP (1) for jobs that may use the links of their masks: the load of the busiest link."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    load = model.addVariable(lb=0.0, obj=1.0)
    by_slot: list[list[highspy.highs_var]] = [[] for _ in range(slots)]
    for mask in masks:
        shares = []
        for slot in range(slots):
            if mask >> slot & 1:
                share = model.addVariable(lb=0.0, ub=1.0)
                by_slot[slot].append(share)
                shares.append(share)
        model.addConstr(sum(shares[1:], start=1.0 * shares[0]) == 1)
    for shares in by_slot:
        if shares:
            model.addConstr(sum(shares[1:], start=1.0 * shares[0]) <= load)
    model.run()
    return model.getObjectiveValue()


def jobs(topology: Topology, node: int, step: int) -> tuple[list[int], int]:
    """Return the masks of the shards that ``node`` receives at ``step`` (from 1), and its number of in-links."""
    start, links = topology.in_links
    inward = [k for k in links[start[node] : start[node + 1]].tolist() if topology.src[k] != node]
    hops = topology.distances
    masks = []
    for shard in np.flatnonzero(hops[:, node] == step).tolist():
        usable = [hops[shard, topology.src[link]] == step - 1 for link in inward]
        masks.append(sum(1 << i for i, ok in enumerate(usable) if ok))
    return masks, len(inward)


def step_loads(topology: Topology) -> list[float]:
    """Solve LP (1) for every node and step; return the busiest link's load of each step."""
    loads = []
    for step in range(1, (topology.diameter or 0) + 1):
        worst = 0.0
        for node in range(topology.num_ranks):
            masks, slots = jobs(topology, node, step)
            if masks:
                worst = max(worst, least_load(masks, slots))
        loads.append(worst)
    return loads
