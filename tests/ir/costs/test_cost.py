"""The cost model and the bounds: exact, and the paper's figures come out."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import attrs
import pytest
from hypothesis import given, settings
from nets import complete, de_bruijn, generalized_kautz, hypercube, one_way_ring, torus
from places import DATA
from sampling import examples
from strategies import connected

from collc.ir.collective import Collective
from collc.ir.costs.bounds import bandwidth_bound, moore_bound, moore_steps, time_per_byte_bound, worst_cut
from collc.ir.costs.cost import assumptions, cost, predict
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.passes.synthesis.breadth_first.bfb import BFB


def bfb(topology, kind="allgather", root=None):
    return BFB().run(Problem(topology, Collective(kind, topology.num_ranks, root=root)))


# ---- bounds


def test_moore():
    """Definition 9: 1 + d + .. + d^k nodes; Definition 10: the least k for N nodes."""
    assert [1, 5, 21, 85] == [moore_bound(4, k) for k in range(4)]
    assert [0, 1, 1, 2, 5, 9] == [moore_steps(1, 4), moore_steps(5, 4), moore_steps(2, 4), moore_steps(6, 4),
                                  moore_steps(1024, 4), moore_steps(10, 1)]  # fmt: skip


def slow_cut(topology):
    """The largest |S| / (N B+(S)) over all sets of ranks, one by one (switchless)."""
    n = topology.num_ranks
    best = Fraction(0)
    for size in range(1, n):
        for chosen in combinations(range(n), size):
            inside = set(chosen)
            leaving = sum(
                topology.bandwidth(i)
                for i, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
                if a in inside and b not in inside
            )
            best = max(best, Fraction(size, n) / leaving)
    return best


@given(connected(min_ranks=2, max_ranks=6, extra=10))
@settings(max_examples=examples(60))
def test_the_worst_cut_is_exact(topology):
    """Newton on cuts finds what trying every set finds."""
    assert slow_cut(topology) == worst_cut(topology)[0]


@given(connected(min_ranks=2, max_ranks=6, extra=10))
@settings(max_examples=examples(60))
def test_no_schedule_beats_the_cuts(topology):
    """The cut bound holds for allgather, reduce-scatter (on the transpose) and allreduce (both)."""
    for kind in ("allgather", "reduce-scatter", "allreduce"):
        found = cost(bfb(topology, kind))
        assert found.time_per_byte >= found.time_per_byte_bound > 0
        assert found.T_B is None or found.T_B >= found.T_B_bound


def test_a_bottleneck_between_two_cliques_is_found():
    """Two triangles joined by one link each way: half the shards cross it."""
    links = [(a, b) for part in ((0, 1, 2), (3, 4, 5)) for a in part for b in part if a != b]
    net = Topology.from_links("barbell", 6, [*links, (2, 3), (3, 2)])
    ratio, name = worst_cut(net)
    assert Fraction(1, 2) == ratio
    assert name in [f"links out of {ranks}: 3 shards over 1 link unit" for ranks in ("ranks 0 to 2", "ranks 3 to 5")]
    found = cost(bfb(net))
    assert (found.T_B, found.T_B_bound) == (None, None) and found.time_per_byte_bound == Fraction(1, 2)


def test_rooted_and_alltoall_bounds():
    net = complete(4)
    for kind, expected in (("broadcast", Fraction(1, 3)), ("reduce", Fraction(1, 3)), ("gather", Fraction(1, 4)),
                           ("scatter", Fraction(1, 4))):  # fmt: skip
        assert expected == time_per_byte_bound(net, Collective(kind, 4, root=1))[0]
    assert Fraction(3, 4) == bandwidth_bound(net, Collective("alltoall", 4))
    ring = one_way_ring(4)  # hops 1 + 2 + 3 from every rank
    assert Fraction(6, 4) == bandwidth_bound(ring, Collective("alltoall", 4))


# ---- cost


def test_steps_and_bandwidth_of_hand_made_rows():
    """Two steps on a one-way ring of 3: each link carries a whole shard in each, d = 1."""
    net = one_way_ring(3)
    rows = [(s, 0, (r - s) % 3, 0, 1, r) for s in range(2) for r in range(3)]
    s = Schedule(net, Collective("allgather", 3), 1, *zip(*rows, strict=True))
    found = cost(s)
    assert (2, Fraction(2, 3), Fraction(2, 3)) == (found.T_L, found.T_B, found.T_B_bound)
    assert found.bw_optimal and found.moore_optimal and (1, 2) == (found.degree, found.diameter)


def test_the_slowest_link_counts():
    """A step lasts as long as its slowest link; where ranks differ in bandwidth T_B has no unit."""
    fast, slow = LinkClass(Fraction(10)), LinkClass(Fraction(2), Fraction(1, 1000))
    net = Topology.from_links("uneven", 2, [(0, 1, fast), (1, 0, slow)], unit="B/s")
    s = Schedule(net, Collective("allgather", 2), 1, [0, 0], [0, 0], [0, 1], [0, 0], [1, 1], [0, 1])
    found = cost(s)
    assert (None, Fraction(1, 4), Fraction(1, 4)) == (found.T_B, found.time_per_byte, found.time_per_byte_bound)
    assert found.bw_optimal
    point = predict(found, [1000])[0]
    assert 250.001 == pytest.approx(point.time) and 1000 / 250.001 == pytest.approx(point.bandwidth)


def test_forests_cost_by_their_busiest_link():
    """Two trees a root on K3, half a shard each: every link carries half its own and half of another's."""
    net = complete(3)
    link = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(net.src, net.dst, strict=True))}
    rows = []
    for t in range(6):
        root, via = divmod(t, 2)
        a, b = [r for r in range(3) if r != root][:: 1 if via else -1]
        rows += [(t, root, a, link[root, a]), (t, a, b, link[a, b])]
    tree, parent, child, route = zip(*rows, strict=True)
    forest = Forest(net, Collective("allgather", 3), 2, [0, 0, 1, 1, 2, 2], [1] * 6, tree, parent, child, route)
    found = cost(forest)
    assert (Fraction(1), 2, 6, 2) == (
        found.forest.one_over_x, found.forest.k, found.forest.trees, found.forest.max_height,
    )  # fmt: skip
    assert Fraction(2, 3) == found.T_B and found.bw_optimal


# ---- the paper's tables

TABLES = DATA / "paper_tables.json"


@pytest.mark.parametrize(
    ("table", "topology"),
    [("Pi_{4,64}", generalized_kautz(4, 64)), ("Pi_{4,1024}", generalized_kautz(4, 1024)),
     ("DBJ(4,4)", de_bruijn(4, 4))],
)  # fmt: skip
def test_table_7(table, topology):
    """T_L, T_B to the printed digits, and the diameter."""
    rows = json.loads(TABLES.read_text())["table7_d4"]
    _, steps, bandwidth, diameter, _ = next(row for group in rows.values() for row in group if row[0] == table)
    found = cost(bfb(topology))
    assert (steps, diameter) == (found.T_L, found.diameter)
    assert abs(float(found.T_B) - bandwidth) <= 0.0005


@pytest.mark.slow
def test_table_4():
    """Allreduce in 323.5 us on Pi(4, 1024): alpha 10 us, 1 MB, 100 Gbps out of each node."""
    given_ = json.loads(TABLES.read_text())["table4"]
    row = given_["rows"][0]
    found = cost(bfb(generalized_kautz(4, 1024), "allreduce"))
    point = predict(found, [2**20], Fraction(given_["alpha_us"], 10**6), Fraction(100 * 10**9, 8))[0]
    assert row["allreduce_us"] == pytest.approx(point.time * 1e6, abs=0.05)
    assert given_["bound"]["T_L"] == moore_steps(1024, 4)
    assert given_["bound"]["allreduce_us"] == pytest.approx(
        2e6 * (5 * 10e-6 + float(found.T_B_bound / 2) * 2**20 * 8 / 100e9), abs=0.05
    )


def test_defaults_of_a_prediction():
    """Without any figure the paper's testbed is assumed; absolute links need none."""
    found = cost(bfb(hypercube(3)))
    assert predict(found, [2**20])[0].time == pytest.approx(3 * 10e-6 + 7 / 8 * 2**20 * 8 / 100e9)
    absolute = torus(3, 3).with_links(Fraction(10**9), Fraction(1, 10**6))
    found = cost(bfb(absolute))
    assert predict(found, [9 * 10**6])[0].time == pytest.approx(2e-6 + 8 / 9 * 9e6 / 4e9)
    assert attrs.evolve(found, latency=Fraction(0)).latency == 0


def test_what_a_prediction_assumes_is_said():
    """Each figure that nobody gave is named, and none that somebody did."""
    found = cost(bfb(hypercube(3)))
    assert assumptions(found) == ("10 us a step", "12.5 GB/s out of a node")
    assert assumptions(found, alpha=Fraction(0), bandwidth=Fraction(1)) == ()
    absolute = cost(bfb(hypercube(3).with_links(Fraction(10**9), Fraction(1, 10**6))))
    assert assumptions(absolute) == ()


def test_a_node_bandwidth_does_not_rescale_links_that_have_their_own():
    """Where nodes differ there is no common B; absolute links keep their bandwidths, link units take the one given."""
    own = [(0, 1, LinkClass(Fraction(10))), (1, 0, LinkClass(Fraction(2)))]
    for unit, seconds in (("B/s", 250.0), ("link", 50.0)):
        net = Topology.from_links("uneven", 2, own, unit=unit)
        s = Schedule(net, Collective("allgather", 2), 1, [0, 0], [0, 0], [0, 1], [0, 0], [1, 1], [0, 1])
        assert predict(cost(s), [1000], Fraction(0), Fraction(5))[0].time == pytest.approx(seconds)


# ---- links that differ in latency


def test_the_latency_of_a_step_is_that_of_its_latest_link():
    """Late and wide, or soon and narrow: small data wait for the one, large data for the other."""
    kinds = [LinkClass(Fraction(10), Fraction(5)), LinkClass(Fraction(1), Fraction(2))]
    net = Topology.from_links("two", 2, [(0, 1, kinds[0]), (1, 0, kinds[1])])
    found = cost(bfb(net))
    assert found.latency == 5 and found.time_per_byte == Fraction(1, 2)
    assert found.slowest == (((Fraction(5), Fraction(1, 20)), (Fraction(2), Fraction(1, 2))),)


def test_of_two_equal_bounds_the_one_of_all_schedules_is_named():
    """A bound by trees says something only where it is larger."""
    found = cost(bfb(torus(3, 3)))
    equal, larger = (attrs.evolve(found.bound, name="trees", value=found.bound.value * k) for k in (1, 2))
    assert attrs.evolve(found, tree_bound=equal).tightest is found.bound
    assert attrs.evolve(found, tree_bound=larger).bottleneck_cut == "trees"
