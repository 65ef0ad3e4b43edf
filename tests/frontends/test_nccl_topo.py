"""Topology files of NCCL and RCCL as networks: bounds by hand, traps of real files, faults."""

from __future__ import annotations

from fractions import Fraction

import pytest
from imported import connected, imported
from nccl_files import MANGLINGS, bus, cpu, element, full, gpu, hints, net, nvlink, pci, port, ring_box, system, xgmi
from quoted_names import written

from collc.frontends.importing import sniff
from collc.frontends.importing.figures import GPUS, Figures
from collc.frontends.importing.model import Cable, Imported
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import Source
from collc.ir.graph.bottleneck import worst_ratio
from collc.ir.spec import Problem
from collc.ir.verify import verify
from collc.passes.synthesis.forest.scheduler import ForestScheduler

GB = 10**9


def read(text: str, **figures: object) -> Imported:
    network = imported(text, figures=Figures(**figures))  # type: ignore[arg-type]
    assert network.format == "nccl-topo"
    return network


def links(network: Imported) -> dict[tuple[str, str], Fraction]:
    """Return the bandwidth of all links from one node to another, in GB/s."""
    found: dict[tuple[str, str], Fraction] = {}
    for a, b, kind in network.links():
        found[a, b] = found.get((a, b), Fraction(0)) + kind.bandwidth / GB
    return found


def warned(network: Imported, code: str) -> list[str]:
    return [one.message for one in network.warnings if one.code == code]


def two_sockets() -> str:
    """Two GPUs, one below each Skylake CPU, beside a NIC of 100 Gb/s."""
    half = [cpu(gpu(n, 0x10 + n), net(n, 0x20 + n, speed=100000), numa=n, model=85) for n in range(2)]
    return system(*half)


def two_bridges() -> str:
    """Eight GPUs without NVLink below two bridges on PCIe 3.0."""
    slow = {"link_speed": "8 GT/s"}
    groups = [range(4), range(4, 8)]
    return system(cpu(*(pci(0x40 + g, *(gpu(n, 0x10 + n) for n in group), **slow) for g, group in enumerate(groups))))


# ---- bounds by hand: the bandwidth x at which every GPU can receive from each other GPU at once


@pytest.mark.parametrize(
    ("text", "x"),
    [
        # 12 NVLinks of 20 GB/s and PCIe of 24 GB/s bring the data of 7 GPUs
        (full(), Fraction(12 * 20 + 24, 7)),
        (full(links=18, sm=90), (18 * Fraction("20.6") + 24) / 7),
        # four GPUs behind 12 GB/s; a GPU alone would have 24 / 7
        (two_bridges(), Fraction(12, 4)),
        # two xGMI links of 24 GB/s and PCIe bring the data of 3 GPUs
        (ring_box(4), Fraction(2 * 24 + 24, 3)),
        # seven links of 48 GB/s and PCIe 5.0
        (ring_box(8, "gfx942", mesh=True, speed="32.0 GT/s PCIe"), Fraction(7 * 48 + 48, 7)),
        # between the CPUs 10 GB/s, and through the NICs and their fabric 12.5 GB/s
        (two_sockets(), Fraction(45, 2)),
    ],
    ids=["NVSwitch", "NVSwitch of Hopper", "two bridges", "xGMI ring", "xGMI mesh", "two sockets"],
)
def test_bounds_are_those_by_hand(text: str, x: Fraction) -> None:
    topology = written(read(text))
    assert connected(topology)
    ratio, _ = worst_ratio(topology, [1] * topology.num_ranks)
    assert 1 / ratio == x * GB
    forest = ForestScheduler().run(Problem(topology, Collective("allgather", topology.num_ranks)))
    assert verify(forest).ok
    assert cost(forest).time_per_byte == ratio / topology.num_ranks


def test_a_full_file_has_all_of_its_devices() -> None:
    network = read(full(4))
    assert network.ranks == ("gpu0", "gpu1", "gpu2", "gpu3")
    assert network.switches == (
        "cpu0", bus(0x40), "mlx5_0", "cpu1", bus(0x42), "mlx5_2", "nvswitch", "fabric",
    )  # fmt: skip
    assert links(network)["gpu0", "nvswitch"] == links(network)["nvswitch", "gpu0"] == 240
    assert links(network)["gpu0", bus(0x40)] == 24 and links(network)["mlx5_0", bus(0x40)] == 48
    assert links(network)["cpu0", "cpu1"] == 22 and links(network)["mlx5_0", "fabric"] == 50
    assert [one.message for one in network.warnings] == [note.text for note in network.notes] == [
        "assumed 20 GB/s for each NVLink (NCCL's planning value for sm 80, below nominal)",
        "assumed 22 GB/s between CPUs (NCCL's planning value for GenuineIntel family 6 model 143)",
    ]  # fmt: skip
    assert warned(read(full(4), gpu=GPUS["a100"]), "C0940") == warned(network, "C0940")[1:]


@pytest.mark.parametrize("mangling", MANGLINGS)
@pytest.mark.parametrize("text", [full(), hints(), ring_box()], ids=["full", "hints", "xGMI"])
def test_pasted_texts_give_the_same_network(text: str, mangling: str) -> None:
    expected, found = read(text), read(MANGLINGS[mangling](text))
    assert (found.ranks, found.switches, found.cables) == (expected.ranks, expected.switches, expected.cables)


@pytest.mark.parametrize("gpus", [2, 3, 5, 16])
def test_any_number_of_gpus(gpus: int) -> None:
    network = read(full(gpus))
    assert network.ranks == tuple(f"gpu{n}" for n in range(gpus)) and connected(written(network))


def test_the_format_is_recognized() -> None:
    assert sniff(full()) == sniff(hints()) == sniff('<?xml version="1.0"?>\n<system version="2"/>') == "nccl-topo"
    assert sniff("<systematic/>") is None and sniff("<graphs version='1'></graphs>") is None


# ---- PCIe


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [
        ("2.5 GT/s", 16, 3), ("5 GT/s", 8, 3), ("8 GT/s", 16, 12), ("16 GT/s", 16, 24), ("16.0 GT/s", 8, 12),
        ("16.0 GT/s PCIe", 16, 24), ("32.0 GT/s PCIe", 16, 48), ("64.0 GT/s PCIe", 16, 96), ("", 16, 12),
        ("Unknown", 8, 6), ("16 GT/s", 0, 24), ("16 GT/s", "", 24), ("5.0 GT/s", 1, Fraction(3, 8)),
    ],
)  # fmt: skip
def test_speeds_of_pcie(speed: str, width: object, rate: object) -> None:
    slot: dict[str, object] = {"link_speed": speed, "link_width": width}
    network = read(system(cpu(gpu(0, 16, slot=slot), gpu(1, 17, slot=slot))))
    assert links(network)["cpu0", "gpu0"] == rate
    unknown = (speed in ("", "Unknown")) + (width in (0, ""))
    assert len([one for one in warned(network, "C0940") if "PCIe links" in one]) == unknown


def test_bridges_with_one_device_are_wires_and_those_without_devices_go() -> None:
    """Also contracted: the narrow bridge above a GPU, which limits it."""
    narrow = pci(0x41, pci(0x42, gpu(0, 16), link_width=4), link_speed="32.0 GT/s PCIe")
    network = read(system(cpu(narrow, pci(0x43, pci(0x44)), pci(0x45, kind="0x010802"), gpu(1, 17))))
    assert network.switches == ("cpu0",)
    assert network.cables == (
        Cable("cpu0", "gpu0", Fraction(6 * GB), label="PCIe"), Cable("cpu0", "gpu1", Fraction(24 * GB), label="PCIe"),
    )  # fmt: skip


def test_bridges_with_one_bus_id_are_separate() -> None:
    network = read(system(cpu(pci(0x40, gpu(0, 16), gpu(1, 17)), pci(0x40, gpu(2, 18), gpu(3, 19)))))
    assert network.switches == ("cpu0", bus(0x40), f"{bus(0x40)}#2")
    assert warned(network, "C0941") == [
        f"several PCIe switches have the bus id `{bus(0x40)}`; they are separate in the network"
    ]


def test_switches_in_one_chip_are_joined() -> None:
    """`pcilink` of both directions; the switches stay even with one device below."""
    sides = [
        pci(0x40 + n, gpu(n, 0x10 + n), element("pcilink", {"target": bus(0x41 - n)})) for n in range(2)
    ]  # fmt: skip
    network = read(system(cpu(*sides)))
    assert links(network)[bus(0x40), bus(0x41)] == links(network)[bus(0x41), bus(0x40)] == 5000
    single = read(system(cpu(sides[0], sides[1].replace(bus(0x40), bus(0x99)))))
    assert warned(single, "C0941") == [f"`{bus(0x40)}` lists a `pcilink` to `{bus(0x41)}`, which lists none back"]
    assert len(warned(single, "C0942")) == 1


# ---- CPUs


def test_a_cpu_that_no_route_passes_is_left_out() -> None:
    """Hosts of an NVLink domain with one GPU each; every switch of the network joins two nodes."""
    rows = nvlink("fffffff:ff:ff.0", 18), element("c2c", {"bw": 50000, "count": 8})
    hosts = [cpu(gpu(0, 16, *rows, sm=100, rank=h), host_hash=f"0x{h}") for h in range(3)]
    network = read(system(*hosts))
    assert network.switches == ("nvswitch",) and len(network.cables) == 3


@pytest.mark.parametrize(
    ("about", "rate"),
    [
        ({"modelid": 79}, 6), ({"modelid": 85}, 10), ({"modelid": 143}, 22), ({"modelid": 207}, 40),
        ({"modelid": 173}, 40), ({"vendor": "AuthenticAMD", "familyid": 143, "modelid": 49}, 16),
        ({"arch": "arm64"}, 6), ({"arch": "ppc64"}, 32), ({"vendor": "CentaurHauls", "familyid": 7, "modelid": 91}, 9),
        ({"vendor": "  Shanghai  ", "familyid": 7, "modelid": 59}, 6),
    ],
)  # fmt: skip
def test_bandwidth_between_cpus(about: dict[str, object], rate: int) -> None:
    network = read(system(*(cpu(gpu(n, 16 + n), numa=n, **about) for n in range(3))))
    joined = links(network)
    assert {joined[f"cpu{a}", f"cpu{b}"] for a in range(3) for b in range(3) if a != b} == {rate}


def test_an_unknown_cpu_has_the_smallest_bandwidth_and_a_warning() -> None:
    network = read(system(*(cpu(gpu(n, 16 + n), numa=n, vendor="HygonGenuine") for n in range(2))))
    assert links(network)["cpu0", "cpu1"] == 6
    assert "assumed 6 GB/s between CPUs of an unknown model (NCCL's smallest value)" in warned(network, "C0940")


def test_cpus_of_different_models_and_without_a_numa_node() -> None:
    network = read(system(cpu(gpu(0, 16), numa=0, model=85), cpu(gpu(1, 17), numa=-1)))
    assert (links(network)["cpu0", "cpu"], links(network)["cpu", "cpu0"]) == (10, 22)


# ---- GPUs


@pytest.mark.parametrize(
    ("sm", "rate"),
    [(60, 18), (61, 18), (70, 20), (75, 20), (80, 20), (86, 12), (89, 20), (90, "20.6"), (100, "40.1"), (120, "40.1")],
)
def test_nvlink_by_compute_capability(sm: int, rate: object) -> None:
    assert links(read(full(2, 3, sm=sm)))["gpu0", "nvswitch"] == 3 * Fraction(str(rate))


@pytest.mark.parametrize(
    ("gcn", "rate"),
    [("906", 24), ("gfx908", 24), ("910", 36), ("gfx90a", 36), ("940", 48), ("gfx942", 48), ("gfx950", 48)],
)
def test_xgmi_by_architecture(gcn: str, rate: int) -> None:
    assert links(read(ring_box(3, gcn)))["gpu0", "gpu1"] == rate


def test_the_user_may_say_the_model() -> None:
    """Nominal bandwidths in the place of NCCL's planning values."""
    network = read(full(8, 18, sm=90), gpu=GPUS["h100"])
    assert links(network)["gpu0", "nvswitch"] == 450
    assert network.notes[0].text.startswith("NVLink: 25 GB/s a link (NVIDIA, H100")


def test_all_nvswitches_are_one() -> None:
    """Four of a baseboard, as NCCL merges them; they are also PCI devices."""
    rows = [nvlink(bus(0xA0 + n), 4 + n % 2) for n in range(4)]
    devices = [gpu(n, 16 + n, *rows, sm=90) for n in range(8)]
    network = read(system(cpu(*devices, *(pci(0xA0 + n, kind="0x068000") for n in range(4)))))
    assert network.switches == ("cpu0", "nvswitch") and links(network)["gpu7", "nvswitch"] == Fraction("370.8")


def test_an_nvswitch_of_one_gpu_is_left_out() -> None:
    """As in a file that one process of several has written."""
    row = nvlink("fffffff:ff:ff.0", 18)
    network = read(system(cpu(gpu(0, 16, row), net(0, 32))))
    assert network.switches == ("cpu0", "mlx5_0", "fabric")
    assert warned(network, "C0942") == ["ignored NVLinks of `gpu0` to NVSwitches: no other GPU of the file has any"]
    half = read(system(cpu(gpu(0, 16, row), gpu(1, 17))))
    assert warned(half, "C0941") == ["`gpu1` has no NVLink, other GPUs have"]
    forest = ForestScheduler().run(Problem(half.topology("half"), Collective("allreduce", 2)))
    assert verify(forest).ok


def test_direct_nvlinks_add_up() -> None:
    """Two rows to one target are one link; each direction is of the GPU that lists it."""
    pair = [nvlink(bus(17), 2, "0x030200"), nvlink(bus(17), 1, "0x030200")], [nvlink(bus(16), 3, "0x030200")]
    network = read(system(cpu(gpu(0, 16, *pair[0]), gpu(1, 17, *pair[1]))))
    assert Cable("gpu0", "gpu1", Fraction(60 * GB), label="NVLink") in network.cables
    assert [one.code for one in network.warnings] == ["C0940"]


def test_nvlink_to_the_cpu_and_c2c() -> None:
    power = read(
        system(cpu(gpu(0, 16, nvlink(bus(5), 2, "0x068001"), sm=70), gpu(1, 17, nvlink(bus(5), 2, "0x068001"))))
    )
    assert links(power)["gpu0", "cpu0"] == 40 + 24
    grace = read(system(cpu(*(gpu(n, 16 + n, element("c2c", {"bw": 50000, "count": 8}), sm=90) for n in range(2)))))
    assert links(grace)["gpu1", "cpu0"] == links(grace)["cpu0", "gpu1"] == 400 + 24


def test_parts_of_a_gpu_share_its_links() -> None:
    """MLOPart: two `gpu` in one PCI device; both list the links of the device, which count once."""
    row = nvlink("fffffff:ff:ff.0", 18)
    devices = list[str]()
    for n in range(2):
        parts = [element("gpu", {"dev": n, "sm": 100, "rank": 2 * n + p, "mlopart": p}, [row]) for p in range(2)]
        devices.append(pci(16 + n, *parts, kind="0x030200"))
    network = read(system(cpu(*devices)))
    assert network.ranks == ("gpu0.0", "gpu0.1", "gpu1.0", "gpu1.1")
    assert links(network)[bus(16), "nvswitch"] == Fraction("721.8") and links(network)["gpu0.1", bus(16)] == 2618
    assert links(network)[bus(16), "cpu0"] == 24 and [one.code for one in network.warnings] == ["C0940"]


def test_ranks_are_in_the_order_of_rank_and_else_of_dev() -> None:
    by_rank = system(cpu(*(gpu(n, 16 + n, rank=(2, 0, 1)[n]) for n in range(3))))
    assert read(by_rank).ranks == ("gpu1", "gpu2", "gpu0")
    by_number = system(cpu(*(gpu(n, 16 + n, rank=None) for n in (2, 0, 1))))
    assert read(by_number).ranks == ("gpu0", "gpu1", "gpu2")


def test_gpus_of_other_processes_are_ignored() -> None:
    network = read(system(cpu(gpu(0, 16), gpu(1, 17, rank=None), gpu(2, 18))))
    assert network.ranks == ("gpu0", "gpu2") and len(warned(network, "C0942")) == 1


def test_hosts_are_told_apart_by_their_hash() -> None:
    """Two hosts of one NVLink domain: the same bus ids and numbers in each, one NVSwitch for both."""
    row = nvlink("fffffff:ff:ff.0", 18)
    hosts = [
        cpu(*(gpu(n, 16 + n, row, sm=100, rank=2 * h + n) for n in range(2)), net(0, 0x30), host_hash=f"0x{h + 7:x}")
        for h in range(2)
    ]
    network = read(system(*hosts))
    assert network.ranks == ("host0/gpu0", "host0/gpu1", "host1/gpu0", "host1/gpu1")
    assert network.switches == ("host0/cpu0", "host0/mlx5_0", "host1/cpu0", "host1/mlx5_0", "nvswitch", "fabric")
    assert ("host0/cpu0", "host1/cpu0") not in links(network) and connected(written(network))


def test_unknown_and_own_targets_are_ignored() -> None:
    rows = [nvlink(bus(99), 4, "0x030200"), nvlink(bus(16), 4, "0x030200"), nvlink(bus(17), 4, "0x030200")]
    network = read(system(cpu(gpu(0, 16, *rows), gpu(1, 17, nvlink(bus(16), 4, "0x030200")))))
    assert warned(network, "C0942") == [
        f"ignored links of `gpu0` to `{bus(99)}`: the file has no GPU of this bus id",
        "ignored links of `gpu0` to itself",
    ]
    assert links(network)["gpu0", "gpu1"] == 80


# ---- files with hints only


def test_hints_have_gpus_and_nics_as_pci_devices() -> None:
    network = read(hints())
    assert network.ranks == tuple(f"gpu{n}" for n in range(8)) and "nic1" in network.switches
    assert links(network)["nic0", "fabric"] == 24
    assert warned(network, "C0940") == [
        "assumed that NICs without a speed are as fast as their PCIe links (the file names no NIC)",
        "assumed no NVLink or xGMI between GPUs (it names GPUs only as PCI devices)",
        "assumed 22 GB/s between CPUs (NCCL's planning value for GenuineIntel family 6 model 143)",
    ]


def test_the_user_completes_hints() -> None:
    network = read(hints(), gpu=GPUS["a100"], nic=Fraction(25 * GB))
    assert links(network)["gpu3", "nvswitch"] == 300 and links(network)["nic1", "fabric"] == 25
    assert [one.split(" (")[0] for one in warned(network, "C0940")] == [
        "assumed 12 NVLinks of 25 GB/s from each GPU to NVSwitches", "assumed 22 GB/s between CPUs",
    ]  # fmt: skip
    mesh = read(hints(), gpu=GPUS["mi300x"])
    assert links(mesh)["gpu3", "gpu5"] == 64
    assert "nvswitch" not in read(hints(), gpu=GPUS["v100"]).switches
    assert "fabric" not in read(hints(), nic=Fraction(0)).switches


def test_hints_number_gpus_by_bus_id() -> None:
    network = read(system(cpu(pci(0x40, pci(0x30, kind="0x030200"), pci(0x20, kind="0x038000")))))
    assert network.ranks == ("gpu0", "gpu1")
    assert [cable.b for cable in network.cables] == [bus(0x40), "gpu1", "gpu0"]


def test_hints_of_bus_ids_alone() -> None:
    """As the file for g5.48xlarge: no class, no speed, no kind of CPU."""
    text = "".join(
        element("cpu", {"numaid": c}, [element("pci", {"busid": bus(2 * c + n)}) for n in range(2)]) for c in range(2)
    )
    network = read(element("system", {"version": 1}, [text]))
    assert network.ranks == ("gpu0", "gpu1", "gpu2", "gpu3") and len(warned(network, "C0940")) == 4


def test_displays_are_no_gpus_in_full_files() -> None:
    assert read(system(cpu(gpu(0, 16), gpu(1, 17), pci(3, kind="0x030000")))).ranks == ("gpu0", "gpu1")


# ---- NICs


def test_nics_of_one_chip_share_it() -> None:
    nics = [net(n, 0x20 + n, guid="0xabc", speed=200000) for n in range(2)]
    network = read(system(cpu(gpu(0, 16), *nics, net(2, 0x30))))
    assert links(network)["mlx5_0", "mlx5_0+mlx5_1"] == links(network)["mlx5_0+mlx5_1", "fabric"] == 25
    assert ("mlx5_0", "fabric") not in links(network) and links(network)["mlx5_2", "fabric"] == 50


def test_nics_without_a_guid_share_nothing() -> None:
    for guid in ("0x0", "", None):
        network = read(system(cpu(gpu(0, 16), *(net(n, 0x20 + n, guid=guid) for n in range(2)))))
        assert links(network)["mlx5_0", "fabric"] == links(network)["mlx5_1", "fabric"] == 50


def test_two_ports_of_a_card_share_its_slot() -> None:
    """Ports 1 and 2 have their own bandwidth, as NCCL plans."""
    card = pci(
        0x20, element("nic", {}, [port(0, speed=100000), port(1, speed=200000, port=2, guid="0x10")]), kind="0x020700"
    )
    network = read(system(cpu(gpu(0, 16), card)))
    assert network.switches == ("cpu0", bus(0x20), "mlx5_0", "mlx5_1", "fabric")
    assert links(network)["cpu0", bus(0x20)] == 24 and links(network)["mlx5_1", "fabric"] == 25
    assert links(network)[bus(0x20), "mlx5_0"] == Fraction("12.5")


def test_ports_of_one_name() -> None:
    card = pci(0x20, element("nic", {}, [port(0), port(0, dev=1, port=2)]), kind="0x020700")
    assert {"mlx5_0:1", "mlx5_0:2"} < set(read(system(cpu(gpu(0, 16), card))).switches)


def test_a_socket_nic_below_both_cpus_is_one() -> None:
    nic = element("nic", {}, [port(0, name="eth0", speed=10000, port=0)])
    network = read(system(cpu(gpu(0, 16), nic, numa=0), cpu(gpu(1, 17), nic, numa=1)))
    assert network.switches.count("eth0") == 1
    rate = Fraction("1.25")
    assert links(network)["cpu0", "eth0"] == links(network)["cpu1", "eth0"] == links(network)["eth0", "fabric"] == rate


def test_rails_and_planes() -> None:
    rails = read(system(cpu(gpu(0, 16), *(net(n, 0x20 + n, rail=n, plane=0) for n in range(2)))))
    assert ("mlx5_1", "fabric/rail1") in links(rails)
    planes = read(system(cpu(gpu(0, 16), *(net(n, 0x20 + n, plane=n) for n in range(2)))))
    assert ("mlx5_1", "fabric/plane1") in links(planes)
    both = read(system(cpu(gpu(0, 16), *(net(n, 0x20 + n, rail=0, plane=n) for n in range(2)))))
    assert ("mlx5_1", "fabric/rail0/plane1") in links(both)
    guessed = read(system(cpu(gpu(0, 16), *(net(n, 0x20 + n, rail=n + 2**30, plane=-1) for n in range(2)))))
    assert ("mlx5_1", "fabric") in links(guessed)


@pytest.mark.parametrize("speed", [0, -1, None])
def test_nics_without_a_speed(speed: object) -> None:
    text = system(cpu(gpu(0, 16), net(0, 0x20, speed=speed)))
    assert links(read(text))["mlx5_0", "fabric"] == Fraction("1.25") and len(warned(read(text), "C0940")) == 1
    assert links(read(text, nic=Fraction(50 * GB)))["mlx5_0", "fabric"] == 50


def test_latency_and_parts_of_virtual_nics() -> None:
    fused = element("nic", {}, [port(0, latency="1.5"), port(1, net=0)])
    network = read(system(cpu(gpu(0, 16), pci(0x20, fused, kind="0x020700"))))
    assert [cable.latency for cable in network.cables if cable.b == "fabric"] == [Fraction(3, 2_000_000)]


# ---- faults


def test_a_gpu_without_links_of_its_peers() -> None:
    text = full().replace(nvlink("fffffff:ff:ff.0", 12).strip(), "", 1)
    network = read(text)
    assert warned(network, "C0941") == ["`gpu0` has no NVLink, other GPUs have"]
    assert [note.text for note in network.notes][-1] == "`gpu0` has no NVLink, other GPUs have"
    assert ("gpu0", "nvswitch") not in links(network) and connected(written(network))


def test_a_gpu_with_fewer_links() -> None:
    network = read(full().replace('count="12"', 'count="11"', 1))
    assert warned(network, "C0941") == ["`gpu0` has 11 links of NVLink, other GPUs have 12"]
    assert links(network)["gpu0", "nvswitch"] == 220


def test_links_of_one_side() -> None:
    text = ring_box(4)
    missing = read(text.replace(xgmi(bus(0x11)).strip(), "", 1))
    assert warned(missing, "C0941") == [
        "`gpu0` has 1 link of xGMI, other GPUs have 2", "`gpu1` lists xGMI to `gpu0`, which lists none back",
    ]  # fmt: skip
    assert ("gpu0", "gpu1") not in links(missing) and links(missing)["gpu1", "gpu0"] == 24
    uneven = read(text.replace(xgmi(bus(0x11)).strip(), xgmi(bus(0x11), 2).strip(), 1))
    assert "`gpu0` has xGMI of 48 GB/s to `gpu1` and 24 GB/s back" in warned(uneven, "C0941")


def test_of_two_gpus_the_slower_one_is_reported() -> None:
    rows = nvlink("fffffff:ff:ff.0", 18), nvlink("fffffff:ff:ff.0", 17)
    network = read(system(cpu(gpu(0, 16, rows[0]), gpu(1, 17, rows[1], slot={"link_width": 8}))))
    assert warned(network, "C0941") == [
        "`gpu1` has 17 links of NVLink, other GPUs have 18",
        "`gpu1` is linked at 16.0 GT/s PCIe x8: 12 GB/s, others of its kind at 24 GB/s",
    ]


@pytest.mark.parametrize(("name", "value"), [("link_width", "8"), ("link_speed", "8.0 GT/s PCIe")])
def test_a_slot_at_half_its_width_or_speed(name: str, value: str) -> None:
    devices = [gpu(n, 16 + n, slot={name: value} if n == 2 else {}) for n in range(4)]
    network = read(system(cpu(*devices)))
    [fault] = warned(network, "C0941")
    assert fault.startswith("`gpu2` is linked at ") and fault.endswith(": 12 GB/s, others of its kind at 24 GB/s")
    assert links(network)["gpu2", "cpu0"] == 12


def test_a_host_with_fewer_nics_and_a_nic_of_another_unit() -> None:
    hosts = [
        cpu(gpu(0, 16, rank=h), *(net(n, 0x20 + n) for n in range(2 - (h == 1))), host_hash=f"0x{h}") for h in range(3)
    ]
    assert warned(read(system(*hosts)), "C0941") == ["host1 has 1 NIC, other hosts have 2"]
    network = read(system(cpu(gpu(0, 16), net(0, 0x20, speed=200000000))))
    assert warned(network, "C0941") == ["`mlx5_0` has a speed of 200000000 Mb/s"]


def test_a_host_that_nothing_joins() -> None:
    hosts = [
        cpu(*(gpu(2 * h + n, 16 + n) for n in range(2)), *([net(0, 32)] if h else []), host_hash=h) for h in range(2)
    ]
    assert "host0 has no NIC and no NVSwitch: no route leads to it" in warned(read(system(*hosts)), "C0941")


def test_the_same_file_gives_the_same_text() -> None:
    from collc.frontends.importing.coll_text import topology_text

    assert topology_text(read(full()), "pod") == topology_text(read(full()), "pod")
    assert read(full()).warnings == imported(full(), path=Source("node.txt", "").path).warnings
