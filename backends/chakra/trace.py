"""Program -> nodes: each send and each receive of a rank, with the receives that must be finished before.

Times are those of the simulator (:func:`collc.backends.simulator.programs.instruction_steps`): local instructions take
none, and a send delays nothing on its own rank. So only receives are waited for. Where an instruction depends on a send
or on a copy, its node depends on the receives that these wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from collc.ir.connections import connections
from collc.ir.frozen import frozen
from collc.ir.machine import execute, partners
from collc.ir.program import Program

__all__ = ["Node", "nodes_of"]


@frozen
class Node:
    """A send or a receive of a rank: its number and name, its peer, bytes, tag, and the nodes that it waits for.

    A message has the same tag on both sides, and another one than all other messages between these ranks.
    """

    id: int
    name: str
    sends: bool
    peer: int
    size: int
    tag: int
    deps: tuple[int, ...]


def nodes_of(program: Program, size: int) -> tuple[tuple[Node, ...], ...]:
    """Return the nodes of every rank for a vector of ``size`` bytes, each after those that it waits for.

    Sizes are rounded up to whole bytes, at least one.
    """
    order = execute(program).finished.tolist()
    waits = _waits(program, order)
    tags, sender = _tags(program), partners(program).tolist()
    links = connections(program)
    source, destination = links.inward[program.block].tolist(), links.outward[program.block].tolist()
    src, dst = links.src.tolist(), links.dst.tolist()
    count, rank = program.count.tolist(), program.rank.tolist()
    sends, receives = program.sends.tolist(), program.receives.tolist()
    found: list[list[Node]] = [[] for _ in range(program.num_ranks)]
    received: dict[int, int] = {}  # row of a receive -> its node
    for row in order:
        own, deps = found[rank[row]], tuple(sorted(received[one] for one in waits[row]))
        amount = max(-(-count[row] * size // (program.chunks * program.num_ranks)), 1)
        if receives[row]:
            peer = src[source[row]]
            name = f"{program.place(row)}: receive from {peer}"
            received[row] = len(own) + 1
            own.append(Node(len(own) + 1, name, False, peer, amount, tags[sender[row]], deps))
            deps = (received[row],)
        if sends[row]:
            peer = dst[destination[row]]
            own.append(Node(len(own) + 1, f"{program.place(row)}: send to {peer}", True, peer, amount, tags[row], deps))
    return tuple(map(tuple, found))


def _waits(program: Program, order: list[int]) -> list[list[int]]:
    """Return for every row the receives that must be finished before: of every threadblock the last one.

    The receives of a threadblock wait for each other, so its last one stands for all.
    """
    block, receives = program.block.tolist(), program.receives.tolist()
    start, deps = program.dep_start.tolist(), program.deps.tolist()
    after: list[Mapping[int, int]] = [{}] * program.num_instructions
    waits: list[list[int]] = [[]] * program.num_instructions
    for row in order:
        earlier = [row - 1] if row and block[row - 1] == block[row] else []
        last: dict[int, int] = {}
        for one in (*earlier, *deps[start[row] : start[row + 1]]):
            for of, number in after[one].items():
                last[of] = max(last.get(of, -1), number)
        waits[row] = sorted(last.values())
        after[row] = {block[row]: row} if receives[row] else last
    return waits


def _tags(program: Program) -> dict[int, int]:
    """Return the tag of every send: its number among those from its rank to the same peer."""
    links = connections(program)
    rows = np.flatnonzero(program.sends)
    link = links.outward[program.block[rows]]
    pairs = zip(rows.tolist(), links.src[link].tolist(), links.dst[link].tolist(), strict=True)
    used: dict[tuple[int, int], int] = {}
    tags = {}
    for row, a, b in pairs:
        tags[row] = used.get((a, b), 0)
        used[a, b] = tags[row] + 1
    return tags


def depths(nodes: tuple[tuple[Node, ...], ...]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (sender, receiver, tag, step) of every message of a trace: the messages that must come before, at least.

    Raises ValueError for a node that waits for one that does not come before, and for a message without its other end.
    """
    begin: dict[tuple[int, int, int], int] = {}
    done: dict[tuple[int, int], int] = {}
    for rank, number in _ordered(nodes):
        node = nodes[rank][number]
        ready = max((done[rank, one] for one in node.deps), default=0)
        if node.sends:
            begin[rank, node.peer, node.tag] = ready
            done[rank, node.id] = ready
        else:
            done[rank, node.id] = max(ready, begin[node.peer, rank, node.tag] + 1)
    yield from ((a, b, tag, step) for (a, b, tag), step in begin.items())


def _ordered(nodes: tuple[tuple[Node, ...], ...]) -> Iterator[tuple[int, int]]:
    """Yield (rank, place) of all nodes in an order in which they can run, rank by rank as far as each can go."""
    sent: set[tuple[int, int, int]] = set()
    finished: list[set[int]] = [set() for _ in nodes]
    waiting = [list(range(len(own))) for own in nodes]
    progress = True
    while progress:
        progress = False
        for rank, own in enumerate(nodes):
            left = []
            for place in waiting[rank]:
                node = own[place]
                here = all(one in finished[rank] for one in node.deps)
                if not here or not (node.sends or (node.peer, rank, node.tag) in sent):
                    left.append(place)
                    continue
                if node.sends:
                    sent.add((rank, node.peer, node.tag))
                finished[rank].add(node.id)
                yield rank, place
                progress = True
            waiting[rank] = left
    stuck = next(((rank, own[0]) for rank, own in enumerate(waiting) if own), None)
    if stuck is not None:
        raise ValueError(f"node {nodes[stuck[0]][stuck[1]].id} of rank {stuck[0]} never starts")
