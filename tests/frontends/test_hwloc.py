"""hwloc's XML as networks: the tree in versions 1 to 3, matrices, names, faults, mistakes, damaged texts."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hwloc_files import Writer, box, matrix, switched_box
from imported import connected, imported
from mutated import cases, survives
from nccl_files import MANGLINGS
from quoted_names import written

from collc.frontends.importing import sniff
from collc.frontends.importing.figures import GPUS, Figures
from collc.frontends.importing.model import Imported
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler

GB = 10**9
GEN3 = Fraction("15.753846")


def read(text: str, **figures: object) -> Imported:
    network = imported(text, figures=Figures(**figures))  # type: ignore[arg-type]
    assert network.format == "hwloc"
    return network


def links(network: Imported) -> dict[tuple[str, str], Fraction]:
    found: dict[tuple[str, str], Fraction] = {}
    for a, b, kind in network.links():
        found[a, b] = found.get((a, b), Fraction(0)) + kind.bandwidth / GB
    return found


def warned(network: Imported, code: str) -> list[str]:
    return [one.message for one in network.warnings if one.code == code]


def refused(text: str) -> list[Diagnostic]:
    with pytest.raises(CollcError) as caught:
        imported(text, "hwloc")
    return list(caught.value.diagnostics)


def pointed(mistake: Diagnostic) -> str:
    span = mistake.span
    assert span is not None
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


def simple(*devices: str, write: Writer, after: str = "") -> str:
    return write.topology(write.package(0, write.bridge(None, *devices)), after=after)


def pair(names: tuple[str, str] = ("cuda0", "cuda1"), after: str = "", version: int = 2, **more: object) -> str:
    """Return two GPUs below one package; their OS devices have the numbers 1 and 3."""
    write = Writer(version)
    devices = [
        write.device(f"0000:1{n}:00.0", "0302", write.system(name, "compute"), **(more if n else {}))  # type: ignore[arg-type]
        for n, name in enumerate(names)
    ]
    return simple(*devices, write=write, after=after)


# ---- the tree


def test_the_tree_of_a_machine() -> None:
    network = read(box())
    assert network.ranks == ("cuda0", "cuda1", "cuda2", "cuda3")
    assert network.switches == ("package0", "package1", "0000:40:00.0", "0000:41:00.0", "mlx5_0", "mlx5_1", "fabric")
    assert links(network)["cuda0", "0000:40:00.0"] == links(network)["0000:40:00.0", "package0"] == GEN3
    assert links(network)["cuda0", "cuda1"] == 25 and ("cuda0", "cuda2") not in links(network)
    assert links(network)["package0", "package1"] == 10
    assert warned(network, "C0942") == ["ignored `eth0` and `eth1`: the machine also has NICs of a fabric"]
    assert warned(network, "C0940") == [
        "assumed 10 GB/s between CPUs (NCCL's planning value for GenuineIntel family 6 model 85)",
        "assumed that NICs are as fast as their PCIe links (hwloc does not know their speeds)",
    ]
    assert connected(network.topology("t")) and sniff(box()) == sniff(box(1)) == "hwloc"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_give_the_same_machine(version: int) -> None:
    network, expected = read(box(version, links=0)), read(box(2, links=0))
    assert network.ranks == expected.ranks
    renamed = {name.replace("numa", "package") for name in network.switches}
    assert renamed == set(expected.switches) and len(network.cables) == len(expected.cables)


@pytest.mark.parametrize("mangling", MANGLINGS)
def test_pasted_texts_give_the_same_network(mangling: str) -> None:
    expected, found = read(box()), read(MANGLINGS[mangling](box()))
    assert (found.ranks, found.switches, found.cables) == (expected.ranks, expected.switches, expected.cables)


def test_bandwidths_by_hand() -> None:
    """A ring of six GPUs: two links of 25 GB/s and PCIe bring the data of five; the forest reaches it."""
    topology = written(read(pair()))
    ratio, _ = worst_ratio(topology, [1] * topology.num_ranks)
    assert 1 / ratio == GEN3 * GB
    ring = read(box(gpus=6, nics=False)).topology("ring")
    ratio, _ = worst_ratio(ring, [1] * 6)
    assert 1 / ratio == (50 + GEN3) * GB / 5
    forest = ForestScheduler().run(Problem(ring, Collective("allgather", 6)))
    assert verify(forest).ok and cost(forest).time_per_byte == ratio / 6


def test_nvswitches_are_one_switch() -> None:
    """Sixteen GPUs with six links each to the NVSwitches of their board, and PCIe to its package."""
    network = read(switched_box())
    assert network.ranks == tuple(f"nvml{n}" for n in range(16))
    assert network.switches == ("package0", "package1", "nvswitch")
    assert links(network)["nvml15", "nvswitch"] == links(network)["nvswitch", "nvml15"] == 150
    [assumed, _] = warned(network, "C0940")
    assert assumed.startswith("assumed links between the NVSwitches that carry what all GPUs send")
    topology = network.topology("t")
    ratio, _ = worst_ratio(topology, [1] * 16)
    assert 1 / ratio == (150 + GEN3) * GB / 15
    assert len(warned(read(switched_box(8, 1)), "C0940")) == 0


def test_an_nvswitch_of_one_gpu_is_left_out() -> None:
    text = switched_box(4, 2).replace("25000", "0", 12)
    network = read(text)
    assert "nvswitch" in network.switches and "`nvml0` has no NVLink, other GPUs have" in warned(network, "C0941")
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute")) for n in range(2)]
    switch = write.device("0000:20:00.0", "0680", subtype="NVSwitch")
    values = [[0, 0, 25000], [0, 0, 0], [25000, 0, 0]]
    listed = matrix("NVLinkBandwidth", ["OSDev:1", "OSDev:3", f"PCIDev:{write.number}"], values)
    single = read(simple(*devices, switch, write=write, after=listed))
    assert single.switches == ("package0",)
    assert warned(single, "C0942") == ["ignored NVLinks of `cuda0` to NVSwitches: no other GPU of the file has any"]
    alone = read(simple(write.device("0000:10:00.0", "0302"), write=write))
    assert (alone.ranks, alone.switches, alone.cables) == (("gpu0",), (), ())


def test_gpus_with_links_to_their_package() -> None:
    """As on POWER: rows of the matrix are GPUs and packages."""
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute")) for n in range(2)]
    package = write.package(0, write.bridge(None, *devices))
    values = [[1000000, 40000, 40000], [40000, 1000000, 40000], [40000, 40000, 1000000]]
    listed = matrix("NVLinkBandwidth", ["OSDev:1", "OSDev:3", f"Package:{write.number}"], values)
    network = read(write.topology(package, after=listed))
    assert links(network)["cuda0", "package0"] == 40 + GEN3 and links(network)["cuda1", "cuda0"] == 40


# ---- names


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["opencl0d0", "nvml0", "cuda0"], "cuda0"), (["nvml0", "opencl0d0"], "nvml0"), (["rsmi0"], "rsmi0"),
        (["opencl1d0", "rsmi0"], "rsmi0"), (["ze0.0", "ze0.1", "ze0"], "ze0.0"), (["opencl0d0"], "opencl0d0"),
        (["card0"], "gpu-0000:10:00.0"),
    ],
)  # fmt: skip
def test_a_gpu_is_one_rank_with_its_preferred_name(names: list[str], name: str) -> None:
    write = Writer()
    first = write.device("0000:10:00.0", "0302", *(write.system(one, "compute") for one in names))
    second = write.device("0000:11:00.0", "0302", write.system("cuda7", "compute"))
    assert sorted(read(simple(first, second, write=write)).ranks) == sorted([name, "cuda7"])


def test_gpus_without_names_are_numbered() -> None:
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", ("0302", "0380", "1200")[n]) for n in range(3)]
    display = write.device("0000:19:00.0", "0300", write.system("card0", "gpu"))
    assert read(simple(*devices, display, write=write)).ranks == ("gpu0", "gpu1", "gpu2")


def test_gpus_are_in_the_order_of_their_numbers() -> None:
    assert read(pair(("cuda1", "cuda0"))).ranks == ("cuda0", "cuda1")


def test_gpus_without_pci_devices_count_once() -> None:
    write = Writer()
    systems = [write.system(f"{name}{n}", "compute") for name in ("cuda", "nvml") for n in range(2)]
    network = read(write.topology(write.package(0, *systems)))
    assert network.ranks == ("cuda0", "cuda1") and links(network)["cuda0", "package0"] == GEN3
    assert len(warned(network, "C0940")) == 2


def test_opencl_processors_are_no_gpus() -> None:
    write = Writer()
    text = write.topology(write.package(0, write.system("opencl0d0", "compute", OpenCLDeviceType="CPU")))
    assert refused(text)[0].code == "C0932"


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["ib0", "mlx5_0"], "mlx5_0"), (["hsi0"], "hsi0"), (["eth0"], "eth0"), (["hfi1_0", "ib0"], "hfi1_0"),
        (["ib0", "ib1", "mlx4_0"], "mlx4_0"), ([], "nic-0000:20:00.0"),
    ],
)  # fmt: skip
def test_a_nic_is_one_switch_with_its_preferred_name(names: list[str], name: str) -> None:
    write = Writer()
    gpus = [write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute")) for n in range(2)]
    nic = write.device("0000:20:00.0", "0200", *(write.system(one, "net") for one in names), speed="7.876923")
    network = read(simple(*gpus, nic, write=write))
    assert network.switches == ("package0", name, "fabric")
    assert links(network)[name, "fabric"] == Fraction("7.876923")
    given = read(simple(*gpus, nic, write=write), nic=Fraction(25 * GB))
    assert read(simple(*gpus, nic, write=write), nic=Fraction(0)).switches == ("package0",)
    assert links(given)[name, "fabric"] == 25 and links(given)[name, "package0"] == Fraction("7.876923")


# ---- bandwidths


def test_unknown_speeds_of_pcie() -> None:
    network = read(pair(speed="0.000000"))
    assert links(network)["cuda1", "package0"] == GEN3
    assert warned(network, "C0940")[0] == (
        "assumed 15.753846 GB/s for PCIe links of unknown speed (PCIe 3.0 with 16 lanes)"
    )


def test_xgmi_needs_one_hop_and_its_constant_is_assumed() -> None:
    names = ("rsmi0", "rsmi1", "rsmi2")
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", "0380", write.system(name, "compute")) for n, name in enumerate(names)]
    values = [[1000000 if a == b else 100000 for b in range(3)] for a in range(3)]
    hops = [[abs(a - b) for b in range(3)] for a in range(3)]
    after = matrix("XGMIBandwidth", [1, 3, 5], values, "OSDev") + matrix("XGMIHops", [1, 3, 5], hops, "OSDev")
    text = simple(*devices, write=write, after=after)
    network = read(text)
    assert links(network)["rsmi0", "rsmi1"] == 100 and ("rsmi0", "rsmi2") not in links(network)
    assert warned(network, "C0940") == ["assumed 100 GB/s for each xGMI link (hwloc's constant for all models)"]
    assert links(read(text, gpu=GPUS["mi210"]))["rsmi0", "rsmi1"] == 50


def test_links_of_a_given_model() -> None:
    assert warned(read(pair()), "C0940") == ["assumed no NVLink or xGMI between GPUs (the file lists none)"]
    assert links(read(pair(), gpu=GPUS["h100"]))["cuda0", "nvswitch"] == 450
    assert links(read(pair(), gpu=GPUS["mi300x"]))["cuda0", "cuda1"] == 7 * 64


def test_other_matrices_and_repeated_ones() -> None:
    latency = matrix("NUMALatency", [0], [[10]], "NUMANode")
    listed = matrix("NVLinkBandwidth", [1, 3], [[0, 50000], [50000, 0]], "OSDev")
    network = read(pair(after=latency + listed + listed))
    assert links(network)["cuda0", "cuda1"] == 50
    assert warned(network, "C0942") == ["ignored another matrix `NVLinkBandwidth`"]


# ---- faults


def test_faults_of_matrices() -> None:
    rows = [[0, 50000], [25000, 0]]
    uneven = read(pair(after=matrix("NVLinkBandwidth", [1, 3], rows, "OSDev")))
    assert warned(uneven, "C0941") == ["`cuda0` has NVLink of 50 GB/s to `cuda1` and 25 GB/s back"]
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute")) for n in range(3)]
    values = [[0, 50000, 0], [50000, 0, 0], [0, 0, 0]]
    alone = read(simple(*devices, write=write, after=matrix("NVLinkBandwidth", [1, 3, 5], values, "OSDev")))
    assert warned(alone, "C0941") == ["`cuda2` has no NVLink, other GPUs have"]


def test_a_slow_slot() -> None:
    write = Writer()
    devices = [
        write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute"), speed=speed)
        for n, speed in enumerate(("15.753846", "7.876923", "15.753846"))
    ]
    network = read(simple(*devices, write=write))
    assert warned(network, "C0941") == ["`cuda1` is linked at 7.876923 GB/s, others of its kind at 15.753846 GB/s"]


# ---- mistakes


@pytest.mark.parametrize(
    ("old", "new", "code", "caret", "message"),
    [
        ('pci_link_speed="15.753846"', 'pci_link_speed="fast"', "C0924", '"fast"', "found `fast`, needed a number of"),
        (
            'pci_link_speed="15.753846"',
            'pci_link_speed="nan"',
            "C0924",
            '"nan"',
            "found `nan`, needed a number of GB/s",
        ),
        ('pci_busid="0000:11:00.0"', 'pci_busid="eleven"', "C0924", '"eleven"', "found `eleven`, needed a bus id"),
        ('nbobjs="4"', 'nbobjs="4294967295"', "C0924", '"4294967295"', "found 4 objects, needed `nbobjs`"),
        ("1000000 25000 ", "1000000 ", "C0924", "<distances2", "found 15 values, needed 4 times 4"),
        ("1000000 25000 ", "1000000 -5 ", "C0924", "<distances2", "found `-5`, needed a number of MB/s"),
        ("</topology>", "", "C0927", None, "found text that is not XML"),
        ("<topology", "<!ENTITY a 'b'><topology", "C0927", "<!ENTITY", "found `<!ENTITY`"),
        ('name="cuda1"', 'name="cuda0"', "C0930", "<object", "found `cuda0` twice"),
    ],
)
def test_each_mistake_has_its_place(old: str, new: str, code: str, caret: str | None, message: str) -> None:
    text = box()
    assert old in text
    first = refused(text.replace(old, new, 1))[0]
    assert first.code == code and first.message.startswith(message), first
    assert caret is None or pointed(first).startswith(caret)


def test_places_are_those_of_the_pasted_text() -> None:
    text = box().replace('pci_busid="0000:11:00.0"', 'pci_busid="eleven"')
    [mistake] = refused("".join(f"> \x1b[1m{line}\x1b[0m\n" for line in text.splitlines()))
    assert pointed(mistake) == '"eleven"'


def test_machines_without_gpus_are_refused_with_what_they_have() -> None:
    write = Writer()
    nic = write.device("0000:20:00.0", "0207", write.system("mlx5_0", "fabric"))
    text = write.topology(*(write.package(n, write.bridge(None, nic) if n else "") for n in range(2)))
    [mistake] = refused(text)
    assert mistake.code == "C0932" and mistake.hint is not None and "one rank" in mistake.hint
    assert mistake.message == "found 2 CPU packages and 1 NIC, needed GPUs: ranks inside a machine are its GPUs"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "C0927"), ("<topology/>", "C0932"), ("<system/>", "C0924"), (box()[:500], "C0927"),
        ("<topology>" + "<object type='Machine'>" * 10_000, "C0927"),
        ("<topology>" + "<object type='Package'/>" * 30_000 + "</topology>", "C0933"),
        ("<topology>" + "x" * 1_000_000, "C0927"), ("<topology>" + "\n" * 1_000_000, "C0933"),
        ("<topology><object type='Machine'>" + "<object type='PCIDev' pci_type='0302 [1:2]'/>" * 15_000, "C0927"),
        (
            "<topology><object type='Machine'>"
            + "<object type='PCIDev' pci_type='0302 [1:2]' pci_link_speed='x'/>" * 15_000
            + "</object></topology>",
            "C0924",
        ),
        (box().replace("OSDev", "PU").replace("0302", "0102"), "C0932"),
    ],
    ids=[
        "empty", "no objects", "another format", "cut", "deep", "objects", "text", "lines", "cut line", "one line",
        "other devices",
    ],
)  # fmt: skip
def test_texts_that_are_refused_in_time(text: str, code: str) -> None:
    start = time.monotonic()
    assert refused(text)[0].code == code
    assert time.monotonic() - start < 20


def test_unknown_objects_of_a_matrix_are_ignored() -> None:
    listed = matrix("NVLinkBandwidth", [1, 99], [[0, 50000], [50000, 0]], "OSDev")
    assert warned(read(pair(after=listed)), "C0942") == ["ignored links of `OSDev:99`: the file has no such object"]
    write = Writer()
    devices = [write.device(f"0000:1{n}:00.0", "0302", write.system(f"cuda{n}", "compute")) for n in range(2)]
    bridge = write.bridge("0000:40:00.0", *devices)
    listed = matrix("NVLinkBandwidth", ["OSDev:1", f"Bridge:{write.number}"], [[0, 50000], [50000, 0]])
    network = read(simple(bridge, write=write, after=listed))
    assert warned(network, "C0942") == ["ignored links of `Bridge:5`: it is no GPU, NVSwitch or CPU"]


def test_damaged_texts_are_refused_or_read() -> None:
    texts = [box(), box(1), box(3), switched_box(4), pair()]
    assert survives(lambda text: imported(text, "hwloc").topology("t"), texts, cases(200))
