"""Graph families against the tables of the direct-connect paper, exactly.

    python benchmarks/families.py [--most N]

Prints Table 8 (distance-regular graphs of degree 4) with what breadth-first schedules on our graphs take; the twisted
tori up to N ranks (10,000 unless given) that are bandwidth-optimal, which the paper verified by computation too; and
the double binary tree of Table 4 by its number of pieces, beside the paper's 1434 us.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import count

import numpy as np

import collc
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost, predict
from collc.ir.graph.regularity import intersection_array
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.passes.synthesis.trees.double_binary_tree import DoubleBinaryTree

#: name -> (ranks, T_L) of Table 8
TABLE_8 = {
    "octahedron": (6, 2), "paley9": (9, 2), "k55-minus-matching": (10, 3), "heawood-distance-3": (14, 3),
    "petersen-line": (15, 3), "4-cube": (16, 4), "heawood-line": (21, 3), "pg(2,3)": (26, 3),
    "ag(2,4)-minus-class": (32, 4), "odd4": (35, 3), "tutte8-line": (45, 4), "doubled-odd4": (70, 7),
    "gq(3,3)": (80, 4), "tutte12-line": (189, 6), "gh(3,3)": (728, 6),
}  # fmt: skip


def distance_regular() -> None:
    print("Table 8             paper N, T_L   ours N, T_L, T_B       seconds  intersection array")
    for name, (ranks, steps) in TABLE_8.items():
        start = time.perf_counter()
        net = collc.topology(f'distance_regular("{name}")')
        found = cost(BFB().run(Problem(net, Collective("allgather", net.num_ranks))))
        seconds = time.perf_counter() - start
        array = intersection_array(net)
        assert array is not None
        shown = "; ".join(" ".join(map(str, side)) for side in array)
        ours = f"{net.num_ranks:3}, {found.T_L}, {found.T_B!s:>7}"
        print(f"{name:20} {ranks:3}, {steps}         {ours}       {seconds:6.2f}  {{{shown}}}")


def hops_to(net: Topology, rank: int) -> Array:
    """Return the hops from every rank to one."""
    hops = np.full(net.num_ranks, -1)
    hops[rank] = 0
    for step in count(1):
        new = net.src[(hops[net.dst] == step - 1)]
        new = new[hops[new] < 0]
        if not len(new):
            return hops
        hops[new] = step
    return hops


def one_rank(net: Topology, rank: int = 0) -> tuple[int, Fraction]:
    """Return T_L and T_B of the best breadth-first allgather on a network that looks alike from every rank.

    Theorem 19 as a formula: a step takes the most shards per link, over all sets of links, that have no other way in.
    """
    into = np.flatnonzero(net.dst == rank)
    here = hops_to(net, rank)
    there = np.stack([hops_to(net, int(net.src[link])) for link in into])
    masks = ((there + 1 == here) << np.arange(len(into))[:, None]).sum(axis=0)
    total = Fraction(0)
    for step in range(1, int(here.max()) + 1):
        counts = np.bincount(masks[here == step], minlength=1 << len(into))
        inside = counts.copy()
        for bit in range(len(into)):  # sums over subsets
            halves = inside.reshape(-1, 2, 1 << bit)
            halves[:, 1] += halves[:, 0]
        total += max(Fraction(int(inside[s]), s.bit_count()) for s in range(1, 1 << len(into)))
    return int(here.max()), total * len(into) / net.num_ranks


def twisted(most: int) -> Iterator[str]:
    for shape in ((2, 1), (2, 1, 1), (2, 2, 1)):
        for k in count(2):
            if np.prod(shape) * k ** len(shape) > most:
                break
            yield f"twisted_torus({', '.join(str(k * side) for side in shape)})"


def twisted_tori(most: int) -> None:
    tried, short = 0, []
    for expression in twisted(most):
        net = collc.topology(expression)
        steps, bandwidth = one_rank(net)
        tried += 1
        if bandwidth != Fraction(net.num_ranks - 1, net.num_ranks):
            short.append(f"{expression}: T_L {steps}, T_B {bandwidth}")
    print(f"\ntwisted tori of at most {most} ranks: {tried} tried, {tried - len(short)} bandwidth-optimal")
    print("".join(f"  not: {line}\n" for line in short), end="")


def double_binary_tree() -> None:
    print("\ndouble binary tree, N = 1024, four links of 25 Gbps, 10 us a step, allreduce of 1 MiB; paper: 1434 us")
    net = collc.topology("double_binary_tree(1024) with { bandwidth: 25 Gbps, latency: 10 us }")
    problem = Problem(net, Collective("allreduce", 1024, size=1 << 20))
    print("pieces      one port   all links   (microseconds)")
    for pieces in (1, 4, 8, 16, 32, 64, None):
        times = []
        for one_port in (True, False):
            (point,) = predict(cost(DoubleBinaryTree(pieces, one_port).run(problem)), [1 << 20])
            times.append(point.time * 1e6)
        print(f"{pieces or 'best':>6}   {times[0]:11.1f} {times[1]:11.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000, help="ranks of the largest twisted torus")
    options = parser.parse_args()
    distance_regular()
    twisted_tori(options.most)
    double_binary_tree()


if __name__ == "__main__":
    main()
