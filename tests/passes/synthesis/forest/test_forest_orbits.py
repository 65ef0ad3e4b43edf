"""Orbit trees: spanning, shallow, and every link as busy as its bandwidth lets all be."""

from __future__ import annotations

from fractions import Fraction

import attrs
import numpy as np
import pytest
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collc.frontends.coll.families.groups import cayley
from collc.ir.collective import Collective
from collc.ir.group import Group, Metacyclic, Permutations
from collc.ir.schedule import Forest
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify_forest
from collc.passes.synthesis.forest.orbits import OrbitForest, orbit_forest


def checked(topology: Topology, found: OrbitForest | None) -> OrbitForest:
    """Verify a forest and its loads: in proportion to bandwidth, every rank receiving over all links all the time."""
    assert found is not None
    forest = Forest(
        topology, Collective("allgather", topology.num_ranks), found.trees, found.root, found.weight, found.tree,
        found.parent, found.child, found.link,
    )  # fmt: skip
    verify_forest(forest)
    assert forest.height == found.height
    load = np.zeros(topology.num_links, dtype=np.int64)
    np.add.at(load, found.link, found.weight[found.tree])
    into_rank_0 = sum(
        (topology.bandwidth(link) for link in np.flatnonzero(topology.dst == 0) if topology.src[link]), Fraction(0)
    )
    for link in range(topology.num_links):
        carries = topology.src[link] != topology.dst[link]
        share = found.trees * (topology.num_ranks - 1) * topology.bandwidth(link) / into_rank_0
        assert load[link] == found.load[link % topology.degree] == share * carries
    return found


def circulant(ranks: int, *steps: int) -> Topology:
    return strategies.translations([ranks], [[step] for step in steps], "circulant")


KNOWN = [  # topology, trees at a rank, load of every link
    (strategies.torus(8, 8), 4, 63),
    (strategies.hypercube(6), 2, 21),
    (strategies.torus(9), 1, 4),
    (strategies.complete(7), 1, 1),
    (strategies.torus(4, 6), 4, 23),
    (strategies.torus(3, 3, 2), 6, 17),
    (strategies.torus(3, 2), 4, 5),
    (strategies.uniring(5), 1, 4),
    (circulant(64, 1, -1, 10, -10), 4, 63),
    (circulant(11, 0, 1, 3), 1, 5),  # with a loop at every rank
]


@pytest.mark.parametrize(("topology", "trees", "load"), KNOWN, ids=lambda value: getattr(value, "name", None))
def test_known_networks_at_their_diameter(topology, trees, load):
    found = checked(topology, orbit_forest(topology))
    assert found.trees == trees and set(found.load) <= {load, 0} and found.height == topology.diameter


@pytest.mark.parametrize("topology", [strategies.torus(8, 8), strategies.hypercube(6)], ids=["torus", "cube"])
def test_more_trees(topology):
    """As many trees as asked for, where their number allows equal loads."""
    found = checked(topology, orbit_forest(topology, trees=12))
    assert found.trees == 12 and orbit_forest(topology, trees=1) is None


@settings(deadline=None)
@given(st.integers(3, 40), st.sets(st.integers(1, 39), min_size=1, max_size=5), st.booleans())
def test_circulants(ranks, steps, both):
    """Every connected circulant without parallel links, one-way ones too."""
    steps = sorted({step % ranks for step in steps} | {-step % ranks for step in steps if both})
    topology = circulant(ranks, *steps)
    assume(0 not in steps and topology.is_connected)
    checked(topology, orbit_forest(topology))


@settings(deadline=None)
@given(st.integers(3, 20), st.lists(st.integers(1, 19), min_size=1, max_size=4))
def test_circulants_with_parallel_links(ranks, steps):
    """Here another cut may be smaller, or trees of more than one shape be needed; what is found is right."""
    topology = circulant(ranks, *steps)
    found = orbit_forest(topology)
    if found is not None:
        checked(topology, found)


@pytest.mark.parametrize(
    ("group", "generators"),
    [(Metacyclic(7, 3, 2), (1, 3, 5)), (Metacyclic(8, 2, -1), (1, 2, 14)), (Permutations(4), (1, 3, 8))],
    ids=["metacyclic", "dihedral", "symmetric"],
)
def test_groups_that_do_not_commute(group: Group, generators: tuple[int, ...]):
    topology = cayley(group, generators)
    checked(topology, orbit_forest(topology))


def weighted(topology: Topology, *bandwidths: int) -> Topology:
    """Give the links at place p bandwidth p of those given."""
    kinds = tuple(LinkClass(Fraction(b)) for b in bandwidths)
    return attrs.evolve(topology, classes=kinds, link_class=np.tile(np.arange(len(kinds)), topology.num_ranks))


@settings(deadline=None)
@given(st.integers(2, 4), st.integers(2, 4))
def test_a_torus_with_a_faster_side(rows, fast):
    """The share of a place is that of its bandwidth; between thin sides and thick ones nothing is left idle."""
    topology = weighted(strategies.torus(rows + 1, rows + 2), fast, fast + 1, fast, fast + 1)
    found = orbit_forest(topology)
    if found is not None:
        checked(topology, found)


def test_no_trees_where_another_cut_is_smaller():
    """Pairs joined by a fast link in a slow ring: two ranks hold each other's data back, not one."""
    topology = weighted(strategies.torus(8, 2), 1, 100, 1, 100)
    assert orbit_forest(topology) is None


def test_no_trees_without_a_group_or_with_switches():
    assert orbit_forest(strategies.star(4)) is None
    assert orbit_forest(attrs.evolve(strategies.torus(4), symmetry=None)) is None
    assert orbit_forest(strategies.translations([6], [[2]], "two parts")) is None


@settings(deadline=None)
@given(strategies.families())
def test_families(topology):
    checked(topology, orbit_forest(topology))


@pytest.mark.slow
@pytest.mark.parametrize("topology", [strategies.torus(32, 32), strategies.hypercube(10)], ids=["torus", "cube"])
def test_a_thousand_ranks(topology):
    """Millions of rows, columns of the narrowest type; loads are counted here, spanning by the verifier elsewhere."""
    found = orbit_forest(topology)
    assert found is not None and found.height == topology.diameter
    assert (topology.src[found.link] == found.parent).all() and (topology.dst[found.link] == found.child).all()
    load = np.bincount(found.link, weights=found.weight[found.tree], minlength=topology.num_links)
    assert set(load.tolist()) == {1023.0} and len(found.link) == len(found.root) * 1023
    assert found.parent.dtype == found.child.dtype == np.uint16
