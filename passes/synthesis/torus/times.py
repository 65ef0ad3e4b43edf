"""Times of messages by the cost model, without the transfers that :func:`collc.ir.costs.cost.cost` needs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm

import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.costs.cost import DEFAULT_ALPHA, time_of_rounds, unit_seconds
from collc.ir.costs.messages import Messages
from collc.ir.costs.rounds import Round

__all__ = ["seconds"]


def seconds(messages: Messages) -> Fraction:
    """Return the time of the messages at the collective's size, equal to the prediction for their schedule."""
    topology = messages.topology
    size = messages.collective.size or 0
    scale = unit_seconds(topology) * size
    adding = topology.gamma * (messages.reduced or 0) * size + topology.epsilon
    if not any(kind.latency for kind in topology.classes):
        return messages.num_steps * DEFAULT_ALPHA + messages.time_per_byte * scale + adding
    return time_of_rounds(_rounds(messages), scale) + adding


def _rounds(messages: Messages) -> Iterator[Round]:
    """Yield how often every distinct step happens, and (latency, time per byte) of its routes, by latency.

    A link has the latency of the routes over it.
    """
    routes, links = messages.routes, messages.topology.link_class
    unit = lcm(*(kind.latency.denominator for kind in messages.topology.classes))
    by_class = np.array([int(kind.latency * unit) for kind in messages.topology.classes], dtype=np.int64)
    latency = np.add.reduceat(by_class[links[routes.links]], routes.start[:-1].astype(np.int64))
    at, length = messages.step_start, routes.lengths
    for step, (times, load) in enumerate(messages.loads()):
        used = distinct(messages.route[at[step] : at[step + 1]])
        pairs = []
        for value in distinct(latency[used]).tolist():
            alike = np.zeros(len(routes), dtype=bool)
            alike[used[latency[used] == value]] = True
            busy = np.zeros_like(load)
            over = routes.links[np.repeat(alike, length)]
            busy[over] = load[over]
            pairs.append((Fraction(value, unit), _busiest(messages, busy)))
        yield times, tuple(pairs)


def _busiest(messages: Messages, load: Array) -> Fraction:
    """Return the time per byte of the busiest link."""
    kinds = enumerate(messages.topology.classes)
    most = (int(load[messages.topology.link_class == number].max(initial=0)) / kind.bandwidth for number, kind in kinds)
    return max(most) / messages.whole
