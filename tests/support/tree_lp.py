"""The most bandwidth of an allreduce by trees, as one linear program without cuts: flows to every rank, both halves."""

from __future__ import annotations

import highspy

from collc.ir.topology import Topology

__all__ = ["allreduce_by_trees"]


def allreduce_by_trees(net: Topology) -> float:
    """Return the largest sum of roots' bandwidths, in the topology's unit.

    Columns are every rank's roots, every link's outward and inward parts, and for each half and each rank a flow from
    the roots to it (inward: on links turned round). Switches let out as much of each half as they get.
    """
    n, ends = net.num_ranks, list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    links = [link for link, (a, b) in enumerate(ends) if a != b]
    unit = max(net.bandwidth(link) for link in links)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    columns = 0

    def column(cost: float = 0.0) -> int:
        nonlocal columns
        solver.addCol(cost, 0, highspy.kHighsInf, 0, [], [])
        columns += 1
        return columns - 1

    def row(low: float, high: float, entries: dict[int, float]) -> None:
        solver.addRow(low, high, len(entries), list(entries), list(entries.values()))

    roots = [column(-1.0) for _ in range(n)]
    part = {(half, link): column() for half in (0, 1) for link in links}
    for link in links:
        row(-highspy.kHighsInf, float(net.bandwidth(link) / unit), {part[0, link]: 1.0, part[1, link]: 1.0})
    for half in (0, 1):
        arcs = {link: ends[link] if half == 0 else ends[link][::-1] for link in links}
        for switch in range(n, net.num_nodes):
            row(0, 0, {part[half, link]: (b == switch) - (a == switch) for link, (a, b) in arcs.items()})
        for sink in range(n):
            flow = {link: column() for link in links}
            for link in links:
                row(-highspy.kHighsInf, 0, {flow[link]: 1.0, part[half, link]: -1.0})
            for node in range(net.num_nodes):
                if node != sink:
                    entries = {flow[link]: float((a == node) - (b == node)) for link, (a, b) in arcs.items()}
                    row(0, 0, entries | ({roots[node]: -1.0} if node < n else {}))
    solver.run()
    return -solver.getObjectiveValue() * float(unit)
