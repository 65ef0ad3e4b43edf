"""Machines on fabrics: the joined network against one that is put together by names, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.frontends.coll import load
from collc.frontends.importing.joining import box_of, joint
from collc.frontends.importing.ports import JoinError
from collc.ir.diagnostic import Diagnostic
from collc.ir.links import LinkClass
from collc.ir.topology import Topology
from collc.ir.validate import structure

Row = tuple[str, str, Fraction]


def network(
    name: str, ranks: Sequence[str], switches: Sequence[str], rows: Sequence[Row], duplex: bool = True
) -> Topology:
    """A network of links by the names of their ends, each in both directions."""
    number = {node: i for i, node in enumerate((*ranks, *switches))}
    links = []
    for a, b, bandwidth in rows:
        links += [(number[a], number[b], LinkClass(bandwidth))]
        links += [(number[b], number[a], LinkClass(bandwidth))] * duplex
    return Topology.from_links(
        name, len(ranks), links, len(switches), unit="B/s", node_names=(*ranks, *switches)
    )  # fmt: skip


def rows_of(net: Topology) -> Counter[Row]:
    ends = zip(net.src.tolist(), net.dst.tolist(), strict=True)
    return Counter((net.names[a], net.names[b], net.bandwidth(link)) for link, (a, b) in enumerate(ends))


def both_ways(rows: Sequence[Row]) -> Counter[Row]:
    return Counter(rows) + Counter((b, a, bandwidth) for a, b, bandwidth in rows)


@attrs.frozen
class Case:
    """Parameters of a machine and a fabric. ``style``: how hosts are linked; ``order`` is that of the ports."""

    gpus: int
    nics: int
    hosts: int
    chosen: tuple[int, ...]
    style: str
    order: tuple[int, ...]
    leaves: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nics, hosts = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    chosen = draw(st.sets(st.integers(0, hosts - 1), min_size=1))
    return Case(
        draw(st.integers(1, 3)), nics, hosts, tuple(sorted(chosen)), draw(st.sampled_from(["ports", "links", "one"])),
        tuple(draw(st.permutations(range(nics)))), draw(st.integers(1, 3)),
    )  # fmt: skip


def machine_rows(case: Case) -> list[Row]:
    inside = [(f"gpu[{g}]", "nv", Fraction(100 + g)) for g in range(case.gpus)]
    return inside + [(f"gpu[{n % case.gpus}]", f"nic-{n}", Fraction(50 + n)) for n in range(case.nics)]


def machine(case: Case) -> Topology:
    nics = [f"nic-{n}" for n in range(case.nics)]
    ends = [f"fabric/rail{n}" for n in range(case.nics)] if case.nics > 1 else ["fabric"]
    outside = [(nic, end, Fraction(7)) for nic, end in zip(nics, ends, strict=True)]
    ranks = [f"gpu[{g}]" for g in range(case.gpus)]
    return network("machine", ranks, ["nv", *ends, *nics], [*machine_rows(case), *outside])


def leaf(case: Case, host: int, nic: int) -> str:
    return f"leaf-{(host + nic) % case.leaves}"


def cables(case: Case, host: int) -> list[tuple[int, str, Fraction]]:
    """The cables of a host: their NIC (-1: all), the leaf, and the bandwidth."""
    if case.style == "one":
        return [(-1, leaf(case, host, 0), Fraction(20))]
    return [(nic, leaf(case, host, nic), Fraction(20 + nic)) for nic in range(case.nics)]


def fabric(case: Case) -> Topology:
    ranks, leaves = [f"h{i}" for i in range(case.hosts)], [f"leaf-{i}" for i in range(case.leaves)]
    ports, rows = list[str](), [(leaves[0], other, Fraction(400)) for other in leaves[1:]]
    for host, name in enumerate(ranks):
        ordered = [cables(case, host)[n] for n in case.order] if case.style == "ports" else cables(case, host)
        for nic, to, bandwidth in ordered:
            if case.style == "ports":
                ports.append(f"{name}/nic-{nic}")
                rows += [(name, ports[-1], Fraction(1000)), (ports[-1], to, bandwidth)]
            else:
                rows.append((name, to, bandwidth))
    return network("fabric", ranks, [*leaves, *ports], rows)


def expected(case: Case) -> tuple[list[str], Counter[Row]]:
    """The names of the ranks and all links, put together without a topology."""
    ranks, rows = list[str](), [("leaf-0", f"leaf-{i}", Fraction(400)) for i in range(1, case.leaves)]
    for host in range(case.hosts):
        name = f"h{host}"
        if host in case.chosen:
            ranks += [f"{name}/gpu[{g}]" for g in range(case.gpus)]
            rows += [(f"{name}/{a}", f"{name}/{b}", bandwidth) for a, b, bandwidth in machine_rows(case)]
            for nic, to, bandwidth in cables(case, host):
                taken = range(case.nics) if nic < 0 else [nic]
                rows += [(f"{name}/nic-{n}", to, bandwidth) for n in taken]
            continue
        ranks.append(name)
        for nic, to, bandwidth in cables(case, host):
            port = f"{name}/nic-{nic}" if case.style == "ports" else name
            rows += [(port, to, bandwidth)] + [(name, port, Fraction(1000))] * (port != name)
    return ranks, both_ways(rows)


@given(cases())
def test_every_nic_takes_the_place_of_its_port(case: Case) -> None:
    """Ports in any order, links in order, or one link for all NICs; the fabric's bandwidth counts."""
    found = joint(box_of(machine(case)), fabric(case), case.chosen)
    net = found.topology("pod")
    ranks, rows = expected(case)
    assert structure(net) == [] and list(net.names[: net.num_ranks]) == ranks and rows_of(net) == rows
    assert found.num_nodes == net.num_nodes and found.num_links >= net.num_links and found.warnings == ()
    assert net.symmetry is None and net.origin is None


@given(cases())
def test_a_second_class_of_machines_joins_what_the_first_left(case: Case) -> None:
    """One after another is the same as all at once, but for the order of links and switches."""
    box = box_of(machine(case))
    at_once = joint(box, fabric(case), case.chosen).topology("pod")
    net = fabric(case)
    for host in case.chosen:
        net = joint(box, net, [net.names.index(f"h{host}")]).topology("pod")
    assert net.names[: net.num_ranks] == at_once.names[: at_once.num_ranks] and rows_of(net) == rows_of(at_once)


def two_nics() -> Topology:
    """A machine of one GPU and two NICs."""
    rows = [("g0", "m0", 1), ("g0", "m1", 1), ("m0", "fabric", 1), ("m1", "fabric", 1)]
    return network("m", ["g0"], ["m0", "m1", "fabric"], [(a, b, Fraction(n)) for a, b, n in rows])


@pytest.mark.parametrize("ring", [3, 4])
def test_hosts_that_are_linked_to_each_other(ring: int) -> None:
    """Link i of a host goes to its NIC i, at both ends."""
    hosts = [f"h{i}" for i in range(ring)]
    cycle = [(hosts[i], hosts[(i + 1) % ring], Fraction(20 + i)) for i in range(ring)]
    one = two_nics()
    net = joint(box_of(one), network("ring", hosts, [], cycle), range(ring)).topology("pod")
    between = {(a, b) for a, b, bandwidth in rows_of(net) if bandwidth >= 20}
    assert ("h0/m0", "h1/m0") in between and (f"h{ring - 1}/m1", "h0/m1") in between and ("h1/m1", "h2/m0") in between
    assert len(between) == 2 * ring and net.is_connected


def test_two_hosts_with_a_single_link_are_linked_nic_by_nic() -> None:
    one = two_nics()
    pair = network("pair", ["x", "y"], [], [("x", "y", Fraction(20))])
    rows = rows_of(joint(box_of(one), pair, [0, 1]).topology("pod"))
    assert {(a, b) for a, b, bandwidth in rows if bandwidth == 20} == {
        ("x/m0", "y/m0"), ("x/m1", "y/m1"), ("y/m0", "x/m0"), ("y/m1", "x/m1")
    }  # fmt: skip


# ---- the machine


def wired(*extra: Row) -> Topology:
    """A machine with two NICs on rails and one on a network of its own, behind a bridge."""
    rows = [("g0", "m0", 1), ("g1", "m1", 1), ("m0", "fabric/rail0", 1), ("m1", "fabric/rail1", 1), ("g0", "g1", 9),
            ("g0", "bridge", 1), ("bridge", "eth", 1), ("eth", "fabric/eth", 1)]  # fmt: skip
    ends = ["fabric/rail0", "fabric/rail1", "fabric/eth"]
    given = [*((a, b, Fraction(n)) for a, b, n in rows), *extra]
    return network("m", ["g0", "g1"], ["m0", "m1", "bridge", "eth", *ends], given)


def test_other_nics_are_left_out_with_what_joined_only_them() -> None:
    box = box_of(wired(), "m?")
    assert [box.topology.names[node] for node in box.nodes] == ["g0", "g1", "m0", "m1"] and box.dropped == ("eth",)
    whole = box_of(wired(), "*")
    assert [whole.topology.names[node] for node in whole.nics] == ["m0", "m1", "eth"] and whole.dropped == ()
    kept = box_of(wired(("g1", "bridge", Fraction(1))), "m?")
    assert "bridge" in [kept.topology.names[node] for node in kept.nodes]


def test_a_pattern_names_nics_where_there_is_no_open_end() -> None:
    net = network("m", ["g0", "g1"], ["m0"], [("g0", "m0", Fraction(1)), ("g1", "m0", Fraction(1))])
    assert box_of(net, "m*").nics == (2,) and box_of(net, "g?").nics == (0, 1)
    with pytest.raises(JoinError) as caught:
        box_of(net)
    assert (caught.value.diagnostics[0].code, caught.value.at) == ("C0951", "node")


def test_a_rank_may_be_a_nic_and_stays() -> None:
    net = network("m", ["g0", "g1"], ["fabric"], [("g0", "fabric", Fraction(1)), ("g1", "fabric", Fraction(1))])
    box = box_of(net, "g1")
    assert [net.names[node] for node in box.nodes] == ["g0", "g1"] and box.dropped == ("g0",) and box.num_ranks == 2


# ---- the fabric


def ported(*ports: str, more: Sequence[Row] = ()) -> Topology:
    names = [f"h/{port}" for port in ports]
    rows = [row for name in names for row in (("h", name, Fraction(9)), (name, "leaf", Fraction(2)))]
    return network("f", ["h", "i"], ["leaf", *names], [*rows, ("i", "leaf", Fraction(2)), *more])


def warned(box_pattern: str | None, net: Topology) -> tuple[Topology, tuple[Diagnostic, ...]]:
    found = joint(box_of(wired(), box_pattern), net, [0], box_pattern)
    return found.topology("pod"), found.warnings


def test_names_that_differ_are_joined_in_order() -> None:
    net, warnings = warned("m?", ported("HCA-1", "HCA-2"))
    assert [one.code for one in warnings] == ["C0954", "C0955"]
    assert "joined `m0` with `HCA-1` and `m1` with `HCA-2` in order" in warnings[1].message
    assert ("h/m0", "leaf", Fraction(2)) in rows_of(net) and "h/HCA-1" not in net.names


def test_ports_of_the_same_name_come_first() -> None:
    (found,) = joint(box_of(two_nics()), ported("m1", "ib0"), [0]).warnings
    assert "joined `m0` with `ib0` in order" in found.message


def test_the_pattern_chooses_among_ports_too() -> None:
    net, warnings = warned("m?", ported("m0", "storage", "m1"))
    assert "leaves out the port `storage`" in warnings[1].message
    assert not any("storage" in name for name in net.names) and "h/m0" in net.names


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (ported("m0"), "has no port for the NIC `m1` of `m`"),
        (ported("m0", "m1", "m2"), "has the port `m2`, for which `m` has no NIC"),
        (ported("m0", "x", "y"), "has no port for the NIC `m1` of `m`, and has the ports `x` and `y`"),
        (ported("m0", "m1", more=[("h", "leaf", Fraction(1))]), "has NIC ports, and links to `leaf` too"),
        (network("f", ["h", "i"], ["s"], [("i", "s", Fraction(1))]), "has 0 links, and `m` has 2 NICs: `m0` and `m1`"),
        (network("f", ["h"], ["s"], [("h", "s", Fraction(1))] * 3), "has 3 links, and `m` has 2 NICs"),
    ],
)
def test_nics_and_ports_without_a_partner_are_listed(net: Topology, message: str) -> None:
    machine = two_nics()
    with pytest.raises(JoinError) as caught:
        joint(box_of(machine), net, [0])
    (found,) = caught.value.diagnostics
    assert found.code == "C0952" and message in found.message and found.hint


def test_hosts_with_the_same_mistake_are_told_once() -> None:
    hosts = [f"h{i}" for i in range(1000)]
    net = network("f", hosts, ["s"], [(host, "s", Fraction(1)) for host in hosts for _ in range(3)])
    with pytest.raises(JoinError) as caught:
        joint(box_of(wired(), "m?"), net, range(1000))
    (found,) = caught.value.diagnostics
    assert found.message.startswith("host `h0` of `f` (and 999 hosts like it) has 3 links") and found.notes == ()


def test_links_of_one_direction_stay_so() -> None:
    net = network("f", ["h"], ["s", "t"], [("h", "s", Fraction(2)), ("t", "h", Fraction(2))], duplex=False)
    rows = rows_of(warned("m?", net)[0])
    assert rows["h/m0", "s", Fraction(2)] == rows["t", "h/m1", Fraction(2)] == 1
    assert not any({"s", "t"} & {a} and b == "h/m0" for a, b, _ in rows)


def test_units_names_and_times() -> None:
    relative = attrs.evolve(ported("m0", "m1"), unit="link")
    taken = network("f", ["h"], ["s", "h/g0"], [("h", "s", Fraction(1)), ("s", "h/g0", Fraction(1))])
    long = network("f", ["h" * 254], ["s"], [("h" * 254, "s", Fraction(1))])
    for net, code in ((relative, "C0312"), (taken, "C0953"), (long, "C0953")):
        with pytest.raises(JoinError) as caught:
            joint(box_of(wired(), "m?"), net, [0]).topology("pod")
        assert (caught.value.diagnostics[0].code, caught.value.at) == (code, "fabric")
    slow = attrs.evolve(ported("m0", "m1"), gamma=Fraction(1, 100), epsilon=Fraction(1, 10))
    quick = attrs.evolve(wired(), gamma=Fraction(1, 200), epsilon=Fraction(1, 5))
    net = joint(box_of(quick, "m?"), slow, [0]).topology("pod")
    assert (net.gamma, net.epsilon) == (Fraction(1, 100), Fraction(1, 5))


def test_a_thousand_machines_join_at_once() -> None:
    """1,000 hosts of 8 GPUs take a fraction of a second; ten times that would be a loop over all pairs."""
    rows = [(f"g{i}", "nv", Fraction(9)) for i in range(8)] + [(f"g{i}", f"m{i}", Fraction(1)) for i in range(8)]
    rows += [(f"m{i}", "fabric", Fraction(1)) for i in range(8)]
    one = network("m", [f"g{i}" for i in range(8)], ["nv", "fabric", *(f"m{i}" for i in range(8))], rows)
    hosts = [f"h{i}" for i in range(1000)]
    ports = [(f"{host}/m{i}", f"leaf{i}") for host in hosts for i in range(8)]
    cables = [(port.split("/")[0], port, Fraction(9)) for port, _ in ports]
    cables += [(port, leaf, Fraction(2)) for port, leaf in ports]
    net = network("f", hosts, [*(f"leaf{i}" for i in range(8)), *(port for port, _ in ports)], cables)
    pod = joint(box_of(one), net, range(1000)).topology("pod")
    assert (pod.num_ranks, pod.num_switches, pod.num_links) == (8000, 9008, 2 * 24000)


def test_the_language_declares_clusters_of_clusters() -> None:
    """A rack of machines has an open end of its own, so racks join a spine."""
    text = """
    topology box { rank g[2]; switch fabric; for i in 0..2 { link g[i] <-> fabric : 1 GB/s; } }
    topology rack { rank a, b; switch leaf, fabric; link a <-> leaf : 2 GB/s; link b <-> leaf : 2 GB/s;
                    link leaf <-> fabric : 9 GB/s; }
    topology hall { rank r1, r2; switch spine; link r1 <-> spine : 5 GB/s; link r2 <-> spine : 5 GB/s; }
    cluster racks = box on rack;
    cluster pod = racks on hall;
    cluster some = racks on hall { hosts: {r2} };
    """
    nets = load("t.coll", text=text).topologies
    assert nets["pod"].names[:4] == ("r1/a/g[0]", "r1/a/g[1]", "r1/b/g[0]", "r1/b/g[1]") and nets["pod"].is_connected
    assert nets["pod"].num_ranks == 8 and ("r2/leaf", "spine", Fraction(5 * 10**9)) in rows_of(nets["pod"])
    assert nets["some"].names[:2] == ("r1", "r2/a/g[0]") and nets["some"].num_ranks == 5
