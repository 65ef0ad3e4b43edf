"""The messages of the algorithms that MPI libraries and UCC have built in, step by step, without their data.

Thakur, Rabenseifner and Gropp (2005) describe them, Bruck et al. (1997) the exchanges with shrinking numbers of steps.
Numbers of ranks that are not powers of two fold: of the first ranks, pairs act as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

import attrs
import numpy as np

from collc.backends.simulator import Traffic
from collc.ir.spec import Problem

__all__ = ["MODELS", "Exchange", "builtin_traffic"]

#: (from, to, share of M) of the messages of a step
Message: TypeAlias = tuple[int, int, Fraction]


@attrs.frozen
class Exchange:
    """The messages of a step; ``adds`` is whether receivers add what arrives."""

    messages: tuple[Message, ...]
    adds: bool = False


Model: TypeAlias = Callable[[int], Iterator[Exchange]]


def builtin_traffic(name: str, problem: Problem) -> Traffic:
    """Return the messages of an algorithm of :data:`MODELS`; the ranks of rooted ones are counted from the root."""
    ranks, root = problem.topology.num_ranks, problem.collective.root or 0
    steps = [one for one in MODELS[name](ranks) if one.messages]
    whole = int(np.lcm.reduce([share.denominator for step in steps for _, _, share in step.messages]))
    rows = [
        (number, (src + root) % ranks, (dst + root) % ranks, int(share * whole))
        for number, step in enumerate(steps) for src, dst, share in step.messages
    ]  # fmt: skip
    step, src, dst, amount = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    added = sum((_added(step) for step in steps if step.adds), Fraction(0))
    return Traffic(
        problem.topology, problem.collective, whole, step, src, dst, amount, np.ones(len(steps), dtype=np.int64),
        scheduler=name, reduced=added,
    )  # fmt: skip


def _added(step: Exchange) -> Fraction:
    """Return the most that one rank adds in a step, as a share of M."""
    found: dict[int, Fraction] = {}
    for _, dst, share in step.messages:
        found[dst] = found.get(dst, Fraction(0)) + share
    return max(found.values())


# ---- trees


def _fan_out(ranks: int) -> Iterator[Exchange]:
    """The root handles one message after the other, so each has a latency of its own."""
    yield from (Exchange(((0, one, Fraction(1)),)) for one in range(1, ranks))


def _fan_in(ranks: int) -> Iterator[Exchange]:
    yield from (Exchange(((one, 0, Fraction(1)),), adds=True) for one in range(1, ranks))


def _linear_allreduce(ranks: int) -> Iterator[Exchange]:
    yield from _fan_in(ranks)
    yield from _fan_out(ranks)


def _binomial_broadcast(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks):
        yield Exchange(tuple((one, one + far, Fraction(1)) for one in range(min(far, ranks - far))))


def _binomial_reduce(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks):
        senders = range(far, ranks, 2 * far)
        yield Exchange(tuple((one, one - far, Fraction(1)) for one in senders), adds=True)


def _binomial_scatter(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks)[::-1]:
        pairs = [(one, one + far) for one in range(0, ranks - far, 2 * far)]
        yield Exchange(tuple((one, to, Fraction(min(far, ranks - to), ranks)) for one, to in pairs))


def _scatter_ring(ranks: int) -> Iterator[Exchange]:
    yield from _binomial_scatter(ranks)
    yield from _ring(ranks)


def _scatter_doubling(ranks: int) -> Iterator[Exchange]:
    yield from _binomial_scatter(ranks)
    yield from _doubling_gather(ranks)


# ---- rings and exchanges of blocks


def _ring(ranks: int, adds: bool = False) -> Iterator[Exchange]:
    around = tuple((one, (one + 1) % ranks, Fraction(1, ranks)) for one in range(ranks))
    yield from (Exchange(around, adds) for _ in range(ranks - 1))


def _ring_reduce_scatter(ranks: int) -> Iterator[Exchange]:
    yield from _ring(ranks, adds=True)


def _ring_allreduce(ranks: int) -> Iterator[Exchange]:
    yield from _ring(ranks, adds=True)
    yield from _ring(ranks)


def _neighbor_exchange(ranks: int) -> Iterator[Exchange]:
    for step in range(ranks // 2):
        # Ranks 0 and 1, 2 and 3, .. in even steps, 1 and 2, 3 and 4, .. in odd ones; two blocks from the second on.
        share = Fraction(min(step + 1, 2), ranks)
        other = [(one + (1 if (one + step) % 2 == 0 else -1)) % ranks for one in range(ranks)]
        yield Exchange(tuple((one, to, share) for one, to in enumerate(other)))


def _bruck_allgather(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks):
        share = Fraction(min(far, ranks - far), ranks)
        yield Exchange(tuple((one, (one - far) % ranks, share) for one in range(ranks)))


def _bruck_alltoall(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks):
        share = Fraction(sum(1 for block in range(ranks) if block & far), ranks)
        yield Exchange(tuple((one, (one + far) % ranks, share) for one in range(ranks)))


def _pairwise(ranks: int) -> Iterator[Exchange]:
    for far in range(1, ranks):
        yield Exchange(tuple((one, (one + far) % ranks, Fraction(1, ranks)) for one in range(ranks)))


# ---- recursive doubling and halving


def _powers(ranks: int) -> list[int]:
    """Return 1, 2, 4, .. below the number of ranks."""
    return [1 << bit for bit in range((ranks - 1).bit_length())]


def _core(ranks: int) -> int:
    """Return the largest power of two that is at most the number of ranks."""
    return 1 << (ranks.bit_length() - 1)


def _exchanged(members: list[int], far: int, share: Fraction, adds: bool) -> Exchange:
    """Return the exchange of each member with the one whose number differs in the bit ``far``."""
    return Exchange(tuple((one, members[place ^ far], share) for place, one in enumerate(members)), adds)


def _doubling_gather(ranks: int) -> Iterator[Exchange]:
    for far in _powers(ranks):
        yield _exchanged(list(range(ranks)), far, Fraction(far, ranks), adds=False)


def _doubling_allreduce(ranks: int) -> Iterator[Exchange]:
    core = _core(ranks)
    rest = ranks - core
    members = [*range(1, 2 * rest, 2), *range(2 * rest, ranks)]
    yield Exchange(tuple((one, one + 1, Fraction(1)) for one in range(0, 2 * rest, 2)), adds=True)
    for far in _powers(core):
        yield _exchanged(members, far, Fraction(1), adds=True)
    yield Exchange(tuple((one + 1, one, Fraction(1)) for one in range(0, 2 * rest, 2)))


def _folded(ranks: int) -> tuple[list[int], list[Exchange]]:
    """Return the members after pairs have added halves, and the steps of that."""
    core, half = _core(ranks), Fraction(1, 2)
    rest = ranks - core
    members = [*range(0, 2 * rest, 2), *range(2 * rest, ranks)]
    pairs = [(one, one + 1) for one in range(0, 2 * rest, 2)]
    both = tuple((one, to, half) for low, high in pairs for one, to in ((low, high), (high, low)))
    return members, [Exchange(both, adds=True), Exchange(tuple((high, low, half) for low, high in pairs))]


def _halving(members: list[int]) -> Iterator[Exchange]:
    for far in _powers(len(members)):
        yield _exchanged(members, far, Fraction(1, 2 * far), adds=True)


def _rabenseifner_allreduce(ranks: int) -> Iterator[Exchange]:
    members, before = _folded(ranks)
    yield from before
    yield from _halving(members)
    for far in _powers(len(members))[::-1]:
        yield _exchanged(members, far, Fraction(1, 2 * far), adds=False)
    rest = ranks - len(members)
    yield Exchange(tuple((one, one + 1, Fraction(1)) for one in range(0, 2 * rest, 2)))


def _rabenseifner_reduce(ranks: int) -> Iterator[Exchange]:
    members, before = _folded(ranks)
    yield from before
    yield from _halving(members)
    for far in _powers(len(members))[::-1]:
        senders = range(far, 2 * far)
        yield Exchange(tuple((members[one], members[one - far], Fraction(1, 2 * far)) for one in senders))


def _halving_reduce_scatter(ranks: int) -> Iterator[Exchange]:
    core = _core(ranks)
    rest = ranks - core
    members = [*range(1, 2 * rest, 2), *range(2 * rest, ranks)]
    yield Exchange(tuple((one, one + 1, Fraction(1)) for one in range(0, 2 * rest, 2)), adds=True)
    blocks = [2] * rest + [1] * (core - rest)
    for far in _powers(core)[::-1]:
        halves = [Fraction(sum(blocks[at : at + far]), ranks) for at in range(0, core, far)]
        pairs = [(place, place ^ far) for place in range(core)]
        yield Exchange(tuple((members[one], members[to], halves[to // far]) for one, to in pairs), adds=True)
    yield Exchange(tuple((one + 1, one, Fraction(1, ranks)) for one in range(0, 2 * rest, 2)))


#: name of an algorithm -> its steps on a number of ranks
MODELS: dict[str, Model] = {
    "linear allreduce": _linear_allreduce, "recursive doubling allreduce": _doubling_allreduce,
    "ring allreduce": _ring_allreduce, "rabenseifner allreduce": _rabenseifner_allreduce,
    "bruck allgather": _bruck_allgather, "recursive doubling allgather": _doubling_gather, "ring allgather": _ring,
    "neighbor exchange allgather": _neighbor_exchange, "pairwise alltoall": _pairwise,
    "bruck alltoall": _bruck_alltoall, "linear broadcast": _fan_out, "binomial broadcast": _binomial_broadcast,
    "scatter, recursive doubling broadcast": _scatter_doubling, "scatter, ring broadcast": _scatter_ring,
    "linear reduce": _fan_in, "binomial reduce": _binomial_reduce, "rabenseifner reduce": _rabenseifner_reduce,
    "recursive halving reduce-scatter": _halving_reduce_scatter, "ring reduce-scatter": _ring_reduce_scatter,
}  # fmt: skip
