"""Results of measured runs over any runtime: one row for each case, as text and as values."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

import attrs

from collc.ir.costs.busbw import bus_factor
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.frames import dataframe
from collc.ir.html import html_table

if TYPE_CHECKING:
    import pandas

__all__ = ["Row", "RunResult"]


@attrs.frozen
class Row:
    """One case. ``bytes`` is M, the whole vector; times are seconds on the slowest rank, one for each repeat.

    ``count`` is the argument of the call. ``builtin_times`` are those of the library's own collective, alternating with
    the others. ``detail`` describes the first wrong element, and is empty if all are correct. ``model`` is the time
    that the cost model predicts for the schedule. ``bound`` is the least bandwidth time of any schedule on the network.
    Both are seconds, or None if links have no numbers.
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
    model: float | None = None
    bound: float | None = None

    @property
    def correct(self) -> bool:
        """Whether every element was correct on every rank."""
        return not self.detail

    @property
    def median(self) -> float | None:
        """The median of the times (seconds)."""
        return median(self.times) if self.times else None

    @property
    def least(self) -> float | None:
        """The least of the times (seconds)."""
        return min(self.times, default=None)

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The first and third quartiles of the times (seconds): the middle half lies between them."""
        if not self.times:
            return None
        if len(self.times) == 1:
            return self.times[0], self.times[0]
        first, _, third = quantiles(self.times, n=4, method="inclusive")
        return first, third

    @property
    def builtin_median(self) -> float | None:
        """The median of the library's own times (seconds)."""
        return median(self.builtin_times) if self.builtin_times else None

    @property
    def ratio(self) -> float | None:
        """The median time of the library's own collective over this one: above 1 if the library is slower."""
        return self.builtin_median / self.median if self.median and self.builtin_median is not None else None

    @property
    def algbw(self) -> float | None:
        """M over the median time, in bytes per second."""
        return self.bytes / self.median if self.median else None

    @property
    def busbw(self) -> float | None:
        """The bus bandwidth that nccl-tests print, in bytes per second: algbw times :func:`.bus_factor`."""
        factor = bus_factor(self.kind, self.ranks)
        return None if self.algbw is None or factor is None else self.algbw * float(factor)

    def as_dict(self) -> dict[str, str | int | float | bool | None]:
        """Return the row by the names of its values: times in microseconds, bandwidths in GB/s."""
        low, high = self.quartiles or (None, None)
        return {
            "name": self.name, "collective": self.kind, "ranks": self.ranks, "count": self.count,
            "size_bytes": self.bytes, "dtype": self.dtype, "op": self.op, "in_place": self.in_place,
            "correct": self.correct, "detail": self.detail, "repeats": len(self.times), "time_us": _micro(self.median),
            "min_us": _micro(self.least), "q1_us": _micro(low), "q3_us": _micro(high),
            "algbw_GBps": _giga(self.algbw), "busbw_GBps": _giga(self.busbw),
            "builtin_us": _micro(self.builtin_median), "ratio": self.ratio, "model_us": _micro(self.model),
            "bound_us": _micro(self.bound),
        }  # fmt: skip


@attrs.frozen
class RunResult:
    """All rows of a run on ``mpi``, whose text names it in the table. ``code`` is the diagnostic of wrong results."""

    mpi: object
    ranks: int
    rows: tuple[Row, ...]
    code: str

    @property
    def ok(self) -> bool:
        """Whether every case was correct."""
        return all(row.correct for row in self.rows)

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        cells = [_cells(row) for row in self.rows]
        return html_table(f"{self.ranks} ranks on {self.mpi}, times in us", _HEADER, cells)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas: times in microseconds, GB/s; raise C0028 without pandas."""
        return dataframe(_KINDS, [row.as_dict() for row in self.rows])

    def require(self) -> None:
        """Raise ``code`` with one diagnostic for each wrong row."""
        wrong = [
            Diagnostic(
                self.code,
                f"{row.kind} `{row.name}` of {row.count} {row.dtype} (op {row.op}, "
                f"{'in place' if row.in_place else 'out of place'}) is wrong: {row.detail}",
            )
            for row in self.rows
            if not row.correct
        ]
        if wrong:
            raise CollcError(wrong)

    def table(self) -> str:
        """Return the rows as aligned text, times in microseconds, without columns that have no value."""
        named = len({row.name for row in self.rows}) > 1
        cells = [_cells(row) for row in self.rows]
        keep = [
            i for i in range(len(_HEADER)) if (named if i == 0 else i < _OPTIONAL or any(c[i] != "-" for c in cells))
        ]
        cells.insert(0, list(_HEADER))
        widths = {i: max(len(row[i]) for row in cells) for i in keep}
        lines = []
        for row in cells:
            aligned = (row[i].ljust(widths[i]) if i in _LEFT else row[i].rjust(widths[i]) for i in keep)
            lines.append("  ".join(aligned).rstrip())
        return "\n".join([f"{self.ranks} ranks on {self.mpi}, times in us", *lines])


#: value of a row -> its kind
_KINDS = {
    **dict.fromkeys(("name", "collective"), "text"), **dict.fromkeys(("ranks", "count", "size_bytes"), "integer"),
    **dict.fromkeys(("dtype", "op"), "text"), **dict.fromkeys(("in_place", "correct"), "flag"), "detail": "text",
    "repeats": "integer",
    **dict.fromkeys(("time_us", "min_us", "q1_us", "q3_us", "algbw_GBps", "busbw_GBps", "builtin_us", "ratio",
                     "model_us", "bound_us"), "number"),
}  # fmt: skip
_HEADER = (
    "", "bytes", "count", "dtype", "op", "where", "median", "min", "q1", "q3", "bus GB/s",
    "builtin", "ratio", "model", "bound", "result",
)  # fmt: skip
_LEFT = frozenset({0, 3, 4, 5, 15})
#: the first column that is absent if no row has a value
_OPTIONAL = 11


def _cells(row: Row) -> list[str]:
    low, high = row.quartiles or (None, None)
    return [
        row.name, str(row.bytes), str(row.count), row.dtype, row.op.replace("none", "-") or "-",
        "in" if row.in_place else "out", _time(row.median), _time(row.least), _time(low), _time(high),
        f"{row.busbw / 1e9:.3g}" if row.busbw else "-", _time(row.builtin_median),
        "-" if row.ratio is None else f"{row.ratio:.2f}", _time(row.model), _time(row.bound), row.detail or "ok",
    ]  # fmt: skip


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 3)


def _giga(rate: float | None) -> float | None:
    return None if rate is None else rate / 1e9


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.1f}"
