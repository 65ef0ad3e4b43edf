"""CSV that other programs read back, Markdown that stays a table, whatever the names."""

from __future__ import annotations

import csv
import io
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collc.tables.columns import Cell, Column, Table, with_floats
from collc.tables.every import TABLES
from collc.tables.forms import csv_text, markdown_text, objects

COLUMNS = (
    Column("name", "name", "text", "a name"),
    Column("count", "count", "integer", "a number"),
    *(Column(key, "T_B", "rational" if key == "T_B" else "number", "a value") for key in ("T_B", "T_B_float")),
    Column("detail", "detail", "text", "what is wrong", optional=True),
    Column("hidden", "hidden", "flag", "for programs", hidden=True),
)
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
rows = st.fixed_dictionaries({
    "name": texts, "count": st.none() | st.integers(-(10**12), 10**12), "T_B": st.none() | st.fractions(),
    "detail": st.none() | texts, "hidden": st.booleans(),
})  # fmt: skip


@given(st.lists(rows, max_size=4))
def test_csv_is_read_back(found: list[dict[str, Cell]]) -> None:
    """Every value comes back; only what a spreadsheet would compute has an apostrophe before it."""
    table = Table(COLUMNS, [with_floats(row) for row in found])
    header, *lines = list(csv.reader(io.StringIO(csv_text(table), newline="")))
    assert header == [column.key for column in COLUMNS] and len(lines) == len(found)
    for line, row in zip(lines, found, strict=True):
        values = dict(zip(header, line, strict=True))
        name = str(row["name"])
        assert values["name"] == (f"'{name}" if name[:1] in tuple("=+-@\t\r") and name else name)
        assert values["count"] == ("" if row["count"] is None else str(row["count"]))
        assert values["hidden"] == str(int(bool(row["hidden"])))
        if row["T_B"] is not None:
            assert Fraction(values["T_B"]) == row["T_B"] and float(values["T_B_float"]) == float(Fraction(row["T_B"]))


@given(st.lists(rows, max_size=4))
def test_markdown_has_a_line_a_row_and_no_markup_of_names(found: list[dict[str, Cell]]) -> None:
    table = Table(COLUMNS, [with_floats(row) for row in found])
    lines = markdown_text(table).split("\n")
    assert len(lines) == len(found) + 3 and lines[-1] == ""
    columns = len(table.shown)
    for line in lines[:-1]:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == columns + 1 and "<" not in line and "\r" not in line
    assert "hidden" not in lines[0] and ("detail" in lines[0]) == any(row["detail"] for row in found)


def test_numbers_stand_on_the_right() -> None:
    lines = markdown_text(Table(COLUMNS, [{"name": "a", "count": 7, "T_B": Fraction(1, 2)}])).splitlines()
    assert lines[1] == "| ---- | ----: | --: | --: |" and lines[2].startswith("| a    |     7 | 1/2 |")


def test_formulas_of_untrusted_names_are_texts() -> None:
    table = Table(COLUMNS[:1], [{"name": text} for text in ("=1+1", "@cmd", "-2", "+3", "a=1")])
    assert csv_text(table).splitlines()[1:] == ["'=1+1", "'@cmd", "'-2", "'+3", "a=1"]


def test_json_leaves_out_optional_values_of_a_row() -> None:
    table = Table(COLUMNS, [{"name": "a", "T_B": Fraction(31, 32), "detail": ""}])
    assert objects(table) == [{"name": "a", "count": None, "T_B": "31/32", "T_B_float": None, "hidden": None}]


@pytest.mark.parametrize("name", TABLES)
def test_columns_have_keys_of_their_own_and_an_explanation(name: str) -> None:
    """A key names its unit; people see every key but those that repeat another as a float."""
    columns = TABLES[name]
    assert len({column.key for column in columns}) == len(columns)
    for column in columns:
        assert column.heading and column.help and re.fullmatch(r"\w+", column.key)
    shown = {column.key for column in columns if not column.hidden}
    for key in (column.key for column in columns if column.hidden and not column.key.endswith("_float")):
        assert f"{key}_float" in shown or (key == "time_s" and "time_us" in shown)


@pytest.mark.parametrize("name", TABLES)
def test_reprs_are_short_and_the_same_in_every_process(name: str) -> None:
    for shown in (repr(Table(TABLES[name], [{}] * 1000)), *map(repr, TABLES[name])):
        assert len(shown) <= 200 and " at 0x" not in shown


def test_runs_have_every_value_of_a_row() -> None:
    from collc.backends.measured import Row

    assert [c.key for c in TABLES["run"]] == ["on", *Row("", "allreduce", 1, 0, 0, "", "", False).as_dict()]


def test_data_frames_of_runs_have_the_types_of_the_table() -> None:
    from collc.backends.measured import _KINDS

    assert {c.key: c.kind for c in TABLES["run"][1:]} == _KINDS
