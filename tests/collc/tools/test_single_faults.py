"""Single faults: all of a network, each once, and the orbits of its automorphisms, which brute force finds too."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from collc.frontends.coll import topology
from collc.frontends.coll.faults import broken
from collc.ir.graph.isomorphism import automorphisms, isomorphism, link_map
from collc.tools.single_faults import orbits, single_faults

NETS = ("uniring(4)", "biring(5)", "hypercube(2)", "mesh(2, 3)", "complete(4)")


@pytest.mark.parametrize("net", NETS)
def test_orbits_are_those_of_all_automorphisms(net: str) -> None:
    whole = topology(net)
    faults = list(single_faults(whole))
    found = orbits(faults, automorphisms(whole), whole.num_nodes)
    every = [np.array(one) for one in permutations(range(whole.num_nodes))]
    every = [one for one in every if link_map(whole, whole, one) is not None]
    number = {one.key: place for place, one in enumerate(faults)}
    for place, fault in enumerate(faults):
        orbit = {number[fault.image(one.tolist())] for one in every}
        assert found[place][0] == min(orbit)
        assert number[faults[min(orbit)].image(found[place][1].tolist())] == place
        assert link_map(whole, whole, found[place][1]) is not None


def test_automorphisms_that_keep_a_rank() -> None:
    whole = topology("hypercube(3)")
    kept = automorphisms(whole, fixing=[5])
    assert kept and all(int(one[5]) == 5 for one in kept)
    faults = list(single_faults(whole))
    assert len({first for first, _ in orbits(faults, kept, 8)}) == 4 + 3  # by distance from the rank
    assert len({first for first, _ in orbits(faults, automorphisms(whole), 8)}) == 2


def test_switches_are_among_the_faults() -> None:
    whole = topology("dgx_h100(2)")
    assert {"nv[0]", "nv[1]", "ib", "gpu[1, 7]"} <= {one.fault.where for one in single_faults(whole)}


def test_faults_of_an_orbit_leave_isomorphic_networks() -> None:
    whole = topology("dgx_h100(2)")
    faults = list(single_faults(whole))
    for place, (first, _) in enumerate(orbits(faults, automorphisms(whole), whole.num_nodes)):
        if place % 7 == 0 and faults[place].fault.where != "ib":
            one, two = (broken(whole, [faults[of].fault]).topology for of in (first, place))
            assert isomorphism(one, two) is not None
