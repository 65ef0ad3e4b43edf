"""``collc cache``: what the caches of compiled files and of launches hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace

from collc.ir.diagnostic import nearest
from collc.ir.shown import clipped, counted

from ..files.caches import Item, Part, clear, items, parts
from ..files.derived import State
from ..messages.quantities import show_size_about
from ..tables.columns import Cell, Table
from ..tables.forms import objects
from ..tables.further import TIMED
from ..tables.listed import CACHE_ITEMS, CACHE_PARTS
from .arguments import usage_error
from .console import Console
from .table import table
from .tabular import plain_text, require_one_form, show

__all__ = ["cache"]

_ACTIONS = ("info", "list", "check", "times", "clear")
_MEANINGS = {
    "stale": "a file that it came from has changed", "wrong": "not as collc wrote it, or others can write it",
}  # fmt: skip


def cache(options: SimpleNamespace, console: Console) -> int:
    """Print what the caches hold, list or check the entries, or remove them; return the exit status."""
    action = options.files[0] if options.files else "info"
    if action not in _ACTIONS:
        known = "info, list, check, times or clear"
        raise usage_error(f"`collc cache` takes {known}, found `{action}`", nearest(action, _ACTIONS))
    require_one_form(options)
    found = parts(options.cache, os.environ)
    listed = [(part, clear(part) if action == "clear" else items(part)) for part in found]
    if action == "times":
        return _times(listed, options, console)
    states = [(item, item.state) for _, held in listed for item in held] if action == "check" else []
    texts = {"info": _info, "list": _list, "clear": _cleared}
    full = action in ("list", "check")
    show(
        options, console, lambda: _items_table(listed, dict(states)) if full else _parts_table(listed),
        lambda: _document(listed, dict(states), full),
        lambda: _checked(states) if action == "check" else texts[action](listed),
    )  # fmt: skip
    return int(any(state == "wrong" for _, state in states))


Listed = Sequence[tuple[Part, list[Item]]]


def _times(listed: Listed, options: SimpleNamespace, console: Console) -> int:
    """Print what ``--tune`` timed, of all programs and machines."""
    from ..files.tuned import TUNED, read_tuned

    kept = [item for part, held in listed if part.name == TUNED for item in held]
    rows: list[dict[str, Cell]] = [
        {"collective": one.kind, "ranks": one.ranks, "nodes": one.nodes, "size_bytes": one.size,
         "library_us": one.built_in, "compiled_us": one.compiled, "is_compiled": one.is_compiled, "path": item.path}
        for item in kept for one in read_tuned(item.path, os.path.dirname(item.part.folder))
    ]  # fmt: skip
    timed = Table(TIMED, rows)
    show(
        options, console, lambda: timed, lambda: {**_first(listed), "times": objects(timed)},
        lambda: plain_text(timed) if rows else "nothing was timed\n",
    )  # fmt: skip
    return 0


def _size(held: Sequence[Item]) -> int:
    return sum(item.size for item in held)


def _parts(listed: Listed) -> list[dict[str, Cell]]:
    return [
        {"name": part.name, "folder": part.folder, "entries": len(held), "bytes": _size(held), "most_bytes": part.most}
        for part, held in listed
    ]


def _parts_table(listed: Listed) -> Table:
    return Table(CACHE_PARTS, _parts(listed))


def _items_table(listed: Listed, states: dict[Item, State]) -> Table:
    return Table(CACHE_ITEMS, [
        {"part": part.name, "path": item.path, "bytes": item.size, "names": ", ".join(item.names), "used": _time(item),
         "state": states.get(item)}
        for part, held in listed for item in held
    ])  # fmt: skip


def _first(listed: Listed) -> dict[str, object]:
    rows = _parts(listed)
    return {**{key: rows[0][key] for key in ("folder", "entries", "bytes", "most_bytes")}, "parts": rows}


def _document(listed: Listed, states: dict[Item, State], full: bool) -> dict[str, object]:
    """Return the object of ``--json``; the first keys are those of the compiled files."""
    found = _first(listed)
    if full:
        found["items"] = [
            {"part": part.name, "path": item.path, "bytes": item.size, "names": list(item.names), "used": _time(item)}
            | ({"state": states[item]} if item in states else {})
            for part, held in listed for item in held
        ]  # fmt: skip
    return found


def _info(listed: Listed) -> str:
    (part, held), *more = listed
    rows = [
        ("folder", part.folder), ("entries", str(len(held))), ("size", show_size_about(_size(held))),
        ("limit", show_size_about(part.most or 0)),
    ]  # fmt: skip
    launches = [(part.name, str(len(held)), show_size_about(_size(held)), part.folder) for part, held in more]
    head = ("of launches", "entries", "size", "folder")
    return table(rows) + "\n" + table(launches, head=head, right=(1, 2))


def _list(listed: Listed) -> str:
    rows = [
        (part.name, show_size_about(item.size), _time(item), clipped(", ".join(item.names)), item.path)
        for part, held in listed for item in held
    ]  # fmt: skip
    return table(rows, head=("part", "size", "last used", "names", "file"), right=(1,)) if rows else "no entries\n"


def _checked(states: Sequence[tuple[Item, State]]) -> str:
    rows = [(state, item.part.name, item.path, _MEANINGS[state]) for item, state in states if state != "whole"]
    count = counted(len(states), "entry")
    if not rows:
        return f"checked {count}: all are whole\n"
    return table(rows) + f"checked {count}: collc makes {counted(len(rows), 'entry')} again when needed\n"


def _cleared(listed: Listed) -> str:
    removed = [item for _, held in listed for item in held]
    return f"removed {counted(len(removed), 'entry')}, {show_size_about(_size(removed))}\n"


def _time(item: Item) -> str:
    return datetime.fromtimestamp(item.used).isoformat(" ", "minutes")
