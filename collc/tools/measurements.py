"""Measured times of collectives, read from CSV or JSON: what `collc run` and the testbed write, and anyone's own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import SupportsFloat

import attrs

from collc.ir.diagnostic import error

__all__ = ["COLUMNS", "MAX_ROWS", "Measured", "Work", "read_measurements"]

#: the largest number of rows of a file
MAX_ROWS = 100_000

#: column -> its names in files; the first is collc's own
COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("name", "schedule"),
    "ranks": ("ranks",),
    "bytes": ("bytes", "size_bytes"),
    "steps": ("steps", "hops", "T_L"),
    "load": ("load",),
    "reduced": ("reduced", "T_C"),
    "seconds": ("seconds", "time_s"),
    "microseconds": ("time_us",),
    "correct": ("correct",),
}

#: (steps, load, reduced) of a schedule by name and number of ranks; None if unknown
Work = Callable[[str, int | None], "tuple[int, Fraction, Fraction] | None"]

#: limit of numbers and their inverses: a fit of larger ones would overflow
_MAX_VALUE = 1e20


@attrs.frozen
class Measured:
    """One measurement: M of ``bytes`` took ``seconds``.

    ``steps`` counts the schedule's steps; ``load`` is how much of M its busiest links carry over all steps, for links
    of bandwidth 1 (``time_per_byte`` of :class:`collc.ir.costs.cost.Cost`), so that the time grows with load * bytes.
    ``reduced`` is how much of M the ranks add (``reduced`` of the same class); None if unknown.
    """

    bytes: int
    steps: int
    load: float
    seconds: float
    name: str = ""
    reduced: float | None = None

    @property
    def message(self) -> float:
        """Bytes that a step sends over its busiest link, on average, which decides the protocol of an MPI."""
        return self.load * self.bytes / self.steps


def read_measurements(text: str, shown: str, work: Work | None = None) -> tuple[list[Measured], list[str]]:
    """Return the measurements of a CSV or JSON text, and the reasons for skipped rows.

    ``work`` supplies steps, load and reduced of rows without them. Rows without a time or with a wrong result are
    skipped. Raises C0076 for another kind of text, missing columns and impossible values.
    """
    rows = _json_rows(text, shown) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text, shown)
    if not rows:
        raise error("C0076", f"`{shown}` holds no measurements", hint=_HINT)
    if len(rows) > MAX_ROWS:
        raise error("C0076", f"`{shown}` has {len(rows)} rows; the limit is {MAX_ROWS}")
    found, left_out = list[Measured](), dict[str, int]()
    for place, row in rows:
        one = _measured(_Row(row, f"{shown}, {place}"), work)
        if isinstance(one, Measured):
            found.append(one)
        else:
            left_out[one] = left_out.get(one, 0) + 1
    return found, [f"{count} rows skipped: {why}" for why, count in left_out.items()]


_HINT = "rows need `bytes`, `seconds` (or `time_us`), and `steps` and `load`, or --schedules FILE.coll to supply them"

_Rows = list[tuple[str, Mapping[str, object]]]


def _csv_rows(text: str, shown: str) -> _Rows:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip() and line[0] != "#"]
    try:
        cells = list(csv.reader(io.StringIO("\n".join(line for _, line in lines)), strict=True))
    except csv.Error as reason:
        raise error("C0076", f"`{shown}` is not CSV: {reason}", hint=_HINT) from None
    if not cells:
        return []
    head = [title.strip() for title in cells[0]]
    _require_columns(head, shown)
    if len(cells) != len(lines):
        raise error("C0076", f"`{shown}` is not a table: a cell has several lines", hint=_HINT)
    rows: _Rows = []
    for (number, _), row in zip(lines[1:], cells[1:], strict=True):
        if len(row) != len(head):
            message = f"`{shown}`, line {number} has {len(row)} cells, the first line has {len(head)}"
            raise error("C0076", message, hint=_HINT)
        rows.append((f"line {number}", dict(zip(head, row, strict=True))))
    return rows


def _json_rows(text: str, shown: str) -> _Rows:
    try:
        found = json.loads(text)
    except RecursionError:
        raise error("C0076", f"`{shown}` is nested too deeply: collc needs a list of rows", hint=_HINT) from None
    except ValueError as reason:
        message = str(reason).splitlines()[0].partition("; use sys.")[0]
        raise error("C0076", f"`{shown}` is not JSON: {message}", hint=_HINT) from None
    listed = found.get("rows") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise error("C0076", f"`{shown}` is no list of objects and no object with such a list as `rows`", hint=_HINT)
    if listed:
        _require_columns({key for row in listed for key in row}, shown)
    return [(f"row {number}", row) for number, row in enumerate(listed, 1)]


def _require_columns(head: Iterable[str], shown: str) -> None:
    known = set(head)
    has = {column for column, names in COLUMNS.items() if known & set(names)}
    missing = [] if "bytes" in has else ["bytes"]
    missing += [] if has & {"seconds", "microseconds"} else ["seconds"]
    if missing:
        listed = " and ".join(f"`{name}`" for name in missing)
        notes = [f"its columns are {', '.join(sorted(map(str, known))[:8])}"] if known else []
        raise error("C0076", f"`{shown}` has no column {listed}", notes=notes, hint=_HINT)


@attrs.frozen
class _Row:
    """Reads one row; errors name ``place``."""

    cells: Mapping[str, object]
    place: str

    def cell(self, column: str) -> object:
        values = (self.cells[name] for name in COLUMNS[column] if name in self.cells)
        return next((value for value in values if value not in (None, "")), None)

    def wrong(self, column: str, needed: str) -> Exception:
        value = str(self.cell(column))[:40]
        return error("C0076", f"`{column}` is {needed}, found `{value}` ({self.place})")

    def whole(self, column: str, least: int) -> int | None:
        """Return a whole number of at least ``least``, or None for an empty cell."""
        value = self.number(column)
        if value is None:
            return None
        if value != int(value) or value < least:
            raise self.wrong(column, f"a whole number of at least {least}")
        return int(value)

    def number(self, column: str) -> float | None:
        """Return a finite number (``7/4`` is one) that is not negative, or None for an empty cell."""
        value = self.cell(column)
        if value is None:
            return None
        try:
            if isinstance(value, bool):
                raise ValueError
            if not isinstance(value, str | SupportsFloat):
                raise TypeError
            number = float(Fraction(value)) if isinstance(value, str) and "/" in value else float(value)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            raise self.wrong(column, "a number") from None
        if not 0 <= number <= _MAX_VALUE or 0 < number < 1 / _MAX_VALUE:
            raise self.wrong(column, f"a number that is 0 or from {1 / _MAX_VALUE:g} to {_MAX_VALUE:g}")
        return number


def _measured(row: _Row, work: Work | None) -> Measured | str:
    """Return the measurement of a row, or the reason to skip it."""
    if str(row.cell("correct")).lower() in ("false", "0"):
        return "the result was wrong"
    seconds, micro = row.number("seconds"), row.number("microseconds")
    seconds = micro / 1e6 if seconds is None and micro is not None else seconds
    if seconds is None:
        return "no time"
    size, steps, load = row.whole("bytes", 0), row.whole("steps", 1), row.number("load")
    if size is None:
        raise row.wrong("bytes", "a whole number")
    if seconds == 0:
        raise row.wrong("seconds" if row.cell("seconds") is not None else "microseconds", "more than 0")
    name = row.cell("name")
    name = "" if name is None else str(name)
    reduced = row.number("reduced")
    if (steps is None or load is None or reduced is None) and work is not None:
        known = work(name, row.whole("ranks", 1))
        if known and (steps is None or load is None):
            steps, load = known[0], float(known[1])
        reduced = float(known[2]) if known and reduced is None else reduced
    if steps is None or load is None:
        return "steps and load of the schedule are unknown"
    return Measured(size, steps, load, seconds, name, reduced)
