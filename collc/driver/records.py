"""Values of a result as JSON, and back: exact numbers, and objects of the classes listed here, no others."""

from __future__ import annotations

import json
from enum import Enum
from fractions import Fraction
from functools import cache

import attrs

from collc.backends.base import Artifact, Hang, Window
from collc.ir.costs import certificate, partitions, tree_cuts
from collc.ir.costs.cost import Cost, ForestCost
from collc.ir.diagnostic import Diagnostic, Excess, Kind, Severity, Source, Span
from collc.ir.verify import Check, Report

__all__ = ["read", "written"]


@cache
def _classes() -> dict[str, type]:
    """Return the classes by the names of their records."""
    from ..selection.algorithm import Algorithm
    from ..selection.choice import Choice, Interval, Measured, Skipped
    from ..selection.times import Times

    plain = (
        Artifact, Hang, Window, Cost, ForestCost, Diagnostic, Excess, Source, Span, Check, Report, Algorithm, Choice,
        Interval, Measured, Skipped, Times, certificate.Bound, certificate.Cut, certificate.Prices,
        partitions.Partition, tree_cuts.SwitchBalance, tree_cuts.TreeCuts, tree_cuts.WeightedCut, Severity, Kind,
    )  # fmt: skip
    return {cls.__name__: cls for cls in plain}


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
    if _classes().get(name) is not type(value):
        raise TypeError(f"no record of a {name}")
    if isinstance(value, Enum):
        return {"is": name, "value": value.value}
    names = [field.name for field in attrs.fields(_classes()[name]) if field.init]
    return {"is": name, **{field: _record(getattr(value, field)) for field in names}}


def _value(record: object) -> object:
    if isinstance(record, list):
        return tuple(_value(item) for item in record)
    if not isinstance(record, dict):
        return record
    if "q" in record:
        numerator, _, denominator = record["q"].partition("/")
        return Fraction(int(numerator), int(denominator or 1))
    cls = _classes()[record["is"]]
    return cls(**{name: _value(item) for name, item in record.items() if name != "is"})
