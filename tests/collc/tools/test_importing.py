"""Imports as a library: the API's arguments, files that complete each other, joining, and what is read back."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from places import CASES

import collc
from collc.frontends.importing.figures import GPUS
from collc.ir.diagnostic import Source, Span, error
from collc.tools.importing import Request, figures_of, import_texts
from collc.tools.joining import _as_options

FOLDER = CASES / "import"
MACHINE = ("nvidia.txt", "nvlink.txt")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in FOLDER.iterdir():
        if path.suffix not in (".coll", ".expect"):
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)


def refused(*paths: str, **more: Any) -> list[str]:
    with pytest.raises(collc.CollcError) as caught:
        collc.import_topology(paths, **more)
    return [found.code for found in caught.value.diagnostics]


def test_a_path_or_several() -> None:
    one = collc.import_topology("graph.dot").topology
    assert one == collc.import_topology(Path("graph.dot")).topology == collc.import_topology(["graph.dot"]).topology
    assert one.name == "graph" and one.names == ("gpu0", "gpu1", "gpu2", "gpu3", "sw")


def test_rates_are_texts_or_bytes_per_second(caplog: pytest.LogCaptureFixture) -> None:
    given: Sequence[dict[str, Any]] = [
        {"gpu": "a100", "nic": "200Gbps"}, {"gpu": "A100", "nic": 25 * 10**9},
        {"gpu": "a100", "nic": Fraction(25 * 10**9)},
        {"gpu": "a100", "gpu_link": "25GB/s", "nic": 25e9},
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING, logger="collc"):
        found = [collc.import_topology("nvidia.txt", **one) for one in given]
    assert all(one.topology == found[0].topology for one in found)
    assert [one.code for one in found[0].diagnostics] == ["C0940", "C0940"]
    assert len(caplog.records) == 8 and "assumed 31.5 GB/s" in caplog.text
    bare = collc.import_topology("nvidia.txt", gpu="a100", nic="none").topology
    assert bare.num_switches < found[0].topology.num_switches


def test_tiers_sizes_choices_and_formats() -> None:
    tree = collc.import_topology("topology.yaml", choose="tree", tiers={"leaf": "1GB/s", "spine": 10**9}).topology
    assert tree.num_ranks == 4 and {tree.bandwidth(i) for i in range(tree.num_links)} == {Fraction(10**9)}
    halves = [collc.import_topology("taccl.json", size=size).topology for size in ("1MB", 10**6, "2MB")]
    assert halves[0] == halves[1] != halves[2]
    assert collc.import_topology("graph.json", format="nodelink", name="a b").name == "a_b"


def test_machines_on_a_fabric() -> None:
    found = collc.import_topology("node.xml", fabric=["rail0.txt", "rail1.txt"], hosts="n[000-001]")
    assert found.name == "pod" and list(found.topologies) == ["node", "fabric", "pod"]
    assert found.topology.names[:5] == ("n000/gpu0", "n000/gpu1", "n001/gpu0", "n001/gpu1", "n002")
    both = collc.import_topology(["tiny.json", "quad.dot"], fabric="rail0.txt", hosts=["n000", "n001"], nics="nic*")
    assert both.topology.num_ranks == 2 + 4 + 2 and [one.code for one in both.diagnostics] == ["C0955"] * 2 + ["C0956"]
    found.write("pod.coll")
    assert Path("pod.coll").read_text() == found.text
    assert collc.check("pod.coll") == ()


def test_wrong_arguments() -> None:
    assert refused() == ["C0001"]
    assert refused("node.xml", hosts="n1") == refused("node.xml", nics="*") == ["C0001"]
    assert refused("nvidia.txt", gpu="h10") == ["C0925"]
    assert refused("nvidia.txt", nic=-1) == refused("nvidia.txt", nic="fast") == ["C0020"]
    assert refused("nvidia.txt", node_limit=-1) == ["C0030"]
    assert refused("no.txt") == ["C0002"] and refused("node.xml", format="nccl") == ["C0922"]


def test_mistakes_of_all_files_are_reported() -> None:
    assert refused("bad.dot", "bad_node.xml") == ["C0924"] * 3
    assert refused("bad.dot", fabric="bad.conf") == ["C0924"] * 3


@pytest.mark.parametrize("order", [MACHINE, MACHINE[::-1]])
def test_files_of_one_network_come_in_any_order(order: Sequence[str]) -> None:
    found = collc.import_topology(order, nic="200Gbps")
    assert len(found.networks) == 1 and found.networks[0].files == tuple(order)
    assert found.topology.node_names == collc.import_topology(MACHINE, nic="200Gbps").topology.node_names
    several = collc.import_topology([*order, "node.xml"], nic="200Gbps")
    assert [one.files for one in several.networks] == [tuple(order), ("node.xml",)]


def test_subnets_are_one_fabric_and_machines_are_not() -> None:
    rails = collc.import_topology(["rail0.txt", "rail1.txt"])
    assert len(rails.networks) == 1 and rails.topology.num_links == 32
    machines = collc.import_topology(["node.xml", "faulty.xml"])
    assert [one.files for one in machines.networks] == [("node.xml",), ("faulty.xml",)]
    assert machines.name == machines.networks[0].name == "node"


def test_parts_of_a_fabric_are_of_one_format() -> None:
    assert refused("node.xml", fabric=["rail0.txt", "topology.conf"]) == ["C0970"]
    assert refused("node.xml", fabric="hwloc.xml") == refused("fabric.txt", fabric="rail0.txt") == ["C0934"]
    assert refused("node.xml", "hwloc.xml", fabric="rail0.txt") == ["C0935"]


def test_a_network_without_links_is_read_back() -> None:
    """The language sees no unit where there is no bandwidth."""
    Path("one.txt").write_text("     GPU0\nGPU0  X\n")
    assert collc.import_topology("one.txt", gpu="a100").topology.num_links == 0


def test_a_link_of_the_user_replaces_that_of_the_model() -> None:
    assert figures_of("h100", Fraction(1)).gpu == type(GPUS["h100"])("h100", Fraction(1), 18, "given as --gpu-link")


def test_hints_of_the_language_become_options() -> None:
    hint = "choose NICs with `nic: PATTERN`, such as `nic: mlx5_*`"
    assert _as_options(hint) == "choose NICs with `--nics PATTERN`, such as `--nics 'mlx5_*'`"


def test_a_text_beyond_the_language_is_refused_without_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its places would be those of a file that nobody sees."""

    def load(path: str, **more: object) -> None:
        raise error("C0119", f"`{path}` is longer than 10 MiB", span=Span(Source(path, "x"), 1, 1, 1, 2))

    monkeypatch.setattr("collc.frontends.coll.load", load)
    source = Source("rack.conf", "SwitchName=leaf Nodes=n[1-9]")
    with pytest.raises(collc.CollcError) as caught:
        import_texts(Request((source,), "rack", figures_of(tiers={"leaf": Fraction(10**9)})))
    assert str(caught.value) == "error: `rack.coll` is longer than 10 MiB [C0119]"
