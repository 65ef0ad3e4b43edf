"""Tables as data frames of pandas, for notebooks. pandas is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from .diagnostic import error

if TYPE_CHECKING:
    import pandas

__all__ = ["dataframe", "optional_package"]

#: kind of a column -> type in a data frame; texts and exact rationals stay Python objects
_TYPES = {"text": "object", "integer": "Int64", "number": "float64", "rational": "object", "flag": "boolean"}


def dataframe(kinds: Mapping[str, str], rows: Iterable[Mapping[str, object]]) -> pandas.DataFrame:
    """Return rows as a data frame with a column for every key of ``kinds``, whatever values the rows have.

    A kind is ``text``, ``integer``, ``number``, ``rational`` (:class:`~fractions.Fraction` objects) or ``flag``. Raises
    C0028 without pandas.

    >>> print(dataframe({"name": "text", "ranks": "integer"}, [{"name": "ring", "ranks": 4}, {"name": "?"}]))
       name  ranks
    0  ring      4
    1     ?   <NA>
    """
    pandas = optional_package("pandas", "a data frame", "pandas")
    listed = list(rows)
    columns = {}
    for key, kind in kinds.items():
        values = [row.get(key) for row in listed]
        if kind == "text":
            values = ["" if value is None else str(value) for value in values]
        columns[key] = pandas.Series(values, dtype=_TYPES[kind])
    return pandas.DataFrame(columns, columns=list(kinds))


def optional_package(module: str, what: str, extra: str) -> ModuleType:
    """Return a module of an optional package, for ``what``; raise C0028 with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as problem:
        name = module.partition(".")[0]
        hint = f"install it: pip install 'collc[{extra}]'"
        raise error("C0028", f"{what} needs the package `{name}`: {problem}", hint=hint) from None
