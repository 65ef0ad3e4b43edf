"""Schedules of one step: every shard takes the routes of its source's best flow, through switches and ranks.

Going from the last nodes of a flow back to its source, each node divides what it must receive among the links into it,
in proportion to their flow. So all loads are those of the flow, and few shards are split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeVar

import numpy as np

from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from .quotient import Flows, best_flows
from .rate import capacities

__all__ = ["Portion", "last_first", "portions", "routed"]

#: parts of a shard: flows with a larger common denominator are rounded to this many
_MOST_PARTS = 5040


def routed(problem: Problem, most_parts: int = _MOST_PARTS) -> Schedule:
    """Return an all-to-all, gather or scatter of one step, as near to LP (3) as the size of a part allows.

    A gather is a scatter on the transpose, along reversed routes.
    """
    topology, collective = problem.topology, problem.collective
    gathers = collective.kind == "gather"
    network = topology.transpose() if gathers else topology
    sources = np.arange(topology.num_ranks) if collective.root is None else np.array([collective.root])
    parts, found = portions(network, best_flows(network, sources, capacities(network)), most_parts)
    along = [one.links[::-1] if gathers else one.links for one in found]
    number = {links: i for i, links in enumerate(dict.fromkeys(along))}
    first = topology.num_ranks if collective.root is None else 0  # shards of an all-to-all are numbered by source too
    return Schedule(
        topology, collective, parts, step=np.zeros(len(found), dtype=np.uint8),
        action=np.full(len(found), Action.COPY, dtype=np.uint8),
        shard=[one.source * first + one.target for one in found], lo=[one.lo for one in found],
        hi=[one.hi for one in found], route=[number[links] for links in along], routes=Routes.of(list(number)),
        scheduler="flow",
    )  # fmt: skip


class Portion(NamedTuple):
    """Parts ``lo`` to ``hi`` (exclusive) of the shard from ``source`` to ``target``, and the links of their route."""

    source: int
    target: int
    lo: int
    hi: int
    links: tuple[int, ...]


def portions(topology: Topology, flows: Flows, most: int = _MOST_PARTS) -> tuple[int, list[Portion]]:
    """Return into how many parts shards are divided, at most ``most``, and the routes of all, by source and target."""
    exact = lcm(*(value.denominator for value in flows.value)) if flows.exact else most + 1
    parts = min(exact, most)
    weight = np.array([float(value) for value in flows.value])
    found = list[Portion]()
    for number, source in enumerate(flows.classes.sources.tolist()):
        of = flows.classes.flow[number]
        links = np.flatnonzero(of >= 0)
        links = links[weight[of[links]] > 0]
        found += _of_source(topology, source, links.tolist(), weight[of[links]].tolist(), parts)
    return parts, found


Amount = TypeVar("Amount", float, Fraction)
Need = tuple[int, int, tuple[int, ...]]  # target, parts, the rest of the route


def _of_source(topology: Topology, source: int, links: list[int], flow: list[float], parts: int) -> list[Portion]:
    src, dst = topology.src, topology.dst
    into: dict[int, list[tuple[int, int, float]]] = {}
    for link, amount in zip(links, flow, strict=True):
        into.setdefault(int(dst[link]), []).append((link, int(src[link]), amount))
    needs: dict[int, list[Need]] = {rank: [(rank, parts, ())] for rank in range(topology.num_ranks) if rank != source}
    done = list[Need]()
    for node in last_first(source, into, topology.num_nodes):
        for link, tail, given in _divided(needs.pop(node, []), into.get(node, [])):
            moved = [(target, count, (link, *rest)) for target, count, rest in given]
            if tail == source:
                done += moved
            else:
                needs.setdefault(tail, []).extend(moved)
    assert not needs, "a node has no flow into it"
    return list(_numbered(source, sorted(done, key=lambda need: (need[0], need[2]))))


def _numbered(source: int, needs: list[Need]) -> Iterator[Portion]:
    """Yield the portions; the parts of a shard follow one another in the order of its routes."""
    before, lo = -1, 0
    for target, count, links in needs:
        lo = lo if target == before else 0
        yield Portion(source, target, lo, lo + count, links)
        before, lo = target, lo + count


def _divided(
    needs: list[Need], into: list[tuple[int, int, float]]
) -> Iterator[tuple[int, int, Sequence[Need]]]:  # fmt: skip
    """Yield for every link into a node what it brings, in proportion to the flows: whole needs where possible."""
    total, amount = sum(count for _, count, _ in needs), sum(flow for _, _, flow in into)
    rest, begun, carried = list(reversed(needs)), 0.0, 0
    for link, tail, flow in into:
        begun += flow
        room = round(total * (begun / amount)) - carried
        carried += room
        given = list[Need]()
        while room > 0:
            target, count, links = rest.pop()
            taken = min(count, room)
            given.append((target, taken, links))
            if taken < count:
                rest.append((target, count - taken, links))
            room -= taken
        if given:
            yield link, tail, given


def last_first(source: int, into: dict[int, list[tuple[int, int, Amount]]], nodes: int) -> list[int]:
    """Return the nodes of a flow without circles, each before the tails of the links into it.

    If floats leave a circle of tiny flows, the least one of its links is dropped.
    """
    out: dict[int, int] = dict.fromkeys(into, 0)
    for links in into.values():
        for _, tail, _ in links:
            out[tail] = out.get(tail, 0) + 1
    ready = sorted((node for node, count in out.items() if not count), reverse=True)
    order = list[int]()
    left = set(out)
    while left:
        if not ready:
            node, link = min(
                ((head, one) for head in left for one in into.get(head, []) if one[1] in left),
                key=lambda place: (place[1][2], place[1][0]),
            )
            into[node].remove(link)
            out[link[1]] -= 1
            ready += [link[1]] * (not out[link[1]])
            continue
        node = ready.pop()
        left.discard(node)
        if node != source:
            order.append(node)
        for _, tail, _ in into.get(node, []):
            out[tail] -= 1
            if not out[tail]:
                ready.append(tail)
    return order
