"""Boxes and their NICs, from names and links, and the routes between ranks."""

from __future__ import annotations

import pytest
from clusters import ragged_clusters
from hypothesis import given
from nccl_nets import named, pcie_box

from collc.frontends.coll import topology
from collc.ir.graph.nics import Cabling, cabling
from collc.ir.topology import Topology

#: network -> boxes, ranks of a box, NICs of a box, switches of all boxes
SEEN = {
    "dgx1_v100()": (1, 8, 0, 0), "mi250(1)": (1, 16, 0, 0), "mi250(2)": (2, 16, 16, 0), "mi300x(2)": (2, 8, 8, 0),
    "dgx_a100(1)": (1, 8, 0, 1), "dgx_a100(2)": (2, 8, 8, 2), "dgx_a100(4, 2)": (4, 8, 8, 36),
    "dgx_h100(2, 8)": (2, 8, 8, 18), "gb200_nvl72(2)": (2, 72, 72, 2), "torus(4, 4)": (1, 16, 0, 0),
    "leaf_spine(3, 4, 2)": (3, 4, 2, 3), "without(dgx_a100(1), {gpu[0, 3]})": (1, 7, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize(("net", "seen"), SEEN.items())
def test_boxes_nics_and_switches(net: str, seen: tuple[int, int, int, int]) -> None:
    found = cabling(topology(net))
    switches = int((found.box_of[found.topology.num_ranks :] >= 0).sum())
    assert (len(found), len(found.boxes[0]), len(found.nics[0]), switches) == seen


def test_names_with_hosts_decide() -> None:
    found = cabling(pcie_box(3))
    assert (len(found), found.rule) == (3, "by their names")
    names = found.topology.names
    assert [[names[nic.node] for nic in nics] for nics in found.nics] == [
        [f"h{host}/mlx5_0", f"h{host}/mlx5_1"] for host in range(3)
    ]
    assert [name for name, box in zip(names, found.box_of, strict=True) if box < 0] == ["fabric"]


def test_a_fabric_of_a_single_box_is_known_by_its_name() -> None:
    edges = [("gpu0", "sw", 100.0), ("gpu1", "sw", 100.0), ("nic0", "sw", 50.0)]
    assert not cabling(named([*edges, ("nic0", "out", 50.0)])).nics[0]
    for name in ("fabric", "fabric/rail0"):
        found = cabling(named([*edges, ("nic0", name, 50.0)]))
        assert [found.topology.names[nic.outside] for nic in found.nics[0]] == [name]


def test_boxes_of_a_given_size() -> None:
    found = cabling(topology("biring(6)"), 2)
    assert found.boxes == ((0, 1), (2, 3), (4, 5))
    assert [(nic.node, nic.outside) for nic in found.nics[1]] == [(2, 1), (3, 4)]
    assert found.crossing(1, found.nics[0][1], found.nics[1][0], 2) == ((1, 2),)
    assert len(cabling(topology("biring(7)"), 3).boxes[-1]) == 1


def test_a_route_leaves_by_a_nic_and_enters_by_the_other() -> None:
    found = cabling(topology("dgx_a100(2, 8)"))
    names, (first, second) = found.topology.names, found.nics
    route = found.crossing(3, first[3], second[3], 11)
    assert route is not None
    assert [names[b] for _, b in route] == ["nic[0, 3]", "ib[3]", "nic[1, 3]", "gpu[1, 3]"]
    assert found.crossing(3, first[3], second[4], 12) is None, "the rails are apart"
    assert found.out(2, first[3]) is None, "NIC 3 is of GPU 3"


def test_nics_of_one_rank_serve_no_other() -> None:
    """Without a switch of its own a NIC is a port of its GPU: others reach it through the GPU only."""
    found = cabling(topology("dgx_a100(2)"))
    served = [[rank for rank in found.boxes[0] if found.into(nic, rank) is not None] for nic in found.nics[0]]
    assert served == [[rank] for rank in range(8)]


def test_nics_behind_switches_serve_all() -> None:
    found = cabling(pcie_box(2))
    lengths = [[len(found.into(nic, rank) or ()) for rank in found.boxes[0]] for nic in found.nics[0]]
    assert lengths == [[3, 3, 5, 5, 6, 6, 6, 6], [6, 6, 6, 6, 3, 3, 5, 5]]


def _flaws(found: Cabling, net: Topology) -> list[str]:
    known = set(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    flaws = []
    for ranks, nics in zip(found.boxes, found.nics, strict=True):
        for a in ranks:
            for b in ranks:
                path = found.inside(a, b)
                nodes = [a, *(end for _, end in path or ())]
                if path is not None and (
                    set(path) - known or nodes[-1] != b or any(n < net.num_ranks for n in nodes[1:-1])
                ):
                    flaws.append(f"{a} to {b}: {path}")
        flaws += [f"{nic}" for nic in nics if found.box_of[nic.node] == found.box_of[nic.outside]]
    return flaws


@given(ragged_clusters())
def test_routes_on_any_cluster_use_links_and_pass_no_ranks(net: Topology) -> None:
    found = cabling(net)
    assert sorted(rank for ranks in found.boxes for rank in ranks) == list(range(net.num_ranks))
    assert [ranks[0] for ranks in found.boxes] == sorted(ranks[0] for ranks in found.boxes)
    assert not _flaws(found, net)
