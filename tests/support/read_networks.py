"""Readers of the texts that `collc topologies --as` writes, by the rules of the programs that take them."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod

import networkx

from collc.ir.topology import LinkClass, Topology

__all__ = ["Link", "astra_links", "cabled_links", "links", "nccl_links", "read_dot", "read_graphml", "read_nodelink"]

Link = tuple[object, object, Fraction, Fraction]


def links(topology: Topology) -> list[tuple[int, int, Fraction, Fraction]]:
    """Return the links in order: ends, bandwidth, latency."""
    ends = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    return [(a, b, topology.bandwidth(k), topology.latency(k)) for k, (a, b) in enumerate(ends)]


def read_nodelink(text: str) -> Topology:
    return Topology.from_networkx(networkx.node_link_graph(json.loads(text)))


def read_graphml(text: str) -> Topology:
    stream = io.BytesIO(text.encode())
    return Topology.from_networkx(networkx.read_graphml(stream, edge_key_type=int, force_multigraph=True))


_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_ATTRIBUTE = re.compile(rf"(\w+)=(?:{_QUOTED}|(\w+))")


def _attributes(text: str) -> dict[str, str]:
    return {m[1]: re.sub(r"\\(.)", r"\1", m[2]) if m[3] is None else m[3] for m in _ATTRIBUTE.finditer(text)}


def read_dot(text: str) -> Topology:
    """Return the topology of a digraph; an edge with ``dir=both`` is two links, the one along it first."""
    head, *lines = text.rstrip("\n").split("\n")
    title = re.fullmatch(rf"digraph {_QUOTED} \{{", head)
    assert title is not None and lines.pop() == "}"
    about: dict[str, str] = {}
    nodes: list[dict[str, str]] = []
    rows: list[tuple[int, int, LinkClass]] = []
    for line in lines:
        edge = re.fullmatch(r"  (\d+) -> (\d+) \[(.*)\];", line)
        node = re.fullmatch(r"  (\d+) \[(.*)\];", line)
        if edge is not None:
            found = _attributes(edge[3])
            kind = LinkClass(Fraction(found["bandwidth"]), Fraction(found["latency"]))
            rows.append((int(edge[1]), int(edge[2]), kind))
            if found.get("dir") == "both":
                rows.append((int(edge[2]), int(edge[1]), kind))
        elif node is not None:
            assert int(node[1]) == len(nodes)
            nodes.append(_attributes(node[2]))
        else:
            found_graph = re.fullmatch(r"  graph \[(.*)\];", line)
            assert found_graph is not None, line
            about = _attributes(found_graph[1])
    ranks = sum(node["kind"] == "rank" for node in nodes)
    graph = Topology.from_links(
        re.sub(r"\\(.)", r"\1", title[1]), ranks, rows, len(nodes) - ranks, unit=about["unit"],
        node_names=[node["label"] for node in nodes],
    ).to_networkx()  # fmt: skip
    graph.graph.update({name: about[name] for name in ("gamma", "epsilon") if name in about})
    return Topology.from_networkx(graph)


# ---- ASTRA-sim


def astra_links(text: str) -> Counter[Link]:
    """Return the links of an analytical network; a switch is the set of its ranks."""
    found = dict(re.findall(r"^(\w+): \[ (.*) \]", text, re.MULTILINE))
    kinds = found["topology"].split(", ")
    sizes = [int(size) for size in found["npus_count"].split(", ")]
    rates = [Fraction(rate) * 10**9 for rate in found["bandwidth"].split(", ")]
    latencies = [Fraction(latency) / 10**9 for latency in found["latency"].split(", ")]
    return Counter(_astra(kinds, sizes, rates, latencies))


def _astra(kinds: list[str], sizes: list[int], rates: list[Fraction], latencies: list[Fraction]) -> Iterator[Link]:
    strides = [prod(sizes[:k]) for k in range(len(sizes))]
    for at in product(*map(range, sizes)):
        rank = sum(x * s for x, s in zip(at, strides, strict=True))
        for k, (kind, size, stride) in enumerate(zip(kinds, sizes, strides, strict=True)):
            line = [rank + stride * (x - at[k]) for x in range(size)]
            if kind == "Switch":
                yield rank, frozenset(line), rates[k], latencies[k]
                yield frozenset(line), rank, rates[k], latencies[k]
                continue
            near = {(at[k] + 1) % size, (at[k] - 1) % size} if kind == "Ring" else set(range(size)) - {at[k]}
            for x in near:
                yield rank, line[x], rates[k], latencies[k]


# ---- cables


def cabled_links(text: str) -> Counter[Link]:
    """Return the links that the cables of a list make; fail if a port has two cables or a number is left out."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["cable"] for row in rows] == [str(number) for number in range(len(rows))]
    found: Counter[Link] = Counter()
    sends: set[tuple[str, int]] = set()
    receives: set[tuple[str, int]] = set()

    def connect(node: str, port: str, peer: str, peer_port: str, row: dict[str, str]) -> None:
        start, end = (node, int(port)), (peer, int(peer_port))
        assert start not in sends, f"port {start} sends into two cables"
        assert end not in receives, f"port {end} receives from two cables"
        sends.add(start)
        receives.add(end)
        found[node, peer, Fraction(row["bandwidth"]), Fraction(row["latency_s"])] += 1

    for row in rows:
        start, end = (row["node"], row["port"]), (row["peer"], row["peer_port"])
        assert row["direction"] in ("->", "<->", "loop")
        assert (row["direction"] == "loop") == (row["node"] == row["peer"]) == (start == end)
        connect(*start, *end, row)
        if row["direction"] == "<->":
            connect(*end, *start, row)
    for used in (sends, receives):
        numbers = Counter(node for node, _ in used)
        assert all(port < numbers[node] for node, port in used), "a number is left out"
    return found


# ---- NCCL

_CODES = {"2.5": 15, "5": 30, "8": 60, "16": 120, "32": 240, "64": 480}
_NVLINK = {"60": Fraction(18), "80": Fraction(20), "86": Fraction(12), "90": Fraction("20.6"), "100": Fraction("40.1")}
_XGMI = {"gfx942": 48, "gfx90a": 36, "gfx908": 24}


def nccl_links(text: str) -> dict[tuple[str, str], tuple[Fraction, Fraction]]:
    """Return GB/s and latency of the links that NCCL makes of a topology file, by the names of their ends.

    GPUs are called ``gpuI`` by their numbers, NICs by their names, CPUs ``cpuN``, PCIe switches by their bus ids.
    """
    root = ElementTree.fromstring(text)
    found: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    ids = {pci.get("busid"): f"gpu{gpu.get('dev')}" for pci in root.iter("pci") for gpu in pci.findall("gpu")}
    for cpu in root:
        _nccl_below(cpu, f"cpu{cpu.get('numaid')}", ids, found)
    cpus = [f"cpu{cpu.get('numaid')}" for cpu in root]
    rate = {"AuthenticAMD": 16}.get(root[0].get("vendor") or "", 0)
    found |= {(a, b): (Fraction(rate), Fraction(0)) for a in cpus for b in cpus if a != b}
    return found


def _nccl_below(
    parent: ElementTree.Element, name: str, ids: dict[str | None, str],
    found: dict[tuple[str, str], tuple[Fraction, Fraction]],
) -> None:  # fmt: skip
    for net in parent.findall("nic/net"):  # without a PCIe link of its own
        _port(name, net, Fraction(net.get("speed") or 0) / 8000, found)
    for pci in parent.findall("pci"):
        nets, gpu = pci.findall("nic/net"), pci.find("gpu")
        rate = None
        if pci.get("link_speed"):
            code = _CODES[(pci.get("link_speed") or "").split()[0]]
            rate = Fraction(int(pci.get("link_width") or 16) * code, 80)
        if len(nets) == 1 and (pci.get("class") or "").startswith("0x02"):
            _port(name, nets[0], rate, found)
            continue
        own = (pci.get("busid") or "") if gpu is None else ids[pci.get("busid")]
        if rate is not None:
            found[name, own] = found[own, name] = rate, Fraction(0)
        for link in [] if gpu is None else list(gpu):
            each = _NVLINK[gpu.get("sm") or ""] if link.tag == "nvlink" else _XGMI[gpu.get("gcn") or ""]
            other = "nvswitch" if (link.get("tclass") or "").startswith("0x0680") else ids[link.get("target")]
            total = Fraction(int(link.get("count") or 1) * each)
            found[own, other] = total, Fraction(0)
            if other == "nvswitch":
                found[other, own] = total, Fraction(0)
        _nccl_below(pci, own, ids, found)


def _port(
    above: str, net: ElementTree.Element, rate: Fraction | None, found: dict[tuple[str, str], tuple[Fraction, Fraction]]
) -> None:
    own, speed = net.get("name") or "", Fraction(net.get("speed") or 0) / 8000
    latency = Fraction(net.get("latency") or 0) / 10**6
    found[own, "fabric"] = found["fabric", own] = speed, latency
    if rate is not None:
        found[above, own] = found[own, above] = rate, Fraction(0)
