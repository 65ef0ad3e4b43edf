"""Profiles of TACCL: what the times mean, both forms, arithmetic by hand, what is assumed, mistakes, damaged texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

import pytest
from imported import connected, imported, same_after_writing
from mutated import cases, survives

from collc.frontends.importing import sniff
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.figures import Figures
from collc.frontends.importing.model import Imported
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.graph.bottleneck import worst_ratio

MB = 10**6
GB = 10**9


def profile(**changes: object) -> dict[str, object]:
    """Return a profile of one switch: 4 GPUs of 100 GB/s, 2 NICs of 12.5 GB/s, for messages of 1 MB."""
    found = {
        "name": "Box_1MB", "gpus_per_node": 4, "nics_per_node": 2, "alpha": 0.5, "node_betas_list": [10],
        "node_invbws_list": [10.5], "remote_alpha": 3, "remote_beta": 80, "remote_invbw": 83, **changes,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def custom(links: object, betas: object, **changes: object) -> dict[str, object]:
    gpus = len(links) if isinstance(links, list) else 2
    return {"name": "c", "gpus_per_node": gpus, "alpha": 1, "links": links, "betas": betas, "invbws": betas, **changes}


def read(value: Mapping[str, object], path: str = "node.json", **figures: object) -> Imported:
    network = imported(json.dumps(value, indent=1), figures=Figures(**figures), path=path)  # type: ignore[arg-type]
    assert network.format == "taccl"
    return network


def mistakes(value: object, **figures: object) -> list[Diagnostic]:
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(CollcError) as caught:
        imported(text, "taccl", Figures(**figures))  # type: ignore[arg-type]
    return caught.value.diagnostics


def warned(network: Imported, code: str) -> list[str]:
    return [one.message for one in network.warnings if one.code == code]


def links(network: Imported) -> dict[tuple[str, str], Fraction]:
    found: dict[tuple[str, str], Fraction] = {}
    for a, b, kind in network.links():
        found[a, b] = found.get((a, b), Fraction(0)) + kind.bandwidth
    return found


# ---- the network


def test_one_beta_is_a_switch() -> None:
    """By hand: 1 MB in 10 us is 100 GB/s; in 80 us it is 12.5 GB/s."""
    network = read(profile())
    assert network.ranks == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert network.switches == ("nvswitch", "nic0", "nic1", "fabric") and not network.hosts
    assert links(network)["gpu3", "nvswitch"] == links(network)["nvswitch", "gpu3"] == 100 * GB
    assert {pair for pair in links(network) if pair[0].startswith("gpu") and pair[1].startswith("nic")} == {
        ("gpu0", "nic0"), ("gpu1", "nic0"), ("gpu2", "nic1"), ("gpu3", "nic1"),
    }  # fmt: skip
    assert links(network)["nic1", "fabric"] == links(network)["gpu3", "nic1"] == GB * 25 / 2
    topology = same_after_writing(network)
    assert connected(topology)
    between = {(cable.a, cable.b): cable.latency for cable in network.cables}
    assert 2 * between["gpu0", "nvswitch"] == Fraction(1, 2) / MB
    assert 2 * between["nic0", "fabric"] == Fraction(3, MB) and between["gpu0", "nic0"] == 0


def test_the_bound_of_a_switch_by_hand() -> None:
    """100 GB/s bring the data of 3 GPUs."""
    topology = read(profile(nics_per_node=None)).topology("t")
    assert 1 / worst_ratio(topology, [1] * 4)[0] == Fraction(100 * GB, 3)


def test_two_betas_are_the_nvlinks_of_a_dgx_1() -> None:
    """By hand: a GPU has two double links of 40 GB/s and two single ones of 20 GB/s for the data of 7 GPUs."""
    network = read(profile(gpus_per_node=8, nics_per_node=-1, node_betas_list=[25, 50], node_invbws_list=[25, 50]))
    assert network.switches == () and len(network.cables) == 16
    topology = same_after_writing(network)
    assert 1 / worst_ratio(topology, [1] * 8)[0] == Fraction(120 * GB, 7)
    out = links(network)
    assert all(sum(rate for (a, _), rate in out.items() if a == name) == 120 * GB for name in network.ranks)
    assert out["gpu0", "gpu1"] == out["gpu6", "gpu2"] == 40 * GB and out["gpu7", "gpu3"] == 20 * GB
    assert ("gpu0", "gpu5") not in out


def test_matrices_have_the_destination_first() -> None:
    links_of = [[0, 0, 2], [1, 0, 0], [0, 3, 0]]
    betas = [[0, 0, 10], [20, 0, 0], [0, 40, 0]]
    network = read(custom(links_of, betas), size=MB)
    assert [(c.a, c.b, c.bandwidth, c.count, c.duplex) for c in network.cables] == [
        ("gpu0", "gpu1", 50 * GB, 1, False), ("gpu2", "gpu0", 100 * GB, 2, False), ("gpu1", "gpu2", 25 * GB, 3, False),
    ]  # fmt: skip
    assert connected(same_after_writing(network))
    assert len(warned(network, "C0941")) == 3


def test_equal_directions_are_one_cable() -> None:
    network = read(custom([[0, 2], [2, 0]], [[0, 10], [10, 0]]), size=MB)
    assert [(c.count, c.duplex) for c in network.cables] == [(2, True)] and not warned(network, "C0941")


# ---- the size of the messages


@pytest.mark.parametrize(
    ("name", "path", "size"),
    [
        ("DGX2_1KB", "x.json", 1000), ("a 32KB b", "x.json", 32_000), ("x", "topo-2MiB.json", 2 << 20),
        ("x-64KB", "topo-1MB.json", 64_000), ("1GB", "x", 10**9),
    ],
)  # fmt: skip
def test_the_size_in_a_name_is_assumed(name: str, path: str, size: int) -> None:
    network = read(profile(name=name), path)
    assert links(network)["gpu0", "nvswitch"] == Fraction(size * MB, 10)
    assert warned(network, "C0940")[0].startswith("assumed a message size of ")
    assert network.notes[0].text == warned(network, "C0940")[0]


def test_the_size_that_is_given_counts() -> None:
    network = read(profile(), size=2 * MB)
    assert links(network)["gpu0", "nvswitch"] == 200 * GB
    assert not [text for text in warned(network, "C0940") if "message size" in text]


@pytest.mark.parametrize("name", ["x", "8xMB", "0MB", "v1MBx", "A100"])
def test_without_a_size_it_is_needed(name: str) -> None:
    [one] = mistakes(profile(name=name))
    assert one.code == "C0923" and one.hint and "`--size 1MB`" in one.hint


# ---- what is assumed, and what looks wrong


def test_assumptions_are_warnings_and_comments() -> None:
    network = read(profile())
    assert warned(network, "C0940") == [
        "assumed a message size of 1MB for the times (the name `Box 1MB`)",
        "assumed that all GPUs are on one switch, as the profile has one beta (TACCL's HubAndSpoke and DGX2)",
        "assumed that neighbouring GPUs share a NIC (the sketches of TACCL do so for DGX-2 and NDv2)",
    ]
    assert set(warned(network, "C0940")) <= {note.text for note in network.notes}
    assert len(warned(read(profile(nics_per_node=4)), "C0940")) == 2


def test_times_with_a_factor_are_suspected() -> None:
    network = read(profile(node_betas_list=[1000], node_invbws_list=[1000]))
    assert warned(network, "C0984") == ["links between GPUs have only 1 GB/s"]
    assert not warned(read(profile()), "C0984")


def test_totals_that_are_not_alpha_and_beta() -> None:
    network = read(profile(node_invbws_list=[20], remote_invbw=40))
    assert warned(network, "C0941") == [
        "`node_invbws_list` is 20 us, and alpha + beta is 10.5 us; bandwidths are from beta",
        "`remote_invbw` is 40 us, and alpha + beta is 83 us; bandwidths are from beta",
    ]
    assert not warned(read(profile(node_invbws_list=[10], remote_invbw=84)), "C0941")


def test_other_keys_are_ignored_with_a_warning() -> None:
    assert warned(read(profile(comment="x", by="me")), "C0942") == ["ignored the keys `comment`, `by`"]


# ---- mistakes


@pytest.mark.parametrize(
    ("changes", "code", "at"),
    [
        ({"gpus_per_node": None}, "C0924", "{"),
        ({"gpus_per_node": 0}, "C0924", "0"),
        ({"gpus_per_node": True}, "C0924", "true"),
        ({"gpus_per_node": 4294967295}, "C0933", "4294967295"),
        ({"nics_per_node": 4294967295}, "C0933", "4294967295"),
        ({"alpha": "fast"}, "C0924", '"fast"'),
        ({"alpha": -1}, "C0981", "-1"),
        ({"node_betas_list": 3}, "C0924", "3"),
        ({"node_betas_list": [0]}, "C0981", "0"),
        ({"node_betas_list": [1e40]}, "C0981", "1e+40"),
        ({"node_betas_list": [1, 2]}, "C0924", "[1, 2]"),
        ({"node_betas_list": [], "node_invbws_list": []}, "C0924", "[]"),
        ({"node_invbws_list": [1, 2]}, "C0924", "[1, 2]"),
        ({"remote_beta": None}, "C0924", "{"),
        ({"remote_beta": 0}, "C0981", "0"),
        ({"name": 7}, "C0924", "7"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(changes: dict[str, object], code: str, at: str) -> None:
    text = json.dumps(profile(**changes))
    one = mistakes(text)[0]
    assert one.code == code and one.span
    assert text[one.span.column - 1 :].startswith(at)


@pytest.mark.parametrize(
    ("links_of", "betas", "code", "at"),
    [
        ([[0, 1], [1]], [[0, 1], [1, 0]], "C0924", "[1]], "),
        ([[0, 1], 3], [[0, 1], [1, 0]], "C0924", "3"),
        ([[1, 1], [1, 0]], [[0, 1], [1, 0]], "C0924", "1, 1]"),
        ([[0, 0.5], [1, 0]], [[0, 1], [1, 0]], "C0924", "0.5"),
        ([[0, 4294967295], [1, 0]], [[0, 1], [1, 0]], "C0933", "1, 0]]"),
        ([[0, 1], [1, 0]], [[0, 0], [1, 0]], "C0981", "0], [1, 0]], \"i"),
        ([[0, 1], [1, 0]], [[0, 1]], "C0924", "[[0, 1]]"),
        ([[0, -1], [1, 0]], [[0, 1], [1, 0]], "C0981", "-1"),
    ],
)  # fmt: skip
def test_mistakes_in_matrices(links_of: object, betas: object, code: str, at: str) -> None:
    text = json.dumps(custom(links_of, betas))
    one = mistakes(text, size=MB)[0]
    assert one.code == code and one.span
    assert text[one.span.column - 1 :].startswith(at), text[one.span.column - 1 :]


def test_a_sketch_is_called_one() -> None:
    text = json.dumps({"nnodes": 2, "intranode_sketch": {"strategy": "none"}, "symmetry_offsets": [[8, 16]]})
    assert sniff(text) == "taccl"
    [one] = mistakes(text)
    assert one.message == "found a sketch of TACCL, needed a topology"


def test_it_is_recognized() -> None:
    assert sniff(json.dumps(profile())) == sniff(json.dumps(custom([[0]], [[0]]))) == "taccl"
    assert sniff('{"name": "x", "links": [[0]]}') is None


def test_damaged_texts() -> None:
    def run(text: str) -> None:
        network = imported(text, "taccl", Figures(size=MB))
        network.topology("t")
        topology_text(network, "t")

    texts = [json.dumps(profile(), indent=1), json.dumps(custom([[0, 2], [1, 0]], [[0, 10], [10, 0]]), indent=1)]
    assert survives(run, texts, cases()) > 20
