"""Topologies of msccl-tools: matrices, limits that links share, bounds by hand, mistakes, damaged texts."""

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

Switch = tuple[list[int], list[int], object, str]


def topology(links: object, switches: object = (), **more: object) -> dict[str, object]:
    return {"msccl_type": "topology", "name": "pod", "switches": switches, "links": links, **more}


def ring(size: int) -> dict[str, object]:
    return topology([[int((a - b) % size in (1, size - 1)) for a in range(size)] for b in range(size)])


def hub(size: int, inner: int = 1) -> dict[str, object]:
    """Return ranks with one port out and one in, each for all others."""
    ports: list[Switch] = []
    for rank in range(size):
        others = [other for other in range(size) if other != rank]
        ports += [([rank], others, 1, f"node_{rank}_out"), (others, [rank], 1, f"node_{rank}_in")]
    return topology([[inner * (a != b) for a in range(size)] for b in range(size)], ports)


def boxes(size: int, number: int, local: int = 3) -> dict[str, object]:
    """Return boxes of ranks, each box with one port out and one in for all of the other boxes."""
    ranks = size * number
    links = [[(0 if a == b else local) if a // size == b // size else 1 for a in range(ranks)] for b in range(ranks)]
    ports: list[Switch] = []
    for at in range(number):
        inside = list(range(at * size, (at + 1) * size))
        outside = [rank for rank in range(ranks) if rank // size != at]
        ports += [(inside, outside, 1, f"copy_{at}_out"), (outside, inside, 1, f"copy_{at}_in")]
    return topology(links, ports)


def read(value: Mapping[str, object]) -> Imported:
    network = imported(json.dumps(value), figures=Figures())
    assert (network.format, network.unit) == ("msccl-tools", "link")
    return network


def mistakes(value: object) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        imported(value if isinstance(value, str) else json.dumps(value), "msccl-tools")
    return caught.value.diagnostics


def bound(network: Imported) -> Fraction:
    """Return the bandwidth at which every rank receives from every other one at once."""
    found = same_after_writing(network)
    assert connected(found)
    return Fraction(1) / worst_ratio(found, [1] * found.num_ranks)[0]


# ---- the network


def test_a_ring() -> None:
    network = read(ring(5))
    assert network.ranks == ("gpu0", "gpu1", "gpu2", "gpu3", "gpu4") and network.switches == ()
    assert len(network.cables) == 5 and all(cable.duplex for cable in network.cables)
    assert bound(network) == Fraction(2, 4)
    assert (network.title, network.warnings) == ("pod", ())
    assert network.notes[0].text == "bandwidths are relative: chunks in a step, as msccl-tools counts them"


def test_matrices_have_the_destination_first() -> None:
    network = read(topology([[0, 0, 2.5], [1, 0, 0], [0, 3, 0]]))
    assert {(c.a, c.b): c.bandwidth for c in network.cables} == {
        ("gpu0", "gpu1"): 1, ("gpu1", "gpu2"): 3, ("gpu2", "gpu0"): Fraction(5, 2),
    }  # fmt: skip


def test_ports_of_a_hub_are_one_switch() -> None:
    network = read(hub(4))
    assert network.switches == ("hub",)
    assert [(c.a, c.b, c.bandwidth, c.duplex) for c in network.cables] == [
        (f"gpu{rank}", "hub", 1, True) for rank in range(4)
    ]
    assert bound(network) == Fraction(1, 3)


def test_links_below_the_ports_of_a_hub_stay() -> None:
    """Each pair has half a port: the limits are switches of their own, and links between them have 1/2."""
    value = hub(3)
    value["links"] = [[0.5 * (a != b) for a in range(3)] for b in range(3)]
    assert read(value).switches == () and len([w for w in read(value).warnings if w.code == "C0942"]) == 6
    value["links"] = [[0.75 * (a != b) for a in range(3)] for b in range(3)]
    network = read(value)
    assert len(network.switches) == 6
    assert {c.bandwidth for c in network.cables if "out" in c.a and "in" in c.b} == {Fraction(3, 4)}
    assert bound(network) == Fraction(1, 2)


def test_a_port_for_many_is_a_switch() -> None:
    """One port out of rank 0, and one into it, for all others."""
    links = [[int(a != b and 0 in (a, b)) for a in range(4)] for b in range(4)]
    network = read(topology(links, [([0], [1, 2, 3], 1, "out_of_0"), ([1, 2, 3], [0], 1, "into_0")]))
    assert network.switches == ("out_of_0", "into_0")
    assert ("gpu0", "out_of_0", 1) in [(c.a, c.b, c.bandwidth) for c in network.cables]
    assert bound(network) == Fraction(1, 3)


@pytest.mark.parametrize("number", [2, 3])
def test_ports_of_boxes(number: int) -> None:
    """By hand: one port brings the data of all other boxes."""
    network = read(boxes(2, number))
    assert bound(network) == Fraction(1, 2 * number - 2)
    assert not network.warnings


def test_a_limit_that_limits_nothing_is_left_out() -> None:
    network = read(topology([[0, 1], [1, 0]], [([0], [1], 1, "x"), ([1], [0], 7, "y")]))
    assert network.switches == () and len(network.cables) == 1
    assert [one.code for one in network.warnings] == ["C0942", "C0942"]


def test_the_topology_of_an_algorithm() -> None:
    assert read({"msccl_type": "algorithm", "name": "a", "topology": hub(3), "steps": []}).switches == ("hub",)
    old = {**ring(3), "sccl_type": "topology"}
    del old["msccl_type"]
    assert len(read(old).cables) == 3


def test_an_asymmetric_link_is_a_fault() -> None:
    value = ring(5)
    value["links"][0][1] = 2  # type: ignore[index]
    network = read(value)
    assert [one.message for one in network.warnings] == [
        f"the link from `gpu{a}` to `gpu{b}` differs from the other direction" for a, b in ((1, 0), (0, 1))
    ]


# ---- mistakes


@pytest.mark.parametrize(
    ("value", "code", "at"),
    [
        (topology([[0, 1], [1]]), "C0924", "[1]]"),
        (topology(3), "C0924", "3"),
        (topology([[0, -1], [1, 0]]), "C0981", "-1"),
        (topology([[0, "x"], [1, 0]]), "C0924", '"x"'),
        (topology([[0, True], [1, 0]]), "C0924", "true"),
        (topology([[1, 1], [1, 0]]), "C0924", "1, 1]"),
        (topology([[0, 1], [1, 0]], 3), "C0924", "3"),
        (topology([[0, 1], [1, 0]], [3]), "C0924", "3"),
        (topology([[0, 1], [1, 0]], [([0], [2], 1, "x")]), "C0924", "[2]"),
        (topology([[0, 1], [1, 0]], [([0, 0], [1], 1, "x")]), "C0924", "[0, 0]"),
        (topology([[0, 1], [1, 0]], [([], [1], 1, "x")]), "C0924", "[], [1]"),
        (topology([[0, 1], [1, 0]], [([0], [1], 0, "x")]), "C0981", "0, \"x\""),
        (topology([[0, 1], [1, 0]], [([0], [1], 1, "gpu1")]), "C0931", '"gpu1"'),
        (topology([[0, 1], [1, 0]], [([0], [1], 1, 3)]), "C0931", "3"),
        ({"msccl_type": "step"}, "C0924", '"step"'),
        ({"msccl_type": "topology"}, "C0924", "{"),
        (topology([]), "C0932", "{"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(value: object, code: str, at: str) -> None:
    text = json.dumps(value)
    one = mistakes(text)[0]
    assert one.code == code and one.span, one
    assert text[one.span.column - 1 :].startswith(at), text[one.span.column - 1 :]


@pytest.mark.parametrize(
    ("links", "switch", "found"),
    [
        # 0 and 1 share a port to 2 and 3, and there is no link from 0 to 3
        ([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]], ([0, 1], [2, 3], 1, "x"), "join `gpu0` to `gpu3`"),
        # both could carry all of 3, and each has only 2
        ([[0, 2, 2, 2], [2, 0, 2, 2], [2, 2, 0, 2], [2, 2, 2, 0]], ([0, 1], [2, 3], 3, "x"), "of their own below"),
    ],
)  # fmt: skip
def test_limits_that_no_switch_expresses(links: object, switch: object, found: str) -> None:
    [one] = mistakes(topology(links, [switch]))
    assert one.code == "C0986" and found in one.message and one.span


def test_it_is_recognized() -> None:
    assert sniff(json.dumps(ring(3))) == sniff('{"name": "x", "sccl_type": "topology"}') == "msccl-tools"
    assert sniff('{"name": "x"}') is None


def test_damaged_texts() -> None:
    def run(text: str) -> None:
        network = imported(text, "msccl-tools")
        network.topology("t")
        topology_text(network, "t")

    texts = [json.dumps(value, indent=1) for value in (ring(3), hub(3), boxes(2, 2))]
    assert survives(run, texts, cases()) > 20
