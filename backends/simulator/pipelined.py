"""Forests as traffic: the edges of their trees, piece by piece, in as many different steps as the trees are high."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.bundles import loading
from collc.ir.costs.rounds import reduced_parts
from collc.ir.schedule import Forest

from .traffic import Traffic

__all__ = ["forest_traffic"]


def forest_traffic(forest: Forest, pieces: int | None = None) -> Traffic:
    """Return the traffic of a forest with the data divided into ``pieces`` (default: the forest's own number).

    The messages are those of :meth:`Forest.to_steps`. The steps in which all edges are busy are one repeated step, so
    the work does not depend on the number of pieces.
    """
    count = forest.pieces if pieces is None else pieces
    first = _first_steps(forest)
    last = int(first.max(initial=-1))
    listed = min(count, last + 1)
    own, routes = loading(forest)
    step, route, amount = _messages(forest, first, listed, own, len(routes))
    times = np.ones(last + listed, dtype=np.int64) if last >= 0 else np.zeros(0, dtype=np.int64)
    times[last : last + 1] += count - listed
    tails, heads = routes.tails(forest.topology), routes.heads(forest.topology)
    return Traffic(
        forest.topology, forest.collective, forest.vector * count, step=step, src=tails[route],
        dst=heads[route], amount=amount, times=times, route=route, routes=routes, scheduler=forest.scheduler,
        reduced=Fraction(reduced_parts(forest, count), forest.vector * count),
    )  # fmt: skip


def _first_steps(forest: Forest) -> Array:
    """Return the step in which the first piece uses each edge: up from the leaves, then down from the roots."""
    high, _ = forest.heights
    inward = forest.inward[forest.tree].astype(bool)
    return np.where(inward, high - forest.depth, high + forest.depth - 1)


def _messages(forest: Forest, first: Array, pieces: int, route: Array, count: int) -> tuple[Array, Array, Array]:
    """Return (step, route, amount) by step: the sum that the pieces of all trees send over a route in a step.

    Each row has its ``route``, one of ``count``.
    """
    routes = max(count, 1)
    weight = forest.amount[forest.tree]
    key = ((first[:, None] + np.arange(pieces)) * routes + route.astype(np.int64)[:, None]).ravel()
    message, place = np.unique(key, return_inverse=True)
    amount = np.zeros(len(message), dtype=weight.dtype)
    np.add.at(amount, place, np.repeat(weight, pieces))
    return message // routes, message % routes, amount
