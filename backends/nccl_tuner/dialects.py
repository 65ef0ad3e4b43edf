"""Rows of a table in the dialects of two tuners."""

from __future__ import annotations

from collections.abc import Iterator

from collc.ir.diagnostic import error
from collc.ir.tuning import LARGEST, TunedRange, Tuning

from .names import COLLECTIVES, require_pair
from .plugins import ExamplePlugin, NcclxTuner, Tuner

__all__ = ["COLUMNS", "read_table", "rows_of"]

#: dialect -> the columns of a row
COLUMNS = {
    "example": "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff",
    "ncclx": "collective,bytesPerRank,algorithm,protocol,channels,nNodes,nLocalRanks",
}


def rows_of(tuning: Tuning, dialect: str, channels: int) -> list[str]:
    """Return the rows of a collective; raise C0774 for names that NCCL does not have, and machines that differ."""
    for one in tuning.ranges:
        require_pair(tuning.collective.kind, one.algorithm, one.protocol)
    return list(_ncclx(tuning, channels) if dialect == "ncclx" else _example(tuning, channels))


def read_table(text: str, dialect: str) -> Tuner:
    """Return the tuner that has read a text; raise ValueError for a text that it refuses."""
    return NcclxTuner(text) if dialect == "ncclx" else ExamplePlugin(text)


def _example(tuning: Tuning, channels: int) -> Iterator[str]:
    name, ranks = COLLECTIVES[tuning.collective.kind], tuning.collective.num_ranks
    for one in tuning.ranges:
        yield f"{name},{one.low},{one.high},{_pair(one)},{channels},{tuning.nodes},{ranks},-1,-1"


def _ncclx(tuning: Tuning, channels: int) -> Iterator[str]:
    """Yield rows by bytes of a rank: sizes that are multiples of the number of ranks are exact."""
    name, ranks = COLLECTIVES[tuning.collective.kind], tuning.collective.num_ranks
    if ranks % tuning.nodes:
        hint = "write `dialect=example`"
        raise error("C0774", f"{ranks} ranks on {tuning.nodes} machines are no equal number on each", hint=hint)
    low = 0
    for one in tuning.ranges:
        high = one.high // ranks
        if low > high:
            continue  # no multiple of the number of ranks lies in the range
        interval = f"[{low},)" if one.high == LARGEST else f"[{low},{high}]"
        yield f"{name},{interval},{_pair(one)},{channels or -1},{tuning.nodes},{ranks // tuning.nodes}"
        low = high + 1


def _pair(one: TunedRange) -> str:
    return f"{one.algorithm},{one.protocol}"
