"""The target `nccl-graph`: what it writes, what a model of NCCL makes of it, which faults it finds, what it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_connect import connected
from nccl_nets import named, pcie_box
from sampling import examples

import collc
from collc.backends.base import Artifact
from collc.backends.nccl_graph import NcclGraph
from collc.backends.nccl_graph.connect import ConnectError, _Presets, _ring, connect
from collc.backends.nccl_graph.document import Files, graph_files
from collc.backends.nccl_graph.model import Version
from collc.backends.nccl_graph.reader import read
from collc.backends.nccl_graph.writer import write
from collc.files.naming import name_files
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest, Routes, Schedule
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.nccl.scheduler import NcclRings

NETS = (
    "dgx1_v100()", "mi250(1)", "mi250(2)", "mi300x(1)", "mi300x(2)", "mi300x(3)", "dgx_a100(1)", "dgx_a100(2)",
    "dgx_a100(3)", "dgx_a100(4)", "dgx_a100(4, 2)", "dgx_a100(3, 8)", "dgx_h100(2, 8)", "gb200_nvl72(1)", "torus(4, 4)",
    "without(dgx_a100(2), {gpu[0, 3]})", "subset(mi250(2), {0..8, 16..24})",
)  # fmt: skip


def rings(net: Topology | str, kind: str = "allreduce", root: int | None = None, **options: object) -> Forest:
    net = topology(net) if isinstance(net, str) else net
    scheduler = NcclRings(**options)  # type: ignore[arg-type]
    return scheduler.run(Problem(net, Collective(kind, net.num_ranks, root=root)))


def scheduled(net: str, using: str, collective: str = "allreduce on t") -> Schedule | Forest:
    made = collc.compile_source(f"topology t = {net}; collective c = {collective}; schedule c using {using};")
    found = made.collectives["c"]
    return found.forest or found.schedule


def emitted(target: NcclGraph, ir: Schedule | Forest) -> Sequence[Artifact]:
    files = target.emit(ir)
    report = target.check(ir, files)
    assert report.ok, report.failed
    return files


# ---- what NCCL makes of the files


@pytest.mark.parametrize("net", NETS)
def test_nccl_makes_the_rings_of_the_schedule(net: str) -> None:
    """Judged by an interpreter of texts that shares no code with the target."""
    ir, target = rings(net), NcclGraph()
    files = emitted(target, ir)
    boxes = {}
    for rank, name in enumerate(ir.topology.names[: ir.topology.num_ranks]):
        boxes.setdefault(name.split(",")[0] if "," in name else "", []).append(rank)
    texts = [file.text for file in files] * (len(boxes) if len(files) == 1 else 1)
    found = connected(texts, list(boxes.values()), net)
    half = len(found) // 2
    assert found[:half] == found[half:]
    due = {tuple(sorted(_edges(ring))) for ring in _cycles(ir)}
    assert {tuple(sorted(_edges(ring))) for ring in found} == due


def _cycles(forest: Forest) -> list[list[int]]:
    """Return the rings of a forest of chains: those of the trees to the root 0."""
    chosen = [tree for tree in range(forest.num_trees) if forest.root[tree] == 0 and forest.inward[tree]]
    found = []
    for tree in chosen:
        rows = forest.tree == tree
        to = dict(zip(forest.child[rows].tolist(), forest.parent[rows].tolist(), strict=True))
        (start,) = set(to) - set(to.values())
        ring = [start]
        while ring[-1] in to:
            ring.append(to[ring[-1]])
        found.append(ring)
    return found


def _edges(ring: Sequence[int]) -> set[tuple[int, int]]:
    return set(zip(ring, [*ring[1:], ring[0]], strict=True))


@pytest.mark.parametrize(("kind", "root"), [
    ("allgather", None), ("reduce-scatter", None), ("broadcast", 0), ("broadcast", 11), ("reduce", 5), ("reduce", 15),
])  # fmt: skip
def test_all_collectives_have_the_same_rings(kind: str, root: int | None) -> None:
    """A broadcast or reduce takes a chain; the ring closes it. Its NICs are free where the chain has none."""
    due = graph_files(rings("dgx_a100(2, 8)"), Version(2, 25), None, None, False)
    ir = rings("dgx_a100(2, 8)", kind, root, **({} if root is None else {"pieces": 3}))
    emitted(NcclGraph(), ir)
    assert graph_files(ir, Version(2, 25), None, None, False).rings == due.rings


@pytest.mark.parametrize(("net", "using"), [
    ("dgx_a100(2)", "ring { rings: nics }"), ("dgx_a100(4, 2)", "ring { rings: nics }"), ("dgx_a100(2)", "ring"),
    ("mi300x(2)", "ring { rings: 4 }"), ("biring(8)", "ring"), ("torus(4, 4)", "ring"), ("biring(5, 2)", "ring"),
])  # fmt: skip
def test_rings_of_other_schedulers(net: str, using: str) -> None:
    emitted(NcclGraph(), scheduled(net, using))


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_nodes_of_pcie(hosts: int) -> None:
    ir = rings(pcie_box(hosts), fabric=True)
    files = emitted(NcclGraph(), ir)
    text = files[0].text
    assert 'typeintra="SYS"' in text
    assert re.search('typeinter="(PHB|PIX|SYS)"', text)
    assert text.count("<net dev=") == 2 * text.count("<channel>")


@pytest.mark.parametrize(("switch", "kind"), [
    ("0000:3b:00.0", "PIX"), ("00000001:3b:00.0", "PIX"), ("0000:3b:00.0#1", "PIX"), ("pcie0", "PIX"),
    ("package0", "PHB"), ("group1", "PHB"), ("cpu1", "PHB"), ("nvswitch", "NVL"), ("nv[0]", "NVL"),
])  # fmt: skip
def test_imported_switches_are_of_their_kind(switch: str, kind: str) -> None:
    """NCCL uses LL128 over NVLink, which loses data on PCIe."""
    edges = [(f"n{n}/gpu{g}", f"n{n}/{switch}", 16.0) for n in range(2) for g in range(3)]
    edges += [
        edge for n in range(2) for edge in ((f"n{n}/mlx5_0", f"n{n}/{switch}", 16.0), (f"n{n}/mlx5_0", "fabric", 12.5))
    ]
    assert f'typeintra="{kind}"' in emitted(NcclGraph(), rings(named(edges)))[0].text


def test_nics_count_as_their_names_do() -> None:
    """The PCIe tree lists NICs in another order than the system; the numbers of their names may have gaps."""
    order = {0: 9, 1: 10, 2: 3}
    edges = [(f"n{n}/gpu{g}", f"n{n}/nvs", 300.0) for n in range(2) for g in order]
    edges += [(f"n{n}/gpu{g}", f"n{n}/mlx5_{nic}", 25.0) for n in range(2) for g, nic in order.items()]
    edges += [(f"n{n}/mlx5_{nic}", f"rail{nic}", 25.0) for n in range(2) for nic in order.values()]
    for file in emitted(NcclGraph(), rings(named(edges))):
        for channel in read(file.text, file.filename, Version(2, 25)).graphs[0].channels:
            assert (channel.entry, channel.exit) == ([1, 2, 0][channel.gpus[0]], [1, 2, 0][channel.gpus[-1]])


def test_names_of_devices_count() -> None:
    """GPUs and NICs keep the numbers of their names, as NVML does where a GPU is hidden."""
    edges = [(f"n{n}/gpu{g}", f"n{n}/nvs", 300.0) for n in range(2) for g in (1, 4, 6)]
    edges += [(f"n{n}/gpu{g}", f"n{n}/nic{g}", 25.0) for n in range(2) for g in (1, 4, 6)]
    edges += [(f"n{n}/nic{g}", f"rail{g}", 25.0) for n in range(2) for g in (1, 4, 6)]
    text = emitted(NcclGraph(), rings(named(edges)))[0].text
    assert set(re.findall('gpu dev="([^"]*)"', text)) == {"0x1", "0x4", "0x6"}
    assert set(re.findall('net dev="([^"]*)"', text)) == {"0x1", "0x4", "0x6"}


# ---- files, channels, versions


def test_equal_nodes_share_a_file() -> None:
    assert [a.filename for a in emitted(NcclGraph(), rings("dgx_a100(1)"))] == ["allreduce.xml"]
    names = [a.filename for a in emitted(NcclGraph(), rings("dgx_a100(3)"))]
    assert names == [f"allreduce.node{n}.xml" for n in range(3)]
    assert [a.filename for a in emitted(NcclGraph(), scheduled("dgx_a100(2)", "ring"))] == ["allreduce.xml"]


@pytest.mark.parametrize(("net", "options", "channels", "speed"), [
    ("dgx_a100(1)", {}, 12, "25"), ("mi300x(1)", {}, 21, "21.333"), ("mi250(1)", {}, 12, "25"),
    ("dgx1_v100()", {}, 6, "25"), ("gb200_nvl72(1)", {}, 32, "28.125"),
    ("gb200_nvl72(1)", {"nccl": "2.24"}, 16, "56.25"),
    ("mi300x(1)", {"nccl": "2.18"}, 14, "32"), ("mi300x(1)", {"channels": 7}, 7, "64"), ("dgx_h100(2)", {}, 16, "25"),
])  # fmt: skip
def test_channels_carry_what_a_channel_can(net: str, options: dict[str, object], channels: int, speed: str) -> None:
    text = emitted(NcclGraph(**options), rings(net))[0].text  # type: ignore[arg-type]
    assert f'id="0" pattern="4" crossnic="{int("(2)" in net)}" nchannels="{channels}" speedintra="{speed}"' in text
    assert f'id="1" pattern="3" crossnic="0" nchannels="{channels}" speedintra="{speed}"' in text
    assert text.count("<channel>") == 2 * channels


def test_rings_of_more_data_have_more_channels() -> None:
    """Three parts of four on one ring, one on another: four channels."""
    forest = rings("biring(4)", "allgather", rings=2)
    weight = [3 if tree < forest.num_trees // 2 else 1 for tree in range(forest.num_trees)]
    uneven = attrs.evolve(forest, parts=4, weight=weight)
    found = graph_files(uneven, Version(2, 25), None, None, False)
    counts = [found.rings.count(ring) for ring in dict.fromkeys(found.rings)]
    assert [count * 4 // sum(counts) for count in counts] == [3, 1]
    emitted(NcclGraph(), uneven)


def test_devices_are_decimal_before_2_22() -> None:
    old, new = (emitted(NcclGraph(nccl=version), rings("mi250(1)"))[0].text for version in ("2.21", "2.22"))
    assert '<gpu dev="15"/>' in old
    assert '<gpu dev="0xf"/>' in new
    assert {"0", "0x1", "0x9", "0xa"} < set(re.findall('dev="([^"]*)"', new))


def test_ranks_are_written_for_2_30() -> None:
    files = emitted(NcclGraph(nccl="2.30", ranks=True), rings("dgx_a100(2)"))
    assert '<gpu dev="0x7" rank="15"/>' in files[1].text


def test_texts_obey_the_reader_of_nccl() -> None:
    """One element a line, one space before each attribute, no tab, no declaration, short values, few attributes."""
    for net in ("gb200_nvl72(1)", "dgx_a100(2)"):
        text = emitted(NcclGraph(), rings(net))[0].text
        lines = text.splitlines()
        assert all(re.fullmatch(r' *<(/?\w+|\w+( \w+="[^"<>&]{1,254}")+/?)>', line) for line in lines)
        assert max(line.count('="') for line in lines) <= 16
        assert "\t" not in text
        assert len(lines) < 65_536
        assert max(text.count("<gpu") // text.count("<channel>"), 32) <= 640


# ---- planted faults


def _swap(text: str, one: str, other: str, channel: int = 0) -> str:
    """Return a text with two elements of a channel exchanged."""
    parts = text.split("<channel>")
    part = parts[channel + 1]
    assert one in part
    assert other in part
    parts[channel + 1] = part.replace(one, "?").replace(other, one).replace("?", other)
    return "<channel>".join(parts)


GPU2, GPU3, NET0, NET1 = '<gpu dev="0x2"/>', '<gpu dev="0x3"/>', '<net dev="0"/>', '<net dev="0x1"/>'


def _channel_lost(text: str) -> str:
    begin = text.index("    <channel>")
    return text[:begin] + text[text.index("    </channel>\n") + len("    </channel>\n") :]


FAULTS = {
    "a GPU twice": (lambda text: text.replace(GPU2, GPU3, 1), "connect"),
    "a GPU less": (lambda text: text.replace(f"      {GPU2}\n", "", 1), "connect"),
    "an unknown GPU": (lambda text: text.replace(GPU2, '<gpu dev="0x8"/>', 1), "connect"),
    "a channel less": (_channel_lost, "connect"),
    "a channel less, counted": (
        lambda text: _channel_lost(text).replace('nchannels="8"', 'nchannels="7"', 1), "same rings",
    ),
    "more channels than listed": (lambda text: text.replace('nchannels="8"', 'nchannels="9"', 1), "connect"),
    "the wrong order": (lambda text: _swap(text, GPU2, GPU3), "same rings"),
    "NICs exchanged": (lambda text: _swap(text, NET0, NET1), "same NICs"),
    "another NIC": (lambda text: text.replace(NET1, '<net dev="0x5"/>', 1), "same NICs"),
    "neighbouring rings exchanged": (lambda text: text.replace('crossnic="1"', 'crossnic="2"'), "same rings"),
    "decimal devices": (lambda text: text.replace("0x", "1"), "connect"),
    "no chains": (lambda text: text[: text.index('  <graph id="1"')] + "</graphs>\n", "connect"),
    "no rings": (lambda text: text.replace('id="0"', 'id="5"'), "connect"),
    "a chain without a GPU": (lambda text: text[::-1].replace(GPU2[::-1], GPU3[::-1], 1)[::-1], "connect"),
    "a channel with one NIC": (lambda text: text.replace(f"      {NET0}\n", "", 1), "reading"),
    "a missing attribute": (lambda text: text.replace(' samechannels="0"', "", 1), "reading"),
    "an unknown kind of path": (lambda text: text.replace('"NVL"', '"NVX"', 1), "reading"),
    "no XML": (lambda text: text.replace("</graphs>", ""), "reading"),
    "another speed": (lambda text: text.replace('speedinter="25"', 'speedinter="26"', 1), "as written"),
    "a tab": (lambda text: text.replace("      <gpu", "\t<gpu", 1), "as written"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, node: int = 1) -> None:
    change, check = FAULTS[fault]
    target, ir = NcclGraph(), rings("dgx_a100(2)")
    files = list(target.emit(ir))
    text = change(files[node].text)
    assert text != files[node].text
    files[node] = attrs.evolve(files[node], text=text)
    report = target.check(ir, files)
    assert report.failed, fault
    assert report.failed[0].name == check, report.failed


def test_a_file_less_and_files_exchanged_are_found() -> None:
    target, ir = NcclGraph(), rings("dgx_a100(2)")
    one, other = target.emit(ir)
    assert target.check(ir, [one]).failed[0].name == "files"
    exchanged = [attrs.evolve(one, text=other.text), attrs.evolve(other, text=one.text)]
    assert target.check(ir, exchanged).failed[0].name == "same rings"
    assert target.check(rings("dgx_a100(2)", rings=4), [one, other]).failed


def test_more_channels_than_nccl_can_double_are_found() -> None:
    files = graph_files(rings("dgx_a100(1)"), Version(2, 25), None, 32, False)
    connect(files.files, files.devices, Version(2, 25))
    with pytest.raises(ConnectError, match="overrun"):
        connect(files.files, files.devices, Version(2, 24))


def test_decimal_devices_mean_others_since_2_22() -> None:
    """Device 10 of an old file is device 16 of a new NCCL."""
    files = graph_files(rings("mi250(1)"), Version(2, 21), None, None, False)
    text = write(files.files[0], Version(2, 21))
    assert connect([read(text, "a.xml", Version(2, 21))], files.devices, Version(2, 21)).rings[0] == files.rings[0]
    with pytest.raises(ConnectError, match="device 16 is not found"):
        connect([read(text, "a.xml", Version(2, 22))], files.devices, Version(2, 22))


# ---- the model of the connect phase


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 2), st.randoms())
def test_the_model_agrees_with_a_plain_interpreter(
    sizes: list[int], channels: int, crossnic: int, luck: object
) -> None:
    """On any paths: nodes of any sizes, any orders of GPUs, and with neighbouring rings exchanged."""
    starts = [sum(sizes[:node]) for node in range(len(sizes))]
    texts = []
    for size in sizes:
        orders = []
        for _ in range(channels):
            order = list(range(size))
            luck.shuffle(order)  # type: ignore[attr-defined]
            orders.append(order)
        texts.append(_text(orders, crossnic))
    version = Version(2, 25)
    devices = [{gpu: start + gpu for gpu in range(size)} for size, start in zip(sizes, starts, strict=True)]
    boxes = [list(one.values()) for one in devices]
    found = connect([read(text, "a.xml", version) for text in texts], devices, version)
    assert [list(ring) for ring in found.rings] == connected(texts, boxes)
    assert [list(group) for group in found.nodes] == boxes


def _text(orders: list[list[int]], crossnic: int) -> str:
    lines = ['<graphs version="1">']
    for number, pattern in ((0, 4), (1, 3)):
        lines.append(
            f'<graph id="{number}" pattern="{pattern}" crossnic="{crossnic}" nchannels="{len(orders)}" speedintra="1" '
            'speedinter="1" typeintra="NVL" typeinter="PIX" samechannels="0">'
        )
        for order in orders:
            lines += ["<channel>", *(f'<gpu dev="{gpu:#x}"/>' for gpu in order), "</channel>"]
        lines.append("</graph>")
    return "\n".join([*lines, "</graphs>"])


def test_a_node_of_one_gpu_uses_its_entry_nic_only() -> None:
    """NCCL asks whether a rank is the first of its channel; the only one is."""
    text = (
        _text([[0]], 1)
        .replace("<channel>", '<channel><net dev="0"/>')
        .replace("</channel>", '<net dev="1"/></channel>')
    )
    files = [read(text, "a.xml", Version(2, 25))] * 2
    assert connect(files, [{0: 0}, {0: 1}], Version(2, 25)).nics[0] == ((0, 0), (0, 0))


# ---- the reader


@pytest.mark.parametrize("text", [
    "{}", '<?xml version="1.0"?>\n<!-- mine -->\n{}', "\n{}\n", "{}<!-- end -->",
])  # fmt: skip
def test_texts_of_other_tools_are_read(text: str) -> None:
    plain = _text([[0, 1], [1, 0]], 0)
    due = read(plain, "a.xml", Version(2, 25))
    other = plain.replace('"', "'").replace("<gpu", "\t<gpu").replace("<channel>", "<channel>\n<!-- c -->")
    other = other.replace("</channel>", '<unknown a="b"/></channel>').replace("dev='", "mine='1' dev='")
    assert read(text.format(other), "a.xml", Version(2, 25)) == due


@pytest.mark.parametrize(("text", "why"), [
    ("", "not XML"), ("<graphs>", "not XML"), ("<graph/>", "the first element is `graph`"),
    ("<graphs/>", "no attribute `version`"), ('<!DOCTYPE a><graphs version="1"/>', "a document type"),
    ('<graphs version="1"><graph id="0"/></graphs>', "no attribute"),
])  # fmt: skip
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(CollcError, match=why) as mistake:
        read(text, "a.xml", Version(2, 25))
    assert {d.code for d in mistake.value.diagnostics} == {"C0915"}


# ---- what is refused


def code(ir: Schedule | Forest, **options: object) -> tuple[str, str]:
    with pytest.raises(CollcError) as mistake:
        NcclGraph(**options).emit(ir)  # type: ignore[arg-type]
    (found,) = mistake.value.diagnostics
    return found.code, " ".join([found.message, *found.notes])


@pytest.mark.parametrize(("net", "using", "why"), [
    ("dgx_a100(2)", "forest", "that is a tree"), ("mi300x(1)", "bfb", "that is a tree"),
    ("dgx_a100(2)", "double-binary-tree", "that is a tree"), ("dgx_a100(2)", "box-trees", "that is a tree"),
    ("dgx_a100(2)", "two-level", "to"), ("dgx_a100(2)", "pat", "to"), ("torus(4, 4)", "bucket", "to"),
])  # fmt: skip
def test_trees_are_refused(net: str, using: str, why: str) -> None:
    found = code(scheduled(net, using))
    assert found[0] == "C0911"
    assert why in found[1]


@pytest.mark.parametrize("using", ["bfb", "swing"])
def test_templates_are_refused_as_their_rows_are(using: str) -> None:
    source = f"collective c = allreduce on torus(4, 4); schedule c using {using} {{ template: true }};"
    with pytest.raises(CollcError) as mistake:
        collc.compile_source(source, target="nccl-graph")
    assert mistake.value.diagnostics[0].code == "C0911"


def test_rings_in_another_order_of_nodes_are_refused() -> None:
    """One cycle in both directions visits three nodes by number, and against it."""
    found = code(scheduled("dgx_a100(3)", "ring"))
    assert found[0] == "C0911"
    assert "in the order 0, 2, 1" in found[1]


def test_rings_that_return_to_a_node_are_refused() -> None:
    jumping = rings(Topology.from_links("jumping", 4, [(0, 2), (2, 1), (1, 3), (3, 0)]), rings=1)
    found = code(jumping, node=2)
    assert found[0] == "C0911"
    assert "before it has passed all its ranks" in found[1]


def test_two_nics_of_a_single_gpu_are_refused() -> None:
    found = code(rings("biring(4)", node=1, rings=1), node=1)
    assert found[0] == "C0913"
    assert "receives by one NIC and sends by another" in found[1]


def test_routes_through_ranks_are_refused() -> None:
    found = code(_relayed())
    assert found[0] == "C0913"
    assert "pass gpu1" in found[1]


def _relayed() -> Forest:
    """A ring of three ranks on a line: from the last to the first the data pass the one between."""
    net = named([("gpu0", "gpu1", 1.0), ("gpu1", "gpu2", 1.0)])
    ring = rings("complete(3)", "allgather", rings=1)
    link = {ends: n for n, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))}
    ways = {
        (a, b): [link[a, b]] if (a, b) in link else [link[a, 1], link[1, b]]
        for a in range(3)
        for b in range(3)
        if a != b
    }
    order = list(ways)
    ends = zip(ring.parent.tolist(), ring.child.tolist(), strict=True)
    return attrs.evolve(
        ring, topology=net, routes=Routes.of([ways[one] for one in order]), route=[order.index(one) for one in ends]
    )


def test_more_rings_than_channels_are_refused() -> None:
    found = code(rings("mi300x(1)", rings=17), nccl="2.18")
    assert found[0] == "C0914"
    assert "need 17 channels; a file for NCCL 2.18 has at most 16" in found[1]
    assert code(rings("mi300x(1)"), channels=8) == (
        "C0914", "option `channels` of target `nccl-graph` needs one of 7, 14, 21, 28, found 8 "
        "the schedule has 7 rings of equal shares, each on as many channels",
    )  # fmt: skip


def test_collectives_without_rings_are_refused() -> None:
    assert code(scheduled("mi300x()", "flow", "alltoall on t"))[0] == "C0910"


@pytest.mark.parametrize("options", [
    {"nccl": "2.17"}, {"nccl": "2.31"}, {"nccl": "3"}, {"nccl": "two"}, {"nccl": "2.22", "ranks": True},
    {"channels": 0}, {"channels": 33}, {"node": 0},
])  # fmt: skip
def test_wrong_options(options: dict[str, object]) -> None:
    with pytest.raises(CollcError) as mistake:
        NcclGraph(**options)  # type: ignore[arg-type]
    assert mistake.value.diagnostics[0].code == "C0916"


def test_files_of_nodes_get_their_names() -> None:
    files = NcclGraph().emit(rings("dgx_a100(2)"))
    for out, names in (("a/", ["a/c.node0.xml", "a/c.node1.xml"]), ("b.xml", ["b.node0.xml", "b.node1.xml"])):
        assert [f.path for f in name_files([("c", NcclGraph(), files)], "pod", out)] == names
    assert [f.path for f in name_files([("c", NcclGraph(), files)], "pod", "-")] == ["-"]


def test_what_was_written_is_compared_with_this_schedule() -> None:
    found: Files = graph_files(rings("mi300x(2)"), Version(2, 30), None, None, True)
    assert found.nics[0][0] != found.nics[1][0]
    assert {rank for channel in found.files[1].graphs[0].channels for rank in channel.ranks} == set(range(8, 16))


def test_the_node_of_the_target_is_that_of_its_scheduler() -> None:
    """Hosts of a fabric are nodes of one rank, not the ranks below a switch."""
    source = "topology t = leaf_spine(2, 4, 1); collective c = allreduce on t; emit c as nccl-graph { node: 1 };"
    (file,) = collc.compile_source(source).collectives["c"].artifacts
    assert all(len(channel.gpus) == 1 for channel in read(file.text, "c.xml", Version(2, 25)).graphs[0].channels)


@pytest.mark.parametrize("last", [-1, 4, 1000])
def test_a_ring_that_ends_at_a_gpu_without_a_rank_is_refused(last: int) -> None:
    presets = [_Presets([0], [1], [-1], [1]), _Presets([0], [1], [0], [-1])]
    assert _ring(0, presets, [[0, 1]]) == (0, 1)
    presets[0].last[0] = last
    with pytest.raises(ConnectError, match=f"ends at GPU {last}, which no rank has"):
        _ring(0, presets, [[0, 1]])
