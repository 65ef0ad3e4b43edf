"""The result of ``collc.run``: every call of every collective, checked and timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from collc.backends.measured import Row, RunResult
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.shown import counted, shown

from ..tables.columns import Table
from ..tables.listed import RUN

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "run_table"]


@attrs.frozen(eq=False)
class Run:
    """The calls of a run in ``rows``, each with its times (seconds) and whether every element was correct.

    ``results`` has one part for each program that ran, with the MPI that ran it. ``diagnostics`` are warnings of the
    compilation. Wrong elements do not raise: ``ok`` is false, and ``require()`` raises.

    >>> import collc
    >>> from collc.backends.measured import Row, RunResult
    >>> row = Row("sums", "allreduce", 2, 8, 64, "int32", "sum", False, (2e-6, 3e-6, 4e-6))
    >>> found = collc.Run((RunResult("MPICH 5.0", 2, (row,), "C0708"),))
    >>> found, found.rows[0].median, found.table.rows[0]["time_us"]
    (Run(1 call on MPICH 5.0, all correct), 3e-06, 3.0)
    """

    results: tuple[RunResult, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        wrong = sum(not row.correct for row in self.rows)
        on = ", ".join(dict.fromkeys(str(one.mpi) for one in self.results))
        return shown(self, f"{counted(len(self.rows), 'call')} on {on}, {f'{wrong} wrong' if wrong else 'all correct'}")

    @property
    def rows(self) -> tuple[Row, ...]:
        """The calls, by collective, count, type, operation and place."""
        return tuple(row for one in self.results for row in one.rows)

    @property
    def ok(self) -> bool:
        """Whether every element of every call was correct."""
        return all(one.ok for one in self.results)

    @property
    def table(self) -> Table:
        """The rows as ``collc run --csv`` prints them."""
        return run_table(self.results, repr(self))

    def require(self) -> None:
        """Raise CollcError with a diagnostic for each wrong call; do nothing if all are correct."""
        wrong = list[Diagnostic]()
        for one in self.results:
            try:
                one.require()
            except CollcError as mistake:
                wrong += mistake.diagnostics
        if wrong:
            raise CollcError(wrong)

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        return self.table._repr_html_()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas: times in microseconds, GB/s; raise C0028 without pandas."""
        return self.table.to_dataframe()


def run_table(results: Sequence[RunResult], title: str = "") -> Table:
    """Return the rows of runs as one table."""
    return Table(RUN, [{"on": str(one.mpi), **row.as_dict()} for one in results for row in one.rows], title)
