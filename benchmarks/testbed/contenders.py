"""What is measured on a network: breadth first, a plain ring over its links, and what MPICH's own allreduce sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

import collc
from collc.backends.simulator import Traffic, simulate
from collc.ir.collective import Collective
from collc.ir.costs.cost import Cost
from collc.ir.program import Program
from collc.ir.schedule import Routes
from collc.ir.topology import Topology
from collc.testbed.plan import Plan

__all__ = ["ALGORITHMS", "breadth_first", "builtin_time", "plain_ring"]

Message = tuple[int, int, int, Fraction]
"""(step, from, to, share of M)."""


def breadth_first(expression: str) -> tuple[Program, Cost]:
    """Return the program and the cost of the breadth-first allreduce of a topology."""
    return _compiled(f"topology t = {expression}; collective c = allreduce on t; schedule c using bfb;")


def plain_ring(topology: Topology) -> tuple[Program, Cost] | None:
    """Return the ring algorithm, one message a rank at a time, along a cycle of links through all ranks; None: no such.

    On a network that is nothing but that cycle breadth first is the ring algorithm.
    """
    cycle = _cycle(topology)
    if cycle is None:
        return None
    links = " ".join(f"link g[{a}] -> g[{b}];" for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    return _compiled(
        f"topology t {{ rank g[{len(cycle)}]; {links} }} collective c = allreduce on t; schedule c using bfb;"
    )


def _compiled(text: str) -> tuple[Program, Cost]:
    result = collc.compile_source(text, target="mpi-c")
    return result.program, result.cost


def _cycle(topology: Topology, most: int = 200_000) -> list[int] | None:
    """Return a cycle through all ranks by depth-first search of at most ``most`` ranks, the least numbers first."""
    near: list[list[int]] = [[] for _ in range(topology.num_nodes)]
    for a, b in sorted(set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))):
        near[a].append(b)
    n, path, tried = topology.num_ranks, [0], [iter(near[0])]
    while path and (most := most - 1):
        if len(path) == n and 0 in near[path[-1]]:
            return path
        step = next((b for b in tried[-1] if b < n and b not in path), None)
        if step is None:
            path.pop()
            tried.pop()
        else:
            path.append(step)
            tried.append(iter(near[step]))
    return None


# ---- MPICH's own


def builtin_time(plan: Plan, size: int, algorithm: str) -> Fraction:
    """Return the seconds of an allreduce of this number of bytes, by an algorithm of MPICH, on the wires of a plan.

    Its messages go the testbed's way, one after the other where they share a wire, and every step waits for its
    slowest message: the flow model of ``collc simulate``.
    """
    rows = sorted(ALGORITHMS[algorithm](plan.num_ranks))
    paths = [plan.links(src, dst) for _, src, dst, _ in rows]
    whole = int(np.lcm.reduce([share.denominator for *_, share in rows]))
    steps = max(step for step, *_ in rows) + 1
    traffic = Traffic(
        plan.network, Collective("allreduce", plan.num_ranks), whole, step=[s for s, *_ in rows],
        src=[a for _, a, _, _ in rows], dst=[b for _, _, b, _ in rows],
        amount=[int(share * whole) for *_, share in rows], times=[1] * steps, route=range(len(rows)),
        routes=Routes.of(paths),
    )  # fmt: skip
    return simulate(traffic).time(size) - (0 if plan.delay else steps * Fraction(10, 10**6))


def _folded(n: int) -> tuple[int, list[int], list[Message], list[Message]]:
    """Return a power of two, the ranks that stay, and what the others send before and get after, in steps 0 and 1."""
    power = 1 << (n.bit_length() - 1)
    rest = n - power
    stay = [2 * k + 1 for k in range(rest)] + list(range(2 * rest, n))
    before = [(0, 2 * k, 2 * k + 1, Fraction(1)) for k in range(rest)]
    return power, stay, before, [(1, b, a, share) for _, a, b, share in before]


def _rabenseifner(n: int) -> Iterator[Message]:
    """Halve what is left with partners 1, 2, 4, .. away, then gather in the opposite order."""
    power, stay, before, after = _folded(n)
    yield from before
    step = bool(before)
    masks = [1 << k for k in range(power.bit_length() - 1)]
    shares = {mask: Fraction(1, 2 * mask) for mask in masks}
    for mask in [*masks, *reversed(masks)]:
        yield from ((int(step), stay[k], stay[k ^ mask], shares[mask]) for k in range(power))
        step += 1
    yield from ((int(step), a, b, share) for _, a, b, share in after)


def _recursive_doubling(n: int) -> Iterator[Message]:
    """Exchange everything with partners 1, 2, 4, .. away."""
    power, stay, before, after = _folded(n)
    yield from before
    step = int(bool(before))
    for bit in range(power.bit_length() - 1):
        yield from ((step, stay[k], stay[k ^ 1 << bit], Fraction(1)) for k in range(power))
        step += 1
    yield from ((step, a, b, share) for _, a, b, share in after)


def _ring(n: int) -> Iterator[Message]:
    """Pass a share on to the next rank, whether there is a link or not."""
    for step in range(2 * (n - 1)):
        yield from ((step, r, (r + 1) % n, Fraction(1, n)) for r in range(n))


#: MPICH's name (MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM) -> its messages
ALGORITHMS = {
    "reduce_scatter_allgather": _rabenseifner,
    "recursive_doubling": _recursive_doubling,
    "ring": _ring,
}


def names(choice: Sequence[str]) -> dict[str, str]:
    """Return the expression of each topology by the short name it is asked for; others are expressions themselves."""
    return {name: SHORT.get(name, name) for name in choice}


SHORT = {
    "ring8": "biring(8)",
    "cube3": "hypercube(3)",
    "torus3x3": "torus(3, 3)",
    "torus3x3x2": "product(torus(3, 3), complete(2))",
}
