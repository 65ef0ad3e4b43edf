"""Columns and tables: what a value is called, what it means, and how a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from collc.ir.frames import dataframe
from collc.ir.frozen import frozen

if TYPE_CHECKING:
    import pandas

__all__ = ["Cell", "Column", "Kind", "Row", "Table", "with_floats"]

#: a value; lists stand in JSON only
Cell: TypeAlias = str | int | float | bool | Fraction | None
Row: TypeAlias = Mapping[str, Cell]
Kind: TypeAlias = Literal["text", "integer", "number", "rational", "flag"]


def _plain(value: Cell) -> str:
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
    show: Callable[[Cell], str] = attrs.field(default=_plain, repr=False)
    optional: bool = False
    hidden: bool = False


@frozen(eq=False)
class Table:
    """The rows of one table; each has a value, or None, for every column's key."""

    columns: Sequence[Column]
    rows: Sequence[Row]

    @property
    def shown(self) -> list[Column]:
        """The columns for people, without optional ones that have no value in any row."""
        return [column for column in self.columns if not column.hidden and not self._is_empty(column)]

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
