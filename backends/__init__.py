"""Program -> files, or Program -> a run.

Enters: a verified Program (or Schedule, for targets that describe one). Leaves: text artifacts. The driver reads them
back and executes them before it reports success. A backend imports only :mod:`collc.ir`. The list of targets imports
none of them.
"""

from __future__ import annotations

from collc.ir.registry import Registry

__all__ = ["TARGETS"]

#: name -> (module, class, one-line summary)
TARGETS: Registry[tuple[str, str, str]] = Registry("target", ("targets",), {
    "msccl-xml": (
        "collc.backends.msccl_xml", "MscclXml", "MSCCL-XML for GPU runtimes: msccl, executor (NCCL), rccl",
    ),
    "mpi-c": ("collc.backends.mpi_c", "MpiC", "one C99 file and header over nonblocking MPI point-to-point"),
    "oneccl-xml": (
        "collc.backends.oneccl_xml", "OneCclXml", "oneCCL-XML: threads of steps for CPU ranks over oneCCL",
    ),
    "mscclpp-json": (
        "collc.backends.mscclpp_json", "MscclppJson", "execution plans of MSCCL++ for NVIDIA and AMD GPUs",
    ),
    "nccl-graph": (
        "collc.backends.nccl_graph", "NcclGraph",
        "graph files with the rings of a schedule, for stock NCCL (NCCL_GRAPH_FILE)",
    ),
    "nccl-tuner": (
        "collc.backends.nccl_tuner", "NcclTuner",
        "table of NCCL's tuner plugins: which of NCCL's own algorithms at which size",
    ),
    "nccl-topo": (
        "collc.backends.nccl_topo", "NcclTopo",
        "topology file of NCCL for virtual machines: CPUs and PCIe switches",
    ),
    "report": (
        "collc.backends.report", "HtmlReport", "one HTML page to look at: times, network, schedule, bounds, checks",
    ),
    "svg": (
        "collc.backends.svg", "Svg", "pictures: network with loads, trees, matrix of loads, goodput with the bound",
    ),
    "dot": ("collc.backends.graphviz", "Dot", "the network with loads, and the trees, as graphs for Graphviz"),
    "chakra": (
        "collc.backends.chakra", "Chakra", "execution traces of MLCommons Chakra, a file a rank, for ASTRA-sim",
    ),
    "ir": ("collc.backends.ir_text", "IrText", "the textual IR of the final level"),
})  # fmt: skip
