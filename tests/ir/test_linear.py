"""Groups of matrices over finite fields: the field's axioms, orders, known isomorphisms, and symmetric networks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import collc
from collc.ir.group import Group, Linear, parse_group
from collc.ir.linear import field_of

PRIME_POWERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]


def element_orders(group: Group) -> list[int]:
    """Return how many elements have order 1, 2, 3, ..."""
    power, found = np.arange(group.order), np.zeros(group.order, dtype=np.int64)
    for exponent in range(1, 200):
        found[(power == 0) & (found == 0)] = exponent
        power = group.multiply(power, np.arange(group.order))
    return np.trim_zeros(np.bincount(found)[1:], "b").tolist()


@pytest.mark.parametrize("size", [*PRIME_POWERS, 49, 64])
def test_a_field_is_one(size: int) -> None:
    field, x = field_of(size), np.arange(size)
    assert np.array_equal(field.plus[0], x) and np.array_equal(field.times[1], x) and not field.times[0].any()
    for table in (field.plus, field.times):
        assert np.array_equal(table, table.T)
        assert np.array_equal(table[table], table[x[:, None, None], table])  # associative
    both = field.plus[field.times[:, :, None], field.times[:, None, :]]
    assert np.array_equal(field.times[:, field.plus], both)  # distributive
    assert not field.plus[x, field.negative].any()
    assert (field.times[x, field.inverse][1:] == 1).all()


@pytest.mark.parametrize("size", [0, 1, 6, 12, 36, 65, 67, 81])
def test_other_sizes_are_no_fields(size: int) -> None:
    with pytest.raises(ValueError, match="prime power"):
        field_of(size)


@pytest.mark.parametrize("q", PRIME_POWERS[:12])
@pytest.mark.parametrize("kind", ["psl", "pgl", "sl"])
def test_the_order_is_the_number_of_matrices(kind: str, q: int) -> None:
    group = Linear(kind, q)
    assert group.order == q * (q - 1) * (q + 1) // (2 if kind == "psl" and q % 2 else 1)
    x = np.arange(group.order)
    for other in (1, group.order - 1):  # multiplication by an element is a permutation
        assert np.array_equal(np.sort(group.multiply(x, other)), x)
        assert np.array_equal(np.sort(group.multiply(other, x)), x)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("psl(2, 2)", "symmetric(3)"), ("psl(2, 3)", "alternating(4)"), ("pgl(2, 3)", "symmetric(4)"),
        ("psl(2, 4)", "alternating(5)"), ("psl(2, 5)", "alternating(5)"), ("pgl(2, 5)", "symmetric(5)"),
        ("psl(2, 9)", "alternating(6)"), ("sl(2, 4)", "pgl(2, 4)"),
    ],
)  # fmt: skip
def test_groups_that_are_known_to_be_the_same_look_the_same(one: str, two: str) -> None:
    assert element_orders(parse_group(one)) == element_orders(parse_group(two))


def test_element_orders_are_those_of_the_tables() -> None:
    assert element_orders(Linear("psl", 7)) == [1, 21, 56, 42, 0, 0, 48]
    assert element_orders(Linear("sl", 3)) == [1, 1, 8, 6, 0, 8]


@pytest.mark.parametrize("group", ["psl(2, 4)", "pgl(2, 5)", "sl(2, 3)", "psl(2, 7)"])
def test_a_network_of_it_is_vertex_transitive(group: str) -> None:
    """By the distances that another library computes: every node has as many nodes at each distance."""
    order = parse_group(group).order
    topology = collc.topology(f"cayley({group}, {{1, 2, {order - 1}}})")
    graph = nx.DiGraph(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    if not nx.is_strongly_connected(graph):
        pytest.fail("the set does not generate the group")
    layers = {
        tuple(np.bincount(list(distances.values())).tolist())
        for _, distances in nx.all_pairs_shortest_path_length(graph)
    }
    assert len(layers) == 1
