"""A simulation as a Chrome trace for Perfetto and chrome://tracing: the time of every message.

A process is a rank. Its threads are the messages that it sends at the same time. A slice is a message. Counter tracks
show the load of every link in a step.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import TypedDict

import numpy as np

from collc.ir.arrays import Array
from collc.ir.ragged import nth_in_group

from .model import Simulation

__all__ = [
    "MOST_EVENTS", "Event", "count_events", "link_counters", "named", "process", "thread", "ticks", "trace_events",
    "trace_json",
]  # fmt: skip


class Event(TypedDict, total=False):
    """One event of a trace; times are microseconds."""

    name: str
    cat: str
    ph: str
    pid: int
    tid: int
    ts: float
    dur: float
    id: int
    bp: str
    args: Mapping[str, object]


#: The most events of a trace that viewers open easily; about 40 MB of text.
MOST_EVENTS = 200_000

_NANOSECONDS = 10**9
_MICRO = 10**3  # ticks of a microsecond


def count_events(simulation: Simulation, ranks: Collection[int] | None = None) -> int:
    """Return an upper limit on the slices and counter values in the trace of these ranks (default: all)."""
    traffic, topology = simulation.traffic, simulation.topology
    times = traffic.times.astype(np.int64)
    chosen = _chosen(traffic.src, ranks)
    slices = np.bincount(traffic.step[chosen], minlength=len(times))
    links = int(np.count_nonzero(_chosen(topology.src, ranks)))
    return int((times * (slices + np.minimum(links, _most_links(simulation)))).sum())


def _most_links(simulation: Simulation) -> Array:
    """Return an upper limit on the counter values of every step: links in use, and links that become idle."""
    used = np.array([step.messages * max(step.hops, 1) for step in simulation.steps], dtype=np.int64)
    return 2 * used * (simulation.routed.unit if simulation.routing == "minimal" else 1)


def trace_json(simulation: Simulation, size: int, ranks: Collection[int] | None = None) -> str:
    """Return the trace for M of ``size`` bytes as JSON text, an event a line; the same input gives the same text."""
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in trace_events(simulation, size, ranks))
    return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{lines}\n]}}\n'


def trace_events(simulation: Simulation, size: int, ranks: Collection[int] | None = None) -> Iterator[Event]:
    """Yield the events: names of tracks, then step by step its slices and the counters that change.

    The trace shows the messages that ``ranks`` (default: all) send, and the links out of them. Times are microseconds.
    """
    traffic = simulation.traffic
    chosen = _chosen(traffic.src, ranks)
    lanes = _lanes(simulation)
    yield from _names(simulation, chosen, lanes, ranks)
    begin, done = Fraction(0), 0
    seconds = simulation.seconds_per_unit * size
    for number, step in enumerate(simulation.steps):
        slices = _slices(simulation, number, size, chosen, lanes)
        for _ in range(step.times):
            start = ticks(begin)
            for event, arrival in slices:
                duration = (ticks(begin + arrival) - start) / _MICRO
                yield {**event, "args": {"step": done, **event["args"]}, "ts": start / _MICRO, "dur": duration}
            begin, done = begin + step.time(seconds), done + 1
    yield from link_counters(simulation, size, ranks)


def link_counters(simulation: Simulation, size: int, ranks: Collection[int] | None = None) -> Iterator[Event]:
    """Yield the bytes that each link out of ``ranks`` (default: all) carries in a step, where they change."""
    topology = simulation.topology
    links = np.flatnonzero(_chosen(topology.src, ranks))
    names = _link_names(simulation, links)
    shown, begin = np.zeros(len(links)), Fraction(0)
    seconds = simulation.seconds_per_unit * size
    for number, step in enumerate(simulation.steps):
        carried = _carried(simulation, number, size)[links]
        for _ in range(step.times):
            for i in np.flatnonzero(carried != shown).tolist():
                yield _counter(names[i], topology.num_ranks, ticks(begin), float(carried[i]))
            shown, begin = carried, begin + step.time(seconds)
    for i in np.flatnonzero(shown).tolist():
        yield _counter(names[i], topology.num_ranks, ticks(begin), 0.0)


def _chosen(column: Array, ranks: Collection[int] | None) -> Array:
    """Return which entries belong to the shown ranks."""
    return np.ones(len(column), dtype=bool) if ranks is None else np.isin(column, sorted(ranks))


def ticks(seconds: Fraction) -> int:
    """Return whole nanoseconds, as Perfetto keeps them, which drops a slice that begins before another ends."""
    return int(seconds * _NANOSECONDS)


def _names(simulation: Simulation, chosen: Array, lanes: Array, ranks: Collection[int] | None) -> Iterator[Event]:
    topology, traffic = simulation.topology, simulation.traffic
    for rank in range(topology.num_ranks) if ranks is None else sorted(ranks):
        yield from process(rank, f"rank {topology.names[rank]}")
    key = np.unique(traffic.src[chosen].astype(np.int64) * (1 << 32) + lanes[chosen])
    for rank, lane in zip((key >> 32).tolist(), (key & 0xFFFFFFFF).tolist(), strict=True):
        yield named("thread_name", rank, thread(topology.num_ranks, lane), "name", f"message {lane}")
    yield from process(topology.num_ranks, "links: bytes in a step")


def process(pid: int, name: str) -> Iterator[Event]:
    """Yield the name and the place of a process."""
    yield named("process_name", pid, 0, "name", name)
    yield named("process_sort_index", pid, 0, "sort_index", pid)


def thread(ranks: int, number: int) -> int:
    """Return the ``tid`` of a process's thread of this number.

    Perfetto takes 0, and the number of the process, for one thread, the first of the process. So threads have numbers
    above those of all processes: ranks, and one for links.
    """
    return ranks + 1 + number


def named(kind: str, pid: int, tid: int, key: str, value: str | int) -> Event:
    """Return an event that names or places a track."""
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {key: value}}


def _lanes(simulation: Simulation) -> Array:
    """Return the number of every message among those that its rank sends in the same step, in row order."""
    traffic = simulation.traffic
    key = traffic.step.astype(np.int64) * simulation.topology.num_nodes + traffic.src
    order = np.argsort(key, kind="stable")
    lanes = np.empty(len(key), dtype=np.int64)
    lanes[order] = nth_in_group(key[order])
    return lanes


def _slices(
    simulation: Simulation, number: int, size: int, chosen: Array, lanes: Array
) -> list[tuple[Event, Fraction]]:
    """Return the slices of a step, without begin and duration, and the arrival of each (seconds)."""
    traffic = simulation.traffic
    a, b = traffic.step_start[number : number + 2].tolist()
    rows = a + np.flatnonzero(chosen[a:b])
    lane_of, hops = lanes[rows].tolist(), simulation.routed.latency_terms(slice(a, b))[rows - a, 0].tolist()
    arrivals, found = simulation.arrivals(number, rows, size), list[tuple[Event, Fraction]]()
    for row, lane, links, arrival in zip(rows.tolist(), lane_of, hops, arrivals, strict=True):
        to = simulation.topology.names[int(traffic.dst[row])]
        share = float(Fraction(int(traffic.amount[row]) * size, traffic.whole))
        arguments = {"to": to, "bytes": share, "links": links}
        track = thread(simulation.topology.num_ranks, lane)
        event: Event = {"name": f"to {to}", "cat": "message", "ph": "X", "pid": int(traffic.src[row]), "tid": track}
        found.append(({**event, "args": arguments}, arrival))
    return found


def _carried(simulation: Simulation, number: int, size: int) -> Array:
    """Return the bytes that every link carries in a step."""
    load, whole = simulation.loads(number)
    return load.astype(np.float64) * float(Fraction(size, whole))


def _link_names(simulation: Simulation, links: Array) -> list[str]:
    """Return ``a -> b`` for every link, numbered if there are several from a to b."""
    topology, seen, found = simulation.topology, dict[tuple[int, int], int](), list[str]()
    for ends in zip(topology.src[links].tolist(), topology.dst[links].tolist(), strict=True):
        seen[ends] = seen.get(ends, 0) + 1
        number = f" #{seen[ends]}" if seen[ends] > 1 else ""
        found.append(f"{topology.names[ends[0]]} -> {topology.names[ends[1]]}{number}")
    return found


def _counter(name: str, pid: int, tick: int, value: float) -> Event:
    return {"name": name, "ph": "C", "pid": pid, "tid": 0, "ts": tick / _MICRO, "args": {"bytes": value}}
