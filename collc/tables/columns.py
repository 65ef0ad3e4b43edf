"""Columns and tables: what a value is called, what it means, and how a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from collc.ir.diagnostic import error, nearest
from collc.ir.frames import dataframe
from collc.ir.frozen import frozen
from collc.ir.html import html_table
from collc.ir.shown import clipped, counted, shown

if TYPE_CHECKING:
    import pandas

__all__ = ["Cell", "Column", "Kind", "Row", "Table", "plain", "require_table", "with_floats"]

#: a value; lists stand in JSON only
Cell: TypeAlias = str | int | float | bool | Fraction | None
Row: TypeAlias = Mapping[str, Cell]
Kind: TypeAlias = Literal["text", "integer", "number", "rational", "flag"]


def plain(value: Cell) -> str:
    """Return a value as people read it: nothing for None, `yes` or nothing for a flag, four digits of a float."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


@frozen
class Column:
    """One column. ``key`` names it in CSV and JSON, with its unit; ``heading`` in tables that people read.

    ``show`` returns a value with its unit, as people read it. An ``optional`` column is left out of tables in which no
    row has a value; a ``hidden`` one is for programs only.
    """

    key: str
    heading: str
    kind: Kind
    help: str
    show: Callable[[Cell], str] = attrs.field(default=plain, repr=False)
    optional: bool = False
    hidden: bool = False


@frozen(eq=False)
class Table:
    """The rows of one table; each has a value, or None, for every column's key. Notebooks show ``title`` above it.

    >>> import collc
    >>> found = collc.listing("schedulers", "bfb")
    >>> len(found), found.rows[1]["name"], found.columns[0].key
    (5, 'relax', 'name')
    >>> found
    Table(options of scheduler bfb: 5 rows, columns name, type, default, help)
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""

    def __repr__(self) -> str:
        title = f"{self.title}: " if self.title else ""
        return shown(self, f"{title}{counted(len(self), 'row')}, columns {', '.join(c.key for c in self.columns)}")

    @property
    def shown(self) -> list[Column]:
        """The columns for people, without optional ones that have no value in any row."""
        return [column for column in self.columns if not column.hidden and not self._is_empty(column)]

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """Return the rows as people read them, for notebooks."""
        columns = self.shown
        cells = ([column.show(row.get(column.key)) for column in columns] for row in self.rows)
        return html_table(self.title or counted(len(self.rows), "row"), [c.heading for c in columns], cells)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas, with a column for every key; raise C0028 without pandas."""
        return dataframe({column.key: column.kind for column in self.columns}, self.rows)

    def _is_empty(self, column: Column) -> bool:
        return column.optional and all(row.get(column.key) in (None, "") for row in self.rows)


def with_floats(row: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return a row in which a float ``NAME_float`` follows every rational ``NAME``.

    >>> with_floats({"T_B": Fraction(3, 4), "T_L": 2})
    {'T_B': Fraction(3, 4), 'T_B_float': 0.75, 'T_L': 2}
    """
    found: dict[str, Cell] = {}
    for key, value in row.items():
        found[key] = value
        if isinstance(value, Fraction):
            found[f"{key}_float"] = float(value)
    return found


def require_table(name: str, known: Iterable[str]) -> str:
    """Return the name of a table if it is known; raise C0019 for another one."""
    if name in known:
        return name
    hint = nearest(name, known) or f"tables are {', '.join(known)}"
    raise error("C0019", f"there is no table `{clipped(str(name))}`", hint=hint, exit_status=2)
