"""Traffic for tests of the simulator: rings, buckets, Swing and recursive doubling from their definitions."""

from __future__ import annotations

from fractions import Fraction
from math import log2, prod

import numpy as np

from collc.backends.simulator import Traffic
from collc.frontends import coll
from collc.ir.collective import Collective

NS = Fraction(1, 10**9)


def sent(topology, rows, whole, *, times=(), kind="allreduce", routes=None):
    """Return traffic of rows (step, src, dst, amount) or, with routes, (step, src, dst, amount, route)."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    steps = max([row[0] for row in rows], default=-1) + 1
    collective = Collective(kind, topology.num_ranks)
    route = columns[4] if routes is not None else ()
    return Traffic(topology, collective, whole, *columns[:4], list(times) or [1] * steps, route, routes)


def loads(simulation, step=0):
    """Return link -> exact share of the vector that it carries in a step."""
    numbers, whole = simulation.loads(step)
    return {link: Fraction(int(number), whole) for link, number in enumerate(numbers) if number}


def ring(ranks, topology=None):
    """Traffic of the ring allreduce, both ways round, each step once with how often it is done."""
    rows = [(0, r, (r + way) % ranks, 1) for way in (1, -1) for r in range(ranks)]
    return sent(topology or coll.topology(f"biring({ranks})"), rows, 2 * ranks, times=[2 * (ranks - 1)])


def bucket(shape):
    """Traffic of the synchronized bucket allreduce: 2D chunks, each with its first dimension and direction."""
    D, p = len(shape), prod(shape)
    rows, times, step = [], [], 0
    whole = 2 * D * p
    for turn in [*range(D), *reversed(range(D))]:
        most = max(shape)
        for s in range(most - 1):
            for first in range(D):
                axis = (first + turn) % D
                if s >= shape[axis] - 1:
                    continue
                left = prod(shape[(first + i) % D] for i in range(turn + 1))
                for way in (1, -1):
                    for rank in range(p):
                        at = list(map(int, np.unravel_index(rank, shape)))
                        at[axis] = (at[axis] + way) % shape[axis]
                        rows.append((step, rank, int(np.ravel_multi_index(at, shape)), p // left))
            times.append(1)
            step += 1
    return sent(coll.topology(f"torus({', '.join(map(str, shape))})"), rows, whole)


def rho(k):
    return (1 - (-2) ** (k + 1)) // 3


def turns(shape, start):
    """Return (dimension, substep) in the order in which a chunk takes them: dimensions in turn, finished ones not."""
    left, found, axis = [int(log2(size)) for size in shape], [], start
    done = [0] * len(shape)
    while done != left:
        if done[axis] < left[axis]:
            found.append((axis, done[axis]))
            done[axis] += 1
        axis = (axis + 1) % len(shape)
    return found


def exchanges(shape, offset, chunks, latency=False, topology=None):
    """Traffic of an allreduce by exchanges on a torus whose sizes are powers of two.

    ``chunks`` are (first dimension, mirrored): equal parts of the vector; ``offset(k, at)`` is how far the peer is.
    """
    p, steps = prod(shape), int(log2(prod(shape)))
    order = list(range(steps)) + ([] if latency else list(reversed(range(steps))))
    columns = [[], [], [], []]
    rank = np.arange(p)
    for step, s in enumerate(order):
        for start, mirrored in chunks:
            axis, k = turns(shape, start)[s]
            stride, size = prod(shape[axis + 1 :]), shape[axis]
            at = rank // stride % size
            way = offset(k, at)
            peer = rank + ((at + (-way if mirrored else way)) % size - at) * stride
            amount = p if latency else p >> (s + 1)
            for column, values in zip(columns, (step, rank, peer, amount), strict=True):
                column.append(np.broadcast_to(values, p))
    topology = topology or coll.topology(f"torus({', '.join(map(str, shape))})")
    return Traffic(
        topology, Collective("allreduce", p), len(chunks) * p, *map(np.concatenate, columns), times=[1] * len(order)
    )


def swing(shape, latency=False, topology=None):
    chunks = [(axis, mirrored) for mirrored in (False, True) for axis in range(len(shape))]
    return exchanges(shape, lambda k, at: np.where(at % 2 == 0, rho(k), -rho(k)), chunks, latency, topology)


def doubling(shape, latency=False):
    return exchanges(shape, lambda k, at: np.where(at >> k & 1, -(1 << k), 1 << k), [(0, False)], latency)
