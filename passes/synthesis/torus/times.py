"""How long messages take by the cost model, without the transfers that :func:`collc.ir.cost.cost` reads."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from collc.ir.cost import DEFAULT_ALPHA, seconds_per_unit, time_of_rounds
from collc.ir.messages import Messages
from collc.ir.rounds import Round

__all__ = ["seconds"]

Array = np.ndarray[Any, np.dtype[Any]]


def seconds(messages: Messages) -> Fraction:
    """Return the time of the messages at the collective's size, exactly what predictions say of their schedule."""
    topology = messages.topology
    node = topology.node_bandwidth if topology.is_direct else None
    scale = seconds_per_unit(topology.unit, node, None) * (messages.collective.size or 0)
    if not any(kind.latency for kind in topology.classes):
        return messages.num_steps * DEFAULT_ALPHA + messages.time_per_byte * scale
    return time_of_rounds(_rounds(messages), scale)


def _rounds(messages: Messages) -> Iterator[Round]:
    """Yield for every different step how often it happens, and (latency, time per byte) of its routes alike in latency.

    A link is as late as the routes over it.
    """
    routes, links = messages.routes, messages.topology.link_class
    unit = lcm(*(kind.latency.denominator for kind in messages.topology.classes))
    by_class = np.array([int(kind.latency * unit) for kind in messages.topology.classes], dtype=np.int64)
    wait = np.add.reduceat(by_class[links[routes.links]], routes.start[:-1].astype(np.int64))
    at, length = messages.step_start, np.diff(routes.start.astype(np.int64)).astype(np.int64)
    for step, (times, load) in enumerate(messages.loads()):
        used = np.unique(messages.route[at[step] : at[step + 1]])
        pairs = []
        for late in np.unique(wait[used]).tolist():
            alike = np.zeros(len(routes), dtype=bool)
            alike[used[wait[used] == late]] = True
            busy = np.zeros_like(load)
            over = routes.links[np.repeat(alike, length)]
            busy[over] = load[over]
            pairs.append((Fraction(late, unit), _busiest(messages, busy)))
        yield times, tuple(pairs)


def _busiest(messages: Messages, load: Array) -> Fraction:
    """Return the time per byte of the link with the most to carry."""
    kinds = enumerate(messages.topology.classes)
    most = (int(load[messages.topology.link_class == number].max(initial=0)) / kind.bandwidth for number, kind in kinds)
    return max(most) / messages.whole
