"""What the API accepts as an argument; everything else is one error, which names the argument."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import NoReturn

from collc.ir.diagnostic import error
from collc.ir.shown import clipped

__all__ = ["names", "path", "paths", "refuse", "require_cache", "require_params", "require_topologies", "text"]


def refuse(name: str, value: object, need: str, hint: str | None = None) -> NoReturn:
    """Raise C0001 for an argument."""
    raise error("C0001", f"found {name} {clipped(repr(value))}, needed {need}", hint=hint, exit_status=2)


def text(name: str, value: object, need: str) -> str:
    """Return a text; raise C0001 for other values."""
    return value if isinstance(value, str) else refuse(name, value, need)


def path(name: str, value: object) -> str:
    """Return a path as a text; raise C0001 for other values."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    return text(name, given, "a path")


def names(name: str, value: object, need: str) -> tuple[str, ...]:
    """Return texts, of which one may stand alone; raise C0001 for other values."""
    if isinstance(value, str):
        return (value,)
    return tuple(text(name, one, need) for one in _several(name, value, need))


def paths(name: str, value: object, need: str) -> tuple[str, ...]:
    """Return paths, of which one may stand alone; raise C0001 for other values."""
    if isinstance(value, (str, os.PathLike)):
        return (path(name, value),)
    return tuple(path(name, one) for one in _several(name, value, need))


def _several(name: str, value: object, need: str) -> Iterable[object]:
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        refuse(name, value, need)
    return value


def require_params(value: object) -> None:
    """Raise C0001 unless it is None, or maps names of parameters to what the language can read."""
    if value is None:
        return
    need = 'a mapping of names to values, such as {"n": 4}'
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        refuse("params", value, need)
    for name, one in value.items():
        if not isinstance(one, (str, Number, tuple, list)):
            refuse(f"params[{name!r}]", one, "a number, a text, a truth value or a tuple of numbers")


def require_topologies(value: object) -> None:
    """Raise C0001 unless it is None, or maps names to topologies, of which the reader checks each."""
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(name, str) for name in value)):
        refuse("topologies", value, "a mapping of names to topologies or networkx graphs")


def require_cache(value: object) -> None:
    """Raise C0001 unless it is a truth value or a path."""
    if not isinstance(value, (bool, str, os.PathLike)):
        refuse("cache", value, "True, False or the path of a folder")
