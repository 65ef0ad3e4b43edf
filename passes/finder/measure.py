"""Build every topology that a search keeps, and compute the exact cost of its schedule and its all-to-all rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError, error
from collc.ir.group import Translations
from collc.ir.spec import Problem
from collc.ir.topology import Origin, Topology

from ..synthesis.breadth_first.bfb import BFB
from .bits import MOST_LINKS, bits_cost, bits_diameter, period_of
from .database import Row, rate_text
from .evaluate import MOST_TABLED, bfb_cost, load_unit, node_loads
from .expand import Candidate
from .lines import line_cost
from .wide import wide_cost

__all__ = [
    "Library",
    "bfb_costs",
    "expansion_costs",
    "measure",
    "rounded",
    "row_mistakes",
    "with_alltoall_rate",
    "with_alltoall_rates",
    "with_narrow_rate",
    "with_reduce_scatter",
]

#: links of a node up to which a table of all their sets is quick
_NARROW_DEGREE = 8
#: the bounds of a bracket are rounded to a part in this
_DIGITS = 2**13
_NARROW = 1 + Fraction(1, 1000)  # a bracket that is no wider stays
#: links of a node up to which bits are quicker than tables for any network
_BITS_DEGREE = 6
#: ranks up to which tables of all pairs are small
_MOST_TABLED = 4096

#: returns the topology of an expression; a function of a module, because it is sent to other processes
Library = Callable[[str], Topology]


def bfb_costs(topology: Topology) -> tuple[int, Fraction]:
    """Return T_L and T_B of an allgather by ``using bfb``.

    Beside parallel links a relaxed schedule can be better. Only synthesis itself finds it.
    """
    plain = _plain(topology)
    if plain[1] == Fraction(topology.num_ranks - 1, topology.num_ranks) or not _has_relaxed_schedule(topology):
        return plain
    real = cost(BFB().run(Problem(topology, Collective("allgather", topology.num_ranks))))
    return (real.T_L, real.T_B) if real.T_B is not None else plain


def _plain(topology: Topology) -> tuple[int, Fraction]:
    """Return T_L and T_B of strict breadth first, by the fastest method that the topology allows."""
    if topology.symmetry is not None and 0 < (topology.degree or 0) <= MOST_TABLED:
        return _symmetric_cost(topology)
    base, times = _line_of(topology)
    if base is not None and _simple(base) and 1 < (base.degree or 0) <= MOST_TABLED:
        return line_cost(base, times)
    if _suits_bits(topology):
        return bits_cost(topology)
    return wide_cost(topology) if (topology.degree or 0) > _NARROW_DEGREE else bfb_cost(topology)


def _suits_bits(topology: Topology) -> bool:
    """Return whether sets of ranks as integers are quicker than tables of all pairs of ranks, or need less memory."""
    degree = topology.degree or 0
    if not 0 < degree <= MOST_LINKS or not topology.is_direct or not topology.is_uniform:
        return False
    return degree <= _BITS_DEGREE or topology.num_ranks > _MOST_TABLED or period_of(topology) <= topology.num_ranks // 2


def _line_of(topology: Topology) -> tuple[Topology | None, int]:
    """Return the base from which this topology was built by line graphs, and their number; None and 0 if it was not."""
    origin = topology.origin
    return (origin.bases[0], origin.times) if origin is not None and origin.name == "line" else (None, 0)


def _simple(topology: Topology) -> bool:
    """Return whether there are no self-loops and no parallel links."""
    ends = _ends(topology)
    return not (topology.src == topology.dst).any() and len(np.unique(ends)) == len(ends)


def _ends(topology: Topology) -> Array:
    return topology.src.astype(np.int64) * topology.num_nodes + topology.dst


def _symmetric_cost(topology: Topology) -> tuple[int, Fraction]:
    """Return T_L and T_B of a topology with a regular symmetry, from rank 0 alone, without a table of all distances."""
    nodes, links = topology.num_ranks, topology.in_links[1].reshape(topology.num_ranks, -1)
    tails = topology.src[links[0]].tolist()
    before = topology.src[links]  # (N, d): the ranks linked to each rank
    hops = _hops_to(before, 0)
    if (hops < 0).any():
        topology.require_connected("an allgather")
    masks = np.zeros(nodes, dtype=np.int64)
    for place, tail in enumerate(tails):
        usable = _hops_to(before, tail) + 1 == hops
        masks |= np.where(usable, 1 << place, 0)
    loads = node_loads(hops[None], masks[None], len(tails))
    return int(hops.max()), Fraction(len(tails) * int(loads.sum()), load_unit(len(tails)) * nodes)


def _hops_to(before: Array, rank: int) -> Array:
    """Return the hops from each rank to ``rank``, -1 without a route."""
    hops = np.full(len(before), -1, dtype=np.int64)
    hops[rank], at, step = 0, np.array([rank]), 0
    while len(at):
        step += 1
        there = before[at].ravel()
        at = np.unique(there[hops[there] < 0])
        hops[at] = step
    return hops


def _has_relaxed_schedule(topology: Topology) -> bool:
    parallel = len(np.unique(_ends(topology))) < topology.num_links
    return parallel and isinstance(topology.symmetry, Translations)


def measure(candidate: Candidate, library: Library) -> list[Candidate]:
    """Return the candidate with the exact costs of ``using bfb``, and with those of ``using expansion`` if they are
    better. Return no candidate if the topology cannot be built or is not connected.

    Raises C0571 if the expression gives another number of nodes or another degree.
    """
    try:
        topology = library(candidate.expression)
    except CollcError:
        return []
    _check(candidate, topology)
    loops = bool((topology.src == topology.dst).any())
    try:
        steps, bandwidth = bfb_costs(topology)
    except CollcError:
        return []  # not strongly connected
    real = attrs.evolve(
        candidate, T_L=steps, T_B=bandwidth, scheduler="bfb", exact=True, slack=Fraction(0),
        both_ways=topology.reverse_links is not None, loops=loops,
        simple=_simple(topology),
    )  # fmt: skip
    if candidate.scheduler == "bfb" or (steps <= candidate.T_L and bandwidth <= candidate.T_B):
        return [real]
    try:
        expanded = expansion_costs(topology)
    except CollcError:
        return [real]  # the base's schedule does not expand
    return [real, attrs.evolve(real, T_L=expanded[0], T_B=expanded[1], scheduler="expansion", diameter=steps)]


def with_reduce_scatter(row: Row, library: Library) -> Row:
    """Return the row with the T_B of a reduce-scatter, which is an allgather on the transpose, reversed."""
    if row.reduce_scatter_T_B is not None:
        return row
    if row.bidirectional:
        return attrs.evolve(row, reduce_scatter_T_B=row.T_B)
    topology = library(row.expression)
    costs = _plain(_transposed(topology)) if row.scheduler == "bfb" else expansion_costs(topology, "reduce-scatter")
    return attrs.evolve(row, reduce_scatter_T_B=costs[1])


def _transposed(topology: Topology) -> Topology:
    """Return the transpose with the symmetry or the line graph's base, as far as computing its costs needs them."""
    transpose = topology.transpose()
    base, times = _line_of(topology)
    if base is not None:
        return attrs.evolve(transpose, origin=Origin("line", (_transposed(base), times)))
    return attrs.evolve(transpose, symmetry=topology.symmetry)


def expansion_costs(topology: Topology, kind: str = "allgather") -> tuple[int, Fraction]:
    """Return T_L and T_B of a collective by ``using expansion``; raise CollcError if there is no such schedule."""
    from ..expansion.expansion import Expansion

    real = cost(Expansion().run(Problem(topology, Collective(kind, topology.num_ranks))))
    assert real.T_B is not None  # all candidates are regular
    return real.T_L, real.T_B


def with_alltoall_rate(row: Row, library: Library) -> Row:
    """Return the row with its all-to-all rate, exact or between bounds; the bounds of a bracket have few digits."""
    if row.alltoall_rate is not None:
        return row
    from .rates import rate_bracket

    lower, upper = rate_bracket(library(row.expression))
    if lower == upper:
        return attrs.evolve(row, alltoall_rate=lower)
    return attrs.evolve(row, alltoall_rate=rounded(lower, up=False), alltoall_upper=rounded(upper, up=True))


def with_narrow_rate(row: Row, library: Library, most_nodes: int) -> Row:
    """Return the row with its all-to-all rate; up to ``most_nodes`` nodes a wide bracket is narrowed, which may take
    seconds.
    """
    row = with_alltoall_rate(row, library)
    lower, upper = row.alltoall_rate, row.alltoall_upper
    if lower is None or upper is None or upper <= lower * _NARROW or row.nodes > most_nodes:
        return row
    from ..synthesis.flow.rate import alltoall_rate

    found = alltoall_rate(library(row.expression))
    upper = min(upper, found.upper)
    return attrs.evolve(row, alltoall_rate=max(lower, found.lower), alltoall_upper=None if found.exact else upper)


def with_alltoall_rates(rows: Sequence[Row], library: Library) -> list[Row]:
    """Return rows with their all-to-all rates."""
    return [with_alltoall_rate(row, library) for row in rows]


def rounded(rate: Fraction, up: bool) -> Fraction:
    """Return a rate near this one, by less than a part in 8,192, with few digits.

    >>> rounded(Fraction(12345, 98765432), up=False), rounded(Fraction(12345, 98765432), up=True)
    (Fraction(2, 16001), Fraction(1, 8000))
    """
    parts = 1
    while parts < _DIGITS * rate:
        parts *= 2
    whole = parts * rate.denominator
    return Fraction(parts, whole // rate.numerator if up else -(-whole // rate.numerator))


def _check(candidate: Candidate | Row, topology: Topology) -> None:
    found = topology.num_ranks, topology.degree
    if found != (candidate.nodes, candidate.degree) or not topology.is_direct:
        raise error(
            "C0571",
            f"`{candidate.expression}` has {found[0]} ranks of degree {found[1]}",
            notes=[f"needed: {candidate.nodes} ranks of degree {candidate.degree}, without switches"],
        )


def row_mistakes(row: Row, library: Library) -> list[str]:
    """Build the topology of a database's row, compute all its values again, and return the differences."""
    try:
        topology = library(row.expression)
        _check(row, topology)
        costs = (bfb_costs if row.scheduler == "bfb" else expansion_costs)(topology)
    except CollcError as problem:
        return [diagnostic.message for diagnostic in problem.diagnostics]
    pairs: dict[str, tuple[object, object]] = {
        "T_L": (row.T_L, costs[0]), "T_B": (row.T_B, costs[1]), "diameter": (row.diameter, _diameter(topology)),
        "bidirectional": (row.bidirectional, topology.reverse_links is not None),
    }  # fmt: skip
    if row.reduce_scatter_T_B is not None:
        again = with_reduce_scatter(attrs.evolve(row, reduce_scatter_T_B=None), library)
        pairs["reduce_scatter_T_B"] = (row.reduce_scatter_T_B, again.reduce_scatter_T_B)
    found = [f"{name} is {real}, the row has {given}" for name, (given, real) in pairs.items() if real != given]
    return [*found, *_rate_mistakes(row, topology)]


def _rate_mistakes(row: Row, topology: Topology) -> list[str]:
    """Return the differences of the all-to-all rate from what is proved now: an exact one is equal, the bounds of a
    bracket are as near as rounding lets them be.
    """
    if row.alltoall_rate is None or row.most_alltoall is None:
        return []
    from .rates import rate_bracket

    lower, upper = rate_bracket(topology)
    slack = 1 + 2 * Fraction(1, _DIGITS)
    exact = row.alltoall_upper is None
    near = lower / slack <= row.alltoall_rate <= lower and upper <= row.most_alltoall <= upper * slack
    if row.alltoall_rate == row.most_alltoall == lower == upper or (near and not exact and lower < upper):
        return []
    proved = str(lower) if lower == upper else f"between {lower} and {upper}"
    return [f"alltoall_rate is {proved}, the row has {rate_text(row)}"]


def _diameter(topology: Topology) -> int | None:
    if topology.symmetry is None and _suits_bits(topology):
        return bits_diameter(topology)
    if topology.symmetry is None or not topology.degree:
        return topology.diameter
    hops = _hops_to(topology.src[topology.in_links[1].reshape(topology.num_ranks, -1)], 0)
    return int(hops.max())
