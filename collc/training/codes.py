"""Explanations of the codes of workloads, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0990": """a file that is no workload

A value of the workload is missing, has another type, or has a unit that collc does not know. A key may be misspelt.

    {"workload": "two", "layers": [{"name": "a", "gradient": "98 MB", "forward": 40}]}

Write times with their unit (`"forward": "40 us"`). docs/train.md lists the keys. `collc train --list` names workloads
that come with collc; their files are examples.""",
    "C0991": """a topology that has another number of ranks than the workload

    collc train switch-base-256 --on 'torus(8, 8)'

The workload says for how many ranks its sizes and times hold (`ranks`). collc prints the times, and warns: on another
number of ranks each has other data. Choose a topology of that size, or write a workload for yours.""",
    "C0992": """a mix of collectives that cannot be read

    collc find -n 64 -d 4 --workload 'allreduce 64 x 0.7'

Write collectives with their size and weight, separated by commas: `allreduce 64 MiB x 0.7, alltoall 4 MiB x 0.3`. The
collectives are allreduce, allgather, reduce-scatter and alltoall. Weights are more than 0; without one it is 1.""",
    "C0993": """a workload that cannot be found

    collc train gpt2 --on 'torus(4, 4)'

The argument is a JSON file, or a name that `collc train --list` prints.""",
}
