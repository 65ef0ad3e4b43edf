"""The options of passes and targets: the typed fields of a frozen class.

A field ``max_chunks: int | None = None`` is the option ``max-chunks``, on the command line
(``discretize{max-chunks=8}``) and in the language (``using bfb { max-chunks: 8 }``) alike. Its help is
``metadata["help"]``.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Severity, Span, error, nearest
from collc.ir.frozen import frozen
from collc.ir.spec import Option

from ..messages.places import usage_status

__all__ = ["OptionHelp", "build", "describe", "show"]

T = TypeVar("T")

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


if TYPE_CHECKING:
    _Attribute: TypeAlias = attrs.Attribute[object]


@frozen
class OptionHelp:
    """The description of one option, for listings."""

    name: str
    kind: str
    default: str
    help: str


def build(
    cls: type[T],
    what: str,
    given: Sequence[Option],
    defaults: Mapping[str, object] | None = None,
    span: Span | None = None,
) -> T:
    """Return an instance of ``cls`` with these options; raise all mistakes in them at once.

    ``what`` names the owner in messages (``pass `discretize```); ``defaults`` (by field name) replace options that are
    not given, if ``cls`` has such a field. Raises C0009 (unknown option, or twice) and C0010 (a value that does not
    fit).
    """
    fields = _fields(cls)  # type: ignore[arg-type]  # classes are hashable
    values = {name: value for name, value in (defaults or {}).items() if name in fields}
    wrong: list[Diagnostic] = []
    seen: dict[str, Option] = {}
    for option in given:
        name = option.name.replace("-", "_")
        try:
            if name not in fields:
                raise _unknown(what, option, fields)
            if name in seen:
                message, first = f"option `{option.name}` of {what} is given twice", seen[name].span
                related = [Related("the first one", first)] if first else ()
                raise error("C0009", message, span=option.span, hint="remove one of them", related=related)
            seen[name] = option
            values[name] = _convert(option, what, fields[name])
        except CollcError as mistake:
            wrong.extend(mistake.diagnostics)
    if wrong:
        raise CollcError(wrong, usage_status(d.span for d in wrong))
    return _instance(cls, what, values, given, span)


def describe(cls: type) -> list[OptionHelp]:
    """Return every option of a pass or target class, in order of declaration."""
    return [
        OptionHelp(
            name.replace("_", "-"),
            _kind_name(kind, field),
            _default(field),
            str(field.metadata.get("help", "")),
        )
        for name, (field, kind) in _fields(cls).items()
    ]


def show(value: object) -> str:
    """Return a value as it is written in an option.

    >>> show(True), show(None), show(Fraction(1, 3)), show((1, 2))
    ('true', 'none', '1/3', '{1,2}')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return "{" + ",".join(show(item) for item in value) + "}"
    return str(value)


@functools.cache
def _fields(cls: type) -> dict[str, tuple[_Attribute, object]]:
    """Return field name -> (attrs attribute, resolved type) of all options."""
    hints = typing.get_type_hints(cls)
    return {f.name: (f, hints.get(f.name, str)) for f in attrs.fields(cls) if f.init and not f.name.startswith("_")}


#: names from the glossary and from the command line -> options
_MEANT = {"gamma": "reduction", "epsilon": "launch", "beta": "bandwidth", "nics": "rings", "rails": "rings"}


def _unknown(what: str, option: Option, fields: Iterable[str]) -> CollcError:
    from .owners import option_owner

    names = [name.replace("_", "-") for name in fields]
    owner = option_owner(option.name)
    meant = _MEANT.get(option.name)
    hint = f"`{option.name}` is an option of {owner}" if owner else nearest(option.name, names)
    hint = f"did you mean `{meant}`?" if meant in names and not owner else hint
    listed = f"its options are {', '.join(names)}" if names else "it has no options"
    notes = () if hint and not owner else (listed,)
    return error("C0009", f"{what} has no option `{option.name}`", span=option.name_span, notes=notes, hint=hint)


def _instance(cls: type[T], what: str, values: dict[str, object], given: Sequence[Option], span: Span | None) -> T:
    """Return an instance; a mistake that the class finds gets the place of the option it names, else the owner's."""
    try:
        return cls(**values)
    except CollcError as mistake:
        placed = [d if d.span else attrs.evolve(d, span=_place(d, given, span)) for d in mistake.diagnostics]
        raise CollcError(placed, usage_status(d.span for d in placed)) from None
    except (ValueError, TypeError) as problem:
        text = str(problem.args[0]) if problem.args else str(problem)
        named = [o for o in given if o.name in text or o.name.replace("-", "_") in text]
        place = named[0].place if named else span
        raise CollcError(Diagnostic("C0010", f"{what}: {text}", Severity.ERROR, place), usage_status([place])) from None


def _place(diagnostic: Diagnostic, given: Sequence[Option], owner: Span | None) -> Span | None:
    """Return the place of the value of the option that is wrong, else of the only option, else of the owner."""
    wrong = [option for option in given if option.name.replace("_", "-") == diagnostic.option]
    wrong = wrong or ([*given] if len(given) == 1 else [])
    return wrong[0].place if wrong else owner


# ---- values


def _convert(option: Option, what: str, field: tuple[_Attribute, object]) -> object:
    attribute, kind = field
    choices = _choices(kind, attribute)
    ok, value = _fit(option.value, kind)
    if ok and (choices is None or value in choices):
        return value
    meant = attribute.metadata.get("habits", {}).get(str(option.value).lower())
    hint = f"write `{meant}`" if meant else nearest(str(option.value), _words(kind, attribute))
    meanings = attribute.metadata.get("meanings")
    raise error(
        "C0010",
        f"option `{option.name}` of {what} needs {_need(kind, attribute)}, found `{show(option.value)}`",
        notes=[meanings] if meanings else [],
        span=option.place,
        hint=hint,
    )


def _fit(value: object, kind: object) -> tuple[bool, object]:
    """Return whether ``value`` (typed, or text from the command line) fits the type, and the converted value."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _fit_union(value, typing.get_args(kind))
    if origin is Literal:
        for choice in typing.get_args(kind):
            ok, converted = _fit(value, type(choice))
            if ok and converted == choice:
                return True, choice
        return False, None
    if origin is tuple:
        return _fit_tuple(value, typing.get_args(kind)[0])
    if kind is bool:
        found = _WORDS.get(value.lower()) if isinstance(value, str) else value
        return isinstance(found, bool), found
    if kind in (int, Fraction):
        return _fit_number(value, kind)
    return isinstance(value, str), value


def _fit_union(value: object, kinds: Sequence[object]) -> tuple[bool, object]:
    if type(None) in kinds and (value is None or value == "none"):
        return True, None
    for kind in kinds:
        if kind is not type(None):
            ok, converted = _fit(value, kind)
            if ok:
                return True, converted
    return False, None


def _fit_tuple(value: object, kind: object) -> tuple[bool, object]:
    if isinstance(value, str):
        inside = re.fullmatch(r"\{(.*)\}", value.strip(), re.DOTALL)
        value = tuple(part.strip() for part in (inside[1] if inside else value).split(",") if part.strip())
    items = [_fit(item, kind) for item in (value if isinstance(value, tuple) else (value,))]
    return all(ok for ok, _ in items), tuple(converted for _, converted in items)


def _fit_number(value: object, kind: type) -> tuple[bool, object]:
    if isinstance(value, bool):
        return False, None
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?\d{1,400}(\.\d{1,400}|/0*[1-9]\d{0,400})?", value.strip(), re.ASCII):
            return False, None
        value = Fraction(value.strip())
    if not isinstance(value, (int, Fraction)):
        return False, None
    if kind is int:
        return Fraction(value).denominator == 1, int(value)
    return True, Fraction(value)


# ---- text for users


def _choices(kind: object, attribute: _Attribute) -> tuple[object, ...] | None:
    if "choices" in attribute.metadata:
        return tuple(attribute.metadata["choices"])
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [k for k in typing.get_args(kind) if k is not type(None)]
        inner = _choices(parts[0], attribute) if len(parts) == 1 else None
        return None if inner is None else (*inner, None)
    return None


def _words(kind: object, attribute: _Attribute) -> list[str]:
    """Return the words that a value may be, of all alternatives."""
    alternatives = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return [show(choice) for one in (kind, *alternatives) for choice in _choices(one, attribute) or ()]


def _need(kind: object, attribute: _Attribute) -> str:
    choices = _choices(kind, attribute)
    if choices is not None:
        return f"one of {', '.join(show(c) for c in choices)}"
    words: dict[object, str] = {int: "a whole number", bool: "true or false", str: "a word", Fraction: "a number"}
    if typing.get_origin(kind) is tuple:
        return "a list such as {1,2}"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = ["`none`" if k is type(None) else _need(k, attribute) for k in typing.get_args(kind)]
        return " or ".join(parts)
    return words.get(kind, str(getattr(kind, "__name__", kind)))


def _kind_name(kind: object, attribute: _Attribute) -> str:
    choices = _choices(kind, attribute)
    if choices is not None:
        return "|".join(show(c) for c in choices)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return "|".join("none" if k is type(None) else _kind_name(k, attribute) for k in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return "{..}"
    words: dict[object, str] = {int: "int", bool: "bool", str: "text", Fraction: "number"}
    return words.get(kind, str(getattr(kind, "__name__", kind)))


def _default(attribute: _Attribute) -> str:
    if attribute.default is attrs.NOTHING:
        return "required"
    return "computed" if isinstance(attribute.default, attrs.Factory) else show(attribute.default)  # type: ignore[arg-type]
