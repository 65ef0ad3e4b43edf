"""The boxes of clusters are found from the links."""

from __future__ import annotations

from itertools import pairwise

import attrs
import numpy as np
import pytest
from clusters import CLUSTERS, cluster, clusters
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import topology
from collc.ir.graph.boxes import boxes_of, one_box
from collc.ir.topology import Topology


@pytest.mark.parametrize("net", CLUSTERS)
def test_the_boxes_of_families(net: str) -> None:
    found, size = boxes_of(topology(net)), CLUSTERS[net]
    assert found is not None
    assert found.size == size
    assert sorted(rank for ranks in found.ranks for rank in ranks) == list(range(len(found) * size))
    assert [found.box_of[rank] for ranks in found.ranks for rank in ranks] == np.repeat(
        range(len(found)), size
    ).tolist()


@pytest.mark.parametrize("net", ["torus(4, 4)", "dgx_a100(1)", "dgx1_v100()", "hypercube(3)", "leaf_spine(1, 4, 1)"])
def test_networks_without_boxes(net: str) -> None:
    assert boxes_of(topology(net)) is None
    whole = one_box(topology(net))
    assert whole.ranks == (tuple(range(topology(net).num_ranks)),) and whole.inside.all()


@given(clusters, st.randoms(use_true_random=False))
def test_boxes_do_not_depend_on_the_order_of_links(sizes: list[int], luck: object) -> None:
    net = cluster(sizes)
    box = [tuple(range(first, last)) for first, last in pairwise(np.cumsum([0, *sizes]).tolist())]
    order = list(range(net.num_links))
    luck.shuffle(order)  # type: ignore[attr-defined]
    for one in (net, attrs.evolve(net, **{c: getattr(net, c)[order] for c in Topology.COLUMNS})):
        found = boxes_of(one)
        assert found is not None and found.ranks == tuple(box) and found.gates == tuple(box)
        assert found.nics == min(sizes) and found.size == (sizes[0] if len(set(sizes)) == 1 else None)


def test_only_ranks_with_links_out_of_a_box_are_gates() -> None:
    """Without its own NIC, a GPU reaches other boxes through the box."""
    net = topology("dgx_a100(2)")
    kept = ~np.isin(net.src, [3, 11]) & ~np.isin(net.dst, [3, 11]) | (net.link_class == 0)
    found = boxes_of(attrs.evolve(net, **{c: getattr(net, c)[kept] for c in Topology.COLUMNS}))
    assert found is not None and found.nics == 7
    assert [3 in found.gates[0], 11 in found.gates[1], 2 in found.gates[0]] == [False, False, True]


def test_a_fabric_is_inside_no_box() -> None:
    net = topology("clustered(hypercube(3), 4, 1/2, 2, 2)")
    found = boxes_of(net)
    assert found is not None
    ends = np.concatenate([net.src[found.inside], net.dst[found.inside]])
    assert ends.max() < net.num_ranks
