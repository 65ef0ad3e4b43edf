"""The time of a training iteration: compute, and the collectives that it waits for.

This is the model of appendix A.4 of the direct-connect paper. Compute and communication are two streams. Each executes
one task at a time, in the order in which the program issues them.

* Gradients are put into buckets during the backward pass, as in PyTorch DDP. A bucket that has reached its capacity is
  allreduced while the backward pass continues.
* An expert layer has an all-to-all before it (tokens to their experts) and one after it (back), in both passes. Compute
  waits for them. They share the communication stream with the allreduces, so the two never overlap.

Both orders are fixed, so an iteration is a longest path: no task that gets faster makes it slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Literal

import attrs

from ..shown import counted, shown

__all__ = ["Iteration", "Layer", "Network", "Task", "Workload", "best_iteration", "iteration"]

_NONE = Fraction(0)


@attrs.frozen
class Layer:
    """A layer: bytes of its ``gradient`` that all ranks sum, and seconds of compute ``forward`` and ``backward``.

    ``alltoall`` is M of each of the four all-to-alls of an expert layer: the bytes that a rank sends to its experts,
    its own included; 0 for other layers. The gradients of experts are not part of ``gradient``: one rank has each.
    """

    name: str
    gradient: int = 0
    forward: Fraction = _NONE
    backward: Fraction = _NONE
    alltoall: int = 0


@attrs.frozen
class Workload:
    """What one rank does in an iteration: ``layers`` in the order of the forward pass.

    ``buckets`` are the capacities (bytes) among which the best is chosen. ``ranks`` is the number for which sizes and
    times hold, None for any.
    """

    name: str
    layers: tuple[Layer, ...]
    buckets: tuple[int, ...]
    ranks: int | None = None
    summary: str = ""
    source: str = ""
    assumed: str = ""

    def __repr__(self) -> str:
        return shown(self, f"{self.name}, {counted(len(self.layers), 'layer')}")

    @property
    def compute(self) -> Fraction:
        """Seconds of compute."""
        return sum((layer.forward + layer.backward for layer in self.layers), _NONE)

    @property
    def gradient(self) -> int:
        """Bytes that are allreduced."""
        return sum(layer.gradient for layer in self.layers)

    @property
    def alltoalls(self) -> int:
        """Number of all-to-alls."""
        return 4 * sum(layer.alltoall > 0 for layer in self.layers)


@attrs.frozen(eq=False)
class Network:
    """The times of collectives on one network.

    ``allreduce`` returns the exact seconds of an allreduce of a number of bytes. ``alltoall`` is the seconds of an
    all-to-all per byte of M, the data of one rank; None if it is unknown. ``launch`` (seconds) comes once for every
    call: epsilon of the cost model.
    """

    name: str
    allreduce: Callable[[int], Fraction]
    alltoall: Fraction | None
    launch: Fraction = _NONE


@attrs.frozen
class Task:
    """What a stream does from ``start`` for ``duration`` (seconds)."""

    stream: Literal["compute", "communication"]
    kind: Literal["forward", "backward", "allreduce", "alltoall"]
    name: str
    start: Fraction
    duration: Fraction
    size: int = 0

    @property
    def end(self) -> Fraction:
        """When it ends, in seconds."""
        return self.start + self.duration


@attrs.frozen
class Iteration:
    """One iteration with one capacity of the buckets (bytes).

    ``time`` is ``compute`` + ``exposed`` + ``alltoall``, all in seconds. ``exposed`` is the time in which compute waits
    for allreduces: before an all-to-all that stands behind them, and at the end. ``allreduce`` is their whole time.
    """

    bucket: int
    compute: Fraction
    exposed: Fraction
    alltoall: Fraction
    allreduce: Fraction
    tasks: tuple[Task, ...] = attrs.field(repr=False)

    @property
    def time(self) -> Fraction:
        """Seconds of the iteration."""
        return self.compute + self.exposed + self.alltoall

    @property
    def allreduces(self) -> int:
        """Number of allreduces: buckets that have data."""
        return sum(task.kind == "allreduce" for task in self.tasks)


def best_iteration(workload: Workload, network: Network) -> Iteration | None:
    """Return the iteration of least time over the workload's buckets; of equals the one of the largest bucket.

    Returns None if the workload has all-to-alls and their time is unknown.
    """
    if workload.alltoalls and network.alltoall is None:
        return None
    every = (iteration(workload, network, bucket) for bucket in workload.buckets)
    return min(every, key=lambda one: (one.time, -one.bucket))


def iteration(workload: Workload, network: Network, bucket: int) -> Iteration:
    """Return one iteration with buckets of ``bucket`` bytes; the workload's all-to-alls have a known time.

    >>> layers = (Layer("a", 100, Fraction(1), Fraction(2)), Layer("b", 100, Fraction(1), Fraction(2)))
    >>> found = iteration(Workload("two", layers, (100,)), Network("slow", lambda size: Fraction(size, 40), None), 100)
    >>> [(task.name, str(task.start), str(task.end)) for task in found.tasks if task.kind == "allreduce"]
    [('bucket 1', '4', '13/2'), ('bucket 2', '13/2', '9')]
    >>> found.time, found.exposed
    (Fraction(9, 1), Fraction(3, 1))
    """
    streams = _Streams(network)
    for layer in workload.layers:
        streams.layer(layer, "forward", layer.forward)
    for layer, full in _filled(workload.layers[::-1], bucket):
        streams.layer(layer, "backward", layer.backward)
        if full:
            streams.allreduce(full)
    streams.finish()
    totals = {kind: sum((t.duration for t in streams.tasks if t.kind == kind), _NONE) for kind in _KINDS}
    return Iteration(
        bucket, totals["forward"] + totals["backward"], streams.exposed, totals["alltoall"], totals["allreduce"],
        tuple(streams.tasks),
    )  # fmt: skip


_KINDS = ("forward", "backward", "allreduce", "alltoall")


def _filled(layers: Sequence[Layer], bucket: int) -> Iterator[tuple[Layer, int]]:
    """Yield layers in the order of the backward pass, each with the bytes of the bucket that it fills, or 0.

    The gradient of a layer is not divided. The last layer takes the rest along.
    """
    size = 0
    for place, layer in enumerate(layers, 1):
        size += layer.gradient
        if size >= bucket or place == len(layers):
            yield layer, size
            size = 0
        else:
            yield layer, 0


class _Streams:
    """The two streams while an iteration is computed: when each is free, and what it did."""

    def __init__(self, network: Network):
        self.network = network
        self.compute_free = self.network_free = self.exposed = _NONE
        self.tasks: list[Task] = []
        self.buckets = 0

    def layer(self, layer: Layer, kind: Literal["forward", "backward"], duration: Fraction) -> None:
        """Execute a layer, between two all-to-alls if it has them."""
        to, back = ("dispatch", "combine") if kind == "forward" else ("combine, backward", "dispatch, backward")
        self._alltoall(layer, to)
        if duration:
            self.tasks.append(Task("compute", kind, layer.name, self.compute_free, duration))
            self.compute_free += duration
        self._alltoall(layer, back)

    def allreduce(self, size: int) -> None:
        """Issue an allreduce; it begins when the network is free."""
        self.buckets += 1
        start = max(self.compute_free, self.network_free)
        duration = self.network.allreduce(size) + self.network.launch
        self.tasks.append(Task("communication", "allreduce", f"bucket {self.buckets}", start, duration, size))
        self.network_free = start + duration

    def finish(self) -> None:
        """Wait for all allreduces."""
        self.exposed += max(self.network_free - self.compute_free, _NONE)

    def _alltoall(self, layer: Layer, which: str) -> None:
        if not layer.alltoall:
            return
        assert self.network.alltoall is not None  # the caller knows it
        duration = layer.alltoall * self.network.alltoall + self.network.launch
        self.finish()
        start = max(self.compute_free, self.network_free)
        self.tasks.append(Task("communication", "alltoall", f"{layer.name}, {which}", start, duration, layer.alltoall))
        self.compute_free = self.network_free = start + duration
