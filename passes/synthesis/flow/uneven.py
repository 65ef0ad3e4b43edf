"""All-to-all, gather and scatter with shards that differ in size: LP (3) with demands, its bound, one-step schedules.

A pair without data in the plan gets a shortest route, because a count at run time may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import frexp, lcm
from typing import NamedTuple

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.certificate import Bound, Prices
from collc.ir.schedule import Action, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology

from ..shares import common_parts, rounded
from ..shortest import links_to, shortest_links
from .columns import Commodities, quick_rate
from .paths import Network
from .quotient import Flows, best_flows, best_prices, near_prices
from .rate import capacities

__all__ = ["demands", "uneven_bound", "uneven_routed"]

_MOST_EXACT = 2500  # sources times links, up to which a bound solves it too
_MOST_PROGRAM = 1 << 15  # up to which it takes prices of the program in floats
_MOST_QUICK = 1 << 21  # and up to which it uses cheapest routes
_DEAREST = 1 << 26
_DIGITS = 1 << 24  # of a flow in floats
_SEARCHED = 1 << 16  # the sum of demands in a search for prices
_COARSE = 1 << 16  # the dearest link's price


def demands(collective: Collective, num_nodes: int) -> tuple[Array, Array]:
    """Return the sources, and what every node needs of each: shape (sources, nodes), Python's integers.

    Those of a gather are of the scatter that is its reverse.
    """
    n, weight = collective.num_ranks, collective.weight.astype(object)
    sources = np.arange(n) if collective.root is None else np.array([collective.root])
    found = np.zeros((len(sources), num_nodes), dtype=object)
    found[:, :n] = weight.reshape(len(sources), n)
    found[np.arange(len(sources)), sources] = 0
    return sources, found


class _Portion(NamedTuple):
    """The interval ``lo`` to ``hi`` of the shard from ``source`` to ``target``, and the links of its route."""

    source: int
    target: int
    lo: Fraction
    hi: Fraction
    links: tuple[int, ...]


def uneven_routed(problem: Problem, most_parts: int | None = None) -> Schedule:
    """Return an alltoallv, gatherv or scatterv of one step, exactly as fast as LP (3) allows if parts are that fine.

    A gatherv is a scatterv on the transpose, along reversed routes.
    """
    topology, collective = problem.topology, problem.collective
    gathers = collective.kind == "gather"
    network = topology.transpose() if gathers else topology
    sources, demand = demands(collective, topology.num_nodes)
    flows = _settled(best_flows(network, sources, capacities(network), _scaled(demand)))
    found = [one for number in range(len(sources)) for one in _of_source(network, flows, number, demand[number])]
    ends = {end.denominator for one in found for end in (one.lo, one.hi)}
    parts = common_parts("flow", ends) if most_parts is None else min(lcm(1, *ends), most_parts)
    rows = [(one, rounded(one.lo, parts), rounded(one.hi, parts)) for one in found]
    rows = [row for row in rows if row[1] < row[2]]
    along = [one.links[::-1] if gathers else one.links for one, _, _ in rows]
    number = {links: i for i, links in enumerate(dict.fromkeys(along))}
    first = topology.num_ranks if collective.root is None else 0  # shards of an alltoallv are numbered by source too
    return Schedule(
        topology, collective, parts, step=[0] * len(rows), action=[Action.COPY] * len(rows),
        shard=[one.source * first + one.target for one, _, _ in rows], lo=[lo for _, lo, _ in rows],
        hi=[hi for _, _, hi in rows], route=[number[links] for links in along], routes=Routes.of(list(number)),
        scheduler="flow",
    )  # fmt: skip


def _settled(flows: Flows) -> Flows:
    """Return flows without the last digits of floats, which may differ from machine to machine."""
    return flows if flows.exact else attrs.evolve(flows, value=tuple(_settled_float(one) for one in flows.value))


def _settled_float(value: Fraction) -> Fraction:
    digits, exponent = frexp(float(value))
    return round(digits * _DIGITS) * Fraction(2) ** exponent / _DIGITS


def _scaled(demand: Array) -> Array:
    """Return demands without a common divisor, so that networks with equal demands are alike."""
    common = int(np.gcd.reduce(demand.ravel())) if demand.size else 1
    found: Array = demand // max(common, 1)
    return found


Need = tuple[int, Fraction, tuple[int, ...]]  # target, weight, the rest of the route


def _of_source(topology: Topology, flows: Flows, number: int, demand: Array) -> list[_Portion]:
    """Return the portions of a source's shards, by target and route."""
    from .routed import last_first

    source, of = int(flows.classes.sources[number]), flows.classes.flow[number]
    into: dict[int, list[tuple[int, int, Fraction]]] = {}
    for link in np.flatnonzero(of >= 0).tolist():
        if (amount := flows.value[of[link]]) > 0:
            into.setdefault(int(topology.dst[link]), []).append((link, int(topology.src[link]), amount))
    needs: dict[int, list[Need]] = {
        rank: [(rank, Fraction(int(demand[rank])), ())] for rank in range(topology.num_ranks) if demand[rank]
    }
    done, lost = list[Need](), list[Need]()
    for node in last_first(source, into, topology.num_nodes):
        mine = needs.pop(node, [])
        if node not in into or not into[node]:
            lost += mine
            continue
        for link, tail, given in _divided(mine, into[node]):
            moved = [(target, weight, (link, *rest)) for target, weight, rest in given]
            if tail == source:
                done += moved
            else:
                needs.setdefault(tail, []).extend(moved)
    assert not needs and not lost, "a node has no flow into it"
    return [*_numbered(source, demand, sorted(done, key=lambda need: (need[0], need[2]))),
            *_idle(topology, source, demand)]  # fmt: skip


def _divided(
    needs: Sequence[Need], into: Sequence[tuple[int, int, Fraction]]
) -> Iterator[tuple[int, int, list[Need]]]:  # fmt: skip
    """Yield for every link into a node what it brings, in proportion to the flows: whole needs where possible."""
    total = sum((weight for _, weight, _ in needs), Fraction(0))
    amount = sum((flow for _, _, flow in into), Fraction(0))
    rest = list(reversed(needs))
    for link, tail, flow in into:
        room, given = total * flow / amount, list[Need]()
        while room > 0 and rest:
            target, weight, links = rest.pop()
            taken = min(weight, room)
            given.append((target, taken, links))
            if taken < weight:
                rest.append((target, weight - taken, links))
            room -= taken
        if given:
            yield link, tail, given


def _numbered(source: int, demand: Array, needs: Iterable[Need]) -> Iterator[_Portion]:
    """Yield the portions; the parts of a shard follow one another in the order of its routes."""
    before, lo = -1, Fraction(0)
    for target, weight, links in needs:
        lo = lo if target == before else Fraction(0)
        hi = lo + weight / int(demand[target])
        yield _Portion(source, target, lo, hi, links)
        before, lo = target, hi


def _idle(topology: Topology, source: int, demand: Array) -> Iterator[_Portion]:
    """Yield shards without data, over shortest routes."""
    last = shortest_links(topology, source)
    for rank in range(topology.num_ranks):
        if rank != source and not demand[rank]:
            yield _Portion(source, rank, Fraction(0), Fraction(1), tuple(links_to(topology, last, source, rank)))


# ---- bounds


def uneven_bound(topology: Topology, collective: Collective) -> Bound | None:
    """Return the least time of an alltoallv per byte of M by LP (3) with its demands: its value, or what prices prove.

    Returns None if cheapest routes would take too long; this depends on ranks and links. Raises C0301 (not strongly
    connected).
    """
    topology.require_connected("an all-to-all")
    work = topology.num_ranks * topology.num_links
    _, demand = demands(collective, topology.num_nodes)
    if topology.num_ranks < 2 or not demand.any() or work > _MOST_QUICK:
        return None
    found = _exact(topology, collective, demand) if work <= _MOST_EXACT else None
    if found is not None:
        return found
    if work <= _MOST_PROGRAM:
        prices = np.array(near_prices(topology, capacities(topology), _scaled(demand), _DEAREST), dtype=object)
        if prices.any():
            return _priced(topology, collective, demand, prices)
    return _priced(topology, collective, demand, _good_prices(topology, demand))


def _exact(topology: Topology, collective: Collective, demand: Array) -> Bound | None:
    """Return the value of LP (3) with its proof; None if elimination takes too long."""
    widths, scaled = capacities(topology), _scaled(demand)
    flows = best_flows(topology, np.arange(topology.num_ranks), widths, scaled)
    prices = best_prices(topology, widths, scaled) if flows.exact else None
    if prices is None:
        return None
    common = int(np.gcd.reduce(demand.ravel()))
    least = min(topology.classes[c].bandwidth for c in np.unique(topology.link_class[_useful(topology)]).tolist())
    value = flows.time * common / least / collective.whole
    found = _priced(topology, collective, demand, np.array(prices, dtype=object))
    return attrs.evolve(found, name="LP (3)", above=value) if found.value == value else None


def _useful(topology: Topology) -> Array:
    useful: Array = topology.src != topology.dst
    return useful


def _good_prices(topology: Topology, demand: Array) -> Array:
    """Return whole prices of all links that prove a good bound, of demands rounded for the search."""
    useful = np.flatnonzero(_useful(topology))
    number = np.zeros(topology.num_links, dtype=np.int64)
    number[useful] = np.arange(len(useful))
    scale = max(int(demand.sum()) // _SEARCHED, 1)
    wanted = (-(-demand // scale)).astype(np.int64).T
    widths = capacities(topology)
    whole = lcm(*(width.denominator for width in widths))
    width = np.array([int(widths[c] * whole) for c in topology.link_class[useful].tolist()])
    found = quick_rate(_commodities(topology, wanted, number, width))
    prices = np.zeros(topology.num_links, dtype=np.int64)
    prices[useful] = np.rint(found.prices * (_COARSE / found.prices.max())).astype(np.int64)
    return prices


def _commodities(topology: Topology, wanted: Array, number: Array, width: Array) -> Commodities:
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    sources = np.arange(topology.num_ranks)
    return Commodities(
        Network.of(topology.num_nodes, src, dst), wanted, sources, np.ones(len(sources), dtype=np.int64), number, width
    )


def _priced(topology: Topology, collective: Collective, demand: Array, prices: Array) -> Bound:
    """Return the bound that whole prices of links prove: demands times cheapest routes over priced bandwidth."""
    commodities = _commodities(topology, demand.T, np.arange(topology.num_links), prices * 0)
    distance = commodities.route(prices).cost
    capacity = sum(
        (topology.bandwidth(link) * int(price) for link, price in enumerate(prices.tolist()) if price), Fraction(0)
    )
    proof = Prices(tuple(int(price) for price in prices), distance, capacity)
    return Bound(Fraction(distance) / capacity / collective.whole, "multi-commodity-flow", "prices of links", proof)
