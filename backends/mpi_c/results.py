"""What runs found: one row a case, and the table that shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import median

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error

from .toolchain import Mpi

__all__ = ["DTYPES", "OPS", "Row", "RunResult", "counts_for", "parse", "vector_elements"]

#: element types that runs have, and their bytes; ``strided`` is a derived type with gaps
DTYPES = {"int32": 4, "int64": 8, "float32": 4, "float64": 8, "strided": 8}
#: operations that runs have; ``user`` is a user-defined one, and the only one for ``strided``
OPS = ("sum", "max", "min", "prod", "user")

_WHOLE = frozenset({"allreduce", "broadcast", "reduce"})

_ROW = re.compile(
    r"collc-row name=(?P<name>\w+) count=(?P<count>\d+) dtype=(?P<dtype>\w+) op=(?P<op>\w+) "
    r"in_place=(?P<in_place>[01]) times=(?P<times>[\d.,]*) builtin=(?P<builtin>[\d.,]*) detail=(?P<detail>.*)"
)


def vector_elements(collective: Collective, count: int) -> int:
    """Return the elements of the whole vector (of all shards together) in a call with ``count``."""
    return count if collective.kind in _WHOLE else count * collective.num_ranks


def counts_for(collective: Collective, sizes: Iterable[int], dtype: str) -> list[int]:
    """Return the count arguments for vectors of these many bytes (M), rounded down to what divides.

    >>> counts_for(Collective("allgather", 4), [64], "float32"), counts_for(Collective("allreduce", 4), [64], "float32")
    ([4], [16])
    """
    unit = DTYPES[dtype] * vector_elements(collective, 1)
    return list(dict.fromkeys(size // unit for size in sizes))


@attrs.frozen
class Row:
    """One case. ``bytes`` is M, the whole vector; times are seconds on the slowest rank, one for each repeat.

    ``count`` is the call's argument. ``detail`` says what was wrong first, and is empty where everything was right.
    """

    name: str
    kind: str
    ranks: int
    count: int
    bytes: int
    dtype: str
    op: str
    in_place: bool
    times: tuple[float, ...] = ()
    builtin_times: tuple[float, ...] = ()
    detail: str = ""

    @property
    def correct(self) -> bool:
        return not self.detail

    @property
    def median(self) -> float | None:
        return median(self.times) if self.times else None

    @property
    def least(self) -> float | None:
        return min(self.times, default=None)

    @property
    def builtin_median(self) -> float | None:
        return median(self.builtin_times) if self.builtin_times else None

    @property
    def algbw(self) -> float | None:
        """M over the median time, in bytes per second."""
        return self.bytes / self.median if self.median else None

    def as_dict(self) -> dict[str, object]:
        """Return the row for JSON: times in microseconds, bandwidth in GB/s."""
        return {
            "name": self.name, "collective": self.kind, "ranks": self.ranks, "count": self.count,
            "size_bytes": self.bytes, "dtype": self.dtype, "op": self.op, "in_place": self.in_place,
            "correct": self.correct, "detail": self.detail, "time_us": _micro(self.median),
            "min_us": _micro(self.least), "algbw_GBps": None if self.algbw is None else self.algbw / 1e9,
            "builtin_us": _micro(self.builtin_median),
        }  # fmt: skip


@attrs.frozen
class RunResult:
    """All rows of a run, and on what it ran."""

    mpi: Mpi
    ranks: int
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        return all(row.correct for row in self.rows)

    def require(self) -> None:
        """Raise C0708 with one diagnostic for every wrong row."""
        wrong = [
            Diagnostic(
                "C0708",
                f"{row.kind} `{row.name}` of {row.count} {row.dtype} (op {row.op}, "
                f"{'in place' if row.in_place else 'out of place'}) is wrong: {row.detail}",
            )
            for row in self.rows
            if not row.correct
        ]
        if wrong:
            raise CollcError(wrong)

    def table(self) -> str:
        """Return the rows as text, aligned, times in microseconds."""
        compared = any(row.builtin_times for row in self.rows)
        named = len({row.name for row in self.rows}) > 1
        cells = [_HEADER, *(_cells(row) for row in self.rows)]
        keep = [i for i, title in enumerate(_HEADER) if (named or title) and (compared or title != "MPI's own")]
        widths = {i: max(len(row[i]) for row in cells) for i in keep}
        lines = []
        for row in cells:
            aligned = (row[i].ljust(widths[i]) if i in _LEFT else row[i].rjust(widths[i]) for i in keep)
            lines.append("  ".join(aligned).rstrip())
        return "\n".join([f"{self.ranks} ranks on {self.mpi}, times in us", *lines])


_HEADER = ["", "bytes", "count", "dtype", "op", "where", "median", "min", "MPI's own", "GB/s", "result"]
_LEFT = frozenset({0, 3, 4, 5, 10})


def _cells(row: Row) -> list[str]:
    return [
        row.name, str(row.bytes), str(row.count), row.dtype, row.op.replace("none", "-"),
        "in" if row.in_place else "out", _time(row.median), _time(row.least), _time(row.builtin_median),
        "-" if not row.algbw else f"{row.algbw / 1e9:.3g}", row.detail or "ok",
    ]  # fmt: skip


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 3)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.1f}"


def parse(output: str, mpi: Mpi, collectives: Mapping[str, Collective]) -> RunResult:
    """Return the rows that the driver printed, ``collectives`` by function name; raise C0706 where the end misses."""
    rows = [_row(match, collectives) for match in map(_ROW.match, output.splitlines()) if match]
    end = re.search(r"^collc-end cases=(\d+)$", output, re.MULTILINE)
    if end is None or int(end[1]) != len(rows):
        raise error("C0706", f"the run's output ended early, after {len(rows)} cases")
    return RunResult(mpi, next(iter(collectives.values())).num_ranks, tuple(rows))


def _row(match: re.Match[str], collectives: Mapping[str, Collective]) -> Row:
    collective, count = collectives[match["name"]], int(match["count"])
    times, builtin = (tuple(float(t) for t in match[g].split(",") if t) for g in ("times", "builtin"))
    return Row(
        name=match["name"], kind=collective.kind, ranks=collective.num_ranks, count=count,
        bytes=vector_elements(collective, count) * DTYPES[match["dtype"]], dtype=match["dtype"], op=match["op"],
        in_place=match["in_place"] == "1", times=times, builtin_times=builtin, detail=match["detail"],
    )  # fmt: skip
