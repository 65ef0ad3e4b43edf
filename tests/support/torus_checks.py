"""Exhaustive checks of scatter plans, in columns: what executing every schedule would take far too long for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.frontends.coll.families.cayley import torus
from collc.ir.collective import Collective
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.torus.base import TorusPass
from collc.passes.synthesis.torus.chunks import ScatteredPart

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def problem(net: Topology, kind: str = "allreduce", root: int | None = None, **more: object) -> Problem:
    return Problem(net, Collective(kind, net.num_ranks, root=root, **more))  # type: ignore[arg-type]


def scatter_rows(part: ScatteredPart) -> Rows:
    """Return (step, sender, receiver, block) of all a chunk's sends."""
    pieces = [(np.full(len(src), step), src, dst, shard) for step, (src, dst, shard) in part.sends()]
    step, src, dst, shard = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return step, src, dst, shard


def wrong(ranks: int, rows: Rows) -> str | None:
    """Return what keeps these sends from being a reduce-scatter in which every block moves once, or nothing.

    Every rank must send every block but its own exactly once, and whoever receives a block must be its owner or send it
    later: then a block's sends are a tree that leads to its owner, with every rank's contribution in it once. The same
    rows backwards are an allgather: every rank has its block from the one it would send it to.
    """
    step, src, dst, shard = rows
    count = np.zeros((ranks, ranks), dtype=np.int64)
    np.add.at(count, (src, shard), 1)
    if (count != 1 - np.eye(ranks, dtype=np.int64)).any():
        rank, shard = np.argwhere(count != 1 - np.eye(ranks, dtype=np.int64))[0]
        return f"rank {rank} sends block {shard} {count[rank, shard]} times"
    when = np.full((ranks, ranks), step.max() + 1)
    when[src, shard] = step
    late = when[dst, shard] <= step
    return f"rank {dst[late][0]} receives block {shard[late][0]} after sending it" if late.any() else None


def all_parts(algorithm: TorusPass, shape: tuple[int, ...]) -> list[ScatteredPart]:
    return list(algorithm.plan(problem(torus(*shape))).parts)  # type: ignore[arg-type]


def congestion(algorithm: TorusPass, shape: tuple[int, ...], kind: str = "allreduce") -> Fraction:
    """Return Xi of a torus: D times the sum over all steps of the largest link load, in vectors."""
    dims = sum(size > 1 for size in shape)
    return algorithm.messages(problem(torus(*shape), kind)).time_per_byte * dims


def shapes() -> list[tuple[int, ...]]:
    """Return every torus that notes on Swing ask for: all small ones, and a choice of others."""
    found: list[tuple[int, ...]] = [(p,) for p in range(2, 65)]
    found += [(a, b) for a in range(1, 11) for b in range(1, 11)]
    found += [(a, b, c) for a in range(1, 6) for b in range(1, 6) for c in range(1, 6)]
    found += [(2, 4, 8), (12, 10), (14, 6), (18, 2), (3, 2, 2, 3), (4, 4, 4, 2), (1, 5, 4), (15, 7), (2, 2, 2, 2)]
    return [shape for shape in found if np.prod(shape) > 1]
