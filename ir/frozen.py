"""Frozen classes, as ``attrs.frozen`` makes them, in a fifth of the time.

For every class attrs writes and compiles the text of its methods, at every start of a process. Here all classes share
one ``__eq__``, ``__hash__`` and ``__repr__``, which go through the fields; a ``repr`` is short (:mod:`.shown`). Those
are slower, so ``attrs.frozen`` remains for classes that are compared or hashed in loops. An ``__init__`` is compiled
once for each form of parameters, and a class gets a copy with the names of its fields, which is as fast as that of
attrs. Values of cached properties are in the ``__dict__`` of an object, which only classes with such properties have.

attrs makes the class if it needs more than that: validators, ``super()``, a base that is an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import compress
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from .shown import brief_fields

if TYPE_CHECKING:
    from attrs import frozen
else:

    def frozen(cls=None, *, eq=True, **options):
        """Return the class with fields, as ``attrs.frozen`` does."""
        if cls is None:
            return lambda cls: frozen(cls, eq=eq, **options)
        own = vars(cls)
        if eq and "__eq__" not in own:
            cls.__eq__, cls.__hash__ = _equal, _hash
        if "__repr__" not in own:
            cls.__repr__ = brief_fields
        fields = None if options else _simple_fields(cls)
        return attrs.frozen(cls, eq=False, repr=False, **options) if fields is None else _with_slots(cls, fields)


__all__ = ["frozen"]


class _Field(NamedTuple):
    """What of an ``attrs.Attribute`` the methods need."""

    name: str
    annotation: object
    default: object
    kw_only: bool = False
    eq: bool = True
    repr: bool = True
    converter: Any = None  # Any: a function of whatever a caller passes
    metadata: Mapping[Any, Any] = {}  # Any: as attrs has it

    @property
    def form(self) -> str:
        """How ``__init__`` sets it: a letter for each kind of text."""
        has_factory = isinstance(self.default, attrs.Factory)  # type: ignore[arg-type]  # a class
        return ("F" if has_factory else "p") if self.converter is None else ("C" if has_factory else "c")


@attrs.frozen
class _Simple:
    """A class of attrs, for the methods that all frozen classes have, and for a field."""

    field: object


_FIELDS = "__frozen_fields__"
_SHARED = {
    name: value for name, value in vars(_Simple).items() if name in ("__setattr__", "__delattr__", "__replace__")
}
_PATTERN = attrs.fields(_Simple)[0]
#: what attrs alone does, in a class or its bases
_MORE = ("__attrs_pre_init__", "__attrs_init_subclass__")
_AFTER = "__attrs_post_init__"
_OWN = ("__init__", "__slots__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
_NO_FIELD = ("ClassVar", "typing.ClassVar")
_MADE_BY_FIELD = type(attrs.field())
#: what an ``attrs.field`` that attrs need not make has in common with one without options
_USUAL = ("_validator", "hash", "init", "eq_key", "on_setattr", "alias")
_PLAIN = attrs.field()


# ---- which classes are simple


def _simple_fields(cls: type) -> tuple[_Field, ...] | None:
    """Return the fields of a class, those of its base first; None if attrs has to make the class."""
    own = vars(cls)
    annotations = own.get("__annotations__", None if "__annotate__" in own else {})
    if annotations is None or any(name in own for name in _OWN) or any(hasattr(cls, name) for name in _MORE):
        return None
    if issubclass(cls, BaseException) or any(map(_needs_attrs, own.values())):
        return None
    inherited = _inherited(cls)
    if inherited is None:
        return None
    names = [name for name, annotation in annotations.items() if not str(annotation).startswith(_NO_FIELD)]
    both = (*inherited, *(_field(name, annotations[name], own.get(name, attrs.NOTHING)) for name in names))
    return both if len({field.name for field in both}) == len(both) and _ordered(both) else None


def _field(name: str, annotation: object, value: Any) -> _Field:  # Any: a default, or what `attrs.field` returns
    """Return a field whose class gives it a value."""
    if not isinstance(value, _MADE_BY_FIELD):
        return _Field(name, annotation, value)
    return _Field(
        name,
        annotation,
        value._default,
        bool(value.kw_only),
        value.eq,
        value.repr,
        value.converter,
        value.metadata or {},
    )


def _needs_attrs(value: object) -> bool:
    if isinstance(value, _MADE_BY_FIELD):
        return not _is_simple(value, value._default) or any(getattr(value, n) != getattr(_PLAIN, n) for n in _USUAL)
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]  # a class
        return True
    if isinstance(value, cached_property):
        return _needs_class(value.func)
    if isinstance(value, property):
        return any(map(_needs_class, (value.fget, value.fset, value.fdel)))
    return _needs_class(getattr(value, "__func__", value))


def _needs_class(function: object) -> bool:
    """Return whether a function has a cell for its class, as ``super()`` needs."""
    return isinstance(function, FunctionType) and "__class__" in function.__code__.co_freevars


def _inherited(cls: type) -> tuple[_Field, ...] | None:
    """Return the fields of the base; None if several bases have fields, or one has a field that is not simple."""
    found: tuple[_Field, ...] = ()
    for base in cls.__bases__:
        own = vars(base)
        fields = own[_FIELDS] if _FIELDS in own else _of_attrs(getattr(base, "__attrs_attrs__", ()))
        if fields is None or (found and fields):
            return None
        found = found or fields
    return found


def _of_attrs(attributes: Iterable[attrs.Attribute[Any]]) -> tuple[_Field, ...] | None:  # Any: of any type
    """Return what the methods need of fields that attrs made; None if they need more."""
    found = [
        _Field(a.name, a.type, a.default, bool(a.kw_only), bool(a.eq), bool(a.repr), a.converter, a.metadata)
        for a in attributes
        if a.init and not a.validator and _is_simple(a, a.default)
    ]
    return tuple(found) if len(found) == len(list(attributes)) else None


def _is_simple(field: Any, default: object) -> bool:  # Any: an attribute of attrs, or what `attrs.field` returns
    """Return whether the value of a field depends on that value alone, and its ``repr`` is that of all values."""
    of_self = getattr(default, "takes_self", False)  # of an `attrs.Factory`
    return not (of_self or isinstance(field.converter, attrs.Converter)) and isinstance(field.repr, bool)


def _ordered(fields: Iterable[_Field]) -> bool:
    """Return whether no positional field without a default follows one with a default."""
    has = [field.default is not attrs.NOTHING for field in fields if not field.kw_only]
    return has == sorted(has)


# ---- making them


def _with_slots(cls: type, fields: tuple[_Field, ...]) -> type:
    """Return the class with slots, frozen."""
    own = {field.name for field in fields}.intersection(vars(cls).get("__annotations__", ()))
    kept = {name: value for name, value in vars(cls).items() if name not in own | {"__dict__", "__weakref__"}}
    slots = [field.name for field in fields if field.name in own]
    caches = any(isinstance(value, cached_property) for value in kept.values())
    if caches and not any(base.__dictoffset__ for base in cls.__bases__):
        slots.append("__dict__")
    if not any(hasattr(base, "__weakref__") for base in cls.__bases__):
        slots.append("__weakref__")
    added = {
        "__slots__": tuple(slots), "__match_args__": tuple(f.name for f in fields if not f.kw_only),
        "__init__": _init(cls, fields), "__getstate__": _state, "__setstate__": _restore,
        "__qualname__": cls.__qualname__, _FIELDS: fields, "__attrs_attrs__": _AttrsLater(own),
    }  # fmt: skip
    return type(cls)(cls.__name__, cls.__bases__, {**kept, **_SHARED, **added})


class _Attributes(tuple["attrs.Attribute[Any]", ...]):  # Any: of fields of any type
    """The fields of a class, each also by its name."""

    __slots__ = ()

    def __getattr__(self, name: str) -> attrs.Attribute[Any]:  # Any: as above
        found = next((field for field in self if field.name == name), None)
        if found is None:
            raise AttributeError(name)
        return found


class _AttrsLater:
    """The ``__attrs_attrs__`` of a class, made on first use: few objects are evolved or asked for their fields."""

    def __init__(self, own: Collection[str]):
        self.own = own

    def __get__(self, instance: object, owner: type) -> _Attributes:
        holder = next(cls for cls in owner.__mro__ if vars(cls).get("__attrs_attrs__") is self)
        found = _Attributes(
            _PATTERN.evolve(
                name=field.name, alias=field.name.lstrip("_"), default=field.default, type=field.annotation,
                kw_only=field.kw_only, eq=field.eq, order=field.eq, repr=field.repr, converter=field.converter,
                metadata=field.metadata, inherited=field.name not in self.own,
            )
            for field in vars(holder)[_FIELDS]
        )  # fmt: skip
        type.__setattr__(holder, "__attrs_attrs__", found)
        return found


def _init(cls: type, fields: Sequence[_Field]) -> FunctionType:
    """Return the ``__init__`` of a class: the text for parameters of this form, with the names of its fields."""
    fields = [*(f for f in fields if not f.kw_only), *(f for f in fields if f.kw_only)]
    number = sum(not field.kw_only for field in fields)
    code = _code("".join(field.form for field in fields), number, hasattr(cls, _AFTER))
    parameters = [field.name.lstrip("_") for field in fields]
    names = {f"field_{i}": field.name for i, field in enumerate(fields)}
    code = code.replace(
        co_varnames=(code.co_varnames[0], *parameters, *code.co_varnames[1 + len(parameters) :]),
        co_consts=tuple(names.get(const, const) for const in code.co_consts),
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    used = {name: function for i, field in enumerate(fields) for name, function in _used(field, i)}
    defaults = [attrs.NOTHING if field.form in "FC" else field.default for field in fields]
    has = [field.default is not attrs.NOTHING for field in fields]
    init = FunctionType(code, {**_GLOBALS, **used}, "__init__", tuple(compress(defaults[:number], has)))
    by_name = zip(parameters[number:], defaults[number:], strict=True)
    init.__kwdefaults__ = dict(compress(by_name, has[number:]))
    types = {p: f.annotation for p, f in zip(parameters, fields, strict=True) if f.converter is None}
    init.__annotations__ = {**types, "return": None}
    init.__module__ = cls.__module__
    return init


def _used(field: _Field, number: int) -> Iterator[tuple[str, object]]:
    """Yield the functions that the text of an ``__init__`` calls for a field, by the names that it has for them."""
    if field.form in "FC":
        yield f"factory_{number}", field.default.factory  # type: ignore[attr-defined]  # an attrs.Factory
    if field.converter is not None:
        yield f"converted_{number}", field.converter


#: what the text of every ``__init__`` may name
_GLOBALS = {"set_of": object.__setattr__.__get__, "NOTHING": attrs.NOTHING, "__builtins__": {}}


@cache
def _code(forms: str, positional: int, more: bool) -> CodeType:
    """Return the code of an ``__init__`` with parameters of these forms; ``more``: it ends with the class's own."""
    names = [f"field_{i}" for i in range(len(forms))]
    star = ["*"] if positional < len(forms) else []
    lines = [f"def __init__({', '.join(['self', *names[:positional], *star, *names[positional:]])}):"]
    lines += [" set = set_of(self)", *(f" set('field_{i}', {_value(i, form)})" for i, form in enumerate(forms))]
    lines += [f" self.{_AFTER}()"] if more else []
    namespace: dict[str, FunctionType] = {}
    exec("\n".join(lines), {}, namespace)
    return namespace["__init__"].__code__


def _value(number: int, form: str) -> str:
    """Return the text for the value of a field."""
    name = f"field_{number}"
    value = f"factory_{number}() if {name} is NOTHING else {name}" if form in "FC" else name
    return f"converted_{number}({value})" if form in "cC" else value


# ---- the methods


def _fields(cls: Any) -> Sequence[Any]:  # Any: a class of `frozen` or of attrs; a field of either
    fields: Sequence[Any] = vars(cls).get(_FIELDS) or cls.__attrs_attrs__  # Any: a field of either
    return fields


def _equal(self: object, other: object) -> Any:  # Any: NotImplemented of others
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, f.name) == getattr(other, f.name) for f in _fields(type(self)) if f.eq)


def _hash(self: object) -> int:
    return hash((type(self), *(getattr(self, f.name) for f in _fields(type(self)) if f.eq)))


def _state(self: object) -> dict[str, object]:
    """Return what pickle keeps."""
    return {field.name: getattr(self, field.name) for field in _fields(type(self))}


def _restore(self: object, state: Mapping[str, object]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
