"""Distance-regular graphs by name, built from their definitions: Table 8 of the direct-connect paper, and more.

Breadth-first schedules on them are bandwidth-optimal (appendix F.3 of the paper), and many have few ranks more than
their diameter allows at least. The names follow Brouwer, Cohen and Neumaier, Distance-Regular Graphs, 1989.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import error, nearest
from collc.ir.topology import Topology

from ._geometries import biaffine_plane, hexagon, projective_plane, quadrangle
from ._graphs import (
    at_distance,
    cayley_sum,
    edge_graph,
    generalized_petersen,
    hamiltonian,
    linked,
    subsets,
    without_matching,
)
from ._sizes import DomainError

__all__ = ["NAMES", "distance_regular"]


@attrs.frozen
class Known:
    """A graph: its vertices, degree and diameter, what it is, and what makes its edges."""

    ranks: int
    degree: int
    diameter: int
    summary: str
    edges: Callable[[], Array]


def _disjoint(a: frozenset[int], b: frozenset[int]) -> bool:
    return not a & b


def _odd(k: int) -> Array:
    """O_k: the (k-1)-subsets of 2k-1 things, joined where disjoint."""
    return subsets(2 * k - 1, k - 1, _disjoint)


def _doubled(edges: Array) -> Array:
    """The bipartite double: two copies of every vertex, joined across as the vertices are."""
    n = int(edges.max()) + 1
    across = np.array([0, n])
    return np.concatenate([edges + across, edges[:, ::-1] + across])


def _johnson(n: int, k: int) -> Array:
    return subsets(n, k, lambda a, b: len(a & b) == k - 1)


def _cube(n: int) -> Array:
    return cayley_sum([2] * n, np.eye(n, dtype=np.int64))


def _folded_cube(n: int) -> Array:
    return cayley_sum([2] * (n - 1), np.vstack([np.eye(n - 1, dtype=np.int64), np.ones(n - 1, dtype=np.int64)]))


def _hamming(n: int, q: int) -> Array:
    return cayley_sum([q] * n, np.kron(np.eye(n, dtype=np.int64), np.arange(1, q)[:, None]))


def _paley(p: int) -> Array:
    return cayley_sum([p], [[i * i % p] for i in range(1, (p + 1) // 2)])


def _icosahedron() -> Array:
    """Two poles and two pentagons turned against each other."""
    upper, lower = [1 + i for i in range(5)], [6 + i for i in range(5)]
    edges = [(0, a) for a in upper] + [(11, b) for b in lower]
    for i in range(5):
        edges += [(upper[i], upper[(i + 1) % 5]), (lower[i], lower[(i + 1) % 5])]
        edges += [(upper[i], lower[i]), (upper[i], lower[(i + 1) % 5])]
    return np.array(edges)


def _coxeter() -> Array:
    """The triples of seven points that are no lines of the Fano plane, joined where disjoint."""
    plane = projective_plane(2)
    lines = {frozenset(plane[plane[:, 1] == line, 0].tolist()) for line in range(7, 14)}
    triples = [frozenset(t) for t in combinations(range(7), 3) if frozenset(t) not in lines]
    return np.array([(i, j) for (i, a), (j, b) in combinations(enumerate(triples), 2) if not a & b])


def _hoffman_singleton() -> Array:
    """Five pentagons and five pentagrams: vertex j of pentagon h is joined to vertex h*i + j of pentagram i."""
    five = range(5)
    edges = [(5 * h + j, 5 * h + (j + 1) % 5) for h in five for j in five]
    edges += [(25 + 5 * i + j, 25 + 5 * i + (j + 2) % 5) for i in five for j in five]
    edges += [(5 * h + j, 25 + 5 * i + (h * i + j) % 5) for h in five for i in five for j in five]
    return np.array(edges)


def _biggs_smith() -> Array:
    """Seventeen letters H: the ends' copies make cycles in strides of 1, 4 on one side and 2, 8 on the other."""
    copies = range(17)
    edges = [(6 * i + a, 6 * i + b) for i in copies for a, b in ((0, 1), (0, 2), (0, 3), (1, 4), (1, 5))]
    strides = {2: 1, 3: 4, 4: 2, 5: 8}
    return np.array(edges + [(6 * i + end, 6 * ((i + s) % 17) + end) for i in copies for end, s in strides.items()])


_TABLE_8 = {
    "octahedron": Known(6, 4, 2, "J(4,2), pairs of four things that share one", lambda: _johnson(4, 2)),
    "paley9": Known(9, 4, 2, "H(2,3), the Paley graph of nine elements", lambda: _hamming(2, 3)),
    "k55-minus-matching": Known(10, 4, 3, "K_5,5 without a perfect matching", lambda: without_matching(5)),
    "heawood-distance-3": Known(
        14, 4, 3, "distance-3 graph of the Heawood graph: points and lines not on each other",
        lambda: at_distance(projective_plane(2), 3),
    ),
    "petersen-line": Known(15, 4, 3, "line graph of the Petersen graph", lambda: edge_graph(_odd(3))),
    "4-cube": Known(16, 4, 4, "H(4,2)", lambda: _cube(4)),
    "heawood-line": Known(21, 4, 3, "line graph of the Heawood graph", lambda: edge_graph(projective_plane(2))),
    "pg(2,3)": Known(26, 4, 3, "incidence graph of the projective plane", lambda: projective_plane(3)),
    "ag(2,4)-minus-class": Known(
        32, 4, 4, "incidence graph of the affine plane without a class of parallel lines", lambda: biaffine_plane(4)
    ),
    "odd4": Known(35, 4, 3, "odd graph O_4, triples of seven joined where disjoint", lambda: _odd(4)),
    "tutte8-line": Known(45, 4, 4, "line graph of Tutte's 8-cage", lambda: edge_graph(quadrangle(2))),
    "doubled-odd4": Known(70, 4, 7, "bipartite double of the odd graph O_4", lambda: _doubled(_odd(4))),
    "gq(3,3)": Known(80, 4, 4, "incidence graph of the generalized quadrangle W(3)", lambda: quadrangle(3)),
    "tutte12-line": Known(189, 4, 6, "line graph of Tutte's 12-cage", lambda: edge_graph(hexagon(2))),
    "gh(3,3)": Known(728, 4, 6, "incidence graph of the split Cayley hexagon H(3)", lambda: hexagon(3)),
}  # fmt: skip

_OF_DEGREE_3 = {
    "cube": Known(8, 3, 3, "H(3,2)", lambda: _cube(3)),
    "petersen": Known(10, 3, 2, "odd graph O_3", lambda: _odd(3)),
    "heawood": Known(14, 3, 3, "incidence graph of PG(2,2), the 6-cage", lambda: projective_plane(2)),
    "pappus": Known(18, 3, 4, "incidence graph of AG(2,3) without a parallel class", lambda: biaffine_plane(3)),
    "dodecahedron": Known(20, 3, 5, "GP(10,2)", lambda: generalized_petersen(10, 2)),
    "desargues": Known(20, 3, 5, "bipartite double of the Petersen graph", lambda: _doubled(_odd(3))),
    "coxeter": Known(28, 3, 4, "triples of the Fano plane's points that are no lines", _coxeter),
    "tutte8": Known(30, 3, 4, "incidence graph of GQ(2,2), the 8-cage", lambda: quadrangle(2)),
    "foster": Known(90, 3, 8, "threefold cover of the 8-cage", lambda: hamiltonian([17, -9, 37, -37, 9, -17], 15)),
    "biggs-smith": Known(102, 3, 7, "seventeen letters H with their ends on four cycles", _biggs_smith),
    "tutte12": Known(126, 3, 6, "incidence graph of GH(2,2), the 12-cage", lambda: hexagon(2)),
}

_OF_OTHER_DEGREES = {
    "icosahedron": Known(12, 5, 3, "two pentagons and two poles", _icosahedron),
    "k66-minus-matching": Known(12, 5, 3, "K_6,6 without a perfect matching", lambda: without_matching(6)),
    "folded-5-cube": Known(16, 5, 2, "the Clebsch graph", lambda: _folded_cube(5)),
    "5-cube": Known(32, 5, 5, "H(5,2)", lambda: _cube(5)),
    "pg(2,4)": Known(42, 5, 3, "incidence graph of the projective plane", lambda: projective_plane(4)),
    "ag(2,5)-minus-class": Known(50, 5, 4, "as ag(2,4)-minus-class", lambda: biaffine_plane(5)),
    "odd5": Known(126, 5, 4, "odd graph O_5", lambda: _odd(5)),
    "gq(4,4)": Known(170, 5, 4, "incidence graph of W(4)", lambda: quadrangle(4)),
    "doubled-odd5": Known(252, 5, 9, "bipartite double of O_5", lambda: _doubled(_odd(5))),
    "j(5,2)": Known(10, 6, 2, "Johnson graph: pairs of five things that share one", lambda: _johnson(5, 2)),
    "paley13": Known(13, 6, 2, "Paley graph: differences are squares modulo 13", lambda: _paley(13)),
    "shrikhande": Known(
        16, 6, 2, "Z_4 x Z_4 in three directions", lambda: cayley_sum([4, 4], [[0, 1], [1, 0], [1, 1]])
    ),
    "h(3,3)": Known(27, 6, 3, "Hamming graph", lambda: _hamming(3, 3)),
    "folded-6-cube": Known(32, 6, 3, "6-cube with opposite vertices made one", lambda: _folded_cube(6)),
    "pg(2,5)": Known(62, 6, 3, "incidence graph of the projective plane", lambda: projective_plane(5)),
    "gq(5,5)": Known(312, 6, 4, "incidence graph of W(5)", lambda: quadrangle(5)),
    "odd6": Known(462, 6, 5, "odd graph O_6", lambda: _odd(6)),
    "hoffman-singleton": Known(50, 7, 2, "the Moore graph of degree 7", _hoffman_singleton),
    "folded-7-cube": Known(64, 7, 3, "7-cube with opposite vertices made one", lambda: _folded_cube(7)),
    "ag(2,7)-minus-class": Known(98, 7, 4, "as ag(2,4)-minus-class", lambda: biaffine_plane(7)),
    "paley17": Known(17, 8, 2, "Paley graph: differences are squares modulo 17", lambda: _paley(17)),
    "pg(2,7)": Known(114, 8, 3, "incidence graph of the projective plane", lambda: projective_plane(7)),
    "ag(2,8)-minus-class": Known(128, 8, 4, "as ag(2,4)-minus-class", lambda: biaffine_plane(8)),
    "gq(7,7)": Known(800, 8, 4, "incidence graph of W(7)", lambda: quadrangle(7)),
}  # fmt: skip

#: name -> graph; Table 8 first, then those of degree 3, then others by degree
NAMES: dict[str, Known] = {**_TABLE_8, **_OF_DEGREE_3, **_OF_OTHER_DEGREES}


def distance_regular(name: str) -> Topology:
    """Return the distance-regular graph of a name in :data:`NAMES`, with links both ways.

    Upper case and blanks do not count. Raises C0321 for other names.

    >>> net = distance_regular("PG(2,3)")
    >>> net.num_ranks, net.degree, net.diameter
    (26, 4, 3)
    """
    return linked(name, _known(name).edges())


def distance_regular_size(name: str) -> tuple[int, int]:
    known = _known(name)
    return known.ranks, known.ranks * known.degree


def _known(name: str) -> Known:
    key = "".join(name[:200].lower().split())
    if key not in NAMES:
        message, notes = f"no distance-regular graph is called `{name[:60]}` here", [f"there are {', '.join(NAMES)}"]
        hint = nearest(key, NAMES) or "`collc topologies distance_regular` says what they are"
        raise DomainError(error("C0321", message, notes=notes, hint=hint).diagnostics, at="name")
    return NAMES[key]
