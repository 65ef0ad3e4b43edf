"""ASTRA-sim's analytical networks: the product of dimensions by hand, both forms of lists, and what is refused."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import pytest
from imported import connected, imported, same_after_writing
from mutated import cases, survives

from collc.frontends.importing import read, sniff
from collc.frontends.importing.figures import Figures, gigabytes
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Source
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.scheduler import ForestScheduler

TEXT = """# three dimensions
topology: [ Ring, FullyConnected, Switch ]  # blocks

npus_count: [ 4, 2, 3 ]
bandwidth: [ 200.0, 100.5, 50 ]  # GB/s
latency: [ 50.0, 500.0, 936.25 ]  # ns
"""


def mistakes(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(CollcError) as failure:
        imported(text, "astra-sim")
    return [(one.code, one.span.line, one.span.column) for one in failure.value.diagnostics if one.span]


def test_dimensions_join_npus_that_differ_in_one_coordinate() -> None:
    network = imported(TEXT)
    assert network.format == "astra-sim" and len(network.ranks) == 24 and not network.hosts and not network.warnings
    expected = Counter[tuple[str, str, Fraction, Fraction]]()

    def both(a: str, b: str, bandwidth: str, latency: str) -> None:
        kind = (gigabytes(bandwidth), Fraction(latency) / 10**9)
        expected.update([(a, b, *kind), (b, a, *kind)])

    def npu(x: int, y: int, z: int) -> str:
        return f"npu{x + 4 * y + 8 * z}"

    for x, y, z in product(range(4), range(2), range(3)):
        both(npu(x, y, z), npu((x + 1) % 4, y, z), "200", "50")
        both(npu(x, y, z), f"dim2_switch{x + 4 * y}", "50", "936.25")
    for x, z in product(range(4), range(3)):
        for a, b in combinations(range(2), 2):
            both(npu(x, a, z), npu(x, b, z), "100.5", "500")
    assert Counter((a, b, kind.bandwidth, kind.latency) for a, b, kind in network.links()) == expected
    assert connected(same_after_writing(network))


@pytest.mark.parametrize(
    ("block", "npus", "bound"),
    # a ring of 4 gets 3 shards by two links of 50 GB/s; a full mesh by three; a switch by one; a ring of 2 has one link
    [
        ("Ring", 4, Fraction(3, 100 * 10**9)), ("FullyConnected", 4, Fraction(3, 150 * 10**9)),
        ("Switch", 4, Fraction(3, 50 * 10**9)), ("Ring", 2, Fraction(1, 50 * 10**9)),
    ],
)  # fmt: skip
def test_the_bound_of_an_allgather_is_by_the_links_of_an_npu(block: str, npus: int, bound: Fraction) -> None:
    text = f"topology: [{block}]\nnpus_count: [{npus}]\nbandwidth: [50]\nlatency: [0]\n"
    topology = imported(text).topology("x")
    assert optimum(topology, [1] * npus).one_over_x == bound
    verify(ForestScheduler().run(Problem(topology, Collective("allgather", npus))))


MANGLED = {
    "block lists": "topology:\n- Ring\n- FullyConnected\n- Switch\nnpus_count:\n  - 4\n  - 2\n  - 3\n"
    "bandwidth:\n- 200.0\n- 100.5\n- 5e1\nlatency:\n- 50.0\n- 500.0\n- 936.25\n",
    "quoted": "".join(f"> {line}\n" for line in TEXT.splitlines()),
    "CR LF": TEXT.replace("\n", "\r\n"),
    "terminal codes": TEXT.replace("Ring", "\x1b[1mRing\x1b[0m"),
    "wrapped": TEXT.replace(", ", ",\n  "),
    "texts in quotes": TEXT.replace("Ring", "'Ring'").replace("topology", '"topology"'),
    "another order": "\n".join(reversed(TEXT.splitlines())),
}


@pytest.mark.parametrize("mangling", MANGLED)
def test_other_forms_are_the_same_network(mangling: str) -> None:
    text = MANGLED[mangling]
    assert sniff(text) == "astra-sim"
    network = imported(text)
    assert network.cables == imported(TEXT).cables and not network.warnings


def test_one_dimension_may_be_without_a_list() -> None:
    texts = (f"topology: {block}\nnpus_count: [4]\nbandwidth: [25.0]\nlatency: 1.0\n" for block in ("Ring", "[ Ring ]"))
    one, other = map(imported, texts)
    assert one.cables == other.cables and len(one.cables) == 4


def test_unknown_keys_are_ignored_with_a_warning() -> None:
    found = imported(f"{TEXT}latencies: [1]\n").warnings
    assert [(one.code, one.span and one.span.line, one.hint) for one in found] == [
        ("C0942", 7, "did you mean `latency`?")
    ]


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("FullyConnected", "Fullyconnected", [(2, 19)]),
        ("[ 4, 2, 3 ]", "[ 4, 2 ]", [(4, 13)]),
        ("[ 4, 2, 3 ]", "[ 4, 1, x ]", [(4, 18), (4, 21)]),
        ("100.5", "nan", [(5, 21)]),
        ("100.5", "0", [(5, 21)]),
        ("936.25", "-1", [(6, 25)]),
        ("936.25", "1e999999", [(6, 25)]),
        ("[ 50.0, 500.0, 936.25 ]", "5", [(6, 10)]),
        ("[ 50.0, 500.0, 936.25 ]", "[ tbd, 500.0, 936.25 ]", [(6, 12)]),
        ("[ 50.0, 500.0, 936.25 ]", "{x: 1}", [(6, 10)]),
        ("latency", "latenzy", [(2, 1)]),
        ("[ 4, 2, 3 ]", "[ 4, [2], 3 ]", [(4, 13)]),
        ("[ 4, 2, 3 ]", f"[ 4, {'9' * 400}, 3 ]", [(4, 18)]),
    ],
)
def test_mistakes_have_their_places(old: str, new: str, places: list[tuple[int, int]]) -> None:
    assert mistakes(TEXT.replace(old, new)) == [("C0924", *place) for place in places]


def test_limits_and_several_files() -> None:
    assert mistakes(TEXT.replace("[ 4, 2, 3 ]", "[ 4, 4294967295, 3 ]")) == [("C0933", 4, 13)]
    assert mistakes(TEXT.replace("[ 4, 2, 3 ]", "[ 4, 2000, 3 ]")) == [("C0933", 4, 13)]  # 48 million links
    with pytest.raises(CollcError) as failure:
        read([Source("a", TEXT), Source("b", TEXT)])
    assert failure.value.diagnostics[0].code == "C0970"
    assert len(imported(TEXT, figures=Figures(node_limit=40)).ranks) == 24


@pytest.mark.parametrize("text", ["", "3\n", "- a\n", "topology:\nnpus_count:\n"])
def test_other_yaml_is_refused(text: str) -> None:
    with pytest.raises(CollcError):
        imported(text, "astra-sim")


def test_mutations() -> None:
    texts = [TEXT, MANGLED["block lists"], MANGLED["quoted"]]
    survives(lambda text: imported(text, "astra-sim").topology("x"), texts, cases())
