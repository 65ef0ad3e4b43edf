"""Fat trees of htsim: the links of each tier by hand, latencies of switches, and numbers that do not fit together."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from imported import connected, imported, same_after_writing
from mutated import cases, survives

from collc.frontends.importing import read, sniff
from collc.frontends.importing.figures import Figures, gigabits
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Source
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.scheduler import ForestScheduler

THREE = """# two pods of two tors and two aggregation switches
Nodes 8
Tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 500
Bundle 1

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 250.5
Bundle 2
"""
TWO = """Nodes 12
Tiers 2
Podsize 12
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 2
Tier 1
Downlink_speed_Gbps 100
Radix_Down 3
Downlink_Latency_ns 1000
Switch_Latency_ns 400
"""


def mistakes(text: str, figures: Figures | None = None) -> list[tuple[str, int, int]]:
    with pytest.raises(CollcError) as failure:
        imported(text, "htsim", figures)
    return [(one.code, one.span.line, one.span.column) for one in failure.value.diagnostics if one.span]


def test_three_tiers_by_hand() -> None:
    network = imported(THREE)
    assert network.ranks == tuple(f"host{n}" for n in range(8)) and network.hosts and not network.warnings
    expected = Counter[tuple[str, str, Fraction, Fraction]]()

    def both(a: str, b: str, gbps: int, ns: str) -> None:
        kind = (gigabits(gbps), Fraction(ns) / 10**9)
        expected.update([(a, b, *kind), (b, a, *kind)])

    for host in range(8):
        both(f"host{host}", f"tor{host // 2}", 200, "1000")
    for pod in range(2):
        for tor in range(2):
            for agg in range(2):
                both(f"tor{2 * pod + tor}", f"agg{2 * pod + agg}", 200, "500")
    for agg in range(4):  # the first of each pod goes to cores 0 and 2, the second to 1 and 3, by two links each
        for core in (agg % 2, agg % 2 + 2):
            both(f"agg{agg}", f"core{core}", 100, "250.5")
            both(f"agg{agg}", f"core{core}", 100, "250.5")
    assert Counter((a, b, kind.bandwidth, kind.latency) for a, b, kind in network.links()) == expected
    assert connected(same_after_writing(network))


def test_the_latency_of_a_switch_is_in_the_links_that_enter_it() -> None:
    network = imported(TWO)
    found = {(a[:3], b[:3]): kind.latency * 10**9 for a, b, kind in network.links()}
    assert found == {("hos", "tor"): 1300, ("tor", "agg"): 1400, ("agg", "tor"): 1300, ("tor", "hos"): 1000}
    assert found["hos", "tor"] + found["tor", "agg"] + found["agg", "tor"] + found["tor", "hos"] == 4000 + 2 * 300 + 400
    assert connected(same_after_writing(network))


@pytest.mark.parametrize(
    ("text", "bound"),
    # THREE: 7 shards enter a host by 25 GB/s; TWO: 4 hosts of a tor get 8 shards by two links of 12.5 GB/s, a host 11
    # by one
    [(THREE, Fraction(7, 25 * 10**9)), (TWO, Fraction(11, 12_500_000_000))],
)
def test_the_bound_of_an_allgather(text: str, bound: Fraction) -> None:
    topology = imported(text).topology("x")
    ranks = topology.num_ranks
    assert optimum(topology, [1] * ranks).one_over_x == bound
    verify(ForestScheduler().run(Problem(topology, Collective("allgather", ranks))))


def test_a_slow_tier_is_the_bound() -> None:
    slow = TWO.replace("Downlink_speed_Gbps 100\nRadix_Down 3", "Downlink_speed_Gbps 10\nRadix_Down 3")
    topology = imported(slow).topology("x")
    assert optimum(topology, [1] * 12).one_over_x == Fraction(8, 2_500_000_000)  # 8 shards enter a tor by 2 x 1.25 GB/s


def test_case_blanks_and_comments_do_not_count() -> None:
    expected = imported(THREE)
    for text in (
        THREE.lower(), THREE.upper(), THREE.replace(" ", "\t"), THREE.replace("\n", "\r\n"),
        "".join(f"> {line}\n" for line in THREE.splitlines()), THREE.replace("Radix_Down 2", "Radix_Down 2 # ports"),
        THREE.replace("Nodes", "\x1b[1mNodes\x1b[0m"), "".join(f"  {line}\n" for line in THREE.splitlines()),
    ):  # fmt: skip
        assert text != THREE and sniff(text) == "htsim"
        assert imported(text).cables == expected.cables and not imported(text).warnings
    extra = imported(THREE.replace("Radix_Down 2", "Radix_Down 2 3"))
    assert extra.cables == expected.cables and {one.code for one in extra.warnings} == {"C0942"}


def test_a_wrong_oversubscription_is_a_fault() -> None:
    found = imported(TWO.replace("Oversubscribed 2", "Oversubscribed 4")).warnings
    assert [(one.code, one.message) for one in found] == [("C0941", "tier 0 says oversubscription 4, its ports give 2")]


def test_a_latency_that_is_missing_is_assumed() -> None:
    found = imported(TWO.replace("Downlink_Latency_ns 1000\nSwitch_Latency_ns 400", "")).warnings
    assert [one.code for one in found] == ["C0940"] and "tier 1" in found[0].message


@pytest.mark.parametrize(
    ("text", "old", "new", "places"),
    [
        (THREE, "Nodes 8", "Nodes 10", [("C0975", 4, 9)]),
        (THREE, "Podsize 4", "Podsize 3", [("C0975", 4, 9)]),
        (THREE, "Radix_Down 4", "Radix_Down 8", [("C0975", 21, 12)]),
        (THREE, "Bundle 2", "", [("C0975", 21, 12)]),
        (THREE, "Bundle 2", "Bundle 3", [("C0975", 15, 10)]),
        (THREE, "Tiers 3", "Tiers 2", [("C0975", 4, 9)]),
        (THREE, "Tiers 3", "Tiers 4", [("C0924", 3, 7)]),
        (
            THREE,
            "Tier 2",
            "Tier 3",
            [("C0924", 19, 1)],
        ),
        (
            THREE,
            "Tier 2",
            "Tier 1",
            [("C0924", 19, 1)],
        ),
        (THREE, "Radix_Up 4", "Radix_Upp 4", [("C0924", 15, 1)]),
        (THREE, "Radix_Up 4", "", [("C0924", 12, 1)]),
        (THREE, "Radix_Up 4", "Radix_Up 0", [("C0924", 15, 10)]),
        (THREE, "Radix_Up 4", "Radix_Up four", [("C0924", 15, 10)]),
        (THREE, "Radix_Up 4", "Radix_Up", [("C0924", 15, 1)]),
        (THREE, "Radix_Up 4", "Radix_Up 4\nRadix_Up 4", [("C0924", 16, 1)]),
        (THREE, "Bundle 1", "Bundle 0", [("C0924", 17, 8)]),
        (TWO, "Radix_Down 3", "Radix_Down 4", [("C0975", 13, 12)]),
        (TWO, "Podsize 12", "Podsize 4", [("C0975", 3, 9)]),
        (TWO, "Nodes 12", "Nodes 0", [("C0924", 1, 7)]),
        (TWO, "Oversubscribed 2", "Bundle 2", [("C0924", 10, 8)]),
    ],
)
def test_mistakes_have_their_places(text: str, old: str, new: str, places: list[tuple[str, int, int]]) -> None:
    assert mistakes(text.replace(old, new)) == places


def test_limits_and_several_files() -> None:
    huge = TWO.replace("12", "4294967296").replace("Radix_Down 3", "Radix_Down 1073741824")
    assert mistakes(huge) == [("C0933", 1, 7)]
    assert mistakes(THREE, Figures(node_limit=10)) == [("C0933", 2, 7)]
    with pytest.raises(CollcError) as failure:
        read([Source("a", THREE), Source("b", TWO)])
    assert failure.value.diagnostics[0].code == "C0970"


@pytest.mark.parametrize("text", ["", "# only\n", "Nodes 8\nTiers 2\n", "Nodes 8\nTiers 2\nPodsize 8\n", THREE[:150]])
def test_texts_that_end_too_early(text: str) -> None:
    assert all(code == "C0924" for code, _, _ in mistakes(text))


def test_mutations() -> None:
    survives(lambda text: imported(text, "htsim").topology("x"), [THREE, TWO], cases())
