"""The all-to-all rate of any topology of the finder: exact or between exact bounds, the same on every machine.

* Networks with a group are exact: a game over generators (:mod:`..synthesis.flow.cayley`).
* So are networks of few kinds of ranks and links, such as line graphs of Cayley digraphs: LP (3) on one of each kind.
* Generalized Kautz digraphs have a bracket by intervals of links, in both directions twice its lower end.
* Other networks have the distance bound from above, and data spread over shortest paths from below.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.topology import Topology

from ..synthesis.flow.cayley import cayley_rate
from ..synthesis.flow.rate import alltoall_rate, commodities_of
from ..synthesis.flow.spread import distance_bound, spread_rate
from ..synthesis.flow.walks import kautz_degree, kautz_rate
from .bits import period_of

__all__ = ["is_quick", "rate_bracket"]

#: Relative gap between bounds. LP (3) that comes so near is mostly exact, at a gap of 10^-5 often not.
_GAP = Fraction(1, 10**7)
#: kinds of sources times kinds of links up to which LP (3) takes about a second
_FEW = 1100
#: so it does up to this number of ranks and of their links, without symmetry
_SMALL, _FEW_LINKS = 64, 4
#: ranks up to which symmetries of generalized Kautz digraphs are looked for
_MOST_COMPARED = 256
#: ranks up to which data is spread from every rank in seconds, and kinds of ranks beyond
_MOST_RANKS, _MOST_KINDS = 4096, 64


def rate_bracket(topology: Topology) -> tuple[Fraction, Fraction]:
    """Return exact bounds around the rate f of LP (3) on a direct topology with links of one bandwidth.

    Equal bounds are the rate itself. Raises C0301 (not strongly connected).

    >>> from collc.frontends import coll
    >>> rate_bracket(coll.topology("torus(3, 3)")), rate_bracket(coll.topology("generalized_kautz(2, 300)"))
    ((Fraction(1, 3), Fraction(1, 3)), (Fraction(2, 2705), Fraction(100, 99573)))
    """
    topology.require_connected("an all-to-all")
    if topology.symmetry is not None:
        return cayley_rate(topology.dst.reshape(topology.num_ranks, -1).astype(np.int64))
    lower = _of_kautz(topology)
    if lower is None or topology.num_ranks <= _MOST_COMPARED:
        commodities = commodities_of(topology)
        if commodities.size <= _FEW or _is_small(topology):
            found = alltoall_rate(topology, _GAP)
            return found.lower, found.upper
        lower = spread_rate(commodities) if lower is None else lower
    return lower, distance_bound(topology)


def is_quick(topology: Topology) -> bool:
    """Return whether :func:`rate_bracket` takes seconds for up to 10,000 ranks, as the topology says how it was built.

    That is so for any topology of a few thousand ranks, and for those of few kinds of ranks: with a group, a short
    period, a generalized Kautz digraph, and line graphs of these.

    >>> from collc.frontends import coll
    >>> [is_quick(coll.topology(call)) for call in ("torus(80, 80)", "inserted(torus(80, 80), {0 <-> 1, 2 <-> 3})")]
    [True, False]
    """
    if topology.num_ranks <= _MOST_RANKS or topology.symmetry is not None or kautz_degree(topology) is not None:
        return True
    origin = topology.origin
    if origin is not None and origin.bases and origin.name in ("line", "bidirectional"):
        base = origin.bases[0]
        return base.symmetry is not None or kautz_degree(base) is not None
    return period_of(topology) <= _MOST_KINDS


def _is_small(topology: Topology) -> bool:
    return topology.num_ranks <= _SMALL and (topology.degree or 0) <= _FEW_LINKS


def _of_kautz(topology: Topology) -> Fraction | None:
    """Return a rate that a routing reaches, if all links, or those of either direction, are a generalized Kautz
    digraph's. Both directions carry as much each.
    """
    degree = kautz_degree(topology)
    if degree is not None:
        return kautz_rate(topology.num_ranks, degree)
    origin = topology.origin
    if origin is None or origin.name != "bidirectional" or not origin.bases:
        return None
    degree = kautz_degree(origin.bases[0])
    return None if degree is None else 2 * kautz_rate(topology.num_ranks, degree)
