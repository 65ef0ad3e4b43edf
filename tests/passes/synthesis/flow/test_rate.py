"""The all-to-all rate against LP (3) itself, against the published tables, and with and without symmetry."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lp import lp3
from nets import circulant, complete, de_bruijn, generalized_kautz, hypercube, one_way_ring
from nets import torus as plain_torus
from sampling import examples
from strategies import connected, families, regular, star, torus, translations

from collc.frontends.coll.families.cayley import biring, complete_bipartite, uniring
from collc.frontends.coll.families.operators import line, power, product
from collc.ir.diagnostic import CollcError
from collc.ir.group import Metacyclic
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.flow import columns
from collc.passes.synthesis.flow.basis import solve_sparse
from collc.passes.synthesis.flow.game import Game
from collc.passes.synthesis.flow.rate import Rate, alltoall_rate, cayley_rate, rate_bound

pytestmark = pytest.mark.slow


def agrees(rate: Rate, value: float) -> bool:
    """Whether the bracket holds what a solver says in floats, and is narrow."""
    narrow = rate.upper <= rate.lower * Fraction(10**5 + 1, 10**5)
    return narrow and float(rate.lower) * (1 - 1e-7) <= value <= float(rate.upper) * (1 + 1e-7)


# ---- against the linear program


@settings(max_examples=examples(30))
@given(st.one_of(connected(min_ranks=2, max_ranks=7, extra=10), regular(), families()))
def test_the_bracket_holds_the_optimum_of_lp_3(topology: Topology) -> None:
    assert agrees(alltoall_rate(topology), lp3(topology))


@settings(max_examples=examples(15))
@given(connected(min_ranks=2, max_ranks=6), st.data())
def test_links_that_differ_have_relative_capacities(topology: Topology, data: st.DataObject) -> None:
    kinds = (LinkClass(Fraction(2)), LinkClass(Fraction(3)), LinkClass(Fraction(5, 2)))
    chosen = data.draw(st.lists(st.integers(0, 2), min_size=topology.num_links, max_size=topology.num_links))
    mixed = attrs.evolve(topology, link_class=chosen, classes=kinds)
    assert agrees(alltoall_rate(mixed), lp3(mixed))


def test_small_networks_have_exact_rates() -> None:
    for topology, rate in (
        (plain_torus(4, 4), Fraction(1, 8)), (complete(5), Fraction(1)), (one_way_ring(6), Fraction(1, 15)),
        (generalized_kautz(4, 64), Fraction(15, 691)), (de_bruijn(4, 4), Fraction(37, 9165)), (star(4), Fraction(1, 3)),
        (plain_torus(3, 3, 2), Fraction(1, 6)),
    ):  # fmt: skip
        found = alltoall_rate(topology)
        assert found.exact and found.value == rate, topology.name


def test_the_check_can_fail() -> None:
    """Another network's optimum is not in the bracket."""
    ring = one_way_ring(5)
    assert not agrees(alltoall_rate(ring), lp3(circulant(5, 1)))


def test_capacities_by_generator() -> None:
    kinds = (LinkClass(Fraction(1)), LinkClass(Fraction(3)))
    wide = attrs.evolve(torus(3, 5), link_class=[0, 1, 0, 1] * 15, classes=kinds)
    found = alltoall_rate(wide)
    assert found.value == alltoall_rate(attrs.evolve(wide, symmetry=None)).value
    assert agrees(found, lp3(wide))


# ---- with and without symmetry


@settings(max_examples=examples(30))
@given(
    st.sampled_from([Metacyclic(7, 3, 2), Metacyclic(5, 4, 2), Metacyclic(9, 2, -1), Metacyclic(12, 1, 1)]),
    st.lists(st.integers(1, 1000), min_size=2, max_size=4),
)
def test_cayley_digraphs_have_the_rate_of_their_links(group: Metacyclic, numbers: list[int]) -> None:
    generators = np.array([1 + x % (group.order - 1) for x in numbers])
    heads = group.multiply(np.arange(group.order)[:, None], generators)
    ranks = np.repeat(np.arange(group.order), len(generators))
    plain = Topology("plain", group.order, ranks, heads.ravel())
    lower, upper = cayley_rate(heads)
    assert lower == upper
    if not plain.is_connected:
        assert lower == 0
        return
    assert agrees(alltoall_rate(plain), float(lower))
    assert alltoall_rate(attrs.evolve(plain, symmetry=group)).value == lower


@pytest.mark.parametrize(
    "group", [Metacyclic(7, 3, 2), Metacyclic(9, 2, -1), Metacyclic(5, 4, 2), Metacyclic(13, 1, 1)]
)
@pytest.mark.parametrize("numbers", [(1, 8), (2, 9), (3, 3), (1, 2)])
def test_a_generator_and_its_inverse_are_one_class(group: Metacyclic, numbers: tuple[int, ...]) -> None:
    """Sets that hold all inverses, also twice, and one with another capacity for one direction only."""
    inverse = {g: x for x in range(group.order) for g in range(group.order) if group.multiply(g, x) == 0}
    chosen = [1 + x % (group.order - 1) for x in numbers]
    generators = np.array([*chosen, *(inverse[g] for g in chosen)])
    heads = group.multiply(np.arange(group.order)[:, None], generators)
    plain = Topology("plain", group.order, np.repeat(np.arange(group.order), len(generators)), heads.ravel())
    if not plain.is_connected:
        assert cayley_rate(heads) == (0, 0)
        return
    lower, upper = cayley_rate(heads)
    assert lower == upper and agrees(Rate(lower, upper), lp3(plain))
    kinds = (LinkClass(Fraction(1)), LinkClass(Fraction(2)))
    widths = [Fraction(2), *[Fraction(1)] * (len(generators) - 1)]
    classes = [1, *[0] * (len(generators) - 1)] * group.order
    lower, upper = cayley_rate(heads, widths)
    assert lower == upper and agrees(Rate(lower, upper), lp3(attrs.evolve(plain, link_class=classes, classes=kinds)))


def test_a_gap_may_be_left() -> None:
    heads = (np.arange(1024)[:, None] + np.array([449, 962, 508, 567])) % 1024
    (exact, same), (lower, upper) = cayley_rate(heads), cayley_rate(heads, gap=Fraction(1, 10))
    assert exact == same == Fraction(77, 224512)
    assert lower <= exact <= upper <= lower * Fraction(11, 10)


def test_self_loops_carry_nothing() -> None:
    loops = translations([6], [[0], [1], [0]], "loops")
    assert alltoall_rate(loops).value == alltoall_rate(attrs.evolve(loops, symmetry=None)).value == Fraction(1, 15)


# ---- the tables of the paper


@pytest.mark.parametrize(
    ("topology", "printed"),
    [
        (line(complete_bipartite(4)), "5.71e-02"),
        (generalized_kautz(4, 64), "2.17e-02"),
        (line(complete_bipartite(4), 2), "9.89e-03"),
        (product(biring(8), uniring(4), uniring(4)), "5.21e-03"),
        (de_bruijn(4, 4), "4.04e-03"),
        (line(complete_bipartite(4), 3), "1.88e-03"),
        (line(product(power(uniring(4), 3), uniring(2))), "1.12e-03"),
        (product(power(uniring(4), 3), uniring(8)), "5.58e-04"),
        (power(product(uniring(4), uniring(8)), 2), "2.79e-04"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_published_rates(topology: Topology, printed: str) -> None:
    rate = alltoall_rate(topology)
    assert f"{float(rate.lower):.2e}" == f"{float(rate.upper):.2e}" == printed


@pytest.mark.parametrize(
    ("ranks", "printed"),
    [(32, "5.80e-02"), (64, "2.42e-02"), (128, "1.00e-02"), (256, "4.39e-03"), (512, "1.90e-03"), (1024, "8.57e-04")],
)
def test_published_bounds(ranks: int, printed: str) -> None:
    assert f"{float(rate_bound(ranks, 4)):.2e}" == printed


@settings(max_examples=examples(20))
@given(regular())
def test_no_network_beats_the_bound(topology: Topology) -> None:
    degree = topology.degree
    assert degree is not None
    assert alltoall_rate(topology).lower <= rate_bound(topology.num_ranks, degree)


# ---- parts


@given(st.integers(2, 5), st.data())
def test_games_prove_themselves(classes: int, data: st.DataObject) -> None:
    load = st.lists(st.integers(0, 30), min_size=classes, max_size=classes).filter(any)
    game = Game(classes)
    for row in data.draw(st.lists(load, min_size=1, max_size=8)):
        game.join(row)
        value = game.solve()
    mix, prices = game.mix, game.prices
    assert sum(mix) == 1 and min(mix) >= 0 and min(prices) >= 0
    loads = [sum((m * row[k] for m, row in zip(mix, game.routings, strict=True)), Fraction(0)) for k in range(classes)]
    cheapest = min(sum(p * x for p, x in zip(prices, row, strict=True)) for row in game.routings)
    assert max(loads) == value == Fraction(cheapest, sum(prices))


@given(st.data())
def test_sparse_systems(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 6))
    entry = st.integers(-3, 3).map(Fraction)
    matrix = [[data.draw(entry) for _ in range(size)] for _ in range(size)]
    right = [data.draw(entry) for _ in range(size)]
    solution = solve_sparse([{j: x for j, x in enumerate(row) if x} for row in matrix], right)
    if solution is None:
        assert abs(np.linalg.det(np.array(matrix, dtype=float))) < 1e-6
    else:
        assert [sum(a * x for a, x in zip(row, solution, strict=True)) for row in matrix] == right


def test_large_networks_get_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the search ends, both sides hold: central prices, and multiplicative weights alone."""
    topology, rate = generalized_kautz(3, 20), alltoall_rate(generalized_kautz(3, 20))
    assert rate.exact
    for limit, gap in (("_LARGE", Fraction(1, 10**4)), ("_MOST_LOADS", Fraction(1, 10))):
        monkeypatch.setattr(columns, limit, 0)
        found = alltoall_rate(topology, gap=gap)
        assert found.lower <= rate.lower <= found.upper <= found.lower * (1 + gap)


@settings(max_examples=examples(3))
@given(st.integers(2, 4))
def test_hypercubes_and_their_links(dimension: int) -> None:
    assert alltoall_rate(hypercube(dimension)).value == Fraction(2, 2**dimension)


# ---- errors


def test_one_rank_has_no_rate() -> None:
    with pytest.raises(CollcError, match="C0560"):
        alltoall_rate(Topology("one", 1, [], []))


def test_every_rank_must_reach_every_other() -> None:
    with pytest.raises(CollcError, match="C0301"):
        alltoall_rate(Topology("path", 2, [0], [1]))
