"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0780": """\
another program's form cannot hold this topology

`collc topologies .. --as FORM` and the target `nccl-topo` write a network so that the file says the same network. Some
forms hold less than a topology has. ASTRA-sim has rings, complete graphs and switches. NCCL has one box of GPUs, with
the bandwidths of its own table. The message names what the form lacks.

    collc topologies 'hypercube(3)' --as nccl-topo      # C0780: there is no machine with such links
    collc topologies 'hypercube(3)' --as nodelink       # any network
""",
    "C0781": """\
a topology file of NCCL would break a limit of its reader

NCCL reads a topology file with a reader of its own: at most 256 elements, values of less than 255 bytes, 16 attributes
of an element. A file beyond that fails the communicator, so collc does not write it. Write one file for one machine.
""",
}
