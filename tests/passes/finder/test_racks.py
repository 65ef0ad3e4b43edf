"""Racks: as full as they may be, with no fewer links between them than the bound and no more than known assignments."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from sampling import examples

from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.topology import Topology
from collc.passes.finder.racks import Racks, assign_racks, links_between, racks_bound


def judged(network: Topology, size: int, rate: Fraction | None = None) -> Racks:
    """Return the racks; fail if they are not what they say. The links are counted without the module's help."""
    found = assign_racks(network, size, rate)
    rack = found.rack.tolist()
    assert len(rack) == network.num_ranks
    assert max(rack) + 1 == -(-network.num_ranks // size)
    assert all(0 < rack.count(each) <= size for each in set(rack))
    assert [rack.index(each) for each in sorted(set(rack))] == sorted(rack.index(each) for each in set(rack))
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    assert found.links == sum(rack[a] != rack[b] for a, b in ends)
    assert found.bound <= found.links
    return found


def least(network: Topology, size: int) -> int:
    """Return the fewest links between two racks, by trying all."""
    nodes = range(network.num_ranks)
    rows = [np.isin(nodes, chosen) for chosen in combinations(nodes, size)]
    return min(links_between(network, row.astype(np.int64)) for row in rows)


@pytest.mark.parametrize(
    ("call", "size", "links"),
    [
        ("torus(8, 8)", 16, 4 * 16), ("torus(16, 16)", 32, 8 * 24), ("torus(8, 8, 16)", 64, 16 * 96),
        ("hypercube(8)", 16, 256 * 4), ("biring(60)", 10, 12), ("uniring(64)", 16, 4), ("complete(12)", 4, 12 * 8),
        ("product(complete(4), biring(8))", 4, 8 * 4 * 2), ("power(uniring(4), 3)", 16, 64),
        ("cayley(cyclic(32), {8, 1})", 4, 32), ("line(complete(5))", 4, 60),
    ],
)  # fmt: skip
def test_known_assignments_are_met(call: str, size: int, links: int) -> None:
    """Boxes of grids (Bollobas and Leader), subcubes (Harper), arcs of rings, cosets, links of one tail."""
    assert judged(topology(call), size).links <= links


@pytest.mark.parametrize(
    "call", ["circulant(12, {2, 3})", "generalized_kautz(2, 12)", 'distance_regular("petersen")', "debruijn(2, 3)",
             "directed_circulant(8, {1, 3})", "cayley(dihedral(6), {1, 6})", "mesh(3, 4)"],
)  # fmt: skip
def test_halves_of_small_networks_are_the_best(call: str) -> None:
    network = topology(call)
    size = network.num_ranks // 2
    best = least(network, size)
    assert racks_bound(network, size) <= best
    assert judged(network, size).links == best


@settings(max_examples=examples(40), deadline=None)
@given(strategies.topologies())
def test_any_network_of_ranks_gets_racks(network: Topology) -> None:
    if network.num_switches:
        with pytest.raises(CollcError, match="C0579"):
            assign_racks(network, 2)
        return
    for size in (1, 2, 3, network.num_ranks):
        judged(network, size)


@settings(max_examples=examples(30), deadline=None)
@given(strategies.connected(min_ranks=4, max_ranks=8))
def test_no_assignment_of_a_connected_network_beats_the_bound(network: Topology) -> None:
    size = network.num_ranks // 2
    found = judged(network, size)
    if 2 * size == network.num_ranks:
        assert found.bound <= least(network, size) <= found.links


@pytest.mark.parametrize("size", [1, 3, 7, 16, 20, 63, 64, 100])
def test_any_number_of_nodes_fits_a_rack(size: int) -> None:
    for call in ("torus(8, 8)", "generalized_kautz(3, 64)", "line(circulant(16, {3, 4}))"):
        judged(topology(call), size)


def test_large_networks_make_no_tables_of_all_pairs() -> None:
    assert judged(topology("torus(80, 80)"), 64).links == 100 * 32
    assert judged(topology("generalized_kautz(4, 9000)"), 100).bound >= 90


def test_a_rate_makes_the_bound_at_least_as_good() -> None:
    network = topology("hamming(2, 3)")
    assert judged(network, 3, Fraction(1, 3)).bound == judged(network, 3).links == 18


def test_a_rack_of_all_nodes_has_no_links_out() -> None:
    found = judged(topology("torus(4, 4)"), 16)
    assert (0, 0) == (found.links, found.bound)


def test_racks_do_not_depend_on_the_run() -> None:
    one, two = (assign_racks(topology("generalized_kautz(4, 200)"), 16) for _ in range(2))
    assert one.rack.tolist() == two.rack.tolist()


def test_an_exchange_repairs_a_planted_fault() -> None:
    """The best assignment with two nodes in each other's rack."""
    from collc.passes.finder.racks import _exchanged, _joined

    network = topology("torus(8, 8)")
    best = judged(network, 16)
    for a, b in ((0, 63), (3, 36), (9, 20)):
        wrong = best.rack.copy()
        wrong[[a, b]] = wrong[[b, a]]
        assert wrong[a] == best.rack[a] or links_between(network, wrong) > best.links
        assert links_between(network, _exchanged(_joined(network), wrong)) == best.links


def test_large_networks_have_racks_that_grow_node_by_node() -> None:
    """Consecutive numbers of this network share no link: all its 20,000 links would leave their racks."""
    network = topology("generalized_kautz(4, 5000)")
    found = assign_racks(network, 40)
    assert found.links == links_between(network, found.rack) < 12_000
    assert np.bincount(found.rack).max() <= 40 and len(np.unique(found.rack)) == 125
