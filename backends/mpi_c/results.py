"""Reads the output of the driver: one row for each case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from collc.ir.collective import Collective
from collc.ir.diagnostic import error

from ..measured import Row, RunResult
from .scratch import is_whole
from .toolchain import Mpi

__all__ = ["DTYPES", "OPS", "Row", "RunResult", "counts_for", "parse", "vector_elements"]

#: element types of runs, and their bytes; ``strided`` is a derived type with gaps
DTYPES = {"int32": 4, "int64": 8, "float32": 4, "float64": 8, "strided": 8}
#: operations of runs; ``user`` is a user-defined one, and the only one of ``strided``
OPS = ("sum", "max", "min", "prod", "user")

_ROW = re.compile(
    r"collc-row name=(?P<name>\w+) count=(?P<count>\d+) dtype=(?P<dtype>\w+) op=(?P<op>\w+) "
    r"in_place=(?P<in_place>[01]) times=(?P<times>[\d.,]*) builtin=(?P<builtin>[\d.,]*) detail=(?P<detail>.*)"
)


def vector_elements(collective: Collective, count: int) -> int:
    """Return the elements of the whole vector (all shards together) in a call with ``count``.

    With a count for each shard, ``count`` is that of the whole vector; of an alltoall, of what one rank sends at most.
    """
    return count if is_whole(collective) else count * collective.num_members


def counts_for(collective: Collective, sizes: Iterable[int], dtype: str) -> list[int]:
    """Return the count arguments for vectors of these sizes (M, in bytes), rounded down.

    >>> counts_for(Collective("allgather", 4), [64], "float32"), counts_for(Collective("allreduce", 4), [64], "float32")
    ([4], [16])
    """
    unit = DTYPES[dtype] * vector_elements(collective, 1)
    return list(dict.fromkeys(size // unit for size in sizes))


def parse(output: str, mpi: Mpi, collectives: Mapping[str, Collective]) -> RunResult:
    """Return the driver's rows, with ``collectives`` by function name; raise C0706 if the output is incomplete."""
    rows = [_row(match, collectives) for match in map(_ROW.match, output.splitlines()) if match]
    end = re.search(r"^collc-end cases=(\d+)$", output, re.MULTILINE)
    if end is None or int(end[1]) != len(rows):
        raise error("C0706", f"the run's output ended early, after {len(rows)} cases")
    return RunResult(mpi, next(iter(collectives.values())).num_ranks, tuple(rows), "C0708")


def _row(match: re.Match[str], collectives: Mapping[str, Collective]) -> Row:
    collective, count = collectives[match["name"]], int(match["count"])
    times, builtin = (tuple(float(t) for t in match[g].split(",") if t) for g in ("times", "builtin"))
    return Row(
        name=match["name"], kind=collective.name, ranks=collective.num_members, count=count,
        bytes=vector_elements(collective, count) * DTYPES[match["dtype"]], dtype=match["dtype"], op=match["op"],
        in_place=match["in_place"] == "1", times=times, builtin_times=builtin, detail=match["detail"],
    )  # fmt: skip
