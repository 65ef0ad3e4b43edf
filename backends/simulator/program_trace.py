"""A program's simulation as a Chrome trace: ranks as processes, threadblocks as threads, instructions as slices.

A slice has the name and the numbers of its instruction, as in the file that was emitted. An arrow leads from every send
to the receive that takes its data. Counter tracks show the load of every link. Times are those of the simulation: a
step of messages begins when the one before has ended. A send lasts until its last byte has left, a receive until its
last byte has arrived. A threadblock executes one instruction after the other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.frozen import frozen
from collc.ir.machine import partners
from collc.ir.opcodes import Opcode
from collc.ir.program import Buffer, Program

from .model import Simulation
from .programs import instruction_steps, message_rows
from .trace import Event, link_counters, named, process, thread, ticks

__all__ = ["Label", "count_program_events", "labels_of", "program_trace_events", "program_trace_json"]

_MICRO = 10**3


@frozen
class Label:
    """An instruction as a file names it: a name, and its attributes."""

    name: str
    arguments: Mapping[str, object]


@frozen
class _Span:
    """An instruction: from when it may begin to its end, when its data begin to leave and arrive (seconds)."""

    begin: Fraction
    end: Fraction
    leaves: Fraction
    arrives: Fraction


def labels_of(program: Program) -> list[Label]:
    """Return the instructions as the IR names them: opcode, number in the threadblock, places and count."""
    names = [one.name.lower().replace("_", "-") for one in Opcode]
    rows = zip(
        program.step.tolist(), program.opcode.tolist(), program.src_buffer.tolist(), program.src_offset.tolist(),
        program.dst_buffer.tolist(), program.dst_offset.tolist(), program.count.tolist(), strict=True,
    )  # fmt: skip
    return [
        Label(f"{step}: {names[opcode]}", {
            "step": step, "type": names[opcode], "src": f"{Buffer(a).name.lower()}[{i}]",
            "dst": f"{Buffer(b).name.lower()}[{j}]", "count": count,
        })
        for step, opcode, a, i, b, j, count in rows
    ]  # fmt: skip


def count_program_events(program: Program, simulation: Simulation) -> int:
    """Return an upper limit on the events of a trace of all ranks: slices, ends of arrows, values of counters."""
    links = sum(min(step.messages * max(step.hops, 1), simulation.topology.num_links) for step in simulation.steps)
    return program.num_instructions + 2 * int(np.count_nonzero(program.sends)) + 2 * links


def program_trace_json(
    program: Program, simulation: Simulation, size: int, labels: Sequence[Label], ranks: Collection[int] | None = None
) -> str:
    """Return the trace for M of ``size`` bytes as JSON text, an event a line; the same input gives the same text."""
    events = program_trace_events(program, simulation, size, labels, ranks)
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{lines}\n]}}\n'


def program_trace_events(
    program: Program, simulation: Simulation, size: int, labels: Sequence[Label], ranks: Collection[int] | None = None
) -> Iterator[Event]:
    """Yield the events of ``ranks`` (default: all): names of tracks, slices, arrows, counters of the links out of them.

    ``simulation`` is that of the program's traffic (:func:`.programs.program_traffic`), without repeated steps.
    """
    chosen = set(range(program.num_ranks)) if ranks is None else set(ranks)
    yield from _names(program, simulation, chosen)
    spans, rank, block = _spans(program, simulation, size), program.rank.tolist(), program.block.tolist()
    number = [thread(program.num_ranks, block) for block in program.block_id.tolist()]
    for row, (one, label) in enumerate(zip(spans, labels, strict=True)):
        if rank[row] in chosen:
            start = ticks(one.begin)
            yield {
                "name": label.name, "cat": "instruction", "ph": "X", "pid": rank[row], "tid": number[block[row]],
                "ts": start / _MICRO, "dur": (ticks(one.end) - start) / _MICRO, "args": label.arguments,
            }  # fmt: skip
    sender = partners(program).tolist()
    for row in np.flatnonzero(program.receives).tolist():
        source = sender[row]
        if source >= 0 and rank[row] in chosen and rank[source] in chosen:
            for phase, at, time in (("s", source, spans[source].leaves), ("f", row, spans[row].arrives)):
                end: Event = {
                    "name": "message", "cat": "message", "ph": phase, "id": source, "pid": rank[at],
                    "tid": number[block[at]], "ts": ticks(time) / _MICRO,
                }  # fmt: skip
                yield {**end, "bp": "e"} if phase == "f" else end
    yield from link_counters(simulation, size, ranks)


def _names(program: Program, simulation: Simulation, chosen: set[int]) -> Iterator[Event]:
    names, ends = simulation.topology.names, (program.send_peer.tolist(), program.recv_peer.tolist())
    for rank in sorted(chosen):
        yield from process(rank, f"rank {rank}" if names[rank] == str(rank) else f"rank {rank}: {names[rank]}")
        for block in range(int(program.rank_blocks[rank]), int(program.rank_blocks[rank + 1])):
            peers = [(word, of[block]) for word, of in zip(("to", "from"), ends, strict=True)]
            words = [f"{word} {peer}" for word, peer in peers if peer >= 0]
            words.append(f"channel {int(program.channel[block])}")
            number = int(program.block_id[block])
            track = thread(program.num_ranks, number)
            yield named("thread_name", rank, track, "name", f"threadblock {number}: {', '.join(words)}")
            yield named("thread_sort_index", rank, track, "sort_index", number)
    yield from process(program.num_ranks, "links: bytes in a step")


# ---- times


def _spans(program: Program, simulation: Simulation, size: int) -> list[_Span]:
    """Return the time of every instruction; in a threadblock none begins before the one before it has ended."""
    steps, (message, used) = instruction_steps(program), message_rows(program)
    begins = _begins(simulation, size, max(steps, default=0), used)
    whole, latency = _arrivals(simulation, size)
    parts = _parts(program, message)
    sender, block = partners(program).tolist(), program.block.tolist()
    sends, receives = program.sends.tolist(), program.receives.tolist()
    found: list[_Span] = []
    for row in range(program.num_instructions):
        before = found[row - 1].end if row and block[row - 1] == block[row] else Fraction(0)
        begin = end = leaves = arrives = max(before, begins[steps[row]])
        if receives[row] and sender[row] >= 0:
            source = sender[row]
            one, start, (first, last) = int(message[source]), begins[steps[source]], parts[source]
            pushed = whole[one] - latency[one]
            begin = max(before, start + latency[one] + pushed * first)
            arrives = start + latency[one] + pushed * last
            end = arrives = max(begin, arrives)
        if sends[row]:
            first, last = parts[row]
            one, start = int(message[row]), begins[steps[row]]
            pushed = whole[one] - latency[one]
            leaves = max(start + pushed * first, begin)
            end = max(start + pushed * last, leaves, end)
        found.append(_Span(begin, end, leaves, arrives))
    return found


def _begins(simulation: Simulation, size: int, most: int, used: Sequence[int]) -> list[Fraction]:
    """Return when each step of instructions begins; those that are not ``used`` by messages take no time."""
    seconds, now, begins = simulation.seconds_per_unit * size, Fraction(0), list[Fraction]()
    taken = dict(zip(used, simulation.steps, strict=True))
    for step in range(most + 2):
        begins.append(now)
        now += taken[step].time(seconds) if step in taken else 0
    return begins


def _arrivals(simulation: Simulation, size: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return of every message the time from the begin of its step to its arrival, and how much of it is latency."""
    whole, latency = list[Fraction](), list[Fraction]()
    start = simulation.traffic.step_start.tolist()
    for number in range(len(simulation.steps)):
        rows = np.arange(start[number], start[number + 1])
        whole += simulation.arrivals(number, rows, size)
        latency += simulation.arrivals(number, rows, 0)
    return whole, latency


def _parts(program: Program, message: Array) -> dict[int, tuple[Fraction, Fraction]]:
    """Return for every send which share of its message, as its threadblock sends it, is sent before and after it."""
    rows = np.flatnonzero(program.sends)
    keys = list(zip(message[rows].tolist(), program.block[rows].tolist(), strict=True))
    total: dict[tuple[int, int], int] = {}
    counts = program.count[rows].tolist()
    for key, count in zip(keys, counts, strict=True):
        total[key] = total.get(key, 0) + count
    done: dict[tuple[int, int], int] = {}
    found = {}
    for row, key, count in zip(rows.tolist(), keys, counts, strict=True):
        first = done.get(key, 0)
        done[key] = first + count
        found[row] = (
            (Fraction(first, total[key]), Fraction(done[key], total[key])) if total[key] else (Fraction(0),) * 2
        )
    return found
