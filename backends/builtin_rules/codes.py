"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0740": """\
a library's own algorithms leave no choice

`collc env FILE.coll --library NAME` chooses among the library's own algorithms. The cost model must have at least two
of them for the collective, the number of ranks and the root. The notes name the reason for each collective. The library
decides such calls itself. `collc launch` runs compiled schedules instead, on any network.
""",
    "C0741": """\
two collectives are for the same calls of a library

A library chooses by the function, the number of ranks and the size of a call. It cannot tell two collectives of one
kind on one number of ranks apart, on different networks for instance. Name one of them:

    collc env pods.coll --library ucc --collective sums
""",
    "C0742": """\
NCCL_ALGO names one algorithm for all sizes

The variable has no sizes. So collc writes it for a collective with a `size` in the file, or if one algorithm is the
fastest at every size. A table of NCCL's tuner plugin chooses by size:

    collc compile net.coll -t nccl-tuner -o table.csv
    collc env table.csv
""",
}
