"""Collectives whose shards differ in size: time per byte over the bound, beside plans and algorithms without weights.

    python benchmarks/uneven.py [--networks 'torus(4, 4);dgx_a100(2)'] [--collectives allgatherv,alltoallv]

Every number is a time per byte of M over the bound; 1 is met. ``planned`` is the schedule for these weights, by
`forest`, or `flow` for shards with one source and one target; ``bfb`` is breadth first for these weights. ``even`` is
what the schedule planned for equal shards takes with these counts. ``ring`` is the ring algorithm; ``direct`` sends
every shard at once over a shortest route to each rank that needs it. A bound of 0 leaves ``-``: no data move.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import attrs

import collc
from collc.ir.collective import ROOTED, UNEVEN, Collective
from collc.ir.costs.bounds import bound
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.levels import Scheduled
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes import PASSES
from collc.passes.synthesis.flow.uneven import uneven_bound
from collc.passes.synthesis.shortest import links_to, shortest_links

NETWORKS = ("torus(4, 4)", "hypercube(4)", "mesh(3, 4)", "dgx_a100(2)", "fat_tree(4)", "mi250(1)")
#: name -> the weight of the n-th of some shards
WEIGHTS: dict[str, Callable[[int, int], int]] = {
    "uniform": lambda n, shards: 1,
    "linear": lambda n, shards: n + 1,
    "zipf": lambda n, shards: 1000 // (n + 1),
    "one-has-all": lambda n, shards: int(n == shards // 2),
    "half-zero": lambda n, shards: n % 2,
}


def collective(kind: str, ranks: int, name: str) -> Collective:
    """Return a collective with the named weights: of an alltoallv, each source's row is shifted by its rank."""
    weight, root = WEIGHTS[name], 0 if kind in ROOTED else None
    if kind != "alltoall":
        return Collective(kind, ranks, root, weights=tuple(weight(v, ranks) for v in range(ranks)))
    if name == "one-has-all":
        return Collective(kind, ranks, weights=tuple(int(s == 1) for s in range(ranks) for _ in range(ranks)))
    table = [weight((s + t) % ranks, ranks) for s in range(ranks) for t in range(ranks)]
    return Collective(kind, ranks, weights=tuple(table))


def direct(net: Topology, what: Collective) -> Schedule:
    """Return one step in which every shard goes over a shortest route to each rank that needs it."""
    trees = [shortest_links(net, rank) for rank in range(net.num_ranks)]
    rows = [(shard, tuple(links_to(net, trees[a], a, b))) for shard, a, b in _pairs(what)]
    number = {links: k for k, links in enumerate(dict.fromkeys(links for _, links in rows))}
    return Schedule(
        net, what, 1, step=[0] * len(rows), action=[Action.REDUCE if what.reduces else Action.COPY] * len(rows),
        shard=[shard for shard, _ in rows], lo=[0] * len(rows), hi=[1] * len(rows),
        route=[number[links] for _, links in rows], routes=Routes.of(list(number)),
    )  # fmt: skip


def _pairs(what: Collective) -> Iterator[tuple[int, int, int]]:
    """Yield (shard, from, to) of every shard that moves."""
    ranks = range(what.num_ranks)
    for shard in range(what.num_shards):
        for a in (r for r in ranks if what.holds(r, shard)):
            yield from ((shard, a, b) for b in ranks if b != a and what.wants(b, shard))


def per_byte(level: Scheduled) -> Fraction:
    return cost(level).time_per_byte


def scheduled(scheduler: str, net: Topology, what: Collective) -> Scheduled | None:
    try:
        found: Scheduled = PASSES.load(scheduler)().run(Problem(net, what))
    except CollcError:
        return None
    return found


def planned_even(scheduler: str, net: Topology, what: Collective) -> Fraction:
    """Return what the schedule for equal shards takes with these counts."""
    even = scheduled(scheduler, net, attrs.evolve(what, weights=None))
    assert even is not None, "the same scheduler takes equal shards"
    even = even.unfold() if isinstance(even, SymmetricSchedule) else even
    return per_byte(attrs.evolve(even, collective=what))


def row(expression: str, kind: str, name: str) -> str:
    net = collc.topology(expression)
    what = collective(kind, net.num_ranks, name)
    scheduler = "forest" if kind in ("allgather", "reduce-scatter") else "flow"
    begun = time.perf_counter()
    level = scheduled(scheduler, net, what)
    seconds = time.perf_counter() - begun
    assert level is not None and verify(level).ok
    least = bound(net, what).value
    exact = uneven_bound(net, what) if kind == "alltoall" else None
    least = least if exact is None else max(least, exact.value)
    halves = scheduler == "forest"
    others = [scheduled(one, net, what) if halves else None for one in ("bfb", "ring")]
    found = [per_byte(level), *(None if one is None else per_byte(one) for one in others)]
    found[2:2] = [planned_even(scheduler, net, what)]
    cells = "".join(f"{_over(one, least):>9}" for one in (*found, per_byte(direct(net, what))))
    return f"{expression:14} {UNEVEN[kind]:15} {name:12} {net.num_ranks:5} {float(least):11.4g}{cells} {seconds:8.2f}"


def _over(value: Fraction | None, least: Fraction) -> str:
    if value is None or not least:
        return "-"
    return "1" if value == least else f"{float(value / least):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=";".join(NETWORKS))
    parser.add_argument("--collectives", default=",".join(UNEVEN.values()))
    options = parser.parse_args()
    chosen = options.collectives.split(",")
    columns = "".join(f"{one:>9}" for one in ("planned", "bfb", "even", "ring", "direct"))
    print(f"{'network':14} {'collective':15} {'weights':12} ranks {'bound':>11}{columns}   plan s")
    for expression in options.networks.split(";"):
        for kind in (kind for kind, name in UNEVEN.items() if name in chosen):
            for name in WEIGHTS:
                print(row(expression.strip(), kind, name), flush=True)


if __name__ == "__main__":
    main()
