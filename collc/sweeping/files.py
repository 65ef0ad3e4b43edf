"""Files of sweeps: CSV, JSON, Markdown and Parquet, by the ending of their name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from collc.ir.diagnostic import error
from collc.ir.frames import optional_package

from ..tables.columns import Table
from ..tables.forms import csv_text, markdown_text, objects
from ..tables.schemas import VERSION

if TYPE_CHECKING:
    from .sweep import Sweep

__all__ = ["ENDINGS", "content_of", "document", "require_form"]


def document(sweep: Sweep) -> dict[str, object]:
    """Return the object of ``--json``."""
    return {"rows": objects(sweep.table), "failed": len(sweep.failed)}


def _json(sweep: Sweep) -> str:
    return json.dumps({"schema": VERSION, **document(sweep)}, indent=2) + "\n"


def _parquet(sweep: Sweep) -> bytes:
    """Return a Parquet file; rationals are texts such as `31/32`, as in CSV and JSON."""
    arrow = optional_package("pyarrow", "a Parquet file", "parquet")
    parquet = optional_package("pyarrow.parquet", "a Parquet file", "parquet")
    table, arrays = sweep.table, {}
    types = {"integer": arrow.int64(), "number": arrow.float64(), "flag": arrow.bool_()}
    for column in table.columns:
        values = [row.get(column.key) for row in table.rows]
        if column.kind in ("text", "rational"):
            values = [None if value is None else str(value) for value in values]
        arrays[column.key] = arrow.array(values, types.get(column.kind, arrow.string()))
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(arrays), sink)
    return bytes(sink.getvalue())


def _text_of(form: Callable[[Table], str]) -> Callable[[Sweep], str]:
    return lambda sweep: form(sweep.table)


_FORMS: Mapping[str, Callable[[Sweep], str | bytes]] = {
    ".csv": _text_of(csv_text), ".json": _json, ".md": _text_of(markdown_text), ".parquet": _parquet,
}  # fmt: skip
#: how the name of a file may end
ENDINGS = tuple(_FORMS)


def require_form(path: str) -> None:
    """Raise C0029 if the name of a file says no form, C0028 if the package of its form is missing."""
    ending = PurePath(path).suffix
    if ending not in _FORMS:
        needed = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise error("C0029", f"found the file `{path}`, needed a name that ends in {needed}", exit_status=2)
    if ending == ".parquet":
        optional_package("pyarrow.parquet", "a Parquet file", "parquet")


def content_of(sweep: Sweep, path: str) -> str | bytes:
    """Return a sweep in the form of a file's name."""
    require_form(path)
    return _FORMS[PurePath(path).suffix](sweep)
