"""`nccl-rings` on direct networks: what the table of the page says, full meshes in any form, and bounded effort."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nccl_nets import GBPS, named, pcie_box, ring_flaws
from places import ROOT
from sampling import every

from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.graph.nics import cabling
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.passes.base import remarks
from collc.passes.synthesis.nccl import rings as searching
from collc.passes.synthesis.nccl.inside import Ends, Inside, Paths, inside_of
from collc.passes.synthesis.nccl.rings import Rings, best_rings
from collc.passes.synthesis.nccl.scheduler import NcclRings
from collc.passes.synthesis.nccl.search import Packing

#: rows of the table: network, ranks, rings, bandwidth, smallest cut, proof
TABLE = [
    tuple(cell.strip(" `") for cell in line.strip("|").split(" | "))
    for line in (ROOT / "docs" / "nccl.md").read_text().split("### Direct networks")[1].split("### ")[0].splitlines()
    if line.startswith("| `")
]
#: the words of a remark for a proof
PROOFS = {"cut": "no rings have more: they fill the smallest cut", "equal": "no 32 equal rings or fewer have more"}
#: links of a box of eight dies: (die, die, lanes), and what each lane and each host link has, in GB/s
DIES = [
    *((a, a + 1, 4) for a in range(0, 8, 2)), (0, 6, 2), (2, 4, 2), (0, 2, 1), (1, 3, 1), (1, 5, 1), (3, 7, 1),
    (4, 6, 1), (5, 7, 1),
]  # fmt: skip
LANE, HOST = 50, 12


def found(net: Topology, count: int | None = None) -> Rings:
    rings = best_rings(cabling(net), count, 32, False)
    assert rings is not None
    assert not list(ring_flaws(cabling(net), rings.orders, rings.routes, rings.rate))
    return rings


def mesh_boxes(ranks: int, boxes: int) -> Topology:
    """Return boxes of a full mesh of 10 GB/s, each rank with a NIC of 10 GB/s on a rail of its own."""
    edges: list[tuple[str, str, float]] = []
    for box in range(boxes):
        edges += [(f"h{box}/gpu{a}", f"h{box}/gpu{b}", 10) for a in range(ranks) for b in range(a)]
        edges += [(f"h{box}/gpu{rank}", f"rail{rank}", 10) for rank in range(ranks)]
    return named(edges)


def dies(boxes: int) -> Topology:
    """Return boxes of eight dies on the PCIe of two CPUs, with a NIC beside every second die."""
    edges: list[tuple[str, str, float]] = []
    for box in range(boxes):
        edges += [(f"h{box}/gpu{a}", f"h{box}/gpu{b}", LANE * lanes) for a, b, lanes in DIES]
        edges += [(f"h{box}/gpu{die}", f"h{box}/pci{die // 2}", HOST) for die in range(8)]
        edges += [(f"h{box}/pci{plx}", f"h{box}/cpu{plx // 2}", 2 * HOST) for plx in range(4)]
        edges += [(f"h{box}/nic{nic}", f"h{box}/pci{nic}", 2 * HOST) for nic in range(4)]
        edges += [(f"h{box}/nic{nic}", "fabric", 25) for nic in range(4)]
        edges += [(f"h{box}/cpu0", f"h{box}/cpu1", 2 * HOST)]
    return named(edges)


# ---- the page


def test_the_table_is_long() -> None:
    ranks = [row[1] for row in TABLE]
    assert len(TABLE) >= 60
    assert min(ranks.count("8"), ranks.count("16")) >= 20


@pytest.mark.parametrize("row", every(6, TABLE), ids=lambda row: row[0])
def test_rows_of_the_table(row: Sequence[str]) -> None:
    net, proof = topology(row[0]), row[5]
    rings = found(net)
    assert [str(net.num_ranks), str(len(rings.orders)), str(rings.total), str(rings.bound)] == list(row[1:5])
    assert proof == ("cut" if rings.total == rings.bound else "equal" if rings.exhausted else "none")
    with remarks() as said:
        NcclRings().grow(Problem(net, Collective("allgather", net.num_ranks)))
    assert PROOFS[proof] in said[0]


@pytest.mark.parametrize("seed", every(5, range(1, 26)))
@pytest.mark.parametrize("ranks", [8, 16])
def test_random_networks_of_degree_four(ranks: int, seed: int) -> None:
    rings = found(topology(f"jellyfish({ranks}, 4, {seed})"))
    assert rings.total == rings.bound


# ---- full meshes


@pytest.mark.parametrize(("ranks", "copies", "best"), [(10, 3, 27), (12, 1, 11), (12, 2, 22), (16, 3, 32), (13, 1, 12)])
def test_full_meshes_with_parallel_links_in_any_order(ranks: int, copies: int, best: int) -> None:
    order = np.random.default_rng(ranks).permutation(ranks).tolist()
    links = [(order[a], order[b]) for a in range(ranks) for b in range(ranks) if a != b for _ in range(copies)]
    rings = found(Topology.from_links("mesh", ranks, links))
    assert (rings.total, rings.exhausted) == (best, True)


def test_a_full_mesh_of_unequal_links() -> None:
    luck = np.random.default_rng(12)
    pairs = [(a, b, LinkClass(Fraction(int(luck.integers(1, 3))))) for a in range(12) for b in range(a)]
    rings = found(
        Topology.from_links("mesh", 12, [link for a, b, kind in pairs for link in ((a, b, kind), (b, a, kind))])
    )
    assert rings.total == rings.bound


@pytest.mark.parametrize("count", [1, 5, 10])
def test_fewer_rings_than_a_full_mesh_has(count: int) -> None:
    assert found(topology("complete(11)"), count).total == count


@pytest.mark.parametrize(("ranks", "boxes"), [(8, 3), (10, 2), (11, 2), (12, 2)])
def test_boxes_of_full_meshes(ranks: int, boxes: int) -> None:
    """Each ring enters at one rank and leaves at another, and the paths of all rings use each link at most once."""
    rings = found(mesh_boxes(ranks, boxes))
    assert (len(rings.orders), rings.total, rings.bound) == (ranks, ranks * 10 * GBPS, ranks * 10 * GBPS)


# ---- effort


def test_paths_are_listed_only_where_rings_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of a NIC's bandwidth does not pass the PCIe link of a die. So most pairs of NICs need no paths."""
    listed = list[Ends]()
    enumerate_paths = Inside._enumerate

    def counted(inside: Inside, ends: Ends) -> Paths:
        listed.append(ends)
        return enumerate_paths(inside, ends)

    monkeypatch.setattr(Inside, "_enumerate", counted)
    rings = found(dies(2))
    assert rings.total == rings.bound == 4 * 2 * HOST * GBPS
    assert len(listed) <= 4 < 4 * 4


def test_one_program_excludes_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The links out of a CPU bound the rings, and the smallest cut does not say so."""
    searched = list[int]()
    solve = Packing.solve

    def counted(packing: Packing) -> list[int] | None:
        searched.append(len(packing.tables))
        return solve(packing)

    monkeypatch.setattr(Packing, "solve", counted)
    rings = found(pcie_box(1))
    assert rings.total < rings.bound
    assert len(searched) < 20


@pytest.mark.parametrize("net", ["dgx_a100(2)", "mi250(2)", "mi300x(2)"])
def test_rings_that_exist_have_room(net: str) -> None:
    t = topology(net)
    cables, rings = cabling(t), found(t)
    box = inside_of(cables, 0)
    nics = {(nic.node, nic.outside): nic.number for nic in cables.nics[0]}
    ends: list[Ends] = []
    for links in rings.routes:
        hops = [(int(t.src[link]), int(t.dst[link])) for route in links for link in route]
        ends.append((
            next(nics[b, a] for a, b in hops if (b, a) in nics), next(nics[a, b] for a, b in hops if (a, b) in nics),
        ))  # fmt: skip
    assert box.has_room(ends, rings.rate)
    assert not box.has_room(ends, 100 * rings.rate)


def test_the_first_values_come_at_once() -> None:
    """Between a slow link and a fast one lie a thousand million values."""
    net = Topology.from_links("slow", 2, [(0, 1, LinkClass(Fraction(1))), (1, 0, LinkClass(Fraction(10**9)))])
    values = searching._values(net, Fraction(1), range(1, 33))
    assert [next(values) for _ in range(3)] == [(1, 1), (2, Fraction(1, 2)), (3, Fraction(1, 3))]


@given(
    st.lists(st.sampled_from([1, 2, 3, 7, 50, 300]), min_size=1, max_size=3), st.integers(2, 5), st.integers(1, 4),
    st.integers(1, 4),
)  # fmt: skip
def test_every_room_of_links_above_half_the_bound_has_a_value(
    speeds: list[int], ranks: int, bound: int, rings: int
) -> None:
    """Each bandwidth of a link over a load has a value at least as large that leaves all links the same room."""
    links = [(a, (a + 1) % ranks, LinkClass(Fraction(speed))) for speed in speeds for a in range(ranks)]
    found = searching._values(Topology.from_links("mixed", ranks, links), Fraction(bound), [9, rings])
    values = [rate for count, rate in found if count == rings]
    assert all(rate * rings <= bound for rate in values)

    def room(rate: Fraction) -> list[int]:
        return [min(speed // rate, rings * ranks) for speed in speeds]

    for speed in speeds:
        least = max(-(-speed * rings // bound), 1)
        for load in range(least, 2 * least + 1):
            rate = Fraction(speed, load)
            assert any(other >= rate and room(other) == room(rate) for other in values)


def test_a_fast_link_beside_a_slow_one_adds_few_values() -> None:
    """It has room for all rings at every bandwidth that the slow one allows."""
    net = Topology.from_links("mixed", 3, [
        (0, 1, LinkClass(Fraction(1))), (1, 2, LinkClass(Fraction(10**6))), (2, 0, LinkClass(Fraction(10**6))),
    ])  # fmt: skip
    assert len(list(searching._values(net, Fraction(1), range(1, 33)))) < 32 * 33 * 3
