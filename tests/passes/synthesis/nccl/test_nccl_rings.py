"""`nccl-rings`: the rings of most bandwidth through boxes, proved by the smallest cut or by trying all."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import networkx as nx
import numpy as np
import pytest
from clusters import cluster, clusters
from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_nets import GBPS, named, pcie_box, ring_flaws
from sampling import examples

import collc
from collc.frontends.coll import topology
from collc.ir.arrays import Array
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.graph.nics import cabling
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.base import remarks
from collc.passes.synthesis.nccl.program import fitting_rows, most_bandwidth, price_bound
from collc.passes.synthesis.nccl.rings import Rings, best_rings, smallest_cut
from collc.passes.synthesis.nccl.scheduler import NcclRings
from collc.passes.synthesis.nccl.search import Packing

KINDS = ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce")

#: network -> rings, and the bandwidth of all of them in GB/s: the smallest cut, so none have more
BEST = {
    "dgx1_v100()": (6, 150), "mi250(1)": (6, 300), "mi250(2)": (16, 256), "mi250(3)": (16, 256), "mi300x(1)": (7, 448),
    "mi300x(2)": (8, 400), "mi300x(3)": (8, 400), "dgx_a100(1)": (1, 300), "dgx_a100(2)": (8, 200),
    "dgx_a100(3)": (8, 200), "dgx_a100(4)": (8, 200), "dgx_a100(2, 2)": (8, 200), "dgx_a100(4, 2)": (8, 200),
    "dgx_a100(3, 8)": (8, 200), "dgx_h100(2, 8)": (8, 400), "gb200_nvl72(1)": (1, 900),
    "without(dgx_a100(2), {gpu[0, 3]})": (7, 175), "degraded(mi300x(), {gpu[0, 7]}, 1/2)": (7, 224),
}  # fmt: skip


def found(net: Topology, count: int | None = None, nics: bool = False, node: int | None = None) -> Rings:
    rings = best_rings(cabling(net, node), count, 32, nics)
    assert rings is not None
    assert not list(ring_flaws(cabling(net, node), rings.orders, rings.routes, rings.rate))
    assert rings.total <= rings.bound
    return rings


@pytest.mark.parametrize(("net", "best"), BEST.items())
def test_rings_of_machines_fill_the_smallest_cut(net: str, best: tuple[int, int]) -> None:
    rings = found(topology(net))
    assert (len(rings.orders), rings.total) == (best[0], best[1] * GBPS)
    assert rings.total == rings.bound


def test_the_slowest_switch_port_decides_where_no_cut_does() -> None:
    """Rings enter 71 of 72 GPUs of a rack from inside, and no whole number of them fills the GPUs' links."""
    rings = found(topology("gb200_nvl72(2)"))
    assert (len(rings.orders), rings.total, rings.bound) == (18, 900 * GBPS, Fraction(900 * GBPS * 72, 71))


@pytest.mark.parametrize("hosts", [2, 3])
def test_a_box_of_pcie_with_two_nics(hosts: int) -> None:
    """No link carries more than one ring each way, and the link between the CPUs has 10 GB/s."""
    rings = found(pcie_box(hosts))
    assert rings.total == rings.bound == min(smallest_cut(pcie_box(hosts)), 16 * GBPS)


@pytest.mark.slow
@pytest.mark.parametrize(("net", "total"), [("mi250(1)", 300), ("mi300x(1)", 448), ("dgx1_v100()", 150)])
def test_pcie_beside_direct_links_takes_no_bandwidth(net: str, total: int) -> None:
    """An imported machine has PCIe, too: rings over it are too many to list, those of the links are searched first."""
    plain = topology(net)
    names = [f"gpu{rank}" for rank in range(plain.num_ranks)]
    edges = [
        (names[a], names[b], float(plain.bandwidth(link) / GBPS))
        for link, (a, b) in enumerate(zip(plain.src.tolist(), plain.dst.tolist(), strict=True))
        if a < b < plain.num_ranks
    ]
    edges += [(name, f"cpu{rank * 2 // len(names)}", 10.0) for rank, name in enumerate(names)]
    assert found(named([*edges, ("cpu0", "cpu1", 10.0), ("cpu0", "fabric", 1.0)])).total >= total * GBPS


@pytest.mark.slow
def test_a_single_box_goes_through_its_nics_if_it_is_to() -> None:
    net = pcie_box(1)
    inside, through = found(net), found(net, nics=True)
    fabric = net.names.index("fabric")
    assert [fabric in net.dst[list(links[-1])] for one in (inside, through) for links in one.routes] == [
        *[False] * len(inside.orders), *[True] * len(through.orders),
    ]  # fmt: skip


def test_boxes_of_one_rank_are_a_ring_of_boxes() -> None:
    rings = found(topology("biring(6)"), node=1)
    assert rings.orders[0] == (0, 1, 2, 3, 4, 5)
    with pytest.raises(CollcError, match="finds no ring"):
        NcclRings(node=2).run(Problem(topology("mesh(3, 2)"), Collective("allreduce", 6)))


@pytest.mark.slow
@settings(max_examples=examples(6))
@given(clusters, st.integers(1, 4))
def test_rings_on_boxes_of_any_sizes(sizes: list[int], inside: int) -> None:
    net = cluster(sizes, inside=Fraction(inside))
    rings = found(net)
    assert rings.total == rings.bound or not rings.exhausted


@pytest.mark.parametrize("net", ["dgx_h100(4, 8)", "dgx_h100(3, 8)", "dgx_a100(5, 4)", "mi300x(3, 8)"])
def test_rings_stay_on_their_rails(net: str) -> None:
    t = topology(net)
    for order in found(t).orders:
        for a, b in zip(order, [*order[1:], order[0]], strict=True):
            assert a // 8 == b // 8 or a % 8 == b % 8


# ---- what is claimed


@settings(max_examples=examples(30))
@given(st.integers(2, 6), st.integers(0, 2**30), st.integers(1, 3))
def test_the_cut_is_the_smallest(ranks: int, seed: int, switches: int) -> None:
    luck = np.random.default_rng(seed)
    nodes = ranks + switches
    edges = [(int(a), int(b), int(luck.integers(1, 6))) for a, b in luck.integers(0, nodes, (4 * nodes, 2)) if a != b]
    edges += [(node, (node + 1) % nodes, 1) for node in range(nodes)]
    graph = nx.DiGraph()
    for a, b, speed in edges:
        graph.add_edge(a, b, capacity=graph.get_edge_data(a, b, {"capacity": 0})["capacity"] + speed)
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    kinds = [(a, b, LinkClass(Fraction(speed))) for a, b, speed in edges]
    net = Topology.from_links("random", ranks, kinds, switches)
    assert smallest_cut(net) == min(nx.maximum_flow_value(graph, a, b) for a, b in pairs)


def _most(net: Topology, rings: int) -> Fraction:
    """Return the most bandwidth of so many cycles through a few ranks, by trying all."""
    count = np.zeros((net.num_ranks, net.num_ranks), dtype=np.int64)
    np.add.at(count, (net.src.astype(np.int64), net.dst.astype(np.int64)), 1)
    cycles = []
    for order in permutations(range(1, net.num_ranks)):
        uses = np.zeros_like(count)
        ring = (0, *order)
        np.add.at(uses, (list(ring), [*ring[1:], 0]), 1)
        if (uses <= count * rings).all():
            cycles.append(uses)
    best = Fraction(0)
    for chosen in combinations_with_replacement(cycles, rings):
        load: Array = sum(chosen, np.zeros_like(count))
        # of parallel links each ring takes one
        busiest = max(-(-int(load[ends]) // int(count[ends])) for ends in zip(*np.nonzero(load), strict=True))
        best = max(best, Fraction(rings, busiest))
    return best


@settings(max_examples=examples(30))
@given(st.integers(3, 5), st.integers(1, 3), st.integers(0, 2**30))
def test_no_other_rings_have_more(ranks: int, rings: int, seed: int) -> None:
    luck = np.random.default_rng(seed)
    links = [(int(a), int(b)) for a, b in luck.integers(0, ranks, (3 * ranks, 2)) if a != b]
    net = Topology.from_links("random", ranks, [*links, *((r, (r + 1) % ranks) for r in range(ranks))])
    best = best_rings(cabling(net), rings, 32, False)
    assert best is not None
    assert best.total == _most(net, rings)
    assert best.exhausted or best.total == best.bound


def test_the_search_tries_everything() -> None:
    """Three rings need three of four ways that share pairs two by two: only one choice fits."""
    ways = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=np.uint8)
    group = [np.array([0, 1, 2, 3])]
    fits = Packing([ways] * 2, np.array([1, 1, 1, 1]), group, 100)
    assert sorted(fits.solve() or []) in ([0, 2], [1, 3])
    full = Packing([ways] * 3, np.array([1, 1, 1, 1]), group, 100)
    assert full.solve() is None
    assert full.exhausted
    short = Packing([ways[[k]] for k in (0, 1)], np.array([1, 1, 1, 1]), group, 100)
    assert short.solve() is None
    assert short.exhausted


def test_a_search_that_ends_early_claims_nothing() -> None:
    ways = np.eye(6, dtype=np.uint8)
    room = np.array([1, 1, 1, 1, 1, 0])
    search = Packing([ways, ways[:, ::-1].copy(), *[ways[[2, 3]]] * 3], room, [np.arange(6)], 1)
    search.solve()
    assert not search.exhausted


@pytest.mark.parametrize(("net", "words"), [
    ("mi250(1)", "no rings have more: they fill the smallest cut"),
    ("gb200_nvl72(2)", "no 32 equal rings or fewer have more; the bound of unequal ones is 912.68 GB/s"),
])  # fmt: skip
def test_the_remark_says_what_is_proved(net: str, words: str) -> None:
    t = topology(net)
    with remarks() as said:
        NcclRings().grow(Problem(t, Collective("allgather", t.num_ranks)))
    assert words in said[0]


def test_the_remark_of_an_exhausted_search() -> None:
    """A directed cycle with chords: one ring only, although every cut is larger."""
    chords = [(0, 2), (2, 0), (1, 3), (3, 1)]
    net = Topology.from_links("thick", 4, [*((a, (a + 1) % 4) for a in range(4)), *chords])
    rings = found(net)
    assert (rings.exhausted, rings.total, rings.bound) == (True, 1, 2)
    with remarks() as said:
        NcclRings().grow(Problem(net, Collective("allgather", 4)))
    assert "no 32 equal rings or fewer have more; the bound of unequal ones is 2 link units" in said[0]


# ---- schedules


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("net", [
    "dgx1_v100()", "dgx_a100(2, 2)", "mi300x(1)", "torus(1)", "uniring(2)", "clustered(complete(3), 3, 1/2)",
])  # fmt: skip
def test_schedules_are_right(net: str, kind: str) -> None:
    t = topology(net)
    root = t.num_ranks - 1 if kind in ("broadcast", "reduce") else None
    forest = NcclRings().run(Problem(t, Collective(kind, t.num_ranks, root=root)))
    assert verify(forest).ok
    assert verify(forest.to_steps()).ok


@pytest.mark.parametrize("net", ["dgx_a100(2)", "dgx_h100(3, 8)", "mi300x(1)", "dgx1_v100()"])
def test_the_cost_is_that_of_rings(net: str) -> None:
    """An allreduce of N ranks takes 2 (N - 1) / N of the vector over the bandwidth of all rings."""
    t = topology(net)
    n = t.num_ranks
    forest = NcclRings().run(Problem(t, Collective("allreduce", n)))
    assert cost(forest.to_steps()).time_per_byte == Fraction(2 * (n - 1), n) / found(t).total


def test_options() -> None:
    t = topology("mi300x(1)")
    problem = Problem(t, Collective("broadcast", 8, root=2, size=1 << 26))
    assert NcclRings(rings=3).run(problem).num_trees == 3
    assert NcclRings(pieces=5).run(problem).pieces == 5
    assert NcclRings().run(problem).pieces > 8
    assert NcclRings().plans_by_size(problem)
    assert not NcclRings().plans_by_size(Problem(t, Collective("allgather", 8)))
    for wrong in ({"rings": 0}, {"rings": 33}, {"node": 0}, {"pieces": 0}):
        with pytest.raises(CollcError):
            NcclRings(**wrong)  # type: ignore[arg-type]


def test_what_is_refused() -> None:
    for kind in ("alltoall", "gather"):
        with pytest.raises(CollcError, match="cannot schedule"):
            NcclRings().run(Problem(topology("mi300x(1)"), Collective(kind, 8, root=0 if kind == "gather" else None)))
    with pytest.raises(CollcError, match="finds no ring"):
        NcclRings().run(Problem(topology("mesh(3, 3)"), Collective("allgather", 9)))


def test_the_same_rings_again() -> None:
    assert found(topology("mi250(2)")).orders == found(topology("mi250(2)")).orders


def test_equal_links_in_any_units() -> None:
    """A box by hand, with names of one host."""
    net = named([(f"a/gpu{g}", "a/nvs", 100.0) for g in range(4)])
    assert found(net).total == 100 * GBPS


@pytest.mark.parametrize(("kind", "size"), [("broadcast", "1 KiB"), ("allgather", "64 B"), ("allreduce", "1 MiB")])
def test_pieces_are_judged_by_the_size(kind: str, size: str) -> None:
    """The driver compares pieces with the elements that they divide."""
    root = ", root: 1" if kind == "broadcast" else ""
    text = (
        "topology t = mi300x(1); collective c = {} on t {{ size: {}{} }}; schedule c using nccl-rings {{ pieces: {} }};"
    )
    made = collc.compile_source(text.format(kind, size, root, 2)).collectives["c"]
    assert made.forest is not None
    assert made.forest.pieces == 2
    with pytest.raises(CollcError, match="pieces"):
        collc.compile_source(text.format(kind, "64 B", root, 4000))


@pytest.mark.slow
def test_a_box_whose_first_paths_end_nowhere() -> None:
    """On a cube of six dimensions places by number lead astray, those with few neighbours do not."""
    assert found(topology("hypercube(6)"), 1).total == 1


def _fitting(uses: Array, room: Array) -> int:
    """Return the most rings that fit, by trying all."""
    if (room < 0).any():
        return -1
    return max((1 + _fitting(uses[k:], room - row) for k, row in enumerate(uses)), default=0) if len(uses) else 0


@settings(max_examples=examples(30))
@given(st.integers(1, 5), st.integers(2, 5), st.integers(0, 2**30))
def test_the_program_says_how_many_rings_fit(paths: int, pairs: int, seed: int) -> None:
    luck = np.random.default_rng(seed)
    uses = luck.integers(0, 2, (paths, pairs)).astype(np.uint8)
    uses[:, 0] = 1
    room = luck.integers(0, 4, pairs)
    most = _fitting(uses, room.astype(np.int64))
    bound = price_bound(uses, room)
    assert bound is None or bound >= most
    together = most_bandwidth(uses, [Fraction(int(amount), 3) for amount in room]) if room.any() else None
    assert together is None or together >= Fraction(max(most, 0), 3)
    rows = fitting_rows(uses, room, most) if most else []
    assert isinstance(rows, list)
    assert len(rows) == most
    assert (uses[rows].sum(axis=0) <= room).all()
    assert fitting_rows(uses, room, most + 1) in (False, True)
    assert bound is None or fitting_rows(uses, room, most + 1) is False


@pytest.mark.slow
def test_a_program_proves_what_the_search_does_not() -> None:
    """Eight GPUs in two rings of four, with lanes of 4, 2 and 1 as in boxes of four packages of two dies."""
    single = [(0, 2), (1, 3), (4, 6), (5, 7), (1, 5), (3, 7)]
    lanes = {4: [(0, 1), (2, 3), (4, 5), (6, 7)], 2: [(0, 6), (2, 4)], 1: single}
    links = [(x, y, LinkClass(Fraction(n))) for n, ends in lanes.items() for a, b in ends for x, y in ((a, b), (b, a))]
    rings = found(Topology.from_links("packages", 8, links))
    assert (rings.exhausted, rings.total, rings.bound) == (True, 4, 5)


def test_direct_links_that_do_not_join_all_ranks_have_no_rings() -> None:
    """The ring of all ranks passes a switch; the search over direct links alone finds nothing, and says so."""
    text = """topology t { rank g[6]; switch s;
      link g[1] -> g[2]; link g[2] -> g[4]; link g[4] <-> g[5]; link g[5] <-> s; link s <-> g[3];
      link g[3] <-> g[0]; link g[0] -> g[1]; }
    collective c = allreduce on t; schedule c using nccl-rings { rings: 4 };"""
    found = collc.compile_source(text, target="ir").collectives["c"]
    assert all(report.ok for report in found.reports)
