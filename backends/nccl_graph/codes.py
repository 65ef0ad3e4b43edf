"""The paragraphs that ``collc explain`` prints for the codes of the target ``nccl-graph``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0910": """\
a collective for which NCCL has no ring

NCCL executes allreduce, allgather, reduce-scatter, broadcast and reduce over rings. A graph file holds these rings, and
nothing of other collectives.

    collective c = alltoall on mi300x();
    emit c as nccl-graph;                              # C0910

Emit `msccl-xml`: it carries any collective.""",
    "C0911": """\
a schedule that NCCL's rings and chains cannot express

A graph file holds the rings of a node: paths through all its GPUs. NCCL joins them itself. On every channel, the last
GPU of a node sends to the first GPU of the next node. It has no trees inside a node but chains. It always joins nodes
by its own two binary trees.

    schedule c using forest;
    emit c as nccl-graph;                              # C0911: a GPU sends one part to two others

Refused are trees, rings that leave a node before they have passed all its GPUs, and rings that visit the nodes in
another order. `nccl-rings` schedules what NCCL can execute; `ring` and `ring { rings: nics }` often do so, too.""",
    "C0913": """\
a route that NCCL does not take

A graph file names GPUs in order, and two NICs for every channel. NCCL chooses the route between neighbouring GPUs. So a
schedule that sends data through a third GPU would not run as it was planned. The only GPU of a node sends and
receives by the NIC of its entry, although a file can name two.

    topology t = biring(4);
    schedule c using nccl-rings { node: 1 };
    emit c as nccl-graph { node: 1 };                  # C0913: every GPU receives by one NIC and sends by another""",
    "C0914": """\
a number of channels that a graph file cannot have

Channels carry equal shares of the data. A ring with more data than others is on several channels. NCCL doubles the
channels of a file, in arrays of 32 up to version 2.22 and of 64 from 2.25 on. More than half of that would overrun
them. collc takes the smaller limit for the versions between.

    emit c as nccl-graph { nccl: "2.18", channels: 24 };     # C0914: at most 16

`channels` is a multiple of the number of rings. Leave it out, and no channel carries more than 25 GB/s, if the
limit allows that.""",
    "C0915": """\
not a graph file

The text must be XML with the first element `graphs`. A channel has one NIC, and every element has the attributes that
NCCL needs. A graph needs `id`, `pattern`, `crossnic`, `nchannels`, `speedintra`, `speedinter`, `typeintra`, `typeinter`
and `samechannels`. A GPU or NIC needs `dev`.

    <graph id="0" pattern="4" nchannels="1">           <!-- C0915: crossnic is missing -->""",
    "C0916": """\
a wrong option of nccl-graph

`nccl` is a version from 2.18 to 2.30. It decides the number of channels, and how devices are written: decimal before
2.22, hexadecimal since. `ranks` needs 2.30, which reads a GPU's rank. `node` is a number of ranks.

    emit c as nccl-graph { nccl: "2.17" };             # C0916""",
}
