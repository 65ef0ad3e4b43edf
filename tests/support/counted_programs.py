"""Programs of collectives with a count for each shard."""

from __future__ import annotations

import attrs
from built_programs import direct, ring

import collc
from collc.ir.collective import ROOTED, UNEVEN, Collective
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.passes.lowering.lower import Lower
from collc.passes.program.coalesce import Coalesce

__all__ = ["around", "counted", "directly", "library_of_counts", "relayed", "weighted"]


def weighted(kind: str, ranks: int, root: int = 1) -> Collective:
    """Return a collective whose shards have weights 1, 2, 0, 1, 2, 0, .."""
    plain = Collective(kind, ranks, root % ranks if kind in ROOTED else None)
    return attrs.evolve(plain, weights=tuple((k + 1) % 3 for k in range(plain.num_shards)))


def counted(program: Program) -> Program:
    """Return the program of a collective of equal shards as one of shards with weights."""
    c = program.collective
    return attrs.evolve(program, collective=weighted(c.kind, c.num_ranks, c.root or 0), name=UNEVEN[c.kind])


def relayed(kind: str, ranks: int, pieces: int = 1, root: int = 1) -> Program:
    """Return a program that sends every piece of every shard around a ring, link by link."""
    return attrs.evolve(around(weighted(kind, ranks, root), pieces), name=UNEVEN[kind])


def around(collective: Collective, pieces: int = 1) -> Program:
    """Return a program of a collective that copies: every piece of every shard goes around a ring, link by link."""
    ranks, topology = collective.num_ranks, collc.topology(f"uniring({collective.num_ranks})")
    rows = []
    for shard, rank in enumerate(collective.holders.tolist()):
        targets = [t for t in range(ranks) if collective.wants(t, shard) and t != rank]
        far = max(((t - rank) % ranks for t in targets), default=0)
        rows += [(k + p, shard, (rank + k) % ranks, p) for k in range(far) for p in range(pieces)]
    rows.sort()
    link = {int(topology.src[i]): i for i in range(topology.num_links)}
    step, shard = [k for k, *_ in rows], [s for _, s, *_ in rows]
    schedule = Schedule(
        topology, collective, pieces, step=step, action=[0] * len(rows), shard=shard,
        lo=[p for *_, p in rows], hi=[p + 1 for *_, p in rows], route=[link[r] for _, _, r, _ in rows], discrete=True,
    )  # fmt: skip
    return Coalesce().run(Lower().run(schedule))


def directly(kind: str, ranks: int, pieces: int = 1, root: int = 1) -> Program:
    """Return a program in which every shard goes straight to the ranks that need it."""
    return counted(direct(kind, ranks, pieces, root % ranks))


def library_of_counts(ranks: int, relays: bool, pieces: int) -> dict[str, Program]:
    """Return a program for each collective with counts, by its function's name in `mpi_c_counts.c`."""
    make = relayed if relays else directly
    names = {"all": "allgather", "swap": "alltoall", "heap": "gather", "deal": "scatter"}
    found = {name: make(kind, ranks, pieces) for name, kind in names.items()}
    return {
        **found,
        "pieces": counted(ring("reduce-scatter", ranks, pieces) if relays else direct("reduce-scatter", ranks, pieces)),
    }
