"""Smallest cuts, the bottleneck of a network, and the bounds that rest on it: against trying every set of nodes."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import attrs
import pytest
import strategies
from cut_nets import all_sets, out_of, sent, slow_ratio, supplies, switched
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.frontends.coll.families.machines import dgx_a100, mi250
from collc.ir.collective import Collective
from collc.ir.costs.bounds import time_per_byte_bound, worst_cut
from collc.ir.diagnostic import CollcError
from collc.ir.graph.bottleneck import cut_ratio, leaving, whole_bandwidths, worst_ratio
from collc.ir.graph.cuts import FlowNetwork
from collc.ir.topology import LinkClass, Topology

# ---- the kernel


@st.composite
def flows(draw: st.DrawFn):
    """A network, supplies of its nodes, and sinks in any order."""
    nodes = draw(st.integers(2, 6))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node, st.integers(0, 5)), max_size=20))
    supply = draw(st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes))
    sinks = draw(st.lists(node, min_size=1, unique=True))
    return FlowNetwork(nodes, arcs), supply, sinks


def value(network, supply, nodes) -> int:
    return network.leaving(nodes) + sum(s for v, s in enumerate(supply) if v not in nodes)


def slow_cut(network, supply, sinks) -> int:
    sets = [(), *all_sets(network.num_nodes, sinks)]
    return min(value(network, supply, nodes) for nodes in sets)


@given(flows(), st.integers(0, 40))
@settings(max_examples=examples(300))
def test_the_smallest_cut_is_the_smallest_of_all_sets(case, limit):
    network, supply, sinks = case
    before, slowest = list(network.capacity), slow_cut(network, supply, sinks)
    found = network.smallest_cut(supply, sinks, limit)
    assert network.capacity == before
    if slowest >= limit:
        assert found is None
    else:
        assert found.value == slowest == value(network, supply, found.nodes)
        assert not set(sinks) <= set(found.nodes) and list(found.nodes) == sorted(found.nodes)


@given(flows())
@settings(max_examples=examples(200))
def test_too_small_a_cut_is_found_wherever_there_is_one(case):
    network, supply, sinks = case
    before = list(network.capacity)
    cuts = network.violated(supply, sinks, most=3)
    assert network.capacity == before and len(cuts) <= 3
    assert bool(cuts) == (slow_cut(network, supply, sinks) < sum(supply))
    assert all(cut.value == value(network, supply, cut.nodes) < sum(supply) for cut in cuts)


@given(flows())
def test_a_sweep_that_mends_leaves_nothing_to_mend(case):
    """Whatever is too small is enlarged by one arc out of it, until all supplies reach all sinks."""
    network, supply, sinks = case
    mended = []

    def mend(nodes):
        assert value(network, supply, nodes) < sum(supply)
        mended.append(nodes)
        outside = next(sink for sink in sinks if sink not in nodes)
        network.add(nodes[0], outside, sum(supply) - value(network, supply, nodes))
        return supply

    needed = bool(network.violated(supply, sinks))
    network.settle(supply, sinks, mend)
    assert bool(mended) == needed and not network.violated(supply, sinks)


def test_capacities_add_up_and_can_be_set_anew():
    network = FlowNetwork(3, [(0, 1, 2), (1, 0, 5), (0, 1, 3), (2, 2, 9)])
    network.add(0, 1, -1)
    assert (network.between(0, 1), network.between(1, 0), network.between(1, 2)) == (4, 5, 0)
    assert list(network.arcs()) == [(0, 1, 4), (1, 0, 5)] and network.leaving([0]) == 4
    network.refill([(1, 2, 7), (0, 1, 1)])
    assert sorted(network.arcs()) == [(0, 1, 1), (1, 2, 7)] and network.leaving([0, 1]) == 7


def test_a_sweep_can_end_at_the_first_cut_that_is_small_enough():
    network = FlowNetwork(3, [(0, 1, 2), (0, 2, 1), (1, 2, 0)])
    assert network.smallest_cut([5, 0, 0], [1, 2], 5).nodes == (0, 1)
    assert network.smallest_cut([5, 0, 0], [1, 2], 5, below=3).value == 2


# ---- the bottleneck


@pytest.mark.slow
@given(st.data(), switched())
@settings(max_examples=examples(250))
def test_the_bottleneck_is_the_worst_of_all_sets(data, topology):
    supply = data.draw(supplies(topology))
    ratio, nodes = worst_ratio(topology, supply)
    assert ratio == slow_ratio(topology, supply, range(topology.num_ranks)) == cut_ratio(topology, supply, nodes)
    assert bool(ratio) == bool(nodes) and not set(nodes) >= set(range(topology.num_ranks))


@pytest.mark.slow
@given(st.data(), switched())
@settings(max_examples=examples(100))
def test_with_some_sinks_only_sets_without_them_count(data, topology):
    sinks = data.draw(st.lists(st.integers(0, topology.num_ranks - 1), min_size=1, unique=True))
    ratio, nodes = worst_ratio(topology, [1] * topology.num_ranks, sinks)
    assert ratio == slow_ratio(topology, [1] * topology.num_ranks, sinks)
    assert ratio == 0 or not set(nodes) >= set(sinks)


@given(strategies.families(), st.integers(0, 3))
def test_where_all_ranks_are_alike_one_sink_will_do(topology, common):
    """A Cayley digraph, its symmetry known and forgotten."""
    supply = [common] * topology.num_ranks
    assert worst_ratio(topology, supply)[0] == worst_ratio(attrs.evolve(topology, symmetry=None), supply)[0]


def test_a_symmetric_network_whose_bottleneck_is_not_round_one_rank():
    """Two fat triangles joined by three thin links: one flow must find that."""
    fat, thin = LinkClass(Fraction(100)), LinkClass(Fraction(1))
    net = strategies.translations([6], [[2], [4], [3]], "prism")
    net = attrs.evolve(net, classes=(fat, thin), link_class=[0, 0, 1] * 6)
    assert net.symmetry is not None and worst_ratio(net, [1] * 6)[0] == 1


@given(switched())
def test_bandwidths_as_whole_numbers(topology):
    whole, scale = whole_bandwidths(topology)
    for link, width in enumerate(whole):
        loop = topology.src[link] == topology.dst[link]
        assert isinstance(width, int) and width == (0 if loop else topology.bandwidth(link) * scale)
    assert scale > 0


@given(st.data(), switched())
def test_the_links_out_of_a_set(data, topology):
    nodes = data.draw(st.sets(st.integers(0, topology.num_nodes - 1)))
    assert [topology.bandwidth(link) for link in leaving(topology, nodes).tolist()] == out_of(topology, nodes)


def test_what_cannot_get_out_is_an_error():
    two = Topology.from_links("islands", 4, [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2)])
    with pytest.raises(CollcError) as caught:
        worst_ratio(two, [1] * 4)
    assert [d.code for d in caught.value.diagnostics] == ["C0301"]
    assert "no link leads out of ranks {2, 3} (2 of 4)" in str(caught.value)
    assert worst_ratio(two, [1, 0, 0, 0])[0] == 1  # rank 0 reaches everybody


def test_a_single_rank_has_no_bottleneck():
    assert worst_ratio(Topology.from_links("one", 1, [(0, 0)]), [1]) == (0, ())
    assert worst_cut(Topology.from_links("one", 1, [])) == (0, "none")


# ---- bounds


def slow_bound(topology: Topology, collective: Collective) -> Fraction:
    """What cuts say of a collective, set by set: reductions run backwards."""
    n, root = topology.num_ranks, collective.root
    found = [Fraction(0)]
    backwards = topology.transpose() if collective.kind in ("reduce-scatter", "reduce", "scatter") else topology
    for nodes in all_sets(topology.num_nodes, range(n)):
        match collective.kind:
            case "allgather" | "reduce-scatter":
                parts = sent(topology, [1] * n, nodes)
            case "broadcast" | "reduce":
                parts = n if root in nodes else 0
            case _:
                parts = 0 if root in nodes else sent(topology, [1] * n, nodes)
        if parts:
            found.append(Fraction(parts, n) / sum(out_of(backwards, nodes), Fraction(0)))
    return max(found)


@pytest.mark.slow
@given(
    switched(max_ranks=4),
    st.sampled_from(["allgather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter"]),
    st.integers(0, 1),
)
@settings(max_examples=examples(200))
def test_bounds_are_those_of_the_worst_cut(topology, kind, root):
    rooted = kind not in ("allgather", "reduce-scatter")
    collective = Collective(kind, topology.num_ranks, root if rooted else None)
    assert time_per_byte_bound(topology, collective)[0] == slow_bound(topology, collective)


def test_cuts_have_names():
    line = Topology.from_links("line", 4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)] + [(0, 1), (1, 0)] * 3)
    for kind, root, name in (
        ("broadcast", 0, "links into rank 3: 1 vector over 1 link unit"),
        ("broadcast", 3, "links out of the root: 1 vector over 1 link unit"),
        ("reduce", 0, "links out of rank 3: 1 vector over 1 link unit"),
        ("reduce", 3, "links into the root: 1 vector over 1 link unit"),
        ("gather", 3, "links into the root: 3 shards over 1 link unit"),
        ("scatter", 3, "links out of the root: 3 shards over 1 link unit"),
        ("allgather", None, "links into rank 3: 3 shards over 1 link unit"),
        ("reduce-scatter", None, "links out of rank 3: 3 shards over 1 link unit"),
        ("allreduce", None, "links into rank 3: 1 vector over 1 link unit"),
    ):
        assert time_per_byte_bound(line, Collective(kind, 4, root))[1] == name
    fat = Topology.from_links("fat", 4, [(0, 1), (1, 0), (2, 3), (3, 2)] * 3 + [(1, 2), (2, 1)])
    for kind, ranks in (("broadcast", "0, 1"), ("reduce", "2, 3")):
        name = f"links out of ranks {ranks}: 1 vector over 1 link unit"
        assert time_per_byte_bound(fat, Collective(kind, 4, 1)) == (1, name)


def test_a_thousand_gpus_behind_switches_take_no_second():
    started = time.perf_counter()
    ratio, name = worst_cut(dgx_a100(128))
    assert ratio == Fraction(127, 1024 * 25 * 10**9) and name == "links into box 0: 1,016 shards over 200 GB/s"
    assert worst_cut(mi250(64))[0] == Fraction(63, 1024 * 16 * 10**9)
    assert time.perf_counter() - started < 10


def test_order_of_nodes_does_not_matter():
    """The same network with its ranks renamed: the same ratio, wherever the sweep begins."""
    net = mi250(2)
    ratio = worst_ratio(net, [1] * 32)[0]
    for seed in range(3):
        names = list(range(32))
        random.Random(seed).shuffle(names)
        moved = [names[v] if v < 32 else v for v in range(33)]
        links = [
            (moved[a], moved[b], net.classes[c])
            for a, b, c in zip(net.src.tolist(), net.dst.tolist(), net.link_class.tolist(), strict=True)
        ]
        assert (
            worst_ratio(Topology.from_links("moved", 32, links, 1), [1] * 32)[0] == ratio == Fraction(15, 166 * 10**9)
        )
