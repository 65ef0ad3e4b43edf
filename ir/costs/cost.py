"""The cost model of section 3.2 of the direct-connect paper: exact steps, bandwidth time, bounds; predicted seconds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import singledispatch
from math import gcd
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ..arrays import Array, distinct
from ..bundles import loading
from ..frames import dataframe
from ..frozen import frozen
from ..progress import counting
from ..quantities import in_bytes, sizes_in_bytes
from ..schedule import Action, Forest, Routes, Schedule
from ..shown import clipped, counted, shown
from ..symmetric import SymmetricSchedule
from ..symmetric_forest import SymmetricForest
from ..symmetries import Symmetries
from ..topology import Topology
from .reductions import reduced_share
from .rounds import Round, front, loads

if TYPE_CHECKING:
    import pandas

    from .certificate import Bound

__all__ = ["Cost", "ForestCost", "Point", "assumptions", "cost", "link_loads", "predict", "predicted_time"]

#: Assumptions of a prediction without values from the topology or the caller: the paper's testbed figures.
DEFAULT_ALPHA = Fraction(10, 10**6)
DEFAULT_BANDWIDTH = Fraction(100 * 10**9, 8)


#: column of :meth:`Cost.to_dataframe` -> its kind
_FRAME = {
    "collective": "text", "scheduler": "text", "ranks": "integer", "T_L": "integer", "T_L_bound": "integer",
    "T_B": "rational", "T_B_float": "number", "time_per_byte": "rational", "time_per_byte_bound": "rational",
    "size_bytes": "integer", "time_us": "number", "algbw_GBps": "number",
}  # fmt: skip


@frozen
class Point:
    """Predicted time (seconds) and algorithmic bandwidth (bytes per second) at one size (bytes)."""

    size: int
    time: float
    bandwidth: float


@frozen
class Cost:
    """The cost of a schedule.

    ``T_L`` counts steps. ``T_B`` is the bandwidth time in units of M/B, where B is the total egress bandwidth of a node
    (None if nodes differ). ``time_per_byte`` is the same per byte of M and unit of bandwidth: per link unit, or seconds
    if the topology's bandwidths are absolute. Both phases of an allreduce count, in the bounds too. ``latency`` is the
    sum of the links' own latencies (seconds); ``timed`` is whether any link of the topology has one. ``phases`` is 2
    for an allreduce that computes every sum at one rank and then copies it, otherwise 1. ``T_L_bound`` holds for
    schedules with as many phases. ``floor`` is the lower bound of Theorem 4 on T_B. ``bound`` is the least
    ``time_per_byte`` on this network. ``tree_bound`` is the least of an allreduce by trees, or None if unknown.

    ``reduced`` is T_C in units of M gamma (Theorem 6 of the direct-connect paper). In every step, one rank adds the
    most data; T_C is the sum of these amounts over the steps, as a share of M. ``gamma`` (seconds a byte) and
    ``epsilon`` (seconds a call) are the topology's.

    ``members`` are the ranks that take part, None for all.

    ``same_everywhere`` is whether all ranks end with the same bits (:mod:`collc.ir.verify.agreement`); None if this was
    not computed.

    If the links of a step differ in latency, the link with the largest latency may not be the one with the largest
    load. ``slowest`` then has for every step the pairs (latency, time per byte) of links that may be the slowest,
    latencies falling. It is empty if every step has one pair.

    >>> import collc
    >>> found = collc.compile_source("collective parts = allgather on torus(3, 3);").cost
    >>> found, found.bw_optimal, found.time_per_byte_bound
    (Cost(allgather on 9 ranks, bfb, T_L 2, T_B 8/9), True, Fraction(2, 9))
    """

    collective: str
    scheduler: str
    ranks: int
    degree: int | None
    diameter: int | None
    parts: int
    transfers: int
    T_L: int
    T_B: Fraction | None
    T_L_bound: int | None
    time_per_byte: Fraction
    floor: Fraction | None
    bound: Bound
    latency: Fraction
    unit: str
    node_bandwidth: Fraction | None
    forest: ForestCost | None = None
    slowest: tuple[tuple[tuple[Fraction, Fraction], ...], ...] = ()
    timed: bool = False
    phases: int = 1
    tree_bound: Bound | None = None
    same_everywhere: bool | None = None
    reduced: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    members: int | None = None

    @property
    def steps(self) -> int:
        """The steps that are taken: T_L, or of trees the rounds of all pieces."""
        if self.forest is None or self.forest.rounds is None:
            return self.T_L
        return sum(count for count, _ in self.forest.rounds)

    def __repr__(self) -> str:
        rate = f"time_per_byte {self.time_per_byte}" if self.T_B is None else f"T_B {self.T_B}"
        text = f"{self.collective} on {counted(self.ranks, 'rank')}, {clipped(self.scheduler)}, T_L {self.T_L}, {rate}"
        return shown(self, text)

    @property
    def taking_part(self) -> int:
        """Ranks that take part."""
        return self.ranks if self.members is None else self.members

    @property
    def tightest(self) -> Bound:
        """The larger of ``bound`` and ``tree_bound``."""
        if self.tree_bound is None or self.tree_bound.value <= self.bound.value:
            return self.bound
        return self.tree_bound

    @property
    def time_per_byte_bound(self) -> Fraction:
        """The least ``time_per_byte`` on this network, of schedules of the kind of :attr:`tightest`."""
        return self.tightest.value

    @property
    def bottleneck_cut(self) -> str:
        """The name of the bound's certificate: a cut, a partition, or prices of links."""
        return self.tightest.name

    @property
    def T_B_bound(self) -> Fraction | None:
        """The least T_B of any network by the links of single ranks (Theorem 4); of an all-to-all ``bound`` in M/B."""
        if self.T_B is None or self.collective not in ("alltoall", "alltoallv"):
            return self.floor
        return self.bound.value * (self.node_bandwidth or 1)

    @property
    def bound_met(self) -> bool:
        """Whether no schedule of the tightest bound's kind has less bandwidth time on this network."""
        return self.time_per_byte <= self.tightest.value

    @property
    def bw_optimal(self) -> bool:
        """Whether it is bandwidth-optimal, by the definition of the paper of its kind.

        Of steps, if all ranks have equal bandwidth: T_B is ``T_B_bound`` (direct-connect paper, Theorem 4). Of trees
        and all others: no schedule on this network has less bandwidth time.
        """
        if self.T_B is not None and self.T_B_bound is not None and self.forest is None:
            return self.T_B_bound == self.T_B
        return self.time_per_byte <= self.bound.value

    @property
    def moore_optimal(self) -> bool | None:
        """Whether no network of this size and degree allows fewer steps (Definition 10).

        Of an allreduce whose parts are each summed at one rank: fewer steps of two phases, as section C.3 counts them.
        """
        return None if self.T_L_bound is None else self.T_L_bound == self.T_L

    def time(self, size: int | str, alpha: Fraction | None = None, bandwidth: Fraction | None = None) -> Fraction:
        """Return the predicted seconds, exact, for a whole vector of ``size``: bytes, or a text such as ``"64 MiB"``.

        ``alpha`` (seconds of a step) and ``bandwidth`` (bytes per second) are those of :func:`predict`. Raises C0020
        for a wrong size.

        >>> import collc
        >>> ring = collc.compile_source("collective sums = allreduce on biring(4) { op: sum };")
        >>> ring.cost.time(0), float(ring.cost.time("64 MiB"))
        (Fraction(1, 25000), 0.00809306368)
        """
        return predicted_time(self, in_bytes(size), alpha, bandwidth)

    def to_dataframe(self, sizes: int | str | Iterable[int | str] = ("1KiB", "1MiB", "1GiB")) -> pandas.DataFrame:
        """Return the predicted time at every size (bytes, or texts such as ``"64MiB"``) as a data frame of pandas.

        Rationals are exact beside floats, times in microseconds, bandwidths in GB/s. Raises C0028 without pandas.
        """
        about = {
            "collective": self.collective, "scheduler": self.scheduler, "ranks": self.ranks, "T_L": self.T_L,
            "T_L_bound": self.T_L_bound, "T_B": self.T_B, "T_B_float": None if self.T_B is None else float(self.T_B),
            "time_per_byte": self.time_per_byte, "time_per_byte_bound": self.time_per_byte_bound,
        }  # fmt: skip
        points = predict(self, sizes_in_bytes(sizes))
        rows = [
            {**about, "size_bytes": p.size, "time_us": p.time * 1e6, "algbw_GBps": p.bandwidth / 1e9} for p in points
        ]
        return dataframe(_FRAME, rows)

    def _repr_html_(self) -> str:
        """Return the cost as a table, for notebooks."""
        from ..html import html_table

        rate = (
            ("time per byte", self.time_per_byte, self.time_per_byte_bound) if self.T_B is None
            else ("T_B", self.T_B, self.T_B_bound)
        )  # fmt: skip
        rows = [("T_L", self.T_L, self.T_L_bound), rate]
        title = f"{self.collective} on {counted(self.ranks, 'rank')} by {self.scheduler}"
        return html_table(title, ("", "value", "bound"), [["-" if x is None else x for x in row] for row in rows])


@frozen
class ForestCost:
    """Further costs of forests.

    ``one_over_x`` is the time of one root's data, a shard or (if ``whole``, or if shards differ in size) the vector.
    Its unit is that amount over a GB/s if bandwidths are absolute, otherwise over a link unit; of an allreduce both
    phases count. ``k`` is the number
    of trees per root, counted with multiplicity: the number of equal shares of its data. ``trees`` counts distinct
    trees. ``time_per_byte`` is the limit for many pieces. ``rounds`` are those of all ``pieces``: (how often, (latency,
    time per byte) of the links that may be the slowest); None if the cost is of other steps. With ``whole``, trees
    carry shares of the whole vector.
    """

    one_over_x: Fraction
    k: int
    trees: int
    max_height: int
    pieces: int
    time_per_byte: Fraction
    rounds: tuple[Round, ...] | None = None
    whole: bool = False


@singledispatch
def cost(level: Schedule | SymmetricSchedule | Forest | SymmetricForest, known: Cost | None = None) -> Cost:
    """Return the exact cost of a verified schedule or forest.

    ``known`` is the cost of a schedule of the same problem at any size; its bounds are taken.
    """
    raise TypeError(f"a {type(level).__name__} has no cost")


@cost.register
def _(level: Schedule, known: Cost | None = None) -> Cost:
    slowest, (route, routes) = [], loading(level)
    steps = list(zip(level.step_start[:-1].tolist(), level.step_start[1:].tolist(), strict=True))
    for a, b in counting(steps, "loads of steps"):
        load = link_loads(level.topology, routes, route[a:b], level.amount[a:b])
        slowest.append(_slowest(level, load, level.route[a:b]))
    return _cost_of_steps(level, len(level), level.num_steps, slowest, known)


@cost.register
def _(level: SymmetricSchedule, known: Cost | None = None) -> Cost:
    """Compute the cost from rank 0's links, which carry what the seed moves over links of the same place.

    With orbits of ranks, from all links of each orbit of links.
    """
    if level.orbits is not None:
        return _cost_of_orbits(level, level.orbits, known)
    seed, place, slowest = level.seed, level.place, []
    for a, b in level.step_ranges():
        load = np.zeros(level.topology.num_links, dtype=np.int64)
        np.add.at(load, place[a:b], seed.amount[a:b])
        slowest.append(_slowest(seed, load, place[a:b]))
    return _cost_of_steps(level, len(level), level.num_steps, slowest, known)


def _cost_of_orbits(level: SymmetricSchedule, group: Symmetries, known: Cost | None) -> Cost:
    seed, slowest = level.seed, []
    for a, b in level.step_ranges():
        load = link_loads(seed.topology, seed.routes, seed.route[a:b], seed.amount[a:b])
        slowest.append(_slowest(seed, group.summed(load[None, :], group.link_orbit)[0], seed.route[a:b]))
    return _cost_of_steps(level, len(level), level.num_steps, slowest, known)


def _cost_of_steps(
    level: Schedule | SymmetricSchedule,
    transfers: int,
    steps: int,
    slowest: list[tuple[tuple[Fraction, Fraction], ...]],
    known: Cost | None,
) -> Cost:
    """Return the cost of steps whose slowest links are ``slowest`` (:func:`_slowest`)."""
    whole = level.vector
    per_byte = sum((step[-1][1] for step in slowest if step), Fraction(0)) / whole
    latency = sum((step[0][0] for step in slowest if step), Fraction(0))
    found = _cost(level, transfers, steps, per_byte, latency, reduced_share(level), known)
    if all(len(step) <= 1 for step in slowest):
        return found
    per_vector = tuple(tuple((latency, per / whole) for latency, per in step) for step in slowest)
    return attrs.evolve(found, slowest=per_vector)


@cost.register
def _(level: Forest, known: Cost | None = None) -> Cost:
    """T_L is the height of the trees (of an allreduce, of inward plus outward trees). T_B is that of the link with the
    largest load in all: the limit of the time per byte for many pieces.
    """
    return _cost_of_trees(level, _link_loads(level), known)


@cost.register
def _(level: SymmetricForest, known: Cost | None = None) -> Cost:
    """The loads are those of the template, summed over the orbits of links."""
    stays = level.stays[level.seed.tree]
    load = level.group.summed(_link_loads(level.seed, ~stays)[None, :], level.group.link_orbit)[0]
    if stays.any():
        load = load + _link_loads(level.seed, stays)
    return _cost_of_trees(level, load, known)


def _link_loads(forest: Forest, among: Array | slice = slice(None)) -> Array:
    """Return what the edges in a mask, by default all, put on every link."""
    route, routes = loading(forest)
    return link_loads(forest.topology, routes, route[among], forest.amount[forest.tree[among]])


def _cost_of_trees(level: Forest | SymmetricForest, load: Array, known: Cost | None) -> Cost:
    """Return the cost of trees that load the links so."""
    forest, edges = (level, len(level.tree)) if isinstance(level, Forest) else (level.seed, len(level))
    busiest, whole = _busiest(level.topology, load), level.vector
    per_root = busiest / (level.parts * (whole // level.parts if level.collective.weights else 1))
    steps = loads(level)
    first = steps.rounds(1)
    detail = ForestCost(
        per_root * (10**9 if level.topology.unit == "B/s" else 1), _trees_per_root(forest), level.num_trees,
        forest.height, level.pieces, busiest / whole,
        scaled(steps.rounds(level.pieces), whole * level.pieces), forest.whole,
    )  # fmt: skip
    latency = sum((pairs[0][0] for _, pairs in first if pairs), Fraction(0))
    reduced = Fraction(steps.reduced(level.pieces), whole * level.pieces)
    found = _cost(level, edges, sum(level.heights), detail.time_per_byte, latency, reduced, known)
    return attrs.evolve(found, forest=detail)


def _trees_per_root(forest: Forest) -> int:
    common = gcd(forest.parts, int(np.gcd.reduce(forest.weight.astype(np.int64), initial=0)))
    return forest.parts // common if forest.num_trees else 0


def scaled(rounds: Iterable[Round], shares: int) -> tuple[Round, ...]:
    """Return rounds in time per byte of the vector of ``shares`` shares and unit of bandwidth, instead of per share."""
    return tuple((count, tuple((latency, per / shares) for latency, per in pairs)) for count, pairs in rounds)


def _cost(
    level: Schedule | SymmetricSchedule | Forest | SymmetricForest, transfers: int, steps: int, per_byte: Fraction,
    latency: Fraction, reduced: Fraction, known: Cost | None,
) -> Cost:  # fmt: skip
    from . import bounds  # with cuts, flows and partitions

    topology, collective = level.topology, level.collective
    total = topology.node_bandwidth if topology.is_direct else None
    floor = bounds.bandwidth_bound(topology, collective) if known is None else known.floor
    if known is not None:
        least = known.bound
    elif total and floor is not None and per_byte * total == floor:
        least = bounds.finest_bound(topology, collective, per_byte)
    else:
        least = bounds.bound(topology, collective)
    return Cost(
        collective=collective.name, scheduler=level.scheduler, ranks=collective.num_ranks, degree=topology.degree,
        diameter=topology.diameter, parts=level.parts, transfers=transfers, T_L=steps,
        T_B=None if total is None else per_byte * total,
        T_L_bound=None if _skips_ranks(level) else bounds.steps_bound(topology, collective, phases(level)),
        time_per_byte=per_byte, floor=floor, bound=least, latency=latency, unit=topology.unit, node_bandwidth=total,
        phases=phases(level), timed=any(c.latency for c in topology.classes), reduced=reduced,
        gamma=topology.gamma, epsilon=topology.epsilon,
        members=None if collective.members is None else len(collective.members),
    )  # fmt: skip


def phases(level: Schedule | SymmetricSchedule | Forest | SymmetricForest) -> int:
    """Return 2 for an allreduce that computes each sum at one rank before any other has it, otherwise 1.

    A sum of N contributions takes N - 1 additions, and a second rank that computes it needs at least one more. So if
    reductions move N - 1 vectors in all, every sum is computed once, and copied.
    """
    if level.collective.kind != "allreduce" or level.collective.num_members < 2:
        return 1
    if isinstance(level, (Forest, SymmetricForest)):
        return 2
    rows = level.seed if isinstance(level, SymmetricSchedule) else level
    shards = level.width if isinstance(level, SymmetricSchedule) else level.collective.num_shards
    n = level.collective.num_members
    moved = (rows.hi.astype(np.int64) - rows.lo)[rows.action == Action.REDUCE].sum()
    return 2 if int(moved) == (n - 1) * shards * rows.parts else 1


def _skips_ranks(level: Schedule | SymmetricSchedule | Forest | SymmetricForest) -> bool:
    """Return whether a route passes through a rank: bounds on steps hold only if ranks send to neighbours."""
    if isinstance(level, SymmetricSchedule):
        level = level.seed
    if level.routes.is_direct:
        return False
    inner = np.ones(len(level.routes.links), dtype=bool)
    inner[level.routes.start[:-1]] = False
    return bool((level.topology.src[level.routes.links[inner]] < level.topology.num_ranks).any())


def link_loads(topology: Topology, routes: Routes, route: Array, amount: Array) -> Array:
    """Return the exact sum of ``amount`` (integers) that crosses each link, by its rows' routes."""
    per_route = np.zeros(len(routes), dtype=amount.dtype)
    np.add.at(per_route, route, amount)
    if routes.is_direct and len(routes) == topology.num_links:
        return per_route
    load = np.zeros(topology.num_links, dtype=amount.dtype)
    np.add.at(load, routes.links, routes.loads(np.arange(len(routes.links)), np.repeat(per_route, routes.lengths)))
    return load


def _busiest(topology: Topology, load: Array) -> Fraction:
    """Return the largest load over bandwidth: the time of the slowest link, in parts per unit of bandwidth."""
    slowest = Fraction(0)
    for number, kind in enumerate(topology.classes):
        most = int(load[topology.link_class == number].max(initial=0))
        slowest = max(slowest, Fraction(most) / kind.bandwidth)
    return slowest


def _slowest(level: Schedule, load: Array, route: Array) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return (latency, parts per unit of bandwidth) of the used links that no other exceeds in both.

    Latencies fall and loads rise. A link of a route of several links has the latency of the whole route.
    """
    topology = level.topology
    if len({c.latency for c in topology.classes}) == 1 and level.routes.is_direct:
        return ((topology.classes[0].latency, _busiest(topology, load)),) if len(route) else ()
    most: dict[Fraction, Fraction] = {}
    for latency, links in _latencies(level, route):
        at_most = _busiest(topology, np.where(links, load, 0))
        most[latency] = max(most.get(latency, Fraction(0)), at_most)
    return front(most)


def _latencies(level: Schedule, route: Array) -> list[tuple[Fraction, Array]]:
    """Return latencies of routes in use, each with the links (as a mask) of such routes."""
    topology, used = level.topology, distinct(route)
    if level.routes.is_direct:
        in_use = np.isin(np.arange(topology.num_links), used)
        return [(kind.latency, in_use & (topology.link_class == c)) for c, kind in enumerate(topology.classes)]
    lengths, places = level.routes.lengths[used], level.routes.places(used)
    links = level.routes.links[places]
    kinds = np.zeros((len(used), len(topology.classes)), dtype=np.int64)
    np.add.at(kinds, (np.repeat(np.arange(len(used)), lengths), topology.link_class[links]), 1)
    counts, alike = np.unique(kinds, axis=0, return_inverse=True)
    found: dict[Fraction, Array] = {}
    for number, row in enumerate(counts.tolist()):
        latency = sum((n * kind.latency for n, kind in zip(row, topology.classes, strict=True)), Fraction(0))
        mask = found.setdefault(latency, np.zeros(topology.num_links, dtype=bool))
        mask[links[np.repeat(alike.ravel() == number, lengths)]] = True
    return list(found.items())


def predict(
    cost: Cost,
    sizes: Iterable[int],
    alpha: Fraction | None = None,
    bandwidth: Fraction | None = None,
    gamma: Fraction | None = None,
    epsilon: Fraction | None = None,
) -> tuple[Point, ...]:
    """Return the predicted time at each size (bytes): latency plus bandwidth time of every step's slowest link.

    ``alpha`` is the latency of a step (seconds; default: the links' own latencies if they have any, otherwise 10 us).
    ``bandwidth`` is B, the total egress bandwidth of a node (bytes per second; default: the links' own, otherwise 100
    Gbps). If nodes differ, it is the bandwidth of a link unit, and links with absolute bandwidths keep them. ``gamma``
    is the time that a rank takes to add a byte (seconds), ``epsilon`` the launch, the time of a call besides its steps
    (seconds): gamma and epsilon of the direct-connect paper, section C.4 and appendix A.2. By default both are the
    topology's, which are 0 unless it has them.
    """
    points = []
    for size in sizes:
        time = predicted_time(cost, size, alpha, bandwidth, gamma, epsilon)
        points.append(Point(size, float(time), float(size / time) if time else 0.0))
    return tuple(points)


def predicted_time(
    cost: Cost,
    size: int,
    alpha: Fraction | None = None,
    bandwidth: Fraction | None = None,
    gamma: Fraction | None = None,
    epsilon: Fraction | None = None,
) -> Fraction:
    """Return the exact seconds of :func:`predict`, which returns floats.

    Every step lasts until its slowest link is done: its latency, or ``alpha``, plus its bandwidth time. Then the ranks
    add what they received: T_C = M gamma ``reduced`` in all. The launch comes once.
    """
    adding = (cost.gamma if gamma is None else gamma) * cost.reduced * size
    return _time_of_steps(cost, size, alpha, bandwidth) + adding + (cost.epsilon if epsilon is None else epsilon)


def _time_of_steps(cost: Cost, size: int, alpha: Fraction | None, bandwidth: Fraction | None) -> Fraction:
    """Return T_L + T_B in seconds."""
    scale = _seconds_per_unit(cost, bandwidth) * size
    if alpha is None and not cost.timed:
        alpha = DEFAULT_ALPHA
    if cost.forest is not None and cost.forest.rounds is not None:
        return time_of_rounds(cost.forest.rounds, scale, alpha)
    if alpha is None and cost.slowest:
        return time_of_rounds(((1, step) for step in cost.slowest), scale)
    return (cost.latency if alpha is None else cost.T_L * alpha) + cost.time_per_byte * scale


def time_of_rounds(rounds: Iterable[Round], scale: Fraction, alpha: Fraction | None = None) -> Fraction:
    """Return the seconds of rounds; each lasts until its slowest link is done: latency, or ``alpha``, plus its time.

    ``scale`` is the factor of a round's times per byte.
    """
    return sum(
        (
            count * max(((own if alpha is None else alpha) + per * scale for own, per in pairs), default=Fraction(0))
            for count, pairs in rounds
        ),
        Fraction(0),
    )


def algbw(cost: Cost, bandwidth: Fraction | None = None) -> Fraction | None:
    """Return the limit of bytes per second for large sizes (trees: in many pieces); None if no data move."""
    per_byte = (cost.time_per_byte if cost.forest is None else cost.forest.time_per_byte) * _seconds_per_unit(
        cost, bandwidth
    )
    return 1 / per_byte if per_byte else None


def _seconds_per_unit(cost: Cost, bandwidth: Fraction | None) -> Fraction:
    return seconds_per_unit(cost.unit, cost.node_bandwidth, bandwidth)


def seconds_per_unit(unit: str, node_bandwidth: Fraction | None, bandwidth: Fraction | None) -> Fraction:
    """Return the seconds of a byte over a unit of the topology's bandwidth."""
    if unit == "B/s" and (bandwidth is None or node_bandwidth is None):
        return Fraction(1)
    return (node_bandwidth or 1) / (DEFAULT_BANDWIDTH if bandwidth is None else bandwidth)


def unit_seconds(topology: Topology, bandwidth: Fraction | None = None) -> Fraction:
    """Return the seconds of a byte over a unit of a topology's bandwidth; ``bandwidth`` is that out of a node, or with
    switches that of a link unit.
    """
    return seconds_per_unit(topology.unit, topology.node_bandwidth if topology.is_direct else None, bandwidth)


def assumptions(cost: Cost, alpha: Fraction | None = None, bandwidth: Fraction | None = None) -> tuple[str, ...]:
    """Return the assumptions of :func:`predict` for values that neither the topology nor the caller gives."""
    found = []
    if alpha is None and not cost.timed:
        found.append(f"{DEFAULT_ALPHA * 10**6} us a step")
    if bandwidth is None and cost.unit != "B/s":
        of = "out of a node" if cost.T_B is not None else "a link unit"
        found.append(f"{show_gigabytes(DEFAULT_BANDWIDTH)} {of}")
    return tuple(found)


def show_gigabytes(bandwidth: Fraction) -> str:
    """Return bytes per second as text in GB/s, the unit of all tables of predicted times.

    >>> show_gigabytes(DEFAULT_BANDWIDTH)
    '12.5 GB/s'
    """
    return f"{float(bandwidth / 10**9):g} GB/s"
