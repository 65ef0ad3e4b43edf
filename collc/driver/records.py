"""Values of a result as JSON, and back: exact numbers, and objects of the classes listed here, no others."""

from __future__ import annotations

import json
from enum import Enum
from fractions import Fraction
from functools import cache
from importlib import import_module

import attrs

__all__ = ["read", "written"]

#: module -> its classes that have records; imported when a record of one of them is written or read
_MODULES = {
    "collc.backends.base": ("Artifact", "Hang", "Window"),
    "collc.ir.costs.certificate": ("Bound", "Cut", "Prices"),
    "collc.ir.costs.cost": ("Cost", "ForestCost"),
    "collc.ir.costs.partitions": ("Partition",),
    "collc.ir.costs.tree_cuts": ("SwitchBalance", "TreeCuts", "WeightedCut"),
    "collc.ir.diagnostic": ("Diagnostic", "Excess", "Kind", "Related", "Severity", "Source", "Span", "Subject"),
    "collc.ir.verify": ("Check", "Report"),
    "collc.selection.algorithm": ("Algorithm",),
    "collc.selection.choice": ("Choice", "Interval", "Measured", "Skipped"),
    "collc.selection.times": ("Times",),
    "collc.sweeping.cases": ("SweepRow",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


@cache
def _class(name: str) -> type:
    """Return the class of a record; raise KeyError if no class of this name has records."""
    found = getattr(import_module(_PLACES[name]), name)
    assert isinstance(found, type)
    return found


def written(value: object) -> str:
    """Return a value as JSON; raise TypeError if it holds an object of another class.

    >>> written((Fraction(1, 2), None, "a"))
    '[{"q":"1/2"},null,"a"]'
    """
    return json.dumps(_record(value), separators=(",", ":"), ensure_ascii=True)


def read(text: str) -> object:
    """Return the value of a text of :func:`written`; lists are tuples. Raise ValueError for any other text.

    >>> read('[{"q":"1/2"},null,"a"]')
    (Fraction(1, 2), None, 'a')
    """
    try:
        return _value(json.loads(text))
    except (TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise ValueError(f"no record: {problem}") from problem


def _record(value: object) -> object:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is Fraction:
        return {"q": str(value)}
    if type(value) is tuple:
        return [_record(item) for item in value]
    name = type(value).__name__
    if name not in _PLACES or _class(name) is not type(value):
        raise TypeError(f"no record of a {name}")
    if isinstance(value, Enum):
        return {"is": name, "value": value.value}
    names = [field.alias for field in attrs.fields(_class(name)) if field.init]  # as the class takes them
    return {"is": name, **{field: _record(getattr(value, field)) for field in names}}


def _value(record: object) -> object:
    if isinstance(record, list):
        return tuple(_value(item) for item in record)
    if not isinstance(record, dict):
        return record
    if "q" in record:
        numerator, _, denominator = record["q"].partition("/")
        return Fraction(int(numerator), int(denominator or 1))
    cls = _class(record["is"])
    return cls(**{name: _value(item) for name, item in record.items() if name != "is"})
