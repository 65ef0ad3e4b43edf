"""LPs (1) and (3) of the direct-connect paper on HiGHS: the independent checks of the exact BFB, of which (1) is the
benchmark's baseline, and of the all-to-all rate."""

from __future__ import annotations

import highspy
import numpy as np

from collc.ir.topology import Topology


def least_load(masks: list[int], slots: int) -> float:
    """Return the optimum of LP (1) for jobs that may use the links of their masks: the load of the busiest link.

    The model is handed over as arrays, column by column, so that its time is HiGHS's own: column 0 is the load U, the
    others a share for each job and link of its mask; rows are the links (sum - U <= 0), then the jobs (sum = 1).
    """
    shares = [(job, slot) for job, mask in enumerate(masks) for slot in range(slots) if mask >> slot & 1]
    columns, rows = 1 + len(shares), slots + len(masks)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.r_[1.0, np.zeros(len(shares))]
    lp.col_lower_ = np.zeros(columns)
    lp.col_upper_ = np.r_[highspy.kHighsInf, np.ones(len(shares))]
    lp.row_lower_ = np.r_[np.full(slots, -highspy.kHighsInf), np.ones(len(masks))]
    lp.row_upper_ = np.r_[np.zeros(slots), np.ones(len(masks))]
    index = [*range(slots), *(row for job, slot in shares for row in (slot, slots + job))]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.r_[0, slots + 2 * np.arange(columns)]
    lp.a_matrix_.index_ = np.array(index)
    lp.a_matrix_.value_ = np.r_[-np.ones(slots), np.ones(2 * len(shares))]
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.passModel(lp)
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


def lp3(topology: Topology, demand: np.ndarray | None = None) -> float:
    """Solve LP (3) as it stands: a flow from every rank, one variable for each source and link, and f.

    ``demand``: what rank u needs of rank s at [s, u]; by default one unit.
    """
    n, links = topology.num_ranks, topology.num_links
    loops = topology.src == topology.dst
    least = min(topology.classes[c].bandwidth for c in np.unique(topology.link_class[~loops]))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.addCol(-1.0, 0, highspy.kHighsInf, 0, [], [])
    for _ in range(n * links):
        solver.addCol(0.0, 0, highspy.kHighsInf, 0, [], [])
    for link in range(links):
        columns = [1 + s * links + link for s in range(n)]
        solver.addRow(0, float(topology.bandwidth(link) / least), n, columns, [1.0] * n)
    for s in range(n):
        for u in range(topology.num_nodes):
            if u == s:
                continue
            into = [1 + s * links + k for k in np.flatnonzero((topology.dst == u) & ~loops)]
            out = [1 + s * links + k for k in np.flatnonzero((topology.src == u) & ~loops)]
            wanted = [0] if u < n else []
            each = 1.0 if demand is None or u >= n else float(demand[s, u])
            values = [1.0] * len(into) + [-1.0] * len(out) + [-each] * len(wanted)
            solver.addRow(0, highspy.kHighsInf, len(values), [*into, *out, *wanted], values)
    solver.run()
    return -float(solver.getObjectiveValue())
