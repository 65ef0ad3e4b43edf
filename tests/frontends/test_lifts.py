"""Polycirculants and networks with inserted ranks: what they link, and the shift that they promise."""

from __future__ import annotations

import networkx as nx
import pytest
from graphs import isomorphic
from hypothesis import assume, given
from hypothesis import strategies as st

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.topology import Topology


@pytest.mark.parametrize(
    ("expression", "graph"),
    [
        ("polycirculant(10, {1, 2}, {4})", nx.petersen_graph()),
        ("polycirculant(14, {1, 13, 5}, {})", nx.heawood_graph()),
        ("polycirculant(24, {1, 2}, {10})", nx.LCF_graph(24, [5, -9, 7, -7, 9, -5], 4)),  # Nauru: GP(12, 5)
        ("polycirculant(9, {2, 3})", nx.circulant_graph(9, [2, 3])),
        ("polycirculant(8, {1, 4}, {1, 4})", nx.circulant_graph(8, [1, 4])),
    ],
)  # fmt: skip
def test_known_graphs_are_polycirculants(expression: str, graph: nx.Graph) -> None:
    assert topology(expression).reverse_links is not None
    assert isomorphic(expression, graph)


@st.composite
def polycirculants(draw: st.DrawFn) -> tuple[int, tuple[tuple[int, ...], ...]]:
    period, copies = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    offset = st.integers(1, period * copies - 1)
    return period * copies, tuple(
        tuple(sorted(draw(st.sets(offset, max_size=3)))) for _ in range(period)
    )  # fmt: skip


def built(n: int, sets: tuple[tuple[int, ...], ...]) -> Topology | None:
    texts = ", ".join(f"{{{', '.join(map(str, own))}}}" for own in sets)
    try:
        return topology(f"polycirculant({n}, {texts})")
    except CollcError as failure:
        assert failure.diagnostics[0].code == "C0311"
        return None


@given(polycirculants())
def test_links_are_those_of_the_definition_and_a_shift_keeps_them(
    drawn: tuple[int, tuple[tuple[int, ...], ...]],
) -> None:
    n, sets = drawn
    net = built(n, sets)
    assume(net is not None)
    assert net is not None
    pairs = sorted(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    named = {(x, (x + a) % n) for x in range(n) for a in sets[x % len(sets)]}
    assert pairs == sorted(named | {(b, a) for a, b in named})
    assert net.src.tolist() == sorted(net.src.tolist())
    shifted = sorted(((a + len(sets)) % n, (b + len(sets)) % n) for a, b in pairs)
    assert shifted == pairs


def test_of_every_link_there_is_one_each_way_and_none_is_given_twice() -> None:
    assert built(10, ((1,), (9,))) is None
    assert built(10, ((5,), (5,))) is None  # a set links both ways
    assert built(12, ((6,), (6,))) is not None  # its own reverse, of each set
    assert built(10, ((3, 7),)) is None


@given(polycirculants())
def test_directed_links_are_those_of_the_definition_alone(drawn: tuple[int, tuple[tuple[int, ...], ...]]) -> None:
    n, sets = drawn
    assume(any(sets))
    texts = ", ".join(f"{{{', '.join(map(str, own))}}}" for own in sets)
    net = topology(f"directed_polycirculant({n}, {texts})")
    links = list(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    assert links == [(x, (x + a) % n) for x in range(n) for a in sets[x % len(sets)]]


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        ("directed_polycirculant(10, {1}, {2}, {3})", "needed a number that divides 10"),
        ("directed_polycirculant(10, {}, {})", "needed at least one"),
        ("directed_polycirculant(10, {1}, {10})", "needed one from 1 to 9"),
        ("directed_polycirculant(10, {1, 1}, {2})", "1 twice"),
    ],
)
def test_offsets_of_no_directed_polycirculant_are_refused(expression: str, needed: str) -> None:
    with pytest.raises(CollcError) as failure:
        topology(expression)
    assert needed in str(failure.value)


@pytest.mark.parametrize(
    ("base", "parts", "new", "degree"),
    [
        ("torus(3, 3)", "0 <-> 1, 5 <-> 8", 1, 4), ("complete(4)", "0 <-> 1, 2 <-> 3", 2, 3),
        ("torus(4, 4)", "0 <-> 1, 5 <-> 9, 10 <-> 11", 3, 4), ("kautz(2, 2)", "0 -> 6, 1 -> 9", 1, 2),
    ],
)  # fmt: skip
def test_inserted_ranks_are_in_the_middle_of_links(base: str, parts: str, new: int, degree: int) -> None:
    before = topology(base)
    parts = parts if base != "kautz(2, 2)" else ", ".join(
        f"{before.src[link]} -> {before.dst[link]}" for link in (0, 5)
    )  # fmt: skip
    after = topology(f"inserted({base}, {{{parts}}}, {new})")
    assert (before.num_ranks + new, degree) == (after.num_ranks, after.degree)
    assert (after.reverse_links is None) == (before.reverse_links is None)
    old, grown = (set(zip(net.src.tolist(), net.dst.tolist(), strict=True)) for net in (before, after))
    cut = old - grown
    assert len(cut) == len(parts.split(", ")) * (2 if "<->" in parts else 1)
    for a, b in cut:
        assert any((a, x) in grown and (x, b) in grown for x in range(before.num_ranks, after.num_ranks))
    assert after.symmetry is None and not (after.src == after.dst).any()


def test_the_first_share_of_the_links_goes_to_the_first_new_rank() -> None:
    net = topology("inserted(biring(6), {3 <-> 4, 0 <-> 1}, 2)")
    links = set(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    assert {(3, 6), (6, 4), (0, 7), (7, 1), (6, 7), (7, 6)} <= links


def test_names_and_bandwidths_stay() -> None:
    net = topology("inserted(without(product(biring(4), biring(3)), {11}), {0 <-> 1})")
    assert net.num_ranks == 12
