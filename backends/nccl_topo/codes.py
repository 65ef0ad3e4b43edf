"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0790": """\
a topology file for NCCL needs what the network does not say

NCCL finds GPUs and NICs by their PCI bus ids. A topology file for a virtual machine needs these ids, the NUMA node of
each GPU, and the make of the CPUs. Networks of the language have none of them. `lspci`, `nvidia-smi topo -m` and
`lscpu` in the machine print them. Without the make, NCCL refuses CPUs that it does not detect itself.

    collc pod.coll -t 'nccl-topo{gpu-ids="0001:00:00.0 0002:00:00.0", numa="0 0", cpu=amd}'
""",
    "C0791": """\
an option of the target `nccl-topo` does not fit the network

`gpu-ids`, `nic-ids` and `numa` are lists separated by blanks or commas. `gpu-ids` and `numa` have an entry for each GPU
of one machine, in the order of the ranks. `nic-ids` has an entry for each NIC. A bus id looks like `0000:17:00.0`, and
no two devices have the same one.

    -t 'nccl-topo{gpu-ids="0001:00:00.0", numa="0 1"}'     # C0791: one GPU, two NUMA nodes
""",
}
