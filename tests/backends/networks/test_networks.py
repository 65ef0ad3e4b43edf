"""Networks as texts of other programs: what is read back is the same network, and what a form lacks is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import attrs
import pytest
import strategies
from boxes_of_gpus import box, card
from every_family import EXPRESSIONS
from hypothesis import given, settings
from hypothesis import strategies as st
from read_networks import Link, astra_links, links, nccl_links, read_dot, read_graphml, read_nodelink
from sampling import every, examples

from collc.backends.networks import write_network
from collc.backends.networks.values import decimal_text
from collc.frontends import importing
from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError, Source
from collc.ir.topology import LinkClass, Topology

Reader = Callable[[str], Topology]

TRY = settings(max_examples=examples(60), deadline=None)
READERS: dict[str, Reader] = {"nodelink": read_nodelink, "graphml": read_graphml, "dot": read_dot}
CALLS = [call for calls in EXPRESSIONS.values() for call in calls]


def same(one: Topology, other: Topology) -> bool:
    """Return whether two networks are equal but for the numbers of classes, the symmetry and the origin."""
    names = ("num_ranks", "num_switches", "names", "unit", "gamma", "epsilon")
    return all(getattr(one, name) == getattr(other, name) for name in names) and links(one) == links(other)


def reason(network: Topology | str, form: str) -> str:
    """Return why a form refuses a network."""
    found = topology(network) if isinstance(network, str) else network
    with pytest.raises(CollcError) as refused:
        write_network(found, form)
    assert refused.value.diagnostics[0].code == "C0780"
    return refused.value.diagnostics[0].message


# ---- any network


@pytest.mark.parametrize("form", READERS)
def test_every_family_operator_and_failure_is_read_back(form: str) -> None:
    for call in every(3, CALLS):
        network = topology(call)
        again = READERS[form](write_network(network, form))
        assert same(network, again) and network.name == again.name, call


@TRY
@given(strategies.topologies(named=True))
def test_any_network_is_read_back_from_node_link(network: Topology) -> None:
    again = read_nodelink(write_network(network, "nodelink"))
    assert same(network, again) and again.name == (network.name or "graph")


@TRY
@given(strategies.topologies(), st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn")), min_size=1))
@pytest.mark.parametrize("form", ["graphml", "dot"])
def test_any_network_is_read_back(form: str, network: Topology, name: str) -> None:
    """Whatever the names: quotes, backslashes, tags, ends of comments."""
    named = attrs.evolve(network, name=name, node_names=tuple(f"{name}{k}" for k in range(network.num_nodes)))
    assert same(named, READERS[form](write_network(named, form)))


@pytest.mark.parametrize("form", ["graphml", "dot"])
def test_names_that_a_form_would_change_are_refused(form: str) -> None:
    names = ("a\nb", "0", "1")
    assert "'a\\nb' has a control character" in reason(attrs.evolve(topology("torus(3)"), node_names=names), form)


def test_an_empty_name_is_refused_by_graphml_alone() -> None:
    network = attrs.evolve(topology("torus(3)"), node_names=("a", "", "c"))
    assert "node 1 has an empty name" in reason(network, "graphml")
    assert same(network, read_dot(write_network(network, "dot")))


def test_duplex_links_are_one_edge_only_if_their_order_is_kept() -> None:
    assert write_network(topology("mi300x()"), "dot").count("dir=both") == 28
    assert "dir=both" not in write_network(topology("torus(3)"), "dot")  # links rank by rank


# ---- what `collc import` reads


def imported(text: str, name: str) -> Topology:
    return importing.read([Source("written", text)]).topology(name)


@pytest.mark.parametrize("form", READERS)
def test_every_network_is_imported_again(form: str) -> None:
    """Names, links in their order, bandwidths and latencies; the importers' own readers."""
    for call in every(3, CALLS, 1):
        network = topology(call)
        again = imported(write_network(network, form), network.name)
        assert (links(network), network.names, network.unit) == (links(again), again.names, again.unit), call


def test_every_machine_is_imported_again() -> None:
    for network in (box(), box(8, 36), box(2, Fraction("370.8")), card()):
        text = write_network(network, "nccl-topo")
        again = imported(text, network.name)
        assert named_links(again) == named_links(network)
        assert write_network(again, "nccl-topo").count("\n") == text.count("\n")


def test_every_product_is_imported_again() -> None:
    for call in ("torus(4, 3)", "hyperx(4, 5)", "product(biring(5), complete(4))"):
        network = topology(call + _WITH)
        assert with_sets(imported(write_network(network, "astra-sim"), "a")) == with_sets(network)


# ---- ASTRA-sim

_WITH = " with { bandwidth: 25 GB/s, latency: 500 ns }"


def with_sets(network: Topology) -> Counter[Link]:
    """Return the links, a switch as the set of its ranks."""
    near = {
        s: frozenset(b for a, b, *_ in links(network) if a == s) for s in range(network.num_ranks, network.num_nodes)
    }
    return Counter((near.get(a, a), near.get(b, b), rate, latency) for a, b, rate, latency in links(network))


@pytest.mark.parametrize(
    ("network", "kinds", "sizes"),
    [
        ("torus(4, 3)" + _WITH, "Ring, Ring", "3, 4"),
        ("hypercube(3)" + _WITH, "FullyConnected, FullyConnected, FullyConnected", "2, 2, 2"),
        ("hyperx(4, 5)" + _WITH, "FullyConnected, FullyConnected", "5, 4"),
        ("complete(8)" + _WITH, "FullyConnected", "8"),
        ("dgx_a100(1)", "Switch", "8"),
        ("product(biring(5), complete(4))" + _WITH, "FullyConnected, Ring", "4, 5"),
        ("mi300x()", "FullyConnected", "8"),
    ],
)
def test_products_are_written_for_astra_sim(network: str, kinds: str, sizes: str) -> None:
    found = topology(network)
    text = write_network(found, "astra-sim")
    assert f"topology: [ {kinds} ]\nnpus_count: [ {sizes} ]\n" in text
    assert astra_links(text) == with_sets(found)


@TRY
@given(st.lists(st.tuples(st.sampled_from(["biring", "complete", "star"]), st.integers(3, 5)), min_size=1, max_size=3))
def test_products_of_any_kinds_are_read_back(factors: list[tuple[str, int]]) -> None:
    """Each dimension has its own links; two may be alike."""
    sizes = [size for _, size in factors]
    ranks, rows = math.prod(sizes), list[tuple[int, int, LinkClass]]()
    switches = 0
    for k, (kind, size) in enumerate(factors):
        link, stride = LinkClass(Fraction((k + 1) * 10**9), Fraction(k, 10**9)), math.prod(sizes[:k])
        for first in (r for r in range(ranks) if r // stride % size == 0):
            line = [first + stride * x for x in range(size)]
            pairs = [(line[x], line[y]) for x in range(size) for y in range(size)
                     if x != y and (kind == "complete" or (x - y) % size in (1, size - 1))]  # fmt: skip
            if kind == "star":
                pairs = [pair for rank in line for pair in ((rank, ranks + switches), (ranks + switches, rank))]
                switches += 1
            rows += [(a, b, link) for a, b in pairs]
    network = Topology.from_links("product", ranks, rows, switches, unit="B/s")
    assert astra_links(write_network(network, "astra-sim")) == with_sets(network)


@pytest.mark.parametrize("call", every(4, CALLS))
def test_what_is_written_for_astra_sim_is_the_network(call: str) -> None:
    network = topology(call)
    network = network if network.unit == "B/s" else topology(call + _WITH)
    try:
        text = write_network(network, "astra-sim")
    except CollcError:
        return
    assert astra_links(text) == with_sets(network)


@pytest.mark.parametrize(
    ("network", "why"),
    [
        ("torus(4)", "no bandwidth in B/s"),
        ("mesh(4)" + _WITH, "no product of rings, complete graphs and switches (4 ranks and 0 switches)"),
        ("torus(2, 2)" + _WITH, "no product"),  # a ring of 2 has parallel links
        ("uniring(5)" + _WITH, "no product"),
        ("dgx_a100(2)", "no product"),
    ],
)
def test_what_astra_sim_lacks_is_refused(network: str, why: str) -> None:
    assert why in reason(network, "astra-sim")


def test_numbers_without_a_decimal_are_refused() -> None:
    third = topology("torus(4)").with_links(Fraction(1, 3), None)
    assert "a bandwidth of 1/3000000000 GB/s is no decimal" in reason(third, "astra-sim")


@TRY
@given(st.integers(0, 10**12), st.integers(0, 30))
def test_decimals_are_exact(number: int, places: int) -> None:
    value = Fraction(number, 10**places)
    text = decimal_text(value)
    assert text is not None and Fraction(text) == value and (decimal_text(value + Fraction(1, 3)) is None)


# ---- NCCL


def named_links(network: Topology) -> dict[tuple[str, str], tuple[Fraction, Fraction]]:
    found: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    for a, b, rate, latency in links(network):
        key = network.names[a], network.names[b]
        found[key] = found.get(key, (Fraction(0), latency))[0] + rate / 10**9, latency
    return found


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("nvlink", [240, Fraction("370.8"), Fraction("721.8"), 36])
def test_a_machine_is_read_back_from_the_file_of_nccl(gpus: int, nvlink: Fraction | int) -> None:
    network = box(gpus, nvlink)
    assert nccl_links(write_network(network, "nccl-topo")) == named_links(network)


def test_cards_with_ports_and_nics_without_pcie_are_read_back() -> None:
    """A card of two ports, a NIC that hangs from the CPU, and GPUs whose numbers are not their ranks."""
    network = card()
    text = write_network(network, "nccl-topo")
    assert nccl_links(text) == named_links(network)
    assert '<gpu dev="1" sm="80" rank="0"' in text and text.count("<net ") == 3


def test_machines_without_cpus_get_one() -> None:
    """xGMI links of AMD are found by their bandwidth; the file says what is invented."""
    network = topology("complete(4) with { bandwidth: 48 GB/s }")
    text = write_network(network, "nccl-topo")
    assert text.startswith("<!-- the network has no CPUs and bus ids: these are invented -->\n")
    found = {pair: rate for pair, (rate, _) in nccl_links(text).items()}
    assert found == {(f"gpu{a}", f"gpu{b}"): 48 for a in range(4) for b in range(4) if a != b}


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (topology("torus(3)"), "no bandwidth in B/s"),
        (topology("dgx_a100(2)"), "it has 2 boxes, and the file is for one machine"),
        (topology("mi300x()"), "links of 64 GB/s between GPUs are no multiple of a link that NCCL knows"),
        (topology("mi300x(2)"), "it has 2 boxes"),
        (topology("biring(3) with { bandwidth: 48 GB/s, latency: 1 us }"), "has a latency"),
        (box(pcie=25), "no PCIe link has the 25 GB/s of `0000:17:00.0`"),
        (box(joint=17), "no CPU that NCCL knows has links of 17 GB/s"),
    ],
)
def test_what_nccl_lacks_is_refused(network: Topology, why: str) -> None:
    assert why in reason(network, "nccl-topo")


def test_a_link_without_a_place_is_refused() -> None:
    """A GPU that hangs from two PCIe switches, and a link that has no reverse."""
    network = box()
    rows = [(a, b, LinkClass(rate, latency)) for a, b, rate, latency in links(network)]

    def why(rows: list[tuple[int, int, LinkClass]]) -> str:
        changed = Topology.from_links("box", 4, rows, 8, unit="B/s", node_names=network.names)
        return reason(changed, "nccl-topo")

    assert "no tree" in why([*rows, (0, 8, rows[2][2]), (8, 0, rows[2][2])])
    assert "the link from `nvswitch` to `gpu0` has no place in it" in why(rows[1:])
    assert "there is no link from `gpu0` to `0000:17:00.0`" in why([row for row in rows if row[:2] != (0, 7)])


def test_a_file_beyond_the_limits_of_nccl_is_refused() -> None:
    with pytest.raises(CollcError, match="4162 elements, NCCL reads 256") as refused:
        write_network(topology("complete(64) with { bandwidth: 48 GB/s }"), "nccl-topo")
    assert refused.value.diagnostics[0].code == "C0781"
