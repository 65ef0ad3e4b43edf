"""Fields of a JSON object that a format prescribes: found with their types, or a mistake with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NoReturn

from collc.ir.diagnostic import CollcError, Source, Span, error
from collc.ir.shown import clipped

from .trees import Json, json_items, json_place, parse_json

__all__ = ["Fields", "object_in"]

_MOST_MISTAKES = 20


def object_in(source: Source, needed: str) -> Mapping[str, Json]:
    """Return the object that a JSON text is; raise C0924 for another value."""
    root = parse_json(source)
    if not isinstance(root, dict):
        raise error("C0924", f"found no object, needed {needed}", span=json_place(source))
    return root


class Fields:
    """The fields of an object at ``path`` in a text; wrong ones become mistakes, and stand-ins take their place."""

    def __init__(self, source: Source, root: Mapping[str, Json], path: Sequence[str | int] = ()):
        self.source, self.root, self.path = source, root, tuple(path)
        self.mistakes: list[CollcError] = []
        self._rows: dict[tuple[str | int, ...], list[int]] = {}

    def __contains__(self, key: str) -> bool:
        return self.root.get(key) is not None

    def place(self, *path: str | int) -> Span | None:
        """Return the place of a value inside the object; of a long array's item without reading all before it."""
        if len(path) < 2 or not isinstance(path[1], int):
            return json_place(self.source, *self.path, *path) or json_place(self.source, *self.path)
        head = (path[0],)
        if head not in self._rows:
            self._rows[head] = json_items(self.source, *self.path, path[0])
        rows = self._rows[head]
        return json_place(self.source, *path[2:], start=rows[path[1]]) if path[1] < len(rows) else self.place(path[0])

    def wrong(self, message: str, *path: str | int, hint: str | None = None, code: str = "C0924") -> None:
        """Add a mistake; more than 20 are not kept."""
        if len(self.mistakes) < _MOST_MISTAKES:
            self.mistakes.append(error(code, message, span=self.place(*path), hint=hint))

    def require(self) -> None:
        """Raise all mistakes, if there are any."""
        if self.mistakes:
            self.fail()

    def fail(self) -> NoReturn:
        """Raise all mistakes."""
        raise CollcError([d for mistake in self.mistakes for d in mistake.diagnostics])

    # ---- values

    def number(self, key: str, *path: int, above: bool = False) -> Fraction:
        """Return a number of at least 0 (``above``: more than 0) at a key, or inside the array there; else 1."""
        value: Json = self.root.get(key)
        for step in path:
            value = value[step] if isinstance(value, list) else None
        if key not in self.root:
            self.wrong(f"found no `{key}`, needed a number")
        elif isinstance(value, bool) or not isinstance(value, int | Fraction):
            self.wrong(f"found no number in `{key}`", key, *path)
        elif value < 0 or (above and not value) or value > 10**30:
            shown = f"{float(value):g}" if -(10**300) < value < 10**300 else "a huge number"
            self.wrong(f"found {shown} in `{key}`, needed a number {'above' if above else 'of at least'} 0",
                       key, *path, code="C0981")  # fmt: skip
        else:
            return Fraction(value)
        return Fraction(1)

    def count(self, key: str, most: int, least: int = 1) -> int:
        """Return a whole number between two bounds at a key; else the least."""
        value = self.root.get(key)
        if key not in self.root:
            self.wrong(f"found no `{key}`, needed a whole number")
        elif isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.wrong(f"found no whole number of at least {least} as `{key}`", key)
        elif value > most:
            self.wrong(f"found {value if value < 10**12 else 'more than 10^12'} as `{key}`, the limit is {most}",
                       key, hint="`--node-limit` raises it", code="C0933")  # fmt: skip
        else:
            return value
        return least

    def text(self, key: str) -> str:
        """Return the text at a key, "" if there is none."""
        value = self.root.get(key)
        if value is not None and not isinstance(value, str):
            self.wrong(f"found no text as `{key}`", key)
        return clipped(value, 200) if isinstance(value, str) else ""

    def array(self, key: str) -> list[Json]:
        """Return the array at a key; else an empty one."""
        value = self.root.get(key)
        if isinstance(value, list):
            return value
        self.wrong(f"found no {'array' if key in self.root else f'`{key}`, needed an array'}", *(
            [key] if key in self.root else []))  # fmt: skip
        return []

    def square(self, key: str, size: int | None = None) -> int:
        """Check that the array at a key has rows of as many values as it has rows (``size``); return the number."""
        rows = self.array(key)
        needed = len(rows) if size is None else size
        if len(rows) != needed:
            self.wrong(f"found {len(rows)} rows in `{key}`, needed {needed}", key)
        for number, row in enumerate(rows):
            if not isinstance(row, list):
                self.wrong(f"found no array, needed row {number} of `{key}`", key, number)
            elif len(row) != needed:
                self.wrong(f"found {len(row)} values in row {number} of `{key}`, needed {needed}", key, number)
        return needed
