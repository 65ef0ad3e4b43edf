"""Reading large files of every format that is imported: seconds of the processor.

    python benchmarks/importers.py [--hosts 1000] [FORMAT ..]

Prints for each format the size of a text, the seconds of the processor for reading it and for its topology, and the
size of the network. A format without a reader or without a large text here is left out. The aim for ibnetdiscover is
2 s for 1,000 hosts with 8 adapters each, in three tiers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from collc.frontends.importing import read
from collc.frontends.importing.figures import Figures, gigabits, gpu_named
from collc.ir.diagnostic import Source

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

ADAPTERS = 8
PORTS = 32  # of a switch, down and up

Peer = tuple[str, str, int]


def ibnetdiscover(hosts: int) -> str:
    """Return the text for hosts of 8 adapters: a leaf for each rail of 32 hosts, 8 spines for these, 128 cores."""
    ports = dict[str, list[tuple[int, str, int]]]()
    names = dict[str, str]()
    for a, i, b, j in _cables(hosts, names):
        ports.setdefault(a, []).append((i, b, j))
        ports.setdefault(b, []).append((j, a, i))
    switches = [guid for guid in names if guid[0] == "S"]
    blocks = [_block(guid, names, sorted(ports[guid])) for guid in [*switches, *(g for g in names if g[0] == "H")]]
    return "#\n# Topology file: generated on Thu Jan  1 00:00:00 2026\n#\n" + "".join(blocks)


def _cables(hosts: int, names: dict[str, str]) -> Iterator[tuple[str, int, str, int]]:
    def node(kind: str, level: int, number: int, name: str) -> str:
        guid = f"{kind}-{level + 1:04x}{number:012x}"
        names[guid] = name
        return guid

    cores = [node("S", 3, n, f"MF0;core{n}:MQM9700/U1") for n in range(128)]
    for group in range(-(-hosts // PORTS)):
        spines = [node("S", 2, 8 * group + n, f"MF0;spine{group}-{n}:MQM9700/U1") for n in range(8)]
        for n, spine in enumerate(spines):
            for up in range(PORTS):
                core = cores[16 * n + up // 2]
                yield spine, PORTS + 1 + up, core, 1 + 2 * group + up % 2
        for rail in range(ADAPTERS):
            leaf = node("S", 1, 8 * group + rail, f"MF0;leaf{group}-{rail}:MQM9700/U1")
            for up in range(PORTS):
                yield leaf, PORTS + 1 + up, spines[up // 4], 1 + 4 * rail + up % 4
            for down in range(min(PORTS, hosts - PORTS * group)):
                host = PORTS * group + down
                yield node("H", 0, ADAPTERS * host + rail, f"n{host:04} mlx5_{rail}"), 1, leaf, 1 + down


def _block(guid: str, names: dict[str, str], ports: list[tuple[int, str, int]]) -> str:
    number = guid[2:].lstrip("0")
    kind, tag = ("Switch", "switch") if guid[0] == "S" else ("Ca", "ca")
    tail = " enhanced port 0 lid 1 lmc 0" if guid[0] == "S" else ""
    lines = [f"\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x{number}\n{tag}guid=0x{number}\n"]
    lines.append(f'{kind}\t65 "{guid}"\t\t# "{names[guid]}"{tail}\n')
    for port, peer, back in ports:
        guids = f"({peer[2:].lstrip('0')}) " if peer[0] == "H" else ""
        here = f"({number}) " if guid[0] == "H" else ""
        lid = "lid 7 lmc 0 " if guid[0] == "H" else ""
        lines.append(f'[{port}]{here}\t"{peer}"[{back}]{guids}\t\t# {lid}"{names[peer]}" lid 9 4xNDR\n')
    return "".join(lines)


def slurm(hosts: int) -> str:
    """Return a tree of 10 hosts for each of 20 leaves below each spine."""
    leaves = -(-hosts // 10)
    lines = [f"SwitchName=leaf{n} Nodes=n[{10 * n}-{10 * n + 9}]" for n in range(leaves)]
    spines = -(-leaves // 20)
    lines += [f"SwitchName=s{n} Switches=leaf[{20 * n}-{min(20 * n + 19, leaves - 1)}]" for n in range(spines)]
    return "\n".join([*lines, f"SwitchName=core Switches=s[0-{spines - 1}]", ""])


def slurm_yaml(hosts: int) -> str:
    """Return blocks of 10 hosts as YAML."""
    blocks = "".join(f"    - block: b{n}\n      nodes: n[{10 * n}-{10 * n + 9}]\n" for n in range(-(-hosts // 10)))
    return f"- topology: t\n  block:\n    block_sizes: [10]\n    blocks:\n{blocks}"


def htsim(hosts: int) -> str:
    """Return two tiers with 16 ports in each direction at every switch below."""
    pod = -(-hosts // 16) * 16
    return (
        f"Nodes {pod}\nTiers 2\nPodsize {pod}\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 16\nRadix_Up 16\n"
        f"Downlink_Latency_ns 500\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down {pod // 16}\nDownlink_Latency_ns 500\n"
    )


def astra_sim(hosts: int) -> str:
    """Return a ring of full meshes of 8."""
    return f"topology: [FullyConnected, Ring]\nnpus_count: [8, {hosts}]\nbandwidth: [400, 50]\nlatency: [100, 500]\n"


def _edges(hosts: int) -> Iterator[tuple[str, str]]:
    """Yield 8 edges for each host, to switches of 32 hosts."""
    return ((f"n{host}", f"s{host // PORTS}-{rail}") for host in range(hosts) for rail in range(ADAPTERS))


def _switches(hosts: int) -> dict[str, None]:
    return dict.fromkeys(switch for _, switch in _edges(hosts)) | {"top": None}


def _all_edges(hosts: int) -> list[tuple[str, str]]:
    return [*_edges(hosts), *((switch, "top") for switch in _switches(hosts) if switch != "top")]


def nodelink(hosts: int) -> str:
    """Return a graph of hosts with 8 edges each as JSON."""
    nodes = [{"id": f"n{host}"} for host in range(hosts)] + [{"id": s, "kind": "switch"} for s in _switches(hosts)]
    edges = [{"source": a, "target": b, "bw": 50} for a, b in _all_edges(hosts)]
    return json.dumps({"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges})


def graphml(hosts: int) -> str:
    """Return the same graph in GraphML."""
    switches = "".join(f'<node id="{s}"><data key="k">switch</data></node>\n' for s in _switches(hosts))
    nodes = "".join(f'<node id="n{host}"/>\n' for host in range(hosts))
    edges = "".join(f'<edge source="{a}" target="{b}"><data key="b">50</data></edge>\n' for a, b in _all_edges(hosts))
    keys = '<key id="k" for="node" attr.name="kind" attr.type="string"/><key id="b" for="edge" attr.name="bw" '
    return (
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}attr.type="double"/>\n'
        f'<graph edgedefault="undirected">\n{nodes}{switches}{edges}</graph></graphml>\n'
    )


def dot(hosts: int) -> str:
    """Return the same graph in Graphviz's language."""
    switches = "".join(f'  "{s}" [kind=switch];\n' for s in _switches(hosts))
    return f"graph g {{\n{switches}" + "".join(f'  "{a}" -- "{b}" [bw=50];\n' for a, b in _all_edges(hosts)) + "}\n"


def msccl_tools(hosts: int) -> str:
    """Return a full mesh of a quarter as many GPUs, at most 256, as a matrix."""
    count = min(hosts // 4, 256)
    links = [[int(a != b) for a in range(count)] for b in range(count)]
    return json.dumps({"msccl_type": "topology", "name": "mesh", "links": links, "switches": []})


def from_tests(module: str, write: Callable[[ModuleType], str]) -> Callable[[int], str]:
    """Return a writer of texts by the helpers of the tests; their size does not depend on the number of hosts."""

    def text(hosts: int) -> str:
        try:
            return write(import_module(module))
        except ModuleNotFoundError:
            raise NotImplementedError from None

    return text


#: label -> the format and the text for a number of hosts
TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "ibnetdiscover": ("ibnetdiscover", ibnetdiscover), "slurm": ("slurm", slurm),
    "slurm, YAML": ("slurm", slurm_yaml), "htsim": ("htsim", htsim), "astra-sim": ("astra-sim", astra_sim),
    "nodelink": ("nodelink", nodelink), "graphml": ("graphml", graphml), "dot": ("dot", dot),
    "msccl-tools": ("msccl-tools", msccl_tools),
    "nccl-topo, 64 GPUs": ("nccl-topo", from_tests("nccl_files", lambda of: str(of.full(64)))),
    "hwloc, 64 GPUs": ("hwloc", from_tests("hwloc_files", lambda of: str(of.switched_box(64, 2)))),
    "nvidia-smi, 64 GPUs": ("nvidia-smi", from_tests("smi_texts", lambda of: str(of.matrix(of.hgx(64, 18, 64))))),
    "rocm-smi, 64 GPUs": ("rocm-smi", from_tests("smi_texts", lambda of: str(of.rocm_tables(64, of.mesh())))),
    "amd-smi, 64 GPUs": ("amd-smi", from_tests("smi_texts", lambda of: str(of.amd_tables(64, of.mesh())))),
}  # fmt: skip


def measure(label: str, hosts: int) -> str:
    """Return a row of the table."""
    format, write = TEXTS[label]
    text = write(hosts)
    tiers = dict.fromkeys(("leaf", "spine", "core", "block", "fabric"), gigabits(400))
    gpu = gpu_named("mi300x" if format in ("rocm-smi", "amd-smi") else "h100")
    figures = Figures(gpu, gigabits(400), tiers, node_limit=10**7)
    began = time.process_time()
    network = read([Source("x", text)], figures, format)
    imported = time.process_time()
    topology = network.topology("x")
    ended = time.process_time()
    return (
        f"| {label} | {len(text) / 1e6:.2f} | {imported - began:.2f} | {ended - imported:.2f} | {len(network.ranks)} "
        f"| {len(network.switches)} | {topology.num_links} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    options = parser.parse_args()
    print("| format | text, MB | reading, s | topology, s | ranks | switches | links |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for label, (format, _) in TEXTS.items():
        if not options.formats or format in options.formats:
            try:
                print(measure(label, options.hosts), flush=True)
            except NotImplementedError:
                continue


if __name__ == "__main__":
    main()
