"""Frozen classes, as ``attrs.frozen`` makes them, in a fifth of the time.

For every class attrs writes and compiles the text of its methods, at every start of a process. Here all classes share
one ``__eq__``, ``__hash__`` and ``__repr__``, which go through the fields; a ``repr`` is short (:mod:`.shown`). Those
are slower, so ``attrs.frozen`` remains for classes that are compared or hashed in loops. An ``__init__`` is compiled
once for each number of parameters, and a class gets a copy with the names of its fields, which is as fast as that of
attrs.

attrs makes the class if a field has an ``attrs.field``, or if the class has something that needs more than that:
cached properties, ``__attrs_post_init__``, ``super()``, a base that is an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
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


@attrs.frozen
class _Empty:
    """A class of attrs, for the methods that all frozen classes have."""


_FIELDS = "__frozen_fields__"
_SHARED = {name: value for name, value in vars(_Empty).items() if name in ("__setattr__", "__delattr__", "__replace__")}
#: what attrs alone does, in a class or its bases
_MORE = ("__attrs_post_init__", "__attrs_pre_init__", "__attrs_init_subclass__")
_OWN = ("__init__", "__slots__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
_NO_FIELD = ("ClassVar", "typing.ClassVar")
_MADE_BY_FIELD = type(attrs.field())
_set_of = object.__setattr__.__get__  # the name in the text of an `__init__`


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
    fields = [
        _Field(n, a, own.get(n, attrs.NOTHING)) for n, a in annotations.items() if not str(a).startswith(_NO_FIELD)
    ]
    both = (*inherited, *fields)
    return both if len({field.name for field in both}) == len(both) and _ordered(both) else None


def _needs_attrs(value: object) -> bool:
    if isinstance(value, (cached_property, _MADE_BY_FIELD, attrs.Factory)):  # type: ignore[arg-type]  # a class
        return True
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
    found = [_Field(a.name, a.type, a.default, a.kw_only, bool(a.eq)) for a in attributes if _is_simple(a)]
    return tuple(found) if len(found) == len(list(attributes)) else None


def _is_simple(field: attrs.Attribute[Any]) -> bool:  # Any: as above
    is_factory = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]  # a class
    return bool(field.init and not (is_factory or field.converter or field.validator))


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
    if not any(hasattr(base, "__weakref__") for base in cls.__bases__):
        slots.append("__weakref__")
    added = {
        "__slots__": tuple(slots), "__match_args__": tuple(f.name for f in fields if not f.kw_only),
        "__init__": _init(cls, fields), "__getstate__": _state, "__setstate__": _restore,
        "__qualname__": cls.__qualname__, _FIELDS: fields, "__attrs_attrs__": _AttrsLater(cls),
    }  # fmt: skip
    return type(cls)(cls.__name__, cls.__bases__, {**kept, **_SHARED, **added})


class _AttrsLater:
    """The ``__attrs_attrs__`` of a class, made on first use: few classes are evolved or asked for their fields."""

    def __init__(self, cls: type):
        own = vars(cls)
        names = ("__annotations__", "__module__", "__qualname__", *own.get("__annotations__", ()))
        self.name, self.bases, self.kind = cls.__name__, cls.__bases__, type(cls)
        self.kept = {name: own[name] for name in names if name in own}

    def __get__(self, instance: object, owner: type) -> object:
        # Any: a class made by attrs
        alike: Any = attrs.frozen(self.kind(self.name, self.bases, dict(self.kept)), eq=False, repr=False)
        holder = next(cls for cls in owner.__mro__ if vars(cls).get("__attrs_attrs__") is self)
        type.__setattr__(holder, "__attrs_attrs__", alike.__attrs_attrs__)
        return alike.__attrs_attrs__


def _init(cls: type, fields: Sequence[_Field]) -> FunctionType:
    """Return the ``__init__`` of a class: the text for this number of parameters, with the names of its fields."""
    positional = [field for field in fields if not field.kw_only]
    keyword = [field for field in fields if field.kw_only]
    code = _code(len(positional), len(keyword))
    parameters = [field.name.lstrip("_") for field in (*positional, *keyword)]
    names = {f"field_{i}": field.name for i, field in enumerate((*positional, *keyword))}
    code = code.replace(
        co_varnames=(code.co_varnames[0], *parameters, *code.co_varnames[1 + len(parameters) :]),
        co_consts=tuple(names.get(const, const) for const in code.co_consts),
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    defaults = tuple(field.default for field in positional if field.default is not attrs.NOTHING)
    init = FunctionType(code, globals(), "__init__", defaults)
    init.__kwdefaults__ = {
        p: f.default
        for p, f in zip(parameters[len(positional) :], keyword, strict=True)
        if f.default is not attrs.NOTHING
    }
    types = (field.annotation for field in (*positional, *keyword))
    init.__annotations__ = {**dict(zip(parameters, types, strict=True)), "return": None}
    init.__module__ = cls.__module__
    return init


@cache
def _code(positional: int, keyword: int) -> CodeType:
    """Return the code of an ``__init__`` with this number of parameters."""
    names = [f"field_{i}" for i in range(positional + keyword)]
    star = ["*"] if keyword else []
    lines = [f"def __init__({', '.join(['self', *names[:positional], *star, *names[positional:]])}):"]
    lines += [" set = _set_of(self)", *(f" set('{name}', {name})" for name in names)]
    namespace: dict[str, FunctionType] = {}
    exec("\n".join(lines), globals(), namespace)
    return namespace["__init__"].__code__


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
        _set_of(self)(name, value)
