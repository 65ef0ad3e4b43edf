"""The topology file of a virtual machine: every device at its place, bridges only; what the network does not say."""

from __future__ import annotations

import random

import attrs
import planted_files
import pytest
from boxes_of_gpus import box, card
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import EXHAUSTIVE, examples

from collc.backends.base import Artifact
from collc.backends.nccl_topo import NcclTopo
from collc.backends.nccl_topo.elements import Element, element, read_elements, require_limits, text_of
from collc.backends.nccl_topo.figures import GT, pcie_link, pcie_rate
from collc.backends.nccl_topo.machine import kinds_of, named_machine
from collc.frontends.coll import topology
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Problem
from collc.ir.topology import Topology

GPUS = " ".join(f"{k:04x}:00:00.0" for k in range(1, 9))
NICS = " ".join(f"01{k:02x}:00:00.0" for k in range(1, 9))
NUMA = "0 0 1 1 2 2 3 3"
BOTH = {"gpu_ids": GPUS, "numa": NUMA}


def problem(network: Topology | str) -> Problem:
    found = topology(network) if isinstance(network, str) else network
    return Problem(found, Collective("allreduce", found.num_ranks))


def written(network: Topology | str, **options: object) -> Artifact:
    """Return the file of a network, read back."""
    target, given = NcclTopo(**options), problem(network)  # type: ignore[arg-type]
    files = target.emit(given)
    assert target.check(given, files).ok, target.check(given, files).failed
    assert NcclTopo(**options).emit(given)[0].text == files[0].text  # type: ignore[arg-type]
    return files[0]


def root_of(network: Topology | str, **options: object) -> Element:
    found = read_elements(written(network, **options).text)
    assert found is not None
    return found


def refusal(network: Topology | str, **options: object) -> str:
    with pytest.raises(CollcError) as refused:
        NcclTopo(**options).emit(problem(network))  # type: ignore[arg-type]
    first = refused.value.diagnostics[0]
    return f"{first.code} {first.message}"


# ---- what is written


@pytest.mark.parametrize("network", ["dgx_a100(2)", "dgx_a100(4, 8)"])
def test_gpus_share_a_bridge_with_their_nics(network: str) -> None:
    root = root_of(network, gpu_ids=GPUS, nic_ids=NICS, numa=NUMA, cpu="amd")
    assert [cpu.get("numaid") for cpu in root.children] == ["0", "1", "2", "3"]
    bridges = [pci for cpu in root.children for pci in cpu.children]
    assert [[child.get("busid") for child in pci.children] for pci in bridges] == [
        list(pair) for pair in zip(GPUS.split(), NICS.split(), strict=True)
    ]
    assert {one.name for one in root.walk()} == {"system", "cpu", "pci"}
    assert {pci.get("link_speed") for pci in root.walk() if pci.name == "pci"} == {"16 GT/s"}  # feeds 25 GB/s


def test_what_a_faster_nic_needs_is_a_faster_switch() -> None:
    root = root_of("dgx_h100(2)", gpu_ids=GPUS, nic_ids=NICS, numa=NUMA, cpu="intel")
    assert {pci.get("link_speed") for pci in root.walk() if pci.name == "pci"} == {"32 GT/s"}
    assert root.children[0].get("modelid") == "143"


def test_without_nics_gpus_hang_from_their_cpus() -> None:
    root = root_of("dgx_a100(1)", gpu_ids=GPUS, numa="0 0 0 0 1 1 1 1", cpu="amd", affinity="ffff0000 0000ffff")
    assert [[pci.get("busid") for pci in cpu.children] for cpu in root.children] == [GPUS.split()[:4], GPUS.split()[4:]]
    assert [cpu.get("affinity") for cpu in root.children] == ["ffff0000", "0000ffff"]


def test_several_gpus_share_a_switch_if_the_user_says_so() -> None:
    root = root_of("dgx_a100(1)", gpu_ids=GPUS, numa=NUMA, per_switch=2, pcie=16, cpu="amd")
    assert [len(pci.children) for cpu in root.children for pci in cpu.children] == [2, 2, 2, 2]
    ids = [pci.get("busid") for cpu in root.children for pci in cpu.children]
    assert ids == ["ffff:ff:01.0", "ffff:ff:02.0", "ffff:ff:03.0", "ffff:ff:04.0"]


def test_an_imported_machine_keeps_its_tree() -> None:
    """Bus ids of bridges, NUMA nodes and the make of CPUs come from names and links."""
    root = root_of(box(), gpu_ids=" ".join(GPUS.split()[:4]), nic_ids=" ".join(NICS.split()[:2]))
    assert [cpu.get("vendor") for cpu in root.children] == ["AuthenticAMD"] * 2
    assert [pci.get("busid") for cpu in root.children for pci in cpu.children] == ["0000:17:00.0", "0000:97:00.0"]
    assert [len(pci.children) for cpu in root.children for pci in cpu.children] == [3, 3]


def test_one_machine_of_a_cluster_is_written() -> None:
    """Names of hosts tell the machines apart; all hosts are of one kind."""
    one = root_of(box(prefix="n001/"), gpu_ids=" ".join(GPUS.split()[:4]), nic_ids=" ".join(NICS.split()[:2]))
    assert one == root_of(box(), gpu_ids=" ".join(GPUS.split()[:4]), nic_ids=" ".join(NICS.split()[:2]))


def test_bus_ids_are_distinct() -> None:
    """Also from those of PCIe switches, which the network gives."""
    nics = " ".join(NICS.split()[:2])
    assert refusal(box(), gpu_ids=GPUS[:39] + " 0000:17:00.0", nic_ids=nics).startswith(
        "C0791 option `gpu-ids` has `0000:17"
    )
    twice = tuple(name.replace("97", "17") + "#2" * ("97" in name) for name in box().names)
    found = refusal(attrs.evolve(box(), node_names=twice), gpu_ids=" ".join(GPUS.split()[:4]), nic_ids=nics)
    assert found == "C0780 two PCIe switches of the network have the bus id `0000:17:00.0`"


def test_nics_that_are_no_pci_devices_are_left_out() -> None:
    """A NIC that hangs from a CPU without a PCIe link; and ports of a card are one device, which has a bus id."""
    root = root_of(card(), gpu_ids="0001:00:00.0 0002:00:00.0", cpu="amd")
    found = [pci.get("busid") for pci in root.walk() if pci.name == "pci"]
    assert found == ["0001:00:00.0", "0002:00:00.0", "0000:a1:00.0"]
    assert root.children[0].children[-1].get("class") == "0x020700"


def test_names_may_be_bus_ids() -> None:
    network = box()
    names = [f"gpu {k:04x}:00:00.0" if k < 4 else name for k, name in enumerate(network.names)]
    named = attrs.evolve(network, node_names=tuple(names))
    root = root_of(named, nic_ids=" ".join(NICS.split()[:2]))
    assert root.children[0].children[0].children[0].get("busid") == "0000:00:00.0"


def test_kinds_of_nodes() -> None:
    assert kinds_of(box())[4:] == ("nvswitch", "cpu", "cpu", "pci", "pci", "nic", "nic", "fabric")
    assert set(kinds_of(topology("dgx_a100(2, 8)"))[16:]) == {"nvswitch", "nic", "fabric"}
    assert named_machine(topology("dgx_a100(1)")) is None


# ---- what is missing or wrong


@pytest.mark.parametrize(
    ("network", "options", "why"),
    [
        ("dgx_a100(2)", {}, "C0790 the network does not say the bus ids of its GPUs"),
        ("dgx_a100(2)", {"gpu_ids": GPUS}, "C0790 the network does not say which NUMA node each GPU hangs from"),
        ("dgx_a100(2)", {"gpu_ids": GPUS, "numa": NUMA}, "C0790 the network does not say the make of its CPUs"),
        ("dgx_a100(1)", {**BOTH, "cpu": "amd", "per_switch": 2}, "C0790 the network does not say the speed"),
        ("subset(dgx_a100(2), {0..5, 8..15})", {"gpu_ids": GPUS}, "C0790 its machines differ"),
        ("dgx_a100(1)", {"gpu_ids": "0000:17:00.0"}, "C0791 option `gpu-ids` has 1 entry, one machine has 8 GPUs"),
        ("dgx_a100(2)", {"gpu_ids": GPUS, "nic_ids": "0000:17:00.0"}, "C0791 option `nic-ids` has 1 entry, one"),
        ("dgx_a100(1)", {"gpu_ids": GPUS, "numa": "0"}, "C0791 option `numa` has 1 entry"),
        ("dgx_a100(1)", {"gpu_ids": GPUS, "numa": "0 1 " * 4, "per_switch": 2}, "C0791 option `numa` puts"),
        ("dgx_a100(1)", {**BOTH, "affinity": "ff"}, "C0791 option `affinity` has 1 mask"),
        ("dgx_a100(1)", {**BOTH, "affinity": "ff gg 0 1"}, "C0791 option `affinity` has `gg`"),
        ("dgx_a100(1)", {"gpu_ids": GPUS.replace("0001", "1")}, "C0791 option `gpu-ids` has `1:00:00.0`"),
        ("dgx_a100(1)", {"gpu_ids": GPUS.replace("0002", "0001")}, "C0791 option `gpu-ids` has `0001:00:00.0`, which"),
        ("dgx_a100(1)", {"numa": "a"}, "C0791 option `numa` is `a`"),
        ("dgx_a100(1)", {"pcie": 17}, "C0791 option `pcie` is 17, needed 8, 16, 32, 64"),
        ("dgx_a100(1)", {"per_switch": 0}, "C0791 option `per-switch` is 0"),
        (box(), {"numa": "0 0 0 0"}, "C0791 option `numa` is for networks without CPUs"),
        (box(), {}, "C0790 the network does not say the bus ids of its GPUs"),
        (box(joint=17), {"gpu_ids": "1:0:0.0"}, "C0791"),
    ],
)  # fmt: skip
def test_what_the_network_does_not_say_is_needed(network: Topology | str, options: dict[str, object], why: str) -> None:
    assert refusal(network, **options).startswith(why)


def test_a_make_that_nccl_does_not_know_is_refused() -> None:
    gpus, nics = " ".join(GPUS.split()[:4]), " ".join(NICS.split()[:2])
    assert refusal(box(joint=17), gpu_ids=gpus, nic_ids=nics).startswith("C0790 no CPU that NCCL knows")
    assert root_of(box(joint=17), gpu_ids=gpus, nic_ids=nics, cpu="arm").children[0].get("arch") == "arm64"


# ---- reading back


def test_planted_faults_are_found() -> None:
    """Numbers, words and lines of the file: none may change."""
    target, given = NcclTopo(gpu_ids=GPUS, nic_ids=NICS, numa=NUMA, cpu="amd"), problem("dgx_a100(2)")
    luck = random.Random(1)
    (file,) = target.emit(given)
    tried = 0
    for plant in planted_files.PLANTINGS.values():
        for _ in range(200 if EXHAUSTIVE else 20):
            text, place = plant(file.text, luck)
            if place >= 0 and text != file.text:
                tried += 1
                assert not target.check(given, [attrs.evolve(file, text=text)]).ok, plant
    assert tried > 50


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ('busid="0001:00:00.0"', 'busid="0009:00:00.0"', "same tree"),
        ('numaid="1"', 'numaid="7"', "same tree"),
        ("<system", "<?xml version='1.0'?>\n<system", "reading"),
        ("\n    <pci", "\n\t<pci", "reading"),
        ('link_width="16"/>', 'link_width="16"><gpu dev="0"/></pci>', "bridges only"),
    ],
)
def test_faults_are_found_without_comparing_bytes(old: str, new: str, check: str) -> None:
    target, given = NcclTopo(gpu_ids=GPUS, nic_ids=NICS, numa=NUMA, cpu="amd"), problem("dgx_a100(2)")
    (file,) = target.emit(given)
    report = target.check(given, [attrs.evolve(file, text=file.text.replace(old, new, 1))])
    assert check in [one.name for one in report.failed]


# ---- the dialect

NAME = st.sampled_from(["a", "pci", "cpu_2"])
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"<>'), max_size=8)
ELEMENTS = st.recursive(
    st.builds(element, NAME, st.dictionaries(NAME, VALUE, max_size=2)),
    lambda inner: st.builds(element, NAME, st.dictionaries(NAME, VALUE, max_size=2), st.lists(inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=examples(60), deadline=None)
@given(ELEMENTS)
def test_elements_are_read_back(root: Element) -> None:
    assert read_elements(text_of(root)) == root
    assert read_elements(text_of(root, "a comment")) == root


@pytest.mark.parametrize(
    "text",
    [
        "", "text", "<a>", "<a></b>", "</a>", "<a/><b/>", "<a b='1'/>", "<a  b=\"1\"/>", "<a\tb=\"1\"/>", "<a>text</a>",
        '<?xml version="1.0"?><a/>', "<a b=1/>", "<!DOCTYPE a><a/>", "<a/>x",
    ],
)  # fmt: skip
def test_what_nccl_does_not_read_is_refused(text: str) -> None:
    assert read_elements(text) is None


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (element("a", {}, [element("b", {})] * 33), "33 children"),
        (element("a", {}, [element("b", {}, [element("c", {})] * 30)] * 10), "311 elements"),
        (element("a", {f"k{n}": 1 for n in range(17)}), "17 attributes"),
        (element("a", {"k": "x" * 255}), "255 bytes"),
        (element("a", {"k": 'say "x"'}), "a character that NCCL's reader does not take"),
        (element("a", {"k": "a\tb"}), "a character that NCCL's reader does not take"),
    ],
)
def test_limits_of_nccl(root: Element, why: str) -> None:
    with pytest.raises(CollcError, match=why):
        require_limits(root)


def test_speeds_of_pcie_links_are_told_apart_by_their_bandwidth() -> None:
    for speed in GT:
        for width in (1, 2, 4, 8, 16):
            found = pcie_link(pcie_rate(speed, width))
            assert found is not None and pcie_rate(*found) == pcie_rate(speed, width)
