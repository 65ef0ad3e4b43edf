"""The forms of a verb's table: text, JSON, CSV and Markdown, on standard output or in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

from ..files.texts import STDIN, Output, check_writable, write_all
from .arguments import usage_error
from .console import Console

if TYPE_CHECKING:
    from collc.tables.columns import Table

__all__ = ["Tables", "is_printed", "plain_text", "require_one_form", "show", "together", "wants_table"]

#: name -> a function that returns the table, the default first
Tables: TypeAlias = "Mapping[str, Callable[[], Table]]"

_FORMS = ("csv", "markdown")


def require_one_form(options: SimpleNamespace, inputs: Sequence[str] = ()) -> None:
    """Raise C0001 if standard output would get several forms, C0004 and others if a file cannot be written."""
    wanted = [f"--{name}" for name in _FORMS if _to_stdout(options, name)] + ["--json"] * bool(options.json)
    if len(wanted) > 1:
        named = " and ".join(wanted)
        hint = f"`{next(name for name in wanted if name != '--json')}=FILE` writes a file beside it"
        raise usage_error(f"standard output takes one form, found {named}", hint)
    if options.json and _named(options) and not any(_files(options, name) for name in _FORMS):
        raise usage_error("--json has every table, found also --table", "leave out --table, or write `--csv=FILE`")
    check_writable([path for name in _FORMS for path in _files(options, name)], inputs)


def is_printed(options: SimpleNamespace, name: str) -> bool:
    """Return whether standard output gets a form: ``json``, ``csv`` or ``markdown``."""
    return bool(options.json) if name == "json" else _to_stdout(options, name)


def wants_table(options: SimpleNamespace) -> bool:
    """Return whether an option asks a verb that prints nothing else for a table, or for the object of ``--json``."""
    return bool(options.json or options.csv or options.markdown or _named(options))


def show(
    options: SimpleNamespace, console: Console, tables: Callable[[], Table] | Tables,
    document: Callable[[], Mapping[str, object]], text: Callable[[], str],
) -> None:  # fmt: skip
    """Write the files of ``--csv=FILE`` and ``--markdown=FILE``; print JSON, CSV, Markdown or text.

    Of several tables, by name, ``--table`` chooses one; the first is the default.
    """
    require_one_form(options)
    table = tables if callable(tables) else _chosen(options, tables)
    written = [(path, name) for name in _FORMS for path in _files(options, name)]
    if written:
        rows = table()
        outputs = [Output(path, _form(rows, name)) for path, name in written]
        console.signals.check()
        write_all(outputs)
    form = next((name for name in _FORMS if _to_stdout(options, name)), None)
    if options.json:
        console.json(document())
    elif form is not None:
        console.out(_form(table(), form))
    elif shown := plain_text(table()) if _named(options) and not written else text():
        console.out(shown)


def _named(options: SimpleNamespace) -> str | None:
    """Return the name of ``--table``; None without one, and for verbs with one table."""
    found: str | None = getattr(options, "table", None)
    return found


def _chosen(options: SimpleNamespace, tables: Tables) -> Callable[[], Table]:
    """Return the table of ``--table``; raise C0001 if what was asked for has no such table."""
    name = _named(options) or next(iter(tables))
    if name not in tables:
        raise usage_error(f"there is no table `{name}` here", f"tables are {', '.join(tables)}")
    return tables[name]


def plain_text(found: Table) -> str:
    """Return the columns that people read, as text."""
    from .table import table

    columns = found.shown
    right = [place for place, column in enumerate(columns) if column.kind in ("integer", "number", "rational")]
    lines = [[column.show(row.get(column.key)) for column in columns] for row in found.rows]
    return table(lines, head=[column.heading for column in columns], right=right)


def together(
    objects: Sequence[Mapping[str, object]], failed: Mapping[str, object], **more: object
) -> Mapping[str, object]:
    """Return the JSON object of a file: that of its only collective, or ``collectives`` with ``more`` beside it.

    ``failed`` are the keys of collectives that failed, beside which even one collective stands in a list.
    """
    return objects[0] if len(objects) == 1 and not failed else {"collectives": objects, **more, **failed}


def _form(table: Table, name: str) -> str:
    from collc.tables.forms import csv_text, markdown_text

    return csv_text(table) if name == "csv" else markdown_text(table)


def _files(options: SimpleNamespace, name: str) -> list[str]:
    return [path for path in getattr(options, name) or () if path not in ("", STDIN)]


def _to_stdout(options: SimpleNamespace, name: str) -> bool:
    return any(path in ("", STDIN) for path in getattr(options, name) or ())
