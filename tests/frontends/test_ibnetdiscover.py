"""InfiniBand fabrics: cables from both ends, names, faults, the forms of the text, and text as people paste it."""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from imported import connected, imported, same_after_writing
from infiniband import Fabric, two_tiers
from mutated import cases, survives

from collc.frontends import coll
from collc.frontends.ibnetdiscover.rates import LANES, RATES, bandwidth
from collc.frontends.importing import read, sniff
from collc.frontends.importing.figures import Figures, gigabits
from collc.frontends.importing.model import Imported
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Source
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.scheduler import ForestScheduler

EDR, HDR = gigabits(100), gigabits(200)


def links(network: Imported) -> Counter[tuple[str, str, Fraction]]:
    """Return the directed links of a network, by the names of their ends and bandwidth."""
    return Counter((a, b, kind.bandwidth) for a, b, kind in network.links())


def same(one: Imported, other: Imported) -> bool:
    return (set(one.ranks), set(one.switches), links(one)) == (set(other.ranks), set(other.switches), links(other))


def faults(text: str, figures: Figures | None = None) -> list[str]:
    """Return the messages of all warnings; every fault is a comment of the `.coll` file too."""
    network = imported(text, figures=figures)
    notes = {note.text for note in network.notes}
    assert all(one.message in notes for one in network.warnings if one.code == "C0941")
    return [one.message for one in network.warnings]


def mistakes(text: str, figures: Figures | None = None) -> list[tuple[str, int, int]]:
    with pytest.raises(CollcError) as failure:
        imported(text, "ibnetdiscover", figures)
    return [(one.code, one.span.line, one.span.column) for one in failure.value.diagnostics if one.span]


# ---- the model, by hand


def test_hosts_adapters_and_parallel_cables() -> None:
    network = imported(two_tiers().text())
    adapters = [f"n{host:03}/mlx5_{number}" for host in range(4) for number in range(2)]
    assert network.ranks == ("n000", "n001", "n002", "n003") and network.hosts and not network.warnings
    assert set(network.switches) == {"leaf0", "leaf1", "spine0", "spine1", *adapters}
    expected = Counter[tuple[str, str, Fraction]]()
    for number, adapter in enumerate(adapters):
        for a, b in ((adapter.partition("/")[0], adapter), (adapter, f"leaf{number // 2 % 2}")):
            expected += Counter([(a, b, EDR), (b, a, EDR)])
    for low in range(2):
        for top in range(2):
            for _ in range(2):
                expected += Counter([(f"leaf{low}", f"spine{top}", HDR), (f"spine{top}", f"leaf{low}", HDR)])
    assert links(network) == expected
    assert connected(network.topology("x"))


@pytest.mark.parametrize(
    ("up", "bound"),
    # 3 shards enter the last host by its two adapters, 25 GB/s; a leaf with two of the four hosts has one cable to each
    # of two spines, so that 2 shards leave it by 25 GB/s, or by 6.25 GB/s with one lane
    [("4xEDR", Fraction(3, 25 * 10**9)), ("1xEDR", Fraction(2, 6_250_000_000))],
)
def test_the_bound_of_an_allgather_is_that_of_the_narrowest_cut(up: str, bound: Fraction) -> None:
    topology = imported(two_tiers(cables=1, up=up).text()).topology("x")
    assert optimum(topology, [1] * 4).one_over_x == bound
    collective = Collective("allgather", 4)
    verify(ForestScheduler().run(Problem(topology, collective)))


def test_rates_are_lanes_times_the_data_rate_of_a_lane() -> None:
    expected = {"SDR": 8, "DDR": 16, "QDR": 32, "FDR10": 40, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
    assert {rate: bandwidth("4x", rate) for rate in expected} == {k: gigabits(v) for k, v in expected.items()}
    assert bandwidth("4x", "FDR") == gigabits(Fraction("54.4"))
    assert [bandwidth(width, "HDR") for width in LANES] == [gigabits(50 * n) for n in (1, 2, 4, 8, 12)]
    for rate in RATES:
        fabric = two_tiers(up=f"2x{rate}")
        network = imported(fabric.text())
        assert links(network)["leaf0", "spine1", bandwidth("2x", rate) or 0] == 2


# ---- names


def test_switches_have_the_name_of_their_description_if_no_other_has_it() -> None:
    fabric = Fabric()
    names = ["MF0;leaf1:MQM8700/U1", "MF0;dir1:CS7500/L01/U1", "Quantum Mellanox Technologies", "old switch 7"]
    switches = [fabric.node("S", name) for name in [*names, names[2]]]
    for number, (a, b) in enumerate(pairwise(switches)):
        fabric.cable(a, 1, b, 2 + number)
    fabric.cable(switches[-1], 1, switches[0], 9)
    for number in range(2):
        fabric.cable(fabric.node("H", f"h{number} HCA-1"), 1, switches[number], 10)
    found = imported(fabric.text()).switches
    assert {"leaf1", "dir1/L01/U1", "old switch 7", switches[2], switches[4]} <= set(found)


def test_a_switch_with_the_name_of_a_host_has_its_guid() -> None:
    fabric = Fabric()
    switch = fabric.node("S", "n1")
    for name in ("n1 HCA-1", "n2 HCA-1"):
        fabric.cable(fabric.node("H", name), 1, switch, len(fabric.names))
    assert imported(fabric.text()).switches[0] == switch


def test_ports_of_an_adapter_with_two_cables_are_told_apart() -> None:
    fabric = Fabric()
    switches = [fabric.node("S", f"s{n}") for n in range(2)]
    for number in range(2):
        adapter = fabric.node("H", f"n{number} mlx4_0")
        for port in (1, 2):
            fabric.cable(adapter, port, switches[port - 1], 1 + number)
    network = imported(fabric.text())
    assert [name for name in network.switches if "/" in name] == [
        "n0/mlx4_0:1", "n0/mlx4_0:2", "n1/mlx4_0:1", "n1/mlx4_0:2"
    ]  # fmt: skip
    assert not network.warnings and connected(network.topology("x"))


def test_adapters_are_in_the_order_of_their_numbers() -> None:
    fabric, number = Fabric(), 1
    switch = fabric.node("S", "s")
    for name in ("n1 mlx5_10", "n1 mlx5_2", "n1 mlx5_0", "n2 mlx5_10", "n2 mlx5_2", "n2 mlx5_0"):
        fabric.cable(fabric.node("H", name), 1, switch, number)
        number += 1
    found = [name for name in imported(fabric.text()).switches if name.startswith("n1/")]
    assert found == ["n1/mlx5_0", "n1/mlx5_2", "n1/mlx5_10"]


@pytest.mark.parametrize("name", ["MT25408 ConnectX Mellanox Technologies", "localhost mlx5_0", "(none) HCA-1", ""])
def test_a_host_that_no_description_names_has_its_guid_and_a_warning(name: str) -> None:
    fabric = Fabric()
    switch, adapter = fabric.node("S", "s"), fabric.node("H", name)
    fabric.cable(adapter, 1, switch, 1)
    fabric.cable(fabric.node("H", "n2 HCA-1"), 1, switch, 2)
    network = imported(fabric.text())
    assert network.ranks == (adapter, "n2") and f"{adapter}/port1" in network.switches
    assert [one.code for one in network.warnings] == ["C0941"] and "names no host" in network.warnings[0].message


def test_two_adapters_of_one_name_are_told_apart_by_their_guids() -> None:
    fabric = Fabric()
    switch = fabric.node("S", "s")
    guids = [fabric.node("H", "n1 HCA-1"), fabric.node("H", "n1 HCA-1")]
    for number, guid in enumerate(guids):
        fabric.cable(guid, 1, switch, 1 + number)
    network = imported(fabric.text())
    assert network.switches[1:] == tuple(f"n1/HCA-1@{guid}" for guid in guids)
    assert "several adapters are called `n1 HCA-1`" in network.warnings[0].message


def test_aggregation_nodes_are_no_hosts_and_routers_are_switches() -> None:
    fabric = two_tiers()
    leaf = next(guid for guid, name in fabric.names.items() if "leaf0" in name)
    aggregation = fabric.node("H", "Mellanox Technologies Aggregation Node")
    fabric.cable(aggregation, 1, leaf, 41, "4xHDR")
    router = fabric.node("R", "router1")
    for number, switch in enumerate((leaf, next(guid for guid, name in fabric.names.items() if "leaf1" in name)), 1):
        fabric.cable(router, number, switch, 40, "4xHDR")
    network = imported(fabric.text())
    assert len(network.ranks) == 4 and "router1" in network.switches and not network.warnings
    assert any("1 aggregation node" in note.text for note in network.notes)


def test_open_ends_stay_and_schedulers_take_them() -> None:
    """A spare switch on a spare switch, and an adapter alone on a switch of its own."""
    fabric = two_tiers()
    spare = [fabric.node("S", f"spare{n}") for n in range(3)]
    leaf = next(guid for guid, name in fabric.names.items() if "leaf0" in name)
    fabric.cable(leaf, 30, spare[0], 1)
    fabric.cable(spare[0], 2, spare[1], 1)
    fabric.cable(fabric.node("H", "n000 mlx5_9"), 1, spare[2], 1)
    network = imported(fabric.text())
    assert {"spare0", "spare1", "spare2", "n000/mlx5_9"} <= set(network.switches)
    verify(ForestScheduler().run(Problem(network.topology("x"), Collective("allgather", 4))))


def test_two_hosts_without_a_switch() -> None:
    fabric = Fabric()
    fabric.cable(fabric.node("H", "a mlx5_0"), 1, fabric.node("H", "b mlx5_0"), 1)
    network = imported(fabric.text())
    assert links(network)["a/mlx5_0", "b/mlx5_0", EDR] == 1 and len(network.cables) == 3


# ---- faults


def lines_with(text: str, pattern: str) -> list[int]:
    return [number for number, line in enumerate(text.split("\n")) if pattern in line]


def test_a_cable_that_one_end_lists_is_kept_and_named() -> None:
    fabric = two_tiers()
    whole = imported(fabric.text())
    end = next(end for end, (peer, _, _) in fabric.ports.items() if "spine0" in fabric.names.get(peer, ""))
    del fabric.ports[end]
    network = imported(fabric.text())
    assert same(network, whole)
    assert [one.message for one in network.warnings] == [
        "only one end lists the cable from `MF0;spine0:MQM8700/U1` port 1: `MF0;leaf0:MQM8700/U1` does not list its "
        "port 20"
    ]


def test_ends_with_different_rates_are_a_fault_and_the_lower_rate_counts() -> None:
    fabric = two_tiers()
    end = next(end for end in fabric.ports if end[0][0] == "H")
    peer, back, _ = fabric.ports[end]
    fabric.cable(end[0], end[1], peer, back, "4xEDR", back="1xEDR")
    network = imported(fabric.text())
    assert links(network)["n000", "n000/mlx5_0", gigabits(25)] == 1
    assert "differ: 1xEDR and 4xEDR" in network.warnings[0].message and len(network.warnings) == 2


def test_an_end_that_lists_another_cable() -> None:
    fabric = two_tiers()
    spine = next(guid for guid, name in fabric.names.items() if "spine0" in name)
    leaf = next(guid for guid, name in fabric.names.items() if "leaf0" in name)
    fabric.ports[spine, 30] = (leaf, 20, "4xHDR")  # port 20 of the leaf goes to port 1 of the spine
    network = imported(fabric.text())
    assert same(network, imported(two_tiers().text()))
    assert [one.message for one in network.warnings] == [
        "`MF0;spine0:MQM8700/U1` port 30 lists a cable, and `MF0;leaf0:MQM8700/U1` port 20 lists another cable"
    ]


def test_a_port_listed_twice() -> None:
    text = two_tiers().text()
    lines = text.split("\n")
    where = lines_with(text, "[1]\t")[0]
    doubled = "\n".join([*lines[: where + 1], lines[where], *lines[where + 1 :]])
    assert same(imported(doubled), imported(text)) and not faults(doubled)
    moved = lines[where].replace("[20]", "[21]")
    assert any("is listed twice" in one for one in faults("\n".join([*lines[: where + 1], moved, *lines[where + 1 :]])))


@pytest.mark.parametrize("rate", ["2xHDR", "4xEDR", "1xSDR"])
@pytest.mark.parametrize(("spines", "cables"), [(2, 2), (1, 1), (4, 4)])
def test_a_cable_slower_than_its_peers(rate: str, spines: int, cables: int) -> None:
    fabric = two_tiers(hosts=8, leaves=4, spines=spines, cables=cables)
    assert not faults(fabric.text())
    leaf = next(guid for guid, name in fabric.names.items() if "leaf2" in name)
    peer, back, _ = fabric.ports[leaf, 20]
    fabric.cable(leaf, 20, peer, back, rate)
    found = f"the cable between `leaf2` port 20 and `spine0` port {1 + 2 * cables} runs at {rate}, its peers at 4xHDR"
    assert faults(fabric.text()) == [found]


def test_a_host_slower_than_the_others_at_its_leaf() -> None:
    fabric = two_tiers(hosts=8)
    adapter = next(guid for guid, name in fabric.names.items() if name == "n002 mlx5_1")
    peer, back, _ = fabric.ports[adapter, 1]
    fabric.cable(adapter, 1, peer, back, "1xEDR")
    assert faults(fabric.text()) == [
        "the cable between `n002/mlx5_1` and `leaf0` port 4 runs at 1xEDR, its peers at 4xEDR"
    ]


def test_a_leaf_of_older_hosts_is_no_fault() -> None:
    fabric = two_tiers(hosts=8)
    old = next(guid for guid, name in fabric.names.items() if "leaf1" in name)
    for (guid, port), (peer, back, _) in list(fabric.ports.items()):
        if peer == old and guid[0] == "H":
            fabric.cable(guid, port, peer, back, "4xFDR")
    assert not faults(fabric.text())


def test_a_host_with_fewer_adapters() -> None:
    fabric = two_tiers(hosts=6, adapters=4)
    gone = next(guid for guid, name in fabric.names.items() if name == "n003 mlx5_2")
    del fabric.names[gone]
    for end, (peer, _, _) in list(fabric.ports.items()):
        if gone in (end[0], peer):
            del fabric.ports[end]
    assert faults(fabric.text()) == ["the host `n003` has 3 adapters, most hosts have 4: mlx5_2 is missing"]


def test_an_adapter_without_a_cable_is_left_out() -> None:
    fabric = two_tiers()
    fabric.node("H", "n009 mlx5_0")
    assert faults(fabric.text()) == ["the adapter `n009 mlx5_0` has no cable; it is left out"]


def test_nodes_without_a_block_are_named_once() -> None:
    fabric = two_tiers()
    switches_only = fabric.text()[: fabric.text().index("\nCa\t")].rsplit("\n\n", 1)[0] + "\n"
    network = imported(switches_only)
    assert same(network, imported(fabric.text()))
    assert [one.message for one in network.warnings] == [
        "8 nodes without a block of their own: `n000 mlx5_0`, `n000 mlx5_1`, `n002 mlx5_0` and 5 more"
    ]


def test_a_block_with_unreadable_guids_and_lines_left_out() -> None:
    text = (
        "root@h20-node139:/# ibnetdiscover\n#\n# Initiated from node <redacted> port <redacted>\n\nvendid=0x2c9\n"
        'switchguid=0x9c05<redacted>(9c05<redacted>)\nSwitch\t129 "S-9c05<redacted>"\t\t# "MF0;ib02:MQM9700/U1" '
        "enhanced port 0 lid 1 lmc 0\n"
    )
    for port in range(1, 4):
        text += f'[{port}]\t"H-94<redacted>"[1](94<redacted>) \t\t# "n{port} mlx5_2" lid {port + 20} 2xNDR\n'
    network = imported(f"{text}...omitted\n")
    assert network.ranks == ("n1", "n2", "n3") and len(network.cables) == 6
    assert [one.code for one in network.warnings] == ["C0942", "C0941", "C0941"]
    assert network.warnings[1].message == "lines are left out here: `...omitted`"


def test_parts_that_no_cable_joins() -> None:
    fabric = two_tiers()
    lonely = fabric.node("S", "far")
    for number in range(2):
        fabric.cable(fabric.node("H", f"m{number} mlx5_0"), 1, lonely, 1 + number)
    assert any("no cable joins 2 parts of the fabric" in one for one in faults(fabric.text()))
    part = imported(fabric.text(), figures=Figures(choice="m1"))
    assert (part.ranks, part.switches) == (("m0", "m1"), ("far", "m0/mlx5_0", "m1/mlx5_0")) and len(part.cables) == 4
    with pytest.raises(CollcError) as failure:
        imported(fabric.text(), figures=Figures(choice="mm1"))
    assert [(one.code, one.hint) for one in failure.value.diagnostics] == [("C0974", "did you mean `m1`?")]


def test_the_text_of_the_network_is_read_back() -> None:
    try:
        coll.format_text('topology t { rank "a-b"; }')
    except CollcError:
        pytest.skip("names in quotes are not read")
    same_after_writing(imported(two_tiers().text()))


# ---- rates that are missing


def test_rates_that_no_end_prints_are_figures_of_their_tier() -> None:
    text = two_tiers(up="").text()
    with pytest.raises(CollcError) as failure:
        imported(text)
    only = failure.value.diagnostics[0]
    assert only.code == "C0923" and "--tier-bandwidth spine=400Gbps`" in (only.hint or "")
    network = imported(text, figures=Figures(tiers={"spine": gigabits(400)}))
    assert links(network)["leaf0", "spine0", gigabits(400)] == 2
    assert mistakes(two_tiers(up="4x???").text())[0][0] == "C0923"


def test_a_rate_of_one_end_counts() -> None:
    fabric = two_tiers()
    end, (peer, back, rate) = next((end, one) for end, one in fabric.ports.items() if end[0][0] == "S")
    fabric.cable(end[0], end[1], peer, back, rate, back="??" + "???")
    assert same(imported(fabric.text()), imported(two_tiers().text())) and not faults(fabric.text())


# ---- forms of the text


def test_grouped_full_and_port_lists_are_the_same_network() -> None:
    fabric = two_tiers(hosts=6)
    expected = imported(fabric.text())
    for text in (fabric.text(grouped=True), fabric.text(full=True), fabric.listed()):
        assert sniff(text) == "ibnetdiscover"
        network = imported(text)
        assert same(network, expected) and not network.warnings


def test_rails_in_several_files_join_at_their_hosts() -> None:
    rails = [Fabric(), Fabric()]
    for number, rail in enumerate(rails):
        rail.names["H-00"] = rail.names.setdefault("S-00", "")  # numbers of nodes differ between the files
        del rail.names["H-00"], rail.names["S-00"]
        switch = f"S-{number + 1:016x}"
        rail.names[switch] = f"rail{number}"
        for host in range(3):
            adapter = f"H-{100 * (number + 1) + host:016x}"
            rail.names[adapter] = f"n{host} mlx5_{number}"
            rail.cable(adapter, 1, switch, 1 + host)
    network = read([Source(f"rail{n}.txt", rail.text()) for n, rail in enumerate(rails)])
    assert network.ranks == ("n0", "n1", "n2") and not network.warnings
    assert {"rail0", "rail1", "n0/mlx5_0", "n0/mlx5_1"} <= set(network.switches)
    assert connected(network.topology("x")) and len(network.cables) == 12


MANGLED = {
    "terminal codes": lambda text: text.replace('"n', '\x1b[4m"n').replace("4xEDR", "4xEDR\x1b[0m"),
    "tabs as blanks": lambda text: text.expandtabs(),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "quoted twice": lambda text: "".join(f"> > {line}\n" for line in text.splitlines()),
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "fenced": lambda text: f"```\n{text}```\n",
    "wrapped before comments": lambda text: text.replace("\t\t# ", "\n# "),
    "wrapped before lids": lambda text: text.replace(" lid 21", "\nlid 21"),
    "wrapped in names": lambda text: text.replace(" mlx5_", "\nmlx5_"),
    "wrapped after ports": lambda text: text.replace(') \t"S', ') \n"S'),
    "wrapped headers": lambda text: text.replace(" port 0 lid 13", " port 0\nlid 13"),
    "without comments": lambda text: "".join(f"{line}\n" for line in text.splitlines() if line[:1] != "#"),
    "without identifiers": lambda text: "".join(f"{line}\n" for line in text.splitlines() if "=0x" not in line),
    "with messages": lambda text: (
        "src/query_smp.c:228; umad (DR path slid 0; dlid 0; 0,1,19 Attr 0x11:0) bad status 110\n"
        f"ibwarn: [71] _do_madrpc: recv failed\n{text}"
    ),
    "without GUIDs of ports": lambda text: text.replace("(2c9", "(<redacted>"),
    "with a prompt": lambda text: f"[root@head ~]# ibnetdiscover\n{text}[root@head ~]#\n",
    "extra columns": lambda text: text.replace(" lid 21 4xEDR\n", " lid 21 4xEDR extra columns\n"),
}


@pytest.mark.parametrize("mangling", MANGLED)
def test_text_as_people_paste_it_is_the_same_network(mangling: str) -> None:
    text = two_tiers().text()
    mangled = MANGLED[mangling](text)
    assert mangled != text and sniff(mangled) == "ibnetdiscover"
    network = imported(mangled)
    assert same(network, imported(text))
    assert {one.code for one in network.warnings} <= {"C0942"}


# ---- refusals


def test_text_that_is_not_understood_is_refused_with_all_places() -> None:
    lines = two_tiers().text().split("\n")
    port = next(number for number, line in enumerate(lines) if line.startswith("[2]"))
    lines[port] = "  [2] -> leaf1"
    lines.append("nonsense at the end")
    assert mistakes("\n".join(lines)) == [("C0924", port + 1, 3), ("C0924", len(lines), 1)]


def test_a_port_before_any_node() -> None:
    assert mistakes('[1]\t"S-01"[2]\t\t# "leaf" lid 3 4xEDR\n') == [("C0924", 1, 1)]


@pytest.mark.parametrize(
    "text", ["", "\n", 'Switch 36 "S-01" # "s" base port 0 lid 1 lmc 0\n', 'Ca 1 "H-01" # "a b"\n']
)
def test_texts_without_hosts(text: str) -> None:
    with pytest.raises(CollcError) as failure:
        imported(text, "ibnetdiscover")
    assert failure.value.diagnostics[0].code == "C0932"


def test_more_nodes_than_the_limit() -> None:
    with pytest.raises(CollcError) as failure:
        imported(two_tiers(hosts=20).text(), figures=Figures(node_limit=60))
    assert failure.value.diagnostics[0].code == "C0933" and "--node-limit 64" in (
        failure.value.diagnostics[0].hint or ""
    )


@pytest.mark.parametrize(
    "text",
    [
        'Switch 1 "S-01" # "a"\n' + "nonsense\n" * 100_000,
        'Switch 1 "S-01" # "a"\n' + ("$ " * 999 + "\n") * 300,
        'Switch 1 "S-01" # "a"\n' + "[1]" * 100_000,
        'Switch 1 "S-01" # "a"\n' + "[1] \n" * 50_000,
        'Switch 1 "S-01" # "a"\n' + ('[1] "' + " " * 1900 + "\n") * 300,
        'Switch 1 "S-01" # "a"\n[99999999999999999999] "S-02"[4294967295] # "b" lid 1 4xEDR\n',
        "SW 1 1 0x0000000000000001 4x EDR - CA 1 1 0x0000000000000002 ( '" + "' - '" * 100_000,
    ],
)
def test_hostile_texts_are_refused_soon(text: str) -> None:
    began = time.process_time()
    with pytest.raises(CollcError):
        imported(text, "ibnetdiscover")
    assert time.process_time() - began < 20


def test_mutations() -> None:
    texts = [
        two_tiers().text(),
        two_tiers(up="").text(grouped=True),
        two_tiers().listed(),
        MANGLED["quoted"](two_tiers().text()),
    ]
    figures = Figures(tiers={"leaf": EDR, "spine": HDR})
    accepted = survives(lambda text: imported(text, "ibnetdiscover", figures).topology("x"), texts, cases())
    assert accepted > cases() // 10
