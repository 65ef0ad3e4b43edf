"""Slurm's topologies: trees, blocks, rings and tori by hand, both files, host lists, and figures that are needed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from imported import connected, imported
from mutated import cases, survives

from collc.frontends.importing import read, sniff
from collc.frontends.importing.figures import Figures, gigabits
from collc.frontends.importing.model import Imported
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, Source
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.optimum import optimum
from collc.passes.synthesis.forest.scheduler import ForestScheduler

TREE = """# three levels
SwitchName=root Switches=s[0-1]
SwitchName=s0 Switches=leaf[0-1]  # two leaves
SwitchName=s1 Switches=leaf2

SwitchName=leaf0 Nodes=n[01-02]
SwitchName=leaf1 Nodes=n[03-04]
SwitchName=leaf2 Nodes=n05,n06
"""
BLOCKS = """BlockName=b1 Nodes=n[1-4]
BlockName=b2 Nodes=n[5-8]
BlockName=b3
BlockSizes=4,8
"""
YAML = """---
- topology: first
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: n[01-02]
      - switch: s2
        nodes: n[03-04]
- topology: second
  cluster_default: true
  block:
    block_sizes: [4, 8]
    blocks:
      - block: b1
        nodes: n[01-02]
      - block: b2
        nodes: n[03-04]
- topology: third
  flat: true
- topology: fourth
  ring:
    rings:
      - ring: r1
        nodes: n[01-05]
- topology: fifth
  torus3d:
    toruses:
      - torus: t1
        dims: {x: 4, y: 2, z: 1}
        nodes: n[1-8]
"""
SPEEDS = {
    "leaf": 400, "spine": 800, "core": 1600, "block": 3200, "fabric": 200, "ring": 100, "torus": 50
}  # fmt: skip


def tiers(*names: str) -> Mapping[str, Fraction]:
    return {name: gigabits(SPEEDS[name]) for name in names}


def network(text: str, *names: str, choice: str | None = None) -> Imported:
    return imported(text, figures=Figures(tiers=tiers(*names), choice=choice))


def expected(pairs: Mapping[tuple[str, str], str]) -> Counter[tuple[str, str, Fraction]]:
    found = Counter[tuple[str, str, Fraction]]()
    for (a, b), tier in pairs.items():
        found.update([(a, b, gigabits(SPEEDS[tier])), (b, a, gigabits(SPEEDS[tier]))])
    return found


def links(one: Imported) -> Counter[tuple[str, str, Fraction]]:
    return Counter((a, b, kind.bandwidth) for a, b, kind in one.links())


def failures(text: str, figures: Figures | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(CollcError) as failure:
        imported(text, "slurm", figures)
    return failure.value.diagnostics


def mistakes(text: str, figures: Figures | None = None) -> list[tuple[str, int, int]]:
    return [(one.code, one.span.line, one.span.column) for one in failures(text, figures) if one.span]


# ---- trees


def test_a_tree_by_hand() -> None:
    found = network(TREE, "leaf", "spine", "core")
    assert found.ranks == ("n01", "n02", "n03", "n04", "n05", "n06") and found.hosts and not found.warnings
    assert found.switches == ("root", "s0", "s1", "leaf0", "leaf1", "leaf2")
    pairs = {(f"n0{n}", f"leaf{(n - 1) // 2}"): "leaf" for n in range(1, 7)}
    pairs |= {("leaf0", "s0"): "spine", ("leaf1", "s0"): "spine", ("leaf2", "s1"): "spine"}
    pairs |= {("s0", "root"): "core", ("s1", "root"): "core"}
    assert links(found) == expected(pairs) and connected(found.topology("x"))


def test_the_bound_of_an_allgather_in_a_tree() -> None:
    """5 shards enter a host by 50 GB/s; with a slow core, 4 shards enter the two hosts below s1 by 1 GB/s."""
    topology = network(TREE, "leaf", "spine", "core").topology("x")
    assert optimum(topology, [1] * 6).one_over_x == Fraction(5, 50 * 10**9)
    verify(ForestScheduler().run(Problem(topology, Collective("allgather", 6))))
    slow = imported(TREE, figures=Figures(tiers=tiers("leaf", "spine") | {"core": gigabits(8)})).topology("x")
    assert optimum(slow, [1] * 6).one_over_x == Fraction(4, 10**9)


def test_every_tier_needs_a_figure_and_the_message_lists_them_all() -> None:
    for given in ((), ("leaf",), ("leaf", "spine")):
        only = failures(TREE, Figures(tiers=tiers(*given)))[0]
        assert only.code == "C0923" and "leaf=400Gbps,spine=400Gbps,core=400Gbps`" in (only.hint or "")
    found = network(TREE, "leaf", "spine", "core", "block").warnings
    assert [(one.code, one.message) for one in found] == [
        ("C0942", "ignored the bandwidth of tier `block`: the file has leaf, spine, core")
    ]


def test_levels_are_those_of_the_longest_way_down() -> None:
    text = (
        "SwitchName=root Switches=a,leaf2\nSwitchName=a Switches=b\nSwitchName=b Switches=leaf1\n"
        "SwitchName=leaf1 Nodes=n1\nSwitchName=leaf2 Nodes=n2\n"
    )
    figures = Figures(tiers={name: gigabits(8 * n) for n, name in enumerate(("leaf", "spine", "core", "tier4"), 1)})
    found = {(a, b): kind.bandwidth / 10**9 for a, b, kind in imported(text, figures=figures).links()}
    assert (found["n1", "leaf1"], found["leaf1", "b"], found["b", "a"], found["a", "root"]) == (1, 2, 3, 4)
    assert found["leaf2", "root"] == 2


def test_leaves_below_several_spines_and_hosts_below_several_leaves() -> None:
    text = "SwitchName=l[0-1] Nodes=n1\n"
    assert mistakes(text.replace("l[0-1]", "l0"))  # one switch needs a figure
    text = "".join(f"SwitchName=l{n} Nodes=n[1-3]\n" for n in range(2))
    text += "".join(f"SwitchName=s{n} Switches=l[0-1]\n" for n in range(4))
    found = network(text, "leaf", "spine")
    assert len(found.ranks) == 3 and len(found.cables) == 6 + 8 and connected(found.topology("x"))


def test_trees_that_nothing_joins_need_the_bandwidth_of_a_switch_that_does() -> None:
    text = TREE.replace("SwitchName=root Switches=s[0-1]\n", "")
    only = failures(text, Figures(tiers=tiers("leaf", "spine")))[0]
    assert only.code == "C0923" and only.message.startswith(
        "nothing in the file joins s0 and s1; a switch `fabric` can"
    )
    assert "leaf=400Gbps,spine=400Gbps,fabric=400Gbps`" in (only.hint or "") and "--choose" in only.notes[0]
    found = network(text, "leaf", "spine", "fabric")
    assert connected(found.topology("x")) and links(found)["s0", "fabric", gigabits(200)] == 1
    one = network(text, "leaf", "spine", choice="s1")
    assert (one.ranks, one.switches, len(one.cables)) == (("n05", "n06"), ("s1", "leaf2"), 3)
    wrong = failures(text, Figures(tiers=tiers("leaf", "spine"), choice="ss1"))[0]
    assert wrong.code == "C0974" and wrong.hint == "did you mean `s1`?"


def test_a_switch_without_anything_below_it_is_a_fault() -> None:
    found = network(f"{TREE}SwitchName=leaf3\n".replace("leaf2\n\n", "leaf[2-3]\n"), "leaf", "spine", "core")
    assert [one.code for one in found.warnings] == ["C0941"] and "leaf3" in found.switches
    topology = found.topology("x")
    verify(ForestScheduler().run(Problem(topology, Collective("allgather", 6))))


def test_a_switch_of_a_single_host_is_left_out() -> None:
    found = network(f"{TREE}SwitchName=only Nodes=n01\n", "leaf", "spine", "core")
    assert found.cables == network(TREE, "leaf", "spine", "core").cables
    assert [(one.code, one.message) for one in found.warnings] == [
        ("C0942", "left out 1 switch with a single host: `only`")
    ]
    verify(ForestScheduler().run(Problem(found.topology("x"), Collective("allgather", 6))))


def test_names_that_are_listed_again_count_once() -> None:
    found = network(
        TREE.replace("n[01-02]", "n[01-02],n01").replace("leaf[0-1]", "leaf[0-1],leaf1"), "leaf", "spine", "core"
    )
    assert found.cables == network(TREE, "leaf", "spine", "core").cables
    assert [one.code for one in found.warnings] == ["C0942", "C0942"]


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("Switches=leaf2", "Switches=leaf3", [("C0971", 4, 24)]),
        ("Switches=leaf2", "Switches=leaf2,root", [("C0972", 2, 12)]),
        ("SwitchName=leaf2", "SwitchName=leaf1", [("C0930", 8, 12), ("C0971", 4, 24)]),
        ("SwitchName=leaf2", "SwitchName=n01", [("C0971", 4, 24)]),
        ("SwitchName=leaf2", "SwichName=leaf2", [("C0924", 8, 1)]),
        ("SwitchName=leaf2", "SwitchName= ", [("C0924", 8, 12)]),
        ("Nodes=n05,n06", "Nodes=n[05-", [("C0924", 8, 25)]),
        ("Nodes=n05,n06", "Nodes=n[05-x]", [("C0924", 8, 28)]),
        ("Nodes=n05,n06", "Nodes=n[1-999999999]", [("C0924", 8, 24)]),
        ("Nodes=n05,n06", "Nodes=n[1-30000]", [("C0933", 8, 24)]),
        ("Nodes=n05,n06", "Node=n05", [("C0924", 8, 18)]),
        ("Nodes=n05,n06", "Nodes=n05 Nodes=n06", [("C0924", 8, 28)]),
        ("Nodes=n05,n06", "n05 n06", [("C0924", 8, 18)]),
        ("# three levels", "include other.conf", [("C0924", 1, 1)]),
        ("# three levels", "NodeName=n[1-2] CPUs=2", [("C0924", 1, 1)]),
    ],
)
def test_mistakes_have_their_places(old: str, new: str, places: list[tuple[str, int, int]]) -> None:
    assert mistakes(TREE.replace(old, new)) == places


def test_a_host_with_the_name_of_a_switch() -> None:
    assert [one.code for one in failures(TREE.replace("n05", "leaf0"))] == ["C0930"]


# ---- text


MANGLED = {
    "lower case": lambda text: text.replace("SwitchName", "switchname").replace("Nodes", "NODES"),
    "blanks around": lambda text: text.replace("=", " = "),
    "texts in quotes": lambda text: text.replace("n05,n06", '"n05, n06"'),
    "lines that go on": lambda text: text.replace(" Nodes", " \\\n    Nodes").replace(" Switches", "\\\nSwitches"),
    "wrapped": lambda text: text.replace(" Nodes", "\n  Nodes").replace(" Switches", "\n Switches"),
    "wrapped lists": lambda text: text.replace("n05,n06", "n05,\n  n06"),
    "wrapped ranges": lambda text: text.replace("n[01-02]", "n[01-\n   02]").replace("s[0-1]", "s[0\n-1]"),
    "without line ends": lambda text: " ".join(text.splitlines()[1:]).replace("# two leaves", ""),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "tabs": lambda text: text.replace(" Nodes", "\t\tNodes"),
    "terminal codes": lambda text: text.replace("leaf0", "\x1b[31mleaf0\x1b[0m"),
    "fenced": lambda text: f"```ini\n{text}```\n",
    "as scontrol prints it": lambda text: (
        text.replace(" Nodes", " Level=0 LinkSpeed=1 Nodes")
        .replace(" Switches=s", " Level=2 LinkSpeed=1 Nodes=n[01-06] Switches=s")
        .replace(" Switches=leaf", " Level=1 LinkSpeed=1 Nodes=n[01-06] Switches=leaf")
    ),
}


@pytest.mark.parametrize("mangling", MANGLED)
def test_text_as_people_paste_it_is_the_same_network(mangling: str) -> None:
    text = MANGLED[mangling](TREE)
    assert text != TREE and sniff(text) == "slurm"
    found, original = network(text, "leaf", "spine", "core"), network(TREE, "leaf", "spine", "core")
    assert (found.ranks, found.switches, found.cables) == (original.ranks, original.switches, original.cables)
    assert {one.code for one in found.warnings} <= {"C0942"}


def test_places_in_joined_lines_are_those_of_the_text() -> None:
    assert mistakes("SwitchName=a \\\n   Nodes=n1,\\\n  n[2-x]\n") == [("C0924", 3, 6)]
    assert mistakes("SwitchName=a\n   Nodes=n1,\n  n2,\n n3,\n    n[4-x]\n") == [("C0924", 5, 8)]
    assert mistakes("> SwitchName=a\n>   Nodes=n1,\n>     n[2-x]\n") == [("C0924", 3, 10)]


def test_link_speeds_are_ignored_with_one_warning() -> None:
    found = network(TREE.replace(" Nodes", " LinkSpeed=900 Nodes"), "leaf", "spine", "core")
    assert [one.code for one in found.warnings] == ["C0942"] and any("LinkSpeed" in one.text for one in found.notes)


def test_several_files_count_as_one() -> None:
    middle = TREE.index("SwitchName=leaf0")
    parts = [Source("a", TREE[:middle]), Source("b", TREE[middle:])]
    found = read(parts, Figures(tiers=tiers("leaf", "spine", "core")))
    assert found.cables == network(TREE, "leaf", "spine", "core").cables


# ---- blocks, rings, tori


def test_blocks_by_hand() -> None:
    assert "block=400Gbps,fabric=400Gbps`" in (failures(BLOCKS)[0].hint or "")
    found = network(BLOCKS, "block", "fabric")
    pairs = {(f"n{n}", "b1" if n < 5 else "b2"): "block" for n in range(1, 9)}
    pairs |= {("b1", "fabric"): "fabric", ("b2", "fabric"): "fabric"}
    assert links(found) == expected(pairs) and connected(found.topology("x"))
    assert [one.code for one in found.warnings] == ["C0942"]  # b3 has no hosts
    assert any("BlockSizes=4,8" in note.text for note in found.notes)
    # 4 shards enter a block by 25 GB/s, 7 enter a host by 400 GB/s
    assert optimum(found.topology("x"), [1] * 8).one_over_x == Fraction(4, 25 * 10**9)


def test_one_block_needs_no_fabric() -> None:
    assert connected(network("BlockName=b Nodes=n[1-3]\n", "block").topology("x"))
    assert network(BLOCKS, "block", choice="b2").ranks == ("n5", "n6", "n7", "n8")


def test_a_host_in_two_blocks() -> None:
    assert mistakes(BLOCKS.replace("n[5-8]", "n[4-8]"), Figures(tiers=tiers("block"))) == [("C0930", 2, 20)]


def test_lines_of_several_kinds_are_a_choice() -> None:
    found = network(TREE + BLOCKS.replace("n[", "m["), "leaf", "spine", "core")
    assert [one.code for one in found.warnings] == ["C0940"] and len(found.ranks) == 6
    assert len(network(TREE + BLOCKS, "block", "fabric", choice="block").ranks) == 8


def test_rings_by_hand() -> None:
    found = network("RingName=r Nodes=n[1-4]\nRingName=p Nodes=m[1-2]\n", "ring", "fabric")
    pairs = {(f"n{n}", f"n{n % 4 + 1}"): "ring" for n in range(1, 5)} | {("m1", "m2"): "ring"}
    pairs |= {(host, "fabric"): "fabric" for host in found.ranks}
    assert links(found) == expected(pairs)
    assert network("RingName=r Nodes=n[1-4]\n", "ring").switches == ()


@pytest.mark.parametrize("dims", [(3, 3, 2), (4, 2, 1), (1, 1, 3), (2, 2, 2)])
def test_tori_count_x_fastest(dims: tuple[int, int, int]) -> None:
    x, y, z = dims
    text = f"- topology: t\n  torus3d:\n    dims: {{x: {x}, y: {y}, z: {z}}}\n    nodes: n[0-{x * y * z - 1}]\n"
    pairs = set[frozenset[str]]()
    for number in range(x * y * z):
        at = (number % x, number // x % y, number // (x * y))
        for axis in range(3):
            there = [*at]
            there[axis] = (there[axis] + 1) % dims[axis]
            if there != [*at]:
                other = there[0] + x * there[1] + x * y * there[2]
                pairs.add(frozenset((f"n{number}", f"n{other}")))
    found = network(text, "torus")
    assert links(found) == expected({(min(pair), max(pair)): "torus" for pair in pairs})


def test_regions_of_a_torus() -> None:
    text = (
        "- topology: t\n  torus3d:\n  - torus: a\n    dims: {x: 3, y: 2, z: 1}\n    regions:\n"
        "    - anchor: {x: 0, y: 0, z: 0}\n      dims: {x: 3, y: 1, z: 1}\n      nodes: n[0-2]\n"
        "    - anchor: {x: 1, y: 1, z: 0}\n      dims: {x: 1, y: 1, z: 1}\n      nodes: n4\n"
    )
    found = network(text, "torus")
    pairs = {("n0", "n1"): "torus", ("n1", "n2"): "torus", ("n2", "n0"): "torus", ("n1", "n4"): "torus"}
    assert links(found) == expected(pairs)
    assert mistakes(text.replace("anchor: {x: 1, y: 1", "anchor: {x: 1, y: 2")) == [("C0924", 10, 13)]
    assert mistakes(text.replace("anchor: {x: 1, y: 1", "anchor: {x: 1, y: 0")) == [("C0924", 10, 13)]
    assert mistakes(text.replace("n[0-2]", "n[0-3]")) == [("C0924", 7, 13)]


# ---- topology.yaml


def test_the_default_of_the_cluster_is_taken_with_a_warning() -> None:
    assert sniff(YAML) == "slurm"
    found = network(YAML, "block", "fabric")
    assert found.switches == ("b1", "b2", "fabric")
    assert [(one.code, one.span and one.span.line) for one in found.warnings] == [("C0940", 11)]
    assert "--choose NAME` takes another one: first, third, fourth, fifth" in (found.warnings[0].hint or "")
    first = network(YAML.replace("  cluster_default: true\n", ""), "leaf", "spine")
    assert first.switches == ("root", "s1", "s2") and "the first of the file" in first.warnings[0].message


@pytest.mark.parametrize(
    ("choice", "names", "ranks", "cables"),
    [
        ("first", ("leaf", "spine"), 4, 6), ("second", ("block", "fabric"), 4, 6), ("fourth", ("ring",), 5, 5),
        ("fifth", ("torus",), 8, 12),
    ],
)  # fmt: skip
def test_a_chosen_topology(choice: str, names: tuple[str, ...], ranks: int, cables: int) -> None:
    found = network(YAML, *names, choice=choice)
    assert (len(found.ranks), len(found.cables)) == (ranks, cables) and not found.warnings
    assert connected(found.topology("x"))


def test_a_flat_default_names_the_others() -> None:
    text = YAML.replace("  cluster_default: true\n", "").replace("flat: true", "flat: true\n  cluster_default: true")
    only = failures(text)[0]
    assert only.code == "C0932" and only.hint == "`--choose NAME` takes another one: first, second, fourth, fifth"


def test_the_default_may_come_before_the_name() -> None:
    text = "- cluster_default: true\n  topology: t\n  block:\n    blocks: [{block: b, nodes: 'n[1-2]'}]\n"
    assert sniff(text) == "slurm" and network(text, "block").ranks == ("n1", "n2")
    flow = "[{topology: t, ring: {rings: [{ring: r, nodes: 'n[1-3]'}]}}]"
    assert imported(flow, "slurm", Figures(tiers=tiers("ring"))).ranks == ("n1", "n2", "n3")


def test_yaml_and_conf_are_the_same_tree() -> None:
    lines = [line.split("#")[0].split() for line in TREE.splitlines() if "=" in line]
    text = "- topology: t\n  tree:\n    switches:\n"
    for line in lines:
        pairs = dict(pair.split("=") for pair in line)
        text += f"    - switch: {pairs['SwitchName']}\n"
        text += "".join(
            f"      {'nodes' if key == 'Nodes' else 'children'}: {value}\n" for key, value in list(pairs.items())[1:]
        )
    found, original = network(text, "leaf", "spine", "core"), network(TREE, "leaf", "spine", "core")
    assert (found.ranks, found.switches, found.cables) == (original.ranks, original.switches, original.cables)


@pytest.mark.parametrize(
    ("old", "new", "choice", "places"),
    [
        ("", "", "third", [("C0932", 21, 3)]),
        ("", "", "sixth", [("C0974", 2, 1)]),
        ("topology: third", "topology: first", None, [("C0930", 20, 13)]),
        ("block: b1", 'block: "b\\t1"', "second", [("C0931", 16, 16)]),
        ("flat: true", "flaat: true", "third", [("C0924", 21, 3)]),
        ("flat: true", "flat: true\n  ring: 1", "third", [("C0924", 22, 3)]),
        ("topology: second", "name: second", "second", [("C0924", 11, 3)]),
        ("cluster_default: true", "cluster_default: 7", None, [("C0924", 12, 20)]),
        ("nodes: n[01-05]", "nodes: n[01-", "fourth", [("C0924", 26, 17)]),
        ("nodes: n[01-05]", "nodes: 'n[01-'", "fourth", [("C0924", 26, 16)]),
        ("nodes: n[01-05]", "nodes: {a: 1}", "fourth", [("C0924", 26, 16)]),
        ("- ring: r1", "- rink: r1", "fourth", [("C0924", 25, 9)]),
        ("rings:", "rinks:", "fourth", [("C0924", 24, 5)]),
        ("x: 4, y: 2", "x: 4, y: -2", "fifth", [("C0924", 31, 25)]),
        ("x: 4, y: 2", "x: 4, y: 3", "fifth", [("C0924", 31, 15)]),
        ("x: 4, y: 2", "x: 4000000000, y: 2", "fifth", [("C0933", 31, 15)]),
        ("dims: {x: 4, y: 2, z: 1}", "dims: 4", "fifth", [("C0924", 31, 15)]),
        ("n[01-02]", "&a n[01-02]", "second", [("C0929", 8, 16)]),
    ],
)
def test_mistakes_of_yaml_have_their_places(
    old: str, new: str, choice: str | None, places: list[tuple[str, int, int]]
) -> None:
    figures = Figures(tiers=tiers(*SPEEDS), choice=choice)
    assert mistakes(YAML.replace(old, new) if old else YAML, figures) == places


def test_other_keys_are_ignored_with_a_warning() -> None:
    found = network(YAML.replace("nodes: n[01-05]", "nodes: n[01-05]\n        rack: 7"), "ring", choice="fourth")
    assert [(one.code, one.span and one.span.line) for one in found.warnings] == [("C0942", 27)]


# ---- hostile texts


@pytest.mark.parametrize(
    "text",
    [
        "", "SwitchName=a\n", "SwitchName=a Nodes=\n", "BlockSizes=3\n", "BlockName=\n", "- topology: x\n", "- 3\n",
        "SwitchName=a Nodes=n[1-20000]\n" * 500,
        "".join(f"SwitchName=s{n} Switches=s{n + 1}\n" for n in range(20_000)) + "SwitchName=s20000 Switches=s0\n",
        "SwitchName=r Switches=s[0-19999]\n",
        "nonsense\n" * 100_000,
        "SwitchName=a Nodes=" + "a,\\\n" * 30_000,
        "SwitchName=a Nodes=n1\n" + "\\\n" * 30_000 + "x\n",
        "SwitchName=a " + "x=1 " * 300_000,
        "SwitchName=a Nodes=" + "[" * 300_000,
        "SwitchName=a Nodes=n[1-9]" + "[1-9]" * 2000,
        "SwitchName" + " " * 500_000 + "=",
    ],
)  # fmt: skip
def test_hostile_texts_are_refused_soon(text: str) -> None:
    began = time.process_time()
    with pytest.raises(CollcError):
        imported(text, "slurm", Figures(tiers=tiers("leaf")))
    assert time.process_time() - began < 20


def test_mutations() -> None:
    texts = [TREE, BLOCKS, YAML, "RingName=r Nodes=n[1-4]\n", MANGLED["lines that go on"](TREE)]
    figures = Figures(tiers=tiers(*SPEEDS) | {"tier4": gigabits(1)})
    survives(lambda text: imported(text, "slurm", figures).topology("x"), texts, cases())
