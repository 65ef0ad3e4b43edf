"""Networks with failures, slower links, and ranks in another order: `without`, `degraded`, `relabel`."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.frontends.coll import format_text, topology
from collc.ir.diagnostic import CollcError
from collc.ir.graph.isomorphism import isomorphism
from collc.ir.topology import Topology
from collc.ir.validate import structure

NETWORKS = ("torus(3, 3)", "torus(2, 2)", "diamond()", "dgx_a100(2)", "mi250(1)", "mi300x()", "leaf_spine(3, 2, 2, 2)")
networks = st.sampled_from(NETWORKS)


def rows(net: Topology) -> Counter[tuple[str, str, Fraction, Fraction]]:
    """The links by the names of their ends, with bandwidth and latency."""
    ends = zip(net.src.tolist(), net.dst.tolist(), range(net.num_links), strict=True)
    return Counter((net.names[a], net.names[b], net.bandwidth(link), net.latency(link)) for a, b, link in ends)


def link_text(net: Topology, link: int) -> str:
    return f"{net.names[net.src[link]]} -> {net.names[net.dst[link]]}"


@given(networks, st.data())
def test_a_network_without_links_has_all_others(expression: str, data: st.DataObject) -> None:
    """Each mention takes one of parallel links away; what stays and what was named are the whole again."""
    net = topology(expression)
    links = data.draw(st.sets(st.integers(0, net.num_links - 1), max_size=4))
    named = ", ".join(link_text(net, link) for link in sorted(links))
    less = topology(f"without({expression}, {{{named}}})") if links else net
    taken = Counter((net.names[net.src[i]], net.names[net.dst[i]]) for i in links)
    ends = Counter((net.names[a], net.names[b]) for a, b in zip(net.src.tolist(), net.dst.tolist(), strict=True))
    left = Counter((less.names[a], less.names[b]) for a, b in zip(less.src.tolist(), less.dst.tolist(), strict=True))
    gone = set(net.names) - set(less.names)  # switches that joined nothing any more
    assert structure(less) == [] and less.num_ranks == net.num_ranks
    assert left == Counter({e: n for e, n in (ends - taken).items() if not gone & set(e)})


@given(networks, st.data())
def test_a_network_without_ranks_is_the_subset_of_the_others(expression: str, data: st.DataObject) -> None:
    net = topology(expression)
    gone = data.draw(st.sets(st.integers(0, net.num_ranks - 1), min_size=1, max_size=net.num_ranks - 1))
    others = sorted(set(range(net.num_ranks)) - gone)
    less = topology(f"without({expression}, {{{', '.join(map(str, gone))}}})")
    subset = topology(f"subset({expression}, {{{', '.join(map(str, others))}}})")
    assert less.names == subset.names and rows(less) == rows(subset)
    if net.node_names:
        assert less.names[: less.num_ranks] == tuple(net.names[rank] for rank in others)


def test_names_stay_and_may_be_used_again() -> None:
    net = topology("without(without(dgx_a100(2), {gpu[0, 3]}), {gpu[0, 4], nv[1]})")
    assert net.names[:4] == ("gpu[0, 0]", "gpu[0, 1]", "gpu[0, 2]", "gpu[0, 5]") and net.names[-2:] == ("nv[0]", "ib")
    with pytest.raises(CollcError) as caught:
        topology("without(without(dgx_a100(2), {gpu[0, 3]}), {gpu[0, 3]})")
    assert caught.value.diagnostics[0].code == "C0135"


def test_of_parallel_links_every_mention_is_one() -> None:
    assert [topology(f"without(torus(2, 2), {{{', '.join(['0 <-> 1'] * n)}}})").num_links for n in (1, 2)] == [14, 12]


@given(networks, st.fractions(Fraction(1, 64), 1), st.data())
def test_degraded_links_have_a_share_of_their_bandwidth(expression: str, factor: Fraction, data: st.DataObject) -> None:
    net = topology(expression)
    link = data.draw(st.integers(0, net.num_links - 1))
    slow = topology(f"degraded({expression}, {{{link_text(net, link)}}}, {factor})")
    changed = [i for i in range(net.num_links) if net.bandwidth(i) != slow.bandwidth(i)]
    assert len(changed) == (factor != 1)
    assert all(slow.bandwidth(i) == factor * net.bandwidth(i) for i in changed)
    assert [(slow.src[i], slow.dst[i]) for i in changed] == [(net.src[link], net.dst[link])] * len(changed)
    if factor == 1:
        assert slow == net or rows(slow) == rows(net)


def test_degraded_nodes_have_slow_links_in_and_out() -> None:
    net = topology("degraded(torus(3, 3), {4, 0 <-> 1}, 1/2)")
    assert (net.egress(4), net.ingress(4), net.egress(0), net.egress(1)) == (2, 2, Fraction(7, 2), 3)
    assert net.symmetry is None and topology("degraded(torus(3, 3), {4}, 1)").symmetry is not None


def test_a_default_bandwidth_scales_degraded_links() -> None:
    slow = "degraded(torus(3, 3), {0 <-> 1}, 1/4) with { bandwidth: 8 GB/s }"
    text = f"topology t = {slow};\ncollective c = allgather on t;"
    net = collc.compile_source(text, target="ir").schedule.topology
    assert {kind.bandwidth for kind in net.classes} == {8 * 10**9, 2 * 10**9}


@given(networks, st.data())
def test_other_orders_of_ranks_give_the_same_network(expression: str, data: st.DataObject) -> None:
    """Rank i is what was rank p[i]; the inverse order gives the network back, link by link."""
    net = topology(expression)
    order = data.draw(st.permutations(range(net.num_ranks)))
    text = f"relabel({expression}, {{{', '.join(map(str, order))}}})"
    other = topology(text)
    back = topology(f"relabel({text}, {{{', '.join(str(order.index(i)) for i in range(len(order)))}}})")
    assert np.array_equal(back.src, net.src) and np.array_equal(back.dst, net.dst) and back.names == net.names
    assert isomorphism(net, other) is not None
    if net.node_names:
        assert rows(other) == rows(net) and other.names[0] == net.names[order[0]]
    assert [other.egress(i) for i in range(len(order))] == [net.egress(rank) for rank in order]


def test_names_of_topologies_are_what_was_written() -> None:
    for text in (
        "without(dgx_a100(2), {gpu[0, 3], gpu[1, 0] <-> ib, nv[0]})", "relabel(diamond(), {7, 6, 5, 4, 3, 2, 1, 0})",
        "degraded(torus(3, 3), {0 -> 1, 2 <-> 5}, 1/2)", "without(torus(3, 3), {0, 4..6})",
    ):  # fmt: skip
        net = topology(text)
        assert net.name == text and topology(net.name) == net


def test_the_printed_form_has_links() -> None:
    text = "topology t = without(torus(3, 3), {0->1,2<->(1+4), 7});\n"
    assert format_text(text) == "topology t = without(torus(3, 3), {0 -> 1, 2 <-> 1 + 4, 7});\n"
