"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0770": """\
NCCL has one algorithm there, so there is nothing to choose

A tuner table chooses among NCCL's own algorithms: rings, double binary tree, PAT and NVLS. The tree is for allreduce on
several machines, PAT for allgather and reduce-scatter with one GPU a machine. Broadcast and reduce have rings only, and
so have allgather and reduce-scatter on boxes of several GPUs. NCCL chooses that algorithm without a table. Times that
you measured may have any algorithm of NCCL: `-t 'nccl-tuner{measured=times.csv}'`.
""",
    "C0771": """\
the number of machines is unknown, or does not fit the network

NCCL's algorithms depend on the number of machines. `dgx_a100(4)` shows its boxes; a network without boxes may be one
machine, or as many as it has ranks. Say which:

    -t 'nccl-tuner{nodes=1}'     # one machine
    -t 'nccl-tuner{nodes=16}'    # 16 machines of one GPU
""",
    "C0772": """\
NVLS does not apply to this network

NVLS adds and copies in an NVSwitch. The model needs one switch with one link from and to every rank, all of equal
bandwidth, such as `dgx_h100(1)`, and `nodes=1`. A100 have no NVLS though they have an NVSwitch, so NVLS is an option.
""",
    "C0773": """\
a file of measured times has none for this collective and network

`collc calibrate --nccl-tests LOG -o times.csv` fits a line to each algorithm in the logs. The file also has the
collective, the number of ranks and the number of machines. A table for another number of ranks needs other logs.
""",
    "C0774": """\
an option of the target `nccl-tuner`, or a name of NCCL, is wrong

The example plugin takes an unknown collective for allreduce, an unknown algorithm for ring and an unknown protocol for
simple, without a message. So collc writes only names that NCCL has, and only pairs that it has: PAT, NVLS and CollNet
have no protocol but simple. The CSV of the example plugin works from NCCL 2.28 on.
""",
    "C0775": """\
the model has no times of an algorithm that NCCL has there

NCCL makes rings on any network. The baselines of collc know rings on tori, complete graphs, boxes and other networks
with a known ring. A table without one of NCCL's algorithms would choose wrong, so collc writes none. Measured times
need no model: `-t 'nccl-tuner{measured=times.csv}'`.
""",
}
