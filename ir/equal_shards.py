"""Collectives by their conditions: any that copies as a custom one, and uneven ones in equal shards.

A shard of weight w becomes w shards of one size.
"""

from __future__ import annotations

import attrs
import numpy as np

from .arrays import Array
from .collective import CUSTOM, Collective
from .diagnostic import Excess, Subject, error

__all__ = ["as_custom", "in_equal_shards", "units"]

_MOST_SHARDS = 1 << 15


def in_equal_shards(collective: Collective) -> Collective:
    """Return the custom collective whose shards are those of an uneven one, cut into shards of equal size.

    It is the same object if its shards are equal already. Raises C0542 and C0543.

    >>> found = in_equal_shards(Collective("allgather", 3, weights=(4, 0, 2)))
    >>> found.pre, found.post
    ((0, 0, 2), ((0, 1, 2), (0, 1, 2), (0, 1, 2)))
    """
    if collective.weights is None:
        return collective
    if collective.reduces:
        raise error(
            "C0542", f"{collective.name} cannot be cut into equal shards: the result would reduce in no known order",
            hint="use the target `mpi-c`, which takes shards of any size", exit_status=3,
            about=(Subject.TARGET, Subject.COLLECTIVE),
        )  # fmt: skip
    weight = units(collective)
    if (found := int(weight.sum())) > _MOST_SHARDS:
        raise error(
            "C0543", f"these weights need {found} equal shards, more than {_MOST_SHARDS}",
            hint="round the weights to multiples of a larger number, or use the target `mpi-c`", exit_status=3,
            excess=Excess("shards", found, _MOST_SHARDS), about=(Subject.TARGET, Subject.COLLECTIVE),
        )  # fmt: skip
    whole = as_custom(attrs.evolve(collective, weights=None))
    shards = np.repeat(np.arange(collective.num_shards), weight).tolist()
    assert whole.pre is not None and whole.post is not None
    pre, post = tuple(whole.pre[shard] for shard in shards), tuple(whole.post[shard] for shard in shards)
    return attrs.evolve(whole, pre=pre, post=post)


def as_custom(collective: Collective) -> Collective:
    """Return the custom collective with the shards of one that copies; they lie in the same places of all buffers.

    >>> found = as_custom(Collective("allgather", 3, members=(0, 2)))
    >>> found.pre, found.post
    ((0, 2), ((0, 2), (0, 2)))
    """
    ranks = np.arange(collective.num_ranks)
    after = [np.flatnonzero(collective.wants(ranks, shard)).tolist() for shard in range(collective.num_shards)]
    return attrs.evolve(
        collective, kind=CUSTOM, root=None, members=None, pre=tuple(collective.holders.tolist()),
        post=tuple(map(tuple, after)),
    )  # fmt: skip


def units(collective: Collective) -> Array:
    """Return the weights of a collective's shards, divided by their greatest common divisor: shape (shards,)."""
    weight: Array = collective.weight // int(np.gcd.reduce(collective.weight))
    return weight
