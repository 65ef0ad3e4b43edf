"""The paragraphs that ``collc explain`` prints for the codes of this room."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0690": """\
no plan for MSCCL++

A plan is a JSON object with the keys `name`, `collective`, `inplace` and `gpus`, which lists the ranks. The file, or
every `.json` file of the folder, is something else, is cut, or cannot be read. Plans that are loaded together are in
one folder.

    collc pod.coll -t mscclpp-json -o plans/
    collc env plans/
""",
    "C0691": """\
MSCCL++ cannot register plans

`collc.mscclpp.register` needs the Python package `mscclpp`, version 0.9 or later, with `mscclpp.ext`. It is not
installed, or it is older and lacks the name that the message states. Install the package that belongs to the library
`libmscclpp_nccl.so` of the job.
""",
    "C0692": """\
plans for other ranks than those of the job

MSCCL++ takes a plan only if the number of ranks and the number of ranks of a node are those of the job. The message
says which number differs. A rank of a plan reaches the memory of the ranks that the plan joins by memory channels: they
must be on one node.

    collc.mscclpp.register("plans/", ranks_per_node=8)

If the call does not give the rank and the ranks of a node, the launcher's variables do: `RANK` and `LOCAL_WORLD_SIZE`
of torchrun, or those of MPICH, Open MPI and Slurm.
""",
}
