"""Programs -> traffic: each message as early as the order of instructions and their dependencies allow.

A program has no steps. Here the step of a message follows the last step of the messages that it depends on. Local
instructions take no time, and the messages of one step from one rank to another are one message.
"""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.costs.reductions import largest_sums
from collc.ir.machine import connections, execute, partners
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology

from .traffic import Traffic

__all__ = ["instruction_steps", "message_rows", "on_routes", "program_traffic"]


def program_traffic(program: Program, topology: Topology) -> Traffic:
    """Return the traffic of a program on a network of its ranks.

    The program must complete. Raises ValueError for a network of another number of ranks.
    """
    if topology.num_ranks != program.num_ranks:
        raise ValueError(f"the network has {topology.num_ranks} ranks, not {program.num_ranks}")
    sends, ranks, steps = np.flatnonzero(program.sends), program.num_ranks, instruction_steps(program)
    key, row = _messages(program, steps)
    amount = np.zeros(len(key), dtype=np.int64)
    np.add.at(amount, row, program.count[sends].astype(np.int64))
    step_and_src, dst = np.divmod(key, max(ranks, 1))
    step, src = np.divmod(step_and_src, max(ranks, 1))
    used, step = np.unique(step, return_inverse=True)  # a step without messages takes no time
    return Traffic(
        topology, program.collective, program.chunks * ranks, step=step, src=src, dst=dst, amount=amount,
        times=np.ones(len(used), dtype=np.int64), scheduler=program.scheduler or "program",
        reduced=_reduced(program, steps),
    )  # fmt: skip


def on_routes(traffic: Traffic, schedule: Schedule) -> Traffic:
    """Return the messages on the routes of a schedule, if it uses one between every two ranks that send; else alike.

    Without routes the simulator takes shortest ones, and divides messages among parallel links.
    """
    if schedule.topology is not traffic.topology or schedule.in_network:
        return traffic
    ranks, routes = schedule.collective.num_ranks, schedule.routes
    used = np.unique(schedule.route).astype(np.int64)
    ends = [routes.tails(schedule.topology), routes.heads(schedule.topology)]
    key = ends[0][used].astype(np.int64) * ranks + ends[1][used]
    order = np.argsort(key, kind="stable")
    key, used = key[order], used[order]
    sent = traffic.src.astype(np.int64) * ranks + traffic.dst
    place = np.minimum(np.searchsorted(key, sent), max(len(key) - 1, 0))
    if not len(key) or bool((key[1:] == key[:-1]).any()) or bool((key[place] != sent).any()):
        return traffic
    return attrs.evolve(traffic, route=used[place], routes=routes)


def _messages(program: Program, steps: list[int]) -> tuple[Array, Array]:
    """Return the keys of messages, ascending by step, sender and receiver, and the message of every send."""
    sends, ranks = np.flatnonzero(program.sends), program.num_ranks
    links = connections(program)
    link = links.outward[program.block[sends]]
    src, dst = links.src[link].astype(np.int64), links.dst[link].astype(np.int64)
    step = np.array(steps, dtype=np.int64)[sends]
    key, row = np.unique((step * ranks + src) * ranks + dst, return_inverse=True)
    return key, row


def message_rows(program: Program) -> tuple[Array, list[int]]:
    """Return for every instruction the message of :func:`program_traffic` that it sends (-1: none), and for every step
    of messages the step of its instructions."""
    steps = instruction_steps(program)
    key, row = _messages(program, steps)
    found = np.full(program.num_instructions, -1, dtype=np.int64)
    found[np.flatnonzero(program.sends)] = row
    return found, np.unique(key // max(program.num_ranks, 1) ** 2).tolist()


def _reduced(program: Program, steps: list[int]) -> Fraction:
    """Return the sum over steps of the most that a rank adds: in the step in which the data arrive, or later."""
    adds = np.flatnonzero(program.reduces)
    step, sender = np.array(steps, dtype=np.int64), partners(program)[adds]
    when = np.where(program.receives[adds] & (sender >= 0), step[sender], step[adds])
    amounts, ranks = program.count[adds].astype(np.int64), program.block_rank[program.block[adds]]
    return Fraction(sum(largest_sums(when, ranks, amounts)), program.chunks * program.num_ranks)


def instruction_steps(program: Program) -> list[int]:
    """Return for every instruction of a program that completes the step in which it sends; see :func:`program_traffic`.

    A receive follows the step of the send that it takes from.
    """
    receives = program.receives.tolist()
    block, start, deps = program.block.tolist(), program.dep_start.tolist(), program.deps.tolist()
    sender = partners(program).tolist()
    step = [0] * program.num_instructions
    for row in execute(program).finished.tolist():
        # A send does not delay later instructions of its threadblock; the dependencies of that send do.
        earlier = step[row - 1] if row and block[row - 1] == block[row] else 0
        ready = max([earlier, *(step[d] for d in deps[start[row] : start[row + 1]])])
        step[row] = max(ready, step[sender[row]] + 1) if receives[row] and sender[row] >= 0 else ready
    return step
