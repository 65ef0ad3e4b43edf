"""Quotients of generalized polygons by polarities: order, degree, diameter, and what theorems say of their cycles."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from collc.frontends.coll import topology
from collc.frontends.coll.families import polarities
from collc.ir.diagnostic import CollcError

#: (n, q) -> the absolute points: an oval or a line, an ovoid, a unital-like set (Van Maldeghem, 7.2 and 7.6)
ABSOLUTE = {
    (3, 2): 3, (3, 3): 4, (3, 4): 5, (3, 5): 6, (3, 7): 8, (3, 8): 9, (3, 9): 10, (4, 2): 5, (4, 8): 65, (6, 3): 28,
}  # fmt: skip


def quotient(n: int, q: int) -> np.ndarray:
    """Return which ranks the polarity links, shape (N, N): absolute points to themselves."""
    heads = polarities._neighbours(n, q)
    linked = np.zeros((len(heads), len(heads)), dtype=bool)
    linked[np.arange(len(heads))[:, None], heads] = True
    return linked


@pytest.mark.parametrize(("n", "q"), ABSOLUTE)
def test_the_published_order_degree_and_diameter(n: int, q: int) -> None:
    net = topology(f"polarity({n}, {q})")
    assert net.num_ranks == sum(q**k for k in range(n))
    assert net.degree == q + 1 and net.diameter == n - 1
    assert net.reverse_links is not None
    ends = list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    assert len(set(ends)) == len(ends) == net.num_ranks * (q + 1)
    assert sum(a == b for a, b in ends) == ABSOLUTE[n, q] % 2


@pytest.mark.parametrize(("n", "q"), ABSOLUTE)
def test_the_polarity_has_as_many_absolute_points_as_proved_and_no_two_are_linked(n: int, q: int) -> None:
    linked = quotient(n, q)
    assert (linked == linked.T).all() and (linked.sum(axis=1) == q + 1).all()
    own = np.flatnonzero(linked.diagonal())
    assert len(own) == ABSOLUTE[n, q]
    assert linked[np.ix_(own, own)].sum() == len(own)


@pytest.mark.parametrize(("n", "q"), ABSOLUTE)
def test_points_and_lines_are_a_generalized_polygon(n: int, q: int) -> None:
    """The incidence graph has diameter n and girth 2 n, which makes it a generalized n-gon (Feit and Higman)."""
    linked = quotient(n, q)
    count = len(linked)
    if count > 400:
        linked = linked.astype(np.float32)
        within, paths = np.eye(count, dtype=np.float32), linked
        assert (linked @ linked - (q + 1) * within <= 1).all()  # no two points on two lines
        assert ((within + paths @ paths @ paths) > 0).all()  # a point and a line: at most three apart
        return
    point, line = np.nonzero(linked)
    graph = nx.Graph(zip(point.tolist(), (line + count).tolist(), strict=True))
    assert nx.diameter(graph) == n
    assert nx.girth(graph) == 2 * n


@pytest.mark.parametrize("q", [3, 4, 5, 7])
def test_planes_have_no_squares(q: int) -> None:
    """Two points have one common line, so without the cables of absolute points no square (Erdos, Renyi, Brown)."""
    linked = quotient(3, q)
    np.fill_diagonal(linked, val=False)
    common = linked.astype(int) @ linked.astype(int)
    np.fill_diagonal(common, 0)
    assert common.max() == 1


@pytest.mark.parametrize("expression", ["polarity(5, 2)", "polarity(3, 6)", "polarity(4, 4)", "polarity(6, 2)"])
def test_orders_without_a_polarity_are_refused_with_a_hint(expression: str) -> None:
    with pytest.raises(CollcError) as caught:
        topology(expression)
    (problem,) = caught.value.diagnostics
    assert problem.code == "C0311" and problem.hint is not None and "write" in problem.hint


def test_large_orders_are_known_to_be_large() -> None:
    for expression in ("polarity(3, 1000003)", "polarity(6, 27)"):
        with pytest.raises(CollcError) as caught:
            topology(expression)
        assert caught.value.diagnostics[0].code == "C0310"
