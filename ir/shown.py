"""Short representations, for objects that may hold millions of rows, and names that anyone may have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

__all__ = ["MOST_SHOWN", "brief", "brief_fields", "clipped", "counted", "listed", "shown", "some"]

#: the most characters of a ``repr``
MOST_SHOWN = 200
_MOST_NAME = 40
_MOST_VALUE = 120
_MOST_ITEMS = 4
_MOST_LISTED = 3


def clipped(text: str, most: int = _MOST_NAME) -> str:
    r"""Return a text in one line of at most ``most`` characters, control characters escaped.

    >>> clipped("pod\n"), clipped("a" * 50, 8)
    ('pod\\n', 'aaaaa...')
    """
    head = text[: most + 1]
    line = head if head.isprintable() else repr(head)[1:-1]
    return line if len(line) <= most else f"{line[: most - 3]}..."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> counted(1, "rank"), counted(0, "switch"), counted(2, "topology")
    ('1 rank', '0 switches', '2 topologies')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def listed(names: Sequence[str], joint: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    *most, last = names
    return f"{', '.join(most)} {joint} {last}" if most else last


def some(names: Sequence[str], most: int = _MOST_LISTED) -> str:
    """Return the first few of some names, and the number of the others.

    >>> some(["a", "b"]), some(["a", "b", "c", "d", "e"])
    ('a and b', 'a, b, c and 2 more')
    """
    return listed(names) if len(names) <= most + 1 else f"{', '.join(names[:most])} and {len(names) - most} more"


def shown(of: object, text: str) -> str:
    """Return the ``repr`` of an object: its class, and a text about it, at most :data:`MOST_SHOWN` characters."""
    name = type(of).__qualname__.rpartition(">.")[2]
    return f"{name}({clipped(text, MOST_SHOWN - len(name) - 2)})"


def brief(value: object) -> str:
    """Return the ``repr`` of a value, of a long collection the first items and their number.

    >>> brief(tuple(range(100)))
    '(0, 1, 2, 3, .. 100 in all)'
    """
    if isinstance(value, str):
        value = value[:_MOST_VALUE]
    elif isinstance(value, (tuple, list)) and len(value) > _MOST_ITEMS:
        first = ", ".join(brief(item) for item in value[:_MOST_ITEMS])
        return clipped(f"({first}, .. {len(value)} in all)", _MOST_VALUE)
    elif isinstance(value, Mapping) and len(value) > _MOST_ITEMS:
        first = ", ".join(f"{brief(key)}: {brief(item)}" for key, item in islice(value.items(), _MOST_ITEMS))
        return clipped(f"{{{first}, .. {len(value)} in all}}", _MOST_VALUE)
    return clipped(repr(value), _MOST_VALUE)


def brief_fields(self: Any) -> str:  # Any: of every class that attrs makes
    """Return the ``repr`` of an attrs object, as ``attrs.frozen`` writes it if it is short; for ``__repr__``."""
    return brief_named(self, [f.name for f in self.__attrs_attrs__ if f.repr])


def brief_named(of: object, fields: Sequence[str]) -> str:
    """Return what :func:`brief_fields` does, of these fields only."""
    return shown(of, ", ".join(f"{name}={brief(getattr(of, name))}" for name in fields))
