"""Orbits of roots, and the automorphisms that move a plan from one root to another."""

from __future__ import annotations

import attrs
import networkx
import numpy as np
import pytest

import collc
from collc.ir.graph.isomorphism import link_map
from collc.ir.graph.rooted import moved_wrongly, roots_of
from collc.ir.roots import Roots

#: network -> the planned roots of all its ranks
ORBITS = {
    "uniring(8)": (0,), "biring(8)": (0,), "torus(4, 4)": (0,), "hypercube(4)": (0,), "dgx_a100(2)": (0,),
    "fat_tree(4)": (0,), "cayley(metacyclic(8, 4, 3), {5, 17, 20, 30})": (0,), "mesh(3)": (0, 1),
    "mesh(4, 4)": (0, 1, 5), "mi250(2)": (0, 1, 4, 5), "jellyfish(16, 4)": tuple(range(16)),
}  # fmt: skip


def every(network: str) -> Roots:
    topology = collc.topology(network)
    return roots_of("b", topology, range(topology.num_ranks))


@pytest.mark.parametrize("network", ORBITS)
def test_every_root_is_reached_by_automorphisms(network: str) -> None:
    topology, roots = collc.topology(network), every(network)
    assert roots.planned == ORBITS[network]
    assert list(moved_wrongly(topology, roots)) == []
    for root in roots.listed:
        image = roots.images(root)
        assert image[roots.planned_for(root)] == root
        assert topology.num_switches or link_map(topology, topology, image) is not None
    assert sorted(r for planned in roots.planned for r in roots.orbit(planned)) == list(roots.listed)


def test_few_moves_reach_all_roots() -> None:
    """Tables of a ring grow as its ranks times their logarithm."""
    for ranks in (64, 256):
        roots = every(f"uniring({ranks})")
        assert len(roots.moves) <= 2 * ranks.bit_length()


def test_orbits_are_those_of_an_independent_search() -> None:
    """No two planned roots are equivalent by networkx's own isomorphisms."""
    graph = networkx.grid_2d_graph(3, 3)
    number = {node: 3 * node[0] + node[1] for node in graph}
    matcher = networkx.algorithms.isomorphism.GraphMatcher(graph, graph)
    orbits = {0: {0}, 1: {1}, 4: {4}}
    for found in matcher.isomorphisms_iter():
        for node, image in found.items():
            if number[node] in orbits:
                orbits[number[node]].add(number[image])
    roots = every("mesh(3, 3)")
    assert {planned: set(roots.orbit(planned)) for planned in roots.planned} == orbits


def test_a_list_has_orbits_of_its_own() -> None:
    roots = roots_of("b", collc.topology("mesh(4, 4)"), [15, 3, 5])
    assert (roots.listed, roots.planned) == ((3, 5, 15), (3, 5))
    assert roots.orbit(3) == (3, 15) and roots.only([5]).listed == (5,)
    assert len(roots_of("b", collc.topology("torus(4, 4)"), [3]).moves) == 0


def test_without_a_search_each_root_is_planned() -> None:
    assert roots_of("b", collc.topology("mesh(4, 4)"), range(16), effort=1).planned == tuple(range(16))


def test_links_that_differ_are_no_symmetry() -> None:
    slow = collc.topology("degraded(biring(6), {0 <-> 1}, 1/2)")
    roots = roots_of("b", slow, range(6))
    assert roots.planned == (0, 2, 3)
    assert list(moved_wrongly(slow, every("biring(6)")))  # the moves of the whole ring are none of the degraded one
    marked = attrs.evolve(collc.topology("fat_tree(4)"), multicast=(16,))
    assert len(roots_of("b", marked, range(16)).planned) > 1


def test_planted_asymmetry_is_seen() -> None:
    topology, roots = collc.topology("torus(4, 4)"), every("torus(4, 4)")
    for k in range(len(roots.moves)):
        moves = roots.moves.copy()
        moves[k, [5, 6]] = moves[k, [6, 5]]  # a permutation still
        back = moves.copy()
        back[roots.back[k]] = np.argsort(moves[k])
        wrong = attrs.evolve(roots, moves=back)
        assert list(moved_wrongly(topology, wrong)), k
    assert list(moved_wrongly(collc.topology("torus(4, 2)"), roots))


@pytest.mark.parametrize("column", ["source", "move", "back", "moves"])
def test_every_wrong_number_is_seen(column: str) -> None:
    roots = every("mesh(2, 3)")
    values = getattr(roots, column)
    for place in np.ndindex(values.shape):
        for other in {-2, -1, 0, 1, 2, 7} - {int(values[place])}:
            changed = values.copy()
            changed[place] = other
            wrong = attrs.evolve(roots, **{column: changed})
            flawed = bool(list(moved_wrongly(collc.topology("mesh(2, 3)"), wrong)))
            assert flawed or np.array_equal(wrong.images(roots.listed[-1]), roots.images(roots.listed[-1]))
            assert flawed or wrong.planned == roots.planned
