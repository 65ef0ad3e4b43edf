"""Forests as template and group: what is said of the template is true of all its trees, and a planted fault is seen."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import collc
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.costs.pieces import best_pieces
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.symmetric_forest import SymmetricForest
from collc.ir.symmetries import Rotations
from collc.ir.topology import Topology
from collc.ir.validate import structure
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler
from collc.passes.synthesis.forest.template import template

pytestmark = pytest.mark.quick
NETWORKS = ("torus(3, 3)", "hypercube(3)", "dgx_a100(3)", "mi300x(5)", "dgx_h100(5, 8)")
KINDS = ("allgather", "reduce-scatter", "allreduce")


def forest(network: str, kind: str = "allgather", pieces: int = 1) -> SymmetricForest:
    topology = collc.topology(network)
    found = template(ForestScheduler(), Problem(topology, Collective(kind, topology.num_ranks)), least=0)
    assert found is not None
    return found.revised(pieces=pieces)


def wrong(level: SymmetricForest) -> str:
    """What the verifier says of the first check that fails."""
    return next((check.detail for check in verify(level).checks if not check.ok), "")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_template_costs_what_its_trees_cost(network: str, kind: str) -> None:
    level = forest(network, kind, pieces=3)
    whole = level.unfold()
    assert len(level) == len(whole.tree) and level.num_trees == whole.num_trees
    assert cost(level) == cost(whole)
    assert best_pieces(level, 1 << 28) == best_pieces(whole, 1 << 28)
    assert structure(level) == structure(whole) == []
    assert verify(level).ok and verify(whole).ok


def test_report_says_what_was_executed() -> None:
    said = verify(forest("torus(4, 4)")).checks[0].detail
    assert said == "executed 1 of 16 roots, all others by the group abelian(4, 4), checked"
    said = verify(forest("dgx_a100(3)")).checks[0].detail
    assert said == "executed 8 of 24 roots, all others by a rotation of order 3, checked"


def test_too_many_trees_are_not_unfolded() -> None:
    with pytest.raises(CollcError, match="has 552 edges; at most 551 can be listed"):
        forest("dgx_a100(3)").unfold(551)


@pytest.mark.parametrize("network", ["torus(3, 3)", "dgx_a100(3)"])
def test_changed_edge_is_caught(network: str) -> None:
    level = forest(network)
    for row in range(len(level.seed.tree)):
        child = level.seed.child.astype(np.int64)
        child[row] = (child[row] + 1) % level.topology.num_ranks
        assert wrong(attrs.evolve(level, seed=attrs.evolve(level.seed, child=child)))


def test_missing_tree_is_caught() -> None:
    seed = forest("dgx_a100(3)").seed
    keep = seed.tree != 7
    short = attrs.evolve(
        seed, root=seed.root[:7], weight=seed.weight[:7], inward=seed.inward[:7],
        **{name: getattr(seed, name)[keep] for name in ("tree", "parent", "child", "route")},
    )  # fmt: skip
    level = attrs.evolve(forest("dgx_a100(3)"), seed=short)
    assert wrong(level) == "the trees of rank gpu[0, 7] carry 0/1 of its data"


def _with_links(level: SymmetricForest, topology: Topology) -> SymmetricForest:
    """The same template on another network of the same nodes."""
    assert isinstance(level.group, Rotations)
    group = Rotations(topology, level.group.generator)
    return SymmetricForest(attrs.evolve(level.seed, topology=topology), group)


@pytest.mark.parametrize("link", [0, 17, 40])
def test_box_that_differs_is_caught(link: int) -> None:
    level = forest("dgx_a100(3)")
    topology = level.topology
    kind = topology.link_class.astype(np.int64)
    kind[link] = 1 - kind[link]
    found = wrong(_with_links(level, attrs.evolve(topology, link_class=kind)))
    assert "the generator maps no link to" in found


def test_missing_link_is_caught() -> None:
    level = forest("dgx_a100(3)")
    topology, used = level.topology, set(level.seed.routes.links.tolist())
    spare = next(link for link in range(topology.num_links) if link not in used)
    dst = topology.dst.astype(np.int64)
    dst[spare] = topology.src[spare]
    assert "the generator maps no link to" in wrong(_with_links(level, attrs.evolve(topology, dst=dst)))


def test_switch_that_multicasts_alone_is_caught() -> None:
    level = forest("dgx_a100(3)")
    found = wrong(_with_links(level, attrs.evolve(level.topology, multicast=(24,))))
    assert "the generator moves a switch that multicast to one that does not" in found


def test_permutation_that_keeps_a_rank_is_caught() -> None:
    level = forest("dgx_a100(3)")
    assert isinstance(level.group, Rotations)
    nodes = np.arange(level.topology.num_nodes)
    two = level.group.generator.astype(np.int64)
    two[[*range(8, 24), 25, 26]] = [*range(8), *range(16, 24), 24, 26]
    for generator, said in (
        (nodes, "the trees of rank gpu[1, 0] carry 0/1 of its data"),
        (nodes * 0, "the generator is no permutation of the nodes"),
        (np.roll(nodes, 1), "the generator moves a rank to a switch"),
        (two, "the trees of rank gpu[2, 0] carry 0/1 of its data"),
    ):
        assert said in wrong(attrs.evolve(level, group=Rotations(level.topology, generator)))
    level = forest("dgx_a100(5)")
    mixed = np.array([*range(8, 16), *range(8), *range(24, 40), *range(16, 24), 41, 40, 43, 44, 42, 45])
    said = "a power of the generator below 3 keeps a rank in place, and moves another"
    assert said in wrong(attrs.evolve(level, group=Rotations(level.topology, mixed)))


def test_root_outside_of_the_template_is_caught() -> None:
    level = forest("torus(3, 3)")
    moved = attrs.evolve(level.seed, root=level.seed.root + 1)
    assert "root 1 is no root of the template" in "; ".join(structure(attrs.evolve(level, seed=moved)))


def test_switch_is_moved_as_often_as_the_fabric_keeps_still() -> None:
    group = forest("dgx_a100(3)").group
    assert group.nodes(1, np.arange(28)).tolist() == [*range(8, 24), *range(8), 25, 26, 24, 27]
    assert sorted(set(np.bincount(group.link_orbit).tolist())) == [3]
    links = np.arange(group.topology.num_links)
    assert np.array_equal(group.links(2, group.links(1, links)), links)
