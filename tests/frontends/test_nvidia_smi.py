"""The reader of nvidia-smi: pasted in any form, the network by hand, faults, refusals with their places."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import attrs
import pytest
from imported import connected, imported, same_after_writing
from mutated import cases, survives
from smi_texts import MANGLED, Device, Machine, hgx, matrix, nvlink_status

import collc
from collc.frontends.importing import read, sniff
from collc.frontends.importing.coll_text import topology_text
from collc.frontends.importing.figures import GPUS, Figures, bandwidth_of
from collc.frontends.importing.model import Imported
from collc.frontends.nvidia_smi import completes
from collc.ir.collective import Collective
from collc.ir.costs.bounds import time_per_byte_bound
from collc.ir.diagnostic import CollcError, Diagnostic, Source

NIC = bandwidth_of("400Gbps")
H100 = Figures(GPUS["h100"], NIC)
A100 = Figures(GPUS["a100"], NIC)
V100 = Figures(GPUS["v100"], NIC)

#: NVLinks of a DGX-1: two squares with diagonals, and a link between opposite corners
DGX1 = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip


def dgx1(nics: int = 0) -> Machine:
    devices = [Device(f"GPU{i}", i // 4, i // 2, i // 2) for i in range(8)]
    devices += [Device(f"mlx5_{i}", i // 2, i, i) for i in range(nics)]
    return Machine(devices, lambda a, b: DGX1.get((min(a, b), max(a, b)), 0))


def pairs(gpus: int, links: dict[tuple[int, int], int]) -> Machine:
    """Return GPUs below one CPU, some of them with NVLinks."""
    devices = [Device(f"GPU{i}", 0, i, i) for i in range(gpus)]
    return Machine(devices, lambda a, b: links.get((min(a, b), max(a, b)), 0))


def network(text: str, figures: Figures = H100) -> Imported:
    return imported(text, "nvidia-smi", figures)


def same(a: Imported, b: Imported) -> bool:
    return (a.ranks, a.switches, a.cables) == (b.ranks, b.switches, b.cables)


def links(net: Imported) -> dict[tuple[str, str], Fraction]:
    """Return GB/s of every cable by its ends."""
    return {(cable.a, cable.b): cable.bandwidth / 10**9 for cable in net.cables}


def faults(net: Imported) -> list[str]:
    return [one.message for one in net.warnings if one.code == "C0941"]


def refusal(text: str, figures: Figures = H100) -> list[Diagnostic]:
    with pytest.raises(CollcError) as failure:
        network(text, figures)
    return list(failure.value.diagnostics)


def bound(net: Imported) -> Fraction:
    """Return the GB/s at which every rank can receive all data of an allgather."""
    topology = net.topology("pod")
    return 1 / time_per_byte_bound(topology, Collective("allgather", topology.num_ranks))[0] / 10**9


# ---- text as people paste it


@pytest.mark.parametrize("style", ["tabs", "blanks"])
@pytest.mark.parametrize("machine", [hgx(), hgx(8, 12, 10, "PXB"), hgx(4, 6, 2), hgx(2, 18, 1, "NODE"), dgx1(4)])
@pytest.mark.parametrize("mangled", MANGLED)
def test_pasting_changes_nothing(machine: Machine, style: str, mangled: str) -> None:
    text = matrix(machine, style)
    damaged = MANGLED[mangled](text)
    figures = V100 if machine.devices[0].name == "GPU0" and machine.nvlinks(0, 1) == 1 else H100
    assert sniff(damaged) == "nvidia-smi"
    assert same(network(damaged, figures), network(text, figures))


def test_sixteen_gpus_and_twenty_nics_in_broken_lines() -> None:
    machine = hgx(16, 6, 20, "PXB")
    text = matrix(machine, "blanks")
    net = network(MANGLED["wrapped by a terminal"](text), V100)
    assert same(net, network(text, V100))
    assert (len(net.ranks), net.ranks[-1]) == (16, "GPU15")
    assert "mlx5_19" in net.switches


@pytest.mark.parametrize("width", range(60, 100, 7))
def test_any_width_of_a_terminal(width: int) -> None:
    text = matrix(hgx(8, 18, 10), "blanks")
    lines = [line[i : i + width] for line in text.split("\n") for i in range(0, max(len(line), 1), width)]
    assert same(network("\n".join(lines)), network(text))


def test_names_of_the_legend() -> None:
    machine = attrs.evolve(hgx(2, 18, 2), aliases={"NIC0": "mlx5_bond_0", "NIC1": "rdmap16s27"})
    assert {"mlx5_bond_0", "rdmap16s27"} <= set(network(matrix(machine)).switches)
    assert {"NIC0", "NIC1"} <= set(network(matrix(attrs.evolve(machine, aliases={}))).switches)


def test_old_words() -> None:
    text = matrix(pairs(2, {})).replace("NODE", "SOC")
    assert links(network(text))["cpu0", "cpu1"] == 22
    assert network(text.replace("SOC", "PSB")).switches == ("pcie0",)


def test_gpus_by_number() -> None:
    text = "\tGPU1\tGPU0\nGPU1\tX\tNV4\nGPU0\tNV4\tX\n"
    assert network(text).ranks == ("GPU0", "GPU1")


def test_words_behind_the_cells_without_a_heading() -> None:
    text = "\tGPU0\tGPU1\nGPU0\tX\tPHB\t7\nGPU1\tPHB\tX\t\n"
    assert network(text).switches == ("cpu0",)


# ---- NVLinks


def test_hopper_machine_by_hand() -> None:
    net = network(matrix(hgx()))
    found = links(net)
    assert net.ranks == tuple(f"GPU{i}" for i in range(8))
    assert net.switches[0] == "nvswitch"
    assert {found[f"GPU{i}", "nvswitch"] for i in range(8)} == {450}  # 18 links of 25 GB/s
    assert {found[f"GPU{i}", f"pcie{i}"] for i in range(8)} == {63}
    assert {found[f"mlx5_{i}", f"pcie{i}"] for i in range(8)} == {63}
    assert {found[f"pcie{i}", f"cpu{i // 4}"] for i in range(8)} == {63}
    assert found["cpu0", "cpu1"] == 22
    assert {found[f"mlx5_{i}", "fabric"] for i in range(8)} == {50}
    assert len(net.cables) == 8 + 8 + 8 + 8 + 1 + 8
    assert [one.code for one in net.warnings] == ["C0940", "C0940"]
    assert not faults(net)


def test_forest_bound_by_hand() -> None:
    # seven shards come in over 18 links of 25 GB/s: 450 * 8 / 7
    assert bound(network(matrix(hgx(nics=0)))) == Fraction(450 * 8, 7)
    # four A100 linked by four links for each pair: 12 links of 25 GB/s into each
    four = {(a, b): 4 for a in range(4) for b in range(a + 1, 4)}
    assert bound(network(matrix(pairs(4, four)), A100)) == Fraction(12 * 25 * 4, 3)
    # a DGX-1 without the hosts: six links of 25 GB/s into each GPU
    text = matrix(dgx1()).replace("SYS", "N/A").replace("NODE", "N/A")
    assert bound(network(text, V100)) == Fraction(6 * 25 * 8, 7)


def test_direct_links() -> None:
    net = network(matrix(dgx1()), V100)
    found = links(net)
    assert {pair: found[f"GPU{pair[0]}", f"GPU{pair[1]}"] for pair in DGX1} == {
        pair: 25 * count for pair, count in DGX1.items()
    }
    assert "nvswitch" not in net.switches
    assert not faults(net)


@pytest.mark.parametrize(
    ("gpus", "count", "model", "switched"),
    [
        (8, 12, "a100", True), (16, 6, "v100", True), (8, 8, "a800", True), (8, 2, "h100", True), (4, 4, "a100", False),
        (4, 12, "a100", True), (4, 6, "h100", False), (4, 18, "gb200", True), (2, 12, "h100", False),
        (2, 18, "h100", True), (2, 4, "a6000", False), (3, 2, "a100", False),
    ],
)  # fmt: skip
def test_switch_or_direct_links(gpus: int, count: int, model: str, switched: bool) -> None:
    every = {(a, b): count for a in range(gpus) for b in range(a + 1, gpus)}
    net = network(matrix(pairs(gpus, every)), Figures(GPUS[model]))
    speed = GPUS[model].link
    if switched:
        assert net.switches == ("nvswitch",)
        assert {cable.bandwidth for cable in net.cables} == {count * speed}
    else:
        assert not net.switches
        assert [cable.bandwidth for cable in net.cables] == [count * speed] * (gpus * (gpus - 1) // 2)


def test_status_replaces_the_table() -> None:
    text = matrix(hgx(nics=0)) + nvlink_status(8, 18, "26.562", "NVIDIA H100 80GB HBM3")
    net = network(text, Figures())
    assert {cable.bandwidth for cable in net.cables} == {18 * Fraction("26.562") * 10**9}
    assert any("26.562 GB/s for each link" in note.text for note in net.notes)
    assert not faults(net)


def test_links_left_out_of_the_status() -> None:
    status = nvlink_status(8, 18, "26.562", "NVIDIA H100 80GB HBM3").split("\n")
    short = [line if "Link 1:" not in line else "\t [...]" for line in status if "Link" not in line or
             line.split(":")[0].split()[-1] in ("0", "1", "17")]  # fmt: skip
    net = network(matrix(hgx(nics=0)) + "\n".join(short), Figures())
    assert {cable.bandwidth for cable in net.cables} == {18 * Fraction("26.562") * 10**9}
    assert not faults(net)


def test_status_in_another_text() -> None:
    one, other = Source("topo.txt", matrix(hgx(nics=0))), Source("links.txt", nvlink_status(8, 18, "26.562", "H100"))
    net = read([one, other], Figures(), "nvidia-smi")
    assert same(net, read([other, one], Figures(), "nvidia-smi"))
    assert sniff(other.text) == "nvidia-smi"
    assert completes(other.text) and not completes(one.text)


def test_name_of_the_gpu_is_enough() -> None:
    names = "".join(f"GPU {i}: NVIDIA A100-SXM4-40GB (UUID: GPU-{i})\n" for i in range(8))
    assert sniff(names) == "nvidia-smi"
    net = network(matrix(hgx(8, 12, 0)) + names, Figures())
    assert {cable.bandwidth for cable in net.cables} == {300 * 10**9}


def test_links_of_a_bridged_pair() -> None:
    every = dict.fromkeys((0, 1), (4, 5, 10, 11, 16, 17))
    text = matrix(pairs(2, {(0, 1): 12})) + nvlink_status(2, 18, "26.562", "NVIDIA H100 PCIe", every)
    net = network(text, Figures())
    assert not net.switches and not faults(net)
    assert links(net) == {("GPU0", "GPU1"): 12 * Fraction("26.562")}


def test_given_speed_of_a_link() -> None:
    given = attrs.evolve(GPUS["a100"], name="GPU", link=Fraction(10**10), links=0)
    net = network(matrix(hgx(8, 12, 0)), Figures(given))
    assert {cable.bandwidth for cable in net.cables} == {120 * 10**9}


# ---- PCIe


def test_tree_of_pcie_by_hand() -> None:
    """As two trees of switches below each of two CPUs, with NICs on the inner switches."""
    devices = [Device(f"GPU{i}", i // 4, i // 2, i // 2) for i in range(8)]
    devices += [Device(f"mlx5_{i}", i // 2, i, 10 + i) for i in range(4)] + [Device("mlx5_4", 1, 20, 20)]
    net = network(matrix(Machine(devices, lambda a, b: 0)), A100)
    found = links(net)
    for tree in range(4):
        top, inner = f"pcie{2 * tree}", f"pcie{2 * tree + 1}"
        assert found[top, f"cpu{tree // 2}"] == found[inner, top] == Fraction("31.5")
        assert found[f"GPU{2 * tree}", inner] == found[f"GPU{2 * tree + 1}", inner] == Fraction("31.5")
        assert found[f"mlx5_{tree}", top] == Fraction("31.5")
    assert found["mlx5_4", "cpu1"] == Fraction("31.5")
    assert found["cpu0", "cpu1"] == 16
    assert len(found) == 4 * 5 + 1 + 1 + 5
    # each CPU's GPUs receive four shards over 16 GB/s and two cables of the fabric, five NICs at 31.5
    assert connected(net.topology("pod"))


def test_one_switch_needs_no_cpu() -> None:
    machine = Machine([Device(f"GPU{i}", 0, 0, 0) for i in range(4)], lambda a, b: 0)
    net = network(matrix(machine), Figures())
    assert net.switches == ("pcie0",)
    assert bound(net) == Fraction("31.5") * 4 / 3


def test_host_bridges_are_one_cpu() -> None:
    text = matrix(pairs(3, {})).replace("NODE", "PHB")
    assert network(text).switches == ("cpu0",)


def test_numa_nodes_name_the_cpus() -> None:
    devices = [Device(f"GPU{i}", (3, 1)[i], i, i) for i in range(2)] + [Device("NIC0", 7, 9, 9)]
    net = network(matrix(Machine(devices, lambda a, b: 4)), A100)
    assert [name for name in net.switches if name.startswith("cpu")] == ["cpu3", "cpu1", "cpu0"]


def test_affinity_places_gpus_behind_nvlinks() -> None:
    net = network(matrix(dgx1()), V100)
    assert [cable.a for cable in net.cables if cable.b == "cpu0"] == ["GPU0", "GPU1", "GPU2", "GPU3"]
    assert [name for name in net.switches if name.startswith("cpu")] == ["cpu0", "cpu1"]


def test_affinity_of_a_virtual_machine() -> None:
    """All GPUs are near the same CPUs, but the NIC is near one GPU alone."""
    devices = [Device("GPU0", 0, 0, 0), Device("GPU1", 1, 1, 1), Device("NIC0", 0, 2, 2)]
    text = matrix(Machine(devices, lambda a, b: 4)).replace("32-63\t1", "0-31\t0")
    net = network(text, A100)
    assert [cable.b for cable in net.cables if cable.a in ("GPU0", "GPU1")] == ["GPU1", "cpu0", "cpu1"]


def test_paths_behind_nvlinks() -> None:
    """`topo -mp` prints the distances that the numbers of NVLinks hide."""
    machine = dgx1()
    plain = matrix(Machine(machine.devices, lambda a, b: 0))
    net = network(matrix(machine) + plain, V100)
    assert same(net, network(plain + matrix(machine), V100))
    assert [cable.b for cable in net.cables if cable.a == "GPU0"][-1] == "pcie0"


def test_gpus_without_a_place_are_below_one_cpu() -> None:
    text = matrix(attrs.evolve(hgx(4, 4, 0), nvlinks=lambda a, b: 4 * ({a, b} != {0, 3})), affinity=False)
    net = network(text.replace("NODE", "N/A").replace("SYS", "PHB"), A100)
    assert [name for name in net.switches if name.startswith("cpu")] == ["cpu0"]


def test_generation_of_pcie_by_gpu() -> None:
    text = matrix(pairs(2, {}))
    speeds = {model: network(text, Figures(GPUS[model])).cables[0].bandwidth for model in GPUS}
    assert set(speeds.values()) == {15_750_000_000, 31_500_000_000, 63_000_000_000}
    assert (speeds["v100"], speeds["a100"], speeds["h100"]) == (15_750_000_000, 31_500_000_000, 63_000_000_000)
    [warning] = network(text, Figures()).warnings
    assert "PCIe 4.0 x16, since no GPU is named" in warning.message


# ---- NICs


def test_nics_can_be_left_out() -> None:
    net = network(matrix(hgx()), Figures(GPUS["h100"], Fraction(0)))
    assert net.switches == ("nvswitch",)
    assert any("left out the NICs mlx5_0" in note.text for note in net.notes)
    assert same(net, network(matrix(hgx(nics=0)), Figures(GPUS["h100"])))


def test_missing_figures_are_asked_for_together() -> None:
    found = refusal(matrix(hgx(), "blanks"), Figures())
    assert [one.code for one in found] == ["C0923", "C0923"]
    assert [(one.span.line, one.span.column) for one in found if one.span] == [(2, 17), (1, 73)]
    assert "--gpu h100" in str(found[0].hint) and "--nic 400Gbps" in str(found[1].hint)


# ---- faults


def test_gpu_without_nvlinks() -> None:
    machine = hgx(nics=0)
    text = matrix(attrs.evolve(machine, nvlinks=lambda a, b: 0 if 5 in (a, b) else 18))
    net = network(text)
    assert faults(net) == ["GPU5 has no NVLinks, its peers have some"]
    assert "nvswitch" in net.switches and connected(net.topology("pod"))
    assert ("GPU5", "nvswitch") not in links(net)


def test_gpu_with_fewer_nvlinks() -> None:
    net = network(matrix(attrs.evolve(hgx(nics=0), nvlinks=lambda a, b: 17 if 2 in (a, b) else 18)))
    assert faults(net) == ["GPU2 has 17 NVLinks, its peers have 18"]
    assert links(net)["GPU2", "nvswitch"] == 17 * 25


def test_unequal_gpus_of_a_part_of_a_switched_machine() -> None:
    some = {(a, b): 17 if a == 0 else 18 for a in range(4) for b in range(a + 1, 4)}
    net = network(matrix(pairs(4, some)))
    assert net.switches == ("nvswitch",)
    assert faults(net) == ["GPU0 has 17 NVLinks, its peers have 18"]


def test_pair_without_nvlinks_in_a_mesh() -> None:
    four = {(a, b): 4 for a in range(4) for b in range(a + 1, 4) if (a, b) != (1, 2)}
    net = network(matrix(pairs(4, four)), A100)
    assert faults(net) == ["GPU1 has 8 NVLinks, its peers have 12", "GPU2 has 8 NVLinks, its peers have 12"]


def test_inactive_and_slow_links() -> None:
    text = matrix(hgx(nics=0)) + nvlink_status(8, 18, "26.562", "NVIDIA H100", {3: (16, 17)})
    net = network(text.replace("Link 4: 26.562", "Link 4: 13.281", 1), Figures())
    assert faults(net) == [
        "GPU3 has 16 NVLinks, its peers have 18",
        "link 4 of GPU0 is slow: 13.281 GB/s, not 26.562 GB/s",
    ]
    assert links(net)["GPU3", "nvswitch"] == 16 * Fraction("26.562")


def test_asymmetric_matrix() -> None:
    text = matrix(pairs(3, {(0, 1): 4}), "blanks")
    lines = text.split("\n")
    lines[2] = lines[2].replace("NV4 ", "NV3 ")
    net = network("\n".join(lines), A100)
    assert faults(net)[0] == "GPU0 has NV4 to GPU1, and GPU1 has NV3 to GPU0; the network has NV3"
    assert links(net)["GPU0", "GPU1"] == 75
    [span] = [one.span for one in net.warnings if one.message == faults(net)[0]]
    assert span is not None and (span.line, span.column, span.end_column) == (3, 9, 12)


def test_the_longer_of_two_distances_counts() -> None:
    net = network("\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tSYS\tX\n")
    assert faults(net) == ["GPU0 has PIX to GPU1, and GPU1 has SYS to GPU0; the network has SYS"]
    assert [name for name in net.switches if name.startswith("cpu")] == ["cpu0", "cpu1"]


def test_nvlinks_in_one_direction_do_not_count() -> None:
    net = network("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tPHB\tX\n")
    assert faults(net) == ["GPU0 has NV4 to GPU1, and GPU1 has PHB to GPU0; the network has PHB"]
    assert net.switches == ("cpu0",)


def test_many_asymmetric_pairs_are_counted() -> None:
    names = [f"GPU{i}" for i in range(8)]
    rows = [[a, *("X" if i == j else "PIX" if i < j else "SYS" for j in range(8))] for i, a in enumerate(names)]
    net = network("\n".join("\t".join(row) for row in [["", *names], *rows]))
    assert len(faults(net)) == 9 and faults(net)[-1] == "20 more differing pairs"


def test_contradiction() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\tPIX\nGPU1\tPIX\tX\tSYS\nGPU2\tPIX\tSYS\tX\n"
    net = network(text)
    assert faults(net) == ["the matrix contradicts itself: GPU1 and GPU2 have SYS, but other cells imply PIX"]
    [span] = [one.span for one in net.warnings if one.code == "C0941"]
    assert span is not None and (span.line, span.column) == (3, 12)


def test_missing_row() -> None:
    text = matrix(hgx(4, 4, 2), "blanks").split("\n")
    without = [line for line in text if not line.startswith("NIC1")]
    net = network("\n".join(without), A100)
    assert faults(net) == ["the matrix has no row of NIC1, the network has what the columns say"]
    assert same(net, network("\n".join(text), A100))


def test_unknown_cell() -> None:
    net = network(matrix(hgx(4, 4, 2)).replace("PIX", "ERR!"), A100)
    assert faults(net)[0] == "the driver does not know what is between GPU0 and NIC0"


# ---- several captures


def two_machines() -> str:
    return f"n1$ nvidia-smi topo -m\n{matrix(hgx(8, 12, 0))}\nn2$ nvidia-smi topo -m\n{matrix(hgx(4, 4, 0))}"


def test_the_first_of_several_machines() -> None:
    net = network(two_machines(), A100)
    assert len(net.ranks) == 8
    [warning] = [one for one in net.warnings if one.code == "C0942"]
    assert warning.message == "found 2 matrices, read the one in line 2"
    assert warning.hint == "read another one: `--choose 2`"
    assert warning.span is not None and warning.span.line == 23


def test_choice_of_a_machine() -> None:
    chosen = network(two_machines(), attrs.evolve(A100, choice="2"))
    assert len(chosen.ranks) == 4
    assert not [one for one in chosen.warnings if one.code == "C0942"]
    [found] = refusal(two_machines(), attrs.evolve(A100, choice="n2"))
    assert found.message == "found 2 matrices, needed the number of one instead of `n2`"


def test_the_same_machine_twice() -> None:
    text = matrix(hgx())
    assert same(network(text + text), network(text))
    assert not [one for one in network(text + text).warnings if one.code == "C0942"]


def test_other_output_is_skipped() -> None:
    p2p = " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n\nLegend:\n  OK   = Status Ok\n"
    remote = "GPU 0: NVIDIA H100 PCIe (UUID: GPU-0)\n\t Link 0: Remote Device 00000000:D5:00.0: Link 0\n"
    text = matrix(pairs(2, {(0, 1): 12}))
    assert same(network(p2p + text + remote), network(text))
    net = network("We bought a box.\n\n" + text)
    assert [(one.code, one.message) for one in net.warnings] == [("C0942", "ignored 1 line beside the matrix")]


# ---- refusals


@pytest.mark.parametrize(
    ("change", "message", "place"),
    [
        (("NV18", "NVX", 1), "found `NVX` in the row of GPU0, needed X, NV#, PIX, PXB, PHB, NODE or SYS", (2, 17, 20)),
        ((" X  ", "NV18", 1), "found `NV18` between GPU0 and itself, needed X", (2, 9, 13)),
        (("NV18", "X   ", 1), "found `X` between GPU0 and GPU1, needed NV#, PIX, PXB, PHB, NODE or SYS", (2, 17, 18)),
        (("NV18", "OK  ", 1), "found `OK` in the row of GPU0, needed X, NV#, PIX, PXB, PHB, NODE or SYS", (2, 17, 19)),
        (("GPU1    NV18", "GPU0    NV18", 1), "found the row of GPU0 twice", (3, 1, 5)),
    ],
)  # fmt: skip
def test_wrong_cells(change: tuple[str, str, int], message: str, place: tuple[int, int, int]) -> None:
    text = matrix(hgx(nics=0), "blanks")
    first = refusal(text.replace(*change))[0]
    assert (first.code, first.message) == ("C0924", message)
    assert first.span is not None and (first.span.line, first.span.column, first.span.end_column) == place


def test_text_cut_off() -> None:
    text = matrix(hgx(nics=0), "blanks")
    short = refusal(text[: text.index("\nGPU7") + 24])[0]
    assert short.message == "found 2 cells in the row of GPU7, needed 8"
    assert short.span is not None and (short.span.line, short.span.column) == (9, 17)
    rows = refusal(text[: text.index("\nGPU5") + 1])[0]
    assert rows.message == "found no rows of GPU5, GPU6 and GPU7"
    assert rows.span is not None and (rows.span.line, rows.span.column) == (1, 49)


def test_rows_without_the_header() -> None:
    [found] = refusal(matrix(hgx(nics=0)).partition("\n")[2])
    assert found.message == "found the row of GPU0, needed the header of the matrix before it"
    assert found.span is not None and (found.span.line, found.span.column) == (1, 1)


def test_status_alone() -> None:
    [found] = refusal(nvlink_status(2, 4, "14.062", "NVIDIA RTX A6000"))
    assert found.code == "C0960"


def test_wrong_model() -> None:
    [found] = refusal(matrix(hgx(nics=0), "blanks"), V100)
    assert found.code == "C0961"
    assert found.message == "GPU0 and GPU1 have 18 NVLinks, and so do 27 more pairs, the v100 has 6"
    assert found.span is not None and (found.span.line, found.span.column) == (2, 17)


def test_speed_that_is_none() -> None:
    text = matrix(hgx(nics=0)) + nvlink_status(8, 18, "26.562", "H100").replace("26.562 GB/s", "2655 KB/s", 1)
    [found] = refusal(text, Figures())
    assert found.message == "found `2655 KB/s`, needed a speed in GB/s or <inactive>"


@pytest.mark.parametrize("text", ["", "\n", "GPU0", "\x1b[4m", "GPU0\tGPU1\n", "GPU0 X\n", "\ufeff", "é" * 50])
def test_no_matrix(text: str) -> None:
    [found] = refusal(text)
    assert found.code == "C0924"


def test_node_limit() -> None:
    [found] = refusal(matrix(hgx(nics=0)), attrs.evolve(H100, node_limit=8))
    assert (found.code, found.message) == ("C0933", "found 9 nodes, the limit is 8")


@pytest.mark.slow
def test_limits() -> None:
    names = [f"GPU{i}" for i in range(600)]
    [found] = refusal("\t".join(["", *names]) + "\nGPU0\t" + "\t".join(["X", *["PIX"] * 599]))
    assert found.code == "C0933"
    begin = time.monotonic()
    names = [f"GPU{i}" for i in range(200)]
    rows = [[a, *("X" if i == j else ("PIX", "SYS")[(i * j) % 2] for j in range(200))] for i, a in enumerate(names)]
    network("\n".join("\t".join(row) for row in [["", *names], *rows]))
    for text in ("GPU0 " * 20_000, "GPU0\n" * 20_000, "GPU0 X " * 10_000, "GPU0 GPU1\nGPU0 X NV1\n" * 10_000):
        survives(network, [text], 1)
    for text in ("a\n" * 60_000, "a " * 300_000):
        assert refusal(text + matrix(hgx()))[0].code == "C0963"
    assert time.monotonic() - begin < 60


# ---- what comes out


@pytest.mark.parametrize("machine", [hgx(), hgx(4, 4, 4, "NODE"), hgx(16, 6, 20, "PXB"), hgx(nics=0)])
def test_the_written_file_is_the_same(machine: Machine) -> None:
    net = network(matrix(machine), A100 if machine.nvlinks(0, 1) == 4 else V100 if machine.gpus == 16 else H100)
    assert connected(same_after_writing(net))


@pytest.mark.parametrize("machine", [hgx(4, 4, 4, "PIX"), hgx(8, 18, 8), dgx1(4)])
def test_forest(machine: Machine) -> None:
    """collc executes every schedule that it writes."""
    net = network(matrix(machine), V100 if machine.nvlinks(0, 1) == 1 else H100 if machine.gpus == 8 else A100)
    text = topology_text(net, "pod") + "collective c = allgather on pod { size: 1 GB };\nschedule c using forest;\n"
    result = collc.compile_source(text)
    assert result.cost.time_per_byte_bound > 0


MUTATED = (
    matrix(hgx()), matrix(hgx(4, 4, 2, "PXB"), "blanks"), matrix(dgx1(2)),
    matrix(hgx(2, 18, 0)) + nvlink_status(2, 18, "26.562", "NVIDIA H100 80GB HBM3", {1: (3,)}),
    MANGLED["wrapped by a terminal"](matrix(hgx(8, 12, 4), "blanks")), MANGLED["bars"](matrix(hgx(2, 4, 2))),
    matrix(dgx1(1), "blanks", affinity=False), two_machines(),
)  # fmt: skip


@pytest.mark.parametrize("figures", [H100, Figures()], ids=["figures", "none"])
def test_mutations(figures: Figures) -> None:
    def run(text: str) -> None:
        network(text, figures).topology("pod")

    begin = time.monotonic()
    accepted = survives(run, MUTATED, cases())
    assert figures is not H100 or accepted > 0
    assert time.monotonic() - begin < 2 * cases()


def test_sniffing_is_not_greedy() -> None:
    others: list[Callable[[], str]] = [lambda: "SwitchName=s0 Nodes=n[1-4]\n", lambda: "graph { GPU0 -- GPU1 }"]
    assert all(sniff(other()) != "nvidia-smi" for other in others)
    with pytest.raises(CollcError, match="C0921"):
        imported("GPU0 is the first of eight GPUs.\n")
